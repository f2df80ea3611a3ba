//! Jobs that ended long ago are forgotten, and nothing else is.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use miserly_api::model::{Array, Exit, Filter, Problem, ProblemCode, Submission};
use miserly_core::{Calendar, Kind, Resources, Span, Time};
use miserly_engine::{
    Absence, Action, Attempt, AttemptOutcome, DaemonInfo, DaemonReply, DaemonRequest, Engine, Input,
    Launcher, MemoryJournal, Now, Queue, QueueTerms, Setup, SlotSchedule,
};

use crate::support::request;

const DAY: i64 = 86_400_000_000;

/// Remembers for which attempts whatever was left can go.
#[derive(Clone, Default)]
struct Forgets(Arc<Mutex<Vec<Attempt>>>);

impl Launcher for Forgets {
    fn check(&self, _: &Submission, _: &str) -> Result<(), Problem> {
        Ok(())
    }

    fn act(&mut self, attempt: Attempt, action: Action) {
        if matches!(action, Action::Forget) {
            self.0.lock().unwrap().push(attempt);
        }
    }

    fn rotate_slots(&mut self, _: &str, _: Option<&SlotSchedule>) {}
}

fn at(ticks: i64) -> Now {
    let wall = Timestamp::from_microsecond(1_800_000_000_000_000 + ticks).unwrap();
    Now { ticks: Time::from_ticks(ticks), wall }
}

fn open(
    journal: &MemoryJournal,
    keep: Option<i64>,
    hands: Forgets,
    now: Now,
) -> Engine<Forgets, MemoryJournal> {
    let queue = Queue {
        name: "batch".into(),
        policy: "easy".parse().unwrap(),
        pool: Calendar::constant(Resources::cpus(4).with(Kind::Memory, 1 << 20)),
        classes: None,
        charge: None,
        gpus: None,
        terms: QueueTerms { default_memory: 1024, promise_slack: Span::ZERO, ..QueueTerms::default() },
    };
    let setup = Setup {
        queues: vec![queue],
        cpus: (0..4).collect(),
        opportunistic_cpus: (0..4).collect(),
        grace: Span::from_ticks(1_000_000),
        cleanup_time: Span::from_ticks(1_000_000),
        orphan_resume_delay: Span::from_ticks(1_000_000),
        opportunistic: None,
        waiting_shims: miserly_engine::WaitingShimLimits::NONE,
        keep_history: keep.map(Span::from_ticks),
        topology: miserly_engine::Topology::default(),
        whole_cores: false,
        gpus: 0,
        user_limits: miserly_engine::UserLimits::default(),
        reservations: vec![],
    };
    let mut engine = Engine::open(setup, DaemonInfo::default(), journal.clone(), hands, now).unwrap();
    engine.begin(now, &Absence::default()).unwrap();
    engine
}

fn ask(
    engine: &mut Engine<Forgets, MemoryJournal>,
    now: Now,
    question: DaemonRequest,
) -> Result<DaemonReply, Problem> {
    let (input, reply) = request(question);
    engine.process_batch(now, vec![input]).unwrap();
    reply.try_recv().unwrap()
}

fn submission() -> Submission {
    Submission {
        command: vec!["true".into()],
        directory: "/".into(),
        cpus: 1,
        time: 60.0,
        ..Submission::default()
    }
}

/// A job that is submitted, and ends a second later.
fn run(engine: &mut Engine<Forgets, MemoryJournal>, when: i64, number: i64) {
    ask(engine, at(when), DaemonRequest::Submit(submission())).unwrap();
    let (attempt, end) = (Attempt { job: number, nth: 1 }, when + 1_000_000);
    let outcome = AttemptOutcome::Ended { at: Time::from_ticks(end), exit: Exit::Code(0), by: None };
    engine.process_batch(at(end), vec![Input::AttemptEnded(attempt, outcome)]).unwrap();
}

