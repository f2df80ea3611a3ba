//! The facts of a Slurm cluster, one pool for each partition.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread;

use jiff::tz::TimeZone;
use miserly_follow::Board;
use miserly_slurm::{Cluster, Job as SlurmJob, JobState, Node, Partition, Poller, Slurm, gpu_types, gpus};
use miserly_view::{ANY_GPU, Account, Cause, Clock, Facts, HostFacts, Job, PoolFacts, State, counted, plain};

use super::numbers::Numbers;
use crate::commands::users::Users;

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

/// The jobs of a cluster, those that have ended too, with their known facts.
#[derive(Default)]
struct Mirror {
    /// The jobs by their names.
    jobs: BTreeMap<String, Seen>,
    numbers: Numbers,
    users: Users,
}

/// A job with its partition. Partitions may change while it is remembered.
struct Seen {
    partition: String,
    job: Job,
}

impl Mirror {
    fn facts(&mut self, cluster: Option<&Cluster>) -> Facts {
        let empty = Cluster::default();
        let cluster = cluster.unwrap_or(&empty);
        self.follow(cluster);
        Facts {
            now: millis(cluster.configuration.now),
            clock: Clock::Wall(TimeZone::system()),
            title: format!("cluster {}", cluster.configuration.cluster),
            live: true,
            earlier: false,
            uid: Some(rustix::process::geteuid().as_raw()),
            pools: cluster.partitions.iter().map(|(name, with)| pool(cluster, name, with)).collect(),
            jobs: self.placed(cluster),
            account: Account::default(),
        }
    }

    /// Takes in the present jobs, and ends those that are gone.
    fn follow(&mut self, cluster: &Cluster) {
        let gone = self.jobs.iter_mut().filter(|(id, _)| !cluster.jobs.contains_key(*id));
        for Seen { job, .. } in gone.map(|(_, seen)| seen) {
            if job.state != State::Ended {
                let end = Some(millis(cluster.configuration.now));
                (job.state, job.word, job.end) = (State::Ended, "ended".to_owned(), end);
            }
        }
        for job in cluster.jobs.values() {
            let Some(partition) = job.partitions.iter().find(|name| cluster.partitions.contains_key(*name))
            else {
                continue;
            };
            let seen = Seen { partition: partition.clone(), job: self.job(job) };
            self.jobs.insert(job.id.clone(), seen);
        }
        self.forget(ENDED_MOST);
    }

    /// Forgets the ended jobs above this number, oldest first.
    fn forget(&mut self, most: usize) {
        let ended = self.jobs.iter().filter(|(_, seen)| seen.job.state == State::Ended);
        let mut ended: Vec<(Option<i64>, String)> =
            ended.map(|(id, seen)| (seen.job.end, id.clone())).collect();
        let excess = ended.len().saturating_sub(most);
        if excess == 0 {
            return;
        }
        ended.sort_unstable();
        for (_, id) in ended.drain(..excess) {
            self.jobs.remove(&id);
            self.numbers.remove(&id);
        }
    }

    /// Returns the jobs of partitions that exist.
    fn placed(&self, cluster: &Cluster) -> Vec<Arc<Job>> {
        let positions: BTreeMap<&String, usize> =
            cluster.partitions.keys().enumerate().map(|(position, name)| (name, position)).collect();
        let placed = |seen: &Seen| {
            let pool = *positions.get(&seen.partition)?;
            Some(Arc::new(Job { pool, ..seen.job.clone() }))
        };
        self.jobs.values().filter_map(placed).collect()
    }

