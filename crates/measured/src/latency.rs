//! Part 4: the delay of a start behind its promised instant, and the cost of a launch.

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{Phase, Submission};

use crate::bench::{Bench, seconds_between};
use crate::checks::Mechanism;
use crate::daemon::Daemon;
use crate::error::MeasureError;
use crate::statistics::Sample;

/// The time between two promised starts, seconds.
const APART: f64 = 1.0;

/// The time limit of a job whose start is measured, seconds.
const SHORT: f64 = 0.5;

/// Burners for each processor, so that opportunistic work gets next to nothing.
const BURNERS: usize = 2;

/// The result of the part, seconds.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    /// From the promised start to the start of the command, on an idle machine.
    pub(crate) idle: Sample,
    /// The same, where opportunistic work holds the processors and burners starve it.
    pub(crate) starved: Sample,
    /// From the request to the start of the command, with free processors.
    pub(crate) launch: Sample,
}

/// Measures the part.
pub(crate) fn measure(bench: &mut Bench<'_>) -> Result<Latencies, MeasureError> {
    let starts = if bench.options.quick { 4 } else { 50 };
    bench.note(&format!("4-latency: {starts} starts on an idle machine"));
    let idle = promised_starts(bench, starts, false)?;
    bench.note(&format!("4-latency: {starts} starts over starved opportunistic work"));
    let starved = promised_starts(bench, starts, true)?;
    bench.note("4-latency: launches");
    let launch = launches(bench, starts)?;
    Ok(Latencies { idle, starved, launch })
}

/// A job on `cpus` processors that records the time of its start.
fn stamp(bench: &Bench<'_>, daemon: &Daemon, cpus: usize, time: f64) -> Submission {
    let arguments = ["kernel", "stamp"].map(str::to_owned).to_vec();
    Submission { no_opportunistic: true, ..daemon.job(&bench.options.exe, arguments, cpus, time) }
}

/// Submits jobs with promised starts at regular instants on all processors, and returns the delays of their commands.
fn promised_starts(bench: &mut Bench<'_>, starts: u32, starved: bool) -> Result<Sample, MeasureError> {
    let all = bench.site.all.clone();
    let daemon = bench.daemon(all.len())?;
    let job = stamp(bench, &daemon, all.len(), SHORT);
    let first = Timestamp::now() + SignedDuration::from_secs_f64(2.0 + f64::from(starts) * 0.02);
    let mut numbers = vec![];
    for number in 0..starts {
        let begin = first + SignedDuration::from_secs_f64(f64::from(number) * APART);
        numbers.push(daemon.submit(&Submission { begin: Some(begin), ..job.clone() })?);
    }
    let _burners = bench.burners(if starved { BURNERS * all.len() } else { 0 }, &[])?;
    let burn = ["kernel", "burn", "--threads", &all.len().to_string()].map(str::to_owned).to_vec();
    // Too long for the gaps, so its window is behind all starts.
    let burn = daemon.job(&bench.options.exe, burn, all.len(), 3600.0);
    let below = if starved { Some(daemon.submit(&burn)?) } else { None };
    let mut delays = Sample::default();
    let mut phases = vec![];
    for number in numbers {
        let job = daemon.wait(number)?;
        let record = daemon.record(number)?;
        bench.checks.add_job(&job, &record, &all, false);
        let promised = job.promise.map_or(job.submitted, |promise| promise.promised.start);
        delays.push(seconds_between(promised.as_microsecond(), record.begin));
        if let Some(below) = below {
            phases.push(daemon.client().job(below)?.phase);
        }
    }
    if below.is_some() && miserly_launch::leaves_idle() {
        // Behind the last start, its window may begin.
        let is_early = phases.iter().any(|phase| matches!(phase, Phase::Opportunistic { .. }));
        bench.checks.add(Mechanism::Early, is_early, || format!("it was {phases:?}"));
    }
    daemon.stop()?;
    Ok(delays)
}

/// Submits jobs to an idle daemon, one after the other.
fn launches(bench: &mut Bench<'_>, count: u32) -> Result<Sample, MeasureError> {
    let pool = bench.site.pool.clone();
    let daemon = bench.daemon(pool.len())?;
    let job = stamp(bench, &daemon, 1, 10.0);
    let mut times = Sample::default();
    for _ in 0..count {
        let since = Timestamp::now().as_microsecond();
        let number = daemon.submit(&job)?;
        let ended = daemon.wait(number)?;
        let record = daemon.record(number)?;
        bench.checks.add_job(&ended, &record, &pool, false);
        times.push(seconds_between(since, record.begin));
    }
    daemon.stop()?;
    Ok(times)
}
