use miserly_core::Span;
use miserly_units::{
    LONGEST, duration, duration_rounded, parse_duration, parse_duration_from, parse_seconds, span_of_seconds,
};
use proptest::prelude::*;

const MILLISECOND: i64 = 1_000;
const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

#[track_caller]
fn check(text: &str, ticks: i64) {
    assert_eq!(parse_duration(text).map(Span::ticks), Ok(ticks), "{text:?}");
}

#[track_caller]
fn check_error(text: &str, message: &str) {
    assert_eq!(parse_duration(text).expect_err("no duration").to_string(), message);
}

#[test]
fn bare_numbers_are_seconds() {
    check("0", 0);
    check("90", 90 * SECOND);
    check(" 90 ", 90 * SECOND);
    check("0.5", SECOND / 2);
    check("0.000001", 1);
    check("604800", 7 * DAY);
}

#[test]
fn numbers_with_units() {
    check("3us", 3);
    check("3µs", 3);
    check("250ms", 250 * MILLISECOND);
    check("90s", 90 * SECOND);
    check("15min", 15 * MINUTE);
    check("15m", 15 * MINUTE);
    check("2h", 2 * HOUR);
    check("1d", DAY);
    check("2w", 14 * DAY);
    check("1d12h", 36 * HOUR);
    check("1h 30min", 90 * MINUTE);
    check("1 h 30 min", 90 * MINUTE);
    check("1h30m10s", 5_410 * SECOND);
    check("1.5h", 90 * MINUTE);
    check("1d 1.5h", DAY + 90 * MINUTE);
    check("0s", 0);
    check("1 hour 30 minutes", 90 * MINUTE);
    check("2weeks", 14 * DAY);
    check("1000ns", 1);
    check("115741d", 115_741 * DAY);
}

#[test]
fn clocks() {
    check("1:30:00", 90 * MINUTE);
    check("0:00:01", SECOND);
    check("48:00:00", 2 * DAY);
    check("0:00:00.5", SECOND / 2);
    check("2-12", 60 * HOUR);
    check("2-12:30", 60 * HOUR + 30 * MINUTE);
    check("2-12:30:15", 60 * HOUR + 30 * MINUTE + 15 * SECOND);
    check("1d 12:30:15", 36 * HOUR + 30 * MINUTE + 15 * SECOND);
}

#[test]
fn messages_have_the_text_and_the_remedy() {
    const FORMS: &str = "write seconds, or units such as 90s, 15min, 1d12h, 1:30:00 or 2-12:00:00";
    check_error("", &format!("\"\" is not a duration; {FORMS}"));
    check_error("soon", &format!("\"soon\" is not a duration; {FORMS}"));
    check_error("1h30", &format!("\"1h30\" is not a duration; {FORMS}"));
    check_error("30s1h", &format!("\"30s1h\" is not a duration; {FORMS}"));
    let units = "the units are us, ms, s, min, h, d and w";
    check_error("15mn", &format!("\"15mn\": no unit of time \"mn\", did you mean min?; {units}"));
    check_error("7y", &format!("\"7y\": no unit of time \"y\"; {units}"));
    check_error("-1s", "\"-1s\": a duration is 0 or more");
    check_error("90:30", "\"90:30\" is ambiguous; write 90:30:00, 90h30min or 90min30s");
    check_error("1.5us", "\"1.5us\": a duration here is a whole number of microseconds");
    check_error("9223372036855s", "\"9223372036855s\" is too large");
    check_error("9999999w", "\"9999999w\" is too large");
    check_error("1y", &format!("\"1y\": no unit of time \"y\"; {units}"));
}

#[test]
fn texts_that_are_no_durations() {
    for text in [
        "h",
        "+5s",
        "1mo",
        "1y",
        "2h ago",
        "1:2:3:4",
        "1-",
        "-",
        "1-2-3",
        "1-2:x",
        "UNLIMITED",
        "P1D",
        "PT1H",
        "é",
        "1é",
        "1..5",
        "1.",
        ".5h",
        "1e3",
        "0x10",
        "inf",
        "NaN",
        "99999999999999999999",
        "18446744073709551615w",
        "1:x:0",
        "90M",
    ] {
        assert!(parse_duration(text).is_err(), "{text:?}");
    }
}

