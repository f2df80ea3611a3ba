use miserly_units::{memory, parse_memory};
use proptest::prelude::*;

#[track_caller]
fn check(text: &str, bytes: u64) {
    assert_eq!(parse_memory(text), Ok(bytes), "{text:?}");
}

#[test]
fn numbers_with_units() {
    for text in ["512MB", "512M", "512MiB", "512mb", "512 MiB", " 512m ", "0.5G"] {
        check(text, 512 << 20);
    }
    check("8G", 8 << 30);
    check("1.5GiB", 3 << 29);
    check("100K", 100 << 10);
    check("1T", 1 << 40);
    check("1B", 1);
    check("0.3K", 307);
    check("16777215TiB", 16_777_215 << 40);
}

#[test]
fn messages_have_the_text_and_the_remedy() {
    #[track_caller]
    fn check(text: &str, message: &str) {
        assert_eq!(parse_memory(text).unwrap_err().to_string(), message);
    }
    check("4096", "\"4096\" has no unit of memory; write 4096MiB or 4096GiB");
    check(
        "8 Gig",
        "\"8 Gig\": no unit of memory \"Gig\", did you mean GiB?; the units are KiB, MiB, GiB and TiB",
    );
    check("much", "\"much\" is not an amount of memory; write a number and a unit, such as 512MiB or 8GiB");
    check("0G", "\"0G\": an amount of memory is above 0");
    check("16777216TiB", "\"16777216TiB\" is too large");
}

#[test]
fn texts_that_are_no_memory() {
    for text in [
        "",
        "0",
        "G",
        "-1G",
        "+1G",
        "1.5.5G",
        "1.G",
        ".5G",
        "8GG",
        "99999999999999999999999999999999999999999T",
        "é",
        "1Gé",
        "0.1B",
    ] {
        assert!(parse_memory(text).is_err(), "{text:?}");
    }
}

#[test]
fn printed() {
    #[track_caller]
    fn check(bytes: u64, expect: &str) {
        assert_eq!(memory(bytes), expect);
    }
    check(0, "0B");
    check(1023, "1023B");
    check(1 << 20, "1MiB");
    check(3 << 29, "1.5GiB");
    check(336 << 30, "336GiB");
    check(5 << 50, "5120TiB");
    check(123_456_789, "117.74MiB");
    check(u64::MAX, "16777216TiB");
}

proptest! {
    #[test]
    fn whole_units_are_read_back(number in 1..1_u64 << 23, power in 0..=4_u32) {
        let bytes = number << (10 * power);
        let read = parse_memory(&memory(bytes)).unwrap();
        // Two decimals of the unit that is shown.
        prop_assert!(read.abs_diff(bytes) <= bytes / 100);
        if number < 1024 {
            prop_assert_eq!(read, bytes);
        }
    }

    #[test]
    fn no_text_panics(text in ".*", units in "[0-9.]{0,40} ?[A-Za-z]{0,4}") {
        for text in [text, units] {
            prop_assert!(parse_memory(&text).is_err() || parse_memory(&text).is_ok_and(|bytes| bytes > 0));
        }
    }
}
