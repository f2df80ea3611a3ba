//! The facts of simulated runs, one pool for each policy.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use miserly_core::{Host, Kind, Machine, Span, Time};
use miserly_policies::PolicySpec;
use miserly_run::{RECORDED, RunSetup};
use miserly_sim::{Allocation, Finished, Grouping, Label, LoggedStatus, Observer};
use miserly_view::{
    ANY_GPU, Account, Clock, Facts, HostFacts, Job, Part, PoolFacts, RUN_NUMBERS, State, Stay, plain,
};
use miserly_workload::Estimates;

use crate::args::RunArgs;
use crate::progress::Progress;
use crate::run_options::prepare;

/// Simulates a log under each policy, and returns the events.
pub(super) fn simulated(log: &Path, policies: &[PolicySpec], args: &RunArgs) -> anyhow::Result<Facts> {
    ensure!(!policies.is_empty(), "--run: give a policy, such as --policy easy");
    let setup = prepare(log, args, Estimates::default())?;
    // Extra fields are read only from logs that name some.
    let has_extras = setup.survey.header.value("Extra").is_some();
    let setup = if has_extras { setup.grouped(&GPUS.map(Grouping::Label)) } else { setup };
    let (start, clock) = clock(&setup);
    let mut facts = Facts {
        now: 0,
        clock,
        title: setup.name().to_owned(),
        live: false,
        earlier: false,
        uid: None,
        pools: vec![],
        jobs: vec![],
        account: Account::default(),
    };
    let progress = Progress::new(setup.survey.records * policies.len() as u64);
    let mut has_record = false;
    for (pool, policy) in policies.iter().enumerate() {
        let mut ended = Ended { pool, start, jobs: vec![], account: Account::default() };
        let mut watch = progress.watch();
        let numbered = setup.machine().procs().get() <= NUMBERED_MOST;
        let observers: &mut [&mut dyn Observer] = &mut [&mut ended, &mut watch];
        has_record |= if pool == 0 {
            setup.outcome_and_recorded(policy, numbered, observers)?.1.is_some()
        } else {
            setup.outcome(policy, numbered, observers).map(|_| false)?
        };
        facts.pools.push(PoolFacts {
            name: policy.to_string(),
            policy: policy.to_string(),
            promises: policy.promises().name().to_owned(),
            cpus: setup.procs().get(),
            memory: setup.machine().machine().capacity().get(Kind::Memory).saturating_mul(1024),
            numbers: if numbered { numbers(setup.procs().get()) } else { vec![] },
            hosts: if numbered { hosts(&setup.machine().machine()) } else { vec![] },
            ..PoolFacts::default()
        });
        facts.account.promises += ended.account.promises;
        facts.account.kept += ended.account.kept;
        facts.account.late += ended.account.late;
        facts.jobs.append(&mut ended.jobs);
    }
    drop(progress);
    if has_record {
        add_recorded(&setup, start, &mut facts)?;
    }
    facts.now = facts.jobs.iter().filter_map(|job| job.end).max().unwrap_or(0).max(0);
    Ok(facts)
}

/// Adds the schedule that the log recorded, as the last pool.
fn add_recorded(setup: &RunSetup, start: i64, facts: &mut Facts) -> anyhow::Result<()> {
    let pool = facts.pools.len();
    for finished in setup.recorded_jobs()? {
        let finished = finished?;
        let word = match finished.status {
            LoggedStatus::Failed => "failed",
            LoggedStatus::Cancelled => "cancelled",
            LoggedStatus::Unknown | LoggedStatus::Completed => "done",
        };
        let job = Job { reason: String::new(), word: word.to_owned(), ..job(&finished, pool, start) };
        facts.jobs.push(Arc::new(Job { name: String::new(), ..job }));
    }
    facts.pools.push(PoolFacts {
        name: RECORDED.to_owned(),
        policy: "recorded in the log".to_owned(),
        promises: "nothing".to_owned(),
        cpus: setup.procs().get(),
        ..PoolFacts::default()
    });
    Ok(())
}

/// The properties of the GPUs of a job.
const GPUS: [Label; 2] = [Label::GpuType, Label::Gpus];

/// The most processors of a machine with numbered processors on the map.
const NUMBERED_MOST: u64 = 16_384;

/// Returns the numbers of so many processors.
fn numbers(procs: u64) -> Vec<(u32, u32)> {
    let last = procs.checked_sub(1).map(|last| u32::try_from(last).unwrap_or(u32::MAX));
    last.map(|last| (0, last)).into_iter().collect()
}

