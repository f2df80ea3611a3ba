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

/// All jobs of the matrix, in the order of their admission.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotJobs(Vec<SlotJob>);

impl SlotJob {
    pub(super) fn new(ledger: &Ledger, job: JobId, place: SlotPlacement) -> SlotJob {
        let (size, lowest) = (place.pes.count(), lowest(&place.pes));
        SlotJob { admitted: ledger.entry(job).admitted, job, slot: place.slot, pes: place.pes, size, lowest }
    }

    pub(super) fn move_to(&mut self, place: SlotPlacement) {
        self.lowest = lowest(&place.pes);
        (self.slot, self.pes) = (place.slot, place.pes);
    }
}

impl SlotJobs {
    pub(super) const fn new() -> SlotJobs {
        SlotJobs(Vec::new())
    }

    pub(super) fn in_ledger(ledger: &Ledger) -> SlotJobs {
        let slot_job = |job| {
            let (slot, pes) = super::own(ledger, job)?;
            Some(SlotJob::new(ledger, job, SlotPlacement { slot, pes: pes.clone() }))
        };
        SlotJobs(ledger.running().filter(|job| runs(ledger, *job)).filter_map(slot_job).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SlotJob> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut SlotJob> {
        self.0.iter_mut()
    }

    /// Returns the number of jobs admitted before.
    pub(super) fn before(&self, admitted: u64) -> usize {
        self.0.partition_point(|other| other.admitted < admitted)
    }

    pub(super) fn insert(&mut self, slot_job: SlotJob) {
        self.0.insert(self.before(slot_job.admitted), slot_job);
    }

    pub(super) fn remove(&mut self, admitted: u64) -> Option<SlotJob> {
        let place = self.0.binary_search_by_key(&admitted, |slot_job| slot_job.admitted).ok()?;
        Some(self.0.remove(place))
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&SlotJob) -> bool) {
        self.0.retain(keep);
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
