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
    pub(super) mask: PeMask,
}

/// A set of processors by their numbers modulo 128. The mask of a subset is a subset of the
/// mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PeMask(u128);

impl PeMask {
    pub(super) fn new(pes: &PeSet) -> PeMask {
        let of_range = |&(low, high): &(u32, u32)| match high - low {
            0..127 => (u128::MAX >> (127 - (high - low))).rotate_left(low % 128),
            _ => u128::MAX,
        };
        PeMask(pes.ranges().iter().map(of_range).fold(0, |all, part| all | part))
    }

    pub(super) fn is_within(self, other: PeMask) -> bool {
        self.0 & !other.0 == 0
    }
}

/// All jobs of the matrix, in the order of their admission.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotJobs(Vec<SlotJob>);

impl SlotJob {
    pub(super) fn new(ledger: &Ledger, job: JobId, place: SlotPlacement) -> SlotJob {
        let (size, mask) = (place.pes.count(), PeMask::new(&place.pes));
        SlotJob { admitted: ledger.entry(job).admitted, job, slot: place.slot, pes: place.pes, size, mask }
    }

    pub(super) fn move_to(&mut self, place: SlotPlacement) {
        self.mask = PeMask::new(&place.pes);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_in_a_set_has_its_shadow_in_that_of_the_set() {
        let mask = |low, count| PeMask::new(&PeSet::block(low, count));
        assert_eq!(mask(0, 1), PeMask(1));
        assert_eq!(mask(3, 2), PeMask(0b11000));
        assert_eq!((mask(0, 128), mask(77, 128), mask(5, 1000)), (mask(0, 128), mask(0, 128), mask(0, 128)));
        assert_eq!(mask(0, 128), PeMask(u128::MAX));
        assert_eq!(mask(127, 2), PeMask(1 << 127 | 1), "numbers wrap around");
        assert_eq!(mask(1, 127), PeMask(u128::MAX - 1));
        assert!(mask(130, 4).is_within(mask(129, 6)) && !mask(129, 6).is_within(mask(130, 4)));
        assert!(PeMask::new(&PeSet::empty()).is_within(PeMask(0)));
    }
}
