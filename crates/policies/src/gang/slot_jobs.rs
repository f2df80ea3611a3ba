//! The jobs of the matrix, in the order of their arrival.

use miserly_core::{JobId, Ledger, PeSet, Procs, SlotId, State};

use super::packing::SlotPlacement;

/// A job with its slot and processors.
#[derive(Clone, Debug)]
pub(super) struct SlotJob {
    pub(super) admitted: u64,
    pub(super) job: JobId,
    pub(super) slot: SlotId,
    pub(super) pes: PeSet,
    /// The number of the processors.
    pub(super) size: Procs,
    /// The lowest processor.
    pub(super) lowest: u32,
}

/// All jobs of the matrix.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotJobs {
    /// In the order of their admission.
    order: Vec<(u64, JobId)>,
    /// By their handles.
    jobs: Vec<Option<SlotJob>>,
}

impl SlotJob {
    pub(super) fn new(ledger: &Ledger, job: JobId, place: SlotPlacement) -> SlotJob {
        SlotJob::at(ledger.entry(job).admitted, job, place.slot, place.pes)
    }

    pub(super) fn at(admitted: u64, job: JobId, slot: SlotId, pes: PeSet) -> SlotJob {
        let (size, lowest) = (pes.count(), lowest(&pes));
        SlotJob { admitted, job, slot, pes, size, lowest }
    }

    pub(super) fn move_to(&mut self, place: SlotPlacement) {
        self.lowest = lowest(&place.pes);
        (self.slot, self.pes) = (place.slot, place.pes);
    }
}

impl SlotJobs {
    pub(super) const fn new() -> SlotJobs {
        SlotJobs { order: Vec::new(), jobs: Vec::new() }
    }

    pub(super) fn in_ledger(ledger: &Ledger) -> SlotJobs {
        let mut slot_jobs = SlotJobs::new();
        for job in ledger.running().filter(|job| runs(ledger, *job)) {
            if let Some((slot, pes)) = super::own(ledger, job) {
                slot_jobs.insert(SlotJob::new(ledger, job, SlotPlacement { slot, pes: pes.clone() }));
            }
        }
        slot_jobs
    }

    /// Returns the jobs, in the order of their admission.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &SlotJob> {
        self.order.iter().filter_map(|(_, job)| self.get(*job))
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns a job by its handle. O(1).
    pub(super) fn get(&self, job: JobId) -> Option<&SlotJob> {
        self.jobs.get(job.index())?.as_ref()
    }

    /// Returns a job by its place in the order of admission. O(1).
    pub(super) fn nth_mut(&mut self, nth: usize) -> Option<&mut SlotJob> {
        let (_, job) = self.order.get(nth)?;
        self.jobs.get_mut(job.index())?.as_mut()
    }

    /// Returns the number of jobs admitted before.
    pub(super) fn before(&self, admitted: u64) -> usize {
        self.order.partition_point(|(other, _)| *other < admitted)
    }

    pub(super) fn insert(&mut self, slot_job: SlotJob) {
        let (admitted, job) = (slot_job.admitted, slot_job.job);
        if self.jobs.len() <= job.index() {
            self.jobs.resize_with(job.index() + 1, || None);
        }
        self.order.insert(self.before(admitted), (admitted, job));
        self.jobs[job.index()] = Some(slot_job);
    }

    pub(super) fn remove(&mut self, admitted: u64) -> Option<SlotJob> {
        let place = self.order.binary_search_by_key(&admitted, |(other, _)| *other).ok()?;
        let (_, job) = self.order.remove(place);
        self.jobs.get_mut(job.index())?.take()
    }
}

/// Returns whether a job runs and is not certain to end at this instant.
pub(super) fn runs(ledger: &Ledger, job: JobId) -> bool {
    let state = ledger.get(job).map(|entry| &entry.state);
    matches!(state, Some(State::Running { released: false, .. }))
}

/// Returns the lowest processor of a set, which is not empty.
fn lowest(pes: &PeSet) -> u32 {
    pes.ranges().first().map_or(0, |(low, _)| *low)
}
