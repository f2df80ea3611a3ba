//! The matrix over time: a record of the jobs in slots, and the instant with the most slots.

use std::collections::BTreeMap;

use miserly_core::{Ledger, Matrix, Procs, SlotId, System, Time};

use super::{SlotPlace, each_place, sliced};
use crate::Observer;

/// The position of a job in a slot, and the time for which it had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceHeld {
    /// The place.
    pub place: SlotPlace,
    /// The time at which the job entered.
    pub from: Time,
    /// The time at which it left, or the end of the record.
    pub to: Time,
}

/// The record of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixRecord {
    /// The processors of the machine.
    pub procs: Procs,
    /// The beginning of the record. Positions held already then have their true beginnings.
    pub from: Time,
    /// The end of the record: the requested end, or an earlier one if there were too many
    /// positions.
    pub to: Time,
    /// Whether the record was cut because there were too many positions.
    pub cut: bool,
    /// The positions, by their beginnings, then by slot and admission.
    pub places: Vec<PlaceHeld>,
}

/// An observer that records the jobs in the matrix during a time window.
///
/// It observes the first queue with a matrix. Memory is proportional to the present positions, and
/// to a limited number of those within the window. The record ends at the first instant after its
/// beginning that would exceed the limit. A round costs O(p log p) for p positions in the matrix
/// until the record ends, and nothing from then on.
#[derive(Debug)]
pub struct MatrixWatch {
    from: Time,
    to: Time,
    most: usize,
    procs: Procs,
    round: u64,
    held: BTreeMap<(u64, SlotId), Held>,
    left: Vec<PlaceHeld>,
    cut: bool,
    over: bool,
}

/// The present position of a job.
#[derive(Debug)]
struct Held {
    place: SlotPlace,
    since: Time,
    /// The last round in which it was seen.
    round: u64,
}

impl MatrixWatch {
    /// Returns an observer from `from` to before `to` with at most `most` positions.
    ///
    /// More are kept if the matrix has more at `from`.
    pub fn new(from: Time, to: Time, most: usize) -> MatrixWatch {
        MatrixWatch {
            from,
            to,
            most,
            procs: Procs::ZERO,
            round: 0,
            held: BTreeMap::new(),
            left: vec![],
            cut: false,
            over: false,
        }
    }

    /// Returns whether the record has ended, so that later rounds do not change it.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Returns the record, or `None` if no policy slices time.
    pub fn record(&self) -> Option<MatrixRecord> {
        self.part(self.from, self.to, usize::MAX)
    }

    /// Returns the part of the record from `from` to before `to` with at most `most` positions, or `None` if no policy
    /// slices time.
    ///
    /// It equals the record of an observer of this part that is not cut. O(p log p) for p positions.
    pub fn part(&self, from: Time, to: Time, most: usize) -> Option<MatrixRecord> {
        let mut end = to.min(self.to);
        let held = self.held.values().map(|held| (&held.place, held.since, self.to));
        let left = self.left.iter().map(|held| (&held.place, held.from, held.to));
        let overlaps = |(_, since, until): &(&SlotPlace, Time, Time)| *since < end && *until > from;
        let mut places: Vec<_> = left.chain(held).filter(overlaps).collect();
        places.sort_by_key(|(place, since, _)| (*since, place.slot, place.admission));
        let mut cut = self.cut && end == self.to;
        if let Some(&(_, beyond, _)) = places.get(most) {
            // With too many at `from` already, the record ends at the next change.
            let changes = places.iter().flat_map(|&(_, since, until)| [since, until]);
            let next = changes.filter(|at| *at > from).min().unwrap_or(end);
            let last = if beyond > from { beyond } else { next };
            (cut, end) = (cut || last < end, last.min(end));
            places.retain(|(_, since, _)| *since < end);
        }
        let held = |(place, from, until): (&SlotPlace, Time, Time)| PlaceHeld {
            place: place.clone(),
            from,
            to: until.min(end),
        };
        let places = places.into_iter().map(held).collect();
        (!self.procs.is_zero()).then_some(MatrixRecord { procs: self.procs, from, to: end, cut, places })
    }

    /// Ends the record. Present positions last until `end`.
    fn stop(&mut self, end: Time) {
        if self.over {
            return;
        }
        (self.over, self.to) = (true, end);
        for held in std::mem::take(&mut self.held).into_values() {
            self.leave(held, end);
        }
    }

    /// Records the end of a position, if it overlaps the window for some time.
    fn leave(&mut self, held: Held, to: Time) {
        if held.since < to && to > self.from {
            self.left.push(PlaceHeld { place: held.place, from: held.since, to });
        }
    }

    /// Records the present positions. Unchanged ones continue.
    fn look(&mut self, now: Time, ledger: &Ledger) {
        self.round += 1;
        let round = self.round;
        let mut come = Vec::new();
        each_place(ledger, |seen| match self.held.get_mut(&(seen.admission, seen.slot)) {
            Some(held) if held.place.own == seen.own && held.place.pes == *seen.pes => held.round = round,
            _ => come.push(seen.place()),
        });
        let gone: Vec<(u64, SlotId)> =
            self.held.iter().filter(|(_, held)| held.round < round).map(|(key, _)| *key).collect();
        let many = self.left.len() + self.held.len() + come.len() > self.most;
        if now > self.from && many {
            self.cut = true;
            return self.stop(now);
        }
        for key in gone {
            if let Some(held) = self.held.remove(&key) {
                self.leave(held, now);
            }
        }
        for place in come {
            self.held.insert((place.admission, place.slot), Held { place, since: now, round });
        }
    }
}

impl Observer for MatrixWatch {
    fn system(&mut self, now: Time, system: &System) {
        if self.over {
            return;
        }
        let Some((ledger, matrix)) = sliced(system.queues()) else { return };
        self.procs = matrix.all().count();
        if now < self.to { self.look(now, ledger) } else { self.stop(self.to) }
    }
}

/// An observer that finds the first instant with the most used slots.
///
/// Among several, it is the one at which jobs hold the most processors in their own slots.
#[derive(Debug, Default)]
pub struct MostSlots {
    most: Option<((usize, u64), Time)>,
}

impl MostSlots {
    /// Returns that instant, or `None` if no policy slices time.
    pub fn at(&self) -> Option<Time> {
        self.most.map(|(_, at)| at)
    }
}

impl Observer for MostSlots {
    fn system(&mut self, now: Time, system: &System) {
        let Some((_, matrix)) = sliced(system.queues()) else { return };
        let slots = matrix.used();
        if self.most.is_none_or(|(most, _)| slots >= most.0) {
            let now_taken = (slots, taken(matrix));
            if self.most.is_none_or(|(most, _)| now_taken > most) {
                self.most = Some((now_taken, now));
            }
        }
    }
}

/// Returns the number of allocated processors, summed over the slots. O(slots).
fn taken(matrix: &Matrix) -> u64 {
    let all = matrix.all().count();
    // Jobs keep processors that the machine has lost.
    matrix.slots().map(|(_, row)| all.saturating_sub(row.open_count()).get()).sum()
}
