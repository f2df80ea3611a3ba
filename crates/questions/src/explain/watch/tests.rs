//! Histories of jobs that stop and resume, which few policies produce. The effects are given
//! directly.

use std::collections::BTreeMap;

use miserly_core::{JobId, Refusal, Resources, SlotId, Span, StartReason};
use serde_json::{Value, json};

use miserly_report::TableStyle;

use super::*;
use crate::explain::clock::Clock;
use crate::explain::document::Document;

const JOB: JobId = JobId(0);

fn at(secs: i64) -> Time {
    Time::from_secs(secs).unwrap()
}

fn request(number: JobNumber, submit: i64) -> Request {
    Request::new(number, at(submit), Span::from_secs(100).unwrap(), Resources::cpus(4))
}

fn started(reason: StartReason) -> Effect {
    Effect::Started { job: JOB, reason, planned: Span::TICK }
}

/// Returns the observer of job 1, which is submitted at 10 s to an idle machine and has these
/// effects.
fn watched(effects: &[(i64, Effect)]) -> Watch {
    let mut watch = Watch::new(1, 0, Procs::new(8));
    watch.submitted(at(10), &request(1, 10));
    for (secs, effect) in effects {
        watch.effect(at(*secs), 1, effect);
    }
    watch
}

/// Returns the lines of the text between its heading and the jobs that started earlier.
fn lines(watch: &Watch) -> Vec<String> {
    let style = TableStyle { width: Some(200), ..TableStyle::default() };
    let text = watch.story.as_ref().unwrap().text("immediate", None, &Clock::default(), style);
    let lines = text.lines().skip(2).take_while(|line| !line.is_empty());
    lines.map(|line| line.trim().to_owned()).collect()
}

fn document(watch: &Watch) -> Value {
    let (story, extras) = (watch.story.as_ref().unwrap(), BTreeMap::new());
    serde_json::to_value(Document::new(story, "immediate".into(), extras)).unwrap()
}

#[test]
fn a_quantum_a_return_to_the_queue_and_a_suspension() {
    let watch = watched(&[
        (10, started(StartReason::Quantum)),
        (70, Effect::Requeued { job: JOB, lost: 240_000_000 }),
        (70, Effect::Promised { job: JOB, latest: at(150) }),
        (130, started(StartReason::Reserved)),
        (800, Effect::Suspended { job: JOB }),
        (830, Effect::SwappedOut { job: JOB }),
        (860, Effect::Resumed { job: JOB }),
        (870, Effect::Resized { job: JOB, procs: 1.into() }),
        (880, Effect::Resized { job: JOB, procs: 4.into() }),
        (890, Effect::Requeued { job: JOB, lost: 0 }),
    ]);
    let expect = [
        "10  submitted; 8 processors were free, no job waiting",
        "10  started for a quantum, after 0s of waiting",
        "70  requeued; 240.00 processor-seconds of work are lost",
        "70  promised a start at 150 at the latest, in 1m20s",
        "130  started again in queue order (reserved)",
        "800  suspended",
        "830  swapped out: holds no resources",
        "860  resumed",
        "870  continues on 1 processor",
        "880  continues on 4 processors",
        "890  requeued; no work is lost",
    ];
    assert_eq!(lines(&watch), expect);
    let document = document(&watch);
    assert_eq!((&document["start"], &document["start_reason"]), (&json!(10.0), &json!("quantum")));
    let changes = json!([
        { "at": 70.0, "kind": "requeued", "lost_work": 240.0 },
        { "at": 130.0, "kind": "started", "start_reason": "reserved" },
        { "at": 800.0, "kind": "suspended" },
        { "at": 830.0, "kind": "swapped_out" },
        { "at": 860.0, "kind": "resumed" },
        { "at": 870.0, "kind": "resized", "procs": 1 },
        { "at": 880.0, "kind": "resized", "procs": 4 },
        { "at": 890.0, "kind": "requeued", "lost_work": 0.0 },
    ]);
    assert_eq!(document["changes"], changes);
    assert_eq!(document["reservations"], json!([{ "at": 70.0, "start": 150.0, "kind": "promised" }]));
}

#[test]
fn many_changes_of_processors_are_one_line() {
    let resized =
        |n: u32| (20 + i64::from(n), Effect::Resized { job: JOB, procs: u64::from(n % 2 + 2).into() });
    let effects: Vec<_> =
        [(10, started(StartReason::Immediate))].into_iter().chain((0..25).map(resized)).collect();
    let lines = lines(&watched(&effects));
    assert_eq!(lines.len(), 2 + 10 + 1);
    assert_eq!(lines[11], "29  continues on 3 processors");
    assert_eq!(lines[12], "44  the last of 15 further changes of its processors (--json has all)");
}

#[test]
fn many_changes_of_slots_are_one_line_and_an_instant_counts_once() {
    let mut watch = watched(&[(10, started(StartReason::Immediate))]);
    let slots = |secs, slot, used| {
        let slots = SlotShare { slot: SlotId(slot), runs_in: 1, used };
        Event { at: at(secs), what: What::Slots(slots) }
    };
    let story = watch.story.as_mut().unwrap();
    story.note(slots(10, 0, 3));
    story.note(slots(10, 0, 1));
    for secs in 11..25 {
        story.note(Event { at: at(secs), what: What::Remapped });
        story.note(slots(secs, 1, 2));
    }
    let lines = lines(&watch);
    // Of an instant with two rounds, the last counts. Ten instants are printed, the first of them
    // alone, and four are left.
    assert_eq!(
        lines[2..5],
        [
            "10  in slot 0, the only one",
            "11  moved to another slot or other processors",
            "11  in slot 1: runs in 1 of 2 slots"
        ]
    );
    assert_eq!(lines[20], "19  in slot 1: runs in 1 of 2 slots");
    assert_eq!(
        lines[21..],
        ["24  the last of 5 further changes of its slots or processors (--json has all)"]
    );
    let slots = json!({ "at": 10.0, "kind": "slots", "slots": { "own": 0, "running_in": 1, "used": 1 } });
    assert_eq!(document(&watch)["changes"][0], slots);
}

#[test]
fn a_refusal_ends_the_story() {
    let watch = watched(&[(10, Effect::Refused { job: JOB, why: Refusal::BeyondClasses })]);
    assert!(watch.over());
    let refused = "10  refused: larger than the largest job class of the policy";
    assert_eq!(lines(&watch)[1..], [refused]);
    let document = document(&watch);
    assert_eq!(document["refused"], "beyond_classes");
    assert_eq!((&document["start"], &document["end"]), (&Value::Null, &json!(10.0)));
}

/// Only a job that starts while this one waits has passed it: before its quantum, or after it.
#[test]
fn a_job_is_passed_while_it_waits() {
    let mut watch = watched(&[]);
    let other = |watch: &mut Watch, number: JobNumber, secs: i64| {
        watch.submitted(at(secs), &request(number, secs));
        watch.effect(at(secs), number, &started(StartReason::Backfilled));
    };
    other(&mut watch, 2, 11);
    watch.effect(at(12), 1, &started(StartReason::Quantum));
    other(&mut watch, 3, 13);
    watch.submitted(at(14), &request(4, 14));
    watch.effect(at(72), 1, &Effect::Requeued { job: JOB, lost: 0 });
    watch.effect(at(73), 4, &started(StartReason::Backfilled));
    let passed = watch.story.unwrap().passed_by;
    assert_eq!(passed.iter().map(|passer| passer.request.number).collect::<Vec<_>>(), [2, 4]);
}
