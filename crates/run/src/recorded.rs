//! The schedule that a log records, measured like a simulated one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use miserly_core::{Span, StartReason, Time};
use miserly_sim::{Finished, Interruptions, Metrics, Observer};
use miserly_workload::{Job as LoggedJob, LineCounts};

use crate::document::{NO_RECORDED_WAIT, RunDoc};
use crate::setup::{RunSetup, logged_status};

/// The name of the recorded schedule where a run has its policy.
pub const RECORDED: &str = "recorded";

impl RunSetup {
    /// Returns the recorded schedule before the first job, unless the options exclude it.
    pub(crate) fn recorded_schedule(&self) -> Option<RecordedSchedule> {
        let excluded = self.options.jobs.moves_submissions() || self.options.batches.is_some();
        (!excluded).then(|| RecordedSchedule::new(self.empty_metrics()))
    }

    /// Returns the measures of the waits that a log records, before the first job.
    fn empty_metrics(&self) -> Metrics {
        let warmup = Span::from_secs(self.options.warmup).unwrap_or(Span::MAX);
        Metrics::new(self.procs(), warmup).grouped(&self.options.by)
    }
}

/// The recorded schedule, as far as it was read.
pub(crate) struct RecordedSchedule {
    metrics: Metrics,
    admitted: u64,
    without_wait: u64,
    any_wait: bool,
    /// The starts of the waiting jobs at the last submission.
    starts: BinaryHeap<Reverse<Time>>,
    longest_queue: usize,
}

impl RecordedSchedule {
    fn new(metrics: Metrics) -> RecordedSchedule {
        let starts = BinaryHeap::new();
        RecordedSchedule { metrics, admitted: 0, without_wait: 0, any_wait: false, starts, longest_queue: 0 }
    }

    /// Adds the next job in the order of submission.
    pub(crate) fn add(&mut self, job: &LoggedJob) {
        self.metrics.submitted(job.request.submit, &job.request);
        match job.recorded_wait {
            Some(wait) => self.measure(job, wait),
            None => self.without_wait += 1,
        }
        self.admitted += 1;
    }

    fn measure(&mut self, job: &LoggedJob, wait: Span) {
        let start = job.request.submit + wait;
        if wait > Span::ZERO {
            self.any_wait = true;
            self.wait_until(job.request.submit, start);
        }
        self.metrics.measure_end(&Finished {
            admission: self.admitted,
            runtime: job.runtime.0,
            killed: job.killed,
            status: logged_status(job.status),
            start,
            end: start + job.runtime.0,
            reason: Some(StartReason::Reserved),
            promised: None,
            reserved: None,
            broken: false,
            pes: None,
            allocations: Vec::new(),
            interruptions: Interruptions::default(),
            lost: 0,
            opportunistic: None,
            slices: None,
            request: job.request.clone(),
        });
    }

    /// Adds a waiting job to the queue. Jobs that start at its submission are no longer there.
    fn wait_until(&mut self, submit: Time, start: Time) {
        while self.starts.peek().is_some_and(|Reverse(first)| *first <= submit) {
            self.starts.pop();
        }
        self.starts.push(Reverse(start));
        self.longest_queue = self.longest_queue.max(self.starts.len());
    }

    /// Returns the measures of the whole log, which has these counts. Returns `None` if it has no positive wait.
    pub(crate) fn document(mut self, setup: &RunSetup, counts: &LineCounts) -> Option<RunDoc> {
        if !self.any_wait {
            return None;
        }
        let (settings, trace) = (setup.settings(), setup.trace_doc());
        let mut document = RunDoc::new(RECORDED.into(), settings, trace, counts, &mut self.metrics, 0.0);
        document.loss_of_capacity = None;
        document.kept_idle = None;
        document.queue_length.max = self.longest_queue;
        if self.without_wait > 0 {
            document.jobs.skipped.insert(NO_RECORDED_WAIT.into(), self.without_wait);
            document.batch_sums = setup.empty_metrics().batches;
        }
        Some(document)
    }
}

#[cfg(test)]
mod tests {
    use miserly_workload::Trace;

    use super::*;
    use crate::options::RunOptions;

    /// Two jobs on ten processors, with these recorded waits in seconds.
    fn recorded(waits: [i64; 2]) -> Option<RunDoc> {
        let [first, second] = waits;
        let log = format!(
            "; MaxProcs: 10\n1 100 {first} 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n\
             2 110 {second} 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n"
        );
        let setup = RunSetup::new(Trace::memory("log", log.into()), RunOptions::default()).unwrap();
        setup.outcome_and_recorded(&"fcfs".parse().unwrap(), false, &mut []).unwrap().1
    }

    #[test]
    fn the_waits_of_the_log_are_measured() {
        let document = recorded([20, 40]).unwrap();
        assert_eq!((document.policy.as_str(), document.jobs.simulated), (RECORDED, 2));
        assert_eq!((document.metrics.wait.mean, document.metrics.response.mean), (Some(30.0), Some(90.0)));
        assert_eq!((document.queue_length.max, document.makespan), (2, Some(110.0)));
    }

    #[test]
    fn a_log_without_waits_has_no_recorded_schedule() {
        assert!(recorded([-1, -1]).is_none() && recorded([0, 0]).is_none());
    }

    #[test]
    fn jobs_without_a_recorded_wait_are_counted() {
        let document = recorded([20, -1]).unwrap();
        assert_eq!((document.jobs.simulated, document.jobs.left_out()), (1, 1));
    }
}
