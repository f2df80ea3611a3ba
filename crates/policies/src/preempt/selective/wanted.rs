//! The processors to which suspended jobs return.

use miserly_core::{JobId, PeSet, Procs};

/// The number of suspended jobs that return to each processor.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// By processor.
    jobs: Vec<u32>,
    /// The processors with a job.
    some: PeSet,
    /// By the job.
    own: Vec<PeSet>,
}

impl Wanted {
    /// Removes all jobs.
    pub(super) fn clear(&mut self) {
        *self = Wanted::default();
    }

    /// Adds a job that returns to these processors. O(their number).
    pub(super) fn insert(&mut self, job: JobId, pes: &PeSet) {
        self.remove(job);
        if self.own.len() <= job.index() {
            self.own.resize(job.index() + 1, PeSet::empty());
        }
        for &(low, last) in pes.ranges() {
            let end = last as usize + 1;
            if self.jobs.len() < end {
                self.jobs.resize(end, 0);
            }
            self.jobs[low as usize..end].iter_mut().for_each(|jobs| *jobs += 1);
        }
        self.some.insert_all(pes);
        self.own[job.index()] = pes.clone();
    }

    /// Removes a job, if it is there. O(number of its processors).
    pub(super) fn remove(&mut self, job: JobId) {
        let Some(pes) = self.own.get_mut(job.index()).map(std::mem::take) else { return };
        let mut left: Vec<(u32, u32)> = vec![];
        for pe in pes.ranges().iter().flat_map(|&(low, last)| low..=last) {
            let jobs = &mut self.jobs[pe as usize];
            *jobs -= 1;
            if *jobs == 0 {
                match left.last_mut() {
                    Some(range) if pe - range.1 == 1 => range.1 = pe,
                    _ => left.push((pe, pe)),
                }
            }
        }
        if !left.is_empty() {
            self.some.remove_all(&PeSet::from_ranges(&left));
        }
    }

    /// Returns the `count` lowest of these processors to which no job returns, if there are as many.
    ///
    /// O(number of ranges).
    pub(super) fn others(&self, mut from: PeSet, count: Procs) -> Option<PeSet> {
        from.remove_all(&self.some);
        from.take_lowest(count)
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::draw;

    use super::*;

    #[test]
    fn others_are_those_without_any_job() {
        let mut wanted = Wanted::default();
        let mut jobs: Vec<(JobId, PeSet)> = vec![];
        let mut found = 0;
        for step in 0..4_000 {
            let low = |number| u32::try_from(draw(31, step, number) % 60).unwrap();
            let set = |number| {
                let at = low(number);
                let more = low(number + 2);
                PeSet::from_ranges(&[(at, at + low(number + 1) % 9), (more, more + 2)])
            };
            let job = JobId(low(0) % 12);
            jobs.retain(|(other, _)| *other != job);
            if low(1) % 3 == 0 {
                wanted.remove(job);
            } else {
                wanted.insert(job, &set(2));
                jobs.push((job, set(2)));
            }
            let mut from = set(5);
            from.insert_all(&PeSet::block(low(9), 30));
            let count = Procs::new(1 + u64::from(low(10) % 20));
            let mut left = from.clone();
            for (_, pes) in &jobs {
                left.remove_all(pes);
            }
            let naive = left.take_lowest(count);
            found += u32::from(naive.is_some());
            assert_eq!(wanted.others(from.clone(), count), naive, "{count} of {from} beside {jobs:?}");
        }
        assert!((500..3_500).contains(&found), "{found} of 4000");
    }
}
