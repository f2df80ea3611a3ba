//! The start of a daemon on one thread.

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use miserly_api::model::{Problem, Submission};
use miserly_core::{Calendar, Resources, Span};
use miserly_engine::{
    Action, Attempt, DaemonInfo, Engine, Launcher, MemoryJournal, Queue, QueueTerms, Setup, SlotSchedule,
    WaitingShimLimits,
};

use super::fake::{FakeAttempt, FakeHost, FakeSupervisor};
use crate::{StartError, StartOptions, UnknownAttempts, start};

impl Launcher for FakeSupervisor {
    fn check(&self, _: &Submission, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    fn act(&mut self, _: Attempt, _: Action) {}

    fn rotate_slots(&mut self, _: &str, _: Option<&SlotSchedule>) {}
}

fn setup() -> Setup {
    let queue = Queue {
        name: "batch".into(),
        policy: "miser".parse().unwrap(),
        pool: Calendar::constant(Resources::cpus(2)),
        classes: None,
        charge: None,
        gpus: None,
        terms: QueueTerms::default(),
    };
    Setup {
        queues: vec![queue],
        cpus: vec![0, 1],
        opportunistic_cpus: vec![],
        grace: Span::ZERO,
        cleanup_time: Span::ZERO,
        orphan_resume_delay: Span::ZERO,
        opportunistic: None,
        waiting_shims: WaitingShimLimits::NONE,
        keep_history: None,
        topology: <_>::default(),
        whole_cores: false,
        gpus: 0,
        user_limits: <_>::default(),
        reservations: vec![],
    }
}

#[test]
fn a_start_waits_for_room_and_adopts_what_runs() {
    let (host, journal, supervisor) = (FakeHost::new(), MemoryJournal::default(), FakeSupervisor::default());
    let (running, over) = (Attempt { job: 7, nth: 2 }, Attempt { job: 8, nth: 1 });
    *host.attempt(running) = FakeAttempt { lives: true, ..FakeAttempt::default() };
    *host.attempt(over) = FakeAttempt::default();
    journal.set_full(true);
    let options = StartOptions {
        setup: setup(),
        info: DaemonInfo::default(),
        unknown: UnknownAttempts::Adopt,
        observer: Box::new(|_| {}),
    };
    let (supervised, waits) = (supervisor.clone(), Cell::new(0));
    let wait = async |_: &_| {
        waits.update(|waits| waits + 1);
        journal.set_full(waits.get() < 2);
        Ok(())
    };
    let started = pin!(start(&host, journal.clone(), supervisor, options, wait));
    let started: Poll<Result<Engine<_, _>, StartError>> =
        started.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(started, Poll::Ready(Ok(_))));
    assert_eq!((waits.get(), supervised.0.take()), (2, vec![running]));
    // The number of a job that left a folder is not used again.
    let contents = journal.contents();
    assert_eq!(contents.values.get("next_number").map(String::as_str), Some("9"));
    assert!(!contents.lines.is_empty());
}