    /// Returns a job without its place.
    fn job(&mut self, job: &SlurmJob) -> Job {
        let state = match &job.state {
            JobState::Pending if job.priority == 0 => State::Held,
            JobState::Pending => State::Waiting,
            JobState::Suspended => State::Suspended,
            JobState::Running | JobState::Other(_) => State::Running,
        };
        let waits = job.state == JobState::Pending;
        let reason = job.reason.as_deref().filter(|_| waits);
        Job {
            number: self.numbers.number(job),
            label: job.id.clone(),
            name: plain(&job.name),
            user: self.users.name(job.user),
            uid: Some(job.user),
            procs: job.cpus,
            gpu: gpu(job.gres.as_deref().unwrap_or_default()),
            gpus: job.gres.as_deref().map_or(0, gpus).saturating_mul(job.nodes),
            limit: job.limit.seconds().saturating_mul(1000),
            state,
            word: word(job),
            submitted: millis(job.submitted),
            start: job.start.map(millis).filter(|_| !waits),
            end: job.end.map(millis).filter(|_| !waits),
            planned: job.start.map(millis).filter(|_| waits),
            hosts: job.on.iter().map(|name| plain(name)).collect(),
            causes: reason
                .map(|reason| Cause::Stated { by: "Slurm".to_owned(), reason: plain(reason) })
                .into_iter()
                .collect(),
            ..Job::default()
        }
    }
}

/// Returns the types of the GPUs in a list of generic resources.
fn gpu(list: &str) -> String {
    let types: Vec<String> = gpu_types(list).into_keys().map(|name| plain(&name)).collect();
    if types.is_empty() && gpus(list) > 0 { ANY_GPU.to_owned() } else { types.join(" and ") }
}

/// Returns a word for the state of a job.
fn word(job: &SlurmJob) -> String {
    match &job.state {
        JobState::Pending if job.priority == 0 => "held".to_owned(),
        JobState::Pending => "pending".to_owned(),
        JobState::Running => "running".to_owned(),
        JobState::Suspended => "suspended".to_owned(),
        JobState::Other(word) => plain(word),
    }
}

fn millis(seconds: i64) -> i64 {
    seconds.saturating_mul(1000)
}

fn pool(cluster: &Cluster, name: &str, partition: &Partition) -> PoolFacts {
    let others = cluster.partitions.iter().filter(|(other, _)| *other != name).map(|(_, other)| other);
    let others: BTreeSet<&String> = others.flat_map(|other| &other.nodes).collect();
    let known = partition.nodes.iter().filter_map(|node| cluster.nodes.get_key_value(node));
    let hosts: Vec<HostFacts> = known.map(|(name, node)| host(name, node)).collect();
    let sum = |amount: fn(&HostFacts) -> u64| hosts.iter().map(amount).sum::<u64>();
    let offline = sum(|host| if host.unusable.is_some() { host.cpus - host.held.unwrap_or(0) } else { 0 });
    PoolFacts {
        name: plain(name),
        policy: format!("Slurm, {}", counted(partition.nodes.len() as u64, "node")),
        promises: "nothing".to_owned(),
        stopped: (partition.state != "up").then(|| format!("the partition is {}", partition.state)),
        cpus: sum(|host| host.cpus) - offline,
        held: sum(|host| host.held.unwrap_or(0)),
        offline,
        memory: sum(|host| host.memory),
        memory_held: sum(|host| host.memory_held),
        shared: partition.nodes.iter().any(|node| others.contains(node)),
        hosts,
        ..PoolFacts::default()
    }
}

fn host(name: &str, node: &Node) -> HostFacts {
    const MIB: u64 = 1 << 20;
    let has = |state: &str| node.states.iter().any(|known| known == state);
    HostFacts {
        name: plain(name),
        unusable: (!node.is_usable()).then(|| plain(&node.states.join(", "))),
        cpus: node.cpus,
        held: Some(node.cpus_used.min(node.cpus)),
        reserved: has("planned") || has("reserved"),
        memory: node.memory.saturating_mul(MIB),
        memory_held: node.memory_used.saturating_mul(MIB),
        ..HostFacts::default()
    }
}

#[cfg(test)]
mod tests {
    use miserly_view::Moment;

    use super::*;

