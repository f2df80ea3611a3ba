//! The expected allocation of processors over time.

use miserly_core::{Span, Time};

use crate::world::World;

/// A waiting job and its reserved start.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reservation {
    pub(crate) position: usize,
    pub(crate) start: Time,
}

/// The running jobs and some reservations, as of the current instant.
pub(crate) struct Plan {
    procs: u64,
    now: Time,
    held: Vec<Held>,
}

/// Processors that are allocated in `[from, until)`.
struct Held {
    from: Time,
    until: Time,
    procs: u64,
}

impl Plan {
    pub(crate) fn new(world: &World<'_>, reservations: &[Reservation]) -> Plan {
        let mut held = Vec::new();
        for running in world.holding() {
            // An overdue job may end at any moment, but it still holds its processors now.
            let until = running.expected.max(world.now + Span::TICK);
            held.push(Held { from: world.now, until, procs: world.request(running.position).procs().get() });
        }
        for reservation in reservations {
            let request = world.request(reservation.position);
            let until = reservation.start + request.planned();
            held.push(Held { from: reservation.start, until, procs: request.procs().get() });
        }
        Plan { procs: world.procs, now: world.now, held }
    }

    /// Returns the number of free processors at that instant. It is negative if the plan
    /// over-commits the machine.
    pub(crate) fn free_at(&self, time: Time) -> i128 {
        let holding = self.held.iter().filter(|held| held.from <= time && time < held.until);
        i128::from(self.procs) - holding.map(|held| i128::from(held.procs)).sum::<i128>()
    }

    /// Returns the earliest instant, not before `not_before`, from which `procs` processors are
    /// free for `span`.
    pub(crate) fn earliest_hole(&self, not_before: Time, procs: u64, span: Span) -> Time {
        let ends = self.held.iter().map(|held| held.until).filter(|&until| until > not_before);
        std::iter::once(not_before)
            .chain(ends)
            .filter(|&start| self.is_hole(start, procs, span))
            .min()
            .expect("after the last end the whole machine is free")
    }

    /// Returns whether `procs` processors are free from `start` on for `span`.
    pub(crate) fn is_hole(&self, start: Time, procs: u64, span: Span) -> bool {
        // The number of free processors decreases only where an allocation begins.
        let begins =
            self.held.iter().map(|held| held.from).filter(|&from| start < from && from < start + span);
        std::iter::once(start).chain(begins).all(|time| self.free_at(time) >= i128::from(procs))
    }

    /// Returns whether the plan over-commits the machine at some instant from now on.
    pub(crate) fn over_commits(&self) -> bool {
        let begins = self.held.iter().map(|held| held.from).filter(|&from| from >= self.now);
        std::iter::once(self.now).chain(begins).any(|time| self.free_at(time) < 0)
    }

    /// Returns every instant at which an allocation ends.
    pub(crate) fn ends(&self) -> impl Iterator<Item = Time> {
        self.held.iter().map(|held| held.until)
    }
}
