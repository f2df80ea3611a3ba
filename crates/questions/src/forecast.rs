//! The forecasts of a log, audited.

use std::io::{self, Write};

use miserly_core::Time;
use miserly_forecast::{ClassAudit, ForecastError, Forecasts, JobForecast, Quantile, forecast_log};
use miserly_policies::PolicySpec;
use miserly_report::TableStyle;
use miserly_report::{
    ForecastBoundDoc, ForecastClassDoc, ForecastDoc, ForecastPartDoc, count, forecast_table,
};
use miserly_run::RunSetup;

/// The audited forecasts of a log.
pub struct ForecastAnswer {
    /// The audit.
    pub document: ForecastDoc,
    /// The forecast of each job, in the order of submission.
    pub jobs: Vec<JobForecast>,
    /// The machine, in words.
    pub machine: String,
}

/// Forecasts the wait of each job of a log at its submission, and audits the forecasts. `progress` has the number of jobs that are done.
///
/// # Errors
/// If the policy cannot be forecast, or the run fails.
pub fn forecast(
    setup: &RunSetup,
    policy: &PolicySpec,
    draws: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<ForecastAnswer, ForecastError> {
    let forecasts = forecast_log(setup, policy, draws, progress)?;
    let document = ForecastDoc {
        version: env!("CARGO_PKG_VERSION"),
        trace: setup.name().to_owned(),
        policy: policy.to_string(),
        draws,
        jobs: forecasts.jobs.len() as u64,
        classes: classes(&forecasts),
        over_time: over_time(&forecasts.jobs),
    };
    let machine = format!("{} processors", count(setup.procs().get()));
    Ok(ForecastAnswer { document, jobs: forecasts.jobs, machine })
}

impl ForecastAnswer {
    /// Returns the audit as a table.
    pub fn table(&self, style: TableStyle) -> String {
        forecast_table(&self.document, &self.machine, style)
    }

    /// Writes one row per job, in the order of submission, as CSV.
    ///
    /// # Errors
    /// The output fails.
    pub fn write_jobs(&self, output: &mut dyn Write) -> io::Result<()> {
        writeln!(output, "job_id,submission_time,procs,at_once,median,bound_80,bound_95,promise,bmbp,wait")?;
        self.jobs.iter().try_for_each(|job| writeln!(output, "{}", row(job)))
    }
}

/// Returns the audit of each size class, then that of all jobs.
fn classes(forecasts: &Forecasts) -> Vec<ForecastClassDoc> {
    let all = forecasts.audit.all();
    let classes = forecasts.audit.classes().map(|(size, audit)| class(size.name(), audit));
    classes.chain([class("all", &all)]).collect()
}

fn class(procs: &'static str, audit: &ClassAudit) -> ForecastClassDoc {
    let bound = |quantile: &Quantile| bound(quantile, audit.at_once);
    let [median, level_80, level_95] = &audit.levels;
    ForecastClassDoc {
        procs,
        jobs: audit.jobs,
        at_once: audit.at_once,
        median: bound(median),
        level_80: bound(level_80),
        level_95: bound(level_95),
        promise: bound(&audit.promise),
        bmbp: bound(&audit.bmbp),
        calibration: audit.calibration().map(Vec::from),
        near_median: audit.near_shares(),
    }
}

/// Returns the figures of a level. Every bound of a job that started at once is kept.
fn bound(quantile: &Quantile, at_once: u64) -> ForecastBoundDoc {
    let waiting = quantile.jobs().saturating_sub(at_once);
    let kept = quantile.kept().saturating_sub(at_once);
    ForecastBoundDoc {
        jobs: quantile.jobs(),
        coverage: quantile.coverage(),
        coverage_of_waiting: (waiting > 0).then(|| kept as f64 / waiting as f64),
        mean: quantile.mean_bound(),
        pinball: quantile.pinball(),
    }
}

/// The parts of a log, unless each would have fewer than [`PART_LEAST`] jobs.
const PARTS: usize = 40;

/// The fewest jobs of a part of a log.
const PART_LEAST: usize = 50;

/// Returns the audited jobs that waited, in equal parts by submission.
fn over_time(jobs: &[JobForecast]) -> Vec<ForecastPartDoc> {
    let audited = &jobs[jobs.len() / 10..];
    let waited: Vec<&JobForecast> = audited.iter().filter(|job| !job.at_once && job.wait.is_some()).collect();
    let size = waited.len().div_ceil(PARTS).max(PART_LEAST);
    waited.chunks(size).map(part).collect()
}

fn part(jobs: &[&JobForecast]) -> ForecastPartDoc {
    let kept = |level: usize| {
        let kept = jobs.iter().filter(|job| job.wait.is_some_and(|wait| wait <= job.bounds[level])).count();
        kept as f64 / jobs.len() as f64
    };
    let submit = |job: Option<&&JobForecast>| job.map_or(0.0, |job| (job.submit - Time::ZERO).as_secs_f64());
    ForecastPartDoc {
        from: submit(jobs.first()),
        to: submit(jobs.last()),
        jobs: jobs.len() as u64,
        median: kept(0),
        level_80: kept(1),
        level_95: kept(2),
    }
}

/// Returns the row of a job. Unknown values are empty.
fn row(job: &JobForecast) -> String {
    let known = |seconds: Option<u64>| seconds.map(|seconds| seconds.to_string()).unwrap_or_default();
    let [median, bound_80, bound_95] = job.bounds;
    let (submit, at_once) = ((job.submit - Time::ZERO).as_secs_f64(), u8::from(job.at_once));
    let [promise, bmbp, wait] = [job.promise, job.bmbp, job.wait].map(known);
    let (number, procs) = (job.number, job.procs);
    format!("{number},{submit},{procs},{at_once},{median},{bound_80},{bound_95},{promise},{bmbp},{wait}")
}
