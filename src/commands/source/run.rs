//! The facts of simulated runs, one pool for each policy.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use miserly_core::{Host, Kind, Machine, Span, Time};
use miserly_policies::PolicySpec;
use miserly_run::RunSetup;
use miserly_sim::{Finished, Observer};
use miserly_view::{Account, Clock, Facts, HostFacts, Job, PoolFacts, RUN_NUMBERS, State, plain};
use miserly_workload::Estimates;

use crate::args::RunArgs;
use crate::progress::Progress;
use crate::run_options::prepare;

/// Simulates a log under each policy, and returns the events.
pub(super) fn simulated(log: &Path, policies: &[PolicySpec], args: &RunArgs) -> anyhow::Result<Facts> {
    ensure!(!policies.is_empty(), "--run: give a policy, such as --policy easy");
    let setup = prepare(log, args, Estimates::default())?;
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
    for (pool, policy) in policies.iter().enumerate() {
        let mut ended = Ended { pool, start, jobs: vec![], account: Account::default() };
        let mut watch = progress.watch();
        let numbered = setup.machine().procs().get() <= NUMBERED_MOST;
        setup.outcome(policy, numbered, &mut [&mut ended, &mut watch])?;
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
        facts.now = facts.now.max(ended.jobs.iter().filter_map(|job| job.end).max().unwrap_or(0));
        facts.account.promises += ended.account.promises;
        facts.account.kept += ended.account.kept;
        facts.account.late += ended.account.late;
        facts.jobs.append(&mut ended.jobs);
    }
    drop(progress);
    Ok(facts)
}

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

impl Ended {
    fn millis(&self, at: Time) -> i64 {
        self.start.saturating_add(at.ticks() / 1000)
    }
}

impl Observer for Ended {
    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        let request = &job.request;
        let user = request.user.map_or_else(String::new, |user| format!("user {user}"));
        let promised = job.promised.map(|at| self.millis(at));
        if promised.is_some() {
            self.account.promises += 1;
            self.account.kept += u64::from(!job.broken);
            self.account.late += u64::from(job.broken);
        }
        let ranges = job.pes.as_ref().map(|pes| pes.ranges().to_vec()).unwrap_or_default();
        self.jobs.push(Arc::new(Job {
            number: request.number + RUN_NUMBERS * i64::try_from(self.pool).unwrap_or(0),
            label: request.number.to_string(),
            name: job.reason_word().to_owned(),
            reason: job.reason_word().to_owned(),
            user,
            uid: request.user,
            pool: self.pool,
            procs: request.procs().get(),
            memory: request.demand.get(Kind::Memory).saturating_mul(1024),
            limit: millis(request.estimate),
            state: State::Ended,
            word: if job.killed { "killed" } else { "done" }.to_owned(),
            submitted: self.millis(request.submit),
            start: Some(self.millis(job.start)),
            end: Some(self.millis(job.end)),
            promised,
            promised_first: promised,
            unkept: job.broken,
            cpus: if job.allocations.is_empty() { ranges } else { vec![] },
            ..Job::default()
        }));
        Ok(())
    }
}

fn millis(span: Span) -> i64 {
    span.ticks() / 1000
}
