//! `miserly slurm twin`: what the configuration of a cluster would have done, or a policy in its place.

use std::collections::BTreeMap;

use jiff::Timestamp;
use miserly_core::{Form, HostGroup, JobNumber, Kind, Machine, Request, Resources, Span, Time};
use miserly_import::ImportedLog;
use miserly_policies::PolicySpec;
use miserly_policies::shared::Computations;
use miserly_slurm::{
    AccountedJob, Amount, Associations, Cluster, Comparison, CycleAudit, Job, JobState, Quality,
    RecordedHost, RecordedJob, Slurm, Twin, TwinAudit, TwinQueues, accounted_jobs, known_hosts, place_jobs,
    qualities,
};
use miserly_workload::swf::{Field, Record};
use serde::Serialize;

use super::{Accounting, accounting, left_out_text, plain, times, with_warm_up};
use crate::args::SlurmTwinArgs;
use crate::commands::live::counted;
use crate::commands::slurm::{read, seconds};
use crate::output::{print, print_json};

/// The most recorded states from which a twin decides.
const MOST_STATES: usize = 1000;

/// The document of `twin`.
#[derive(Serialize)]
struct TwinDoc {
    #[serde(flatten)]
    twin: Twin,
    #[serde(flatten)]
    audit: TwinAudit,
    cycles: CycleAudit,
    /// Jobs that the simulation left out: without processors, wider than the cluster is now, or refused by the policy.
    not_simulated: u64,
}

pub(in crate::commands::slurm) fn twin(args: &SlurmTwinArgs) -> anyhow::Result<()> {
    let slurm = args.period.cluster.slurm();
    // Its version is checked first. The accounting may take a while, and jobs end meanwhile.
    read(&slurm)?;
    let Accounting { mut log, ids, begin } = accounting(&slurm, &args.period)?;
    let mut site = Site::read(&slurm, &mut log, with_warm_up(&args.period), begin)?;
    let configuration = &site.cluster.configuration;
    let twin = match &args.policy {
        Some(policy) => Twin { policy: policy.to_string(), left_out: vec![] },
        None => site.cluster.twin(&site.queues, &site.qualities, site.associations.as_ref(), false),
    };
    let policy: PolicySpec = twin.policy.parse()?;
    let cycle = configuration.cycle();
    let until = args.period.until.map_or(configuration.now, Timestamp::as_second);
    let machine = site.machine(&policy);
    let jobs = site.ended(&log, &ids);
    let half_life = policy.build(&machine, 0)?.usage_half_life();
    let usage = half_life.map(|half_life| site.usage(half_life)).unwrap_or_default();
    let counts = site.counts();
    let comparison = Comparison { jobs: &jobs, machine: &machine, policy: &policy, usage: &usage, counts };
    let simulated = comparison.starts_from_idle().map_err(anyhow::Error::msg)?;
    let at = |seconds: i64, otherwise| Time::from_secs(seconds.saturating_sub(begin)).unwrap_or(otherwise);
    let since = at(args.period.since.as_second(), Time::ZERO);
    let eligible = log.records.iter().filter_map(times).filter(|(submit, _)| *submit >= since).count() as u64;
    let starts = jobs.iter().filter(|job| job.request.submit >= since);
    let starts: Vec<(Time, Time, Time)> = starts
        .filter_map(|job| Some((job.request.submit, job.start?, *simulated.get(&job.request.number)?)))
        .collect();
    let audit = TwinAudit::new(&starts, cycle);
    let mut all = jobs.clone();
    let ids_of = |job: &RecordedJob| ids.get(usize::try_from(job.request.number - 1).ok()?).copied();
    let mut hosts: BTreeMap<JobNumber, Vec<RecordedHost>> = jobs
        .iter()
        .filter_map(|job| Some((job.request.number, site.hosts(ids_of(job)?, job.start?)?)))
        .collect();
    for (job, id) in site.unfinished() {
        let on = job.start.and_then(|start| site.hosts(id, start));
        hosts.extend(on.map(|on| (job.request.number, on)));
        all.push(job);
    }
    place_jobs(&machine, &mut all, &hosts);
    let cycles =
        Comparison { jobs: &all, ..comparison }.cycles(cycle, since..=at(until, Time::MAX), MOST_STATES);
    let document = TwinDoc { twin, audit, cycles, not_simulated: eligible - starts.len() as u64 };
    if args.json { print_json(&document) } else { print(&twin_text(&document)) }
}

