//! The state at an instant: the waiting jobs, the running jobs and the past starts.

use miserly_core::{Request, Span, Time};

use crate::NaiveJob;
use crate::NaiveOrder;
use crate::order::sorted_by_usage;
use crate::usage::Run;

/// The machine and its jobs, each identified by its position in `jobs`.
pub(crate) struct World<'a> {
    pub(crate) procs: u64,
    /// The jobs as they were submitted.
    pub(crate) requested: &'a [NaiveJob],
    /// The same jobs with the estimates by which plans hold processors.
    pub(crate) jobs: Vec<NaiveJob>,
    /// The same jobs with the estimates by which orders rank them.
    pub(crate) ranked: Vec<NaiveJob>,
    /// What a guard of the head knows of each job.
    pub(crate) guards: Vec<Guard>,
    pub(crate) now: Time,
    pub(crate) waiting: Vec<usize>,
    /// In the order in which the starts were decided.
    pub(crate) running: Vec<Running>,
    pub(crate) starts: Vec<Option<Time>>,
}

/// The knowledge of a guard about a job.
#[derive(Clone, Copy, Default)]
pub(crate) struct Guard {
    /// A length that few similar jobs exceed. None: there is no guard.
    pub(crate) cautious: Option<Span>,
    /// The instant at which the job was first found blocked at the head, and its shadow time by the last pass at that instant.
    pub(crate) first_shadow: Option<(Time, Time)>,
}

/// A job that has started and has no reported end yet.
#[derive(Clone, Copy)]
pub(crate) struct Running {
    pub(crate) position: usize,
    /// Its start plus its planned span.
    pub(crate) expected: Time,
    /// Its start plus its runtime, for the event loop only.
    pub(crate) end: Time,
    /// Whether the job was reported as overdue.
    pub(crate) noticed: bool,
    /// Whether it ends at this instant, as expected. Its processors then count as free.
    pub(crate) gone: bool,
}

impl World<'_> {
    pub(crate) fn request(&self, position: usize) -> &Request {
        &self.jobs[position].request
    }

    /// Returns the waiting jobs in this order.
    pub(crate) fn queue(&self, order: NaiveOrder) -> Vec<usize> {
        self.sorted(self.waiting.clone(), order)
    }

    /// Returns these jobs in this order.
    pub(crate) fn sorted(&self, positions: Vec<usize>, order: NaiveOrder) -> Vec<usize> {
        sorted_by_usage(positions, &self.ranked, order, self.now, &self.runs())
    }

    /// Returns all runs so far.
    fn runs(&self) -> Vec<Run> {
        let run = |(position, start): (usize, &Option<Time>)| {
            let job = &self.requested[position];
            let start = (*start)?;
            let end = (start + job.runtime.0).min(self.now);
            let (user, group) = (job.request.user, job.request.group);
            Some(Run { user, group, procs: job.request.procs().get(), start, end })
        };
        self.starts.iter().enumerate().filter_map(run).collect()
    }

    /// Returns the jobs that hold processors now.
    pub(crate) fn holding(&self) -> impl Iterator<Item = &Running> {
        self.running.iter().filter(|running| !running.gone)
    }

    /// Returns the jobs that run past their expected ends.
    pub(crate) fn overdue(&self) -> impl Iterator<Item = &Running> {
        self.holding().filter(|running| running.expected <= self.now)
    }

    /// Returns whether a job is overdue.
    pub(crate) fn any_overdue(&self) -> bool {
        self.overdue().next().is_some()
    }

    pub(crate) fn fits_now(&self, position: usize) -> bool {
        let held: u64 = self.holding().map(|running| self.request(running.position).procs().get()).sum();
        held + self.request(position).procs().get() <= self.procs
    }

    pub(crate) fn start(&mut self, position: usize) {
        assert!(self.fits_now(position), "job {} does not fit", self.request(position).number);
        let expected = self.now + self.request(position).planned();
        let end = self.now + self.jobs[position].runtime.0;
        self.waiting.retain(|&other| other != position);
        self.running.push(Running { position, expected, end, noticed: false, gone: false });
        self.starts[position] = Some(self.now);
    }
}
