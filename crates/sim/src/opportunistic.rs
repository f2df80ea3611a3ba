//! The background load: opportunistic jobs before their starts, and interactive work.

use std::iter::Peekable;

use miserly_core::{Procs, Span, Time, work};

use crate::finished::OpportunisticWork;

/// The processors of interactive work from each instant on, in order.
type Changes = Box<dyn Iterator<Item = (Time, Procs)> + Send>;

/// The processors in use that no ledger counts.
pub(crate) struct BackgroundLoad {
    changes: Peekable<Changes>,
    interactive: Procs,
    opportunistic: Procs,
}

impl BackgroundLoad {
    /// Returns a load without interactive work.
    pub(crate) fn none() -> BackgroundLoad {
        BackgroundLoad::new(Box::new(std::iter::empty()))
    }

    pub(crate) fn new(changes: Changes) -> BackgroundLoad {
        BackgroundLoad { changes: changes.peekable(), interactive: Procs::ZERO, opportunistic: Procs::ZERO }
    }

    /// Returns the next change of interactive work.
    pub(crate) fn next(&mut self) -> Option<Time> {
        self.changes.peek().map(|(at, _)| *at)
    }

    /// Returns the processors of interactive work, if they have changed.
    pub(crate) fn change(&mut self, now: Time) -> Option<Procs> {
        let before = self.interactive;
        while let Some((_, procs)) = self.changes.next_if(|(at, _)| *at <= now) {
            self.interactive = procs;
        }
        (self.interactive != before).then_some(self.interactive)
    }

    /// Returns all processors of the load.
    pub(crate) fn procs(&self) -> Procs {
        self.interactive + self.opportunistic
    }

    /// Changes the processors of an opportunistic job.
    pub(crate) fn set_opportunistic_procs(&mut self, job: Option<&mut BeforeStart>, now: Time, procs: Procs) {
        let Some(job) = job else { return };
        self.opportunistic = self.opportunistic + procs - job.procs;
        job.run_on(now, procs);
    }
}

/// A job before its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeforeStart {
    done: OpportunisticWork,
    /// The instant up to which that is counted.
    at: Time,
    /// The processors that it runs on since then.
    procs: Procs,
}

impl BeforeStart {
    /// Returns a job that runs before its start for the first time.
    pub(crate) fn since(now: Time) -> BeforeStart {
        BeforeStart {
            done: OpportunisticWork { since: now, ran: Span::ZERO, work: 0 },
            at: now,
            procs: Procs::ZERO,
        }
    }

    fn run_on(&mut self, now: Time, procs: Procs) {
        let span = now - self.at;
        if !self.procs.is_zero() {
            self.done.ran += span;
            self.done.work += work(span, self.procs);
        }
        (self.at, self.procs) = (now, procs);
    }

    /// Returns its work, at most `all`: on some numbers of processors it ends within its last tick.
    pub(crate) fn work(&self, all: u128) -> OpportunisticWork {
        OpportunisticWork { work: self.done.work.min(all), ..self.done }
    }
}
