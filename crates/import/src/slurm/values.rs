//! What Slurm prints: instants, spans, memory.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use miserly_core::Span;
use miserly_units::{LONGEST, slurm};

/// A whole number of up to nine digits.
pub(super) fn count(text: &str) -> Option<i64> {
    digits(text).filter(|&number| number < 1_000_000_000)
}

/// An instant in seconds of the Unix epoch, and whether it was told by a clock on the wall, which `zone` then places.
///
/// Digits are seconds, as `SLURM_TIME_FORMAT=%s` prints them; `2024-03-01T12:00:00` is the cluster's local time.
pub(super) fn instant(text: &str, zone: &TimeZone) -> Option<(i64, bool)> {
    if let Some(seconds) = digits(text) {
        return within(seconds).map(|seconds| (seconds, false));
    }
    let local: DateTime = text.parse().ok()?;
    let seconds = local.to_zoned(zone.clone()).ok()?.timestamp().as_second();
    within(seconds).map(|seconds| (seconds, true))
}

/// Returns an elapsed time in milliseconds.
pub(super) fn span(text: &str) -> Option<i64> {
    slurm::elapsed(text).filter(|span| *span <= LONGEST).map(|span| span.ticks() / 1000)
}

/// How long a job may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeLimit {
    /// So many seconds.
    Seconds(i64),
    /// As long as it likes, or as its partition lets it.
    Open,
}

/// Returns a time limit: minutes, or a clock.
pub(super) fn time_limit(text: &str) -> Option<TimeLimit> {
    match text {
        "UNLIMITED" | "Partition_Limit" => Some(TimeLimit::Open),
        _ => slurm::time_limit(text).map(Span::secs).and_then(within).map(TimeLimit::Seconds),
    }
}

/// Memory that was asked for, in kB, and what it is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) kilobytes: i64,
    pub(super) per: Per,
}

/// What memory is counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Per {
    Job,
    Node,
    Processor,
}

/// `16G` since Slurm 21.08, `16Gn` a node and `4000Mc` a processor before; no unit means megabytes.
pub(super) fn memory(text: &str) -> Option<Memory> {
    let (amount, per) = match text.as_bytes().last()? {
        b'c' => (&text[..text.len() - 1], Per::Processor),
        b'n' => (&text[..text.len() - 1], Per::Node),
        _ => (text, Per::Job),
    };
    let kilobytes = i64::try_from(slurm::kibibytes(amount)?).ok()?;
    (kilobytes < 1_000_000_000_000_000).then_some(Memory { kilobytes, per })
}

/// Digits and nothing else, up to fifteen: what the log's reader takes.
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
        let check = |text, expect| assert_eq!(instant(text, &berlin), expect, "{text}");
        check("1709290800", Some((1_709_290_800, false)));
        check("2024-03-01T12:00:00", Some((1_709_290_800, true)));
        check("2024-07-01T12:00:00", Some((1_719_828_000, true)));
        // Twice that day: the first of the two counts.
        check("2024-10-27T02:30:00", Some((1_729_989_000, true)));
        for bad in ["-5", "1e9", "noon", "2024-13-01T00:00:00", "99999999999", "1960-01-01T00:00:00"] {
            check(bad, None);
        }
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
        let check = |text, expect: Option<(i64, Per)>| {
            let expect = expect.map(|(kilobytes, per)| Memory { kilobytes, per });
            assert_eq!(memory(text), expect, "{text}");
        };
        check("4000Mc", Some((4_096_000, Per::Processor)));
        check("16Gn", Some((16_777_216, Per::Node)));
        check("7.50G", Some((7_864_320, Per::Job)));
        check("512K", Some((512, Per::Job)));
        check("1T", Some((1 << 30, Per::Job)));
        check("100", Some((102_400, Per::Job)));
        check("0", Some((0, Per::Job)));
        for bad in ["", "G", "c", "1X", "1.2.3G", "-1G", "1é", "999999999999999P", "0.12345678G"] {
            check(bad, None);
        }
    }
}
