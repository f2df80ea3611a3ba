//! The jobs of a queue on the nodes of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{
    Entry, Form, Host, HostGroup, HostId, Kind, Machine, Pes, Placement, Request, Resources, Share, SlotId,
    Span, Spread, Time,
};

use crate::twin_queues::groups_of;
use crate::{Amount, BackfillCycles, Cluster, Detail, Job, JobState, Limits, NodeNeeds, Slurm, cycles, gpus};

/// Answers of the controller beside the state of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The forms of the jobs, by name.
    pub details: BTreeMap<String, Detail>,
    /// The cycles of backfilling.
    pub cycles: Option<BackfillCycles>,
    /// The limits of running jobs that Slurm enforces.
    pub limits: Limits,
}

impl Observed {
    /// Reads the answers. A failure leaves its part empty.
    pub fn read(slurm: &Slurm, cluster: &Cluster) -> Observed {
        let jobs: Vec<String> = cluster.jobs.keys().cloned().collect();
        Observed {
            details: Detail::read(slurm, cluster, &jobs).unwrap_or_default(),
            cycles: BackfillCycles::read(slurm),
            limits: Limits::read(slurm, cluster).unwrap_or_default(),
        }
    }
}

impl Amount {
    /// Returns all memory of a job with this number of processors and nodes, kB.
    pub fn kilobytes(self, cpus: u64, nodes: u64) -> u64 {
        let (memory, parts) = match self {
            Amount::PerCpu(memory) => (memory, cpus),
            Amount::PerNode(memory) => (memory, nodes),
        };
        memory.saturating_mul(1024).saturating_mul(parts.max(1))
    }
}

impl Job {
    /// Returns its GPUs on this number of nodes, as far as they are by node.
    pub fn gpus_on(&self, nodes: u64) -> u64 {
        self.gres.as_deref().map_or(0, gpus).saturating_mul(nodes)
    }
}

/// The nodes of a queue on which jobs can start.
pub(crate) struct QueueNodes<'a> {
    cluster: &'a Cluster,
    observed: &'a Observed,
    counts_memory: bool,
    machine: Machine,
    /// The free resources of each node beside the jobs that hold nodes.
    free: Vec<Resources>,
    /// The nodes of each kind that waiting jobs ask for in a partition, where those are not all nodes.
    groups: BTreeMap<(&'a str, NodeNeeds), HostGroup>,
}

