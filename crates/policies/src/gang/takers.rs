//! The jobs that have the processors of a slot.

use miserly_core::PeSet;

/// The rank of the slot's own jobs, and of lost processors. It is before that of any alternate.
const OWN: u64 = 0;

/// A stretch of processors, both ends included, and the rank of the job that has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    low: u32,
    high: u32,
    rank: u64,
}

/// The job that has each processor of a slot: an own job, an alternate or none.
///
/// An alternate is known by its admission number. A change costs O(log s) for each range of
/// processors, and moves the stretches above if their number s changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Takers {
    /// Sorted and disjoint. Idle processors are in none.
    stretches: Vec<Stretch>,
}

impl Takers {
    /// Returns the takers of a slot without alternates, in which these processors are open.
    pub(super) fn own(open: &PeSet) -> Takers {
        let mut takers = Takers { stretches: vec![Stretch { low: 0, high: u32::MAX, rank: OWN }] };
        takers.free(open);
        takers
    }

    /// Returns whether a job could have these processors beside own jobs and the alternates that
    /// were admitted before it. O(log s) for each range.
    pub(super) fn admit(&self, pes: &PeSet, admitted: u64) -> bool {
        pes.ranges().iter().all(|range| self.over(*range).all(|stretch| stretch.rank > admitted))
    }

    /// Returns whether a job could have this processor beside own jobs and the alternates that were
    /// admitted before it. O(log s).
    pub(super) fn admit_on(&self, pe: u32, admitted: u64) -> bool {
        self.over((pe, pe)).all(|stretch| stretch.rank > admitted)
    }

    /// Gives processors to an alternate. Returns the admission numbers of those that had some.
    pub(super) fn give(&mut self, pes: &PeSet, admitted: u64) -> Vec<u64> {
        let mut displaced = self.alternates_on(pes);
        displaced.retain(|other| *other != admitted);
        self.set(pes, Some(admitted + 1));
        displaced
    }

    /// Gives processors to own jobs. Returns the admission numbers of the alternates that had some.
    pub(super) fn close(&mut self, pes: &PeSet) -> Vec<u64> {
        let displaced = self.alternates_on(pes);
        self.set(pes, Some(OWN));
        displaced
    }

    /// Takes processors from all jobs.
    pub(super) fn free(&mut self, pes: &PeSet) {
        self.set(pes, None);
    }

    /// Takes those of these processors from an alternate that it still has.
    pub(super) fn free_of(&mut self, pes: &PeSet, admitted: u64) {
        for &(low, high) in pes.ranges() {
            let has = |stretch: &&Stretch| stretch.rank == admitted + 1;
            let its: Vec<Stretch> = self.over((low, high)).filter(has).copied().collect();
            for stretch in its {
                self.set_range((stretch.low.max(low), stretch.high.min(high)), None);
            }
        }
    }

