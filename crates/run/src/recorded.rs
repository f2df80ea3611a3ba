//! The schedule that a log records, measured like a simulated one: with the recorded waits and runtimes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use miserly_core::{Span, StartReason, Time, work};
use miserly_sim::{Finished, Interruptions, Label, LabelValue, Metrics, Observer, Series};
use miserly_workload::{Job as LoggedJob, LineCounts, TraceError};

use crate::document::{DetailsDoc, NO_RECORDED_WAIT, RecordDoc, RunDoc};
use crate::setup::{RunSetup, labels, logged_status};

/// The name of the recorded schedule where a run has its policy.
pub const RECORDED: &str = "recorded";

impl RunSetup {
    /// Returns the recorded schedule before the first job, unless the options exclude it.
    pub(crate) fn recorded_schedule(&self) -> Option<RecordedSchedule> {
        let moved = self.options.jobs.moves_submissions() || self.options.feedback.is_some();
        let excluded = moved || self.options.batches.is_some();
        (!excluded).then(|| RecordedSchedule::new(self.empty_metrics(), self.labels(), self.procs().get()))
    }

    /// Returns the jobs of the recorded schedule, in the order of the log. Those without a recorded wait are left out.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn recorded_jobs(&self) -> Result<impl Iterator<Item = Result<Finished, TraceError>>, TraceError> {
        let wanted = self.labels();
        let jobs = (0..).zip(self.logged_jobs(!wanted.is_empty())?);
        Ok(jobs.filter_map(move |(admission, job)| match job {
            Ok(job) => Some(Ok(finished(&job, job.recorded_wait?, admission, labels(&job, &wanted)))),
            Err(error) => Some(Err(error)),
        }))
    }

    /// Returns the measures of the schedule that the log records, without a run; `None` as of
    /// [`outcome_and_recorded`](RunSetup::outcome_and_recorded).
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn recorded(&self) -> Result<Option<RunDoc>, TraceError> {
        let Some(mut schedule) = self.recorded_schedule() else { return Ok(None) };
        let mut jobs = self.logged_jobs(!self.labels().is_empty())?;
        for job in jobs.by_ref() {
            schedule.add(&job?);
        }
        let counts = jobs.counts().clone();
        Ok(schedule.document(self, &counts))
    }

    /// Returns the measures of the waits that a log records, before the first job.
    pub(crate) fn empty_metrics(&self) -> Metrics {
        Metrics::new(self.procs(), self.warmup()).grouped(&self.options.by)
    }
}

/// Returns a job as it was recorded, in its place in the order of the submissions. Nothing is known of the reason of its start.
fn finished(job: &LoggedJob, wait: Span, admission: u64, labels: Vec<(Label, LabelValue)>) -> Finished {
    let start = job.request.submit + wait;
    Finished {
        admission,
        runtime: job.recorded_runtime,
        killed: false,
        status: logged_status(job.status),
        labels,
        start,
        end: start + job.recorded_runtime,
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
    }
}

/// The recorded schedule, as far as it was read.
pub(crate) struct RecordedSchedule {
    metrics: Metrics,
    labels: Vec<Label>,
    admitted: u64,
    without_wait: u64,
    any_wait: bool,
    /// The starts of the waiting jobs at the last submission.
    starts: BinaryHeap<Reverse<Time>>,
    longest_queue: usize,
    work: Work,
    usage: Usage,
}

/// The recorded work of the jobs, in processor-ticks, and the part that a simulation leaves out.
#[derive(Default)]
struct Work {
    all: u128,
    cut: u128,
}

/// The processors that recorded jobs have at the same time.
#[derive(Default)]
struct Usage {
    capacity: i64,
    /// The starts and ends to come, with the change of the processors.
    changes: BinaryHeap<Reverse<(Time, i64)>>,
    procs: i64,
    most: i64,
    first: Option<Time>,
    last: Option<Time>,
    /// The time with more processors than the machine has.
    over: Span,
}

impl Usage {
    /// Adds a job. No later one starts before `submit`.
    fn add(&mut self, submit: Time, start: Time, end: Time, procs: i64) {
        self.pass(submit);
        self.changes.push(Reverse((start, procs)));
        self.changes.push(Reverse((end, -procs)));
    }

    /// Applies the changes before an instant. At one instant jobs end before others start.
    fn pass(&mut self, before: Time) {
        while let Some(Reverse((at, change))) = self.changes.peek().copied().filter(|next| next.0.0 < before)
        {
            self.changes.pop();
            if self.procs > self.capacity {
                self.over += at - self.last.unwrap_or(at);
            }
            self.procs += change;
            self.most = self.most.max(self.procs);
            self.first.get_or_insert(at);
            self.last = Some(at);
        }
    }
}

impl RecordedSchedule {
    fn new(metrics: Metrics, labels: Vec<Label>, procs: u64) -> RecordedSchedule {
        let starts = BinaryHeap::new();
        RecordedSchedule {
            metrics,
            labels,
            admitted: 0,
            without_wait: 0,
            any_wait: false,
            starts,
            longest_queue: 0,
            work: Work::default(),
            usage: Usage { capacity: procs.cast_signed(), ..Usage::default() },
        }
    }

