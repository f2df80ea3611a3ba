//! Rebuild is a theorem: a policy thrown away at any moment and made anew from the ledger goes on
//! the same.

use miserly_core::{EventOrder, Machine, Sharing, Spread};
use miserly_policies::PolicySpec;
use miserly_sim::{Job, Observer, Simulation};
use proptest::prelude::*;

use crate::support::{
    BOTH, MORE_ON_HOSTS, ON_HOSTS, ON_SHARED_HOSTS, PREEMPTING, Quad, SEED, Schedule, disclosing,
    forms_workload, hosts_workload, in_order, in_three_queues, jobs_for, run, run_on, some_policies,
    workload,
};

/// Runs with the policy replaced by a new one after each round for which `replace` returns true.
pub(crate) fn run_replacing(
    machine: &Machine,
    jobs: &[Job],
    policy: &str,
    instants: EventOrder,
    replace: &[bool],
) -> Schedule {
    let chosen: PolicySpec = policy.parse().unwrap();
    let build = || chosen.build(machine, SEED).unwrap();
    let mut schedule = Schedule::default();
    let mut simulation = disclosing(Simulation::new(machine.clone(), build(), instants), policy);
    let mut source = in_order(jobs).peekable();
    let mut replace = replace.iter().cycle();
    let mut observers: [&mut dyn Observer; 1] = [&mut schedule];
    while simulation.step(&mut source, &mut observers).unwrap().is_some() {
        if *replace.next().unwrap() {
            simulation.system().queues_mut()[0].replace(build());
        }
    }
    schedule.0.sort_by_key(|job| job.request.number);
    schedule
}

proptest! {
    #[test]
    fn a_rebuilt_policy_goes_on_the_same(
        (procs, quads) in workload(true),
        policies in some_policies(),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        for policy in policies {
            on_processors(procs, &quads, &policy, &replace)?;
        }
    }

    #[test]
    fn on_hosts_too(
        (machine, jobs) in hosts_workload(true, Spread::One, Sharing::Shared),
        replace in prop::collection::vec(any::<bool>(), 1..20),
        turn in 0..4usize,
    ) {
        on_machine(&machine, &jobs, ON_SHARED_HOSTS.iter().chain(&ON_HOSTS).skip(turn).step_by(4), &replace)?;
    }

    #[test]
    fn over_several_hosts_too(
        (machine, jobs) in prop_oneof![
            hosts_workload(true, Spread::Any, Sharing::Shared),
            hosts_workload(true, Spread::Any, Sharing::Whole),
            hosts_workload(true, Spread::One, Sharing::Whole),
            forms_workload(true, Sharing::Shared),
            forms_workload(true, Sharing::Whole),
        ],
        replace in prop::collection::vec(any::<bool>(), 1..20),
        turn in 0..3usize,
    ) {
        on_machine(&machine, &jobs, ON_HOSTS.iter().chain(&MORE_ON_HOSTS).skip(turn).step_by(3), &replace)?;
    }
}

proptest! {
    #[test]
    fn with_preempted_jobs_too(
        (machine, jobs) in prop_oneof![
            hosts_workload(true, Spread::Any, Sharing::Shared),
            hosts_workload(true, Spread::One, Sharing::Shared),
            forms_workload(true, Sharing::Shared),
        ],
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        on_machine(&machine, &in_three_queues(jobs), PREEMPTING.iter(), &replace)?;
    }

    #[test]
    fn with_preempted_jobs_on_processors_too(
        (procs, quads) in workload(true),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        for policy in PREEMPTING {
            let jobs = in_three_queues(jobs_for(policy, &quads));
            on_machine(&Machine::plain(procs), &jobs, [policy].iter(), &replace)?;
        }
    }
}

/// Checks a policy on a machine without hosts.
pub(crate) fn on_processors(
    procs: u64,
    quads: &[Quad],
    policy: &str,
    replace: &[bool],
) -> Result<(), TestCaseError> {
    let jobs = jobs_for(policy, quads);
    for instants in BOTH {
        let kept = run(procs, &jobs, policy, instants).decisions();
        let rebuilt = run_replacing(&Machine::plain(procs), &jobs, policy, instants, replace).decisions();
        prop_assert_eq!(kept, rebuilt, "{}, {}", policy, instants);
    }
    Ok(())
}

/// Checks policies on a machine with hosts.
pub(crate) fn on_machine<'a>(
    machine: &Machine,
    jobs: &[Job],
    policies: impl Iterator<Item = &'a &'a str>,
    replace: &[bool],
) -> Result<(), TestCaseError> {
    for policy in policies {
        for instants in BOTH {
            let kept = run_on(machine, jobs, policy, instants).decisions();
            let rebuilt = run_replacing(machine, jobs, policy, instants, replace).decisions();
            prop_assert_eq!(kept, rebuilt, "{}, {}", policy, instants);
        }
    }
    Ok(())
}
