//! Policies in pools with varying and lost capacity, and with withdrawn and amended jobs.

use miserly_core::{
    ActualRuntime, Constraints, Effect, Expected, JobId, Kind, Machine, OpportunisticConfig, Procs, Request,
    Resources, Span, State, System, Time,
};
use miserly_oracle::{NaiveChange, NaiveFate, NaiveJob, NaivePool, windows};
use miserly_policies::PolicySpec;
use miserly_policies::window::first_fit;
use proptest::prelude::*;

use crate::scripted::{Fate, Play, is_blocked, machine, there_is};
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

/// No exception, or up to three.
fn once() -> impl Strategy<Value = Vec<(i64, i64, Resources)>> {
    prop::collection::vec((0i64..30, 1i64..30, resources()), 0..4).prop_map(|times| {
        let mut end = 0;
        let mut next = |(after, length, amount)| {
            let from = end + after;
            end = from + length;
            (from, end, amount)
        };
        times.into_iter().map(&mut next).collect()
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
            request.constraints = Constraints { begin, deadline, ..Constraints::NONE };
            NaiveJob { request, runtime: ActualRuntime(Span::from_ticks(runtime)) }
        },
    )
}

/// More than any script has, so that some changes affect no job.
const JOBS: usize = 20;

fn change() -> impl Strategy<Value = NaiveChange> {
    let begin = prop::option::of((0i64..100).prop_map(Time::from_ticks));
    prop_oneof![
        (0..JOBS).prop_map(NaiveChange::Withdraw),
        (0..JOBS, begin).prop_map(|(job, begin)| NaiveChange::Begin(job, begin)),
        (0..JOBS, 0i64..20).prop_map(|(job, span)| NaiveChange::Estimate(job, Span::from_ticks(span))),
        (0..JOBS, 1u64..8, 0u64..9, 0i64..20).prop_map(|(job, cpus, memory, span)| {
            let demand = Resources::cpus(cpus).with(Kind::Memory, memory);
            NaiveChange::Request(job, demand, Span::from_ticks(span))
        }),
        resources().prop_map(NaiveChange::Capacity),
    ]
}

fn script(overruns: bool) -> impl Strategy<Value = NaivePool> {
    let horizon = prop_oneof![1 => Just(None), 1 => (20i64..90).prop_map(Some)];
    let jobs = prop::collection::vec(job(overruns), 1..JOBS);
    let changes = prop::collection::vec(((0i64..90).prop_map(Time::from_ticks), change()), 0..6);
    (steps(), once(), horizon, jobs, changes).prop_map(
        |((period, steps), once, horizon, mut jobs, changes)| {
            (1..).zip(&mut jobs).for_each(|(number, job)| job.request.number = number);
            NaivePool { steps, period, once, horizon, jobs, changes }
        },
    )
}

