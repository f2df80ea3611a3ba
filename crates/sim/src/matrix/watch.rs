//! The matrix over time: who was where from when to when, and when there were the most slots.

use std::collections::BTreeMap;

use miserly_core::{Ledger, Matrix, Procs, SlotId, System, Time};

use super::{SlotPlace, each_place, sliced};
use crate::Observer;

/// A place, and from when to when a job had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceHeld {
    /// The place.
    pub place: SlotPlace,
    /// When the job came there.
    pub from: Time,
    /// When it left, or where the record ends.
    pub to: Time,
}

/// What was recorded of a matrix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixRecord {
    /// The processors of the machine.
    pub procs: Procs,
    /// Where the record begins. Places that jobs had already then have their true begins.
    pub from: Time,
    /// Where it ends: at the end of what was asked for, or before it, where there were too many places.
    pub to: Time,
    /// Whether there were too many.
    pub cut: bool,
    /// The places, by their begins, then by slot and admission.
    pub places: Vec<PlaceHeld>,
}

/// Records the places of jobs in the matrix over a window of time, of the first queue whose policy has one.
///
/// Memory follows the places that there are at a time, and those that fall into the window, of which it keeps a given number: the record
/// ends at the first instant after its begin that would bring more. A round costs O(p log p) for p places in the matrix until the
/// record ends, and nothing from then on.
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

/// A place that a job has.
#[derive(Debug)]
struct Held {
    place: SlotPlace,
    since: Time,
    /// The last round in which it was seen.
    round: u64,
}

impl MatrixWatch {
    /// Watches from `from` to before `to`, and keeps `most` places; more, if so many jobs are in the matrix at `from`.
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

    /// Whether the record has ended, so that nothing that follows matters to it.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// What was recorded; `None` if no policy slices time.
    pub fn record(mut self) -> Option<MatrixRecord> {
        self.stop(self.to);
        self.left.sort_by_key(|held| (held.from, held.place.slot, held.place.admission));
        let MatrixWatch { procs, from, to, cut, left: places, .. } = self;
        (!procs.is_zero()).then_some(MatrixRecord { procs, from, to, cut, places })
    }

    /// Ends the record; what jobs have now, they have until then.
    fn stop(&mut self, end: Time) {
        if self.over {
            return;
        }
        (self.over, self.to) = (true, end);
        for held in std::mem::take(&mut self.held).into_values() {
            self.leave(held, end);
        }
    }

    /// Notes that a place was left, if anybody could have seen it.
    fn leave(&mut self, held: Held, to: Time) {
        if held.since < to && to > self.from {
            self.left.push(PlaceHeld { place: held.place, from: held.since, to });
        }
    }

    /// Notes the places that are there now: those that were there before go on.
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

/// Finds the first instant at which the most slots are used, and among such the one at which jobs have the most places of their own.
#[derive(Debug, Default)]
pub struct MostSlots {
    most: Option<((usize, u64), Time)>,
}

impl MostSlots {
    /// When that was; `None` if no policy slices time.
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

/// How many processors are taken, summed over the slots. O(slots).
fn taken(matrix: &Matrix) -> u64 {
    let all = matrix.all().count();
    // Jobs keep processors that the machine has lost.
    matrix.slots().map(|(_, row)| all.saturating_sub(row.open_count()).get()).sum()
}
