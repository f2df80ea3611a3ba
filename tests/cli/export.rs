//! From a daemon's state to a simulation of another policy.

use miserly_engine::{JobRow, JournalBatch};
use miserly_live::store::Store;
use serde_json::{Value, json};

use crate::support::Lab;

/// A job as the daemon writes it down; `over` is how it ended. The second one was suspended for four seconds.
fn row(number: i64, submitted: &str, cpus: u64, over: Option<&Value>) -> JobRow {
    let mut state = json!({ "is": if over.is_some() { "finished" } else { "queued" } });
    if let (Some(Value::Object(over)), Some(fields)) = (over.cloned(), state.as_object_mut()) {
        fields.extend(over);
    }
    let submitted = submitted.parse::<jiff::Timestamp>().expect("an instant").as_microsecond();
    let away = if number == 2 { 4_000_000 } else { 0 };
    let mut body = json!({
        "number": number, "uid": 1000, "name": "a\nb", "queue": "batch", "submitted": submitted, "time": 90_500_000,
        "memory": 3000, "state": state, "attempts": 1, "suspended_time": away, "submission": { "cpus": cpus, "command": ["a"], "directory": "/", "time": 90.5 },
    });
    if number == 1 {
        // The others have the form of an earlier version.
        let used = json!({ "user": 30_000_000, "system": 10_020_000, "memory_peak": 8_388_608, "io_read": 512, "of_processes": true });
        body["usage"] = json!({ "earlier": { "user": 0, "system": 0, "stops": 2 }, "latest": [[2, used]] });
    }
    let ended = over.is_some();
    JobRow {
        number,
        ended,
        uid: 1000,
        queue: "batch".into(),
        array: None,
        body: body.to_string(),
        problem: None,
    }
}

/// A state with jobs that ended each in its way, and one that runs.
fn lab() -> (Lab, Store) {
    let lab = Lab::new();
    let mut store = Store::open(&lab.path("state")).expect("a new state");
    let at = |second: u32| format!("2026-03-01T10:00:{second:02}.5Z");
    let done = |start, end, code: i32| json!({ "state": "done", "start": at(start), "end": at(end), "exit": { "code": code }, "cpu_ranges": if code == 0 { json!([[0, 2], [5, 5]]) } else { json!([]) } });
    let user = json!({ "state": "killed", "start": null, "end": at(30), "by": "user", "exit": null });
    let failed = json!({ "state": "failed", "at": at(40), "why": "program", "message": "none" });
    let rows = vec![
        row(1, &at(0), 4, Some(&done(0, 20, 0))),
        row(2, &at(1), 4, Some(&done(20, 50, 1))),
        row(3, &at(2), 2, Some(&user)),
        row(4, &at(3), 1, Some(&failed)),
        row(5, &at(4), 2, None),
    ];
    store.commit(&JournalBatch { rows, ..JournalBatch::default() }).expect("a commit");
    (lab, store)
}

#[test]
fn ones_own_past_can_be_simulated_beside_the_daemon() {
    let (lab, _store) = lab();
    lab.stdout("export --state state -o past.swf");
    let log = lab.read("past.swf");
    let jobs: Vec<&str> = log.lines().filter(|line| !line.starts_with(';')).collect();
    let expect = [
        "1 0 0 20 4 10.01 2048 4 91 750 1 1000 -1 1 1 -1 -1 -1",
        "2 1 19 26 4 -1 -1 4 91 750 0 1000 -1 1 1 -1 -1 -1",
        "3 2 28 0 -1 -1 -1 2 91 1500 5 1000 -1 1 1 -1 -1 -1",
        "4 3 37 0 -1 -1 -1 1 91 3000 0 1000 -1 1 1 -1 -1 -1",
    ];
    assert_eq!(jobs, expect);
    assert!(log.contains("; MaxProcs: 4 (") && log.contains("; Executable: 1 a\\nb\n"), "{log}");
    let run = lab.document("simulate past.swf --policy easy --json --procs-field requested");
    assert_eq!(run["jobs"]["read"], 4);
    assert!(run["jobs"]["simulated"].as_u64() >= Some(2), "{run}");
    assert!(lab.stdout("export --state state --procs 16").contains("; MaxProcs: 16\n"));
}

#[test]
fn as_a_table() {
    let (lab, store) = lab();
    drop(store);
    let table = lab.stdout("export --state state --format csv");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines[1], "1,,,\"a");
    assert_eq!(
        lines[2],
        "b\",1000,batch,4,3000,90.5,1772359200.5,1772359200.5,1772359220.5,0.0,20.0,0.0,1,done,0,30.0,10.02,8192,512,,2,processes,\"0-2,5\""
    );
    assert!(
        table.contains(",26.0,4.0,1,done,1,,,,,,,,\n"),
        "what a job ran, and for how long it was suspended:\n{table}"
    );
    assert_eq!(table.matches("killed: user,").count(), 1);
}

#[test]
fn without_a_state_or_a_history_it_says_so() {
    let lab = Lab::new();
    let run = lab.run("export --state nowhere");
    assert_eq!(run.code, Some(2));
    assert!(
        run.stderr.contains("cannot read the history of nowhere: nowhere/store: No such file"),
        "{}",
        run.stderr
    );
    Store::open(&lab.path("state")).expect("a new state");
    let run = lab.run("export --state state");
    assert!(run.stderr.contains("no job has ended in state"), "{}", run.stderr);
}
