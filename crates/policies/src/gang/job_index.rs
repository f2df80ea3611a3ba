//! The jobs of the matrix by their processors.

use miserly_core::{JobId, PeSet};

use super::slot_jobs::{SlotJob, SlotJobs};

/// The number of processors of a group.
const GROUP: u32 = 64;

/// The jobs of the matrix that have processors in each group of consecutive ones.
#[derive(Debug, Default)]
pub(super) struct JobIndex {
    /// By group, in the order of admission.
    groups: Vec<Vec<Indexed>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Indexed {
    pub(super) admitted: u64,
    pub(super) job: JobId,
    /// The lowest processor.
    pub(super) lowest: u32,
    /// The group before this one in which the job has processors.
    previous: Option<u32>,
}

impl JobIndex {
    /// Returns the index of these jobs.
    pub(super) fn new(slot_jobs: &SlotJobs) -> JobIndex {
        let mut index = JobIndex::default();
        slot_jobs.iter().for_each(|slot_job| index.insert(slot_job));
        index
    }

    /// Inserts a job. O(its groups), if it was admitted last.
    pub(super) fn insert(&mut self, slot_job: &SlotJob) {
        let SlotJob { admitted, job, lowest, .. } = *slot_job;
        let mut previous = None;
        for group in groups(&slot_job.pes) {
            let indexed = Indexed { admitted, job, lowest, previous };
            previous = u32::try_from(group).ok();
            if self.groups.len() <= group {
                self.groups.resize_with(group + 1, Vec::new);
            }
            let jobs = &mut self.groups[group];
            let place = jobs.partition_point(|other| other.admitted < indexed.admitted);
            jobs.insert(place, indexed);
        }
    }

    /// Removes a job.
    pub(super) fn remove(&mut self, slot_job: &SlotJob) {
        for group in groups(&slot_job.pes) {
            let Some(jobs) = self.groups.get_mut(group) else { continue };
            if let Ok(place) = jobs.binary_search_by_key(&slot_job.admitted, |other| other.admitted) {
                jobs.remove(place);
            }
        }
    }

    /// Calls `act` for the jobs that were admitted after `after`, or for all jobs, if they have
    /// processors in the groups of these.
    ///
    /// A job may come more than once if a gap between its processors is a gap between these too.
    pub(super) fn each(&self, pes: &PeSet, after: Option<u64>, mut act: impl FnMut(&Indexed)) {
        let near: Vec<usize> = groups(pes).collect();
        for &group in &near {
            let Some(jobs) = self.groups.get(group) else { break };
            let first = after.map_or(0, |after| jobs.partition_point(|other| other.admitted <= after));
            for indexed in &jobs[first..] {
                let met = |previous: u32| near.binary_search(&(previous as usize)).is_ok();
                if !indexed.previous.is_some_and(met) {
                    act(indexed);
                }
            }
        }
    }
}

/// Returns the groups of processors, ascending, each once.
fn groups(pes: &PeSet) -> impl Iterator<Item = usize> {
    let mut next = 0;
    pes.ranges().iter().flat_map(move |&(low, high)| {
        let first = next.max((low / GROUP) as usize);
        next = (high / GROUP) as usize + 1;
        first..next
    })
}
