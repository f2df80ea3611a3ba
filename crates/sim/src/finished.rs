//! Finished jobs, and the observers of a run.

use std::io;

use miserly_core::{Effect, JobNumber, PeSet, Procs, Refusal, Request, Span, StartReason, System, Time};

use crate::{Interruptions, Label, LabelValue, LoggedStatus, Slices};

/// A finished job.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its position in the order of submission, from 0: the same under every policy.
    pub admission: u64,
    /// The request of its user.
    pub request: Request,
    /// The time that it runs on the processors that it requests.
    pub runtime: Span,
    /// Whether it was killed at its time limit.
    pub killed: bool,
    /// The end of the job as its log has it.
    pub status: LoggedStatus,
    /// The properties by which the jobs of the run are grouped.
    pub labels: Vec<(Label, LabelValue)>,
    /// The time of its start; if it was requeued, of the last one.
    ///
    /// An opportunistic job that ended before its start has the time at which it first ran.
    pub start: Time,
    /// The time of its end.
    pub end: Time,
    /// The start reason; `None` if it ended before its start.
    pub reason: Option<StartReason>,
    /// The latest start of its first promise.
    pub promised: Option<Time>,
    /// The first start that its policy promised or planned ahead.
    pub reserved: Option<Time>,
    /// Whether that promise, or a better one after it, was broken.
    pub broken: bool,
    /// The processors of its last allocation, if processors are numbered.
    pub pes: Option<PeSet>,
    /// Its allocations, if processors are numbered and there was not one from the start to the end.
    pub allocations: Vec<Allocation>,
    /// Its suspensions: their number, their time, and their cost.
    pub interruptions: Interruptions,
    /// The work that was lost, processor-ticks.
    pub lost: u128,
    /// Its work before its start, on idle processors, if any.
    pub opportunistic: Option<OpportunisticWork>,
    /// The slots in which it ran, if time is sliced.
    pub slices: Option<Slices>,
}

impl Finished {
    /// Returns the time in the system less the runtime on the requested processors (Chiang and
    /// Vernon §4.4).
    ///
    /// It has the time in the queue, the suspensions, the time lost with fewer processors, and work
    /// that was lost.
    pub fn wait(&self) -> Span {
        (self.response() - self.runtime).max(Span::ZERO)
    }

    /// Returns the time in the system.
    pub fn response(&self) -> Span {
        self.end - self.request.submit
    }

    /// Returns the start reason as tables and files have it; `opportunistic` for a job that ended before
    /// its start.
    pub fn reason_word(&self) -> &'static str {
        self.reason.map_or("opportunistic", StartReason::name)
    }
}

/// The work of an opportunistic job before its start, on idle processors (Miser §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpportunisticWork {
    /// The time at which it first ran.
    pub since: Time,
    /// The time that it ran, without the times at which it was parked.
    pub ran: Span,
    /// The work, processor-ticks.
    pub work: u128,
}

/// Processors that a job holds for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The time at which it gets them.
    pub from: Time,
    /// The time at which it releases them.
    pub to: Time,
    /// Begin and end of its work there. It is swapped in before, and swapped out afterwards.
    pub worked: (Time, Time),
    /// The processors.
    pub pes: PeSet,
}

/// The state of the machine and its queues at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemSnapshot {
    /// Processors without a job.
    pub free: Procs,
    /// Free processors that are kept idle, on hosts that are reserved for a waiting job.
    pub kept: Procs,
    /// Jobs in the queue.
    pub waiting: usize,
    /// Slots in use, if time is sliced; of all queues together.
    pub slots: usize,
    /// The work of all jobs that were submitted so far, processor-ticks.
    pub submitted_work: u128,
}

/// An observer of a run.
pub trait Observer {
    /// Called when a job was submitted.
    fn submitted(&mut self, _now: Time, _request: &Request) {}

    /// Called for each decision about a job.
    fn effect(&mut self, _now: Time, _job: JobNumber, _effect: &Effect) {}

    /// Called at the end of an instant.
    fn instant(&mut self, _now: Time, _snapshot: SystemSnapshot) {}

    /// Called at the end of a round, with the ledgers. An instant may have several rounds.
    fn system(&mut self, _now: Time, _system: &System) {}

    /// Returns whether the run may end. One observer is enough to end it.
    fn has_enough(&self) -> bool {
        false
    }

    /// Called when the policy refuses a job, which leaves the system.
    ///
    /// # Errors
    /// As [`finished`](Observer::finished).
    fn refused(&mut self, _now: Time, _request: &Request, _why: Refusal) -> io::Result<()> {
        Ok(())
    }

    /// Called before [`refused`](Observer::refused) when the job ran before: it was taken off the machine for good.
    fn removed(&mut self, _admission: u64, _request: &Request, _allocations: &[Allocation]) {}

    /// Called when a job ended, in the order of the ends.
    ///
    /// # Errors
    /// If the observer cannot write. The run ends there.
    fn finished(&mut self, _job: &Finished) -> io::Result<()> {
        Ok(())
    }
}
