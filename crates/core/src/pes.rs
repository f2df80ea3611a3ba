//! A set of processing elements, kept as disjoint ranges.

use crate::Procs;
use std::fmt;
use std::ops::Range;

/// A set of PE numbers as sorted, disjoint, non-adjacent inclusive ranges.
///
/// Shown in the id-set form that evalys and Batsim use: `0-3 7`.
///
/// # Example
/// ```
/// use miserly_core::{PeSet, Procs};
///
/// let mut free = PeSet::from_ranges(&[(0, 3), (7, 9)]);
/// let taken = free.take_lowest(Procs::new(2));
/// assert_eq!(taken, Some(PeSet::block(0, 2)));
/// assert_eq!(free.to_string(), "2-3 7-9");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeSet {
    ranges: Vec<(u32, u32)>,
}

impl PeSet {
    /// Returns the empty set.
    pub const fn empty() -> PeSet {
        PeSet { ranges: Vec::new() }
    }

    /// Returns the PEs `0..count`.
    pub fn first(count: u32) -> PeSet {
        PeSet::block(0, count)
    }

    /// Returns `count` PEs from `low` on.
    pub fn block(low: u32, count: u32) -> PeSet {
        PeSet { ranges: if count == 0 { vec![] } else { vec![(low, low.saturating_add(count - 1))] } }
    }

    /// Returns the PEs of these ranges, in any order, both ends included. A range that ends before
    /// it begins is empty.
    pub fn from_ranges(ranges: &[(u32, u32)]) -> PeSet {
        let mut sorted: Vec<(u32, u32)> = ranges.iter().copied().filter(|(low, high)| low <= high).collect();
        sorted.sort_unstable();
        let mut merged = Vec::with_capacity(sorted.len());
        for range in sorted {
            push_merged(&mut merged, range);
        }
        PeSet { ranges: merged }
    }

    /// Returns the ranges, ascending, both ends included.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// Returns the number of PEs in the set.
    pub fn count(&self) -> Procs {
        Procs::new(self.ranges.iter().map(|(low, high)| u64::from(high - low) + 1).sum())
    }

    /// Returns the set with every number larger by `low`. It converts the numbers of a host to
    /// those of all hosts.
    #[must_use]
    pub fn offset(&self, low: u32) -> PeSet {
        let up = |(from, to): &(u32, u32)| (from.saturating_add(low), to.saturating_add(low));
        PeSet { ranges: self.ranges.iter().map(up).collect() }
    }

    /// Returns whether the set has no PE.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the PEs that are in both sets. O(r) in the number of ranges of both.
    #[must_use]
    pub fn intersection(&self, other: &PeSet) -> PeSet {
        PeSet { ranges: self.common(other).collect() }
    }

    /// Returns whether the sets share a PE. O(r) in the number of ranges of both.
    pub fn intersects(&self, other: &PeSet) -> bool {
        self.common(other).next().is_some()
    }

    /// Returns the ranges that are in both sets, ascending.
    fn common(&self, other: &PeSet) -> impl Iterator<Item = (u32, u32)> {
        let near = |set: &PeSet, other: &PeSet| set.between(other, 0);
        let mine = self.ranges.get(near(self, other)).unwrap_or_default();
        let theirs = other.ranges.get(near(other, self)).unwrap_or_default();
        let (mut mine, mut theirs) = (mine.iter().peekable(), theirs.iter().peekable());
        std::iter::from_fn(move || {
            loop {
                let (&&(low, high), &&(its_low, its_high)) = (mine.peek()?, theirs.peek()?);
                // The range that ends first has no further intersection.
                if high <= its_high {
                    mine.next();
                } else {
                    theirs.next();
                }
                let (from, to) = (low.max(its_low), high.min(its_high));
                if from <= to {
                    return Some((from, to));
                }
            }
        })
    }

    /// Returns whether every PE of `other` is in the set. O(log r) for each range of `other`.
    pub fn contains_all(&self, other: &PeSet) -> bool {
        other.ranges.iter().all(|&(low, high)| {
            let at = self.ranges.partition_point(|range| range.1 < low);
            self.ranges.get(at).is_some_and(|range| range.0 <= low && high <= range.1)
        })
    }

    /// Removes every PE of `other` from the set.
    ///
    /// O(r) in the ranges of `other` and in those of the set between its lowest and its highest PE.
    /// If the number of ranges changes, the ranges above are moved too.
    pub fn remove_all(&mut self, other: &PeSet) {
        let touched = self.between(other, 0);
        let Some(mine) = self.ranges.get(touched.clone()).filter(|mine| !mine.is_empty()) else { return };
        if !self.intersects(other) {
            return;
        }
        let mut rest = Vec::with_capacity(mine.len() + other.ranges.len());
        push_difference(&mut rest, mine, &other.ranges);
        self.ranges.splice(touched, rest);
    }

