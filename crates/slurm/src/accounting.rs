//! The accounting of a cluster, as a job log.

use std::collections::BTreeMap;

use jiff::Timestamp;
use miserly_core::{Request, Resources, Span, Time};
use miserly_forecast::Forecaster;
use miserly_import::{ImportedLog, SlurmOptions, columns, slurm};
use miserly_workload::Trace;
use miserly_workload::swf::Field;

use crate::{Slurm, SlurmError, hosts};

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
    let answer = ask(cluster, since, until, &columns())?;
    Ok(slurm(&Trace::memory("sacct", answer.into_bytes()), options)?)
}

/// Returns the hosts of the jobs of the accounting that ran between two instants, by number and start (seconds since 1970).
///
/// # Errors
/// If there is no accounting, or it cannot be read.
pub fn hosts_of_jobs(
    cluster: &Slurm,
    since: Timestamp,
    until: Option<Timestamp>,
) -> Result<BTreeMap<(i64, i64), Vec<String>>, SlurmError> {
    Ok(parse_hosts(&ask(cluster, since, until, "JobIDRaw,Start,NodeList")?))
}

/// Returns the hosts of jobs by lines of number, start and hosts. Lines without one of them are left out.
fn parse_hosts(lines: &str) -> BTreeMap<(i64, i64), Vec<String>> {
    let job = |line: &str| {
        let mut fields = line.split('|');
        let (number, start) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let list = fields.next().and_then(|list| hosts(list).ok())?;
        Some(((number, start), list))
    };
    lines.lines().filter_map(job).collect()
}

/// Returns these columns of the accounting of the jobs that ran between two instants, with their names.
fn ask(
    cluster: &Slurm,
    since: Timestamp,
    until: Option<Timestamp>,
    columns: &str,
) -> Result<String, SlurmError> {
    let local =
        |at: Timestamp| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let (since, until) = (local(since), until.map(local));
    let mut arguments = vec!["-X", "-D", "-P", "-a", "-S", &since];
    if let Some(until) = &until {
        arguments.extend(["-E", until]);
    }
    arguments.extend(["-o", columns]);
    Ok(cluster.ask("sacct", &arguments)?.text)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_jobs_that_started() {
        let lines = "JobIDRaw|Start|NodeList\n7|100|node[1-2]\n8|None|None assigned\n7|300|node3\n";
        let node = |number: u32| format!("node{number}");
        let expected = [((7, 100), vec![node(1), node(2)]), ((7, 300), vec![node(3)])];
        assert_eq!(parse_hosts(lines), expected.into());
    }
}
