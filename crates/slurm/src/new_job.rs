//! A job that is not yet submitted.

use thiserror::Error;

use crate::cluster::amount;
use crate::{Amount, Cluster, Detail, Job, JobState, Limit, Observed, Slurm, SlurmError};

/// A job that is not yet submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewJob {
    /// The processors.
    pub cpus: u64,
    /// The time limit, seconds.
    pub seconds: u64,
    /// The partition; the default one, if absent.
    pub partition: Option<String>,
    /// The memory, as Slurm writes it: of each node, or of each processor with `c` at the end; by the configuration, if absent.
    pub memory: Option<String>,
    /// The number of nodes; any, if absent.
    pub nodes: Option<u64>,
    /// The GPUs of each node.
    pub gpus: u64,
    /// The user, by number.
    pub user: u32,
}

/// The reason why a cluster cannot take a job.
#[derive(Debug, Error)]
pub enum NewJobError {
    /// The cluster has no such partition.
    #[error(transparent)]
    Partition(#[from] SlurmError),
    /// The cluster has no default partition.
    #[error("the cluster has no default partition; choose one with --partition")]
    NoDefault,
    /// The amount of memory cannot be read.
    #[error("--memory {0}: write an amount such as 4000M, 16G (of each node) or 2Gc (of each processor)")]
    Memory(String),
    /// The partition has a shorter time limit.
    #[error(
        "the partition {partition} has jobs of at most {longest} s; choose a shorter --time or another --partition"
    )]
    TooLong {
        /// The partition.
        partition: String,
        /// Its longest time limit, seconds.
        longest: u64,
    },
}

impl NewJob {
    /// The name of the job in forecasts.
    pub const NAME: &'static str = "new";

    /// Adds the job to the state of a cluster, behind all jobs that wait there, by the name [`NAME`](NewJob::NAME).
    ///
    /// # Errors
    /// If the partition cannot take it.
    pub fn add(&self, cluster: &mut Cluster, observed: &mut Observed) -> Result<(), NewJobError> {
        let partition = self.partition_in(cluster)?.to_owned();
        let settings = &cluster.partitions[&partition];
        if let Limit::Seconds(longest) = settings.longest
            && longest < self.seconds
        {
            return Err(NewJobError::TooLong { partition, longest });
        }
        let memory = match &self.memory {
            Some(text) => Some(amount(text).ok_or_else(|| NewJobError::Memory(text.clone()))?),
            None => settings.default_memory.or(cluster.configuration.default_memory),
        };
        let nodes = self.nodes.unwrap_or(1).max(1);
        let waiting = cluster.jobs.values().filter(|job| job.state == JobState::Pending && !job.is_held());
        let least = waiting.map(|job| job.priority).min().unwrap_or(1);
        let job = Job {
            id: NewJob::NAME.to_owned(),
            number: u64::MAX,
            partitions: vec![partition],
            user: self.user,
            cpus: self.cpus.max(nodes),
            nodes,
            memory,
            gres: (self.gpus > 0).then(|| format!("gres:gpu:{}", self.gpus)),
            limit: Limit::Seconds(self.seconds),
            submitted: cluster.configuration.now,
            priority: least.saturating_sub(1).max(1),
            ..Job::default()
        };
        let detail = Detail {
            least_nodes: nodes,
            most_nodes: self.nodes,
            memory,
            gres_per_node: job.gres.clone(),
            ..Detail::default()
        };
        observed.details.insert(job.id.clone(), detail);
        cluster.jobs.insert(job.id.clone(), job);
        Ok(())
    }

    fn partition_in<'a>(&'a self, cluster: &'a Cluster) -> Result<&'a str, NewJobError> {
        if let Some(partition) = &self.partition {
            cluster.check_partition(partition)?;
            return Ok(partition);
        }
        let default = cluster.partitions.iter().find(|(_, partition)| partition.is_default);
        default.map(|(name, _)| name.as_str()).ok_or(NewJobError::NoDefault)
    }

    /// Asks Slurm for the start that it expects, in seconds since 1970, without submitting the job. `Err` within is its refusal.
    ///
    /// # Errors
    /// If `sbatch` cannot be run.
    pub fn expected_start(&self, slurm: &Slurm) -> Result<Result<Option<i64>, String>, SlurmError> {
        let mut options = vec![
            format!("--ntasks={}", self.cpus),
            // Slurm has whole minutes.
            format!("--time={}", self.seconds.div_ceil(60)),
        ];
        options.extend(self.partition.iter().map(|name| format!("--partition={name}")));
        options.extend(self.nodes.iter().map(|nodes| format!("--nodes={nodes}")));
        options.extend((self.gpus > 0).then(|| format!("--gres=gpu:{}", self.gpus)));
        options.extend(self.memory.as_deref().and_then(amount).map(|memory| match memory {
            Amount::PerNode(mebi) => format!("--mem={mebi}M"),
            Amount::PerCpu(mebi) => format!("--mem-per-cpu={mebi}M"),
        }));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let answer = slurm.test_only(&options, "#!/bin/sh\n")?;
        Ok(answer.map(|text| expected(&text)))
    }
}

/// Returns the start in an answer of `sbatch --test-only`.
fn expected(text: &str) -> Option<i64> {
    let (_, rest) = text.split_once(" to start at ")?;
    rest.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_slurm_has_a_start() {
        let text =
            "sbatch: Job 12 to start at 1795639196 using 4 processors on nodes node1 in partition batch";
        assert_eq!(expected(text), Some(1_795_639_196));
        assert_eq!(expected("sbatch: error: no"), None);
    }
}