/// A cluster, and the runs of its jobs.
struct Site {
    cluster: Cluster,
    queues: TwinQueues,
    qualities: Vec<Quality>,
    /// The associations, which are the groups of the jobs; none without `priority/multifactor`.
    associations: Option<Associations>,
    runs: Vec<AccountedJob>,
    /// The hosts of runs, by the number and the start of the job.
    hosts: BTreeMap<(i64, i64), Vec<RecordedHost>>,
    /// The seconds since 1970 at the instant 0.
    begin: i64,
    forms: Forms,
}

impl Site {
    /// Reads a cluster, and the runs of its jobs since an instant. Writes the numbers of queues into the log.
    fn read(slurm: &Slurm, log: &mut ImportedLog, since: Timestamp, begin: i64) -> anyhow::Result<Site> {
        let runs = accounted_jobs(slurm, since)?;
        let names = |run: &AccountedJob| run.hosts.iter().map(|name| (name.clone(), None)).collect();
        let mut hosts: BTreeMap<(i64, i64), Vec<RecordedHost>> =
            runs.iter().filter_map(|run| Some(((run.number, run.start?), names(run)))).collect();
        // What the controller still has is exact.
        hosts.extend(known_hosts(slurm)?);
        let cluster = Cluster::read(slurm)?;
        let qualities = qualities(slurm)?;
        let queues = TwinQueues::number(log, &cluster, &qualities);
        let has_shares = cluster.configuration.priority == "priority/multifactor";
        let associations = has_shares.then(|| Associations::read(slurm)).transpose()?;
        Ok(Site { cluster, queues, qualities, associations, runs, hosts, begin, forms: Forms::default() })
    }

    /// Returns the machine on which a policy runs, and notes the forms of its jobs: without its nodes if the policy cannot use them.
    fn machine(&mut self, policy: &PolicySpec) -> Machine {
        let (machine, groups) = self.queues.groups(&self.cluster, self.cluster.machine());
        if policy.build(&machine, 0).is_err() {
            return plain(&self.cluster);
        }
        self.forms = Forms { groups, memory: self.cluster.configuration.counts_memory(), nodes: true };
        machine
    }

    /// Returns the usage of associations at the instant 0.
    fn usage(&self, half_life: Span) -> BTreeMap<u32, f64> {
        let now = self.cluster.configuration.now;
        let counted = |at: i64| match self.cluster.configuration.computations {
            Some((period, boot)) => at - (at - boot).rem_euclid(i64::try_from(period).unwrap_or(i64::MAX)),
            None => at,
        };
        let times = [self.begin, now];
        let usage = |all: &Associations| all.usage_at(times, half_life, &self.runs, counted);
        self.associations.as_ref().map(usage).unwrap_or_default()
    }

    /// Returns the instants at which the cluster counts usage.
    fn counts(&self) -> Option<Computations> {
        let (period, boot) = self.cluster.configuration.computations?;
        let period = Span::from_secs(i64::try_from(period).ok()?)?;
        Some(Computations { period, first: Time::from_secs(boot.saturating_sub(self.begin))? })
    }

