//! A cluster and its accounting, prepared for a policy.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use miserly_core::{Form, HostGroup, JobNumber, Kind, Machine, Request, Resources, Span, Time};
use miserly_engine::wall_after;
use miserly_import::ImportedLog;
use miserly_policies::PolicySpec;
use miserly_policies::shared::{Computations, ShareTree};
use miserly_slurm::{
    AccountedJob, Associations, BackfillCycles, Cluster, Comparison, Detail, Job, JobState, Limits,
    NodeNeeds, RecordedHost, RecordedJob, Slurm, Twin, TwinQueues, accounted_jobs, decay_time, known_hosts,
    processor_billing,
};
use miserly_workload::swf::{Field, Record};

use super::{Accounting, times, with_warm_up};
use crate::args::PeriodArgs;

/// A cluster, and the runs of its jobs.
pub(super) struct Site {
    pub(super) cluster: Cluster,
    queues: TwinQueues,
    limits: Limits,
    /// The associations, which are the groups of the jobs, if fair share may matter and the user may read them.
    associations: Option<Associations>,
    runs: Vec<AccountedJob>,
    /// The runs before the instant 0 of which something is left in the usage.
    earlier: Vec<AccountedJob>,
    /// The hosts of runs, by the number and the start of the job.
    hosts: BTreeMap<(i64, Timestamp), Vec<RecordedHost>>,
    /// The forms of the jobs that have not ended, by name.
    details: BTreeMap<String, Detail>,
    /// The cycles of the controller, if it shows them.
    pub(super) cycles: Option<BackfillCycles>,
    /// The wall time of the instant 0.
    begin: Timestamp,
    forms: Forms,
}

impl Site {
    /// Reads a cluster, and the runs of its jobs in the period and before it. Writes the numbers of queues into the log. `for_policy`:
    /// another policy than the twin may need the associations.
    pub(super) fn read(
        slurm: &Slurm,
        period: &PeriodArgs,
        for_policy: bool,
        Accounting { log, begin, .. }: &mut Accounting,
    ) -> anyhow::Result<Site> {
        let begin = *begin;
        let mut cluster = Cluster::read(slurm)?;
        let cycles = BackfillCycles::read(slurm);
        if let Some(begin) = cycles.and_then(|cycles| cycles.since) {
            cluster.configuration.set_statistics_begin(begin);
        }
        let limits = Limits::of_owners(slurm, &cluster)?;
        let associations = associations(slurm, &cluster, &limits, for_policy);
        let half_life = half_life(&cluster);
        let (earlier, until) = match (&associations, half_life) {
            (None, _) => (vec![], period.until),
            // The usage of now is that of all jobs until now.
            (Some(_), None) => (vec![], None),
            (Some(_), Some(half_life)) => {
                let since = begin.saturating_sub(decay_time(half_life)).unwrap_or(begin);
                (accounted_jobs(slurm, since, Some(begin), false)?, period.until)
            }
        };
        let with_scripts = cluster.configuration.stores_scripts;
        let runs = accounted_jobs(slurm, with_warm_up(period), until, with_scripts)?;
        let names = |run: &AccountedJob| run.hosts.iter().map(|name| (name.clone(), None)).collect();
        let mut hosts: BTreeMap<(i64, Timestamp), Vec<RecordedHost>> =
            runs.iter().filter_map(|run| Some(((run.number, run.start?), names(run)))).collect();
        // What the controller still has is exact.
        hosts.extend(known_hosts(slurm)?);
        let queues = TwinQueues::number(log, &cluster, &limits.qualities);
        let jobs: Vec<String> = cluster.jobs.keys().cloned().collect();
        let details = Detail::read(slurm, &cluster, &jobs)?;
        let forms = Forms::default();
        Ok(Site {
            cluster,
            queues,
            limits,
            associations,
            runs,
            earlier,
            hosts,
            details,
            cycles,
            begin,
            forms,
        })
    }

    /// Returns the policy that schedules as a cluster does, which is this one or one that was changed, with the cycles of this one, if
    /// they are known.
    pub(super) fn twin(&self, cluster: &Cluster) -> Twin {
        let twin = cluster.twin(&self.queues, &self.limits, self.associations.as_ref(), false);
        match self.cycles {
            Some(cycles) => twin.with_cycles(&cluster.configuration, cycles, self.begin),
            None => twin,
        }
    }