/// Returns the hosts of a machine, with processors numbered host by host; none if there is only one.
fn hosts(machine: &Machine) -> Vec<HostFacts> {
    let mut next = 0u32;
    let host = |host: &Host| {
        let cpus = host.capacity.cpus_count().get();
        let first = Some(next);
        next = next.saturating_add(u32::try_from(cpus).unwrap_or(u32::MAX));
        let memory = host.capacity.get(Kind::Memory).saturating_mul(1024);
        HostFacts { name: plain(&host.name), first, cpus, memory, ..HostFacts::default() }
    };
    let hosts: Vec<HostFacts> = machine.hosts().iter().map(host).collect();
    if hosts.len() > 1 { hosts } else { vec![] }
}

/// Returns the start of the log, milliseconds, and how its instants are written.
fn clock(setup: &RunSetup) -> (i64, Clock) {
    match setup.dates() {
        Some(dates) => (dates.start().saturating_mul(1000), Clock::Wall(dates.time_zone().clone())),
        None => (0, Clock::SinceStart),
    }
}

/// The ended jobs of a run.
struct Ended {
    pool: usize,
    /// The start of the log, milliseconds.
    start: i64,
    jobs: Vec<Arc<Job>>,
    account: Account,
}

impl Observer for Ended {
    fn finished(&mut self, finished: &Finished) -> io::Result<()> {
        if finished.promised.is_some() {
            self.account.promises += 1;
            self.account.kept += u64::from(!finished.broken);
            self.account.late += u64::from(finished.broken);
        }
        self.jobs.push(Arc::new(job(finished, self.pool, self.start)));
        Ok(())
    }
}

/// Returns a job of a pool. The log begins at `start`, milliseconds.
fn job(job: &Finished, pool: usize, start: i64) -> Job {
    let instant = |at: Time| start.saturating_add(at.ticks() / 1000);
    let request = &job.request;
    let promised = job.promised.map(instant);
    let ranges = job.pes.as_ref().map(|pes| pes.ranges().to_vec()).unwrap_or_default();
    let (gpu, gpus) = gpus(job);
    Job {
        number: request.number + RUN_NUMBERS * i64::try_from(pool).unwrap_or(0),
        label: request.number.to_string(),
        name: job.reason_word().to_owned(),
        reason: job.reason_word().to_owned(),
        user: request.user.map_or_else(String::new, |user| format!("user {user}")),
        uid: request.user,
        pool,
        procs: request.procs().get(),
        memory: request.demand.get(Kind::Memory).saturating_mul(1024),
        gpu,
        gpus,
        limit: millis(request.estimate),
        state: State::Ended,
        word: if job.killed { "killed" } else { "done" }.to_owned(),
        submitted: instant(request.submit),
        start: Some(instant(job.start)),
        end: Some(instant(job.end)),
        promised,
        promised_first: promised,
        unkept: job.broken,
        cpus: if job.allocations.is_empty() { ranges } else { vec![] },
        stays: job.allocations.iter().flat_map(|allocation| stays(allocation, start)).collect(),
        ..Job::default()
    }
}

/// Returns an allocation as its transfers and its work. The log begins at `start`, milliseconds.
fn stays(allocation: &Allocation, start: i64) -> impl Iterator<Item = Stay> {
    let instant = |at: Time| start.saturating_add(at.ticks() / 1000);
    let Allocation { from, to, worked: (work, over), pes } = allocation;
    let parts = [(from, work, Part::Swap), (work, over, Part::Run), (over, to, Part::Swap)];
    let cpus = pes.ranges().to_vec();
    parts
        .map(|(from, to, part)| Stay { from: instant(*from), to: instant(*to), part, cpus: cpus.clone() })
        .into_iter()
        .filter(|stay| stay.from < stay.to)
}

/// Returns the type and the number of the GPUs of a job.
fn gpus(job: &Finished) -> (String, u64) {
    let label =
        |wanted| job.labels.iter().find(|(label, _)| *label == wanted).map(|(_, value)| value.as_str());
    let in_log = label(Label::Gpus).and_then(|count| count.parse().ok()).unwrap_or(0);
    let gpus = in_log.max(job.request.demand.get(Kind::Gpus));
    let kind = match label(Label::GpuType) {
        Some(name) => plain(name),
        None if gpus > 0 => ANY_GPU.to_owned(),
        None => String::new(),
    };
    (kind, gpus)
}

fn millis(span: Span) -> i64 {
    span.ticks() / 1000
}
