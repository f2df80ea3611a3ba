//! The state of a matrix at an instant, as figures and as text.

use std::collections::BTreeMap;

use super::data::{MatrixJob, MatrixPlace};
use super::matrix::MatrixView;
use super::values::time;

/// Maximum number of slots listed one by one.
const LISTED_SLOTS: usize = 16;

impl MatrixView<'_> {
    /// Returns the first instant with the most slots in use and, among those, the most busy
    /// processors.
    pub(super) fn fullest(&self) -> Option<f64> {
        let mut changes: Vec<(f64, bool, &MatrixPlace)> = Vec::new();
        let seen = |place: &&MatrixPlace| place.own && place.from < self.to && place.to > self.from;
        for place in self.places.iter().filter(seen) {
            changes.push((place.from.max(self.from), true, place));
            changes.push((place.to, false, place));
        }
        // At one instant, departures precede arrivals.
        changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let mut in_slot: BTreeMap<u32, u64> = BTreeMap::new();
        let mut most: Option<((usize, u64), f64)> = None;
        for (n, &(at, comes, place)) in changes.iter().enumerate() {
            let taken = in_slot.entry(place.slot).or_default();
            *taken = if comes { *taken + place.wide() } else { taken.saturating_sub(place.wide()) };
            if *taken == 0 {
                in_slot.remove(&place.slot);
            }
            // All changes of one instant take effect together.
            if changes.get(n + 1).is_some_and(|next| next.0 <= at) || at >= self.to {
                continue;
            }
            let snapshot = (in_slot.len(), in_slot.values().sum());
            if most.is_none_or(|(before, _)| snapshot > before) {
                most = Some((snapshot, at));
            }
        }
        most.map(|(_, at)| at)
    }
}

impl MatrixPlace {
    /// Returns the number of processors.
    pub(super) fn wide(&self) -> u64 {
        self.pes.iter().map(|&(low, high)| u64::from(high.saturating_sub(low)) + 1).sum()
    }
}

/// The matrix at an instant.
pub(super) struct MatrixSnapshot<'a> {
    at: f64,
    pub(super) places: Vec<&'a MatrixPlace>,
    /// For each slot in use: processors of its own jobs and of alternate jobs.
    used: BTreeMap<u32, (u64, u64)>,
    /// Number of slots in which each job runs.
    turns: BTreeMap<usize, usize>,
}

impl<'a> MatrixSnapshot<'a> {
    pub(super) fn new(matrix: &MatrixView<'a>, at: f64) -> MatrixSnapshot<'a> {
        let places: Vec<&MatrixPlace> =
            matrix.places.iter().filter(|place| place.from <= at && at < place.to).collect();
        let (mut used, mut turns): (BTreeMap<u32, (u64, u64)>, BTreeMap<usize, usize>) = Default::default();
        for place in &places {
            *turns.entry(place.job).or_default() += 1;
            let (own, others) = used.entry(place.slot).or_default();
            *(if place.own { own } else { others }) += place.wide();
        }
        used.retain(|_, (own, _)| *own > 0);
        MatrixSnapshot { at, places, used, turns }
    }

    /// Describes a placement.
    pub(super) fn place_description(&self, job: &MatrixJob, place: &MatrixPlace) -> String {
        let kind = if place.own { "its own" } else { "alternate: no other job needs its processors there" };
        let (turns, used) = (self.turns.get(&place.job).copied().unwrap_or(1), self.used.len().max(1));
        let owner = job.user.as_ref().map(|user| format!(", user {user}")).unwrap_or_default();
        format!(
            "job {}, {}{owner}\nin slot {}, {kind}\nruns in {turns} of {}: {} % of the time\nsubmitted {}",
            job.number,
            processors(place.wide()),
            place.slot,
            slots(used),
            (100 * turns + used / 2) / used,
            time(job.submit)
        )
    }

    /// Returns the number of slots in use.
    pub(super) fn slots_used(&self) -> String {
        format!("at {}: {} used", time(self.at), slots(self.used.len()))
    }

    /// Describes the whole matrix, slot by slot.
    pub(super) fn description(&self, procs: u32) -> String {
        let listed = self.used.iter().take(LISTED_SLOTS).map(|(slot, (own, others))| {
            let also = if *others > 0 { format!(" + {others}") } else { String::new() };
            format!("slot {slot}: {own}{also}")
        });
        let more = self.used.len().saturating_sub(LISTED_SLOTS);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!(
            "At {}: {} used. Processors taken, of {procs}, by jobs of the slot + by others: {}{more}.",
            time(self.at),
            slots(self.used.len()),
            listed.collect::<Vec<_>>().join("; ")
        )
    }
}

fn processors(count: u64) -> String {
    if count == 1 { "1 processor".into() } else { format!("{count} processors") }
}

fn slots(count: usize) -> String {
    if count == 1 { "1 slot".into() } else { format!("{count} slots") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(slot: u32, pes: (u32, u32), from: f64, to: f64) -> MatrixPlace {
        MatrixPlace { job: 0, slot, own: true, from, to, pes: vec![pes] }
    }

    #[test]
    fn the_fullest_instant_has_the_most_slots_and_then_the_most_processors() {
        let places = [
            place(0, (0, 3), 0.0, 9.0),
            place(1, (0, 0), 2.0, 8.0),
            place(1, (1, 2), 3.0, 5.0),
            // Arrives at the instant of the last departure: never three slots.
            place(2, (0, 0), 9.0, 12.0),
        ];
        let matrix = |from, to| MatrixView { procs: 4, from, to, jobs: &[], places: &places };
        assert_eq!(matrix(0.0, 20.0).fullest(), Some(3.0));
        assert_eq!(matrix(4.0, 20.0).fullest(), Some(4.0), "from the begin of the window");
        assert_eq!(matrix(10.0, 20.0).fullest(), Some(10.0));
        assert_eq!(matrix(0.0, 3.0).fullest(), Some(2.0), "to before its end");
        assert_eq!(matrix(13.0, 20.0).fullest(), None);
    }

    #[test]
    fn an_instant_in_words() {
        let mut places = [place(0, (0, 3), 0.0, 9.0), place(1, (0, 0), 2.0, 8.0), place(0, (5, 6), 0.0, 9.0)];
        (places[1].job, places[2].job, places[2].slot, places[2].own) = (1, 1, 0, false);
        let job = MatrixJob { number: 7, submit: 0.0, user: None };
        let matrix = MatrixView { procs: 8, from: 0.0, to: 9.0, jobs: &[], places: &places };
        let snapshot = MatrixSnapshot::new(&matrix, 4.0);
        assert_eq!(
            snapshot.description(8),
            "At 4s: 2 slots used. Processors taken, of 8, by jobs of the slot + by others: slot 0: 4 + 2; slot 1: 1."
        );
        assert_eq!(
            snapshot.place_description(&job, &places[1]),
            "job 7, 1 processor\nin slot 1, its own\nruns in 2 of 2 slots: 100 % of the time\nsubmitted 0s"
        );
        assert_eq!(MatrixSnapshot::new(&matrix, 8.5).slots_used(), "at 8.5s: 1 slot used");
    }
}
