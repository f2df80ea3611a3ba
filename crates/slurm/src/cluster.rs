//! The state of a cluster at one instant.

mod change;

mod columns;

mod configuration;

mod detail;

mod job;

mod node;

mod setting;

mod values;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use serde::Serialize;

use crate::command::Answer;
use crate::fields::Fields;
use crate::{Slurm, SlurmError};

pub use change::{Change, changes};
pub(crate) use columns::Columns;
pub use columns::Comments;
pub use configuration::Configuration;
pub use detail::{Allocated, Detail};
pub(crate) use detail::{allocated, described};
pub use job::{Job, JobState};
pub use node::{DRIVER_FLAGS, Node, Partition, Reservation};
pub(crate) use setting::SCHEDULING;
pub use setting::Setting;
pub use values::{Amount, Limit};
pub(crate) use values::{amount, limit};

use job::{COLUMNS, SEPARATOR};
use values::present;

/// The words of `scontrol` for all nodes.
pub(crate) const SHOW_NODES: [&str; 4] = ["-a", "-o", "show", "node"];

/// The words of `scontrol` for all partitions.
pub(crate) const SHOW_PARTITIONS: [&str; 4] = ["-a", "-o", "show", "partition"];

/// The words of `scontrol` for all reservations.
const SHOW_RESERVATIONS: [&str; 4] = ["-a", "-o", "show", "reservation"];

/// A cluster, as its controller showed it.
///
/// It is read by several commands, one after the other, jobs last. So a job may be on a node that was idle a moment before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// The configuration.
    pub configuration: Configuration,
    /// The nodes, by name.
    pub nodes: BTreeMap<String, Node>,
    /// The partitions, by name.
    pub partitions: BTreeMap<String, Partition>,
    /// The reservations, by name.
    pub reservations: BTreeMap<String, Reservation>,
    /// The jobs that have not ended, by name ([`Job::id`]). Each task of an array is one.
    pub jobs: BTreeMap<String, Job>,
}

impl Cluster {
    /// Reads the state of a cluster.
    ///
    /// # Errors
    /// If a command cannot be run, fails, or prints something unknown.
    pub fn read(slurm: &Slurm) -> Result<Cluster, SlurmError> {
        Cluster::timed(slurm).map(|(cluster, _)| cluster)
    }

    /// Checks that a partition is there.
    ///
    /// # Errors
    /// [`SlurmError::NoPartition`].
    pub fn check_partition(&self, partition: &str) -> Result<(), SlurmError> {
        if self.partitions.contains_key(partition) {
            return Ok(());
        }
        let known = self.partitions.keys().cloned().collect();
        Err(SlurmError::NoPartition { partition: partition.to_owned(), known })
    }

    /// Reads the partitions, and checks that one is there.
    ///
    /// # Errors
    /// [`SlurmError::NoPartition`], or if they cannot be read.
    pub fn find_partition(slurm: &Slurm, partition: &str) -> Result<(), SlurmError> {
        let partitions = named(&slurm.ask("scontrol", &SHOW_PARTITIONS)?, Partition::parse)?;
        Cluster { partitions, ..Cluster::default() }.check_partition(partition)
    }

