//! The jobs that would start now: for each width, the longest time.

use miserly_api::model::Slice;
use serde::Serialize;

/// Room for a job that starts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Hole {
    /// The processors.
    pub procs: u64,
    /// Until when they are free; `None` if no window follows as far as is known.
    pub until: Option<i64>,
    /// The memory that is free for as long, bytes.
    pub memory: u64,
}

/// Returns the jobs that would start now, from the widest to the narrowest, each longer than the one before.
///
/// The slices are in order of time, and the first one has the present.
pub(crate) fn holes(slices: &[Slice]) -> Vec<Hole> {
    let mut holes: Vec<Hole> = vec![];
    let Some(first) = slices.first() else { return holes };
    let (mut procs, mut memory) = (first.cpus_free, first.memory_free);
    for slice in &slices[1..] {
        if slice.cpus_free < procs {
            holes.push(Hole { procs, until: Some(slice.from.as_millisecond()), memory });
            procs = slice.cpus_free;
        }
        memory = memory.min(slice.memory_free);
    }
    holes.push(Hole { procs, until: None, memory });
    holes.retain(|hole| hole.procs > 0);
    holes
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_narrower_job_may_be_longer() {
        let slice = |secs: i64, cpus_free| Slice {
            from: Timestamp::from_second(secs).unwrap(),
            cpus: 8,
            cpus_free,
            memory_free: 0,
            gpus_free: 0,
        };
        let found = holes(&[slice(0, 5), slice(10, 7), slice(20, 3), slice(30, 0), slice(40, 8)]);
        let widths: Vec<(u64, Option<i64>)> = found.iter().map(|hole| (hole.procs, hole.until)).collect();
        assert_eq!(widths, [(5, Some(20_000)), (3, Some(30_000))]);
        assert_eq!(holes(&[slice(0, 4)]), [Hole { procs: 4, until: None, memory: 0 }]);
        assert_eq!(holes(&[]), []);
    }
}
