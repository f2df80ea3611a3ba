//! The partitions of a cluster as queues that a policy can simulate.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use miserly_core::{
    Entry, JobId, JobNumber, Kind, Ledger, Machine, Placement, Procs, Request, Resources, Span, Time,
};
use miserly_forecast::{AHEAD_BESIDE_CLOSED, LiveQueue, SystemCopy};
use miserly_policies::PolicySpec;

use crate::live_limits::{LiveLimit, amount, array_limits, numbered};
use crate::queue_nodes::{Observed, QueueNodes, estimate};
use crate::{Cluster, Detail, Job, JobState, Limits, Twin, TwinQueues, cycles};

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
    /// The limits of running jobs and the rules of preemption, as parameters of the policy `slurm`, if there are any.
    pub(crate) limits: Option<String>,
    /// Why no job of the queue has a forecast, if so: jobs are suspended for others, or may be.
    pub(crate) unsettled: Option<String>,
    /// The next reservation of some of its nodes that the policy does not know, with its begin in seconds since 1970.
    pub unknown_reservation: Option<(i64, String)>,
}

impl Cluster {
    /// Returns the partitions as queues: those that share a node are one, and so are those whose jobs count for a limit together.
    ///
    /// Without a policy, a queue has the [twin](Cluster::twin) of the cluster's scheduler, with the limits of running jobs. If that
    /// would take long, it has cycles less often, or is `easy` where there are no limits and no reservations.
    ///
    /// Its machine are the nodes on which jobs can start, with their memory where Slurm counts it, and their GPUs. The nodes are closed
    /// while reservations hold them. Where the policy does not run on nodes, the machine has processors only. Jobs have
    /// nodes of the kind that they ask for there.
    pub fn queues(&self, policy: Option<&PolicySpec>, observed: &Observed) -> Vec<Queue> {
        let (known, unknown) = self.limits_of_jobs(observed);
        let known = if policy.is_none() { known } else { vec![] };
        let mut groups = self.partitions_by_nodes();
        for limit in &known {
            join_limited(&mut groups, &self.partitions_of_limit(limit));
        }
        let queue = |partitions| self.queue(partitions, policy, observed, &known, &unknown);
        groups.into_iter().filter_map(queue).collect()
    }

