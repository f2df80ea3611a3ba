//! Processors as bits, for sets of many stretches.

use miserly_core::PeSet;

/// A set of processors, a bit for each number.
///
/// The idle processors of a slot are in as many stretches as jobs have left them. To take a job's processors
/// from such a list of stretches costs as much as the list is long, and here O(p / 64) for p processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeBits(Vec<u64>);

impl PeBits {
    /// Returns the set of these processors.
    pub(super) fn new(pes: &PeSet) -> PeBits {
        let numbers = pes.ranges().last().map_or(0, |(_, high)| *high as usize + 1);
        let mut bits = PeBits(vec![0; numbers.div_ceil(64)]);
        for (at, mask) in pes.ranges().iter().copied().flat_map(words) {
            bits.0[at] |= mask;
        }
        bits
    }

    /// Returns whether a processor is in the set. O(1).
    pub(super) fn has(&self, pe: u32) -> bool {
        self.0.get(pe as usize / 64).is_some_and(|word| word >> (pe % 64) & 1 == 1)
    }

    /// Returns whether all of these processors are in the set.
    pub(super) fn contains_all(&self, pes: &PeSet) -> bool {
        let has = |(at, mask): (usize, u64)| self.0.get(at).is_some_and(|word| word & mask == mask);
        pes.ranges().iter().copied().flat_map(words).all(has)
    }

    /// Removes these processors.
    pub(super) fn remove_all(&mut self, pes: &PeSet) {
        for (at, mask) in pes.ranges().iter().copied().flat_map(words) {
            if let Some(word) = self.0.get_mut(at) {
                *word &= !mask;
            }
        }
    }
}

/// Returns the words that have processors of a stretch, each with their bits.
fn words((low, high): (u32, u32)) -> impl Iterator<Item = (usize, u64)> {
    let (first, last) = (low as usize / 64, high as usize / 64);
    (first..=last).map(move |at| {
        let from = if at == first { low % 64 } else { 0 };
        let to = if at == last { high % 64 } else { 63 };
        (at, (u64::MAX >> (63 - (to - from))) << from)
    })
}

#[cfg(test)]
mod tests {
    use miserly_core::draw;

    use super::*;

    #[test]
    fn sets_are_those_of_stretches() {
        for seed in 0..500 {
            let random = |nth: u64, most: u32| u32::try_from(draw(seed, 0, nth) % u64::from(most)).unwrap();
            let some = |nth: u64| {
                let mut pes = PeSet::empty();
                for part in 0..u64::from(random(nth, 6)) {
                    pes.insert_all(&PeSet::block(
                        random(nth + 3 * part + 1, 300),
                        1 + random(nth + 3 * part + 2, 150),
                    ));
                }
                pes
            };
            let (mut stretches, taken) = (some(0), some(100));
            let mut bits = PeBits::new(&stretches);
            assert_eq!(bits.contains_all(&taken), stretches.contains_all(&taken), "{stretches} {taken}");
            stretches.remove_all(&taken);
            bits.remove_all(&taken);
            for pe in 0..600 {
                assert_eq!(bits.has(pe), stretches.contains_all(&PeSet::block(pe, 1)), "{stretches} {pe}");
            }
        }
    }
}