/// Checks that the windows of waiting jobs, with running jobs, never exceed the capacity.
fn check_windows(now: Time, system: &System) {
    let ledger = system.queues()[0].ledger();
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
        assert!(entry.request.constraints.begin.is_none_or(|begin| begin <= at));
        taken.push((at, at + entry.request.planned(), ledger.machine().amount(&entry.request)));
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

/// A promise moves later only if it is recorded as broken, or the request has changed at that instant.
fn check_promises(script: &NaivePool, fates: &[NaiveFate]) {
    for (job, fate) in fates.iter().enumerate() {
        let of_job = |change: &NaiveChange| matches!(change, NaiveChange::Request(of, ..) if *of == job);
        let requested =
            |at: Time| script.changes.iter().any(|(instant, change)| *instant == at && of_job(change));
        for pair in fate.promises.windows(2) {
            let ((_, before, _), (at, after, broken)) = (pair[0], pair[1]);
            assert!((after > before) == broken || (!broken && requested(at)), "{fate:?}");
        }
        if let (Some(start), Some((_, latest, _))) = (fate.start, fate.promises.last()) {
            assert_eq!(start, *latest);
        }
    }
}

fn agree(script: &NaivePool) -> Result<(), TestCaseError> {
    for instants in BOTH {
        let horizon = script.horizon.map_or(Span::MAX, Span::from_ticks);
        let policy = first_fit(&machine(script), horizon);
        let fates = Play::of(script, policy, instants).run(|now, system| check_windows(now, system));
        let ours: Vec<NaiveFate> = fates.into_iter().map(|fate| fate.naive).collect();
        check_promises(script, &ours);
        prop_assert_eq!(ours, windows(script, instants), "{}", instants);
    }
    Ok(())
}

/// Policies that run in a pool, those that need it to be the same at all times last.
const IN_POOLS: [&str; 10] = [
    "miser",
    "miser(horizon=none)",
    "easy",
    "conservative",
    "priority-backfill",
    "conservative(keep_reservations=false)",
    "selective-backfill(threshold=1.5)",
    "sjf-backfill(depth=kept)",
    "immediate(quantum=3, after=2)",
    "immediate(policy='fcfs-backfill(depth=kept)', quantum=2, after=0)",
];

fn run_replacing(script: &NaivePool, policy: &str, replace: &[bool]) -> Vec<Vec<Fate>> {
    let machine: Machine = machine(script);
    let built = || policy.parse::<PolicySpec>().unwrap().build(&machine, SEED).unwrap();
    let run = |instants| {
        let mut replace = replace.iter().cycle();
        Play::of(script, built(), instants).run(|_, system| {
            if *replace.next().unwrap() {
                system.queues_mut()[0].replace(built());
            }
        })
    };
    BOTH.map(run).into()
}

/// Checks the processors of each opportunistic job, derived from the beginning.
fn check_opportunistic(now: Time, system: &System, config: OpportunisticConfig) {
    let ledger = system.queues()[0].ledger();
    let demand = |request: &Request| ledger.machine().amount(request).masked(&config.machine);
    let mut idle = config.machine;
    for entry in ledger.running().map(|job| ledger.entry(job)) {
        idle = idle.less(&entry.placement().unwrap().total());
    }
    let waiting = ledger.waiting().map(|job| ledger.entry(job));
    let mut turns: Vec<_> = waiting.map(|entry| (entry.promise.unwrap().best, entry)).collect();
    turns.sort_by_key(|(start, entry)| (*start, entry.request.submit, entry.admitted));
    for (_, entry) in turns.iter().filter(|(start, _)| *start <= now + config.lead) {
        idle = idle.less(&demand(&entry.request));
    }
    for (start, entry) in turns {
        let all = demand(&entry.request);
        let procs = all.cpus_count().min(idle.cpus_count());
        let fits = all.with(Kind::Cpus, procs.get()).fits_in(&idle);
        let may = entry.request.constraints.begin.is_none_or(|begin| begin <= now);
        let runs = may && start > now + config.lead && !entry.request.constraints.in_window_only && fits;
        assert_eq!(
            entry.opportunistic.procs,
            if runs { procs } else { Procs::new(0) },
            "job {} at {now}",
            entry.request.number
        );
        if runs {
            idle = idle.less(&all.with(Kind::Cpus, procs.get()));
        }
    }
}

/// Four processors of eight are batch's. Job 1 has them until 10; job 2 is promised 10, runs on the
/// others, and is done at 4. Its window is job 3's then, which was promised 20; and that one parks
/// a tick before.
#[test]
fn who_is_done_ahead_of_its_start_leaves_its_window() {
    let job = |(number, runtime)| NaiveJob {
        request: Request::new(number, Time::ZERO, Span::from_ticks(10), Resources::cpus(4)),
        runtime: ActualRuntime(Span::from_ticks(runtime)),
    };
    let steps = vec![(0, Resources::cpus(4))];
    let jobs = [(1, 10), (2, 4), (3, 10)].map(job).into();
    let script = NaivePool { steps, period: 24, once: vec![], horizon: None, jobs, changes: vec![] };
    let config = OpportunisticConfig { lead: Span::TICK, machine: Resources::cpus(8) };
    for instants in BOTH {
        let policy = first_fit(&machine(&script), Span::MAX);
        let fates = Play::of(&script, policy, instants).with_opportunistic(config).run(|_, _| {});
        let told = |fate: &Fate| fate.naive.promises.iter().map(|told| told.1.ticks()).collect::<Vec<_>>();
        let starts = fates.iter().map(|fate| (fate.naive.start.map(Time::ticks), told(fate)));
        let expect = [(Some(0), vec![0]), (None, vec![10]), (Some(10), vec![20, 10])];
        assert_eq!(starts.collect::<Vec<_>>(), expect);
        let effect = |at, procs: u64| {
            let change = Effect::OpportunisticProcs { job: JobId(2), procs: Procs::from(procs) };
            (Time::from_ticks(at), format!("{change:?}"))
        };
        assert!([effect(4, 4), effect(9, 0)].iter().all(|told| fates[2].effects.contains(told)));
    }
}

/// Job 1 has the batch processors until 20; job 2 is promised 20, and may run on the others from 5
/// on, though nothing else happens then. An amendment at 2 lets it run at once, or not before 7.
#[test]
fn nobody_runs_ahead_of_its_earliest_start() {
    let job = |(number, begin): (i64, Option<i64>)| {
        let constraints = Constraints { begin: begin.map(Time::from_ticks), ..Constraints::NONE };
        let plain = Request::new(number, Time::ZERO, Span::from_ticks(20), Resources::cpus(4));
        NaiveJob { request: Request { constraints, ..plain }, runtime: ActualRuntime(Span::from_ticks(20)) }
    };
    let config = OpportunisticConfig { lead: Span::TICK, machine: Resources::cpus(8) };
    let begins = |changes: Vec<(Time, NaiveChange)>| {
        let jobs = [(1, None), (2, Some(5))].map(job).into();
        let steps = vec![(0, Resources::cpus(4))];
        let script = NaivePool { steps, period: 24, once: vec![], horizon: None, jobs, changes };
        let policy = first_fit(&machine(&script), Span::MAX);
        let fates = Play::of(&script, policy, BOTH[0]).with_opportunistic(config).run(|_, _| {});
        let first = fates[1].effects.iter().find(|(_, effect)| effect.starts_with("OpportunisticProcs"));
        first.map(|(at, _)| at.ticks())
    };
    let at_two =
        |begin: Option<i64>| vec![(Time::from_ticks(2), NaiveChange::Begin(1, begin.map(Time::from_ticks)))];
    assert_eq!(begins(vec![]), Some(5));
    assert_eq!(begins(at_two(None)), Some(2));
    assert_eq!(begins(at_two(Some(7))), Some(7));
    assert_eq!(begins(at_two(Some(19))), None);
}

/// The pool has neither memory nor, but for one, processors in the first two of nineteen ticks. Job
/// 1 is promised 21, and loses that when the pool loses the memory it needs; job 2 is the head
/// then, and is promised 40. The memory comes back, and job 1 could start at 40 too: it does not
/// take the start that job 2 was promised.
#[test]
fn a_head_that_comes_back_takes_no_promised_start() {
    let amount = |cpus, memory| Resources::cpus(cpus).with(Kind::Memory, memory);
    let job = |(number, submit, estimate, memory)| NaiveJob {
        request: Request::new(
            number,
            Time::from_ticks(submit),
            Span::from_ticks(estimate),
            amount(1, memory),
        ),
        runtime: ActualRuntime(Span::from_ticks(estimate)),
    };
    let capacity = |(at, amount)| (Time::from_ticks(at), NaiveChange::Capacity(amount));
    let script = NaivePool {
        steps: vec![(0, amount(1, 0)), (2, amount(5, 4))],
        period: 19,
        once: vec![],
        horizon: None,
        jobs: [(1, 10, 10, 4), (2, 28, 11, 1)].map(job).into(),
        changes: [(11, amount(1, 1)), (29, amount(1, 4))].map(capacity).into(),
    };
    for fates in run_replacing(&script, "easy", &[false]) {
        let told = |fate: &Fate| fate.naive.promises.iter().map(|told| told.1).collect::<Vec<_>>();
        let starts = fates.iter().map(|fate| (fate.naive.start.map(Time::ticks), told(fate)));
        let [back, at_40, at_59] = [Time::from_ticks(21), Time::from_ticks(40), Time::from_ticks(59)];
        let expect = [(Some(59), vec![back, Time::MAX, at_59]), (Some(40), vec![at_40])];
        assert_eq!(starts.collect::<Vec<_>>(), expect);
    }
}

proptest! {
    #[test]
    fn ahead_of_their_starts_jobs_have_what_is_idle(
        mut script in script(false),
        only in prop::collection::vec(any::<bool>(), JOBS),
        lead in 0i64..6,
        more in resources(),
    ) {
        for (job, only) in script.jobs.iter_mut().zip(only) {
            job.request.constraints.in_window_only = only;
        }
        let most = machine(&script).capacity();
        let config = OpportunisticConfig { lead: Span::from_ticks(lead), machine: most.plus(&more.masked(&most)) };
        for instants in BOTH {
            let policy = first_fit(&machine(&script), Span::MAX);
            let fates = Play::of(&script, policy, instants).with_opportunistic(config).run(|now, system| {
                if !is_blocked(now, system.queues()[0].ledger()) {
                    check_windows(now, system);
                }
                check_opportunistic(now, system, config);
            });
            check_promises(&script, &fates.into_iter().map(|fate| fate.naive).collect::<Vec<_>>());
        }
    }

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
                script.once.clear();
            }
            let kept = run_replacing(&script, policy, &[false]);
            prop_assert_eq!(kept, run_replacing(&script, policy, &replace), "{}", policy);
        }
    }
}
