//! The notation of durations, memory, arrays and lists of jobs in job scripts and command lines.

use miserly_core::Span;
use miserly_units::{UnitError, parse_memory, parse_seconds, slurm};

use crate::model::Array;

/// The shortest time limit of a job.
const SHORTEST: Span = Span::from_ticks(1_000_000);

/// The notation of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// The common grammar.
    Own,
    /// Slurm's, in which bare numbers are minutes and MiB; then the common grammar.
    Slurm,
}

/// Returns the seconds of a duration of a second or more.
///
/// # Errors
/// A text that is no such duration.
pub fn length_of_time(text: &str) -> Result<u64, UnitError> {
    parse_seconds(text, SHORTEST).map(i64::unsigned_abs)
}

/// Returns the bytes of an amount of memory.
///
/// # Errors
/// A text that is no amount of memory.
pub fn memory(text: &str) -> Result<u64, UnitError> {
    parse_memory(text)
}

/// Parses the indexes of an array: `0-15`, `0-15:4`, `7`.
///
/// # Errors
/// Any other text, and a step of 0.
pub fn array(text: &str) -> Result<Array, String> {
    let read = || {
        let (range, step) = text.split_once(':').unwrap_or((text, "1"));
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let array = Array { first: digits(first)?, last: digits(last)?, step: digits(step)? };
        (array.first <= array.last && array.step > 0).then_some(array)
    };
    read().ok_or_else(|| "write FIRST-LAST or FIRST-LAST:STEP, such as 0-15 or 0-15:4".to_owned())
}

/// Parses job numbers with commas between them.
///
/// # Errors
/// A part that is no number above 0.
pub fn job_numbers(text: &str) -> Result<Vec<i64>, String> {
    let number = |part: &str| digits::<i64>(part).filter(|number| *number > 0);
    let numbers: Option<Vec<i64>> = text.split(',').map(|part| number(part.trim())).collect();
    numbers.ok_or_else(|| "give the numbers of jobs, with commas between them, such as 12,13".to_owned())
}

/// Parses a number of plain digits, without sign or blanks.
fn digits<T: std::str::FromStr>(text: &str) -> Option<T> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Returns the seconds of a time limit.
pub(super) fn time(text: &str, dialect: Dialect) -> Result<u64, UnitError> {
    match slurm::time_limit(text) {
        Some(limit) if dialect == Dialect::Slurm => length_of_time(&limit.to_string()),
        _ => length_of_time(text),
    }
}

/// Returns the bytes of an amount of memory. Slurm's 0, all memory of the machine, is refused.
pub(super) fn amount(text: &str, dialect: Dialect) -> Result<u64, UnitError> {
    match slurm::kibibytes(text) {
        Some(kibibytes) if dialect == Dialect::Slurm => memory(&format!("{kibibytes}KiB")),
        _ => memory(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_limits() {
        #[track_caller]
        fn check(text: &str, own: Option<u64>, slurm: Option<u64>) {
            assert_eq!(time(text, Dialect::Own).ok(), own, "{text:?}");
            assert_eq!(time(text, Dialect::Slurm).ok(), slurm, "{text:?} in #SBATCH");
        }
        let same = |text: &str, secs: u64| check(text, Some(secs), Some(secs));
        same("90s", 90);
        same("15min", 900);
        same("1.5h", 5_400);
        same("1d12h", 129_600);
        same("1:30:00", 5_400);
        same("0:00:01", 1);
        same("2-12:30:15", 217_815);
        check("30", Some(30), Some(1_800));
        check("90:30", None, Some(5_430));
        for bad in
            ["", "0", "0s", "0:00:00", "0.5s", "-1s", "1h30", "UNLIMITED", "10000000001s", "99999999999999"]
        {
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
        same("8GiB", 8 << 30);
        same("1.5G", 3 << 29);
        check("4096", None, Some(4 << 30));
        for bad in ["", "0", "0G", "G", "-1G", "8GG", "99999999999T", "é", "1Gé"] {
            check(bad, None, None);
        }
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
