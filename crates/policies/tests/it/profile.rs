//! The availability profile against one count per tick.

use miserly_core::{Span, Time};
use miserly_policies::shared::{Admits, Profile};
use proptest::prelude::*;

const PROCS: u32 = 20;
/// The length of the reference profile. Everything is free from here on.
const END: i64 = 600;

/// How many processors are free at each tick.
struct PerTick(Vec<i64>);

impl PerTick {
    fn at(&self, tick: i64) -> i64 {
        usize::try_from(tick).ok().and_then(|tick| self.0.get(tick)).copied().unwrap_or(i64::from(PROCS))
    }

    fn add(&mut self, from: i64, to: i64, delta: i64) {
        for tick in from..to {
            self.0[usize::try_from(tick).unwrap()] += delta;
        }
    }

    fn earliest(&self, not_before: i64, span: i64, procs: i64) -> i64 {
        (not_before..not_before + 2 * END)
            .find(|&start| (start..start + span).all(|tick| self.at(tick) >= procs))
            .unwrap()
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// Reserve at the earliest hole: (not before, span, processors).
    Reserve(i64, i64, u32),
    /// Give the n-th reservation back, if it still lies ahead.
    Lift(usize),
    /// Let time pass.
    Advance(i64),
    /// Search where former searches left off: (not before, until, limit, span, processors), all ahead of now.
    Again(i64, i64, i64, i64, u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0i64..80, 1i64..20, 1..=PROCS).prop_map(|(ahead, span, procs)| Step::Reserve(ahead, span, procs)),
        4 => any::<usize>().prop_map(Step::Lift),
        1 => (0i64..4).prop_map(Step::Advance),
        // Few widths and lengths: jobs that are alike.
        12 => (0i64..20, 1i64..80, 1i64..80, 0i64..4, 0..4u32).prop_map(|(ahead, until, limit, span, procs)| {
            Step::Again(ahead, until, limit, 5 * span + 1, 5 * procs + 1)
        }),
    ]
}

fn time(tick: i64) -> Time {
    Time::from_ticks(tick)
}

