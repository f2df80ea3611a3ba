//! The jobs that have places in the matrix, in the order of their arrival.

use miserly_core::{JobId, Ledger, PeSet, SlotId, State};

use super::packing::Place;

/// A job with its place.
#[derive(Clone, Debug)]
pub(super) struct Resident {
    pub(super) admitted: u64,
    pub(super) job: JobId,
    pub(super) slot: SlotId,
    pub(super) pes: PeSet,
}

/// They all, in the order of their admission.
#[derive(Clone, Debug, Default)]
pub(super) struct Residents(Vec<Resident>);

impl Resident {
    pub(super) fn of(ledger: &Ledger, job: JobId, place: Place) -> Resident {
        Resident { admitted: ledger.entry(job).admitted, job, slot: place.slot, pes: place.pes }
    }
}

impl Residents {
    pub(super) const fn new() -> Residents {
        Residents(Vec::new())
    }

    pub(super) fn in_ledger(ledger: &Ledger) -> Residents {
        let resident = |job| {
            let (slot, pes) = super::own(ledger, job)?;
            Some(Resident::of(ledger, job, Place { slot, pes: pes.clone() }))
        };
        Residents(ledger.running().filter(|job| runs(ledger, *job)).filter_map(resident).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Resident> {
        self.0.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Resident> {
        self.0.iter_mut()
    }

    pub(super) fn insert(&mut self, resident: Resident) {
        let place = self.0.partition_point(|other| other.admitted < resident.admitted);
        self.0.insert(place, resident);
    }

    pub(super) fn remove(&mut self, admitted: u64) -> Option<Resident> {
        let place = self.0.binary_search_by_key(&admitted, |resident| resident.admitted).ok()?;
        Some(self.0.remove(place))
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Resident) -> bool) {
        self.0.retain(keep);
    }
}

/// Whether a job runs, and its end is not certain for this instant.
pub(super) fn runs(ledger: &Ledger, job: JobId) -> bool {
    let state = ledger.get(job).map(|entry| &entry.state);
    matches!(state, Some(State::Running { released: false, .. }))
}
