//! Machines that lose processors and memory, limits of slots that change, and policies that begin
//! anew, while jobs take turns.

use miserly_core::{EventOrder, Kind, Machine, Time};
use miserly_oracle::{NaiveChange, NaiveJob, NaivePool};
use miserly_policies::PolicySpec;
use miserly_sim::Job;
use proptest::prelude::*;

use super::settings::{scheduler, workload};
use crate::scripted::{Fate, Play};
use crate::support::{BOTH, SEED, jobs};

/// Returns the remaining capacity of a machine, in tenths, after each of some seconds; then all of
/// it.
fn losses() -> impl Strategy<Value = Vec<(i64, u64, u64)>> {
    prop::collection::vec((0i64..100, 0u64..=10, 0u64..=10), 0..8)
}

fn second(second: i64) -> Time {
    Time::from_secs(second).unwrap()
}

fn script(machine: &Machine, jobs: &[Job], losses: &[(i64, u64, u64)]) -> NaivePool {
    let whole = machine.capacity();
    let part = |kind, tenths: u64| (whole.get(kind) * tenths).div_ceil(10);
    let loss = |(at, cpus, memory): &(i64, u64, u64)| {
        let left =
            whole.with(Kind::Cpus, part(Kind::Cpus, *cpus)).with(Kind::Memory, part(Kind::Memory, *memory));
        (second(*at), NaiveChange::Capacity(left))
    };
    let mut changes: Vec<_> = losses.iter().map(loss).collect();
    changes.push((second(100), NaiveChange::Capacity(whole)));
    changes.sort_by_key(|(at, _)| *at);
    let mut jobs = jobs.to_vec();
    jobs.sort_by_key(|job| job.request.submit);
    let jobs = jobs.into_iter().map(|job| NaiveJob { request: job.request, runtime: job.runtime });
    NaivePool { steps: vec![], period: 1, once: vec![], horizon: None, jobs: jobs.collect(), changes }
}

/// The scheduler with another limit of slots.
fn limited(policy: &str, slots: usize) -> PolicySpec {
    let (before, after) = policy.split_once("slots=").unwrap();
    let (_, after) = after.split_once(',').unwrap();
    format!("{before}slots={slots},{after}").parse().unwrap()
}

/// Returns the outcome of the jobs with these limits of slots, one limit after the other.
///
/// The policy is also replaced by a new one after rounds for which `replace` returns true.
fn played(
    machine: &Machine,
    script: &NaivePool,
    policy: &str,
    instants: EventOrder,
    (slots, replace): (&[usize], &[bool]),
) -> Vec<Fate> {
    let built = |slots| limited(policy, slots).build(machine, SEED).unwrap();
    let (mut limits, mut replace) = (slots.iter().cycle(), replace.iter().cycle());
    let (mut limit, mut left) = (slots[0], 0);
    let fates = Play::on(machine.clone(), script, built(limit), instants).run(|_, system| {
        let ledger = system.queues()[0].ledger();
        left = ledger.waiting_count() + ledger.running_count();
        let before = std::mem::replace(&mut limit, *limits.next().unwrap());
        if *replace.next().unwrap() || before != limit {
            system.queues_mut()[0].replace(built(limit));
        }
    });
    assert_eq!(left, 0, "{policy}: all comes back, and everybody ends");
    fates
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 768, ..ProptestConfig::default() })]

    #[test]
    fn everybody_ends_and_a_rebuilt_policy_goes_on_the_same(
        (machine, jobs) in workload(true),
        (policy, _) in scheduler(),
        losses in losses(),
        slots in prop::collection::vec(1..6usize, 1..20),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let script = script(&machine, &jobs, &losses);
        for instants in BOTH {
            let kept = played(&machine, &script, &policy, instants, (&slots, &[false]));
            let rebuilt = played(&machine, &script, &policy, instants, (&slots, &replace));
            prop_assert_eq!(kept, rebuilt, "{}, {}", policy, instants);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 768, ..ProptestConfig::default() })]

    #[test]
    fn rows_are_united_whatever_happens_at_that_instant(
        (machine, jobs) in workload(true),
        (policy, _) in scheduler(),
    ) {
        let script = NaivePool { changes: vec![], ..script(&machine, &jobs, &[]) };
        let play = || {
            let policy = policy.parse::<PolicySpec>().unwrap().build(&machine, SEED).unwrap();
            Play::on(machine.clone(), &script, policy, EventOrder::Batched)
        };
        let mut united = [0, 0];
        let mut count = |nth: usize| {
            let count = &mut united[nth];
            let play = if nth == 0 { play() } else { play().away() };
            play.run(|_, system| *count = system.queues()[0].ledger().unifications().unwrap())
        };
        prop_assert_eq!(count(0), count(1), "{}", policy);
        prop_assert_eq!(united[0], united[1], "{}", policy);
    }
}

/// The rows at the end of a script, drawn as the numbers of the jobs and their processors.
fn rows(
    procs: u64,
    quads: &[(i64, i64, u64, i64)],
    losses: &[(i64, u64)],
    policies: [&str; 2],
) -> Vec<String> {
    let machine = Machine::plain(procs);
    let mut script = script(&machine, &jobs(quads), &[]);
    let capacity = |(at, cpus): &(i64, u64)| {
        (second(*at), NaiveChange::Capacity(machine.capacity().with(Kind::Cpus, *cpus)))
    };
    script.changes = losses.iter().map(capacity).collect();
    let built = |policy: &str| policy.parse::<PolicySpec>().unwrap().build(&machine, SEED).unwrap();
    let mut drawn = vec![];
    Play::on(machine.clone(), &script, built(policies[0]), EventOrder::Batched).run(|now, system| {
        if now < second(50) {
            system.queues_mut()[0].replace(built(policies[usize::from(now >= second(10))]));
            let ledger = system.queues()[0].ledger();
            let running = ledger.running().map(|job| ledger.entry(job));
            let place = |entry: &miserly_core::Entry| {
                let placement = entry.placement().unwrap();
                format!("{}: {} on {}", placement.slot.0, entry.request.number, placement.pes().unwrap())
            };
            drawn = running.map(place).collect();
            drawn.sort();
        }
    });
    drawn
}

#[test]
fn rows_beyond_a_new_limit_take_jobs_and_are_united() {
    // Three rows when the limit becomes two, in the last of which there is room.
    let quads = [(0, 900, 2, 900), (1, 900, 2, 900), (2, 900, 1, 900), (11, 900, 1, 900), (12, 900, 1, 900)];
    let policies = |packing: &str| [5, 2].map(|slots| format!("gang(packing={packing}, slots={slots})"));
    let full = ["0: 1 on 0-1", "1: 2 on 0-1", "2: 3 on 0", "2: 4 on 1"];
    for packing in ["first-fit", "buddy", "min-max-load", "migration"] {
        let [before, after] = policies(packing);
        assert_eq!(rows(2, &quads, &[], [&before, &after]), full, "{packing}");
    }
    // The second job ends: two rows are left, and there is still no room for the fifth one.
    let quads = [quads[0], (1, 7, 2, 7), quads[2], quads[3], quads[4]];
    let [before, after] = policies("first-fit");
    assert_eq!(rows(2, &quads, &[], [&before, &after]), ["0: 1 on 0-1", "2: 3 on 0", "2: 4 on 1"]);
    let [before, after] = policies("migration");
    assert_eq!(rows(2, &quads, &[], [&before, &after]), ["0: 1 on 0-1", "1: 3 on 0", "1: 4 on 1"]);
}