    /// Returns whether a policy plans the nodes of the cluster.
    pub(super) fn runs_on_nodes(&self, policy: &PolicySpec) -> bool {
        let (machine, _) = self.queues.groups(&self.cluster, self.cluster.machine(), &BTreeSet::new());
        policy.build(&machine, 0).is_ok()
    }

    /// Returns the jobs of the accounting that have ended, and what else a policy is compared on. Without `on_nodes`, the machine has the
    /// processors of the cluster only.
    pub(super) fn prepare(&mut self, accounting: &Accounting, on_nodes: bool) -> Prepared {
        let machine = if on_nodes {
            let needs = self.needs(accounting);
            let (machine, groups) = self.queues.groups(&self.cluster, self.cluster.machine(), &needs);
            let memory = self.cluster.configuration.counts_memory();
            let gives_nodes = |queue: &miserly_slurm::TwinQueue| {
                self.cluster.partitions.get(&queue.partition).is_some_and(|one| one.shares == "exclusive")
            };
            let whole = self.queues.iter().filter(|(_, queue)| gives_nodes(queue)).map(|(number, _)| number);
            let whole = whole.collect();
            self.forms = Forms { groups, memory, whole, machine: Some(machine.clone()) };
            machine
        } else {
            self.forms = Forms::default();
            Machine::plain(self.cluster.nodes.values().map(|node| node.cpus).sum::<u64>())
        };
        let processor_billing = processor_billing(self.runs.iter().chain(&self.earlier));
        Prepared {
            jobs: self.ended(&accounting.log, &accounting.ids),
            machine,
            past: self.past_usage(processor_billing),
            billed: self.past_usage(1.0),
            processor_billing,
            shares: self.shares(),
            computations: self.computations(),
            counts_ends: self.cluster.configuration.enforces_limits,
        }
    }

    /// Returns the queues, with what their jobs ask of the kind of their nodes.
    fn needs(&self, accounting: &Accounting) -> BTreeSet<(u32, NodeNeeds)> {
        let runs = self.runs_by_start();
        let ended = accounting.log.records.iter().zip(&accounting.ids).filter_map(|(record, id)| {
            let (_, start) = times(record)?;
            let queue = u32::try_from(record.get(Field::Queue)).ok()?;
            Some((queue, runs.get(&(*id, self.wall(start)))?.needs.clone()))
        });
        let rows = self.rows();
        let unfinished = self.cluster.jobs.values().filter_map(|job| {
            let id = i64::try_from(job.number).ok()?;
            Some((self.queues.number_of(job)?, rows.get(&id)?.needs.clone()))
        });
        ended.chain(unfinished).collect()
    }

    /// Returns the runs of jobs by their numbers and starts.
    fn runs_by_start(&self) -> BTreeMap<(i64, Timestamp), &AccountedJob> {
        self.runs.iter().filter_map(|run| Some(((run.number, run.start?), run))).collect()
    }

    /// Returns the last rows of jobs by their numbers.
    fn rows(&self) -> BTreeMap<i64, &AccountedJob> {
        self.runs.iter().map(|run| (run.number, run)).collect()
    }

    /// Returns the tree of the shares of the associations.
    fn shares(&self) -> Option<ShareTree> {
        self.associations.as_ref()?.shares().parse().ok()
    }

    /// Returns the usage of associations at the instant 0, in processor-seconds that cost so much.
    fn past_usage(&self, processor_billing: f64) -> BTreeMap<u32, f64> {
        let configuration = &self.cluster.configuration;
        let Some(associations) = &self.associations else { return BTreeMap::new() };
        let half_life = half_life(&self.cluster);
        let computations = configuration.priority_computations().filter(|_| !configuration.enforces_limits);
        let counted = |at: Timestamp| {
            let last = computations.zip(Time::from_secs(at.as_second())).map(|(all, at)| all.last(at).secs());
            last.and_then(|last| Timestamp::from_second(last).ok()).unwrap_or(at)
        };
        let now = Timestamp::from_second(configuration.now).unwrap_or(self.begin);
        let jobs = if half_life.is_some() { &self.earlier } else { &self.runs };
        let usage = associations.usage_at([self.begin, now], half_life, jobs, counted);
        usage.into_iter().map(|(group, amount)| (group, amount / processor_billing)).collect()
    }