    /// Returns the limits that hold for running jobs and for those that may have a forecast, and the waiting jobs that may wait for a
    /// limit that is not simulated, with the limit in words.
    fn limits_of_jobs<'a>(&'a self, observed: &Observed) -> (Vec<LiveLimit<'a>>, BTreeMap<&'a str, String>) {
        let counts = |job: &&Job| match job.state {
            JobState::Pending => job.may_have_forecast(),
            JobState::Suspended => false,
            JobState::Running | JobState::Other(_) => true,
        };
        let jobs: Vec<&Job> = self.jobs.values().filter(counts).collect();
        let mut limits = self.live_limits(&observed.limits, &jobs);
        limits.extend(array_limits(&observed.details, &jobs));
        let waits = |id: &&&str| self.jobs.get(**id).is_some_and(|job| job.state == JobState::Pending);
        limits.retain(|limit| limit.jobs.iter().any(|id| waits(&id)));
        (limits, self.unknown_limits(&observed.limits, &observed.details, &jobs))
    }

    /// Returns the partitions of the jobs that count for a limit.
    fn partitions_of_limit(&self, limit: &LiveLimit<'_>) -> BTreeSet<&str> {
        let jobs = limit.jobs.iter().filter_map(|id| self.jobs.get(*id));
        jobs.filter_map(|job| self.partition_of(job)).collect()
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
        limits: &[LiveLimit<'_>],
        unknown: &BTreeMap<&str, String>,
    ) -> Option<Queue> {
        let plans_closed = policy.is_none_or(|policy| policy.needs().closed_hosts);
        let nodes: BTreeSet<&str> = partitions
            .iter()
            .flat_map(|name| self.partitions[*name].nodes.iter().map(String::as_str))
            .filter(|node| self.is_in_service(node, plans_closed))
            .collect();
        let cpus: u64 = nodes.iter().map(|node| self.nodes[*node].cpus).sum();
        let now = Time::from_ticks(self.configuration.now.checked_mul(1_000_000)?);
        let mut left_out = BTreeMap::new();
        let detail = |job: &Job| observed.details.get(&job.id);
        let (mut waiting, mut running): (Vec<&Job>, Vec<(&Job, Request)>) = (vec![], vec![]);
        let qualities = &observed.limits.qualities;
        let mut unsettled = None;
        for job in self.jobs.values() {
            let mine = self.partition_of(job).is_some_and(|name| partitions.contains(name));
            match &job.state {
                _ if !mine => {}
                JobState::Pending => {
                    let obstacle = self.obstacle(job, detail(job), &nodes, limits);
                    let suspends =
                        || self.may_suspend(job, qualities).inspect(|_| unsettled = Some(by_suspension(job)));
                    match obstacle.or_else(suspends).or_else(|| unknown.get(job.id.as_str()).cloned()) {
                        Some(reason) => drop(left_out.insert(job.id.clone(), reason)),
                        None => waiting.push(job),
                    }
                }
                JobState::Suspended if self.suspends(qualities) => unsettled = Some(suspended(job)),
                // An administrator suspended it: its processors are free for others, and its next start is not known.
                JobState::Suspended => {}
                JobState::Running | JobState::Other(_) => running.push((job, request(job))),
            }
        }
        let mut waiting = self.in_order(waiting, now);
        let is_bound = |job: &Job| detail(job).is_some_and(|detail| !detail.is_requeueable);
        let kind = |job: &Job| self.preempts().then(|| self.preemption_kind(job, is_bound(job)));
        let in_queue = waiting.iter().chain(&running).map(|(job, _)| (job.id.as_str(), kind(job)));
        let numbered = numbered(limits, in_queue);
        for (job, request) in waiting.iter_mut().chain(&mut running) {
            request.queue = numbered.numbers.get(job.id.as_str()).copied();
        }
        let preemption = self.preemption_parameters(&numbered.kinds, &observed.limits.qualities);
        let written = numbered.limits.map(|limits| format!("limits='{limits}'"));
        let written: Vec<String> = written.into_iter().chain(preemption).collect();
        let written = (!written.is_empty()).then(|| written.join(", "));
        let closed = self.closed_times(&nodes);
        let beside = running.len() + nodes.len() + closed;
        let cycles = self.cycles_ahead(&waiting, &running, cpus, &nodes);
        let plans = cycles.saturating_mul(waiting.len() as u64).saturating_mul(beside as u64);
        let policy = match policy {
            Some(policy) => policy.clone(),
            None if plans > PLANS_MOST && written.is_none() && closed == 0 => "easy".parse().ok()?,
            None => self.live_twin(observed, written.as_deref(), plans.div_ceil(PLANS_MOST).max(1))?,
        };
        let unknown_reservation = self
            .next_reservation(|node| nodes.contains(node))
            .filter(|_| !policy.needs().closed_hosts)
            .map(|(begin, name)| (begin, name.to_owned()));
        let on_nodes = QueueNodes::new(self, observed, &partitions, &nodes, policy.needs().closed_hosts)
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
            let demand = with_limited(entry.request.demand, &machine, limits, job, detail(job));
            Entry { admitted, request: Request { number, demand, ..entry.request }, ..entry }
        });
        let entries = (0..).map(JobId).zip(entries).collect();
        let ledger = Ledger::restored(machine.clone(), entries).ok()?;
        let copy = SystemCopy { now, ledger, wake: Some(now + Span::TICK) };
        Some(Queue {
            partitions: partitions.into_iter().map(str::to_owned).collect(),
            cpus,
            live: LiveQueue { policy, copy },
            ids,
            left_out,
            limits: written,
            unsettled,
            unknown_reservation,
        })
    }

    /// Returns waiting jobs in the order in which Slurm looks at them, with requests that arrived in this order.
    fn in_order<'a>(&self, mut waiting: Vec<&'a Job>, now: Time) -> Vec<(&'a Job, Request)> {
        let tier = |job: &Job| {
            let partitions = job.partitions.iter().filter_map(|name| self.partitions.get(name));
            partitions.map(|partition| partition.tier).max()
        };
        waiting.sort_by_key(|job| (std::cmp::Reverse((tier(job), job.priority)), job.order()));
        let arrival = |(place, job)| {
            let submit = now - Span::from_ticks(1_000_000 - i64::min(place, 999_999));
            (job, Request { submit, ..request(job) })
        };
        (0_i64..).zip(waiting).map(arrival).collect()
    }

    /// Returns the first partition of a job that is up, or else the first one.
    pub(crate) fn partition_of<'a>(&self, job: &'a Job) -> Option<&'a str> {
        let is_up =
            |name: &&String| self.partitions.get(*name).is_some_and(|partition| partition.state == "up");
        job.partitions.iter().find(is_up).or(job.partitions.first()).map(String::as_str)
    }

    /// Returns whether jobs can start on a node, now or when a reservation ends.
    fn is_in_service(&self, name: &str, plans_closed: bool) -> bool {
        let now = self.configuration.now;
        let holds = || self.reservations.values().any(|reservation| reservation.holds(name, now));
        self.nodes.get(name).is_some_and(|node| {
            if plans_closed {
                node.is_usable() || node.is_usable_after_maintenance() && holds()
            } else {
                node.is_usable() && !holds()
            }
        })
    }

    /// Returns the number of cycles until all jobs have run, about. The twin plans all waiting jobs in each one.
    fn cycles_ahead(
        &self,
        waiting: &[(&Job, Request)],
        running: &[(&Job, Request)],
        cpus: u64,
        nodes: &BTreeSet<&str>,
    ) -> u64 {
        let seconds = |request: &Request| request.estimate.secs().unsigned_abs();
        let work = |(job, request): &(&Job, Request)| seconds(request).saturating_mul(job.cpus);
        let work = waiting.iter().map(work).fold(0, u64::saturating_add) / cpus.max(1);
        let longest = running.iter().map(|(_, request)| seconds(request)).max().unwrap_or(0);
        let now = self.configuration.now;
        let here = |one: &&crate::Reservation| {
            one.is_active(now) && one.nodes.iter().any(|node| nodes.contains(node.as_str()))
        };
        let closed = |one: &crate::Reservation| {
            one.end.saturating_sub(now).clamp(0, AHEAD_BESIDE_CLOSED.secs()).unsigned_abs()
        };
        let closed = self.reservations.values().filter(here).map(closed).max().unwrap_or(0);
        let ahead = longest.max(closed).saturating_add(work);
        ahead / self.configuration.cycle().secs().unsigned_abs().max(1)
    }

    /// Returns the policy that schedules as this cluster does, for jobs in the order of their priorities. Its cycles are this many times
    /// as far apart as those of the cluster.
    fn live_twin(&self, observed: &Observed, parameters: Option<&str>, apart: u64) -> Option<PolicySpec> {
        let twin = self.ordered_twin(parameters);
        let twin = match observed.cycles {
            _ if apart > 1 => twin.with_fewer_cycles(&self.configuration, apart),
            Some(cycles) => twin.with_cycles(&self.configuration, cycles, Timestamp::UNIX_EPOCH),
            None => twin,
        };
        twin.policy.parse().ok()
    }

    /// Returns the twin for jobs in the order of their priorities, with further parameters: limits of running jobs and rules of
    /// preemption.
    pub(crate) fn ordered_twin(&self, parameters: Option<&str>) -> Twin {
        let twin = self.twin(&TwinQueues::default(), &Limits::default(), None, true);
        match parameters {
            Some(parameters) => twin.with(parameters),
            None => twin,
        }
    }
}

