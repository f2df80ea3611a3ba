//! The jobs of a queue on the nodes of a cluster.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Entry, Form, HostGroup, JobNumber, Kind, Machine, Request, Resources, Span, Time};

use crate::twin_queues::groups_of;
use crate::{Amount, BackfillCycles, Cluster, Job, RecordedHost, RecordedJob, Slurm, cycles};
use crate::{known_hosts, place_jobs};

/// What the controller tells beside the state of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The processors of jobs on each of their nodes, by the number and the start of the job.
    pub hosts: BTreeMap<(i64, i64), Vec<RecordedHost>>,
    /// The cycles of backfilling.
    pub cycles: Option<BackfillCycles>,
}

impl Observed {
    /// Reads what there is: without an answer, nothing is known.
    pub fn read(slurm: &Slurm) -> Observed {
        Observed { hosts: known_hosts(slurm).unwrap_or_default(), cycles: BackfillCycles::read(slurm) }
    }
}

impl Job {
    /// Returns all of its memory, kB; 0 if it has no amount.
    pub fn memory_kilobytes(&self) -> u64 {
        let of = |memory: u64, parts: u64| memory.saturating_mul(1024).saturating_mul(parts.max(1));
        match self.memory {
            Some(Amount::PerCpu(memory)) => of(memory, self.cpus),
            Some(Amount::PerNode(memory)) => of(memory, self.nodes),
            None => 0,
        }
    }

    /// Returns all of its GPUs.
    pub fn gpus(&self) -> u64 {
        self.gres.as_deref().map_or(0, crate::gpus).saturating_mul(self.nodes.max(1))
    }
}

/// The nodes of a queue on which jobs can start.
pub(crate) struct QueueNodes<'a> {
    cluster: &'a Cluster,
    machine: Machine,
    /// The nodes of each partition that has some of them.
    groups: BTreeMap<&'a str, HostGroup>,
}

impl<'a> QueueNodes<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        partitions: &BTreeSet<&'a str>,
        nodes: &BTreeSet<&str>,
    ) -> QueueNodes<'a> {
        let machine = cluster.machine_of(|name| nodes.contains(name));
        let (machine, groups) = groups_of(cluster, machine, partitions.iter().map(|name| (*name, *name)));
        QueueNodes { cluster, machine, groups }
    }

    pub(crate) fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Returns a waiting job on these nodes; `None` if they cannot hold it.
    ///
    /// A job with memory or GPUs by node has an equal part of each of its nodes, where the nodes can hold it so. Without an amount of
    /// memory, it has its nodes alone.
    pub(crate) fn waiting(&self, request: &Request, job: &Job) -> Option<Request> {
        let by_node = job.gpus() > 0 || matches!(job.memory, Some(Amount::PerNode(_)));
        let parts = u32::try_from(job.nodes.max(1)).ok().filter(|_| by_node);
        let apart = parts.filter(|parts| job.cpus.is_multiple_of(u64::from(*parts)));
        let forms =
            apart.map(|parts| Form { apart: true, ..Form::parts(parts) }).into_iter().chain([Form::ANY]);
        let mut requests = forms.map(|form| self.request(request, job, form));
        requests.find(|request| self.machine.could_hold(request))
    }

    fn request(&self, request: &Request, job: &Job, form: Form) -> Request {
        let counts_memory = self.cluster.configuration.counts_memory();
        let memory = if counts_memory { job.memory_kilobytes() } else { 0 };
        // Each processor has the same part.
        let memory = memory - memory % job.cpus.max(1);
        let demand = request.demand.with(Kind::Memory, memory).with(Kind::Gpus, job.gpus());
        let group = job.partitions.first().and_then(|name| self.groups.get(name.as_str())).copied();
        Request {
            demand,
            form: Form { group, alone: counts_memory && memory == 0, ..form },
            ..request.clone()
        }
    }

    /// Returns the jobs that hold these nodes. `None`: they hold more than there is, or some are on other nodes than Slurm would take.
    pub(crate) fn running(
        &self,
        jobs: &[(&'a Job, Request)],
        hosts: &BTreeMap<(i64, i64), Vec<RecordedHost>>,
        now: Time,
    ) -> Option<Vec<(&'a Job, Entry)>> {
        let here: BTreeSet<&str> = self.machine.hosts().iter().map(|host| host.name.as_str()).collect();
        let (mut recorded, mut on, mut all) = (vec![], BTreeMap::new(), vec![]);
        for (number, (job, request)) in (1..).zip(jobs) {
            let key = i64::try_from(job.number).ok().zip(job.start);
            let known = key.and_then(|key| hosts.get(&key)).cloned();
            let mut names = known.unwrap_or_else(|| job.on.iter().map(|name| (name.clone(), None)).collect());
            let nodes = names.len() as u64;
            names.retain(|(name, _)| here.contains(name.as_str()));
            let Some(request) = self.held(number, job, request, &names, nodes) else { continue };
            let start = Some(Time::from_secs(job.start?)?.min(now));
            recorded.push(RecordedJob { request, start, end: None, placement: None });
            on.insert(number, names);
            all.push(*job);
        }
        place_jobs(&self.machine, &mut recorded, &on);
        let entry = |(job, recorded): (&'a Job, RecordedJob)| {
            let entry = Entry::waiting(recorded.request, 0);
            Some((job, cycles::running(entry, recorded.placement?, recorded.start?, now)))
        };
        all.into_iter().zip(recorded).map(entry).collect()
    }

    /// Returns the part of a job that is on these nodes, of its `nodes`; `None` if it has none of them.
    fn held(
        &self,
        number: JobNumber,
        job: &Job,
        request: &Request,
        names: &[RecordedHost],
        nodes: u64,
    ) -> Option<Request> {
        let part = |amount: u64| (amount * names.len() as u64).div_ceil(nodes.max(1));
        let known: Option<u64> = names.iter().map(|(_, cpus)| *cpus).sum();
        let cpus = known.unwrap_or_else(|| part(job.cpus));
        if names.is_empty() || cpus == 0 {
            return None;
        }
        let all = self.request(request, job, Form::ANY);
        let other = |kind| {
            if names.len() as u64 == nodes { all.demand.get(kind) } else { part(all.demand.get(kind)) }
        };
        let demand =
            Resources::cpus(cpus).with(Kind::Memory, other(Kind::Memory)).with(Kind::Gpus, other(Kind::Gpus));
        // Its place may be another one than a group has now.
        let form = Form { group: None, ..all.form };
        Some(Request { number, demand, form, ..all })
    }
}

/// Returns an estimate of a job, at least a tick.
pub(crate) fn estimate(job: &Job) -> Span {
    Span::from_secs(job.limit.seconds()).unwrap_or(Span::MAX).max(Span::TICK)
}
