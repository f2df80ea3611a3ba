//! The number of jobs that use each processor.

use miserly_core::{PeSet, Procs};

/// The load on every processor, as stretches of equal load.
///
/// A job that arrives or leaves costs O(g) for each of its ranges, with g stretches. The cost does
/// not depend on the number of processors.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    /// The first processor of each stretch, ascending, and its load. It ends where the next begins.
    /// The first begins at 0.
    stretches: Vec<(u32, u32)>,
}

/// Consecutive processors of one load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    load: u32,
    low: u32,
    high: u32,
}

/// The least loaded processors of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Least {
    pub(super) pes: PeSet,
    /// The load on the most loaded of them.
    pub(super) most: u32,
    /// The sum of their loads.
    pub(super) sum: u64,
}

impl Loads {
    /// Returns a load of zero on all processors.
    pub(super) fn none() -> Loads {
        Loads { stretches: vec![(0, 0)] }
    }

    pub(super) fn add(&mut self, pes: &PeSet) {
        pes.ranges().iter().for_each(|&(low, high)| self.change(low, high, |load| load + 1));
    }

    pub(super) fn remove(&mut self, pes: &PeSet) {
        pes.ranges().iter().for_each(|&(low, high)| self.change(low, high, |load| load.saturating_sub(1)));
    }

    fn change(&mut self, low: u32, high: u32, change: fn(u32) -> u32) {
        let end = high.saturating_add(1);
        let from = self.cut(low);
        let to = self.cut(end);
        self.stretches[from..to].iter_mut().for_each(|(_, load)| *load = change(*load));
        self.join(to);
        self.join(from);
    }

    /// Returns the stretch that contains the processor.
    fn index_of(&self, pe: u32) -> usize {
        self.stretches.partition_point(|(low, _)| *low <= pe) - 1
    }

    /// Splits a stretch so that one begins at `pe`. Returns its index.
    fn cut(&mut self, pe: u32) -> usize {
        let at = self.index_of(pe);
        let (low, load) = self.stretches[at];
        if low == pe {
            return at;
        }
        self.stretches.insert(at + 1, (pe, load));
        at + 1
    }

    /// Removes the boundary before a stretch if both loads are equal.
    fn join(&mut self, at: usize) {
        if at > 0 && at < self.stretches.len() && self.stretches[at - 1].1 == self.stretches[at].1 {
            self.stretches.remove(at);
        }
    }

    /// Returns the stretches of these processors, from the lowest on.
    fn over(&self, pes: &PeSet) -> Vec<Stretch> {
        let mut all = Vec::new();
        for &(low, high) in pes.ranges() {
            let mut at = self.index_of(low);
            let mut low = low;
            while let Some((next, _)) = self.stretches.get(at + 1).filter(|(next, _)| *next <= high) {
                all.push(Stretch { load: self.stretches[at].1, low, high: next - 1 });
                (low, at) = (*next, at + 1);
            }
            all.push(Stretch { load: self.stretches[at].1, low, high });
        }
        all
    }

    /// Returns the `count` least loaded of these, of equals the lowest, or `None` if there are
    /// fewer.
    ///
    /// O(g log g) in the stretches among them.
    pub(super) fn least(&self, pes: &PeSet, count: Procs) -> Option<Least> {
        let mut stretches = self.over(pes);
        // The sort is stable, so stretches of one load stay in order.
        stretches.sort_by_key(|stretch| stretch.load);
        let (mut ranges, mut left, mut most, mut sum) = (Vec::new(), count.get(), 0, 0);
        for Stretch { load, low, high } in stretches {
            if left == 0 {
                break;
            }
            let taken = left.min(u64::from(high - low) + 1);
            // At most the length of a range of `u32`s.
            ranges.push((low, low + u32::try_from(taken - 1).ok()?));
            (left, most, sum) = (left - taken, load, sum + taken * u64::from(load));
        }
        (left == 0).then(|| Least { pes: PeSet::from_ranges(&ranges), most, sum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use miserly_core::draw;

    #[test]
    fn as_one_count_for_each_processor() {
        const PROCS: u32 = 24;
        let mut loads = Loads::none();
        let mut counts = [0u32; PROCS as usize];
        let mut jobs: Vec<PeSet> = vec![];
        for nth in 0..3000 {
            let below = |which, limit: u32| u32::try_from(draw(5, nth, which) % u64::from(limit)).unwrap();
            let of = |first: u64| {
                let low = below(first, PROCS);
                (low, (low + below(first + 1, 6)).min(PROCS - 1))
            };
            let some = PeSet::from_ranges(&[of(0), of(2)]);
            if jobs.len() > 6 {
                let gone = jobs.swap_remove(below(4, 6) as usize);
                loads.remove(&gone);
                each(&gone).for_each(|pe| counts[pe as usize] -= 1);
            } else {
                loads.add(&some);
                each(&some).for_each(|pe| counts[pe as usize] += 1);
                jobs.push(some.clone());
            }
            let size = 1 + u64::from(below(5, 6));
            let mut naive: Vec<(u32, u32)> = each(&some).map(|pe| (counts[pe as usize], pe)).collect();
            naive.sort_unstable();
            let least = loads.least(&some, size.into());
            assert_eq!(least.is_some(), some.count() >= size.into());
            if let Some(least) = least {
                let chosen = &naive[..usize::try_from(size).unwrap()];
                let mut pes: Vec<u32> = chosen.iter().map(|(_, pe)| *pe).collect();
                pes.sort_unstable();
                assert_eq!(each(&least.pes).collect::<Vec<_>>(), pes);
                assert_eq!(least.most, chosen.last().unwrap().0);
                assert_eq!(least.sum, chosen.iter().map(|(load, _)| u64::from(*load)).sum::<u64>());
            }
            assert!(loads.stretches.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1));
        }
    }

    fn each(pes: &PeSet) -> impl Iterator<Item = u32> + '_ {
        pes.ranges().iter().flat_map(|&(low, high)| low..=high)
    }
}
