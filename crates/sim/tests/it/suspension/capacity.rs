//! Machines that lose processors and memory, and get them back, while jobs are suspended for
//! others.

use miserly_core::{EventOrder, HostId, Kind, Machine, PeSet, Request, System, Time};
use miserly_oracle::{NaiveChange, NaiveJob, NaivePool};
use miserly_policies::PolicySpec;
use miserly_sim::Job;
use proptest::prelude::*;

use super::settings::cases;
use crate::scripted::{Fate, Play};
use crate::support::{BOTH, SEED};

/// Returns the remaining capacity after each of some instants, in parts of the time until the last
/// arrival.
///
/// In the end all capacity is back.
fn losses() -> impl Strategy<Value = Vec<(i64, u64, u64)>> {
    prop::collection::vec((0i64..=100, 0u64..=10, 0u64..=10), 1..8)
}

fn script(machine: &Machine, jobs: &[Job], losses: &[(i64, u64, u64)]) -> NaivePool {
    let whole = machine.capacity();
    let last = jobs.iter().map(|job| job.request.submit.ticks()).max().unwrap_or_default();
    let part = |kind, tenths: u64| (whole.get(kind) * tenths).div_ceil(10);
    let loss = |(at, cpus, memory): &(i64, u64, u64)| {
        let left =
            whole.with(Kind::Cpus, part(Kind::Cpus, *cpus)).with(Kind::Memory, part(Kind::Memory, *memory));
        (Time::from_ticks(last * 2 * at / 100), NaiveChange::Capacity(left))
    };
    let mut changes: Vec<_> = losses.iter().map(loss).collect();
    changes.push((Time::from_ticks(last * 2 + 1), NaiveChange::Capacity(whole)));
    changes.sort_by_key(|(at, _)| *at);
    let jobs = jobs.iter().zip(0..).map(|(job, number)| NaiveJob {
        request: Request { number, ..job.request.clone() },
        runtime: job.runtime,
    });
    NaivePool { steps: vec![], period: 1, once: vec![], horizon: None, jobs: jobs.collect(), changes }
}

/// Checks that the numbers of the free processors match their count and are unique.
fn check_free(system: &System) {
    let ledger = system.queues()[0].ledger();
    let capacity = ledger.machine().capacity().cpus_count();
    let free = ledger.free_pes(HostId(0)).unwrap();
    assert_eq!(free.count(), ledger.free().cpus_count());
    assert!(PeSet::first(u32::try_from(capacity).unwrap()).contains_all(free));
}

fn played(
    machine: &Machine,
    script: &NaivePool,
    policy: &str,
    instants: EventOrder,
    replace: &[bool],
) -> Vec<Fate> {
    let built = || policy.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
    let mut replace = replace.iter().cycle();
    let mut left = 0;
    let fates = Play::on(machine.clone(), script, built(), instants).run(|_, system| {
        check_free(system);
        let ledger = system.queues()[0].ledger();
        left = ledger.waiting_count() + ledger.running_count() + ledger.suspended_count();
        if *replace.next().unwrap() {
            system.queues_mut()[0].replace(built());
        }
    });
    assert_eq!(left, 0, "{policy}: all comes back, and everybody ends");
    fates
}

proptest! {
    #[test]
    fn everybody_ends_and_a_rebuilt_policy_goes_on_the_same(
        (machine, jobs, setting) in cases(),
        losses in losses(),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let (script, policy) = (script(&machine, &jobs, &losses), setting.written());
        for instants in BOTH {
            let kept = played(&machine, &script, &policy, instants, &[false]);
            prop_assert_eq!(kept, played(&machine, &script, &policy, instants, &replace), "{}", policy);
        }
    }
}
