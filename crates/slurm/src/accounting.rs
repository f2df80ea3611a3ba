//! The accounting of a cluster, as a job log.

use std::hash::{BuildHasher, RandomState};

use jiff::Timestamp;
use miserly_core::{Request, Resources, Span, Time};
use miserly_forecast::Forecaster;
use miserly_import::{ImportOptions, ImportedLog, columns, slurm};
use miserly_workload::Trace;
use miserly_workload::swf::Field;

use crate::{Slurm, SlurmError, gpus, hosts, submit_line};

/// Returns the jobs of the accounting that ran between two instants, with the report of the losses.
///
/// # Errors
/// If there is no accounting, or it cannot be read.
pub fn log(
    cluster: &Slurm,
    since: Timestamp,
    until: Option<Timestamp>,
    options: &ImportOptions,
) -> Result<ImportedLog, SlurmError> {
    let answer = ask(cluster, since, until, &columns(), "|")?;
    Ok(slurm(&Trace::memory("sacct", answer.into_bytes()), options)?)
}

/// A run of a job, or a job that waits, in the words of the accounting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountedJob {
    /// Its number.
    pub number: i64,
    /// The start; none while it waits.
    pub start: Option<Timestamp>,
    /// The end, if it has ended.
    pub end: Option<Timestamp>,
    /// Its processors.
    pub cpus: u64,
    /// Its GPUs, on all nodes together, if the accounting has them (`AccountingStorageTRES`).
    pub gpus: u64,
    /// The least number of nodes that it asked for.
    pub nodes: u64,
    /// The most nodes, if the line of its submission has a limit. One in a script is not known.
    pub most_nodes: Option<u64>,
    /// The hosts of the run.
    pub hosts: Vec<String>,
    /// The account.
    pub account: String,
    /// The name of the user.
    pub user: String,
    /// The partition.
    pub partition: String,
}

/// Returns the jobs of the accounting that ran or waited between two instants.
///
/// # Errors
/// If there is no accounting, or it cannot be read.
pub fn accounted_jobs(
    cluster: &Slurm,
    since: Timestamp,
    until: Option<Timestamp>,
) -> Result<Vec<AccountedJob>, SlurmError> {
    const COLUMNS: &str =
        "JobIDRaw,Start,End,AllocCPUS,ReqTRES,ReqNodes,NodeList,Account,User,Partition,SubmitLine";
    // A user can write anything into the last column, lines like these too. This mark nobody can foresee.
    let mark = format!("|{:x}|", RandomState::new().hash_one(0));
    let answer = ask(cluster, since, until, COLUMNS, &mark)?;
    Ok(answer.lines().filter_map(|line| AccountedJob::parse(line, &mark)).collect())
}

impl AccountedJob {
    /// Reads a line. The names of the columns are no job.
    fn parse(line: &str, mark: &str) -> Option<AccountedJob> {
        let [number, start, end, cpus, resources, nodes, list, account, user, partition, submission] =
            line.split(mark).collect::<Vec<_>>().try_into().ok()?;
        Some(AccountedJob {
            number: number.parse().ok()?,
            start: instant(start),
            end: instant(end),
            cpus: cpus.parse().ok()?,
            gpus: gpus(resources),
            nodes: nodes.parse().unwrap_or(1),
            most_nodes: submit_line::nodes(submission).map(|(_, most)| most),
            hosts: hosts(list).unwrap_or_default(),
            account: account.to_owned(),
            user: user.to_owned(),
            partition: partition.to_owned(),
        })
    }
}

/// Returns the instant of a number of seconds since 1970.
pub(crate) fn instant(text: &str) -> Option<Timestamp> {
    Timestamp::from_second(text.parse().ok()?).ok()
}

/// Returns these columns of the accounting of the jobs that ran between two instants, with their names and this mark between them.
fn ask(
    cluster: &Slurm,
    since: Timestamp,
    until: Option<Timestamp>,
    columns: &str,
    mark: &str,
) -> Result<String, SlurmError> {
    let local =
        |at: Timestamp| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S").to_string();
    let (since, until) = (local(since), until.map(local));
    let mut arguments = vec!["-X", "-D", "-P", "-a", "-S", &since];
    if let Some(until) = &until {
        arguments.extend(["-E", until]);
    }
    let delimiter = format!("--delimiter={mark}");
    arguments.extend([&delimiter, "-o", columns]);
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
    fn runs_and_jobs_that_wait() {
        let lines = "JobIDRaw#Start#End#AllocCPUS#ReqTRES#ReqNodes#NodeList#Account#User#Partition#SubmitLine\n\
            7#100#160#4#cpu=4,gres/gpu=2#2#node[1-2]#lab#ann#batch#sbatch a|b\n9|1|2|4||1|node9|lab|ann|batch|x\n\
            8#Unknown#Unknown#0##1#None assigned#lab#ann#batch#sbatch -N1 job.sh\n7#300#Unknown#4##2#node3#lab#ann#batch#\n";
        let read: Vec<AccountedJob> =
            lines.lines().filter_map(|line| AccountedJob::parse(line, "#")).collect();
        let nodes: Vec<&[String]> = read.iter().map(|job| &job.hosts[..]).collect();
        assert_eq!([nodes[0], nodes[2]], [&["node1", "node2"][..], &["node3"]]);
        let times: Vec<[Option<i64>; 2]> =
            read.iter().map(|job| [job.start, job.end].map(|at| at.map(Timestamp::as_second))).collect();
        assert_eq!(times, [[Some(100), Some(160)], [None, None], [Some(300), None]]);
        assert_eq!((read[0].nodes, read[0].gpus, read[0].user.as_str()), (2, 2, "ann"));
        assert_eq!([read[0].most_nodes, read[1].most_nodes], [None, Some(1)]);
    }
}
