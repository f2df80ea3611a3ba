//! The decayed usage of users and groups, by which orders share a machine.

use std::collections::BTreeMap;

use miserly_core::{EventOrder, Ledger, Machine, Request, Sharing, Span, Spread, Time, Usage};
use miserly_oracle::{NaiveJob, NaivePolicy, schedule};
use miserly_policies::PolicySpec;
use miserly_sim::{Job, Simulation};
use proptest::prelude::*;

use crate::rebuild::{on_machine, on_processors};
use crate::support::{
    BOTH, ON_SHARED_HOSTS, Quad, SEED, disclosing, hosts_workload, in_order, jobs, jobs_for, run, workload,
};

/// Orders by usage, as parameters of a policy.
const ORDERS: [&str; 10] = [
    "order=fair-share",
    "order='-usage_share', half_life=2s",
    "order=fair-share, half_life=1s",
    "order=fair-share, half_life=3s, weight=0.02",
    "order='wait / 3 - 2 * usage_share', half_life=2s",
    "order='wait / 3 - 2 * usage_share', half_life=none",
    "order='procs * (1 - usage_share)', half_life=4s",
    "order='-usage', half_life=none",
    "order='-group_usage_share - usage / 9', half_life=none",
    "order='wait / 3 - 9 * group_usage', half_life=2s",
];

/// Policies that order by a tree of shares.
const RANKED: [&str; 5] = [
    "easy(order='wait / 9 + fair_tree', half_life=1s, shares='2*(g1, g2), 1*u3')",
    "conservative(order='-fair_tree', half_life=none, shares='2*(u1, 3*u2), parent*u3')",
    "slurm(order='fair_tree', half_life=2s, shares='2*(u1, 3*u2), u3', bf_interval=1s, bf_resolution=1s)",
    "slurm(order='fair_tree', half_life=2s, shares='2*(u1, 3*u2), u3', priority_calc_period=3s, \
     priority_calc_first=1s, bf_interval=1s, bf_resolution=1s)",
    "slurm(order='wait / 20 + fair_tree', half_life=5s, shares='g1, 2*g2', priority_calc_period=2s, bf_interval=2s)",
];

const POLICIES: [&str; 8] = [
    "fcfs",
    "easy",
    "easy(hold_head=true)",
    "easy(backfill=shortest)",
    "conservative",
    "conservative(keep_reservations=false)",
    "sorted",
    "selective-backfill",
];

fn with_order(policy: &str, order: &str) -> String {
    match policy.split_once('(') {
        Some((name, rest)) => format!("{name}({order}, {rest}"),
        None => format!("{policy}({order})"),
    }
}

/// A user and a group.
type Owner = (Option<u32>, Option<u32>);

/// The allocations of a run by linear scans: the processors of each user and group between two rounds.
#[derive(Default)]
struct History(Vec<(Time, BTreeMap<Owner, u64>)>);

impl History {
    fn note(&mut self, now: Time, ledger: &Ledger) {
        let mut procs = BTreeMap::new();
        for job in ledger.running().chain(ledger.suspended()) {
            let entry = ledger.entry(job);
            let owner = (entry.request.user, entry.request.group);
            *procs.entry(owner).or_default() += entry.allocated().get();
        }
        self.0.push((now, procs));
    }

    /// The decayed processor-ticks of users and groups for whom `counts` holds.
    fn amount(&self, now: Time, half_life: Span, counts: impl Fn(Owner) -> bool) -> f64 {
        let half_life = half_life.ticks() as f64;
        let weight = |at: Time| (-((now - at).ticks() as f64) / half_life).exp2();
        let ends = self.0[1..].iter().map(|(at, _)| *at).chain([now]);
        let interval = |((from, procs), to): (&(Time, BTreeMap<Owner, u64>), Time)| {
            let procs: u64 = procs.iter().filter(|(owner, _)| counts(**owner)).map(|(_, procs)| procs).sum();
            procs as f64 * half_life / std::f64::consts::LN_2 * (weight(to) - weight(*from))
        };
        self.0.iter().zip(ends).map(interval).sum()
    }
}

/// Counts usage in a run of any policy, and compares it with the history after each round.
fn check_usage(machine: &Machine, jobs: &[Job], name: &str, half_life: Span) -> Result<(), TestCaseError> {
    for event_order in BOTH {
        let policy = name.parse::<PolicySpec>().unwrap().build(machine, SEED).unwrap();
        let mut simulation = disclosing(Simulation::new(machine.clone(), policy, event_order), name);
        simulation.system().queues_mut()[0].ledger_mut().count_usage(Some(half_life));
        let mut source = in_order(jobs).peekable();
        let mut history = History::default();
        while let Some(now) = simulation.step(&mut source, &mut []).unwrap() {
            let ledger = simulation.system().queues()[0].ledger();
            history.note(now, ledger);
            compare(ledger.usage().unwrap(), &history, now + Span::from_ticks(700_000), half_life)?;
            let restored = restored(machine, ledger, half_life);
            prop_assert_eq!(restored.usage(), ledger.usage());
        }
    }
    Ok(())
}

