//! Policies in pools that vary over time, that lose capacity, and whose jobs are withdrawn and amended.

use miserly_core::{
    ActualRuntime, Driver, Expected, Kind, Machine, Request, Resources, Span, State, Terms, Time,
};
use miserly_oracle::{NaiveChange, NaiveFate, NaiveJob, NaivePool, windows};
use miserly_policies::Chosen;
use miserly_policies::window::first_fit;
use proptest::prelude::*;

use crate::scripted::{Fate, Play, machine, there_is};
use crate::support::{BOTH, SEED};

fn resources() -> impl Strategy<Value = Resources> {
    (0u64..9, 0u64..13).prop_map(|(cpus, memory)| Resources::cpus(cpus).with(Kind::Memory, memory))
}

/// One to three steps of a period.
fn steps() -> impl Strategy<Value = (i64, Vec<(i64, Resources)>)> {
    let step = (0i64..24, resources());
    (4i64..24, prop::collection::vec(step, 1..4)).prop_map(|(period, mut steps)| {
        for (from, _) in &mut steps {
            *from %= period;
        }
        steps[0] = (0, steps[0].1.most(&Resources::cpus(1)));
        steps.sort_by_key(|(from, _)| *from); // The first stays the first.
        steps.dedup_by_key(|(from, _)| *from);
        (period, steps)
    })
}

fn job(overruns: bool) -> impl Strategy<Value = NaiveJob> {
    let soon = || prop_oneof![2 => Just(None), 1 => (0i64..90).prop_map(Some)];
    (0i64..60, 0i64..16, 0i64..16, 1u64..8, 0u64..9, soon(), soon()).prop_map(
        move |(submit, runtime, estimate, procs, memory, begin, deadline)| {
            let demand = Resources::cpus(procs).with(Kind::Memory, memory);
            let estimate = if overruns { estimate } else { estimate.max(runtime) };
            let mut request = Request::new(0, Time::from_ticks(submit), Span::from_ticks(estimate), demand);
            let [begin, deadline] = [begin, deadline].map(|at| at.map(Time::from_ticks));
            request.terms = Terms { begin, deadline, ..Terms::NONE };
            NaiveJob { request, runtime: ActualRuntime(Span::from_ticks(runtime)) }
        },
    )
}

/// More than any script has, so that some changes are about nobody.
const JOBS: usize = 20;

fn change() -> impl Strategy<Value = NaiveChange> {
    let begin = prop::option::of((0i64..100).prop_map(Time::from_ticks));
    prop_oneof![
        (0..JOBS).prop_map(NaiveChange::Withdraw),
        (0..JOBS, begin).prop_map(|(job, begin)| NaiveChange::Begin(job, begin)),
        (0..JOBS, 0i64..20).prop_map(|(job, span)| NaiveChange::Estimate(job, Span::from_ticks(span))),
        resources().prop_map(NaiveChange::Capacity),
    ]
}

fn script(overruns: bool) -> impl Strategy<Value = NaivePool> {
    let horizon = prop_oneof![1 => Just(None), 1 => (20i64..90).prop_map(Some)];
    let jobs = prop::collection::vec(job(overruns), 1..JOBS);
    let changes = prop::collection::vec(((0i64..90).prop_map(Time::from_ticks), change()), 0..6);
    (steps(), horizon, jobs, changes).prop_map(|((period, steps), horizon, mut jobs, changes)| {
        (1..).zip(&mut jobs).for_each(|(number, job)| job.request.number = number);
        NaivePool { steps, period, horizon, jobs, changes }
    })
}

