//! The partitions of a cluster as queues that a policy can simulate.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{
    Entry, JobId, JobNumber, Ledger, Machine, Placement, Procs, Request, Resources, Span, State, Time,
};
use miserly_forecast::{LiveQueue, SystemCopy};
use miserly_policies::PolicySpec;

use crate::{Cluster, Job, JobState, TwinQueues, cycles};

/// Partitions that share nodes, with their jobs as one queue.
#[derive(Clone, Debug)]
pub struct Queue {
    /// The partitions, by name.
    pub partitions: Vec<String>,
    /// The processors of the nodes on which jobs can start.
    pub cpus: u64,
    /// The jobs, in the order in which Slurm looks at them.
    pub live: LiveQueue,
    /// The names of its jobs, by their numbers in the queue.
    pub ids: BTreeMap<JobNumber, String>,
    /// The waiting jobs that are not in the queue, by name, with the reason.
    pub left_out: BTreeMap<String, String>,
}

impl Cluster {
    /// Returns the partitions as queues: those that share a node are one.
    ///
    /// Without a policy, a queue has the [twin](Cluster::twin) of the cluster's scheduler. It counts processors.
    /// Memory, generic resources and the places of processors are left out of account.
    pub fn queues(&self, policy: Option<&PolicySpec>) -> Vec<Queue> {
        let groups = self.partitions_by_nodes();
        groups.into_iter().filter_map(|partitions| self.queue(partitions, policy)).collect()
    }

    /// Returns the partitions in groups that share nodes.
    fn partitions_by_nodes(&self) -> Vec<BTreeSet<&str>> {
        let mut groups: Vec<(BTreeSet<&str>, BTreeSet<&str>)> = vec![];
        for (name, partition) in &self.partitions {
            let mut names = BTreeSet::from([name.as_str()]);
            let mut nodes: BTreeSet<&str> = partition.nodes.iter().map(String::as_str).collect();
            let (with, without) = groups.into_iter().partition(|(_, others)| !others.is_disjoint(&nodes));
            groups = without;
            let with: Vec<(BTreeSet<&str>, BTreeSet<&str>)> = with;
            for (other_names, other_nodes) in with {
                names.extend(other_names);
                nodes.extend(other_nodes);
            }
            groups.push((names, nodes));
        }
        let mut groups: Vec<BTreeSet<&str>> = groups.into_iter().map(|(names, _)| names).collect();
        groups.sort();
        groups
    }

    fn queue(&self, partitions: BTreeSet<&str>, policy: Option<&PolicySpec>) -> Option<Queue> {
        let nodes: BTreeSet<&str> = partitions
            .iter()
            .flat_map(|name| self.partitions[*name].nodes.iter().map(String::as_str))
            .filter(|node| self.nodes.get(*node).is_some_and(crate::Node::is_usable))
            .collect();
        let cpus: u64 = nodes.iter().map(|node| self.nodes[*node].cpus).sum();
        let now = Time::from_ticks(self.configuration.now.checked_mul(1_000_000)?);
        let mut entries = vec![];
        let mut left_out = BTreeMap::new();
        let mut waiting: Vec<&Job> = vec![];
        for job in self.jobs.values() {
            // Of several partitions, the first one counts.
            let mine = job.partitions.first().is_some_and(|name| partitions.contains(name.as_str()));
            match &job.state {
                _ if !mine => {}
                JobState::Pending => match self.obstacle(job, cpus) {
                    Some(reason) => drop(left_out.insert(job.id.clone(), reason)),
                    None => waiting.push(job),
                },
                // Its processors are free for others, and its next start is not known.
                JobState::Suspended => {}
                JobState::Running | JobState::Other(_) => {
                    entries.extend(running(job, &nodes, now).map(|entry| (job.id.clone(), entry)));
                }
            }
        }
        let tier = |job: &Job| {
            job.partitions
                .iter()
                .filter_map(|name| self.partitions.get(name))
                .map(|partition| partition.tier)
                .max()
        };
        waiting.sort_by_key(|job| (std::cmp::Reverse((tier(job), job.priority)), job.order()));
        // The order of arrival is that of Slurm's list.
        for (place, job) in (0_i64..).zip(waiting) {
            let submit = now - Span::from_ticks(1_000_000 - place.min(999_999));
            let request = Request { submit, ..request(job) };
            entries.push((job.id.clone(), Entry::waiting(request, 0)));
        }
        let mut ids = BTreeMap::new();
        // Where jobs share processors, they have more together than there are.
        let held = |(_, entry): &(String, Entry)| match entry.state {
            State::Running { .. } => entry.request.procs().get(),
            _ => 0,
        };
        let machine = Machine::plain(Procs::new(entries.iter().map(held).sum::<u64>().max(cpus).max(1)));
        let entries = (0_u64..).zip(entries).map(|(admitted, (id, entry))| {
            // Tasks of an array may share their number.
            let number = JobNumber::try_from(admitted).unwrap_or(JobNumber::MAX);
            ids.insert(number, id);
            Entry { admitted, request: Request { number, ..entry.request }, ..entry }
        });
        let ledger = Ledger::restored(machine, (0..).map(JobId).zip(entries).collect()).ok()?;
        let policy = match policy {
            Some(policy) => policy.clone(),
            None => self.twin(&TwinQueues::default(), &[], None, true).policy.parse().ok()?,
        };
        let copy = SystemCopy { now, ledger, wake: Some(now + Span::TICK) };
        Some(Queue {
            partitions: partitions.into_iter().map(str::to_owned).collect(),
            cpus,
            live: LiveQueue { policy, copy },
            ids,
            left_out,
        })
    }

