//! The partitions of a cluster as queues that a policy can simulate.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use miserly_core::{
    Entry, JobId, JobNumber, Ledger, Machine, Placement, Procs, Request, Resources, Span, Time,
};
use miserly_forecast::{LiveQueue, SystemCopy};
use miserly_policies::PolicySpec;

use crate::queue_nodes::{Observed, QueueNodes, estimate};
use crate::{Cluster, Job, JobState, Twin, TwinQueues, cycles};

/// The most plans of a waiting job in a future of the twin, each multiplied by the running jobs and the nodes.
///
/// Fifty futures with 4 million take 2 s, and with 40 million 17 s.
const PLANS_MOST: u64 = 10_000_000;

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
    /// Without a policy, a queue has the [twin](Cluster::twin) of the cluster's scheduler, or `easy` if that would take long.
    ///
    /// Its machine are the nodes on which jobs can start, with their memory where Slurm counts it, and their GPUs. Where the policy does
    /// not run on nodes, the machine has processors only. Licences, features and required nodes are left out of account.
    pub fn queues(&self, policy: Option<&PolicySpec>, observed: &Observed) -> Vec<Queue> {
        let groups = self.partitions_by_nodes();
        groups.into_iter().filter_map(|partitions| self.queue(partitions, policy, observed)).collect()
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

    fn queue(
        &self,
        partitions: BTreeSet<&str>,
        policy: Option<&PolicySpec>,
        observed: &Observed,
    ) -> Option<Queue> {
        let nodes: BTreeSet<&str> = partitions
            .iter()
            .flat_map(|name| self.partitions[*name].nodes.iter().map(String::as_str))
            .filter(|node| self.nodes.get(*node).is_some_and(crate::Node::is_usable))
            .collect();
        let cpus: u64 = nodes.iter().map(|node| self.nodes[*node].cpus).sum();
        let now = Time::from_ticks(self.configuration.now.checked_mul(1_000_000)?);
        let mut left_out = BTreeMap::new();
        let (mut waiting, mut running): (Vec<&Job>, Vec<(&Job, Request)>) = (vec![], vec![]);
        for job in self.jobs.values() {
            let mine = self.partition_of(job).is_some_and(|name| partitions.contains(name));
            match &job.state {
                _ if !mine => {}
                JobState::Pending => match self.obstacle(job, cpus) {
                    Some(reason) => drop(left_out.insert(job.id.clone(), reason)),
                    None => waiting.push(job),
                },
                // Its processors are free for others, and its next start is not known.
                JobState::Suspended => {}
                JobState::Running | JobState::Other(_) => running.push((job, request(job))),
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
        let arrival = |(place, job)| {
            let submit = now - Span::from_ticks(1_000_000 - i64::min(place, 999_999));
            (job, Request { submit, ..request(job) })
        };
        let waiting: Vec<(&Job, Request)> = (0_i64..).zip(waiting).map(arrival).collect();
        let policy = match policy {
            Some(policy) => policy.clone(),
            None if self.twin_takes_long(&waiting, &running, nodes.len(), cpus) => "easy".parse().ok()?,
            None => self.live_twin(observed).policy.parse().ok()?,
        };
        let on_nodes = QueueNodes::new(self, observed, &partitions, &nodes)
            .filter(|on_nodes| policy.build(on_nodes.machine(), 0).is_ok());
        let (machine, entries) = match on_nodes {
            Some(mut on_nodes) => {
                let mut entries: Vec<(&Job, Entry)> = vec![];
                for (job, request) in &running {
                    entries.extend(on_nodes.running(request, job, now).map(|entry| (*job, entry)));
                }
                for (job, request) in &waiting {
                    match on_nodes.waiting(request, job) {
                        Some(request) => entries.push((*job, Entry::waiting(request, 0))),
                        None => {
                            left_out.insert(job.id.clone(), "the nodes in service cannot hold it".to_owned());
                        }
                    }
                }
                (on_nodes.machine().clone(), entries)
            }
            None => plain(&nodes, cpus, &running, waiting, now),
        };
        let mut ids = BTreeMap::new();
        let entries = (0_u64..).zip(entries).map(|(admitted, (job, entry))| {
            // Tasks of an array may share their number.
            let number = JobNumber::try_from(admitted).unwrap_or(JobNumber::MAX);
            ids.insert(number, job.id.clone());
            Entry { admitted, request: Request { number, ..entry.request }, ..entry }
        });
        let ledger = Ledger::restored(machine, (0..).map(JobId).zip(entries).collect()).ok()?;
        let copy = SystemCopy { now, ledger, wake: Some(now + Span::TICK) };
        Some(Queue {
            partitions: partitions.into_iter().map(str::to_owned).collect(),
            cpus,
            live: LiveQueue { policy, copy },
            ids,
            left_out,
        })
    }

    /// Returns the first partition of a job that is up, or else the first one.
    pub(crate) fn partition_of<'a>(&self, job: &'a Job) -> Option<&'a str> {
        let is_up =
            |name: &&String| self.partitions.get(*name).is_some_and(|partition| partition.state == "up");
        job.partitions.iter().find(is_up).or(job.partitions.first()).map(String::as_str)
    }

    /// Returns whether the futures of the twin would take more than some seconds: it plans all waiting jobs in each cycle.
    fn twin_takes_long(
        &self,
        waiting: &[(&Job, Request)],
        running: &[(&Job, Request)],
        nodes: usize,
        cpus: u64,
    ) -> bool {
        let seconds = |request: &Request| request.estimate.secs().unsigned_abs();
        let work = |(job, request): &(&Job, Request)| seconds(request).saturating_mul(job.cpus);
        let work = waiting.iter().map(work).fold(0, u64::saturating_add) / cpus.max(1);
        let longest = running.iter().map(|(_, request)| seconds(request)).max().unwrap_or(0);
        let cycles = longest.saturating_add(work) / self.configuration.cycle().secs().unsigned_abs().max(1);
        let beside = (running.len() + nodes) as u64;
        cycles.saturating_mul(waiting.len() as u64).saturating_mul(beside) > PLANS_MOST
    }

    /// Returns the policy that schedules as this cluster does, for jobs in the order of their priorities.
    fn live_twin(&self, observed: &Observed) -> Twin {
        let twin = self.twin(&TwinQueues::default(), &[], None, true);
        match observed.cycles {
            Some(cycles) => twin.with_cycles(&self.configuration, cycles, Timestamp::UNIX_EPOCH),
            None => twin,
        }
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
    let submit = Time::from_ticks(job.submitted.saturating_mul(1_000_000));
    Request {
        user: Some(job.user),
        ..Request::new(0, submit, estimate(job), Resources::cpus(job.cpus.max(1)))
    }
}

/// Returns a machine of processors only, and the jobs on it.
fn plain<'a>(
    nodes: &BTreeSet<&str>,
    cpus: u64,
    jobs: &[(&'a Job, Request)],
    waiting: Vec<(&'a Job, Request)>,
    now: Time,
) -> (Machine, Vec<(&'a Job, Entry)>) {
    let running = jobs.iter().filter_map(|(job, request)| Some((*job, running(job, request, nodes, now)?)));
    let running: Vec<(&Job, Entry)> = running.collect();
    // Where jobs share processors, they have more together than there are.
    let held: u64 = running.iter().map(|(_, entry)| entry.request.procs().get()).sum();
    let machine = Machine::plain(Procs::new(held.max(cpus).max(1)));
    let waiting = waiting.into_iter().map(|(job, request)| (job, Entry::waiting(request, 0)));
    (machine, running.into_iter().chain(waiting).collect())
}

/// Returns a job that holds processors of these nodes.
fn running(job: &Job, request: &Request, nodes: &BTreeSet<&str>, now: Time) -> Option<Entry> {
    let usable = job.on.iter().filter(|node| nodes.contains(node.as_str())).count() as u64;
    // On each of its nodes it has as many as on the others, as far as is known.
    let cpus = (job.cpus * usable).div_ceil((job.on.len() as u64).max(1));
    if cpus == 0 {
        return None;
    }
    let start = Time::from_ticks(job.start?.saturating_mul(1_000_000)).min(now);
    let request = Request { demand: Resources::cpus(cpus), ..request.clone() };
    let placement = Placement::on_plain(request.demand);
    Some(cycles::running(Entry::waiting(request, 0), placement, start, now))
}

#[cfg(test)]
mod tests;