    /// Returns the positions of the ranges that lie at most `apart` from the span of `other`.
    /// Ranges wholly below or above it are left out.
    fn between(&self, other: &PeSet, apart: u32) -> Range<usize> {
        let (Some((lowest, _)), Some((_, highest))) = (other.ranges.first(), other.ranges.last()) else {
            return 0..0;
        };
        let from = self.ranges.partition_point(|range| range.1 < lowest.saturating_sub(apart));
        let to = self.ranges.partition_point(|range| range.0 <= highest.saturating_add(apart));
        from..to
    }

    /// Removes the `count` lowest PEs from the set and returns them. Returns `None`, without a
    /// change, if the set has fewer.
    ///
    /// O(r) in the number of ranges.
    pub fn take_lowest(&mut self, count: impl Into<Procs>) -> Option<PeSet> {
        let mut left = count.into().get();
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

    /// Removes the `count` highest PEs from the set and returns them. Returns `None`, without a
    /// change, if the set has fewer.
    ///
    /// O(r) in the number of ranges.
    pub fn take_highest(&mut self, count: impl Into<Procs>) -> Option<PeSet> {
        let mut rest = self.clone();
        let lowest = rest.take_lowest(self.count().checked_sub(count.into())?)?;
        *self = lowest;
        Some(rest)
    }

    /// Adds every PE of `other` to the set. The cost is that of [`remove_all`](PeSet::remove_all).
    pub fn insert_all(&mut self, other: &PeSet) {
        let touched = self.between(other, 1);
        let mut all = Vec::with_capacity(touched.len() + other.ranges.len());
        let mut mine = self.ranges.get(touched.clone()).unwrap_or_default().iter().peekable();
        let mut theirs = other.ranges.iter().peekable();
        while let Some(&range) = match (mine.peek(), theirs.peek()) {
            (Some(a), Some(b)) if a.0 <= b.0 => mine.next(),
            (Some(_), None) => mine.next(),
            _ => theirs.next(),
        } {
            push_merged(&mut all, range);
        }
        self.ranges.splice(touched, all);
    }
}

/// Appends the PEs of `ranges` that are not in `others`.
fn push_difference(rest: &mut Vec<(u32, u32)>, ranges: &[(u32, u32)], others: &[(u32, u32)]) {
    let mut theirs = others.iter().peekable();
    for &(mut low, high) in ranges {
        let mut gone = false;
        while let Some(&&(its_low, its_high)) = theirs.peek() {
            if its_high < low {
                theirs.next();
                continue;
            }
            if its_low > high {
                break;
            }
            if low < its_low {
                rest.push((low, its_low - 1));
            }
            if its_high >= high {
                gone = true;
                break;
            }
            low = its_high + 1;
        }
        if !gone {
            rest.push((low, high));
        }
    }
}

/// Appends a range that starts no earlier than the last one, and joins the two if they touch.
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
        assert_eq!(free.count(), Procs::new(3));
    }

    /// Returns the set of the bits of a number.
    fn of_bits(bits: u16) -> PeSet {
        let mut set = PeSet::empty();
        for pe in (0..16).filter(|pe| bits & (1 << pe) != 0) {
            set.insert_all(&PeSet::block(pe, 1));
        }
        set
    }

    #[test]
    fn two_sets_are_as_the_bits_of_two_numbers() {
        for nth in 0..20_000 {
            let bits = |number| u16::try_from(crate::draw(7, nth, number) & 0xffff).unwrap();
            // Sparse sets and dense sets.
            let (a, b) =
                if nth % 2 == 0 { (bits(0), bits(1)) } else { (bits(0) | bits(1), bits(2) & bits(3)) };
            let (one, other) = (of_bits(a), of_bits(b));
            let mut less = one.clone();
            less.remove_all(&other);
            assert_eq!(less, of_bits(a & !b), "{one} without {other}");
            let mut both = one.clone();
            both.insert_all(&other);
            assert_eq!(both, of_bits(a | b), "{one} or {other}");
            assert_eq!(one.intersection(&other), of_bits(a & b), "{one} and {other}");
            assert_eq!(one.intersects(&other), a & b != 0, "{one} and {other}");
            assert_eq!(one.contains_all(&other), a & b == b, "{other} within {one}");
            assert_eq!(one.is_empty(), a == 0);
            let (mut low, half) = (one.clone(), one.count() / 2);
            let high = low.take_highest(half).unwrap();
            assert_eq!(one.clone().take_lowest(one.count() - half), Some(low), "{one} but for {high}");
            assert_eq!(high.count(), half);
            assert_eq!(one.clone().take_highest(one.count() + Procs::ONE), None);
        }
    }

    #[test]
    fn the_last_pe_of_all() {
        let mut free = PeSet::first(u32::MAX);
        assert_eq!(free.take_lowest(u64::from(u32::MAX)).unwrap().count(), Procs::new(u32::MAX.into()));
        assert!(free.count().is_zero());
    }
}
