//! An engine without hands, whose time comes with the calls.

use jiff::Timestamp;
use miserly_core::{Calendar, Kind, Resources, Span, Time};
use miserly_live::clock::Now;
use miserly_live::engine::{Action, Attempt, Hands, Queue, Setup, Turns};

/// In ticks.
pub(crate) const MINUTE: i64 = 60_000_000;

/// Nobody to do anything.
pub(crate) struct Idle;

impl Hands for Idle {
    fn act(&mut self, _: Attempt, _: Action) {}

    fn take_turns(&mut self, _: &str, _: Option<&Turns>) {}
}

/// One queue of `miser` with four processors.
pub(crate) fn setup() -> Setup {
    let queue = Queue {
        name: "batch".into(),
        policy: "miser".parse().expect("a policy"),
        pool: Calendar::constant(Resources::cpus(4).with(Kind::Memory, 1 << 20)),
        default_time: None,
        most_time: None,
        default_memory: 0,
        users: vec![],
    };
    Setup {
        queues: vec![queue],
        cpus: vec![0, 1, 2, 3],
        early_cpus: vec![0, 1, 2, 3],
        grace: Span::ZERO,
        handover: Span::ZERO,
        alone: Span::ZERO,
        early: None,
        keep_history: None,
    }
}

/// Minutes after the state was made, while the wall shows that.
pub(crate) fn at(minutes: i64, wall: Timestamp) -> Now {
    Now { ticks: Time::from_ticks(minutes * MINUTE), wall }
}