    /// Returns the instants at which the cluster counts usage and computes priorities.
    fn computations(&self) -> Option<Computations> {
        let Computations { period, first } = self.cluster.configuration.priority_computations()?;
        Some(Computations { period, first: first - Span::from_secs(self.begin.as_second())? })
    }

    /// Returns the jobs of the accounting that have ended, as far as their times are known.
    fn ended(&self, log: &ImportedLog, ids: &[i64]) -> Vec<RecordedJob> {
        let runs = self.runs_by_start();
        // The last run of each job, if it was preempted.
        let mut preempted: BTreeMap<i64, JobNumber> = BTreeMap::new();
        let job = |(record, id): (&Record, &i64)| {
            let (_, start) = times(record)?;
            let mut run = self.recorded(record, runs.get(&(*id, self.wall(start))).copied())?;
            run.rerun_of = preempted.remove(id);
            if run.is_preempted {
                preempted.insert(*id, run.request.number);
            }
            Some(run)
        };
        log.records.iter().zip(ids).filter_map(job).collect()
    }

    fn recorded(&self, record: &Record, run: Option<&AccountedJob>) -> Option<RecordedJob> {
        let known = |field| Some(record.get(field)).filter(|value| *value >= 0);
        let number = |field| u32::try_from(record.get(field)).ok();
        let (submit, start) = times(record)?;
        let runtime = Span::from_secs(known(Field::Runtime)?)?;
        let estimate = known(Field::Estimate).and_then(Span::from_secs).unwrap_or(runtime).max(Span::TICK);
        let procs = known(Field::Allocated).filter(|procs| *procs > 0)?.unsigned_abs();
        // The log has whole kB for each processor, rounded up; Slurm has whole MiB.
        let memory = known(Field::RequestedMemory).unwrap_or(0).unsigned_abs().saturating_mul(procs);
        let memory = whole_parts(memory - memory % 1024, procs);
        let gpus = run.map_or(0, |run| run.gpus);
        let demand = Resources::cpus(procs).with(Kind::Memory, memory).with(Kind::Gpus, gpus);
        let request = Request::new(record.get(Field::Job), submit, estimate, demand);
        let queue = number(Field::Queue);
        let group = match &self.associations {
            Some(associations) => run.and_then(|run| associations.number_of(run)),
            None => number(Field::Group),
        };
        let request = Request { user: number(Field::User), group, queue, ..request };
        let form = self.forms.form(&request, run);
        let request = Request { form, ..request };
        let billing = run.and_then(|run| run.billing);
        Some(RecordedJob {
            request,
            start: Some(start),
            end: Some(start + runtime),
            placement: None,
            billing,
            is_preempted: run.is_some_and(|run| run.is_preempted),
            rerun_of: None,
        })
    }

    /// Returns the jobs that have not ended and wait for nothing but processors, at instants after the instant 0, with their ids.
    pub(super) fn unfinished(&self) -> Vec<(RecordedJob, i64)> {
        let rows = self.rows();
        let jobs = self.cluster.jobs.values();
        let jobs = jobs.filter(|job| job.state != JobState::Pending || job.waits_for_nodes());
        // The jobs of the accounting have positive numbers.
        let job = |(number, job): (JobNumber, &Job)| {
            let id = i64::try_from(job.number).ok()?;
            Some((self.unfinished_job(-number, job, rows.get(&id).copied())?, id))
        };
        (1..).zip(jobs).filter_map(job).collect()
    }

