use miserly_core::Span;
use miserly_units::slurm::{elapsed, kibibytes, time_limit};
use proptest::prelude::*;

#[test]
fn time_limits() {
    #[track_caller]
    fn check(text: &str, secs: Option<i64>) {
        assert_eq!(time_limit(text).map(Span::secs), secs, "{text:?}");
    }
    check("30", Some(1_800));
    check("90:30", Some(5_430));
    check("1:30:00", Some(5_400));
    check("2-12", Some(216_000));
    check("2-12:30", Some(217_800));
    check("2-12:30:15", Some(217_815));
    for text in ["", "-1", "1:2:3:4", "1-", "-", "1-2-3", "UNLIMITED", "15min", "1:x:0", "9999999999999999"] {
        check(text, None);
    }
}

#[test]
fn elapsed_times() {
    #[track_caller]
    fn check(text: &str, millis: Option<i64>) {
        assert_eq!(elapsed(text).map(|span| span.ticks() / 1_000), millis, "{text:?}");
    }
    check("90", Some(90_000));
    check("02:03.456", Some(123_456));
    check("00:00.5", Some(500));
    check("00:01:00", Some(60_000));
    check("1-02:03:04", Some(93_784_000));
    for text in ["", "-1", "x-00:00:01", "00:0x", "1-", "00:01.", "00:01.1x"] {
        check(text, None);
    }
}

#[test]
fn amounts_of_memory() {
    #[track_caller]
    fn check(text: &str, expect: Option<u64>) {
        assert_eq!(kibibytes(text), expect, "{text:?}");
    }
    check("4000M", Some(4_096_000));
    check("7.50G", Some(7_864_320));
    check("0.33G", Some(346_030));
    check("512K", Some(512));
    check("512k", Some(512));
    check("1T", Some(1 << 30));
    check("100", Some(102_400));
    check("0", Some(0));
    for text in ["", "G", "1X", "1.2.3G", "-1G", "1é", "99999999999999999999999999999999999999G"] {
        check(text, None);
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in ".*", clock in "[0-9]{0,16}[-:.]?[0-9]{0,16}[-:.]?[0-9]{0,16}[KMGTPEa-z]?") {
        for text in [text, clock] {
            let _ = (time_limit(&text), elapsed(&text), kibibytes(&text));
        }
    }
}
