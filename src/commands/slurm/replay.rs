//! `miserly slurm twin` and `miserly slurm shadow`: the accounting of a cluster under a policy.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use miserly_core::{Form, HostGroup, JobNumber, Kind, Machine, Refusal, Request, Resources, Span, Time};
use miserly_import::{ImportedLog, SlurmOptions, SubmitAt};
use miserly_live::shadow::{ComparedJob, of_jobs};
use miserly_policies::PolicySpec;
use miserly_run::{RunOptions, RunSetup};
use miserly_sim::{Finished, Observer};
use miserly_slurm::{
    Amount, Cluster, CycleAudit, JobState, RecordedHost, RecordedJob, Slurm, Twin, TwinAudit, TwinQueues,
    hosts_of_jobs, known_hosts, log, place_jobs, qualities, starts_from_idle,
};
use miserly_workload::swf::{Field, Record};
use miserly_workload::{JobOptions, Overrun, Trace};
use serde::Serialize;

use super::{read, seconds};
use crate::args::{PeriodArgs, SlurmShadowArgs, SlurmTwinArgs};
use crate::commands::live::{counted, shadow_text};
use crate::output::{print, print_json};

/// The most recorded states from which a twin decides.
const MOST_STATES: usize = 1000;

/// The accounting before a period that is simulated too.
const WARM_UP: SignedDuration = SignedDuration::from_hours(24);

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

/// The outcome of jobs in a simulation, by their place in the log.
#[derive(Default)]
struct Outcomes {
    starts: BTreeMap<JobNumber, Time>,
    refused: BTreeSet<JobNumber>,
}

impl Observer for Outcomes {
    fn finished(&mut self, job: &Finished) -> std::io::Result<()> {
        self.starts.insert(job.request.number, job.start);
        Ok(())
    }

    fn refused(&mut self, _now: Time, request: &Request, _why: Refusal) -> std::io::Result<()> {
        self.refused.insert(request.number);
        Ok(())
    }
}

/// A job of the accounting that has ended, and its start in a simulation.
struct Replayed {
    /// The record of the accounting.
    record: Record,
    submit: Time,
    /// The recorded start.
    start: Time,
    /// The start in the simulation; none if the policy refused the job.
    simulated: Option<Time>,
}

/// The accounting of a period, and of a day before it.
struct Accounting {
    log: ImportedLog,
    /// The ids of its jobs. Their numbers in the log are their places in it, because the runs of a requeued job have one id.
    ids: Vec<i64>,
    /// The seconds since 1970 at the instant 0.
    begin: i64,
}

/// Returns the accounting of a period. That of a day before it is there too, so that the cluster is not idle at its begin.
fn accounting(slurm: &Slurm, period: &PeriodArgs) -> anyhow::Result<Accounting> {
    let options = SlurmOptions { submit_at: SubmitAt::Eligible, keep_ids: true, ..SlurmOptions::default() };
    let mut log = log(slurm, with_warm_up(period), period.until, &options)?;
    let ids = log.records.iter().map(|record| record.get(Field::Job)).collect();
    for (place, record) in (1..).zip(&mut log.records) {
        record.set(Field::Job, place);
    }
    let begin = from_the_hour(&mut log);
    Ok(Accounting { log, ids, begin })
}

/// Moves the instants of a log so that its instant 0 is an hour of the clock: Slurm rounds reservations to the clock. Returns that
/// hour, in seconds since 1970.
fn from_the_hour(log: &mut ImportedLog) -> i64 {
    const START: &str = "; UnixStartTime: ";
    let (mut hour, mut late) = (0, 0);
    for comment in &mut log.comments {
        if let Some(start) = comment.strip_prefix(START).and_then(|start| start.parse::<i64>().ok()) {
            late = start.rem_euclid(3_600);
            hour = start - late;
            *comment = format!("{START}{hour}");
        }
    }
    for record in &mut log.records {
        let submit = record.get(Field::Submit);
        if submit >= 0 {
            record.set(Field::Submit, submit + late);
        }
    }
    hour
}

fn with_warm_up(period: &PeriodArgs) -> Timestamp {
    period.since.saturating_sub(WARM_UP).unwrap_or(period.since)
}

/// Returns the submission of a record and its start, if they are known.
fn times(record: &Record) -> Option<(Time, Time)> {
    let known = |field| Some(record.get(field)).filter(|value| *value >= 0);
    let submit = Time::from_secs(known(Field::Submit)?)?;
    Some((submit, submit + Span::from_secs(known(Field::Wait)?)?))
}

/// Returns the outcomes of the jobs of a log that have ended, from their eligibility on.
fn simulated(log: &ImportedLog, machine: &Machine, policy: &PolicySpec) -> anyhow::Result<Outcomes> {
    let mut text = vec![];
    log.write(&mut text)?;
    // Slurm ends a job some time after its limit. The real runtime counts.
    let jobs = JobOptions { overrun: Overrun::Run, ..JobOptions::default() };
    let procs = Some(machine.capacity().cpus_count());
    let setup = RunSetup::new(
        Trace::memory("the accounting", text),
        RunOptions { procs, jobs, ..RunOptions::default() },
    )?;
    let mut outcomes = Outcomes::default();
    setup.outcome(policy, false, &mut [&mut outcomes])?;
    Ok(outcomes)
}

