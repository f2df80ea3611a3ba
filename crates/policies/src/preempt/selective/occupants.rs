//! The running job on each processor.

use miserly_core::{JobId, PeSet};

/// The running jobs, by the numbers of their processors.
#[derive(Debug, Default)]
pub(super) struct Occupants {
    /// By processor.
    stretches: Vec<Option<Stretch>>,
}

/// The job on a processor, and the last one of the processors that it has without a gap from here.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    job: JobId,
    last: u32,
}

impl Occupants {
    /// Places a job on free processors. O(their number).
    pub(super) fn insert(&mut self, job: JobId, pes: &PeSet) {
        for &(low, last) in pes.ranges() {
            let end = last as usize + 1;
            if self.stretches.len() < end {
                self.stretches.resize(end, None);
            }
            self.stretches[low as usize..end].fill(Some(Stretch { job, last }));
        }
    }

    /// Takes a job off those of its processors that no other job has got since. O(their number).
    pub(super) fn remove(&mut self, job: JobId, pes: &PeSet) {
        for stretch in pes.ranges().iter().flat_map(|&(low, last)| low as usize..=last as usize) {
            if let Some(stretch) = self.stretches.get_mut(stretch) {
                stretch.take_if(|stretch| stretch.job == job);
            }
        }
    }

    /// Returns the jobs on these processors, each once for a stretch of them.
    ///
    /// A job that does not keep its processors is left out. Others may have got some of them.
    pub(super) fn on<'o>(
        &'o self,
        pes: &'o PeSet,
        keeps: impl Fn(JobId) -> bool + 'o,
    ) -> impl Iterator<Item = JobId> + 'o {
        let mut ranges = pes.ranges().iter();
        let (mut next, mut last) = (1, 0);
        std::iter::from_fn(move || {
            loop {
                if next > last {
                    let &(low, high) = ranges.next()?;
                    (next, last) = (u64::from(low), u64::from(high));
                }
                let stretch = usize::try_from(next).ok().and_then(|pe| *self.stretches.get(pe)?);
                next += 1;
                if let Some(Stretch { job, last }) = stretch.filter(|stretch| keeps(stretch.job)) {
                    next = u64::from(last) + 1;
                    return Some(job);
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::draw;

    use super::*;

    /// Returns some processors of 40.
    fn some(seed: i64) -> PeSet {
        let bits = draw(21, seed, 0) & draw(21, seed, 1) | draw(21, seed, 2) & 0xff;
        let ranges: Vec<(u32, u32)> = (0..40).filter(|pe| bits & (1 << pe) != 0).map(|pe| (pe, pe)).collect();
        PeSet::from_ranges(&ranges)
    }

    /// Jobs come, leave, and release their processors before they leave.
    #[test]
    fn jobs_on_processors_are_those_whose_sets_share_some() {
        let mut occupants = Occupants::default();
        let mut jobs: Vec<(JobId, PeSet, bool)> = vec![];
        let mut free = PeSet::first(40);
        let mut found = 0;
        for step in 0..4_000 {
            match draw(22, step, 0) % 4 {
                0 | 1 => {
                    let pes = some(step).intersection(&free);
                    free.remove_all(&pes);
                    let job = (0..4_000)
                        .map(JobId)
                        .find(|job| jobs.iter().all(|(other, ..)| job != other))
                        .unwrap();
                    occupants.insert(job, &pes);
                    jobs.push((job, pes, true));
                }
                turn if !jobs.is_empty() => {
                    let at = usize::try_from(draw(22, step, 1) % jobs.len() as u64).unwrap();
                    if std::mem::take(&mut jobs[at].2) {
                        free.insert_all(&jobs[at].1);
                    }
                    if turn == 2 {
                        let (job, pes, _) = jobs.swap_remove(at);
                        occupants.remove(job, &pes);
                    }
                }
                _ => {}
            }
            let keeps = |job| jobs.iter().any(|&(other, _, keeps)| other == job && keeps);
            let asked = some(step + 10_000);
            let mut on: Vec<JobId> = occupants.on(&asked, keeps).collect();
            on.sort_unstable();
            on.dedup();
            let there = jobs.iter().filter(|(_, pes, keeps)| *keeps && pes.intersects(&asked));
            let mut there: Vec<JobId> = there.map(|(job, ..)| *job).collect();
            there.sort_unstable();
            assert_eq!(on, there, "{asked}");
            found += there.len();
        }
        assert!(found > 4_000, "{found}");
    }
}