#[test]
fn limits_of_a_use() {
    let second = Span::from_ticks(SECOND);
    assert_eq!(parse_duration_from("1s", second), Ok(second));
    assert_eq!(parse_duration_from("10000000000", second), Ok(LONGEST));
    let message = |text: &str| parse_duration_from(text, second).unwrap_err().to_string();
    assert_eq!(message("0"), "\"0\": a duration here is 1s or more");
    assert_eq!(message("10000000001"), "\"10000000001\": a duration is at most 10000000000s");
    assert_eq!(parse_seconds("2min", Span::ZERO), Ok(120));
    let fine = parse_seconds("2.5", Span::ZERO).unwrap_err().to_string();
    assert_eq!(fine, "\"2.5\": a duration here is a whole number of seconds");
}

#[test]
fn printed_exactly() {
    #[track_caller]
    fn check(ticks: i64, expect: &str) {
        assert_eq!(duration(Span::from_ticks(ticks)), expect);
    }
    check(0, "0s");
    check(1, "0.000001s");
    check(250 * MILLISECOND, "0.25s");
    check(59 * SECOND, "59s");
    check(90 * SECOND, "1m30s");
    check(90 * SECOND + 500 * MILLISECOND, "1m30.5s");
    check(15 * MINUTE, "15m");
    check(5_410 * SECOND, "1h30m10s");
    check(DAY, "1d");
    check(36 * HOUR, "1d12h");
    check(14 * DAY, "14d");
    check(DAY + 1, "1d0.000001s");
    check(-90 * SECOND, "-1m30s");
    check(i64::MAX, "2562047788h54.775807s");
}

#[test]
fn printed_in_two_units() {
    #[track_caller]
    fn check(secs: f64, expect: &str) {
        assert_eq!(duration_rounded(span_of_seconds(secs)), expect);
    }
    check(0.0, "0s");
    check(0.000_003, "0.000003s");
    check(0.123_456, "0.123s");
    check(35.04, "35s");
    check(35.06, "35.1s");
    check(59.97, "1m");
    check(300.0, "5m");
    check(1_150.4, "19m10s");
    check(3_661.0, "1h1m");
    check(14_400.0, "4h");
    check(86_390.0, "1d");
    check(97_225.0, "1d3h");
    check(9_000_000.0, "104d4h");
    check(-61.0, "-1m1s");
    check(f64::NAN, "0s");
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(ticks in prop_oneof![0..=i64::MAX, 0..=10 * DAY, (0..=100_000_i64).prop_map(|n| n * MINUTE)]) {
        let span = Span::from_ticks(ticks);
        prop_assert_eq!(parse_duration(&duration(span)), Ok(span));
        // Seconds, as tables have them.
        prop_assert_eq!(parse_duration(&span.to_string()), Ok(span));
    }

    #[test]
    fn rounding_keeps_the_size(ticks in any::<i64>()) {
        let span = Span::from_ticks(ticks);
        let text = duration_rounded(span);
        let read = parse_duration(text.trim_start_matches('-')).map_or(i64::MAX, Span::ticks);
        let size = i128::from(ticks.unsigned_abs());
        prop_assert!((i128::from(read) - size).abs() * 40 <= size, "{} of {}", text, ticks);
    }

    #[test]
    fn no_text_panics(text in ".*", units in "[0-9]{0,20}[ .:,-]?[a-zµ]{0,4}[0-9:.-]{0,12}[a-z]{0,3}") {
        for text in [text, units] {
            let read = parse_duration(&text);
            prop_assert!(read.is_err() || read.is_ok_and(|span| span >= Span::ZERO));
        }
    }
}