    /// Returns a job that has not ended. `row`: the accounting of it, which may be late.
    fn unfinished_job(
        &self,
        number: JobNumber,
        job: &Job,
        row: Option<&AccountedJob>,
    ) -> Option<RecordedJob> {
        let at = |seconds: i64| Time::from_secs(seconds.saturating_sub(self.begin.as_second()));
        let estimate = Span::from_secs(job.limit.seconds())?.max(Span::TICK);
        let known = self.details.get(&job.id).map_or(job.memory, |detail| detail.memory_of(job));
        let memory = known.map_or(0, |memory| memory.kilobytes(job.cpus, job.nodes));
        let memory = whole_parts(memory, job.cpus);
        let gpus = row.map_or(0, |row| row.gpus).max(job.gpus_on(job.nodes.max(1)));
        let demand = Resources::cpus(job.cpus.max(1)).with(Kind::Memory, memory).with(Kind::Gpus, gpus);
        let request = Request::new(number, at(job.submitted)?, estimate, demand);
        let start = job.start.filter(|_| job.state != JobState::Pending).and_then(at);
        let queue = self.queues.number_of(job);
        let group = self.associations.as_ref().zip(row).and_then(|(all, row)| all.number_of(row));
        let request = Request { user: Some(job.user), group, queue, ..request };
        let form = self.forms.form(&request, row);
        let request = Request { form, ..request };
        let billing = row.and_then(|row| row.billing);
        Some(RecordedJob {
            request,
            start,
            end: None,
            placement: None,
            billing,
            is_preempted: false,
            rerun_of: None,
        })
    }

    /// Returns the wall time of an instant.
    fn wall(&self, at: Time) -> Timestamp {
        wall_after(self.begin, at - Time::ZERO)
    }

    /// Returns the hosts of a run.
    pub(super) fn hosts(&self, id: i64, start: Time) -> Option<Vec<RecordedHost>> {
        self.hosts.get(&(id, self.wall(start))).cloned()
    }
}

/// What a policy is compared on.
pub(super) struct Prepared {
    pub(super) jobs: Vec<RecordedJob>,
    machine: Machine,
    past: BTreeMap<u32, f64>,
    /// The same by what the jobs cost.
    billed: BTreeMap<u32, f64>,
    processor_billing: f64,
    /// The tree of the shares of the associations, if they are known.
    shares: Option<ShareTree>,
    computations: Option<Computations>,
    counts_ends: bool,
}

impl Prepared {
    pub(super) fn comparison<'a>(&'a self, policy: &'a PolicySpec) -> Comparison<'a> {
        // Such a policy counts what its jobs cost, and any other one their processors.
        let is_billed = policy.is_given("billing");
        Comparison {
            jobs: &self.jobs,
            machine: &self.machine,
            policy,
            past: if is_billed { &self.billed } else { &self.past },
            processor_billing: if is_billed { 1.0 } else { self.processor_billing },
            shares: self.shares.as_ref(),
            computations: self.computations,
            counts_ends: self.counts_ends,
        }
    }
}

/// The forms of the jobs of a cluster.
#[derive(Default)]
struct Forms {
    /// The groups of hosts of each queue, by what its jobs ask of the kind of their nodes. All nodes are no group.
    groups: BTreeMap<(u32, NodeNeeds), HostGroup>,
    /// Whether jobs have a part of the memory of their nodes.
    memory: bool,
    /// The queues of partitions that give whole nodes (`OverSubscribe=EXCLUSIVE`).
    whole: BTreeSet<u32>,
    /// The machine, if jobs are on nodes.
    machine: Option<Machine>,
}

impl Forms {
    /// Returns the form of a request. A job is on the nodes of its queue. An exclusive one, and one without an amount of memory, has all of
    /// its nodes. If it asked for several nodes, for no more than one or for GPUs, it has an equal part of each, where such nodes can hold it.
    fn form(&self, request: &Request, run: Option<&AccountedJob>) -> Form {
        let nodes = run.map_or(1, |run| run.nodes);
        let is_one = run.is_some_and(|run| nodes == 1 && run.most_nodes == Some(1) && run.hosts.len() <= 1);
        let group = self.group(request, run);
        let is_exclusive = run.is_some_and(|run| run.exclusive)
            || request.queue.is_some_and(|queue| self.whole.contains(&queue));
        let lacks_memory = self.memory && request.demand.get(Kind::Memory) == 0;
        let alone = self.machine.is_some() && (is_exclusive || lacks_memory);
        let any = Form { group, alone, ..Form::ANY };
        let parts = u32::try_from(nodes).unwrap_or(0);
        let by_node = parts > 1 || is_one || request.demand.get(Kind::Gpus) > 0;
        let Some(machine) = self.machine.as_ref().filter(|_| by_node) else { return any };
        let apart = Form { group, alone: any.alone, apart: true, ..Form::parts(parts) };
        let fits = machine.could_hold(&Request { form: apart, ..request.clone() });
        if request.procs().get().is_multiple_of(nodes) && fits { apart } else { any }
    }

