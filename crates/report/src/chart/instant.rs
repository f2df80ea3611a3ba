//! What a matrix is at an instant, in figures and in words.

use std::collections::BTreeMap;

use super::data::{MatrixJob, MatrixPlace};
use super::matrix::Slots;
use super::values::time;

/// So many slots are told one by one.
const TOLD: usize = 16;

impl Slots<'_> {
    /// The first instant at which most slots are used, and among these the one at which most processors are taken.
    pub(super) fn fullest(&self) -> Option<f64> {
        let mut changes: Vec<(f64, bool, &MatrixPlace)> = Vec::new();
        let seen = |place: &&MatrixPlace| place.own && place.from < self.to && place.to > self.from;
        for place in self.places.iter().filter(seen) {
            changes.push((place.from.max(self.from), true, place));
            changes.push((place.to, false, place));
        }
        // Who leaves at an instant is gone before others come.
        changes.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        let mut in_slot: BTreeMap<u32, u64> = BTreeMap::new();
        let mut most: Option<((usize, u64), f64)> = None;
        for (n, &(at, comes, place)) in changes.iter().enumerate() {
            let taken = in_slot.entry(place.slot).or_default();
            *taken = if comes { *taken + place.wide() } else { taken.saturating_sub(place.wide()) };
            if *taken == 0 {
                in_slot.remove(&place.slot);
            }
            // All that happens at an instant happens at once.
            if changes.get(n + 1).is_some_and(|next| next.0 <= at) || at >= self.to {
                continue;
            }
            let now = (in_slot.len(), in_slot.values().sum());
            if most.is_none_or(|(before, _)| now > before) {
                most = Some((now, at));
            }
        }
        most.map(|(_, at)| at)
    }
}

impl MatrixPlace {
    /// How many processors it has.
    pub(super) fn wide(&self) -> u64 {
        self.pes.iter().map(|&(low, high)| u64::from(high.saturating_sub(low)) + 1).sum()
    }
}

/// The matrix at an instant.
pub(super) struct Instant<'a> {
    at: f64,
    pub(super) places: Vec<&'a MatrixPlace>,
    /// Of each slot that is used: the processors that are taken by jobs of its own, and by others.
    used: BTreeMap<u32, (u64, u64)>,
    /// In how many slots each job runs.
    turns: BTreeMap<usize, usize>,
}

impl<'a> Instant<'a> {
    pub(super) fn of(matrix: &Slots<'a>, at: f64) -> Instant<'a> {
        let places: Vec<&MatrixPlace> =
            matrix.places.iter().filter(|place| place.from <= at && at < place.to).collect();
        let (mut used, mut turns): (BTreeMap<u32, (u64, u64)>, BTreeMap<usize, usize>) = Default::default();
        for place in &places {
            *turns.entry(place.job).or_default() += 1;
            let (own, others) = used.entry(place.slot).or_default();
            *(if place.own { own } else { others }) += place.wide();
        }
        used.retain(|_, (own, _)| *own > 0);
        Instant { at, places, used, turns }
    }

    /// What a place is, in words.
    pub(super) fn told(&self, job: &MatrixJob, place: &MatrixPlace) -> String {
        let whose =
            if place.own { "its own" } else { "besides its own: nobody else needs its processors there" };
        let (turns, used) = (self.turns.get(&place.job).copied().unwrap_or(1), self.used.len().max(1));
        let whom = job.user.as_ref().map(|user| format!(", user {user}")).unwrap_or_default();
        format!(
            "job {}, {}{whom}\nin slot {}, {whose}\nruns in {turns} of {}: {} % of the time\nsubmitted {}",
            job.number,
            processors(place.wide()),
            place.slot,
            slots(used),
            (100 * turns + used / 2) / used,
            time(job.submit)
        )
    }

    /// How many slots are used.
    pub(super) fn short(&self) -> String {
        format!("at {}: {} used", time(self.at), slots(self.used.len()))
    }

    /// How all stands, slot by slot.
    pub(super) fn said(&self, procs: u32) -> String {
        let told = self.used.iter().take(TOLD).map(|(slot, (own, others))| {
            let also = if *others > 0 { format!(" + {others}") } else { String::new() };
            format!("slot {slot}: {own}{also}")
        });
        let more = self.used.len().saturating_sub(TOLD);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        format!(
            "At {}: {} used. Processors taken, of {procs}, by jobs of the slot + by others: {}{more}.",
            time(self.at),
            slots(self.used.len()),
            told.collect::<Vec<_>>().join("; ")
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
            // Comes as the last one leaves: never three slots.
            place(2, (0, 0), 9.0, 12.0),
        ];
        let matrix = |from, to| Slots { procs: 4, from, to, jobs: &[], places: &places };
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
        let matrix = Slots { procs: 8, from: 0.0, to: 9.0, jobs: &[], places: &places };
        let now = Instant::of(&matrix, 4.0);
        assert_eq!(
            now.said(8),
            "At 4s: 2 slots used. Processors taken, of 8, by jobs of the slot + by others: slot 0: 4 + 2; slot 1: 1."
        );
        assert_eq!(
            now.told(&job, &places[1]),
            "job 7, 1 processor\nin slot 1, its own\nruns in 2 of 2 slots: 100 % of the time\nsubmitted 0s"
        );
        assert_eq!(Instant::of(&matrix, 8.5).short(), "at 8.5s: 1 slot used");
    }
}
