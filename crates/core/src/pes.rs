//! A set of processing elements, kept as disjoint ranges.

use std::fmt;

/// A set of PE numbers as sorted, disjoint, non-adjacent inclusive ranges.
///
/// Shown in the id-set form that evalys and Batsim use: `0-3 7`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeSet {
    ranges: Vec<(u32, u32)>,
}

impl PeSet {
    /// The set of no PEs.
    pub const fn empty() -> PeSet {
        PeSet { ranges: Vec::new() }
    }

    /// The PEs `0..count`.
    pub fn first(count: u32) -> PeSet {
        PeSet { ranges: if count == 0 { vec![] } else { vec![(0, count - 1)] } }
    }

    /// `count` PEs from `low` on.
    pub fn block(low: u32, count: u32) -> PeSet {
        PeSet { ranges: if count == 0 { vec![] } else { vec![(low, low.saturating_add(count - 1))] } }
    }

    /// The ranges, ascending, both ends included.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// How many PEs are in the set.
    pub fn count(&self) -> u64 {
        self.ranges.iter().map(|(low, high)| u64::from(high - low) + 1).sum()
    }

    /// Takes the `count` lowest PEs out of the set; `None`, and no change, if it holds fewer.
    ///
    /// O(r) in the number of ranges.
    pub fn take_lowest(&mut self, count: u64) -> Option<PeSet> {
        let mut left = count;
        let mut whole = 0;
        let mut taken = Vec::new();
        while left > 0 {
            let (low, high) = *self.ranges.get(whole)?;
            let size = u64::from(high - low) + 1;
            if size > left {
                // `left` is below the size of a u32 range, so it fits.
                let cut = low + u32::try_from(left).ok()?;
                taken.push((low, cut - 1));
                self.ranges[whole].0 = cut;
                break;
            }
            taken.push((low, high));
            whole += 1;
            left -= size;
        }
        self.ranges.drain(..whole);
        Some(PeSet { ranges: taken })
    }

    /// Puts every PE of `other` into the set. O(r) in the number of ranges of both.
    pub fn insert_all(&mut self, other: &PeSet) {
        let mut all = Vec::with_capacity(self.ranges.len() + other.ranges.len());
        let (mut mine, mut theirs) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        while let Some(&range) = match (mine.peek(), theirs.peek()) {
            (Some(a), Some(b)) if a.0 <= b.0 => mine.next(),
            (Some(_), None) => mine.next(),
            _ => theirs.next(),
        } {
            push_merged(&mut all, range);
        }
        self.ranges = all;
    }
}

/// Appends a range that starts no earlier than the last one, joining the two where they touch.
fn push_merged(ranges: &mut Vec<(u32, u32)>, range: (u32, u32)) {
    match ranges.last_mut() {
        Some(last) if range.0 <= last.1.saturating_add(1) => last.1 = last.1.max(range.1),
        _ => ranges.push(range),
    }
}

impl fmt::Display for PeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (low, high)) in self.ranges.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            if low == high {
                write!(f, "{space}{low}")?;
            } else {
                write!(f, "{space}{low}-{high}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_first_and_back_again() {
        let mut free = PeSet::first(10);
        let a = free.take_lowest(4).unwrap();
        let b = free.take_lowest(2).unwrap();
        let c = free.take_lowest(1).unwrap();
        assert_eq!((a.to_string(), b.to_string(), c.to_string()), ("0-3".into(), "4-5".into(), "6".into()));
        free.insert_all(&a);
        free.insert_all(&c);
        assert_eq!(free.to_string(), "0-3 6-9");
        assert_eq!(free.take_lowest(9), None);
        assert_eq!(free.take_lowest(5).unwrap().to_string(), "0-3 6");
        assert_eq!(free.count(), 3);
    }

    #[test]
    fn the_last_pe_of_all() {
        let mut free = PeSet::first(u32::MAX);
        assert_eq!(free.take_lowest(u64::from(u32::MAX)).unwrap().count(), u64::from(u32::MAX));
        assert_eq!(free.count(), 0);
    }
}
