//! The schedule that a log records, measured like a simulated one.

use std::io;

use miserly_core::{Span, StartReason, Time};
use miserly_report::{NO_RECORDED_WAIT, RunDoc};
use miserly_sim::{Finished, Interruptions, Job, Metrics, Observer};
use miserly_workload::swf::Field;
use miserly_workload::{ArrivalScaling, Job as LoggedJob, Jobs};

use crate::error::SetupError;
use crate::setup::{RunSetup, simulated};

/// The name of the recorded schedule where a run has its policy.
pub const RECORDED: &str = "recorded";

impl RunSetup {
    /// Returns the measures of the waits that the log records, for the jobs that the options choose.
    ///
    /// Each job starts after its recorded wait, and runs as in a simulation.
    /// Returns `None` if the log has no positive wait, if the options change the submit times, or if they
    /// measure batches by termination.
    /// Jobs without a recorded wait are counted as [`NO_RECORDED_WAIT`]. If there are any, differences to other
    /// schedules have no interval.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn recorded(&self) -> Result<Option<RunDoc>, SetupError> {
        if self.options.jobs.arrivals != ArrivalScaling::Logged || self.options.batches.is_some() {
            return Ok(None);
        }
        let warmup = Span::from_secs(self.options.warmup).unwrap_or(Span::MAX);
        let mut metrics = Metrics::new(self.procs(), warmup).grouped(&self.options.by);
        let mut schedule = RecordedSchedule::default();
        let mut jobs = self.logged_jobs(true)?;
        schedule.replay(&mut jobs, &mut metrics)?;
        if !schedule.any_wait {
            return Ok(None);
        }
        let (settings, trace) = (self.settings(), self.trace_doc());
        let mut document = RunDoc::new(RECORDED.into(), settings, trace, jobs.counts(), &mut metrics, 0.0);
        document.loss_of_capacity = None;
        document.kept_idle = None;
        document.queue_length.max = schedule.longest_queue();
        if schedule.without_wait > 0 {
            document.jobs.skipped.insert(NO_RECORDED_WAIT.into(), schedule.without_wait);
            document.batch_sums = Metrics::new(self.procs(), warmup).batches;
        }
        Ok(Some(document))
    }
}

/// The recorded schedule, as far as it was read.
#[derive(Default)]
struct RecordedSchedule {
    admitted: u64,
    without_wait: u64,
    any_wait: bool,
    /// Changes of the number of waiting jobs.
    changes: Vec<(Time, i32)>,
}

impl RecordedSchedule {
    fn replay(&mut self, jobs: &mut Jobs<'_>, metrics: &mut Metrics) -> Result<(), SetupError> {
        for logged in jobs {
            let logged = logged?;
            let wait = recorded_wait(&logged);
            let job = simulated(logged);
            metrics.submitted(job.request.submit, &job.request);
            match wait {
                Some(wait) => self.add(job, wait, metrics)?,
                None => self.without_wait += 1,
            }
            self.admitted += 1;
        }
        Ok(())
    }

    fn add(&mut self, job: Job, wait: Span, metrics: &mut Metrics) -> io::Result<()> {
        let submit = job.request.submit;
        let start = submit + wait;
        if wait > Span::ZERO {
            self.any_wait = true;
            self.changes.extend([(submit, 1), (start, -1)]);
        }
        metrics.finished(&Finished {
            admission: self.admitted,
            runtime: job.runtime.0,
            killed: job.killed,
            status: job.status,
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
            request: job.request,
        })
    }

    fn longest_queue(&mut self) -> usize {
        self.changes.sort_unstable();
        let waiting = self.changes.iter().scan(0_i32, |waiting, (_, change)| {
            *waiting += change;
            Some(*waiting)
        });
        waiting.max().and_then(|most| usize::try_from(most).ok()).unwrap_or(0)
    }
}

/// Returns the wait of a job as its log records it, if it does.
fn recorded_wait(job: &LoggedJob) -> Option<Span> {
    let seconds = job.record.as_ref()?.recorded(Field::Wait)?;
    Span::from_secs(i64::try_from(seconds).ok()?)
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
        RunSetup::new(Trace::memory("log", log.into()), RunOptions::default()).unwrap().recorded().unwrap()
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
