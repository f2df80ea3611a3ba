//! A job in the system, with the facts that only the machine knows.

use miserly_core::{Entry, Kind, Machine, PeSet, Placement, Request, Span, StartReason, Time, work};

use crate::finished::{Allocation, Finished};
use crate::interruptions::Interrupted;
use crate::job::{Job, LoggedStatus};
use crate::label::{Label, LabelValue};
use crate::numbering::Numbering;
use crate::opportunistic::BeforeStart;
use crate::slices::{Slices, Turns};

/// A job in the system, with the facts that only the machine knows.
pub(super) struct Live {
    pub(super) admission: u64,
    /// The position of its queue.
    pub(super) queue: usize,
    pub(super) request: Request,
    pub(super) runtime: Span,
    pub(super) killed: bool,
    pub(super) status: LoggedStatus,
    pub(super) used_memory: Option<u64>,
    labels: Vec<(Label, LabelValue)>,
    pub(super) started: Option<Started>,
    pub(super) promised: Option<Time>,
    pub(super) reserved: Option<Time>,
    pub(super) broken: bool,
    /// Its present allocation, if processors are numbered.
    pub(super) allocated: Option<Allocated>,
    pub(super) allocations: Vec<Allocation>,
    pub(super) interrupted: Interrupted,
    /// The slots in which it runs, if time is sliced.
    pub(super) turns: Option<Turns>,
    pub(super) lost: u128,
    pub(super) opportunistic: Option<BeforeStart>,
}

/// The present allocation of a job.
pub(super) struct Allocated {
    pub(super) from: Time,
    pub(super) worked_from: Time,
    /// The end of its work, if it is being swapped out.
    pub(super) worked_to: Option<Time>,
    pub(super) placement: Placement,
    pub(super) had: PeSet,
}

pub(super) struct Started {
    pub(super) at: Time,
    pub(super) reason: StartReason,
    pub(super) rank: u64,
    /// Its next event.
    pub(super) due: Due,
}

/// The next event of a job on the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The end of its estimate, after which it runs on.
    EndOfEstimate,
    /// Its end.
    End,
}

impl Live {
    pub(super) fn new(job: Job, queue: usize, admission: u64) -> Live {
        Live {
            admission,
            queue,
            request: job.request,
            runtime: job.runtime.0,
            killed: job.killed,
            status: job.status,
            used_memory: job.used_memory,
            labels: job.labels,
            started: None,
            promised: None,
            reserved: None,
            broken: false,
            allocated: None,
            allocations: Vec::new(),
            interrupted: Interrupted::default(),
            turns: None,
            lost: 0,
            opportunistic: None,
        }
    }

    /// Returns the time to its end with its present processors.
    pub(super) fn left(&self, now: Time, entry: &Entry) -> Span {
        entry.time_to(now, self.work())
    }

    /// Returns all of its work, processor-ticks.
    pub(super) fn work(&self) -> u128 {
        work(self.runtime, self.request.procs())
    }

    /// Returns whether it uses more memory than it has there.
    pub(super) fn outgrows(&self, placement: &Placement, machine: &Machine) -> bool {
        let accounted = machine.capacity().get(Kind::Memory) > 0;
        accounted && self.used_memory.is_some_and(|used| used > placement.total().get(Kind::Memory))
    }

    /// Begins the allocation that the ledger has.
    pub(super) fn allocate(&mut self, now: Time, entry: &Entry, pes: &mut Option<Numbering>) {
        self.release(now, pes);
        let Some((placement, pes)) = entry.placement().zip(pes.as_mut()) else { return };
        let (worked_from, had) = (now + entry.reading(now), pes.take(self.queue, placement));
        self.allocated =
            Some(Allocated { from: now, worked_from, worked_to: None, placement: placement.clone(), had });
    }

    /// Ends its allocation.
    pub(super) fn release(&mut self, now: Time, pes: &mut Option<Numbering>) {
        let Some(here) = self.allocated.take() else { return };
        if let Some(free) = pes {
            free.give(self.queue, &here.placement, &here.had);
        }
        let worked = (here.worked_from.min(now), here.worked_to.unwrap_or(now));
        self.allocations.push(Allocation { from: here.from, to: now, worked, pes: here.had });
    }

    /// Ends its work until it is resumed.
    pub(super) fn suspend(&mut self, now: Time) {
        self.interrupted.stop(now);
        if let Some(allocated) = &mut self.allocated {
            allocated.worked_to = Some(now);
        }
    }

    /// Records the first start that lies ahead.
    pub(super) fn reserve(&mut self, now: Time, start: Time) {
        if now < start && start < Time::MAX {
            self.reserved.get_or_insert(start);
        }
    }

    /// Puts it back into the queue. `lost` is the work that is lost, processor-ticks.
    pub(super) fn requeue(&mut self, now: Time, lost: u128, pes: &mut Option<Numbering>) {
        self.lost += lost;
        self.release(now, pes);
        self.started = None;
    }

    /// Labels the job by the type of the devices that it got, if any.
    pub(super) fn note_device_type(&mut self, entry: &Entry, machine: &Machine) {
        let first = entry.placement().and_then(|placement| placement.devices().first());
        if let Some((table, held)) = machine.devices().zip(first) {
            let class = &table.classes()[table.cell(held.cell).class];
            self.labels.retain(|(label, _)| *label != Label::GpuType);
            self.labels.push((Label::GpuType, LabelValue::new(0, &class.name)));
        }
    }

    /// Records the number of slots in which it runs, if time is sliced.
    pub(super) fn record_slots(&mut self, now: Time, entry: &Entry) {
        if let Some(turns) = &mut self.turns {
            turns.see(now, 1 + entry.alternate_slots.len());
        }
    }

    /// Returns the finished job, unless it never ran.
    pub(super) fn finish(mut self: Box<Self>, end: Time, slices: Option<Slices>) -> Option<Finished> {
        let opportunistic = self.opportunistic.as_ref().map(|before| before.work(self.work()));
        let (at, reason) = match (&self.started, opportunistic) {
            (Some(started), _) => (started.at, Some(started.reason)),
            (None, Some(work)) => (work.since, None),
            (None, None) => return None,
        };
        let pes = self.allocations.last().map(|last| last.pes.clone());
        // A job that was suspended as it started got its only allocation later.
        if self.allocations.len() == 1 && self.allocations[0].from == at {
            self.allocations.clear();
        }
        Some(Finished {
            admission: self.admission,
            request: self.request,
            runtime: self.runtime,
            killed: self.killed,
            status: self.status,
            labels: self.labels,
            start: at,
            end,
            reason,
            promised: self.promised,
            reserved: self.reserved,
            broken: self.broken,
            pes,
            allocations: self.allocations,
            interruptions: self.interrupted.over(end),
            lost: self.lost,
            opportunistic,
            slices,
        })
    }
}
