//! Parsing of Slurm's values: instants, spans, memory.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use miserly_core::Span;
use miserly_units::{LONGEST, slurm};

/// Parses a whole number below 10^9, which may have a unit: `2K` is 2048, as Slurm writes it.
pub(crate) fn count(text: &str) -> Option<i64> {
    const UNITS: &str = "KMGT";
    let unit = text.chars().last().filter(char::is_ascii_alphabetic);
    let number = match unit {
        // In kibibytes, the number of the next unit is the count.
        Some(unit) => {
            let next = UNITS.chars().nth(UNITS.find(unit.to_ascii_uppercase())? + 1)?;
            slurm::kibibytes(&format!("{}{next}", &text[..text.len() - 1]))?.try_into().ok()?
        }
        None => digits(text)?,
    };
    Some(number).filter(|&number| number < 1_000_000_000)
}

/// Returns the amount of a trackable resource: of `cpu` in `billing=8,cpu=8,mem=32G` it is `8`.
pub(crate) fn tres<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.split(',').find_map(|one| one.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Returns the number of GPUs among trackable resources, and their types: of `cpu=8,gres/gpu=2,gres/gpu:a100=2` they are 2 of
/// `a100`. Several types have `|` between them.
///
/// The number without a type includes those with one.
pub(crate) fn gpus(text: &str) -> Option<(u64, String)> {
    let (mut all, mut of_types, mut types) = (0, 0, vec![]);
    for one in text.split(',').filter_map(|one| one.trim().strip_prefix("gres/gpu")) {
        let number = |text| count(text).and_then(|number| u64::try_from(number).ok());
        if let Some((name, amount)) = one.strip_prefix(':').and_then(|typed| typed.split_once('=')) {
            of_types += number(amount)?;
            types.push(name);
        } else if let Some(amount) = one.strip_prefix('=') {
            all = number(amount)?;
        }
    }
    Some((of_types.max(all), types.join("|")))
}

/// Largest number of tasks in a row. Slurm permits four million, and a thousand by default.
const TASKS_MAX: u32 = 1_000_000;

/// Returns the tasks of an array: `1,3-7:2%4` are 1, 3, 5 and 7.
pub(crate) fn tasks(text: &str) -> Option<Vec<u32>> {
    let ranges = text.split('%').next()?;
    let mut tasks = Vec::new();
    for part in ranges.split(',') {
        let (range, step) = part.split_once(':').unwrap_or((part, "1"));
        let step = step.parse::<usize>().ok().filter(|&step| step > 0)?;
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        let (from, to): (u32, u32) = (from.parse().ok()?, to.parse().ok()?);
        if to < from || to - from >= TASKS_MAX {
            return None;
        }
        tasks.extend((from..=to).step_by(step));
        if tasks.len() > TASKS_MAX as usize {
            return None;
        }
    }
    Some(tasks)
}

/// An instant with its written form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instant {
    /// Seconds of the Unix epoch.
    pub(crate) seconds: i64,
    pub(crate) form: TimeForm,
}

/// The written form of an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeForm {
    /// Seconds of the Unix epoch, or a time with its offset from UTC.
    Epoch,
    /// A local time.
    Local,
    /// A local time that occurs twice, in the night when summer time ends.
    RepeatedLocal,
}

/// Parses an instant.
///
/// Digits are seconds, as printed with `SLURM_TIME_FORMAT=%s`. `2024-03-01T12:00:00+0100` and
/// `2024-03-01T11:00:00Z` have their offset. Without one the time is local in `zone`. Of a local time that occurs twice,
/// the first applies.
pub(crate) fn instant(text: &str, zone: &TimeZone) -> Option<Instant> {
    let (seconds, form) = match digits(text) {
        Some(seconds) => (seconds, TimeForm::Epoch),
        None if is_local(text) => local_instant(text.parse().ok()?, zone)?,
        None => (text.parse::<Timestamp>().ok()?.as_second(), TimeForm::Epoch),
    };
    within(seconds).map(|seconds| Instant { seconds, form })
}

