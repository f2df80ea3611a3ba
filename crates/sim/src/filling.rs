//! Work beside the queues' own: jobs that run ahead of their starts, and interactive work.

use std::iter::Peekable;

use miserly_core::{Span, Time, work};

use crate::finished::Ahead;

/// From when on interactive work uses how many processors, in order.
type Changes = Box<dyn Iterator<Item = (Time, u64)> + Send>;

/// How many processors are in use beside those that the queues' ledgers tell of.
pub(crate) struct InteractiveLoad {
    changes: Peekable<Changes>,
    interactive: u64,
    filling: u64,
}

impl InteractiveLoad {
    /// Nobody works interactively.
    pub(crate) fn none() -> InteractiveLoad {
        InteractiveLoad::of(Box::new(std::iter::empty()))
    }

    pub(crate) fn of(changes: Changes) -> InteractiveLoad {
        InteractiveLoad { changes: changes.peekable(), interactive: 0, filling: 0 }
    }

    /// When interactive work changes next.
    pub(crate) fn next(&mut self) -> Option<Time> {
        self.changes.peek().map(|(at, _)| *at)
    }

    /// How many processors interactive work uses now, if that has changed.
    pub(crate) fn change(&mut self, now: Time) -> Option<u64> {
        let before = self.interactive;
        while let Some((_, procs)) = self.changes.next_if(|(at, _)| *at <= now) {
            self.interactive = procs;
        }
        (self.interactive != before).then_some(self.interactive)
    }

    /// All the processors in use here.
    pub(crate) fn procs(&self) -> u64 {
        self.interactive + self.filling
    }

    /// Lets a job go on ahead of its start with so many processors, if it does at all.
    pub(crate) fn fill(&mut self, job: Option<&mut Filling>, now: Time, procs: u64) {
        let Some(job) = job else { return };
        self.filling = self.filling + procs - job.procs;
        job.go_on(now, procs);
    }
}

/// What a job does ahead of its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    ahead: Ahead,
    /// As of when that is counted.
    at: Time,
    /// The processors that it runs on since then.
    procs: u64,
}

impl Filling {
    /// Of a job that runs ahead of its start for the first time.
    pub(crate) fn since(now: Time) -> Filling {
        Filling { ahead: Ahead { since: now, ran: Span::ZERO, work: 0 }, at: now, procs: 0 }
    }

    fn go_on(&mut self, now: Time, procs: u64) {
        let span = now - self.at;
        if self.procs > 0 {
            self.ahead.ran += span;
            self.ahead.work += work(span, self.procs.into());
        }
        (self.at, self.procs) = (now, procs);
    }

    /// What it did, of so much work in all: on some numbers of processors it is done within its last tick.
    pub(crate) fn did(&self, all: u128) -> Ahead {
        Ahead { work: self.ahead.work.min(all), ..self.ahead }
    }
}