proptest! {
    #[test]
    fn as_one_count_per_tick(steps in prop::collection::vec(step(), 1..400)) {
        let mut profile = Profile::new(PROCS);
        let mut naive = PerTick(vec![i64::from(PROCS); usize::try_from(END).unwrap()]);
        let mut held: Vec<(i64, i64, u32)> = Vec::new();
        let mut now = 0;
        for step in steps {
            match step {
                Step::Reserve(ahead, span, procs) => {
                    let from = profile.earliest(time(now + ahead), Span::from_ticks(span), procs).ticks();
                    prop_assert_eq!(from, naive.earliest(now + ahead, span, i64::from(procs)));
                    if from + span < END {
                        profile.take(time(from), time(from + span), procs);
                        naive.add(from, from + span, -i64::from(procs));
                        held.push((from, from + span, procs));
                    }
                }
                Step::Lift(which) if !held.is_empty() => {
                    let (from, to, procs) = held.swap_remove(which % held.len());
                    let (from, to) = (from.max(now), to.max(now));
                    profile.give(time(from), time(to), procs);
                    naive.add(from, to, i64::from(procs));
                    let limited = profile.earliest_within(time(now), time(from), time(from), Span::from_ticks(to - from), procs);
                    if to > from {
                        let hole = naive.earliest(now, to - from, i64::from(procs));
                        prop_assert_eq!(limited.map(Time::ticks), Some(hole).filter(|&hole| hole < from));
                    }
                }
                Step::Lift(_) => {}
                Step::Again(ahead, until, limit, span, procs) => {
                    let from = now + ahead;
                    let [until, limit] = [until, limit].map(|by| from + by);
                    let found =
                        profile.earliest_again(time(from), time(until), time(limit), Span::from_ticks(span), procs);
                    let fits = |start: i64| {
                        (start..limit.min(start + span)).all(|tick| naive.at(tick) >= i64::from(procs))
                    };
                    prop_assert_eq!(found.map(Time::ticks), (from..until.min(limit)).find(|start| fits(*start)));
                }
                Step::Advance(by) => {
                    now += by;
                    profile.advance(time(now));
                }
            }
            let most = (now..now + 50).map(|tick| naive.at(tick)).max();
            prop_assert_eq!(Some(i64::from(profile.most_within(time(now), time(now + 50)))), most);
        }
        for tick in now..END {
            prop_assert_eq!(i64::from(profile.free_at(time(tick))), naive.at(tick), "at {}", tick);
        }
    }

    /// The search for a better place needs no lifting: a job's own reservation is never in its way.
    #[test]
    fn a_better_place_is_found_without_lifting(
        taken in prop::collection::vec((0i64..300, 1i64..40, 1u32..8), 1..60),
        span in 1i64..40,
        procs in 1..=PROCS,
    ) {
        let mut profile = Profile::new(PROCS);
        for (ahead, span, procs) in taken {
            let from = profile.earliest(time(ahead), Span::from_ticks(span), procs);
            profile.take(from, from + Span::from_ticks(span), procs);
        }
        let span = Span::from_ticks(span);
        let mut lifted = profile.clone();
        let late = profile.earliest(time(250), span, procs);
        profile.take(late, late + span, procs);
        let found = profile.earliest_within(time(0), late, late, span, procs);
        let truth = Some(lifted.earliest(time(0), span, procs)).filter(|&start| start < late);
        prop_assert_eq!(found, truth);
        lifted.take(late, late + span, procs);
        prop_assert!(lifted == profile);
    }

    /// A hole may be longer than a chunk of breakpoints, and may end at the limit of the search.
    #[test]
    fn holes_of_any_length_are_found(
        taken in prop::collection::vec((0i64..500, 1i64..30, 1u32..4), 1..400),
        searches in prop::collection::vec((0i64..300, 1i64..500, 1i64..500, 1i64..300, 1..=PROCS), 1..40),
    ) {
        let mut profile = Profile::new(PROCS);
        let mut naive = PerTick(vec![i64::from(PROCS); usize::try_from(END).unwrap()]);
        for (from, span, procs) in taken {
            profile.take(time(from), time(from + span), procs);
            naive.add(from, from + span, -i64::from(procs));
        }
        for (from, until, limit, span, procs) in searches {
            let found = profile.earliest_within(time(from), time(until), time(limit), Span::from_ticks(span), procs);
            let holds = |start: i64| {
                (start..limit.min(start + span)).all(|tick| naive.at(tick) >= i64::from(procs))
            };
            prop_assert_eq!(found.map(Time::ticks), (from..until.min(limit)).find(|start| holds(*start)));
        }
    }

    /// Jobs that fit under the staircase have their earliest hole now.
    #[test]
    fn the_outlook_tells_what_can_start(
        taken in prop::collection::vec((0i64..300, 1i64..40, 1u32..8), 1..200),
        now in 0i64..100,
        span in 1i64..400,
        procs in 1..=PROCS,
    ) {
        let mut profile = Profile::new(PROCS);
        for (ahead, span, procs) in taken {
            let from = profile.earliest(time(ahead), Span::from_ticks(span), procs);
            profile.take(from, from + Span::from_ticks(span), procs);
        }
        let span = Span::from_ticks(span);
        let fits = profile.earliest(time(now), span, procs) == time(now);
        prop_assert_eq!(profile.outlook(time(now)).admits(procs, span), fits);
    }
}

/// Two breakpoints at the end of time would leave counts there that are never given back.
#[test]
fn what_is_taken_for_ever_is_given_back_whole() {
    let mut profile = Profile::new(PROCS);
    profile.take(time(1), Time::MAX, 3);
    profile.take(time(2), Time::MAX, 4);
    profile.give(time(1), Time::MAX, 3);
    profile.give(time(2), Time::MAX, 4);
    assert_eq!(profile, Profile::new(PROCS));
    assert!(profile.outlook(time(3)).admits(PROCS, Span::MAX));
}
