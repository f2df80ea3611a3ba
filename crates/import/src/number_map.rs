//! Mapping of names and ids to the small numbers of the format.

use std::collections::BTreeMap;

/// A mapping of names to numbers from 1 in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct NumberMap {
    keep: bool,
    numbers: BTreeMap<String, i64>,
    names: Vec<String>,
}

impl NumberMap {
    /// Creates a mapping. With `keep`, names that are numbers keep them.
    pub(crate) fn new(keep: bool) -> NumberMap {
        NumberMap { keep, ..NumberMap::default() }
    }

    /// Returns the number of a name; -1 for `None`.
    pub(crate) fn number(&mut self, name: Option<&str>) -> i64 {
        let Some(name) = name else { return -1 };
        if let Some(kept) = name.parse::<u32>().ok().filter(|_| self.keep) {
            return kept.into();
        }
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        self.names.push(name.to_owned());
        let number = i64::try_from(self.names.len()).unwrap_or(i64::MAX);
        self.numbers.insert(name.to_owned(), number);
        number
    }

    /// Returns the names in the order of their numbers.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_appearance_or_as_they_are() {
        let number = |keep| {
            let mut number_map = NumberMap::new(keep);
            ["1000", "ann", "1000", "0"].map(|name| number_map.number(Some(name)))
        };
        assert_eq!(number(false), [1, 2, 1, 3]);
        assert_eq!(number(true), [1000, 1, 1000, 0]);
        assert_eq!(NumberMap::new(true).number(None), -1);
    }
}