/// Returns why other jobs have no forecast beside one that may suspend running jobs.
fn by_suspension(job: &Job) -> String {
    format!("the job {} of these nodes may suspend running jobs, which is not simulated", job.id)
}

/// Returns why other jobs have no forecast beside a suspended one.
fn suspended(job: &Job) -> String {
    format!("the job {} of these nodes is suspended for another one, which is not simulated", job.id)
}

/// Returns the demand of a job with the resources that limits count and the machine does not, such as memory where Slurm gives out
/// processors only.
fn with_limited(
    demand: Resources,
    machine: &Machine,
    limits: &[LiveLimit<'_>],
    job: &Job,
    detail: Option<&Detail>,
) -> Resources {
    let is_counted = |name: &str| limits.iter().any(|limit| limit.resource() == name);
    let missing = [(Kind::Gpus, "gpus", 1), (Kind::Memory, "memory", 1024)];
    let missing =
        missing.into_iter().filter(|(kind, name, _)| machine.capacity().get(*kind) == 0 && is_counted(name));
    missing.fold(demand, |demand, (kind, name, unit)| {
        demand.with(kind, amount(name, job, detail).saturating_mul(unit))
    })
}

fn request(job: &Job) -> Request {
    let submit = Time::from_ticks(job.submitted.saturating_mul(1_000_000));
    Request {
        user: Some(job.user),
        ..Request::new(0, submit, estimate(job), Resources::cpus(job.cpus.max(1)))
    }
}

/// Joins the groups that have some of these partitions.
fn join_limited<'a>(groups: &mut Vec<BTreeSet<&'a str>>, partitions: &BTreeSet<&'a str>) {
    let (with, mut others): (Vec<_>, Vec<_>) =
        std::mem::take(groups).into_iter().partition(|group| !group.is_disjoint(partitions));
    others.extend(with.into_iter().reduce(|mut all, group| {
        all.extend(group);
        all
    }));
    others.sort();
    *groups = others;
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
