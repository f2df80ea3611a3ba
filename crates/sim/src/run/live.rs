//! A job in the system, with what only the machine knows of it.

use miserly_core::{Entry, Kind, Machine, PeSet, Placement, Reason, Request, Span, Time, work};

use crate::filling::Filling;
use crate::finished::{Allocation, Finished};
use crate::interruptions::Interrupted;
use crate::job::{Job, LoggedStatus};
use crate::numbering::Numbering;
use crate::slices::{Slices, Turns};

/// A job in the system, with what only the machine knows of it.
pub(super) struct Live {
    pub(super) admission: u64,
    /// The position of its queue.
    pub(super) queue: usize,
    pub(super) request: Request,
    pub(super) runtime: Span,
    pub(super) killed: bool,
    pub(super) status: LoggedStatus,
    pub(super) used_memory: Option<u64>,
    pub(super) started: Option<Started>,
    pub(super) promised: Option<Time>,
    pub(super) broken: bool,
    /// Since when it is where it is, and on which processors, if that was asked for.
    pub(super) stay: Option<Here>,
    pub(super) stays: Vec<Allocation>,
    pub(super) interrupted: Interrupted,
    /// The rows in which it runs, where time is sliced.
    pub(super) turns: Option<Turns>,
    pub(super) lost: u128,
    pub(super) filling: Option<Filling>,
}

/// Where a job is.
pub(super) struct Here {
    pub(super) from: Time,
    pub(super) worked_from: Time,
    /// Since when it does not work any more, if it is being written out.
    pub(super) worked_to: Option<Time>,
    pub(super) placement: Placement,
    pub(super) had: PeSet,
}

pub(super) struct Started {
    pub(super) at: Time,
    pub(super) reason: Reason,
    pub(super) rank: u64,
    /// Its estimate ends before it does, and that is what is due next.
    pub(super) outlives: bool,
}

impl Live {
    pub(super) fn of(job: Job, queue: usize, admission: u64) -> Live {
        Live {
            admission,
            queue,
            request: job.request,
            runtime: job.runtime.0,
            killed: job.killed,
            status: job.status,
            used_memory: job.used_memory,
            started: None,
            promised: None,
            broken: false,
            stay: None,
            stays: Vec::new(),
            interrupted: Interrupted::default(),
            turns: None,
            lost: 0,
            filling: None,
        }
    }

    /// How long it still has to run as it lies now, in its window or ahead of it, to its true end.
    pub(super) fn left(&self, now: Time, entry: &Entry) -> Span {
        entry.time_to(now, self.work())
    }

    /// All of its work, processor-ticks.
    pub(super) fn work(&self) -> u128 {
        work(self.runtime, self.request.procs())
    }

    /// Whether it uses more memory than it has there.
    pub(super) fn outgrows(&self, placement: &Placement, machine: &Machine) -> bool {
        let accounted = machine.capacity().get(Kind::Memory) > 0;
        accounted && self.used_memory.is_some_and(|used| used > placement.total().get(Kind::Memory))
    }

    /// Notes that it is where it lies now.
    pub(super) fn come(&mut self, now: Time, entry: &Entry, pes: &mut Option<Numbering>) {
        self.leave(now, pes);
        let Some((placement, pes)) = entry.placement().zip(pes.as_mut()) else { return };
        let (worked_from, had) = (now + entry.reading(now), pes.take(self.queue, placement));
        self.stay = Some(Here { from: now, worked_from, worked_to: None, placement: placement.clone(), had });
    }

    /// Notes that it is no longer where it was.
    pub(super) fn leave(&mut self, now: Time, pes: &mut Option<Numbering>) {
        let Some(here) = self.stay.take() else { return };
        if let Some(free) = pes {
            free.give(self.queue, &here.placement, &here.had);
        }
        let worked = (here.worked_from.min(now), here.worked_to.unwrap_or(now));
        self.stays.push(Allocation { from: here.from, to: now, worked, pes: here.had });
    }

    /// Notes that it does not work any more.
    pub(super) fn suspend(&mut self, now: Time) {
        self.interrupted.stop(now);
        if let Some(stay) = &mut self.stay {
            stay.worked_to = Some(now);
        }
    }

    /// Notes that it is back in the queue, and that so much of its work is lost, processor-ticks.
    pub(super) fn requeue(&mut self, now: Time, lost: u128, pes: &mut Option<Numbering>) {
        self.lost += lost;
        self.leave(now, pes);
        self.started = None;
    }

    /// Notes in how many rows it runs now, if time is sliced.
    pub(super) fn see_turns(&mut self, now: Time, entry: &Entry) {
        if let Some(turns) = &mut self.turns {
            turns.see(now, 1 + entry.also_in.len());
        }
    }

    pub(super) fn finish(mut self, end: Time, slices: Option<Slices>) -> Option<Finished> {
        let ahead = self.filling.as_ref().map(|filling| filling.did(self.work()));
        let (at, reason) = match (&self.started, ahead) {
            (Some(started), _) => (started.at, Some(started.reason)),
            (None, Some(ahead)) => (ahead.since, None),
            (None, None) => return None,
        };
        let pes = self.stays.last().map(|stay| stay.pes.clone());
        // One that was suspended as it started came to its only place later.
        if self.stays.len() == 1 && self.stays[0].from == at {
            self.stays.clear();
        }
        Some(Finished {
            admission: self.admission,
            request: self.request,
            runtime: self.runtime,
            killed: self.killed,
            status: self.status,
            start: at,
            end,
            reason,
            promised: self.promised,
            broken: self.broken,
            pes,
            stays: self.stays,
            interruptions: self.interrupted.over(end),
            lost: self.lost,
            ahead,
            slices,
        })
    }
}