    /// Returns why a waiting job cannot start for another cause than a lack of processors.
    fn obstacle(&self, job: &Job, cpus: u64) -> Option<String> {
        let down = |name: &String| self.partitions.get(name).is_none_or(|partition| partition.state != "up");
        if job.is_held() {
            Some("it is held".to_owned())
        } else if job.reservation.is_some() {
            Some("it uses a reservation".to_owned())
        } else if job.partitions.iter().all(down) {
            Some("its partition is not up".to_owned())
        } else if !job.waits_for_processors() {
            Some(format!("Slurm's reason: {}", job.reason.as_deref().unwrap_or_default()))
        } else if job.cpus > cpus {
            Some(format!("it needs {} processors of {cpus} that are in service", job.cpus))
        } else {
            None
        }
    }
}

fn request(job: &Job) -> Request {
    let estimate = Span::from_secs(job.limit.seconds()).unwrap_or(Span::MAX).max(Span::TICK);
    let submit = Time::from_ticks(job.submitted.saturating_mul(1_000_000));
    Request { user: Some(job.user), ..Request::new(0, submit, estimate, Resources::cpus(job.cpus.max(1))) }
}

/// Returns a job that holds processors of these nodes.
fn running(job: &Job, nodes: &BTreeSet<&str>, now: Time) -> Option<Entry> {
    let usable = job.on.iter().filter(|node| nodes.contains(node.as_str())).count() as u64;
    // On each of its nodes it has as many as on the others, as far as is known.
    let cpus = (job.cpus * usable).div_ceil((job.on.len() as u64).max(1));
    if cpus == 0 {
        return None;
    }
    let start = Time::from_ticks(job.start?.saturating_mul(1_000_000)).min(now);
    let request = Request { demand: Resources::cpus(cpus), ..request(job) };
    let placement = Placement::on_plain(request.demand);
    Some(cycles::running(Entry::waiting(request, 0), placement, start, now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Configuration, Limit, Node, Partition};

    fn cluster() -> Cluster {
        let node = |state: &str| Node { states: vec![state.to_owned()], cpus: 4, ..Node::default() };
        let partition = |nodes: &[&str], tier| Partition {
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            state: "up".to_owned(),
            tier,
            ..Partition::default()
        };
        let scheduler = "sched/backfill".to_owned();
        Cluster {
            configuration: Configuration { now: 1000, scheduler, ..Configuration::default() },
            nodes: [("a", "idle"), ("b", "mixed"), ("c", "idle"), ("d", "down")]
                .map(|(name, state)| (name.to_owned(), node(state)))
                .into(),
            partitions: [
                ("batch".to_owned(), partition(&["a", "b", "d"], 1)),
                ("fast".to_owned(), partition(&["b"], 2)),
                ("other".to_owned(), partition(&["c"], 1)),
            ]
            .into(),
            ..Cluster::default()
        }
    }

    fn job(number: u64, partition: &str, cpus: u64, priority: u64) -> Job {
        let limit = Limit::Seconds(600);
        Job {
            id: number.to_string(),
            number,
            partitions: vec![partition.to_owned()],
            cpus,
            priority,
            limit,
            ..Job::default()
        }
    }

    #[test]
    fn partitions_that_share_nodes_are_one_queue() {
        let mut cluster = cluster();
        let runs = Job {
            state: JobState::Running,
            start: Some(900),
            on: vec!["a".to_owned(), "d".to_owned()],
            ..job(1, "batch", 6, 1)
        };
        let jobs = [
            runs,
            job(2, "batch", 2, 50),
            job(3, "fast", 2, 10),
            job(4, "batch", 2, 90),
            job(5, "batch", 2, 0),
            job(6, "batch", 9, 20),
            Job { reason: Some("Dependency".to_owned()), ..job(7, "batch", 1, 7) },
            job(8, "other", 1, 1),
        ];
        cluster.jobs = jobs.map(|job| (job.id.clone(), job)).into();
        let queues = cluster.queues(None);
        assert_eq!(queues.len(), 2);
        let queue = &queues[0];
        assert_eq!((queue.partitions.join(" "), queue.cpus), ("batch fast".to_owned(), 8));
        let ledger = &queue.live.copy.ledger;
        // Of its six processors, three are on the node that is in service.
        assert_eq!(ledger.free().cpus_count(), Procs::new(5));
        let waiting: Vec<&str> =
            ledger.waiting().map(|job| queue.ids[&ledger.request(job).number].as_str()).collect();
        assert_eq!(waiting, ["3", "4", "2"]);
        let left_out: Vec<&str> = queue.left_out.keys().map(String::as_str).collect();
        assert_eq!(left_out, ["5", "6", "7"]);
        assert_eq!(queue.left_out["7"], "Slurm's reason: Dependency");
        assert_eq!(queue.live.policy.to_string(), "slurm");
        assert_eq!(queues[1].live.copy.ledger.waiting_count(), 1);
    }

    #[test]
    fn a_cluster_without_nodes_has_no_room() {
        let cluster = Cluster { nodes: BTreeMap::new(), ..cluster() };
        assert!(cluster.queues(None).iter().all(|queue| queue.cpus == 0));
    }
}
