//! The jobs of the matrix, in the order of their arrival.

use miserly_core::{JobId, Ledger, PeSet, Procs, SlotId, State};

use super::packing::Place;

/// A job with its slot and processors.
#[derive(Clone, Debug)]
pub(super) struct SlotJob {
    pub(super) admitted: u64,
    pub(super) job: JobId,
    pub(super) slot: SlotId,
    pub(super) pes: PeSet,
    /// The number of the processors.
    pub(super) size: Procs,
    pub(super) shadow: Shadow,
}

/// A set of processors by their numbers modulo 128. The shadow of a subset is a subset of the
/// shadow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shadow(u128);

impl Shadow {
    pub(super) fn of(pes: &PeSet) -> Shadow {
        let of_range = |&(low, high): &(u32, u32)| match high - low {
            0..127 => (u128::MAX >> (127 - (high - low))).rotate_left(low % 128),
            _ => u128::MAX,
        };
        Shadow(pes.ranges().iter().map(of_range).fold(0, |all, part| all | part))
    }

    pub(super) fn lies_in(self, other: Shadow) -> bool {
        self.0 & !other.0 == 0
    }
}

/// All jobs of the matrix, in the order of their admission.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotJobs(Vec<SlotJob>);

impl SlotJob {
    pub(super) fn of(ledger: &Ledger, job: JobId, place: Place) -> SlotJob {
        let (size, shadow) = (place.pes.count(), Shadow::of(&place.pes));
        SlotJob { admitted: ledger.entry(job).admitted, job, slot: place.slot, pes: place.pes, size, shadow }
    }

    pub(super) fn move_to(&mut self, place: Place) {
        self.shadow = Shadow::of(&place.pes);
        (self.slot, self.pes) = (place.slot, place.pes);
    }
}

impl SlotJobs {
    pub(super) const fn new() -> SlotJobs {
        SlotJobs(Vec::new())
    }

    pub(super) fn in_ledger(ledger: &Ledger) -> SlotJobs {
        let resident = |job| {
            let (slot, pes) = super::own(ledger, job)?;
            Some(SlotJob::of(ledger, job, Place { slot, pes: pes.clone() }))
        };
        SlotJobs(ledger.running().filter(|job| runs(ledger, *job)).filter_map(resident).collect())
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

    pub(super) fn insert(&mut self, resident: SlotJob) {
        self.0.insert(self.before(resident.admitted), resident);
    }

    pub(super) fn remove(&mut self, admitted: u64) -> Option<SlotJob> {
        let place = self.0.binary_search_by_key(&admitted, |resident| resident.admitted).ok()?;
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
        let shadow = |low, count| Shadow::of(&PeSet::block(low, count));
        assert_eq!(shadow(0, 1), Shadow(1));
        assert_eq!(shadow(3, 2), Shadow(0b11000));
        assert_eq!(
            (shadow(0, 128), shadow(77, 128), shadow(5, 1000)),
            (shadow(0, 128), shadow(0, 128), shadow(0, 128))
        );
        assert_eq!(shadow(0, 128), Shadow(u128::MAX));
        assert_eq!(shadow(127, 2), Shadow(1 << 127 | 1), "it goes round");
        assert_eq!(shadow(1, 127), Shadow(u128::MAX - 1));
        assert!(shadow(130, 4).lies_in(shadow(129, 6)) && !shadow(129, 6).lies_in(shadow(130, 4)));
        assert!(Shadow::of(&PeSet::empty()).lies_in(Shadow(0)));
    }
}