    /// Reads the reservations, by name. One that has ended stays for a while.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn reservations(slurm: &Slurm) -> Result<BTreeMap<String, Reservation>, SlurmError> {
        named(&slurm.ask("scontrol", &SHOW_RESERVATIONS)?, Reservation::parse)
    }

    /// Returns the starts of jobs that have ended lately, as far as the controller remembers them.
    pub fn starts(slurm: &Slurm, jobs: &[String]) -> BTreeMap<String, i64> {
        let arguments = ["-a", "-h", "-r", "-t", "all", "-o", "%i|%S|%N", "-j", &jobs.join(",")];
        let Ok(answer) = slurm.ask("squeue", &arguments) else {
            // It refuses a list with a job that it has forgotten.
            let each = |job: &String| Cluster::starts(slurm, std::slice::from_ref(job));
            return if jobs.len() > 1 { jobs.iter().flat_map(each).collect() } else { BTreeMap::new() };
        };
        let start = |line: &str| {
            let mut values = line.split(SEPARATOR).map(str::trim);
            let (id, start, on) = (values.next()?, values.next()?, values.next()?);
            // A job that was cancelled in the queue has had no node.
            present(on)?;
            Some((id.to_owned(), start.parse().ok()?))
        };
        answer.text.lines().filter_map(start).collect()
    }

    /// Reads the state, and returns the time that it took.
    pub(crate) fn timed(slurm: &Slurm) -> Result<(Cluster, Duration), SlurmError> {
        let (configuration, took_for_configuration) = Configuration::timed(slurm)?;
        let nodes = slurm.ask("scontrol", &SHOW_NODES)?;
        let partitions = slurm.ask("scontrol", &SHOW_PARTITIONS)?;
        let reservations = slurm.ask("scontrol", &SHOW_RESERVATIONS)?;
        let (jobs, took_for_jobs) = Cluster::timed_jobs(slurm)?;
        let answers = [&nodes, &partitions, &reservations];
        let took = took_for_configuration
            + took_for_jobs
            + answers.iter().map(|answer| answer.took).sum::<Duration>();
        let cluster = Cluster {
            configuration,
            nodes: named(&nodes, Node::parse)?,
            partitions: named(&partitions, Partition::parse)?,
            reservations: named(&reservations, Reservation::parse)?,
            jobs,
        };
        Ok((cluster, took))
    }

    /// Reads the jobs that have not ended, with their comments, in the order of their numbers.
    ///
    /// # Errors
    /// As [`read`](Cluster::read).
    pub fn jobs_with_comments(slurm: &Slurm) -> Result<Vec<(Job, Comments)>, SlurmError> {
        let (jobs, _) = Cluster::timed_jobs(slurm)?;
        let mut comments = Cluster::comments(slurm)?;
        let mut all: Vec<_> = jobs
            .into_values()
            .map(|job| (comments.remove(&job.id).unwrap_or_default(), job))
            .map(|(comments, job)| (job, comments))
            .collect();
        all.sort_by_key(|(job, _)| job.order());
        Ok(all)
    }

    /// Reads the comments of the jobs that have not ended, by name ([`Job::id`]). A job without a comment is left out.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn comments(slurm: &Slurm) -> Result<BTreeMap<String, Comments>, SlurmError> {
        let comments = Cluster::columns(slurm)?.into_iter().map(|(id, columns)| (id, columns.comments));
        Ok(comments.filter(|(_, comments)| *comments != Comments::default()).collect())
    }

    /// Reads the columns that have no letter, by the name of the job ([`Job::id`]).
    ///
    /// # Errors
    /// If they cannot be read.
    pub(crate) fn columns(slurm: &Slurm) -> Result<BTreeMap<String, Columns>, SlurmError> {
        let mark = format!("{SEPARATOR}{}", mark()?);
        // A column without a width is neither filled up nor cut.
        let columns = columns::COLUMNS.map(|name| format!("{name}:{mark}")).join(",");
        let answer = slurm.ask("squeue", &["-a", "-h", "-r", "-O", &columns])?;
        Ok(Columns::parse(&answer.text, &mark))
    }

    /// Reads the jobs, and returns the time that it took.
    pub(crate) fn timed_jobs(slurm: &Slurm) -> Result<(BTreeMap<String, Job>, Duration), SlurmError> {
        let mark = mark()?;
        let answer = slurm.ask("squeue", &["-a", "-h", "-r", "-o", &format!("{mark}{COLUMNS}")])?;
        let lines = marked(&answer.text, &mark);
        let jobs =
            lines.map(|line| Job::parse(line).map(|job| (job.id.clone(), job))).collect::<Result<_, _>>()?;
        Ok((jobs, answer.took))
    }
}

/// Returns a mark that cannot be foreseen.
fn mark() -> Result<String, SlurmError> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| SlurmError::Program { program: "/dev/urandom".to_owned(), error })?;
    Ok(format!("{:016x}{SEPARATOR}", u64::from_le_bytes(bytes)))
}

/// Returns the records of an answer, each of which begins with a mark.
///
/// The name at the end of a record may have line breaks, and lines that look like a job.
fn marked<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(mark).skip(1).map(|record| record.strip_suffix('\n').unwrap_or(record))
}

/// Returns the things of the lines that begin with their names.
pub(crate) fn named<T>(
    answer: &Answer,
    parse: impl Fn(Fields<'_>) -> Result<(String, T), SlurmError>,
) -> Result<BTreeMap<String, T>, SlurmError> {
    let lines = answer.text.lines().map(str::trim).filter(|line| line.contains('='));
    lines.map(|line| parse(Fields::new("scontrol", line))).collect()
}

#[cfg(test)]
mod tests;