    /// Adds the next job in the order of submission.
    pub(crate) fn add(&mut self, job: &LoggedJob) {
        let procs = job.request.demand.cpus_count();
        self.work.all += work(job.recorded_runtime, procs);
        self.work.cut += work(job.recorded_runtime - job.runtime.0, procs);
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
        let end = start + job.recorded_runtime;
        let procs = job.request.demand.cpus_count().get().cast_signed();
        self.usage.add(job.request.submit, start, end, procs);
        self.metrics.measure_end(&finished(job, wait, self.admitted, labels(job, &self.labels)));
    }

    /// Adds a waiting job to the queue. Jobs that start at its submission are no longer there.
    fn wait_until(&mut self, submit: Time, start: Time) {
        while self.starts.peek().is_some_and(|Reverse(first)| *first <= submit) {
            self.starts.pop();
        }
        self.starts.push(Reverse(start));
        self.longest_queue = self.longest_queue.max(self.starts.len());
    }

    /// Returns how the recorded schedule differs from one that can be simulated.
    fn record(&self) -> RecordDoc {
        let Usage { most, over, first, last, .. } = self.usage;
        let share = |part: f64, all: f64| if all > 0.0 { part / all } else { 0.0 };
        let time = first.zip(last).map_or(Span::ZERO, |(first, last)| last - first);
        RecordDoc {
            cut_work: share(self.work.cut as f64, self.work.all as f64),
            most_procs: most.unsigned_abs(),
            over_time: share(over.ticks() as f64, time.ticks() as f64),
        }
    }

    /// Returns the measures of the whole log, which has these counts. Returns `None` if it has no positive wait.
    pub(crate) fn document(mut self, setup: &RunSetup, counts: &LineCounts) -> Option<RunDoc> {
        if !self.any_wait {
            return None;
        }
        self.usage.pass(Time::MAX);
        let (settings, trace) = (setup.settings(), setup.trace_doc());
        let mut document = RunDoc::new(RECORDED.into(), settings, trace, counts, &mut self.metrics, 0.0);
        document.record = Some(self.record());
        document.loss_of_capacity = None;
        document.kept_idle = None;
        document.queue_length.max = self.longest_queue;
        let no_series = || Series::new(setup.procs());
        document.details = setup.options.details.then(|| DetailsDoc::new(&mut self.metrics, &no_series()));
        if self.without_wait > 0 {
            document.jobs.skipped.insert(NO_RECORDED_WAIT.into(), self.without_wait);
            document.batch_sums = setup.empty_metrics().batches;
        }
        setup.name_groups(&mut document);
        Some(document)
    }
}

#[cfg(test)]
mod tests {
    use miserly_workload::{Overrun, Trace};

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

    /// The first job ran 1000 s beyond its estimate of 90 s, which the run cuts.
    #[test]
    fn the_runtimes_of_the_log_are_measured_and_what_the_runs_cut() {
        let log = "; MaxProcs: 8\n1 100 20 1090 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n\
                   2 110 40 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n";
        let document = |overrun| {
            let mut options = RunOptions::default();
            options.jobs.overrun = overrun;
            let setup = RunSetup::new(Trace::memory("log", log.into()), options).unwrap();
            setup.outcome_and_recorded(&"fcfs".parse().unwrap(), false, &mut []).unwrap().1.unwrap()
        };
        let percent = |share: f64| format!("{:.1}", 100.0 * share);
        let recorded = document(Overrun::Kill);
        assert_eq!((recorded.metrics.response.mean, recorded.jobs.killed_at_estimate), (Some(605.0), 0));
        let record = recorded.record.unwrap();
        assert_eq!((percent(record.cut_work).as_str(), record.most_procs), ("87.0", 12));
        // From 120 s to 1210 s; 60 s of it with twelve processors of eight.
        assert_eq!(percent(record.over_time), "5.5");
        assert!(record.overfills() && record.is_cut() && !recorded.is_comparable());
        assert_eq!(percent(document(Overrun::Extend).record.unwrap().cut_work), "0.0");
    }

    #[test]
    fn the_jobs_of_the_log_have_their_recorded_starts() {
        let log = "; MaxProcs: 10\n1 100 20 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n\
                   2 110 -1 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n3 120 5 70 2 -1 -1 2 90 -1 1 1 -1 -1 -1 -1 -1 -1\n";
        let setup = RunSetup::new(Trace::memory("log", log.into()), RunOptions::default()).unwrap();
        let jobs = setup.recorded_jobs().unwrap().map(Result::unwrap);
        let found: Vec<_> = jobs
            .map(|job| (job.admission, job.request.number, job.start.to_string(), job.end.to_string()))
            .collect();
        let job =
            |admission, number, start: &str, end: &str| (admission, number, start.to_owned(), end.to_owned());
        assert_eq!(found, [job(0, 1, "120", "180"), job(2, 3, "125", "195")]);
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
