//! The accounting of a cluster, as a job log.

use jiff::Timestamp;
use miserly_core::{Request, Resources, Span, Time};
use miserly_forecast::Forecaster;
use miserly_import::{ImportedLog, SlurmOptions, columns, slurm};
use miserly_workload::Trace;
use miserly_workload::swf::Field;

use crate::{Slurm, SlurmError};

/// Returns the jobs of the accounting that ran between two instants, with the report of the losses.
///
/// # Errors
/// If there is no accounting, or it cannot be read.
pub fn log(
    cluster: &Slurm,
    since: Timestamp,
    until: Option<Timestamp>,
    options: &SlurmOptions,
) -> Result<ImportedLog, SlurmError> {
    let local =
        |at: Timestamp| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let (since, until, columns) = (local(since), until.map(local), columns());
    let mut arguments = vec!["-X", "-D", "-P", "-a", "-S", &since];
    if let Some(until) = &until {
        arguments.extend(["-E", until]);
    }
    arguments.extend(["-o", &columns]);
    let answer = cluster.ask("sacct", &arguments)?;
    Ok(slurm(&Trace::memory("sacct", answer.text.into_bytes()), options)?)
}

/// Adds the runtimes of the jobs of a log to the base of forecasts. Users have to have their own ids in it.
///
/// Returns the number of jobs.
pub fn learn(forecaster: &mut Forecaster, log: &ImportedLog) -> u64 {
    let mut learned = 0;
    for record in &log.records {
        let field = |field| Some(record.get(field)).filter(|value| *value > 0);
        let (Some(runtime), Some(procs)) = (field(Field::Runtime), field(Field::Allocated)) else { continue };
        let estimate = field(Field::Estimate).unwrap_or(runtime);
        let span = |seconds| Span::from_secs(seconds).unwrap_or(Span::MAX);
        let user = u32::try_from(record.get(Field::User)).ok();
        let demand = Resources::cpus(procs.unsigned_abs());
        let request = Request::new(record.get(Field::Job), Time::ZERO, span(estimate), demand);
        forecaster.learn(&Request { user, ..request }, span(runtime));
        learned += 1;
    }
    learned
}