/// Returns whether a text has a date and a time of day, and nothing behind them.
///
/// The parser of local times drops an offset.
fn is_local(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b':' | b'T' | b' ' | b'.');
    let time = text.split_once(['T', ' ']).map(|(_, time)| time);
    text.bytes().all(is_part) && time.is_some_and(|time| !time.contains('-'))
}

fn local_instant(local: DateTime, zone: &TimeZone) -> Option<(i64, TimeForm)> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    let form = match ambiguous.offset() {
        AmbiguousOffset::Fold { .. } => TimeForm::RepeatedLocal,
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Gap { .. } => TimeForm::Local,
    };
    Some((ambiguous.compatible().ok()?.as_second(), form))
}

/// Returns an elapsed time in milliseconds.
pub(crate) fn span(text: &str) -> Option<i64> {
    slurm::elapsed(text).filter(|span| *span <= LONGEST).map(|span| span.ticks() / 1000)
}

/// A time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// Limit in seconds.
    Seconds(i64),
    /// No limit, or the limit of the partition.
    Open,
}

/// Returns a time limit: minutes, or a clock.
pub(crate) fn time_limit(text: &str) -> Option<TimeLimit> {
    match text {
        "UNLIMITED" | "Partition_Limit" => Some(TimeLimit::Open),
        _ => slurm::time_limit(text).map(Span::secs).and_then(within).map(TimeLimit::Seconds),
    }
}

/// Requested memory in kB with its unit of allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestedMemory {
    pub(crate) kilobytes: i64,
    pub(crate) per: MemoryUnit,
}

/// The unit to which an amount of memory applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryUnit {
    Job,
    Node,
    Processor,
}

/// Parses memory; without a unit, the amount is in megabytes.
///
/// Forms are `16G` since Slurm 21.08, and before `16Gn` per node and `4000Mc` per processor.
pub(crate) fn memory(text: &str) -> Option<RequestedMemory> {
    let (amount, per) = match text.as_bytes().last()? {
        b'c' => (&text[..text.len() - 1], MemoryUnit::Processor),
        b'n' => (&text[..text.len() - 1], MemoryUnit::Node),
        _ => (text, MemoryUnit::Job),
    };
    let kilobytes = i64::try_from(slurm::kibibytes(amount)?).ok()?;
    (kilobytes < 1_000_000_000_000_000).then_some(RequestedMemory { kilobytes, per })
}

/// Parses up to fifteen digits, the limit of the log's reader.
fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.len() <= 15 && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