/// Returns a ledger from what a daemon stores.
fn restored(machine: &Machine, ledger: &Ledger, half_life: Span) -> Ledger {
    let jobs = ledger.waiting().chain(ledger.running()).chain(ledger.suspended());
    let jobs = jobs.map(|job| (job, ledger.entry(job).clone())).collect();
    let mut restored = Ledger::restored(machine.clone(), jobs).unwrap().with_state(ledger.state());
    restored.count_usage(Some(half_life));
    restored
}

fn compare(usage: &Usage, history: &History, now: Time, half_life: Span) -> Result<(), TestCaseError> {
    let all = history.amount(now, half_life, |_| true);
    let check = |mine: f64, parts: u32, seconds: u64| {
        let share = if all < 1.0 { 0.0 } else { mine / all };
        let found = f64::from(parts) / f64::from(Usage::PARTS);
        prop_assert!((found - share).abs() <= 1.5e-9, "{} is not {}", found, share);
        prop_assert!((seconds as f64 - mine / 1e6).abs() <= 0.501, "{} is not {}", seconds, mine);
        Ok(())
    };
    for one in [None, Some(1), Some(2), Some(3), Some(4)] {
        let of_user = history.amount(now, half_life, |(user, _)| user == one);
        check(of_user, usage.share(one, now), usage.processor_seconds(one, now))?;
        let of_group = history.amount(now, half_life, |(_, group)| group == one);
        check(of_group, usage.group_share(one, now), usage.group_processor_seconds(one, now))?;
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_same_starts_as_by_the_history_of_all_runs(
        (procs, quads) in workload(true),
        order in 0..ORDERS.len(),
        policy in 0..POLICIES.len(),
    ) {
        let policy = with_order(POLICIES[policy], ORDERS[order]);
        let jobs = jobs_for(&policy, &quads);
        for instants in BOTH {
            let ours: Vec<Time> = run(procs, &jobs, &policy, instants).0.iter().map(|job| job.start).collect();
            prop_assert_eq!(ours, naive(procs, &jobs, &policy, instants), "{}, {}", policy, instants);
        }
    }

    #[test]
    fn a_rebuilt_policy_knows_the_usage(
        (procs, quads) in workload(true),
        order in 0..ORDERS.len(),
        policy in 0..POLICIES.len(),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        on_processors(procs, &quads, &with_order(POLICIES[policy], ORDERS[order]), &replace)?;
    }

    #[test]
    fn a_rebuilt_policy_knows_the_ranks(
        (procs, quads) in workload(true),
        policy in prop::sample::select(&RANKED[..]),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        on_processors(procs, &quads, policy, &replace)?;
    }

    #[test]
    fn so_does_one_on_hosts_that_preempts(
        (machine, jobs) in hosts_workload(true, Spread::One, Sharing::Shared),
        replace in prop::collection::vec(any::<bool>(), 1..20),
    ) {
        let policies = [
            "immediate(policy='easy(order=fair-share, half_life=2s)', quantum=3, after=2)",
            "soon(policy='conservative(order=fair-share, half_life=1s)', quantum=2)",
            "easy(order='wait - 9 * usage_share', half_life=5s)",
        ];
        on_machine(&machine, &jobs, policies.iter(), &replace)?;
    }

    #[test]
    fn it_is_the_decayed_integral_of_allocations(
        (procs, quads) in workload(true), half_life in 1_000_000i64..90_000_000,
    ) {
        let jobs = jobs(&quads);
        for policy in ["easy", "eqspatial", "ss(sf=1.5, period=2s)", "gang", "easy(predict=last2)"] {
            check_usage(&Machine::plain(procs), &jobs, policy, Span::from_ticks(half_life))?;
        }
    }

    #[test]
    fn on_hosts_too(
        (machine, jobs) in hosts_workload(true, Spread::One, Sharing::Shared),
        half_life in 1_000_000i64..90_000_000,
        turn in 0..4usize,
    ) {
        for policy in ON_SHARED_HOSTS.iter().skip(turn).step_by(4) {
            check_usage(&machine, &jobs, policy, Span::from_ticks(half_life))?;
        }
    }

    #[test]
    fn whole_hosts_count_in_full(
        (machine, jobs) in hosts_workload(true, Spread::Any, Sharing::Whole), half_life in 1_000_000i64..90_000_000,
    ) {
        check_usage(&machine, &jobs, "easy", Span::from_ticks(half_life))?;
    }
}

fn naive(procs: u64, jobs: &[Job], policy: &str, instants: EventOrder) -> Vec<Time> {
    let jobs: Vec<NaiveJob> =
        jobs.iter().map(|job| NaiveJob { request: job.request.clone(), runtime: job.runtime }).collect();
    schedule(procs, &jobs, NaivePolicy::written(policy, SEED).expect("a naive version"), instants)
}

/// Returns the jobs of these users.
fn of_users(quads: &[Quad], users: &[u32]) -> Vec<Job> {
    let of_user =
        |(job, user): (Job, &u32)| Job { request: Request { user: Some(*user), ..job.request }, ..job };
    jobs(quads).into_iter().zip(users).map(of_user).collect()
}

#[test]
fn the_light_user_comes_first() {
    // User 1 runs for 100 s, then each user has a job in the queue. User 1 submitted first.
    let jobs = of_users(&[(0, 100, 4, 100), (10, 20, 4, 20), (20, 20, 4, 20)], &[1, 1, 2]);
    for instants in BOTH {
        assert_eq!(run(4, &jobs, "easy", instants).starts(), [0, 100, 120]);
        assert_eq!(run(4, &jobs, "easy(order=fair-share)", instants).starts(), [0, 120, 100]);
    }
}

#[test]
fn the_user_of_the_light_account_comes_first() {
    // User 1 has half of the shares of an account and all of its usage; user 2 is in the same account.
    let jobs =
        of_users(&[(0, 100, 4, 100), (10, 20, 4, 20), (20, 20, 4, 20), (30, 20, 4, 20)], &[1, 1, 2, 3]);
    let starts = |more: &str, shares: &str| {
        let policy =
            format!("slurm(order='fair_tree', shares='{shares}'{more}, bf_interval=1s, bf_resolution=1s)");
        run(4, &jobs, &policy, EventOrder::Batched).starts()
    };
    assert_eq!(starts("", "(u1, u2), u3"), [0, 140, 120, 100]);
    assert_eq!(starts("", "u1, (u2, 0*u3)"), [0, 140, 100, 120]);
    // The ranks of the instant 60 are the same; at the instant 0 all are alike.
    assert_eq!(starts(", priority_calc_period=1min", "(u1, u2), u3"), [0, 140, 120, 100]);
    assert_eq!(starts(", priority_calc_period=1h", "(u1, u2), u3"), [0, 100, 120, 140]);
}

#[test]
fn the_wait_is_that_of_the_last_computation() {
    // The wait of the first job in the queue outweighs its width by 5, but before the computation neither has waited.
    let jobs = of_users(&[(0, 90, 4, 90), (10, 20, 4, 20), (20, 20, 3, 20)], &[1, 1, 1]);
    let starts = |more: &str| {
        let policy = format!("slurm(order='wait - 5 * procs'{more}, bf_interval=1s, bf_resolution=1s)");
        run(4, &jobs, &policy, EventOrder::Batched).starts()
    };
    assert_eq!(starts(""), [0, 90, 110]);
    assert_eq!(starts(", priority_calc_period=85s"), [0, 90, 110]);
    assert_eq!(starts(", priority_calc_period=1h"), [0, 110, 90]);
    assert_eq!(starts(", priority_calc_period=100s, priority_calc_first=95s"), [0, 110, 90]);
}

#[test]
fn the_example_of_the_documentation() {
    // The shares of docs/orders.md: user 1 runs 4 processors for an hour, then user 2 runs them for an hour.
    let hour = 3600;
    let jobs = of_users(&[(0, hour, 4, hour), (0, hour, 4, hour)], &[1, 2]);
    let machine = Machine::plain(4);
    let policy = "easy(order=fair-share, half_life=1h)".parse::<PolicySpec>().unwrap();
    let mut simulation =
        Simulation::new(machine.clone(), policy.build(&machine, SEED).unwrap(), EventOrder::Batched);
    let mut source = in_order(&jobs).peekable();
    let mut shares = vec![];
    while let Some(now) = simulation.step(&mut source, &mut []).unwrap() {
        let usage = simulation.system().queues()[0].ledger().usage().unwrap().clone();
        shares.push((now.secs(), [1, 2].map(|user| usage.share(Some(user), now))));
    }
    assert_eq!(shares, [(0, [0, 0]), (hour, [1_000_000_000, 0]), (2 * hour, [333_333_333, 666_666_667])]);
}
