//! The indexes of orders that change with time, against a sorted list.

use miserly_core::{
    Entry, Expected, HostId, JobId, Kind, Ledger, Machine, Placement, Request, Resources, Span, State, Time,
};
use miserly_policies::shared::{
    Admits, ChangingIndex, Everything, Key, Moment, Order, OwnerIndex, OwnerWalk, Priority, Staircase,
    Waiting, Walk, Weight,
};
use proptest::prelude::*;
use proptest::sample::select;

/// Formulas with exact values, with ties, with values that are no numbers, and without bounds.
const FORMULAS: [&str; 10] = [
    "wait",
    "(wait + estimate) / estimate",
    "wait + 5 * (wait + estimate) / estimate + 0.2 * procs",
    "(wait / estimate)^3 * procs",
    "wait / (log2(procs) * estimate)",
    "sqrt(wait) - ln(memory)",
    "floor(wait / 100) - procs",
    "if(wait > 300, 1, estimate)",
    "wait / (procs - 3)",
    "exp(wait) - 2^wait",
];

/// Formulas that keep the order of the jobs of an owner.
const BY_USAGE: [&str; 7] = [
    "wait / 604800 - usage_share",
    "0 - usage",
    "wait - usage_share * usage",
    "2 * (wait - usage) / 3",
    "wait / 1000 - sqrt(usage)",
    "wait / 100 - usage_share / (usage - 0.25)",
    "floor(-3 * usage_share) + group_usage_share",
];

/// An index of waiting jobs.
trait Index: Default {
    type Walk: Default;

    fn is_empty(&self) -> bool;

