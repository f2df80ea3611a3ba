//! Mapping of names and ids to the small numbers of the format.

/// A mapping of names to numbers from 1 in order of appearance.
#[derive(Debug, Default)]
pub(crate) struct NumberMap {
    keep: bool,
    names: Vec<String>,
    /// Numbers at the places of their names' hashes, or at the next that was free; 0 is free. At most half are taken.
    places: Vec<u32>,
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
        if self.names.len() * 2 >= self.places.len() {
            self.grow();
        }
        let place = self.place(name);
        if self.places[place] == 0 {
            self.names.push(name.to_owned());
            self.places[place] = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        }
        self.places[place].into()
    }

    /// Returns the place of a name, or the free one where it belongs.
    fn place(&self, name: &str) -> usize {
        // The hash of Fowler, Noll and Vo. The length is a power of two.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let most = self.places.len() - 1;
        #[allow(clippy::cast_possible_truncation, reason = "the low bits count")]
        let mut place = (hash ^ hash >> 32) as usize & most;
        loop {
            match self.places[place] {
                0 => return place,
                number if self.names[number as usize - 1] == name => return place,
                _ => place = (place + 1) & most,
            }
        }
    }

    fn grow(&mut self) {
        self.places = vec![0; (self.places.len() * 2).max(16)];
        for (number, name) in (1..).zip(&self.names) {
            let place = self.place(name);
            self.places[place] = number;
        }
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
        let mut many = NumberMap::new(false);
        let mut numbers = || (0..1000).map(|name| many.number(Some(&format!("n{name}")))).collect::<Vec<_>>();
        assert_eq!(numbers(), (1..=1000).collect::<Vec<_>>());
        assert_eq!(numbers(), (1..=1000).collect::<Vec<_>>());
    }
}
