//! The wait of a hypothetical job.

use std::io;

use miserly_core::{Effect, JobNumber, Procs, Refusal, Request, Resources, Span, Time};
use miserly_policies::PolicySpec;
use miserly_sim::{Job, Observer};
use miserly_workload::TraceError;

use crate::error::SetupError;
use crate::setup::RunSetup;

/// The number of the hypothetical job.
const PROBE: JobNumber = JobNumber::MAX;

/// A hypothetical job: a size and a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The requested processors.
    pub procs: Procs,
    /// The time limit, which is also the runtime.
    pub time: Span,
}

/// The jobs of a log, to which hypothetical jobs are added. The log is read once.
pub struct Probes<'a> {
    setup: &'a RunSetup,
    /// In the order of submission.
    jobs: Vec<Job>,
}

impl RunSetup {
    /// Reads the jobs to which hypothetical jobs are added.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn probes(&self) -> Result<Probes<'_>, SetupError> {
        Ok(Probes { setup: self, jobs: self.jobs()?.collect::<Result<_, _>>()? })
    }
}

impl Probes<'_> {
    /// Returns `count` submit times at equal distances between the first and the last submission; none without a job.
    pub fn times(&self, count: u32) -> Vec<Time> {
        let (Some(first), Some(last)) = (self.jobs.first(), self.jobs.last()) else { return Vec::new() };
        let (first, last) = (first.request.submit, last.request.submit);
        let parts = i64::from(count.max(1));
        // Each time is the middle of its part of the log.
        (0..parts).map(|part| first + Span::from_ticks(middle((last - first).ticks(), part, parts))).collect()
    }

    /// Returns the wait until the first start of a job that is added to the log at `submit`, or `None` if the policy
    /// refuses it.
    ///
    /// The other jobs of the log are simulated with it, so it may delay them. The run ends at its start.
    ///
    /// # Errors
    /// If the policy does not run.
    pub fn wait(&self, policy: &PolicySpec, probe: Probe, submit: Time) -> Result<Option<Span>, SetupError> {
        let request = Request::new(PROBE, submit, probe.time, Resources::cpus(probe.procs));
        let added = Job::new(request, probe.time);
        let (before, after) =
            self.jobs.split_at(self.jobs.partition_point(|job| job.request.submit <= submit));
        let jobs = before.iter().chain([&added]).chain(after);
        let mut observer = ProbeObserver::default();
        let mut simulation = self.setup.simulation(policy)?;
        simulation.run(&mut jobs.cloned().map(Ok::<_, TraceError>), &mut [&mut observer])?;
        Ok(observer.start.map(|start| start - submit))
    }
}

/// Returns the middle of the part `part` of `parts` of a length.
fn middle(length: i64, part: i64, parts: i64) -> i64 {
    let ticks = i128::from(length) * i128::from(2 * part + 1) / i128::from(2 * parts);
    i64::try_from(ticks).unwrap_or(length)
}

/// An observer that waits for the hypothetical job.
#[derive(Default)]
struct ProbeObserver {
    start: Option<Time>,
    refused: bool,
}

impl Observer for ProbeObserver {
    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        if job == PROBE && matches!(effect, Effect::Started { .. }) {
            self.start.get_or_insert(now);
        }
    }

    fn refused(&mut self, _now: Time, request: &Request, _why: Refusal) -> io::Result<()> {
        self.refused |= request.number == PROBE;
        Ok(())
    }

    fn has_enough(&self) -> bool {
        self.start.is_some() || self.refused
    }
}

#[cfg(test)]
mod tests {
    use miserly_workload::Trace;

    use super::*;
    use crate::options::RunOptions;

    /// A job of six of ten processors from 100 to 160, with a time limit of 90.
    fn setup() -> RunSetup {
        let log = "; MaxProcs: 10\n1 100 -1 60 6 -1 -1 6 90 -1 1 1 -1 -1 -1 -1 -1 -1\n";
        RunSetup::new(Trace::memory("log", log.into()), RunOptions::default()).unwrap()
    }

    #[track_caller]
    fn check(procs: u64, submit: i64, expect: i64) {
        let probe = Probe { procs: Procs::new(procs), time: Span::from_secs(10).unwrap() };
        let submit = Time::from_secs(submit).unwrap();
        let wait = setup().probes().unwrap().wait(&"easy".parse().unwrap(), probe, submit).unwrap();
        assert_eq!(wait, Span::from_secs(expect));
    }

    #[test]
    fn a_job_waits_for_the_processors_that_it_needs() {
        check(4, 110, 0);
        check(5, 110, 50);
        check(10, 99, 0);
        check(10, 160, 0);
    }

    #[test]
    fn the_submit_times_are_the_middles_of_equal_parts() {
        let ticks: Vec<i64> = (0..4).map(|part| middle(80, part, 4)).collect();
        assert_eq!(ticks, [10, 30, 50, 70]);
    }
}