    fn insert(&mut self, at: &Moment<'_>, waiting: Waiting);

    fn remove(&mut self, waiting: &Waiting);

    fn first(&mut self, at: &Moment<'_>) -> Option<Waiting>;

    fn next(
        &mut self,
        at: &Moment<'_>,
        walk: &mut Self::Walk,
        after: Option<&Key>,
        room: &impl Admits,
    ) -> Option<Waiting>;
}

macro_rules! index {
    ($index:ty, $walk:ty) => {
        impl Index for $index {
            type Walk = $walk;

            fn is_empty(&self) -> bool {
                <$index>::is_empty(self)
            }

            fn insert(&mut self, at: &Moment<'_>, waiting: Waiting) {
                <$index>::insert(self, at, waiting);
            }

            fn remove(&mut self, waiting: &Waiting) {
                <$index>::remove(self, waiting);
            }

            fn first(&mut self, at: &Moment<'_>) -> Option<Waiting> {
                <$index>::first(self, at)
            }

            fn next(
                &mut self,
                at: &Moment<'_>,
                walk: &mut $walk,
                after: Option<&Key>,
                room: &impl Admits,
            ) -> Option<Waiting> {
                <$index>::next(self, at, walk, after, room)
            }
        }
    };
}

index!(ChangingIndex, Walk);
index!(OwnerIndex, OwnerWalk);

#[derive(Clone, Debug)]
enum Step {
    Insert,
    Remove(usize),
    Advance(i64),
    /// The first that fits beside a shadow: (free, until the shadow, extra), behind the n-th job.
    Search(u32, i64, u32, Option<usize>),
    /// Visits the jobs that are no wider than this. Each second one leaves, and the limit falls by the other number.
    Walk(u32, u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => Just(Step::Insert),
        2 => any::<usize>().prop_map(Step::Remove),
        2 => prop_oneof![0i64..3, 0i64..40_000_000].prop_map(Step::Advance),
        3 => (0u32..30, 1i64..90_000_000, 0u32..20, any::<Option<usize>>())
            .prop_map(|(free, until, extra, behind)| Step::Search(free, until, extra, behind)),
        1 => (0u32..50, 0u32..2).prop_map(|(limit, fall)| Step::Walk(limit, fall)),
    ]
}

/// The submission before an insertion, processors, estimate and memory of a job.
type Shape = (i64, u32, i64, u64);

fn shape() -> impl Strategy<Value = Shape> {
    let seconds = |most: i64| (0..most).prop_map(|seconds| 1_000_000 * seconds);
    let ago = prop_oneof![Just(0), seconds(400), 0i64..400_000_000];
    let estimate = prop_oneof![seconds(90), 0i64..90_000_000];
    let any = (ago, 1u32..40, estimate, 0u64..4);
    // Jobs that are alike.
    prop_oneof![1 => any, 1 => (Just(0), 8u32..10, Just(30_000_000), Just(1))]
}

/// Returns a job of this user that runs since some time. Users 1 and 2 have the same usage.
fn running(user: u32) -> Entry {
    let procs = u64::from(user.max(1));
    let started = Time::from_ticks(if user < 3 { 100_000_000 } else { 900_000_000 });
    let request = Request::new(1000, started, Span::MAX, Resources::cpus(procs));
    let request = Request { user: Some(user), group: Some(user % 2), ..request };
    let placement = Placement::on(HostId(0), Resources::cpus(procs));
    let expected = Expected::At(Time::MAX);
    let state = State::Running {
        start: started,
        since: started,
        expected,
        placement,
        released: false,
        quantum: None,
    };
    Entry { state, ..Entry::waiting(request, 1000 + u64::from(user)) }
}

/// Takes these steps, and compares the index with a sorted list.
fn as_a_sorted_list<I: Index>(order: &Order, steps: &[(Step, Shape)]) -> Result<(), TestCaseError> {
    let mut now = Time::from_ticks(1_000_000_000);
    // The ledger has all jobs from the beginning. The index has those that were inserted.
    let mut clock = now;
    let mut jobs = Vec::new();
    for (number, (step, (ago, procs, estimate, memory))) in (0..).zip(steps) {
        if let Step::Advance(ticks) = step {
            clock = clock + Span::from_ticks(*ticks);
        }
        let demand = Resources::cpus(u64::from(*procs)).with(Kind::Memory, *memory);
        let submit = clock - Span::from_ticks(*ago);
        let request = Request::new(i64::from(number), submit, Span::from_ticks(*estimate), demand);
        // The last one has no job that runs.
        let owner = (number % 7 < 6).then_some(number % 7);
        let request = Request { user: owner, group: owner.map(|user| user % 2), ..request };
        jobs.push((JobId(number), Entry::waiting(request, u64::from(number))));
    }
    let inserted = u32::try_from(steps.len()).unwrap();
    jobs.extend((0..6).map(|user| (JobId(inserted + user), running(user))));
    let mut ledger = Ledger::restored(Machine::plain(100), jobs).unwrap();
    ledger.count_usage(order.usage_half_life());
    let mut index = I::default();
    let mut list: Vec<Waiting> = Vec::new();
    for (number, (step, _)) in (0..).zip(steps) {
        if let Step::Advance(ticks) = step {
            now = now + Span::from_ticks(*ticks);
        }
        let at = Moment { order, now, ledger: &ledger };
        let mut sorted: Vec<_> = list.iter().map(|job| Waiting { key: at.key(job.job), ..*job }).collect();
        sorted.sort_by_key(|job| job.key);
        match *step {
            Step::Insert => {
                let job = Waiting::by_arrival(JobId(number), ledger.entry(JobId(number)));
                index.insert(&at, job);
                list.push(job);
            }
            Step::Remove(which) if !list.is_empty() => {
                index.remove(&list.swap_remove(which % list.len()));
            }
            Step::Remove(_) => {}
            Step::Advance(_) => prop_assert_eq!(index.first(&at), sorted.first().copied()),
            Step::Search(free, until, extra, behind) => {
                let until = Span::from_ticks(until);
                let room = Staircase::of_shadow(free, until, extra);
                let behind = behind.filter(|_| !list.is_empty()).map(|which| sorted[which % list.len()].key);
                let is_behind = |job: &&Waiting| Some(job.key) > behind;
                let fits = |job: &&Waiting| job.procs <= free && (job.span <= until || job.procs <= extra);
                let expected = sorted.iter().filter(is_behind).find(fits).copied();
                let walk = &mut I::Walk::default();
                prop_assert_eq!(index.next(&at, walk, behind.as_ref(), &room), expected);
                prop_assert_eq!(index.next(&at, walk, behind.as_ref(), &room), expected);
                let expected = sorted.iter().find(is_behind).copied();
                prop_assert_eq!(
                    index.next(&at, &mut I::Walk::default(), behind.as_ref(), &Everything),
                    expected
                );
            }
            Step::Walk(mut limit, fall) => {
                let (mut walk, mut behind) = (I::Walk::default(), None);
                let mut rest = sorted.iter();
                let mut leaves = false;
                loop {
                    let room = Staircase::of_shadow(limit, Span::MAX, limit);
                    let next = index.next(&at, &mut walk, behind.as_ref(), &room);
                    prop_assert_eq!(next, rest.find(|job| job.procs <= limit).copied());
                    let Some(next) = next else { break };
                    behind = Some(next.key);
                    limit = limit.saturating_sub(fall);
                    if leaves {
                        let at = list.iter().position(|job| job.job == next.job).unwrap();
                        index.remove(&list.swap_remove(at));
                    }
                    leaves = !leaves;
                }
            }
        }
        prop_assert_eq!(index.is_empty(), list.is_empty());
    }
    Ok(())
}

proptest! {
    #[test]
    fn of_waits(
        text in select(&FORMULAS[..]),
        weight in select(vec![0.0, 0.001, 0.1, 7.0]),
        steps in prop::collection::vec((step(), shape()), 1..400),
    ) {
        let weight = Weight::per_second(weight).unwrap();
        let order = Order::by_formula(Priority::largest(text).unwrap()).with_weight(weight);
        prop_assert!(order.ages());
        as_a_sorted_list::<ChangingIndex>(&order, &steps)?;
    }

    #[test]
    fn of_usage(
        text in select(&BY_USAGE[..]),
        weight in select(vec![0.0, 0.001, 0.1, 7.0]),
        half_life in select(vec![10_000_000, 600_000_000, i64::MAX]),
        steps in prop::collection::vec((step(), shape()), 1..400),
    ) {
        let weight = Weight::per_second(weight).unwrap();
        let order = Order::by_formula(Priority::largest(text).unwrap()).with_weight(weight);
        let order = order.with_half_life(Span::from_ticks(half_life));
        prop_assert!(order.ranks_owners());
        as_a_sorted_list::<OwnerIndex>(&order, &steps)?;
    }
}

#[test]
fn jobs_of_an_owner_may_cross() {
    let texts = [
        "usage - wait",
        "wait * usage",
        "procs - usage",
        "sqrt(wait) - usage",
        "wait - fair_tree",
        "3 * wait - 2 * wait - usage",
        "wait",
    ];
    for text in texts {
        assert!(!Order::by_formula(Priority::largest(text).unwrap()).ranks_owners(), "{text}");
    }
    assert!(Order::by_formula(Priority::preset("fair-share").unwrap()).ranks_owners());
}