impl<'a> QueueNodes<'a> {
    /// Returns the nodes of these partitions, without the resources that suspended jobs keep, which are all if they are suspended for others, and the processors that reservations hold of
    /// nodes in part; `None` if there are none. They are closed while reservations hold them, if `with_closed`.
    pub(crate) fn new(
        cluster: &'a Cluster,
        observed: &'a Observed,
        partitions: &BTreeSet<&'a str>,
        nodes: &BTreeSet<&str>,
        with_closed: bool,
    ) -> Option<QueueNodes<'a>> {
        let machine = cluster.machine_of(|name| nodes.contains(name));
        let mut hosts: Vec<Host> = machine.hosts().to_vec();
        let counts_memory = cluster.configuration.counts_memory();
        let mut queue =
            QueueNodes { cluster, observed, counts_memory, machine, free: vec![], groups: BTreeMap::new() };
        // The processors of a job that an administrator suspended are free, and nothing else is.
        let keeps_cpus = cluster.suspends(&observed.limits.qualities);
        for job in cluster.jobs.values().filter(|job| job.state == JobState::Suspended) {
            for (host, amount) in queue.on_hosts(job) {
                let capacity = &mut hosts[host.index()].capacity;
                *capacity = capacity.less(&if keeps_cpus { amount } else { amount.without_cpus() });
            }
        }
        for Host { name, capacity } in &mut hosts {
            *capacity = capacity.less(&Resources::cpus(cluster.reserved_cpus(name)));
        }
        let spread = if hosts.len() == 1 { Spread::One } else { Spread::Any };
        queue.free = hosts.iter().map(|host| host.capacity).collect();
        let weights = queue.machine.weights().to_vec();
        let machine = Machine::new(hosts).with_spread(spread).with_weights(weights);
        let waiting = cluster.jobs.values().filter(|job| job.state == JobState::Pending);
        let kind = |job: &'a Job| Some((*partitions.get(cluster.partition_of(job)?)?, queue.needs(job)));
        let kinds: BTreeSet<(&str, NodeNeeds)> = waiting.filter_map(kind).collect();
        let kinds = kinds.into_iter().map(|(name, needs)| ((name, needs.clone()), name, needs));
        let closed = if with_closed { cluster.closed(&machine) } else { vec![] };
        (queue.machine, queue.groups) = groups_of(cluster, machine.with_closed_hosts(closed), kinds);
        (!queue.free.is_empty()).then_some(queue)
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    fn detail(&self, job: &Job) -> Option<&'a Detail> {
        self.observed.details.get(&job.id).filter(|detail| !detail.is_unreadable)
    }

    /// Returns what a job asks of the kind of its nodes.
    fn needs(&self, job: &Job) -> NodeNeeds {
        self.detail(job).map_or_else(|| Detail::default().needs(job), |detail| detail.needs(job))
    }

    fn memory(&self, job: &Job) -> Option<Amount> {
        self.detail(job).map_or(job.memory, |detail| detail.memory_of(job))
    }

    /// Returns whether a job has its nodes to itself. So has one without an amount of memory, where Slurm counts memory.
    fn is_alone(&self, job: &Job) -> bool {
        self.is_exclusive(job) || self.counts_memory && self.memory(job).is_none()
    }

    fn is_exclusive(&self, job: &Job) -> bool {
        self.detail(job).is_some_and(|detail| detail.exclusive)
    }

    /// Returns the resources of a job on each of these nodes.
    fn on_hosts(&self, job: &Job) -> Vec<(HostId, Resources)> {
        let (nodes, unknown) = ((job.on.len() as u64).max(1), Detail::default());
        let each = |name: &String| {
            let place = self.machine.hosts().iter().position(|host| host.name == *name)?;
            let host = HostId(u32::try_from(place).ok()?);
            let capacity = self.machine.hosts()[place].capacity;
            let known = self.detail(job).and_then(|detail| detail.on.get(name));
            // With memory for each GPU it has no other amount, and not all of its nodes.
            if self.is_alone(job) && (known.is_none() || self.is_exclusive(job)) {
                return Some((host, capacity));
            }
            let held =
                self.detail(job).map_or_else(|| unknown.part_on(job, name), |one| one.part_on(job, name));
            let memory = if self.counts_memory { held.get(Kind::Memory) } else { 0 };
            let gpus = self.gpus(job, nodes).div_ceil(nodes);
            Some((host, held.with(Kind::Memory, memory).with(Kind::Gpus, gpus)))
        };
        job.on.iter().filter_map(each).collect()
    }

    /// Returns all GPUs of a job on this number of nodes.
    fn gpus(&self, job: &Job, nodes: u64) -> u64 {
        let by_node = job.gpus_on(nodes);
        let otherwise = self.detail(job).and_then(|detail| detail.gres_otherwise.as_deref());
        // Those by task are as many as the tasks, and Slurm has the sum if it accounts them.
        let counted = self.detail(job).map_or(0, |detail| detail.gpus);
        otherwise.map_or(by_node, |list| by_node.max(gpus(list)).max(counted))
    }

    /// Returns a waiting job on these nodes; `None` if they cannot hold it.
    ///
    /// Some jobs have an equal part of each of their nodes, of the fewest nodes that can hold them so: those with memory or GPUs by
    /// node, with a least or a most number of nodes, or with their nodes to themselves. Where no equal nodes can hold a job, it has
    /// any nodes.
    pub(crate) fn waiting(&self, request: &Request, job: &Job) -> Option<Request> {
        let hosts = self.machine.hosts();
        let here = hosts.len() as u64;
        let (least, limit) = match self.detail(job) {
            Some(detail) => (detail.least_nodes, detail.most_nodes.filter(|most| *most < here)),
            None => (job.nodes, None),
        };
        let needs = self.needs(job);
        // It has all of the nodes that it must have.
        let least = least.max(needs.nodes.len() as u64).max(1);
        let name = self.cluster.partition_of(job);
        let group = name.and_then(|name| self.groups.get(&(name, needs))).copied();
        // On one host, neither the form nor the group counts.
        let is_elsewhere = here == 1 && group.is_some();
        if least > here || is_elsewhere || self.gpus(job, 1) > self.machine.capacity().get(Kind::Gpus) {
            return None;
        }
        let alone = self.is_alone(job);
        let memory = self.memory(job).filter(|_| self.counts_memory);
        let has_parts = matches!(memory, Some(Amount::PerNode(_))) || self.gpus(job, 1) > 0;
        let by_node = has_parts || least > 1 || limit.is_some() || alone;
        let on = |nodes: u64, form: Form| {
            let memory = memory.map_or(0, |memory| memory.kilobytes(job.cpus, nodes));
            let demand = Resources::cpus(job.cpus.max(1))
                .with(Kind::Memory, memory)
                .with(Kind::Gpus, self.gpus(job, nodes));
            let demand = if alone && here == 1 { hosts[0].capacity } else { demand };
            Request { demand, form: Form { group, alone, ..form }, ..request.clone() }
        };
        let most = limit.unwrap_or(here).min(job.cpus.max(1)).max(least);
        let parts = |nodes: u64| {
            u32::try_from(nodes).map_or(Form::ANY, |nodes| Form { apart: true, ..Form::parts(nodes) })
        };
        let apart = (least..=most).filter(|_| by_node).map(|nodes| on(nodes, parts(nodes)));
        let anywhere = limit.is_none().then(|| on(least, Form::ANY));
        apart.chain(anywhere).find(|request| self.machine.could_hold(request))
    }

    /// Returns the entry of a job that holds nodes; `None` if it holds none of these, or its start is not known.
    ///
    /// Where jobs share processors, it has the rest.
    pub(crate) fn running(&mut self, request: &Request, job: &Job, now: Time) -> Option<Entry> {
        let start = Time::from_secs(job.start?)?.min(now);
        let mut shares = vec![];
        for (host, amount) in self.on_hosts(job) {
            let room = &mut self.free[host.index()];
            let amount = amount.least(room);
            *room = room.less(&amount);
            if !amount.cpus_count().is_zero() {
                shares.push(Share { host, amount, pes: Pes::Count });
            }
        }
        if shares.is_empty() {
            return None;
        }
        shares.sort_by_key(|share| share.host);
        let placement = Placement::across(SlotId(0), shares);
        // It gives its nodes back when its epilog ends.
        let is_ending = matches!(&job.state, JobState::Other(state) if state == "completing");
        let estimate = if is_ending { Span::TICK } else { request.estimate };
        let submit = request.submit.min(start);
        let request = Request { demand: placement.total(), estimate, submit, ..request.clone() };
        Some(cycles::running(Entry::waiting(request, 0), placement, start, now))
    }
}

/// Returns the estimate of a job, at least a tick.
pub(crate) fn estimate(job: &Job) -> Span {
    Span::from_secs(job.limit.seconds()).unwrap_or(Span::MAX).max(Span::TICK)
}