/// Returns a job of the accounting that has ended, if its times are known.
fn recorded(record: &Record, forms: &Forms) -> Option<RecordedJob> {
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
    let (user, group, queue) = (number(Field::User), number(Field::Group), number(Field::Queue));
    let request = Request { user, group, queue, form: forms.form(queue, memory), ..request };
    Some(RecordedJob { request, start: Some(start), end: Some(start + runtime), placement: None })
}

/// The forms of the jobs of a cluster.
#[derive(Default)]
struct Forms {
    /// The group of hosts of each queue that has one.
    groups: BTreeMap<u32, HostGroup>,
    /// Whether jobs have a part of the memory of their nodes.
    memory: bool,
}

impl Forms {
    /// Returns the form of a job of a queue. Without an amount of memory, it has all of its nodes.
    fn form(&self, queue: Option<u32>, memory: u64) -> Form {
        let group = queue.and_then(|queue| self.groups.get(&queue)).copied();
        Form { group, alone: self.memory && memory == 0, ..Form::ANY }
    }
}

/// Returns an amount that has as many equal parts, rounded down.
fn whole_parts(amount: u64, parts: u64) -> u64 {
    amount - amount % parts.max(1)
}

/// Returns the jobs of a cluster that have not ended and wait for nothing but processors, at instants after `begin`, with their
/// ids.
fn unfinished(
    cluster: &Cluster,
    queues: &TwinQueues,
    forms: &Forms,
    begin: i64,
) -> impl Iterator<Item = (RecordedJob, u64)> {
    let jobs =
        cluster.jobs.values().filter(|job| job.state != JobState::Pending || job.waits_for_processors());
    // The jobs of the accounting have positive numbers.
    (1..).zip(jobs).filter_map(move |(number, job)| {
        let at = |seconds: i64| Time::from_secs(seconds.saturating_sub(begin));
        let estimate = Span::from_secs(job.limit.seconds())?.max(Span::TICK);
        let kilobytes = |memory: u64, of: u64| memory.saturating_mul(1024).saturating_mul(of.max(1));
        let memory = match job.memory {
            Some(Amount::PerCpu(memory)) => kilobytes(memory, job.cpus),
            Some(Amount::PerNode(memory)) => kilobytes(memory, job.nodes),
            None => 0,
        };
        let memory = whole_parts(memory, job.cpus);
        let demand = Resources::cpus(job.cpus.max(1)).with(Kind::Memory, memory);
        let request = Request::new(-number, at(job.submitted)?, estimate, demand);
        let start = job.start.filter(|_| job.state != JobState::Pending).and_then(at);
        let queue = queues.of(job);
        let request = Request { user: Some(job.user), queue, form: forms.form(queue, memory), ..request };
        Some((RecordedJob { request, start, end: None, placement: None }, job.number))
    })
}

/// Returns the hosts of the jobs of the accounting, by id and start.
fn named_hosts(
    slurm: &Slurm,
    period: &PeriodArgs,
) -> anyhow::Result<BTreeMap<(i64, i64), Vec<RecordedHost>>> {
    let jobs = hosts_of_jobs(slurm, with_warm_up(period), period.until)?;
    let unknown = |names: Vec<String>| names.into_iter().map(|name| (name, None)).collect();
    Ok(jobs.into_iter().map(|(job, names)| (job, unknown(names))).collect())
}

/// Returns the processors of a cluster, without its nodes.
fn plain(cluster: &Cluster) -> Machine {
    Machine::plain(cluster.nodes.values().map(|node| node.cpus).sum::<u64>())
}

/// Returns a line on the jobs that were not simulated, if there are any.
fn left_out_text(not_simulated: u64) -> String {
    if not_simulated == 0 {
        return String::new();
    }
    format!(
        "not simulated: {} without processors, wider than the cluster is now, or refused by the policy\n",
        counted(not_simulated, "job")
    )
}