    fn cluster(now: i64, partitions: &[&str], jobs: &[(u64, &str)]) -> Cluster {
        let job = |(number, partition): &(u64, &str)| {
            let partitions = vec![(*partition).to_owned()];
            let job = SlurmJob { id: number.to_string(), number: *number, partitions, ..SlurmJob::default() };
            (job.id.clone(), job)
        };
        let partition = |name: &&str| ((*name).to_owned(), Partition::default());
        let mut cluster = Cluster {
            partitions: partitions.iter().map(partition).collect(),
            jobs: jobs.iter().map(job).collect(),
            ..Cluster::default()
        };
        cluster.configuration.now = now;
        cluster
    }

    /// Returns the number, the partition and the end of each job.
    fn shown(facts: &Facts) -> Vec<(i64, &str, Option<i64>)> {
        facts.jobs.iter().map(|job| (job.number, &*facts.pools[job.pool].name, job.end)).collect()
    }

    #[test]
    fn an_ended_job_stays_in_its_partition() {
        let mut mirror = Mirror::default();
        let first = mirror.facts(Some(&cluster(10, &["long", "short"], &[(1, "short"), (2, "long")])));
        assert_eq!(shown(&first), [(1, "short", None), (2, "long", None)]);
        let more = mirror.facts(Some(&cluster(20, &["big", "long", "short"], &[(2, "long")])));
        assert_eq!(shown(&more), [(1, "short", Some(20_000)), (2, "long", None)]);
        let fewer = mirror.facts(Some(&cluster(30, &["long"], &[(2, "long")])));
        assert_eq!(shown(&fewer), [(2, "long", None)]);
    }

    #[test]
    fn nodes_with_their_processors_and_jobs() {
        let mut known = cluster(10, &["batch"], &[(1, "batch")]);
        let node = |state: &str, used| Node {
            states: vec![state.to_owned()],
            cpus: 4,
            cpus_used: used,
            memory: 2,
            ..Node::default()
        };
        for (name, node) in [("n1", node("mixed", 3)), ("n2", node("planned", 0)), ("n3", node("down", 0))] {
            known.nodes.insert(name.to_owned(), node);
            known.partitions.get_mut("batch").unwrap().nodes.push(name.to_owned());
        }
        let job = known.jobs.get_mut("1").unwrap();
        (job.state, job.on, job.cpus) = (JobState::Running, vec!["n1".to_owned()], 3);
        let moment = Moment::new(&Mirror::default().facts(Some(&known)));
        let pool = &moment.pools[0];
        assert_eq!(
            (pool.facts.cpus, pool.facts.held, pool.reserved, pool.free, pool.facts.offline),
            (8, 3, 4, 1, 4)
        );
        let hosts: Vec<_> = pool.hosts.iter().map(|host| (&*host.name, host.held, host.offline)).collect();
        assert_eq!(hosts, [("n1", 3, 0), ("n2", 0, 0), ("n3", 0, 4)]);
        assert_eq!((pool.hosts[0].parts[0].job, pool.hosts[0].memory), (Some(1), 2 << 20));
        assert_eq!(pool.hosts[2].unusable.as_deref(), Some("down"));
    }

    #[test]
    fn partitions_with_the_same_nodes_are_shared() {
        let mut known = cluster(10, &["alone", "batch", "long"], &[]);
        for (partition, node) in [("alone", "n1"), ("batch", "n2"), ("batch", "n3"), ("long", "n3")] {
            known.partitions.get_mut(partition).unwrap().nodes.push(node.to_owned());
        }
        let facts = Mirror::default().facts(Some(&known));
        assert_eq!(facts.pools.iter().map(|pool| pool.shared).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn the_oldest_ended_jobs_are_forgotten() {
        let mut mirror = Mirror::default();
        for now in 1..=5 {
            mirror.facts(Some(&cluster(now, &["batch"], &[(u64::try_from(now).unwrap(), "batch")])));
        }
        mirror.forget(2);
        assert_eq!(mirror.jobs.keys().collect::<Vec<_>>(), ["3", "4", "5"]);
    }
}