    /// Returns the alternates that have some of these processors, each once.
    fn alternates_on(&self, pes: &PeSet) -> Vec<u64> {
        let stretches = pes.ranges().iter().flat_map(|range| self.over(*range));
        let mut found: Vec<u64> = stretches.filter_map(|stretch| stretch.rank.checked_sub(1)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Returns the stretches that share a processor with a range.
    fn over(&self, (low, high): (u32, u32)) -> impl Iterator<Item = &Stretch> {
        let first = self.stretches.partition_point(|stretch| stretch.high < low);
        self.stretches[first..].iter().take_while(move |stretch| stretch.low <= high)
    }

    fn set(&mut self, pes: &PeSet, rank: Option<u64>) {
        for range in pes.ranges() {
            self.set_range(*range, rank);
        }
    }

    fn set_range(&mut self, (low, high): (u32, u32), rank: Option<u64>) {
        let first = self.stretches.partition_point(|stretch| stretch.high < low);
        let count = self.over((low, high)).count();
        let before = self.stretches[first..first + count].first().filter(|stretch| stretch.low < low);
        let before = before.map(|stretch| Stretch { high: low - 1, ..*stretch });
        let after = self.stretches[first..first + count].last().filter(|stretch| stretch.high > high);
        let after = after.map(|stretch| Stretch { low: high + 1, ..*stretch });
        let between = rank.map(|rank| Stretch { low, high, rank });
        self.stretches.splice(first..first + count, before.into_iter().chain(between).chain(after));
        // Own jobs come and go, and their stretches would not become fewer.
        if rank == Some(OWN) {
            self.join(first + 1);
            self.join(first);
            self.join(first.saturating_sub(1));
        }
    }

    /// Joins a stretch with the next one, if they touch and have the same taker.
    fn join(&mut self, at: usize) {
        let Some(&[one, next]) = self.stretches.get(at..at + 2).and_then(|two| two.first_chunk()) else {
            return;
        };
        if one.rank == next.rank && one.high.checked_add(1) == Some(next.low) {
            self.stretches[at].high = next.high;
            self.stretches.remove(at + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::draw;

    use super::*;

    /// Returns the rank of the taker of each of the first processors; `None` if it is idle.
    fn each(takers: &Takers) -> Vec<Option<u64>> {
        (0..200).map(|pe| takers.over((pe, pe)).next().map(|stretch| stretch.rank)).collect()
    }

    #[test]
    fn takers_are_those_of_each_processor() {
        for seed in 0..300 {
            let random = |nth: u64, most: u64| draw(seed, 0, nth) % most;
            let some = |nth: u64| {
                let part = |part: u64| {
                    let low = u32::try_from(random(nth + 2 * part, 150)).unwrap();
                    (low, low + u32::try_from(random(nth + 2 * part + 1, 40)).unwrap())
                };
                PeSet::from_ranges(&(0..=random(nth + 20, 3)).map(part).collect::<Vec<_>>())
            };
            let mut takers = Takers::own(&PeSet::first(200));
            let mut expect: Vec<Option<u64>> = vec![None; 200];
            let set = |expect: &mut [Option<u64>], at: &[usize], rank| {
                for pe in at {
                    expect[*pe] = rank;
                }
            };
            for step in (0..40).map(|step| 100 * step) {
                let (pes, admitted) = (some(step), random(step + 30, 5));
                let at: Vec<usize> = (0..200)
                    .filter(|pe| pes.contains_all(&PeSet::block(*pe, 1)))
                    .map(|pe| pe as usize)
                    .collect();
                let admits = at.iter().all(|pe| expect[*pe].is_none_or(|rank| rank > admitted));
                assert_eq!(takers.admit(&pes, admitted), admits, "{pes}");
                let others = |expect: &[Option<u64>]| {
                    let mut others: Vec<u64> =
                        at.iter().filter_map(|pe| expect[*pe]?.checked_sub(1)).collect();
                    others.sort_unstable();
                    others.dedup();
                    others
                };
                match random(step + 31, 4) {
                    0 => {
                        let mut displaced = others(&expect);
                        displaced.retain(|other| *other != admitted);
                        assert_eq!(takers.give(&pes, admitted), displaced);
                        set(&mut expect, &at, Some(admitted + 1));
                    }
                    1 => {
                        assert_eq!(takers.close(&pes), others(&expect));
                        set(&mut expect, &at, Some(OWN));
                    }
                    2 => {
                        takers.free(&pes);
                        set(&mut expect, &at, None);
                    }
                    _ => {
                        takers.free_of(&pes, admitted);
                        for pe in &at {
                            expect[*pe] = expect[*pe].filter(|rank| *rank != admitted + 1);
                        }
                    }
                }
                assert_eq!(each(&takers), expect);
                let joined = |two: &[Stretch]| {
                    two[0].high < two[1].low
                        && (two[0].high + 1 < two[1].low || two[0].rank != OWN || two[1].rank != OWN)
                };
                assert!(takers.stretches.windows(2).all(joined), "{takers:?}");
            }
        }
    }
}