fn within(seconds: i64) -> Option<i64> {
    (0..=LONGEST.secs()).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        let check = |text, expect: Option<(i64, TimeForm)>| {
            let expect = expect.map(|(seconds, form)| Instant { seconds, form });
            assert_eq!(instant(text, &berlin), expect, "{text}");
        };
        check("1709290800", Some((1_709_290_800, TimeForm::Epoch)));
        check("2024-03-01T12:00:00", Some((1_709_290_800, TimeForm::Local)));
        check("2024-07-01T12:00:00", Some((1_719_828_000, TimeForm::Local)));
        check("2024-10-27T01:59:59", Some((1_729_987_199, TimeForm::Local)));
        check("2024-10-27T02:30:00", Some((1_729_989_000, TimeForm::RepeatedLocal)));
        check("2024-10-27T03:00:00", Some((1_729_994_400, TimeForm::Local)));
        check("2024-03-01T12:00:00+0100", Some((1_709_290_800, TimeForm::Epoch)));
        check("2024-03-01T06:00:00-05:00", Some((1_709_290_800, TimeForm::Epoch)));
        check("2024-03-01T11:00:00Z", Some((1_709_290_800, TimeForm::Epoch)));
        for bad in [
            "-5",
            "1e9",
            "noon",
            "2024-03-01",
            "2024-13-01T00:00:00",
            "2024-03-01T12:00:00 CET",
            "2024-03-01T12:00:00-9900",
            "99999999999",
            "1960-01-01T00:00:00",
        ] {
            check(bad, None);
        }
    }

    #[test]
    fn counts() {
        let check = |text, expect| assert_eq!(count(text), expect, "{text}");
        check("0", Some(0));
        check("999999999", Some(999_999_999));
        check("2K", Some(2048));
        check("1.50K", Some(1536));
        check("1M", Some(1 << 20));
        for bad in ["", "-1", "1.5", "1000000000", "1G", "1T", "K", "9X", "99999999999999999999"] {
            check(bad, None);
        }
    }

    #[test]
    fn resources_by_name() {
        let text = "billing=8,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=32G,node=1";
        let found = ["cpu", "mem", "node", "gres/gpu", "energy", "pu"].map(|name| tres(text, name));
        assert_eq!(found, [Some("4"), Some("32G"), Some("1"), Some("2"), None, None]);
    }

    #[test]
    fn gpus_of_resources() {
        let check =
            |text, count, types: &str| assert_eq!(gpus(text), Some((count, types.to_owned())), "{text}");
        check("billing=8,gres/gpu:a100=2,gres/gpu=2,gres/gpumem=80G", 2, "a100");
        check("gres/gpu:a100=2,gres/gpu:v100=1", 3, "a100|v100");
        check("cpu=4,gres/gpu=1", 1, "");
        check("cpu=4,gres/shard=7", 0, "");
        assert_eq!(gpus("gres/gpu=x"), None);
    }

    #[test]
    fn tasks_of_arrays() {
        let check = |text, expect: Option<&[u32]>| assert_eq!(tasks(text).as_deref(), expect, "{text}");
        check("1,3-7:2", Some(&[1, 3, 5, 7]));
        check("9-12%500", Some(&[9, 10, 11, 12]));
        check("5", Some(&[5]));
        for bad in ["", "1,", "7-3", "1-3:0", "0-4000000000", "x", "1-", "1,2,..."] {
            check(bad, None);
        }
        assert_eq!(tasks("60-89,91-94").map(|tasks| tasks.len()), Some(34));
    }

    #[test]
    fn spans() {
        let check = |text, expect| assert_eq!(span(text), expect, "{text}");
        check("90", Some(90_000));
        check("02:03.456", Some(123_456));
        check("00:00.5", Some(500));
        check("00:01:00", Some(60_000));
        check("1-02:03:04", Some(93_784_000));
        check("200-00:00:00", Some(17_280_000_000));
        for bad in
            ["", "-1", "1:2:3:4", "x-00:00:01", "00:0x", "1-", "00:01.", "00:01.1x", "999999999-00:00:00"]
        {
            check(bad, None);
        }
    }

    #[test]
    fn time_limits() {
        assert_eq!(time_limit("1440"), Some(TimeLimit::Seconds(86_400)));
        assert_eq!(time_limit("1-00:00:00"), Some(TimeLimit::Seconds(86_400)));
        assert_eq!(time_limit("UNLIMITED"), Some(TimeLimit::Open));
        assert_eq!(time_limit("Partition_Limit"), Some(TimeLimit::Open));
        assert_eq!(time_limit("soon"), None);
    }

    #[test]
    fn memory_with_its_units() {
        let check = |text, expect: Option<(i64, MemoryUnit)>| {
            let expect = expect.map(|(kilobytes, per)| RequestedMemory { kilobytes, per });
            assert_eq!(memory(text), expect, "{text}");
        };
        check("4000Mc", Some((4_096_000, MemoryUnit::Processor)));
        check("16Gn", Some((16_777_216, MemoryUnit::Node)));
        check("7.50G", Some((7_864_320, MemoryUnit::Job)));
        check("512K", Some((512, MemoryUnit::Job)));
        check("1T", Some((1 << 30, MemoryUnit::Job)));
        check("100", Some((102_400, MemoryUnit::Job)));
        check("0", Some((0, MemoryUnit::Job)));
        for bad in ["", "G", "c", "1X", "1.2.3G", "-1G", "1é", "999999999999999P", "0.12345678G"] {
            check(bad, None);
        }
    }
}
