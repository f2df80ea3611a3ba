//! A job whose part in the run is over, and who wants to know.

use std::io;

use miserly_core::{Effect, JobNumber, PeSet, Reason, Request, Span, Time};
use miserly_workload::swf::Record;

/// What became of one job.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its place in the order of submission, from 0: the same under every policy.
    pub admission: u64,
    /// What its user asked for.
    pub request: Request,
    /// How long it ran.
    pub runtime: Span,
    /// Whether it was killed at its estimate.
    pub killed: bool,
    /// When it started.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// Why it started then.
    pub reason: Reason,
    /// The latest start that it was promised, as first told.
    pub promised: Option<Time>,
    /// Whether that promise, or a better one after it, was broken.
    pub broken: bool,
    /// The processors it ran on, if they were asked for.
    pub pes: Option<PeSet>,
    /// Its line in the log, if it was kept.
    pub record: Option<Box<Record>>,
}

impl Finished {
    /// Time in the queue.
    pub fn wait(&self) -> Span {
        self.start - self.request.submit
    }

    /// Time in the system.
    pub fn response(&self) -> Span {
        self.end - self.request.submit
    }
}

/// Somebody who watches a run.
pub trait Observer {
    /// A job was submitted.
    fn submitted(&mut self, _now: Time, _request: &Request) {}

    /// The scheduler did something with a job.
    fn effect(&mut self, _now: Time, _job: JobNumber, _effect: &Effect) {}

    /// An instant is over: so many processors are free, and so many jobs wait.
    fn instant(&mut self, _now: Time, _free: u64, _waiting: usize) {}

    /// A job ended. Called in the order of the ends.
    ///
    /// # Errors
    /// If what the observer writes cannot be written; the run ends there.
    fn finished(&mut self, _job: &Finished) -> io::Result<()> {
        Ok(())
    }
}
