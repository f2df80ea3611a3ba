//! Lengths of time, amounts of memory, arrays and lists of jobs, as people write them.

use crate::model::Array;

/// The longest time that can be asked for, seconds: as long as a job log may last.
const LONGEST: u64 = 10_000_000_000;

/// What a number without a unit, or of an ambiguous form, means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Nothing: it is refused.
    Own,
    /// What it means to Slurm: minutes, megabytes.
    Slurm,
}

/// Seconds: `90s`, `15min`, `2h`, `1d12h`, `1:30:00`, `2-12:00:00`.
///
/// # Errors
/// Anything else, a number without a unit among it, and 0.
pub fn length_of_time(text: &str) -> Result<u64, String> {
    time(text, Dialect::Own)
}

/// Bytes: `512MB`, `8G`; each unit is 1024 of the one before it.
///
/// # Errors
/// Anything else, a number without a unit among it, and 0.
pub fn memory(text: &str) -> Result<u64, String> {
    amount(text, Dialect::Own)
}

/// The indexes of an array: `0-15`, `0-15:4`, `7`.
///
/// # Errors
/// Anything else, and a step of 0.
pub fn array(text: &str) -> Result<Array, String> {
    let read = || {
        let (range, step) = text.split_once(':').unwrap_or((text, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let array = Array { first: digits(first)?, last: digits(last)?, step: digits(step)? };
        (array.first <= array.last && array.step > 0).then_some(array)
    };
    read().ok_or_else(|| "write FIRST-LAST or FIRST-LAST:STEP, such as 0-15 or 0-15:4".to_owned())
}

/// The numbers of jobs, with commas between them.
///
/// # Errors
/// What is no number above 0.
pub fn job_numbers(text: &str) -> Result<Vec<i64>, String> {
    let number = |part: &str| digits::<i64>(part).filter(|number| *number > 0);
    let numbers: Option<Vec<i64>> = text.split(',').map(|part| number(part.trim())).collect();
    numbers.ok_or_else(|| "give the numbers of jobs, with commas between them, such as 12,13".to_owned())
}

/// A number of plain digits: no sign, no blanks.
fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

pub(super) fn time(text: &str, dialect: Dialect) -> Result<u64, String> {
    if digits::<u64>(text).is_some() && dialect == Dialect::Own {
        return Err(format!("{text} what? write {text}s, {text}m or {text}h"));
    }
    if text.matches(':').count() == 1 && !text.contains('-') && dialect == Dialect::Own {
        return Err(format!("{text} may be hours or minutes; write it as 1h30m, or as 1:30:00"));
    }
    let secs = of_clock(text, dialect).or_else(|| of_units(text));
    secs.filter(|secs| (1..=LONGEST).contains(secs)).ok_or_else(|| {
        "write a length of time above 0, such as 90s, 15min, 2h, 1d12h, 1:30:00 or 2-12:00:00".to_owned()
    })
}

/// Slurm's forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours, days-hours:minutes, days-hours:minutes:seconds.
fn of_clock(text: &str, dialect: Dialect) -> Option<u64> {
    let (days, rest) = match text.split_once('-') {
        Some((days, rest)) => (Some(digits::<u64>(days)?), rest),
        None => (None, text),
    };
    let parts: Vec<u64> = rest.split(':').map(digits).collect::<Option<_>>()?;
    let scales: &[u64] = match (days, parts.len(), dialect) {
        (Some(_), 1..=3, _) | (None, 3, _) => &[3_600, 60, 1],
        (None, 1 | 2, Dialect::Slurm) => &[60, 1],
        _ => return None,
    };
    let day = days.unwrap_or_default().checked_mul(86_400)?;
    parts.iter().zip(scales).try_fold(day, |sum, (part, scale)| sum.checked_add(part.checked_mul(*scale)?))
}

/// Numbers with units, one after the other.
pub(super) fn of_units(text: &str) -> Option<u64> {
    let (mut rest, mut sum) = (text, 0_u64);
    loop {
        let unit_at = rest.find(|letter: char| !letter.is_ascii_digit())?;
        let (number, unit_on) = rest.split_at(unit_at);
        let unit_end = unit_on.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(unit_on.len());
        let (unit, next) = unit_on.split_at(unit_end);
        sum = sum.checked_add(digits::<u64>(number)?.checked_mul(seconds_in(unit)?)?)?;
        if next.is_empty() {
            return Some(sum);
        }
        rest = next;
    }
}

fn seconds_in(unit: &str) -> Option<u64> {
    Some(match unit {
        "s" | "sec" | "second" | "seconds" => 1,
        "m" | "min" | "minute" | "minutes" => 60,
        "h" | "hour" | "hours" => 3_600,
        "d" | "day" | "days" => 86_400,
        "w" | "week" | "weeks" => 7 * 86_400,
        _ => return None,
    })
}

pub(super) fn amount(text: &str, dialect: Dialect) -> Result<u64, String> {
    let at = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let shift = match (unit.to_ascii_lowercase().as_str(), dialect) {
        ("k" | "kb" | "kib", _) => 10,
        ("m" | "mb" | "mib", _) | ("", Dialect::Slurm) => 20,
        ("g" | "gb" | "gib", _) => 30,
        ("t" | "tb" | "tib", _) => 40,
        ("", Dialect::Own) if !number.is_empty() => {
            return Err(format!("{number} what? write {number}MB or {number}GB"));
        }
        _ => return Err("write an amount of memory, such as 512MB or 8GB".to_owned()),
    };
    let bytes = digits::<u64>(number).and_then(|number| number.checked_mul(1 << shift));
    // To Slurm 0 is all the memory of the machine, which here would be nobody else's to promise.
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "write an amount of memory above 0, such as 512MB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        #[track_caller]
        fn check(text: &str, own: Option<u64>, slurm: Option<u64>) {
            assert_eq!(time(text, Dialect::Own).ok(), own, "{text:?}");
            assert_eq!(time(text, Dialect::Slurm).ok(), slurm, "{text:?} in #SBATCH");
        }
        let same = |text: &str, secs: u64| check(text, Some(secs), Some(secs));
        same("90s", 90);
        same("15min", 900);
        same("15m", 900);
        same("2h", 7_200);
        same("1d12h", 129_600);
        same("1h30m10s", 5_410);
        same("2weeks", 1_209_600);
        same("1:30:00", 5_400);
        same("0:00:01", 1);
        same("2-12", 216_000);
        same("2-12:30", 217_800);
        same("2-12:30:15", 217_815);
        check("30", None, Some(1_800));
        check("90:30", None, Some(5_430));
        for bad in [
            "",
            "0",
            "0s",
            "-1s",
            "+5s",
            "1.5h",
            "1 h",
            "h",
            "1y",
            "1h30",
            "1:2:3:4",
            "1-",
            "-",
            "1-2-3",
            "UNLIMITED",
            "99999999999999999999s",
            "18446744073709551615w",
            "10000000001s",
            "1:x:0",
            "é",
        ] {
            check(bad, None, None);
        }
    }

    #[test]
    fn amounts_of_memory() {
        #[track_caller]
        fn check(text: &str, own: Option<u64>, slurm: Option<u64>) {
            assert_eq!(amount(text, Dialect::Own).ok(), own, "{text:?}");
            assert_eq!(amount(text, Dialect::Slurm).ok(), slurm, "{text:?} in #SBATCH");
        }
        let same = |text: &str, bytes: u64| check(text, Some(bytes), Some(bytes));
        same("512MB", 512 << 20);
        same("8G", 8 << 30);
        same("8gb", 8 << 30);
        same("8GiB", 8 << 30);
        same("100K", 100 << 10);
        same("1T", 1 << 40);
        check("4096", None, Some(4 << 30));
        for bad in ["", "0", "0G", "G", "-1G", "1.5G", "1 G", "8GG", "99999999999T", "é", "1Gé"] {
            check(bad, None, None);
        }
        assert!(amount("4096", Dialect::Own).unwrap_err().contains("4096MB"));
    }

    #[test]
    fn arrays() {
        let of = |first, last, step| Ok(Array { first, last, step });
        assert_eq!(array("0-15"), of(0, 15, 1));
        assert_eq!(array("0-15:4"), of(0, 15, 4));
        assert_eq!(array("7"), of(7, 7, 1));
        for bad in ["", "1-", "-1", "5-1", "0-15:0", "1,3,5", "0-15%4", "4294967296", "a-b"] {
            assert!(array(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn lists_of_jobs() {
        assert_eq!(job_numbers("12, 13"), Ok(vec![12, 13]));
        for bad in ["", "0", "12,", "-1", "a", "99999999999999999999"] {
            assert!(job_numbers(bad).is_err(), "{bad:?}");
        }
    }
}