    /// Returns the jobs of the accounting that have ended, as far as their times are known.
    fn ended(&self, log: &ImportedLog, ids: &[i64]) -> Vec<RecordedJob> {
        let runs: BTreeMap<(i64, i64), &AccountedJob> =
            self.runs.iter().filter_map(|run| Some(((run.number, run.start?), run))).collect();
        let job = |(record, id): (&Record, &i64)| {
            let (_, start) = times(record)?;
            self.recorded(record, runs.get(&(*id, self.begin.saturating_add(start.secs()))).copied())
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
        let demand = Resources::cpus(procs).with(Kind::Memory, memory);
        let request = Request::new(record.get(Field::Job), submit, estimate, demand);
        let queue = number(Field::Queue);
        let group = match &self.associations {
            Some(associations) => run.and_then(|run| associations.of(run)),
            None => number(Field::Group),
        };
        let form = self.forms.form(queue, procs, memory, run.map_or(1, |run| run.nodes));
        let request = Request { user: number(Field::User), group, queue, form, ..request };
        Some(RecordedJob { request, start: Some(start), end: Some(start + runtime), placement: None })
    }

    /// Returns the jobs that have not ended and wait for nothing but processors, at instants after the instant 0, with their ids.
    fn unfinished(&self) -> Vec<(RecordedJob, i64)> {
        let rows: BTreeMap<i64, &AccountedJob> = self.runs.iter().map(|run| (run.number, run)).collect();
        let jobs = self.cluster.jobs.values();
        let jobs = jobs.filter(|job| job.state != JobState::Pending || job.waits_for_processors());
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
        let at = |seconds: i64| Time::from_secs(seconds.saturating_sub(self.begin));
        let estimate = Span::from_secs(job.limit.seconds())?.max(Span::TICK);
        let kilobytes = |memory: u64, of: u64| memory.saturating_mul(1024).saturating_mul(of.max(1));
        let memory = match job.memory {
            Some(Amount::PerCpu(memory)) => kilobytes(memory, job.cpus),
            Some(Amount::PerNode(memory)) => kilobytes(memory, job.nodes),
            None => 0,
        };
        let memory = whole_parts(memory, job.cpus);
        let demand = Resources::cpus(job.cpus.max(1)).with(Kind::Memory, memory);
        let request = Request::new(number, at(job.submitted)?, estimate, demand);
        let start = job.start.filter(|_| job.state != JobState::Pending).and_then(at);
        let queue = self.queues.of(job);
        let group = self.associations.as_ref().zip(row).and_then(|(all, row)| all.of(row));
        let form = self.forms.form(queue, job.cpus.max(1), memory, row.map_or(1, |row| row.nodes));
        let request = Request { user: Some(job.user), group, queue, form, ..request };
        Some(RecordedJob { request, start, end: None, placement: None })
    }

    /// Returns the hosts of a run.
    fn hosts(&self, id: i64, start: Time) -> Option<Vec<RecordedHost>> {
        self.hosts.get(&(id, self.begin.saturating_add(start.secs()))).cloned()
    }
}

/// The forms of the jobs of a cluster.
#[derive(Default)]
struct Forms {
    /// The group of hosts of each queue that has one.
    groups: BTreeMap<u32, HostGroup>,
    /// Whether jobs have a part of the memory of their nodes.
    memory: bool,
    /// Whether jobs are on nodes.
    nodes: bool,
}

impl Forms {
    /// Returns the form of a job of a queue. Without an amount of memory, it has all of its nodes. With several nodes, it has an equal
    /// part of each, if its processors can be divided so.
    fn form(&self, queue: Option<u32>, procs: u64, memory: u64, nodes: u64) -> Form {
        let group = queue.and_then(|queue| self.groups.get(&queue)).copied();
        let form = Form { group, alone: self.memory && memory == 0, ..Form::ANY };
        match u32::try_from(nodes) {
            Ok(parts) if self.nodes && parts > 1 && procs.is_multiple_of(nodes) => {
                Form { group, alone: form.alone, apart: true, ..Form::parts(parts) }
            }
            _ => form,
        }
    }
}

/// Returns an amount that has as many equal parts, rounded down.
fn whole_parts(amount: u64, parts: u64) -> u64 {
    amount - amount % parts.max(1)
}

fn twin_text(TwinDoc { twin, audit, cycles, not_simulated }: &TwinDoc) -> String {
    let mut text = format!("policy: {}\n", twin.policy);
    for what in &twin.left_out {
        text += &format!("not in the twin: {what}\n");
    }
    text += &left_out_text(*not_simulated);
    let share = |part: u64, of: u64| {
        if of == 0 { "-".to_owned() } else { format!("{:.1} %", 100.0 * part as f64 / of as f64) }
    };
    text += &format!(
        "from {} of the cluster, two cycles ahead: {} of {} recorded starts are the policy's too, and {} of {} starts by the policy are recorded\n",
        counted(cycles.states, "state"),
        share(cycles.foreseen, cycles.starts),
        cycles.starts,
        share(cycles.confirmed, cycles.simulated),
        cycles.simulated,
    );
    text + &format!(
        "{}, of which {} waited for more than a cycle\n\
         starts within a cycle ({}): {}; of those that waited: {}\n\
         difference of the starts: median {} s, of 95 % at most {} s\n\
         mean wait: {:.0} s in the accounting, {:.0} s under the twin\n",
        counted(audit.jobs, "job"),
        audit.waited,
        seconds(audit.cycle),
        share(audit.close, audit.jobs),
        share(audit.close_of_waited, audit.waited),
        audit.median_difference,
        audit.difference_95,
        audit.recorded_mean_wait,
        audit.twin_mean_wait,
    )
}
