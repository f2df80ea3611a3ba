//! The words in the names of columns, and the units behind them.

use super::field::Unit;

/// A name as words in small letters, without the unit at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) words: Vec<String>,
    pub(super) unit: Option<Unit>,
}

/// The units at the end of names.
const UNITS: &[(&str, Unit)] = &[
    ("s", Unit::Seconds),
    ("sec", Unit::Seconds),
    ("secs", Unit::Seconds),
    ("second", Unit::Seconds),
    ("seconds", Unit::Seconds),
    ("ms", Unit::Millis),
    ("msec", Unit::Millis),
    ("millis", Unit::Millis),
    ("milliseconds", Unit::Millis),
    ("us", Unit::Micros),
    ("usec", Unit::Micros),
    ("micros", Unit::Micros),
    ("microseconds", Unit::Micros),
    ("ns", Unit::Nanos),
    ("nanos", Unit::Nanos),
    ("nanoseconds", Unit::Nanos),
    ("min", Unit::Minutes),
    ("mins", Unit::Minutes),
    ("minute", Unit::Minutes),
    ("minutes", Unit::Minutes),
    ("h", Unit::Hours),
    ("hr", Unit::Hours),
    ("hrs", Unit::Hours),
    ("hour", Unit::Hours),
    ("hours", Unit::Hours),
    ("d", Unit::Days),
    ("day", Unit::Days),
    ("days", Unit::Days),
    ("bytes", Unit::Bytes),
    ("b", Unit::Bytes),
    ("kb", Unit::Kilobytes),
    ("kib", Unit::Kilobytes),
    ("mb", Unit::Megabytes),
    ("mib", Unit::Megabytes),
    ("gb", Unit::Gigabytes),
    ("gib", Unit::Gigabytes),
    ("tb", Unit::Terabytes),
    ("tib", Unit::Terabytes),
];

impl Words {
    /// Splits a name at signs and at capital letters.
    pub(super) fn new(name: &str) -> Words {
        let mut words: Vec<String> = vec![];
        let letters: Vec<char> = name.chars().collect();
        let mut is_new = true;
        for (at, &letter) in letters.iter().enumerate() {
            if !letter.is_alphanumeric() {
                is_new = true;
                continue;
            }
            let before = at.checked_sub(1).map(|before| letters[before]);
            let is_hump = before.is_some_and(|before| before.is_lowercase() || before.is_numeric());
            // The last capital of several begins the next word: `CPUTime`.
            let next_is_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
            let ends_capitals = before.is_some_and(char::is_uppercase) && next_is_small;
            if is_new || letter.is_uppercase() && (is_hump || ends_capitals) {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
            is_new = false;
        }
        let unit = words.last().filter(|_| words.len() > 1).and_then(|word| unit_of(word));
        words.truncate(words.len() - usize::from(unit.is_some()));
        Words { words, unit }
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.words.iter().any(|known| known == word)
    }
}

fn unit_of(word: &str) -> Option<Unit> {
    UNITS.iter().find(|(known, _)| *known == word).map(|(_, unit)| *unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words_and_a_unit() {
        let check = |name: &str, words: &[&str], unit: Option<Unit>| {
            let found = Words::new(name);
            assert_eq!(
                (found.words, found.unit),
                (words.iter().map(|word| (*word).to_owned()).collect(), unit)
            );
        };
        check("submit_time", &["submit", "time"], None);
        check("jobSubmitTime", &["job", "submit", "time"], None);
        check("CPUTimeRAW", &["cpu", "time", "raw"], None);
        check("t.queued-epoch_ms", &["t", "queued", "epoch"], Some(Unit::Millis));
        check("wallHours", &["wall"], Some(Unit::Hours));
        check("mem_req_GB", &["mem", "req"], Some(Unit::Gigabytes));
        check("s", &["s"], None);
        check("_", &[], None);
        check("t0 end", &["t0", "end"], None);
        check("Größe", &["größe"], None);
    }
}
