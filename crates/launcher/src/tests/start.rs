//! The start of a daemon on one thread.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use jiff::Timestamp;
use miserly_api::model::{Problem, Submission};
use miserly_core::{Calendar, Resources, Span};
use miserly_engine::{
    Action, Attempt, DaemonInfo, EndedFilter, Engine, JobRow, Journal, JournalBatch, JournalError, Launcher,
    Queue, QueueTerms, Setup, SlotSchedule,
};

use super::fake::{FakeAttempt, FakeHost, FakeSupervisor};
use crate::{StartError, StartOptions, UnknownAttempts, start};

/// A journal whose disk is full for some commits.
#[derive(Clone, Default)]
struct FakeJournal(Rc<RefCell<Contents>>);

#[derive(Default)]
struct Contents {
    values: BTreeMap<String, String>,
    lines: usize,
    full: usize,
}

impl Journal for FakeJournal {
    fn live_jobs(&self) -> Result<Vec<JobRow>, JournalError> {
        Ok(vec![])
    }

    fn job(&self, _: i64) -> Result<Option<JobRow>, JournalError> {
        Ok(None)
    }

    fn ended_jobs(&self, _: &EndedFilter) -> Result<Vec<JobRow>, JournalError> {
        Ok(vec![])
    }

    fn ended_from(&self, _: i64, _: u32) -> Result<Vec<JobRow>, JournalError> {
        Ok(vec![])
    }

    fn highest_job(&self) -> Result<i64, JournalError> {
        Ok(0)
    }

    fn last_commit(&self) -> i64 {
        0
    }

    fn value(&self, key: &str) -> Result<Option<String>, JournalError> {
        Ok(self.0.borrow().values.get(key).cloned())
    }

    fn visit_lines(&self, _: &mut dyn FnMut(&str) -> ControlFlow<()>) -> Result<(), JournalError> {
        Ok(())
    }

    fn commit(&mut self, batch: JournalBatch) -> Result<(), JournalError> {
        let mut contents = self.0.borrow_mut();
        if !batch.lines.is_empty() && contents.full > 0 {
            contents.full -= 1;
            return Err(JournalError::Full("no space".into()));
        }
        contents.lines += batch.lines.len();
        contents.values.extend(batch.values);
        Ok(())
    }

    fn forget(&mut self, _: &[i64]) -> Result<(), JournalError> {
        Ok(())
    }

    fn forget_segment(&mut self, _: Timestamp) -> Result<bool, JournalError> {
        Ok(false)
    }
}

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
    let (host, journal, supervisor) = (FakeHost::new(), FakeJournal::default(), FakeSupervisor::default());
    let (running, over) = (Attempt { job: 7, nth: 2 }, Attempt { job: 8, nth: 1 });
    *host.attempt(running) = FakeAttempt { lives: true, ..FakeAttempt::default() };
    *host.attempt(over) = FakeAttempt::default();
    journal.0.borrow_mut().full = 2;
    let options = StartOptions {
        setup: setup(),
        info: DaemonInfo::default(),
        unknown: UnknownAttempts::Adopt,
        observer: Box::new(|_| {}),
    };
    let (supervised, waits) = (supervisor.clone(), Cell::new(0));
    let wait = async |_: &_| {
        waits.update(|waits| waits + 1);
        Ok(())
    };
    let started = pin!(start(&host, journal.clone(), supervisor, options, wait));
    let started: Poll<Result<Engine<_, _>, StartError>> =
        started.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(started, Poll::Ready(Ok(_))));
    assert_eq!((waits.get(), supervised.0.take()), (2, vec![running]));
    // The number of a job that left a folder is not used again.
    let contents = journal.0.borrow();
    assert_eq!(contents.values.get("next_number").map(String::as_str), Some("9"));
    assert!(contents.lines > 0);
}
