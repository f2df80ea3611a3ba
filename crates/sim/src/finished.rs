//! A job whose part in the run is over, and who wants to know.

use std::io;

use miserly_core::{Effect, JobNumber, PeSet, Reason, Refusal, Request, Span, System, Time};

use crate::{Interruptions, LoggedStatus, Slices};

/// What became of one job.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its place in the order of submission, from 0: the same under every policy.
    pub admission: u64,
    /// What its user asked for.
    pub request: Request,
    /// How long it runs on the processors that it asked for.
    pub runtime: Span,
    /// Whether it was killed at its estimate.
    pub killed: bool,
    /// The end of the job as its log has it.
    pub status: LoggedStatus,
    /// When it started; if it was requeued, the last time. Of one that was done before its start, when it first ran.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Why it started then; `None` if it was done before its start.
    pub reason: Option<Reason>,
    /// The latest start that it was promised, as first told.
    pub promised: Option<Time>,
    /// Whether that promise, or a better one after it, was broken.
    pub broken: bool,
    /// The processors it ran on, in the end, if they were asked for.
    pub pes: Option<PeSet>,
    /// Where it was when, if that was asked for and was not one place from the start to the end.
    pub stays: Vec<Allocation>,
    /// How often it was suspended, for how long, and what that cost.
    pub interruptions: Interruptions,
    /// The work that it did and that was lost, processor-ticks.
    pub lost: u128,
    /// What it did before its start, on what was idle, if anything.
    pub ahead: Option<Ahead>,
    /// The rows in which it ran, where time is sliced.
    pub slices: Option<Slices>,
}

impl Finished {
    /// Time in the system less the runtime on the processors asked for: time in the queue, and what it lost while it was
    /// suspended, had fewer processors, or did work that was thrown away (Chiang and Vernon §4.4).
    pub fn wait(&self) -> Span {
        (self.response() - self.runtime).max(Span::ZERO)
    }

    /// Time in the system.
    pub fn response(&self) -> Span {
        self.end - self.request.submit
    }

    /// Why it started, as tables and files have it: `ahead` of one that was done before its start.
    pub fn reason_word(&self) -> &'static str {
        self.reason.map_or("ahead", Reason::as_str)
    }
}

/// What a job did ahead of its start, on what was idle (Miser §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// When it first ran.
    pub since: Time,
    /// For how long it ran, the times when it was parked left out.
    pub ran: Span,
    /// The work that it did, processor-ticks.
    pub work: u128,
}

/// Some time on some processors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// When it came there.
    pub from: Time,
    /// When it left.
    pub to: Time,
    /// From when to when it worked there: before, it was read back, and afterwards written out.
    pub worked: (Time, Time),
    /// The processors.
    pub pes: PeSet,
}

/// The machine and its queue at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SystemSnapshot {
    /// Processors that nobody holds.
    pub free: u64,
    /// Those among them that are kept idle: on hosts that are reserved for a waiting job.
    pub kept: u64,
    /// Jobs in the queue.
    pub waiting: usize,
    /// Rows that are used, where time is sliced; of all queues together.
    pub rows: usize,
    /// The work of all jobs that were submitted so far, processor-ticks.
    pub arrived: u128,
}

/// Somebody who watches a run.
pub trait Observer {
    /// A job was submitted.
    fn submitted(&mut self, _now: Time, _request: &Request) {}

    /// The scheduler did something with a job.
    fn effect(&mut self, _now: Time, _job: JobNumber, _effect: &Effect) {}

    /// An instant is over, and this is how all stands.
    fn instant(&mut self, _now: Time, _standing: SystemSnapshot) {}

    /// The same, for whoever has to look closer: at the ledgers. An instant may have several rounds, with an end each.
    fn system(&mut self, _now: Time, _system: &System) {}

    /// Whether the run may end here; asked after each instant. One is enough to end it.
    fn has_enough(&self) -> bool {
        false
    }

    /// The policy will never start the job, which has left the system.
    ///
    /// # Errors
    /// As [`finished`](Observer::finished).
    fn refused(&mut self, _now: Time, _request: &Request, _why: Refusal) -> io::Result<()> {
        Ok(())
    }

    /// A job ended. Called in the order of the ends.
    ///
    /// # Errors
    /// If what the observer writes cannot be written; the run ends there.
    fn finished(&mut self, _job: &Finished) -> io::Result<()> {
        Ok(())
    }
}
