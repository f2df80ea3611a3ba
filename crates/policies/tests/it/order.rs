//! Orders of the queue, by the keys that they give.

use std::time::Duration;

use miserly_core::{Entry, Ledger, Machine, Request, Resources, Span, Time, draw};
use miserly_policies::shared::{Criterion, Draw, Key, Order, Weight};
use proptest::prelude::*;

const SECOND: i64 = 1_000_000;

type OfRandomAndEstimate = fn(f64, f64) -> f64;

/// A job as (submit, estimate, processors), in ticks.
type Small = (i64, i64, u64);

fn entry(number: u32, (submit, estimate, procs): Small) -> Entry {
    let (submit, estimate) = (Time::from_ticks(submit), Span::from_ticks(estimate));
    let request = Request::new(number.into(), submit, estimate, Resources::cpus(procs));
    Entry::waiting(request, number.into())
}

fn job() -> impl Strategy<Value = Small> {
    (0..1000 * SECOND, 0..100 * SECOND, 1u64..500)
}

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let numbered = |jobs: Vec<Small>| (1..).zip(jobs).map(|(number, job)| entry(number, job)).collect();
    prop::collection::vec(job(), 2..30).prop_map(numbered)
}

fn criterion() -> impl Strategy<Value = Criterion> {
    (0..Criterion::ALL.len()).prop_map(|which| Criterion::ALL[which].0)
}

fn weight(per_second: f64) -> Weight {
    Weight::per_second(per_second).unwrap()
}

/// A ledger without usage.
fn no_jobs() -> Ledger {
    Ledger::new(Machine::plain(1))
}

fn keys(order: &Order, now: i64, entries: &[Entry]) -> Vec<Key> {
    entries.iter().map(|entry| order.key(Time::from_ticks(now), entry, &no_jobs())).collect()
}

/// The places of the jobs in the queue.
fn sorted(order: &Order, now: i64, entries: &[Entry]) -> Vec<u64> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|entry| order.key(Time::from_ticks(now), entry, &no_jobs()));
    sorted.iter().map(|entry| entry.admitted).collect()
}

