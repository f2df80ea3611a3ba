//! The same day in the simulator, under the policy of the daemon.

use std::io;

use miserly_core::Time;
use miserly_machine_file::MachineSpec;
use miserly_policies::PolicySpec;
use miserly_run::{OpportunisticMode, OpportunisticOptions, RunOptions, RunSetup};
use miserly_sim::{Finished, Observer};
use miserly_workload::Trace;

use crate::daemon::{CLEANUP, LEAD};
use crate::error::MeasureError;
use crate::options::Site;

/// Seconds of the log for each second of the day. A log has whole seconds.
const RESOLUTION: f64 = 1000.0;

/// The times of a simulated job, seconds since the submission of the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SimulatedTimes {
    /// The start that was promised first.
    pub(crate) promised: f64,
    /// The first start, on idle processors or in its window.
    pub(crate) start: f64,
    pub(crate) end: f64,
}

/// Simulates jobs as wide as the pool, with these submissions and one run time, all in seconds. Returns the times in the order of
/// the submissions.
pub(crate) fn simulate(
    site: &Site,
    submitted: &[f64],
    runtime: f64,
    limit: f64,
    opportunistic: bool,
) -> Result<Vec<SimulatedTimes>, MeasureError> {
    let text = machine(site);
    let machine = MachineSpec::parse("machine.toml", &text)
        .map_err(|error| MeasureError::Simulation(error.to_string()))?;
    let mode = if opportunistic { OpportunisticMode::Lead(scaled(LEAD)) } else { OpportunisticMode::Off };
    let options = RunOptions {
        machine: Some(machine),
        opportunistic: OpportunisticOptions { mode, interactive: None },
        ..RunOptions::default()
    };
    // The daemon plans each job with the time for its end.
    let log = log(site.threads(), submitted, runtime, limit + CLEANUP);
    let setup = RunSetup::new(Trace::memory("day", log.into_bytes()), options)?;
    let policy: PolicySpec = "miser".parse().map_err(|error| MeasureError::Simulation(format!("{error}")))?;
    let mut times = Times(vec![SimulatedTimes::default(); submitted.len()]);
    setup.outcome(&policy, false, &mut [&mut times])?;
    Ok(times.0)
}

/// Returns seconds of the day as seconds of the log. A day has fewer than 2^53 of them.
#[allow(clippy::cast_possible_truncation)]
fn scaled(seconds: f64) -> i64 {
    (seconds * RESOLUTION).round() as i64
}

fn machine(site: &Site) -> String {
    let (all, pool) = (site.all.len(), site.threads());
    format!("[[host]]\nname = \"machine\"\ncpus = {all}\n[pool]\ncpus = {pool}\n")
}

/// Returns the log in the Standard Workload Format.
fn log(procs: usize, submitted: &[f64], runtime: f64, limit: f64) -> String {
    let (runtime, limit) = (scaled(runtime).max(1), scaled(limit));
    let line = |(at, submit): (usize, &f64)| {
        let (number, submit) = (at + 1, scaled(*submit));
        format!("{number} {submit} -1 {runtime} {procs} -1 -1 {procs} {limit} -1 1 1 -1 -1 -1 -1 -1 -1\n")
    };
    submitted.iter().enumerate().map(line).collect()
}

/// Collects the times of the jobs.
struct Times(Vec<SimulatedTimes>);

impl Observer for Times {
    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        let place = usize::try_from(job.admission).ok().and_then(|at| self.0.get_mut(at));
        let start = job.opportunistic.map_or(job.start, |work| work.since.min(job.start));
        if let Some(times) = place {
            let promised = seconds(job.promised.unwrap_or(job.start));
            *times = SimulatedTimes { promised, start: seconds(start), end: seconds(job.end) };
        }
        Ok(())
    }
}

fn seconds(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64() / RESOLUTION
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(opportunistic: bool) -> Vec<SimulatedTimes> {
        let site = Site::new(vec![0, 1], None).unwrap();
        simulate(&site, &[0.0, 0.01, 0.02], 1.0, 60.0, opportunistic).unwrap()
    }

    #[test]
    fn in_windows_only_the_copies_follow_each_other() {
        let days = day(false);
        assert_eq!(days.iter().map(|day| day.start).collect::<Vec<_>>(), [0.0, 1.0, 2.0]);
        assert_eq!(days.iter().map(|day| day.end).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
        assert_eq!(days.iter().map(|day| day.promised).collect::<Vec<_>>(), [0.0, 60.3, 120.6]);
    }

    #[test]
    fn the_idle_processor_runs_the_next_copy_early() {
        let days = day(true);
        // The second copy starts at its submission on the idle processor, the third when the first one ends.
        assert_eq!(days.iter().map(|day| day.start).collect::<Vec<_>>(), [0.0, 0.01, 1.0]);
        assert_eq!(days.iter().map(|day| day.end).collect::<Vec<_>>(), [1.0, 1.01, 2.0]);
    }
}
