//! A state as a version of this engine stored it, with what it said of its jobs. Every later version must load it, and
//! say the same.

use std::fs;
use std::path::{Path, PathBuf};

use miserly_api::model::{Array, Condition, Filter, LostBy, Retry, Submission, When};
use miserly_core::Span;
use miserly_engine::{
    Absence, Account, Attempt, AttemptOutcome, Caller, Credential, DaemonReply, DaemonRequest, Input, Record,
    Usage, WaitingShimLimits,
};
use serde_json::{Value, json};

use super::life::{Life, early, job, seconds};
use super::support::{from_json, to_json};

/// The second at which the fixture was asked.
const ASKED: i64 = 40;

fn path(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/state-{format}.json"))
}

/// Returns a life with jobs in all states.
fn lived() -> Life {
    let mut life = super::gpus::classed("miser", super::gpus::two_types());
    life.info.runs_as_users = true;
    life.setup.waiting_shims = WaitingShimLimits { most: 256, per_cpu: 2 };
    life.begin(1, &Absence::default());
    super::gpus::submit_some(&mut life);
    let used = |user| Usage {
        user,
        system: 7,
        memory_peak: Some(5 << 20),
        io_read: Some(1 << 12),
        io_written: Some(1 << 13),
        stops: 1,
        of_processes: false,
    };
    let ended = life.submit(1, job(1, 20));
    let attempt = Attempt { job: ended, nth: 1 };
    let launched = seconds(1) + Span::from_ticks(3_000);
    life.turn(2, vec![Input::Launched(attempt, launched), Input::Used(attempt, used(3_000_000))]);
    life.end(3, ended);
    let lost = life.submit(4, Submission { restartable: true, ..job(1, 60) });
    let shim = AttemptOutcome::Lost(LostBy::Shim);
    let attempt = Attempt { job: lost, nth: 1 };
    life.turn(5, vec![Input::Used(attempt, used(1)), Input::AttemptEnded(attempt, shim)]);
    let running = life.submit(6, job(2, 50));
    life.submit(7, early(1, 30));
    life.submit(8, Submission { after: vec![running], name: Some("later".into()), ..job(3, 10) });
    life.submit(9, Submission { array: Some(Array::range(1, 3, 1)), ..job(1, 15) });
    let held = life.submit(10, job(1, 5));
    life.ask(11, DaemonRequest::Hold { job: held, move_promises: true }).unwrap();
    let cancelled = life.submit(12, early(1, 9));
    life.ask(13, DaemonRequest::Cancel { job: cancelled, array: false }).unwrap();
    let account = Account { name: "ada".into(), ..Account::default() };
    let caller = Caller {
        account: Some(account.into()),
        credential: Some(Credential::from("a seal".to_owned())),
        ..Caller::new(1000)
    };
    let submission = Submission { request_id: Some("once".into()), ..job(2, 25) };
    life.ask_as(caller, 14, DaemonRequest::Submit(submission)).unwrap();
    let array = Array { limit: Some(1), ..Array::range(1, 3, 2) };
    let conditions = [(When::Ok, running), (When::NotOk, held)].map(|(when, job)| Condition {
        when,
        job: Some(job),
        ..Condition::default()
    });
    let retry = Some(Retry { limit: 2, codes: vec![75] });
    life.submit(15, Submission { array: Some(array), conditions: conditions.into(), retry, ..job(1, 8) });
    life.turn(ASKED, vec![]);
    life
}

/// Returns what a life says of its jobs and its pool.
fn said(life: &mut Life) -> Value {
    let filter = Filter { all: true, details: true, ..Filter::default() };
    let DaemonReply::Jobs(jobs) = life.ask(ASKED, DaemonRequest::Jobs(filter)).unwrap() else {
        panic!("no list");
    };
    let DaemonReply::Pools(pools) = life.ask(ASKED, DaemonRequest::Pools).unwrap() else {
        panic!("no pools");
    };
    json!({ "jobs": jobs, "pools": pools })
}

/// Checks that `now` has all that `then` has. It may have more fields.
#[track_caller]
fn has(now: &Value, then: &Value, at: &str) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            for (field, then) in then {
                let now = now.get(field).unwrap_or(&Value::Null);
                if field == "promise" {
                    same_promise(now, then, at);
                    continue;
                }
                has(now, then, &format!("{at}.{field}"));
            }
        }
        (Value::Array(now), Value::Array(then)) => {
            assert_eq!(now.len(), then.len(), "{at}");
            for (index, (now, then)) in now.iter().zip(then).enumerate() {
                has(now, then, &format!("{at}[{index}]"));
            }
        }
        _ => assert_eq!(now, then, "{at}"),
    }
}

/// Checks that a job has the promise that an earlier version gave it. That version judged none, and kept that of a held job.
#[track_caller]
fn same_promise(now: &Value, then: &Value, at: &str) {
    assert_eq!(now["now"], then["now"], "{at}");
    if !now.is_null() {
        assert_eq!((&now["promised"], &now["history"]), (&then["promised"], &then["history"]), "{at}");
    }
}

/// Job 9 was held and job 10 cancelled, which that version did not count.
#[test]
fn the_counts_of_each_format_stay_as_they_were() {
    for format in [3, 4, 5] {
        let fixture: Value = serde_json::from_slice(&fs::read(path(format)).unwrap()).unwrap();
        let mut life = Life::of_journal(from_json(&fixture["state"]), 3, 4, ASKED);
        for second in [ASKED, ASKED + 1] {
            let status = life.status(second);
            let judged =
                [status.kept, status.late, status.lost, status.withdrawn, status.open, status.earlier];
            assert_eq!(
                (status.promises, judged, status.broken),
                (11, [2, 1, 0, 0, 6, 2], 1),
                "format {format}"
            );
            life.begin(second, &Absence::default());
        }
    }
}

#[test]
fn each_format_is_loaded_and_says_what_it_said() {
    for format in [3, 4, 5, 8, 9, 11] {
        let fixture: Value = serde_json::from_slice(&fs::read(path(format)).unwrap()).unwrap();
        let journal = from_json(&fixture["state"]);
        // From format 11 on, the jobs have GPUs of two types.
        let mut life = match format {
            11 => super::gpus::of_journal(journal, ASKED),
            _ => Life::of_journal(journal, 3, 4, ASKED),
        };
        has(&said(&mut life), &fixture["said"], &format!("format {format}"));
        // No field is lost that a record has.
        for row in fixture["state"]["rows"].as_array().unwrap() {
            let mut body: Value = serde_json::from_str(row["body"].as_str().unwrap()).unwrap();
            let record: Record = serde_json::from_value(body.clone()).unwrap();
            // The shims tell which windows they have.
            if let Some(run) = body.get_mut("run").and_then(Value::as_object_mut) {
                run.remove("sent_window");
            }
            has(&serde_json::to_value(record).unwrap(), &body, "record");
        }
    }
}

#[test]
#[ignore = "replaces the fixture of the present format: cargo test --test it write_the -- --ignored"]
fn write_the_fixture() {
    let mut life = lived();
    let said = said(&mut life);
    let fixture = json!({ "state": to_json(&life.journal), "said": said });
    fs::create_dir_all(path(11).parent().unwrap()).unwrap();
    fs::write(path(11), serde_json::to_string_pretty(&fixture).unwrap() + "\n").unwrap();
}