pub(super) fn shadow(args: &SlurmShadowArgs) -> anyhow::Result<()> {
    let slurm = args.period.cluster.slurm();
    let cluster = read(&slurm)?;
    let Accounting { log, begin, .. } = accounting(&slurm, &args.period)?;
    let outcomes = simulated(&log, &plain(&cluster), &args.policy)?;
    let (mut jobs, mut not_simulated) = (vec![], 0);
    for record in log.records {
        let Some((submit, start)) = times(&record) else { continue };
        if begin.saturating_add(submit.secs()) < args.period.since.as_second() {
            continue;
        }
        let number = record.get(Field::Job);
        let simulated = outcomes.starts.get(&number).copied();
        if simulated.is_none() && !outcomes.refused.contains(&number) {
            not_simulated += 1;
        } else {
            jobs.push(Replayed { record, submit, start, simulated });
        }
    }
    let micros = |at: Time| begin.saturating_mul(1_000_000).saturating_add(at.ticks());
    let job = |job: Replayed| ComparedJob {
        submitted: micros(job.submit),
        uid: u32::try_from(job.record.get(Field::User)).unwrap_or(u32::MAX),
        procs: job.record.get(Field::Allocated).unsigned_abs(),
        start: Some(micros(job.start)),
        shadow_start: job.simulated.map(micros),
        runtime: Some(job.record.get(Field::Runtime).saturating_mul(1_000_000)),
        refused: job.simulated.is_none(),
    };
    let until = args.period.until.unwrap_or_else(Timestamp::now);
    let names = [args.policy.to_string(), format!("Slurm {}", cluster.configuration.version)];
    let jobs = jobs.into_iter().map(job);
    let view = of_jobs(cluster.configuration.cluster.clone(), names, jobs, [args.period.since, until]);
    if args.json {
        return print_json(&view);
    }
    let unfinished = cluster.jobs.values().filter(|job| job.state != JobState::Pending).count() as u64;
    if unfinished > 0 && args.period.until.is_none() {
        note!("warning: {} that have not ended are not in the shadow", counted(unfinished, "job"));
    }
    print(&(shadow_text(&view) + &left_out_text(not_simulated)))
}

pub(super) fn twin(args: &SlurmTwinArgs) -> anyhow::Result<()> {
    let slurm = args.period.cluster.slurm();
    // Its version is checked first. The accounting may take a while, and jobs end meanwhile.
    read(&slurm)?;
    let Accounting { mut log, ids, begin } = accounting(&slurm, &args.period)?;
    let mut hosts = named_hosts(&slurm, &args.period)?;
    // What the controller still has is exact.
    hosts.extend(known_hosts(&slurm)?);
    let cluster = Cluster::read(&slurm)?;
    let qualities = qualities(&slurm)?;
    let queues = TwinQueues::number(&mut log, &cluster, &qualities);
    let twin = match &args.policy {
        Some(policy) => Twin { policy: policy.to_string(), left_out: vec![] },
        None => cluster.twin(&queues, &qualities, false),
    };
    let policy: PolicySpec = twin.policy.parse()?;
    let (machine, groups) = queues.groups(&cluster, cluster.machine());
    // A policy of processors cannot run on nodes.
    let (machine, forms) = match policy.build(&machine, 0) {
        Ok(_) => (machine, Forms { groups, memory: cluster.configuration.counts_memory() }),
        Err(_) => (plain(&cluster), Forms::default()),
    };
    let mut jobs: Vec<RecordedJob> =
        log.records.iter().filter_map(|record| recorded(record, &forms)).collect();
    let simulated = starts_from_idle(&jobs, &machine, &policy).map_err(anyhow::Error::msg)?;
    let since = Time::from_secs(args.period.since.as_second().saturating_sub(begin)).unwrap_or(Time::ZERO);
    let eligible = log.records.iter().filter_map(times).filter(|(submit, _)| *submit >= since).count() as u64;
    let starts = jobs.iter().filter(|job| job.request.submit >= since);
    let starts: Vec<(Time, Time, Time)> = starts
        .filter_map(|job| Some((job.request.submit, job.start?, *simulated.get(&job.request.number)?)))
        .collect();
    let not_simulated = eligible - starts.len() as u64;
    let mut unfinished_ids: BTreeMap<JobNumber, i64> = BTreeMap::new();
    for (job, id) in unfinished(&cluster, &queues, &forms, begin) {
        unfinished_ids.extend(i64::try_from(id).ok().map(|id| (job.request.number, id)));
        jobs.push(job);
    }
    let cycle = cluster.configuration.cycle();
    let audit = TwinAudit::new(&starts, cycle);
    let hosts_of = |job: &RecordedJob| {
        let number = job.request.number;
        let place = usize::try_from(number - 1).ok();
        let id = place.and_then(|place| ids.get(place)).or_else(|| unfinished_ids.get(&number))?;
        Some((number, hosts.get(&(*id, begin.saturating_add(job.start?.secs())))?.clone()))
    };
    let hosts: BTreeMap<JobNumber, Vec<RecordedHost>> = jobs.iter().filter_map(hosts_of).collect();
    place_jobs(&machine, &mut jobs, &hosts);
    let until = args.period.until.map_or(cluster.configuration.now, Timestamp::as_second);
    let until = Time::from_secs(until.saturating_sub(begin)).unwrap_or(Time::MAX);
    let cycles = CycleAudit::new(&jobs, &machine, &policy, cycle, since..=until, MOST_STATES);
    let document = TwinDoc { twin, audit, cycles, not_simulated };
    if args.json { print_json(&document) } else { print(&twin_text(&document)) }
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
