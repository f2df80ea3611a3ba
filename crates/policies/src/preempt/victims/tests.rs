//! Properties of the choice of victims, against a reference implementation.

use miserly_core::{
    Context, Driver, Entry, Event, EventOrder, Host, Kind, Machine, Policy, Procs, Request, Round,
    Submission, Violation,
};
use proptest::prelude::*;

use super::*;

/// Seconds since the last job, processors, memory, and the random number used at its arrival.
type Drawn = (i64, u64, u64, usize);

/// A policy that starts each job that fits, every fourth one for a quantum.
///
/// By the random numbers it suspends one job and resumes another one.
struct Tossing {
    tosses: Vec<usize>,
}

impl Policy for Tossing {
    fn name(&self) -> &'static str {
        "tossing"
    }

    fn rebuild(&mut self, _now: Time, _ledger: &Ledger) {}

    fn event(&mut self, _now: Time, _event: Event, _ledger: &Ledger) {}

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let toss = self.tosses.pop().unwrap_or(0);
        if let Some(job) = picked(toss, context.ledger().suspended()) {
            // An attempt that succeeds if its processors are free.
            let _ = context.resume(job);
        }
        for job in context.ledger().waiting().collect::<Vec<_>>() {
            let demand = context.ledger().machine().demand(context.ledger().request(job));
            match context.ledger().fit(&demand) {
                Some(place) if job.index() % 4 == 3 => context.start_for_quantum(job, place, Time::MAX)?,
                Some(place) => context.start(job, place, miserly_core::StartReason::Immediate)?,
                None => {}
            }
        }
        let now = context.now();
        let running = context.ledger().running().collect::<Vec<_>>();
        picked(toss / 2, running.into_iter()).map_or(Ok(()), |job| context.suspend(job, now + Span::TICK, 0))
    }
}

/// Returns one of the jobs, or none.
fn picked(toss: usize, jobs: impl Iterator<Item = JobId>) -> Option<JobId> {
    let jobs: Vec<JobId> = jobs.collect();
    jobs.get(toss % (jobs.len() + 2)).copied()
}

fn secs(secs: i64) -> Span {
    Span::from_secs(secs).unwrap()
}

fn demand(procs: u64, memory: u64) -> Resources {
    Resources::cpus(procs).with(Kind::Memory, memory)
}

/// Returns the ledger after these jobs arrived on these hosts, and the time of the last arrival.
fn played(hosts: &[(u64, u64)], drawn: &[Drawn]) -> (Ledger, Time) {
    let host = |&(procs, memory): &(u64, u64)| Host { name: "host".into(), capacity: demand(procs, memory) };
    let machine = Machine::new(hosts.iter().map(host).collect());
    let tosses = drawn.iter().rev().map(|(.., toss)| *toss).collect();
    let mut driver = Driver::new(Ledger::new(machine), Box::new(Tossing { tosses }), EventOrder::Batched);
    let mut now = Time::ZERO;
    for (job, &(gap, procs, memory, _)) in (0..).map(JobId).zip(drawn) {
        now = now + secs(gap);
        let request = Request::new(i64::from(job.0), now, secs(1000), demand(procs, memory));
        let mut round = Round { submitted: vec![Submission { job, request }], ..Round::default() };
        driver.round(now, &mut round, &mut vec![]).unwrap();
    }
    (driver.ledger().clone(), now)
}

/// Returns a job's time in the system over its run time, as a fraction.
fn slowdown(entry: &Entry, now: Time) -> (u128, u128) {
    let there = now - entry.request.submit;
    (u128::from(there.ticks().unsigned_abs()), entry.done(now) / u128::from(entry.working()))
}

/// Returns the victims on each host, chosen one by one by the smallest slowdown.
fn naive(ledger: &Ledger, now: Time, need: &Resources, after: Span) -> Vec<(HostId, Vec<JobId>, Procs)> {
    let mut found = vec![];
    for (host, free) in (0..).map(HostId).zip(ledger.free_hosts().each()) {
        let may_go = |job: &JobId| match &ledger.entry(*job).state {
            State::Running { since, quantum, placement, .. } => {
                quantum.is_none() && now - *since >= after && placement.shares()[0].host == host
            }
            _ => false,
        };
        let mut left: Vec<JobId> = ledger.running().filter(may_go).collect();
        let (mut victims, mut room) = (vec![], free.cpus_count());
        while room < need.cpus_count() && !left.is_empty() {
            let mut least = 0;
            for other in 1..left.len() {
                let (there, run) = slowdown(ledger.entry(left[least]), now);
                let (other_there, other_run) = slowdown(ledger.entry(left[other]), now);
                if other_there * run < there * other_run {
                    least = other;
                }
            }
            let victim = left.remove(least);
            room += ledger.request(victim).procs();
            victims.push(victim);
        }
        if room >= need.cpus_count() && need.get(Kind::Memory) <= free.get(Kind::Memory) {
            found.push((host, victims, room - need.cpus_count()));
        }
    }
    // The sort is stable: equal hosts stay in their order.
    found.sort_by_key(|(.., idle)| *idle);
    found
}

proptest! {
    #[test]
    fn as_one_would_choose_by_hand(
        hosts in prop::collection::vec((1u64..8, 5u64..10), 1..4),
        drawn in prop::collection::vec((0i64..4, 1u64..5, 0u64..4, 0usize..12), 0..16),
        (later, after) in (1i64..6, 0i64..12),
        (procs, memory) in (1u64..8, 0u64..6),
    ) {
        let (ledger, last) = played(&hosts, &drawn);
        let now = last + secs(later);
        let need = demand(procs, memory);
        for (preempt, after) in [(true, secs(after)), (false, Span::MAX)] {
            let found = chances(&ledger, now, &need, after, preempt);
            let found: Vec<_> = found.into_iter().map(|c| (c.host, c.victims, c.idle)).collect();
            prop_assert_eq!(found, naive(&ledger, now, &need, after));
        }
    }
}