/// The numbers of all jobs that are remembered.
fn remembered(engine: &mut Engine<Forgets, MemoryJournal>, now: Now) -> Vec<i64> {
    let all = Filter { all: true, ..Filter::default() };
    match ask(engine, now, DaemonRequest::Jobs(all)) {
        Ok(DaemonReply::Jobs(jobs)) => jobs.iter().map(|job| job.number).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn old_jobs_and_segments_go_once_a_day() {
    let journal = MemoryJournal::default();
    let hands = Forgets::default();
    let mut engine = open(&journal, Some(2 * DAY), hands.clone(), at(0));
    run(&mut engine, DAY / 4, 1);
    assert_eq!(engine.next_wakeup(), Some(Time::from_ticks(DAY + DAY / 4)));
    run(&mut engine, 2 * DAY, 2);
    let held = Submission { hold: true, ..submission() };
    ask(&mut engine, at(2 * DAY + 9_000_000), DaemonRequest::Submit(held)).unwrap();
    let due = 3 * DAY;
    assert_eq!(remembered(&mut engine, at(due - 1)), [1, 2, 3]);
    hands.0.lock().unwrap().clear();
    let before = journal.contents().lines;
    assert!(before[0].contains("\"began\"") && before.len() > 4, "{before:?}");
    // Nothing but the moment that it asked for wakes it.
    assert_eq!(engine.next_wakeup(), Some(Time::from_ticks(due)));
    engine.process_batch(at(due), vec![]).unwrap();
    assert_eq!(remembered(&mut engine, at(due)), [2, 3]);
    assert_eq!(*hands.0.lock().unwrap(), [Attempt { job: 1, nth: 1 }]);
    let gone = ask(&mut engine, at(due), DaemonRequest::Job(1)).unwrap_err();
    assert_eq!(gone.code, ProblemCode::NotFound);
    // The lines until the checkpoint at which the first daemon began.
    assert_eq!(journal.contents().lines[..before.len() - 2], before[2..]);
    assert!(before[2].contains("\"checkpoint\""), "{before:?}");
    // Numbers are not given again, and the state is whole.
    drop(engine);
    let mut engine = open(&journal, None, hands, at(due + DAY));
    ask(&mut engine, at(due + DAY), DaemonRequest::Submit(submission())).unwrap();
    assert_eq!(remembered(&mut engine, at(due + DAY)).last(), Some(&4));
}

#[test]
fn many_old_jobs_take_several_turns_and_none_is_left() {
    let journal = MemoryJournal::default();
    let mut engine = open(&journal, Some(DAY), Forgets::default(), at(0));
    let array = Submission { array: Some(Array::range(1, 1200, 1)), hold: true, ..submission() };
    ask(&mut engine, at(1), DaemonRequest::Submit(array)).unwrap();
    ask(&mut engine, at(2_000_000), DaemonRequest::Cancel { job: 1, array: true }).unwrap();
    drop(engine);
    // A daemon that starts later begins with it.
    let now = at(3 * DAY);
    let mut engine = open(&journal, Some(DAY), Forgets::default(), now);
    let mut turns = 0;
    while engine.next_wakeup().is_some_and(|due| due <= now.ticks) {
        engine.process_batch(now, vec![]).unwrap();
        turns += 1;
    }
    assert_eq!((turns, engine.next_wakeup()), (3, Some(Time::from_ticks(4 * DAY))));
    assert_eq!(remembered(&mut engine, now).len(), 1000, "no daemon ran meanwhile");
    let now = at(4 * DAY);
    while engine.next_wakeup().is_some_and(|due| due <= now.ticks) {
        engine.process_batch(now, vec![]).unwrap();
        turns += 1;
    }
    assert_eq!(turns, 6);
    assert_eq!(remembered(&mut engine, now), [0; 0]);
}

/// The wall clock is ten years ahead, and the ticks with it if the machine was booted meanwhile.
#[test]
fn a_wrong_clock_removes_no_more_than_two_days_for_each_day_lived() {
    const TEN_YEARS: i64 = 3650 * DAY;
    let journal = MemoryJournal::default();
    let mut engine = open(&journal, Some(300 * DAY), Forgets::default(), at(0));
    for (day, number) in [(1, 1), (2, 2), (40, 3)] {
        run(&mut engine, day * DAY, number);
    }
    for _ in 0..5 {
        drop(engine);
        engine = open(&journal, Some(300 * DAY), Forgets::default(), at(TEN_YEARS));
        engine.process_batch(at(TEN_YEARS + 1_000_000), vec![]).unwrap();
        assert_eq!(remembered(&mut engine, at(TEN_YEARS + 2_000_000)), [1, 2, 3]);
    }
    // The limit was 260 days before the first day, and advances by two days a day.
    let remembered_after = |engine: &mut _, days: std::ops::RangeInclusive<i64>| {
        let last = TEN_YEARS + days.end() * DAY + 4_000_000;
        for day in days {
            Engine::process_batch(engine, at(TEN_YEARS + day * DAY + 3_000_000), vec![]).unwrap();
        }
        remembered(engine, at(last))
    };
    assert_eq!(remembered_after(&mut engine, 1..=129), [1, 2, 3]);
    assert_eq!(remembered_after(&mut engine, 130..=140), [3]);
}

/// The machine has no battery for its clock, so that it was 1970 for a while.
#[test]
fn jobs_that_ended_under_a_clock_that_was_back_are_as_old_as_they_are() {
    let back = |ticks: i64| Now { wall: Timestamp::from_microsecond(ticks).unwrap(), ..at(ticks) };
    let journal = MemoryJournal::default();
    let mut engine = open(&journal, Some(300 * DAY), Forgets::default(), at(0));
    run(&mut engine, DAY, 1);
    ask(&mut engine, back(2 * DAY), DaemonRequest::Submit(submission())).unwrap();
    let outcome = AttemptOutcome::Ended { at: Time::from_ticks(2 * DAY), exit: Exit::Code(0), by: None };
    let end = Input::AttemptEnded(Attempt { job: 2, nth: 1 }, outcome);
    engine.process_batch(back(2 * DAY + 1), vec![end]).unwrap();
    let held = Submission { hold: true, ..submission() };
    ask(&mut engine, back(2 * DAY + 2), DaemonRequest::Submit(held)).unwrap();
    ask(&mut engine, back(2 * DAY + 3), DaemonRequest::Cancel { job: 3, array: false }).unwrap();
    drop(engine);
    let mut engine = open(&journal, Some(300 * DAY), Forgets::default(), at(3 * DAY));
    engine.process_batch(at(3 * DAY), vec![]).unwrap();
    assert_eq!(remembered(&mut engine, at(3 * DAY)), [1, 2, 3]);
}

#[test]
fn the_limit_of_a_state_without_one_begins_at_its_first_end() {
    let journal = MemoryJournal::default();
    let mut engine = open(&journal, None, Forgets::default(), at(0));
    run(&mut engine, DAY, 1);
    run(&mut engine, 2 * DAY, 2);
    drop(engine);
    let late = 1000 * DAY;
    let mut engine = open(&journal, Some(DAY), Forgets::default(), at(late));
    engine.process_batch(at(late), vec![]).unwrap();
    assert_eq!(remembered(&mut engine, at(late)), [1, 2]);
    engine.process_batch(at(late + DAY), vec![]).unwrap();
    assert_eq!(remembered(&mut engine, at(late + DAY)), [0; 0], "two days after the first end");
}

#[test]
fn for_ever_is_for_ever() {
    let journal = MemoryJournal::default();
    let mut engine = open(&journal, None, Forgets::default(), at(0));
    run(&mut engine, 1_000_000, 1);
    assert_eq!(engine.next_wakeup(), None);
    engine.process_batch(at(4000 * DAY), vec![]).unwrap();
    assert_eq!(remembered(&mut engine, at(4000 * DAY)), [1]);
}

/// Years of constant load leave a journal of constant length.
#[test]
fn the_journal_of_a_constant_load_has_a_bounded_length() {
    const JOBS: i64 = 20;
    let journal = MemoryJournal::default();
    let mut engine = open(&journal, Some(30 * DAY), Forgets::default(), at(0));
    let (mut number, mut most) = (0, [0, 0]);
    for day in 0..4 * 365 {
        for nth in 0..JOBS {
            number += 1;
            run(&mut engine, day * DAY + (nth + 1) * DAY / (JOBS + 1), number);
        }
        let year = usize::from(day >= 365);
        most[year] = most[year].max(journal.contents().lines.len());
    }
    assert!(most[1] <= most[0], "{most:?}");
    // A start and an end for each job of the days that are kept, a checkpoint a day, and the present day.
    let days = 33;
    assert!(most[0] < usize::try_from(days * (2 * JOBS + 1)).unwrap(), "{most:?}");
}