    /// Returns the hosts on which a job may run: those of its queue that are of the kind it asks for. If they cannot hold it now, the
    /// cluster has changed, and it may run on all hosts of its queue.
    fn group(&self, request: &Request, run: Option<&AccountedJob>) -> Option<HostGroup> {
        let queue = request.queue?;
        let of = |needs: NodeNeeds| self.groups.get(&(queue, needs)).copied();
        let needs = run.map(|run| run.needs.clone()).unwrap_or_default();
        let can_hold = |group: &HostGroup| {
            let form = Form { group: Some(*group), ..Form::ANY };
            let request = Request { form, ..request.clone() };
            self.machine.as_ref().is_some_and(|machine| machine.could_hold(&request))
        };
        of(needs).filter(can_hold).or_else(|| of(NodeNeeds::default()))
    }
}

/// Returns the half-life of usage, if it decays.
fn half_life(cluster: &Cluster) -> Option<Span> {
    let seconds = i64::try_from(cluster.configuration.half_life).ok().filter(|seconds| *seconds > 0);
    seconds.and_then(Span::from_secs)
}

/// Returns the associations of a cluster, if fair share is a part of its priorities, if they have limits, or if another policy may need
/// them.
fn associations(slurm: &Slurm, cluster: &Cluster, limits: &Limits, for_policy: bool) -> Option<Associations> {
    let needed = cluster.configuration.has_fair_tree() || !limits.associations.is_empty();
    let read = (needed || for_policy && cluster.configuration.priority == "priority/multifactor")
        .then(|| Associations::read(slurm))?;
    if let (Err(error), true) = (&read, needed) {
        note!("warning: the twin lacks fair share and limits of associations: {error}");
    }
    read.ok()
}

/// Returns an amount that has as many equal parts, rounded down.
fn whole_parts(amount: u64, parts: u64) -> u64 {
    amount - amount % parts.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use miserly_core::{Host, Spread};

    #[test]
    fn jobs_of_several_nodes_have_equal_parts_where_they_can() {
        let host = |cpus: u64| Host { name: String::new(), capacity: Resources::cpus(cpus) };
        let machine = Machine::new([16, 16, 8].map(host).into()).with_spread(Spread::Any);
        let forms = Forms { machine: Some(machine), ..Forms::default() };
        let form_of = |procs: u64, nodes: u64, most_nodes| {
            let request = Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(procs));
            forms.form(&request, Some(&AccountedJob { nodes, most_nodes, ..AccountedJob::default() }))
        };
        let form = |procs, nodes| form_of(procs, nodes, None);
        let parts = |parts| Form { apart: true, ..Form::parts(parts) };
        assert_eq!([form(24, 1), form(24, 2), form(24, 3)], [Form::ANY, parts(2), parts(3)]);
        // Slurm gave it 16 and 9, or 16, 16 and 4: it ran in another form.
        assert_eq!([form(25, 2), form(36, 3)], [Form::ANY; 2]);
        // With a limit it is on one node, if one holds it.
        assert_eq!([form_of(8, 1, Some(1)), form_of(17, 1, Some(1))], [parts(1), Form::ANY]);
        assert_eq!(form_of(8, 1, Some(2)), Form::ANY);
        let exclusive = AccountedJob { nodes: 1, exclusive: true, ..AccountedJob::default() };
        let request = Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(16_u64));
        assert_eq!(forms.form(&request, Some(&exclusive)), Form { alone: true, ..Form::ANY });
        let plain = Forms::default();
        let request = Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(8_u64));
        let two = AccountedJob { nodes: 2, ..AccountedJob::default() };
        assert_eq!(plain.form(&request, Some(&two)), Form::ANY);
    }
}