proptest! {
    #[test]
    fn no_two_jobs_share_a_place(
        criterion in criterion(), seed: u64, now in 0..SECOND, pass: bool, weighted in 0.0..1.0, entries in entries(),
    ) {
        let draw = if pass { Draw::Pass } else { Draw::Once };
        let order = Order::by(criterion).with_draws(draw, seed).with_weight(weight(weighted));
        let mut keys = keys(&order, now, &entries);
        prop_assert_eq!(&keys, &self::keys(&order.clone(), now, &entries));
        keys.sort_unstable();
        keys.dedup();
        prop_assert_eq!(keys.len(), entries.len());
    }

    #[test]
    fn only_draws_at_each_pass_depend_on_the_instant(
        criterion in criterion(), seed: u64, pass: bool, weighted in 0.0..1.0,
        now in 0..SECOND, later in SECOND..2 * SECOND, entries in entries(),
    ) {
        let draw = if pass { Draw::Pass } else { Draw::Once };
        let order = Order::by(criterion).with_draws(draw, seed).with_weight(weight(weighted));
        let alike = keys(&order, now, &entries) == keys(&order, later, &entries);
        prop_assert_eq!(alike, !order.changes());
        prop_assert_eq!(order.changes(), pass && criterion.is_random());
    }

    /// The delay counted at any instant gives the same order as the key that does not look at the
    /// instant.
    #[test]
    fn as_the_value_and_the_weighted_delay(
        seed: u64, weighted in 1e-9..1.0, now in 1000 * SECOND..2000 * SECOND, one in job(), other in job(),
    ) {
        let (one, other) = (entry(1, one), entry(2, other));
        let seconds = |span: Span| span.ticks() as f64 / 1e6;
        let random = |entry: &Entry| draw(seed, entry.request.number, 1 << 63) as f64 / u64::MAX as f64;
        let estimate = |entry: &Entry| seconds(entry.request.estimate).max(1.0);
        let values: [(Criterion, OfRandomAndEstimate); 3] = [
            (Criterion::Shortest, |_, estimate| 1.0 / estimate),
            (Criterion::Random, |random, _| random),
            (Criterion::RandomPerLength, |random, estimate| random / estimate),
        ];
        for (criterion, value) in values {
            let order = Order::by(criterion).with_draws(Draw::Once, seed).with_weight(weight(weighted));
            let at = |entry: &Entry| {
                value(random(entry), estimate(entry)) + weighted * seconds(Time::from_ticks(now) - entry.request.submit)
            };
            let ahead = at(&one) - at(&other);
            // Closer than the rounding of either sum, nothing is claimed.
            if ahead.abs() > 1e-9 {
                let key = |entry| order.key(Time::from_ticks(now), entry, &no_jobs());
                prop_assert_eq!(ahead > 0.0, key(&one) < key(&other), "{:?}", criterion);
            }
        }
    }

    /// §8: after a delay of (r - `r_min`) / (weight * `r_min` * r), no later job gets ahead in the
    /// queue.
    #[test]
    fn a_weight_bounds_overtaking_by_shorter_jobs(
        weighted in 1e-6..1.0, waiting in job(), shorter in job(), beyond in 1e-3..1e3,
    ) {
        let r = |estimate: i64| (estimate as f64 / 1e6).max(1.0);
        let (shortest, long) = (r(shorter.1.min(waiting.1)), r(waiting.1));
        let delay = (long - shortest) / (weighted * shortest * long) + beyond;
        let order = Order::by(Criterion::Shortest).with_weight(weight(weighted));
        prop_assert!(stays_ahead(&order, waiting, shorter, delay));
    }

    /// §8: after a delay of the greatest random number / weight, no later job gets ahead in the
    /// queue.
    #[test]
    fn a_weight_bounds_overtaking_by_luck(
        seed: u64, weighted in 1e-6..1.0, waiting in job(), lucky in job(), beyond in 1e-3..1e3,
    ) {
        for criterion in [Criterion::Random, Criterion::RandomPerLength] {
            let order = Order::by(criterion).with_draws(Draw::Once, seed).with_weight(weight(weighted));
            prop_assert!(stays_ahead(&order, waiting, lucky, 1.0 / weighted + beyond), "{:?}", criterion);
        }
    }
}

/// Whether a job that waits stands before one that is submitted after that delay, in seconds.
fn stays_ahead(order: &Order, waiting: Small, late: Small, delay: f64) -> bool {
    let delay = i64::try_from(Duration::from_secs_f64(delay).as_micros()).unwrap();
    let late = (waiting.0 + delay, late.1, late.2);
    let now = Time::from_ticks(late.0);
    order.key(now, &entry(1, waiting), &no_jobs()) < order.key(now, &entry(2, late), &no_jobs())
}

#[test]
fn without_a_weight_the_bound_does_not_hold() {
    let shortest = Order::by(Criterion::Shortest);
    assert!(!stays_ahead(&shortest, (0, 2 * SECOND, 1), (0, SECOND, 1), 1e9));
}

#[test]
fn each_seed_is_a_permutation_of_its_own() {
    let entries: Vec<Entry> = (1..=50).map(|number| entry(number, (0, SECOND, 1))).collect();
    let by = |draw, seed, now| sorted(&Order::by(Criterion::Random).with_draws(draw, seed), now, &entries);
    let first = by(Draw::Once, 1, 0);
    let mut numbers = first.clone();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=50).collect::<Vec<_>>());
    assert_eq!(first, by(Draw::Once, 1, 7));
    assert_ne!(first, by(Draw::Once, 2, 0));
    assert_ne!(by(Draw::Pass, 1, 1), by(Draw::Pass, 1, 2));
}

#[test]
fn areas_are_compared_exactly() {
    // 6 * 5 and 10 * 3 are alike and go by number; in double precision 1 / area might not be.
    let entries = [(0, 6, 5), (0, 10, 3), (0, 29, 1)];
    let entries: Vec<Entry> = (1..).zip(entries).map(|(number, job)| entry(number, job)).collect();
    assert_eq!(sorted(&Order::by(Criterion::Smallest), 0, &entries), [3, 1, 2]);
    assert_eq!(sorted(&Order::by(Criterion::Largest), 0, &entries), [1, 2, 3]);
}
