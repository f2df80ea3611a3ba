//! The facts of a Slurm cluster, one pool for each partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use jiff::tz::TimeZone;
use miserly_follow::Board;
use miserly_slurm::{Cluster, Job as SlurmJob, JobState, Partition, Poller, Slurm};
use miserly_view::{Account, Cause, Clock, Facts, Job, PoolFacts, RUN_NUMBERS, State, plain};
use nix::unistd::{Uid, User};

/// The most ended jobs that are remembered.
const ENDED_MOST: usize = 10_000;

/// Follows a cluster on a thread.
///
/// # Errors
/// If the cluster cannot be read the first time. Later failures are posted on the board, and it is tried again.
pub(super) fn follow(slurm: Slurm) -> anyhow::Result<Board> {
    let mut poller = Poller::new(slurm);
    poller.poll()?;
    let mut mirror = Mirror::default();
    let board = Board::new(mirror.facts(poller.cluster()));
    let posted = board.clone();
    thread::Builder::new().name("slurm".to_owned()).spawn(move || {
        loop {
            thread::sleep(poller.pause());
            match poller.poll() {
                Ok(_) => posted.post(mirror.facts(poller.cluster())),
                Err(error) => posted.fail(&error.to_string()),
            }
        }
    })?;
    Ok(board)
}

/// The jobs of a cluster, those that have ended too, and the names of users.
#[derive(Default)]
struct Mirror {
    jobs: BTreeMap<i64, Job>,
    users: BTreeMap<u32, String>,
}

impl Mirror {
    fn facts(&mut self, cluster: Option<&Cluster>) -> Facts {
        let empty = Cluster::default();
        let cluster = cluster.unwrap_or(&empty);
        let now = cluster.configuration.now.saturating_mul(1000);
        let names: Vec<&String> = cluster.partitions.keys().collect();
        let present: BTreeMap<i64, Job> = cluster
            .jobs
            .values()
            .filter_map(|job| self.job(job, &names))
            .map(|job| (job.number, job))
            .collect();
        for job in self.jobs.values_mut().filter(|job| !present.contains_key(&job.number)) {
            if job.state != State::Ended {
                (job.state, job.word, job.end) = (State::Ended, "ended".to_owned(), Some(now));
            }
        }
        self.jobs.extend(present);
        while self.jobs.len() > ENDED_MOST + cluster.jobs.len() {
            let oldest = self.jobs.values().filter(|job| job.state == State::Ended).min_by_key(|job| job.end);
            let Some(oldest) = oldest.map(|job| job.number) else { break };
            self.jobs.remove(&oldest);
        }
        Facts {
            now,
            clock: Clock::Wall(TimeZone::system()),
            title: format!("cluster {}", cluster.configuration.cluster),
            live: true,
            uid: Some(rustix::process::geteuid().as_raw()),
            pools: cluster.partitions.iter().map(|(name, with)| pool(cluster, name, with)).collect(),
            jobs: self.jobs.values().cloned().map(Arc::new).collect(),
            account: Account::default(),
        }
    }

    fn job(&mut self, job: &SlurmJob, partitions: &[&String]) -> Option<Job> {
        let place = |name: &String| partitions.iter().position(|known| *known == name);
        let pool = job.partitions.iter().find_map(place)?;
        let state = match &job.state {
            JobState::Pending if job.priority == 0 => State::Held,
            JobState::Pending => State::Waiting,
            JobState::Suspended => State::Suspended,
            JobState::Running | JobState::Other(_) => State::Running,
        };
        let waits = job.state == JobState::Pending;
        let millis = |at: Option<i64>| at.map(|at| at.saturating_mul(1000));
        let reason = job.reason.as_deref().filter(|_| waits);
        Some(Job {
            number: number(job),
            label: job.id.clone(),
            name: plain(&job.name),
            user: self.user(job.user),
            uid: Some(job.user),
            pool,
            procs: job.cpus,
            limit: job.limit.seconds().saturating_mul(1000),
            state,
            word: match &job.state {
                JobState::Pending if job.priority == 0 => "held".to_owned(),
                JobState::Pending => "pending".to_owned(),
                JobState::Running => "running".to_owned(),
                JobState::Suspended => "suspended".to_owned(),
                JobState::Other(word) => plain(word),
            },
            submitted: job.submitted.saturating_mul(1000),
            start: millis(job.start).filter(|_| !waits),
            end: millis(job.end).filter(|_| !waits),
            planned: millis(job.start).filter(|_| waits),
            causes: reason
                .map(|reason| Cause::Stated { by: "Slurm".to_owned(), reason: plain(reason) })
                .into_iter()
                .collect(),
            ..Job::default()
        })
    }

    fn user(&mut self, uid: u32) -> String {
        let name = || {
            User::from_uid(Uid::from_raw(uid))
                .ok()
                .flatten()
                .map_or_else(|| uid.to_string(), |user| user.name)
        };
        plain(self.users.entry(uid).or_insert_with(name))
    }
}

/// Returns a number that only this job has. Tasks of an array have that of the array, and are told apart above it.
fn number(job: &SlurmJob) -> i64 {
    let signed = |number: u64| i64::try_from(number).unwrap_or(0);
    match &job.array {
        Some((array, task)) => {
            signed(*array) + RUN_NUMBERS * (1 + task.parse::<i64>().unwrap_or(0).clamp(0, 1_000_000))
        }
        None => signed(job.number),
    }
}

fn pool(cluster: &Cluster, name: &str, partition: &Partition) -> PoolFacts {
    const MIB: u64 = 1 << 20;
    let nodes = || partition.nodes.iter().filter_map(|node| cluster.nodes.get(node));
    PoolFacts {
        name: plain(name),
        policy: format!("Slurm, {} nodes", partition.nodes.len()),
        promises: "nothing".to_owned(),
        stopped: (partition.state != "up").then(|| format!("the partition is {}", partition.state)),
        cpus: nodes().map(|node| node.cpus).sum(),
        held: nodes().map(|node| node.cpus_used).sum(),
        memory: nodes().map(|node| node.memory).sum::<u64>() * MIB,
        memory_held: nodes().map(|node| node.memory_used).sum::<u64>() * MIB,
        slices: vec![],
    }
}