/// At no instant do the windows of waiting jobs, with what runs, take more than there is.
fn check_windows(now: Time, driver: &Driver) {
    let ledger = driver.ledger();
    let ends = |at: Expected| if let Expected::At(end) = at { end } else { now + Span::TICK };
    let mut taken: Vec<(Time, Time, Resources)> = Vec::new();
    for entry in ledger.running().map(|job| ledger.entry(job)) {
        let State::Running { expected, ref placement, .. } = entry.state else { continue };
        taken.push((now, ends(expected), placement.total()));
    }
    let running = taken.len();
    for entry in ledger.waiting().map(|job| ledger.entry(job)) {
        let at = entry.planned.expect("every job has a window");
        assert_eq!(Some(at), entry.promise.map(|promise| promise.best), "the window is promised");
        assert!(entry.request.terms.begin.is_none_or(|begin| begin <= at));
        taken.push((at, at + entry.request.planned(), ledger.machine().demand(&entry.request)));
    }
    let starts: Vec<Time> = taken.iter().map(|(from, ..)| *from).filter(|at| *at < Time::MAX).collect();
    let last = taken.iter().map(|(_, to, _)| *to).filter(|to| *to < Time::MAX).max().unwrap_or(now);
    let (first, last) = (starts.iter().min().copied().unwrap_or(now).ticks(), last.ticks());
    for at in (first..last).map(Time::from_ticks) {
        let here = |(from, to, _): &&(Time, Time, Resources)| *from <= at && at < *to;
        let sum = taken.iter().filter(here).fold(Resources::NONE, |sum, (.., amount)| sum.plus(amount));
        let there_is = there_is(ledger.machine(), at);
        for window in taken[running..].iter().filter(here) {
            let enough = |kind| window.2.get(kind) == 0 || sum.get(kind) <= there_is.get(kind);
            assert!(Kind::ALL.into_iter().all(enough), "more is promised than there is at {at}");
        }
    }
}

/// A promise moves later only if that is owned up to, and is kept.
fn check_promises(fate: &NaiveFate) {
    for pair in fate.told.windows(2) {
        let ((_, before, _), (_, after, broken)) = (pair[0], pair[1]);
        assert_eq!(after > before, broken);
    }
    if let (Some(start), Some((_, latest, _))) = (fate.start, fate.told.last()) {
        assert_eq!(start, *latest);
    }
}

fn agree(script: &NaivePool) -> Result<(), TestCaseError> {
    for instants in BOTH {
        let horizon = script.horizon.map_or(Span::MAX, Span::from_ticks);
        let policy = Box::new(first_fit(&machine(script), horizon));
        let fates = Play::of(script, policy, instants).run(|now, driver| check_windows(now, driver));
        let ours: Vec<NaiveFate> = fates.into_iter().map(|fate| fate.naive).collect();
        ours.iter().for_each(check_promises);
        prop_assert_eq!(ours, windows(script, instants), "{}", instants);
    }
    Ok(())
}

/// Policies that run in a pool, those that need it to be the same at all times last.
const IN_POOLS: [&str; 9] = [
    "miser",
    "miser(horizon=none)",
    "easy",
    "conservative",
    "priority-backfill",
    "conservative(keep=false)",
    "sjf-backfill(depth=kept)",
    "immediate(quantum=3, after=2)",
    "immediate(policy='fcfs-backfill(depth=kept)', quantum=2, after=0)",
];

fn run_replacing(script: &NaivePool, policy: &str, replace: &[bool]) -> Vec<Vec<Fate>> {
    let machine: Machine = machine(script);
    let built = || policy.parse::<Chosen>().unwrap().build(&machine, SEED).unwrap();
    let run = |instants| {
        let mut replace = replace.iter().cycle();
        Play::of(script, built(), instants).run(|_, driver| {
            if *replace.next().unwrap() {
                driver.replace(built());
            }
        })
    };
    BOTH.map(run).into()
}

proptest! {
    #[test]
    fn the_same_windows_as_found_by_looking_at_every_tick(script in script(false)) {
        agree(&script)?;
    }

    #[test]
    fn under_overruns_too(script in script(true)) {
        agree(&script)?;
    }

    #[test]
    fn a_rebuilt_policy_goes_on_the_same(
        mut script in script(true),
        replace in prop::collection::vec(any::<bool>(), 1..20),
        turn in 0..3usize,
    ) {
        for policy in IN_POOLS.iter().skip(turn).step_by(3) {
            if policy.starts_with("immediate") {
                script.steps.truncate(1);
            }
            let kept = run_replacing(&script, policy, &[false]);
            prop_assert_eq!(kept, run_replacing(&script, policy, &replace), "{}", policy);
        }
    }
}
