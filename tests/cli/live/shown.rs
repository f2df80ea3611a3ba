use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::daemon::{Daemon, job, promise};
use crate::support::parsed;

#[test]
fn a_queue() {
    let running = json!({
        "array": 1, "index": 3, "phase": {"state": "running", "start": "2026-03-01T09:00:00Z", "end": "2026-03-01T10:30:00Z", "cpus": [0, 1, 3]},
    });
    let done = json!({
        "name": "a\u{1b}[2Jb", "phase": {
            "state": "done", "start": "2026-03-01T09:00:00Z", "end": "2026-03-01T09:10:00Z", "exit": {"signal": 11},
        },
    });
    let jobs = [
        job(1, &running),
        job(2, &json!({"promise": promise()})),
        job(3, &json!({"planned": "2026-03-01T11:00:00Z"})),
        job(4, &json!({"phase": {"state": "held"}})),
        job(5, &done),
    ];
    let daemon = Daemon::new(&[
        ("GET /v1/jobs?all=false", 200, json!(jobs)),
        ("GET /v1/jobs?all=true&array=7&limit=5&queue=a%26b", 200, json!([])),
    ]);
    let expect = "\
JOB   NAME    USER  QUEUE  CPUS  MEMORY   TIME  STATE              START                  END
1[3]  count   ada   batch     4  100MiB  1h30m  running            2026-03-01 09:00       by 2026-03-01 10:30
2     count   ada   batch     4  100MiB  1h30m  queued             by 2026-03-01 09:00    by 2026-03-01 10:30
3     count   ada   batch     4  100MiB  1h30m  queued             plan 2026-03-01 11:00  -
4     count   ada   batch     4  100MiB  1h30m  held               -                      -
5     a\u{fffd}[2Jb  ada   batch     4  100MiB  1h30m  failed, signal 11  2026-03-01 09:00       2026-03-01 09:10
";
    assert_eq!(daemon.stdout("queue"), expect);
    assert_eq!(daemon.stdout("queue --all --array 7 --limit 5 --queue a&b"), "no jobs\n");
    assert_eq!(parsed(&daemon.stdout("queue --json")), json!(jobs));
    let expect = "\
JOB   STATE    START
2     queued   by 2026-03-01 09:00:00
1[3]  running  2026-03-01 09:00:00
";
    let line = "queue --state waiting,running --until 2026-03-02 --sort=start,-job --columns job,state,start --exact";
    let shown = daemon.stdout(line);
    assert!(
        shown.starts_with(expect) && shown.ends_with("3     queued   plan 2026-03-01 11:00:00\n"),
        "{shown}"
    );
    assert_eq!(daemon.stdout("queue --name c*t --user ben"), "no jobs\n");
    daemon.fails("queue --sort size", 2, "there is no column size; the columns are job, name");
}

/// The jobs of an array that look alike are one row. Those that run have a row each.
#[test]
fn a_queue_of_arrays() {
    let of_array = |number: i64, index: i64, changes: serde_json::Value| {
        let mut job = job(number, &changes);
        (job["array"], job["index"]) = (json!(1), json!(index));
        job
    };
    let likely = |median: &str| json!({"forecast": {"median": median, "by_80": median, "by_95": median, "made": "2026-03-01T08:00:00Z"}});
    let running = json!({"phase": {
        "state": "running", "start": "2026-03-01T09:00:00Z", "end": "2026-03-01T10:30:00Z", "cpus": [0],
    }});
    let jobs = [
        of_array(1, 1, running.clone()),
        of_array(2, 2, running),
        of_array(3, 3, json!({"forecast": likely("2026-03-01T10:00:00Z")["forecast"], "promise": promise()})),
        of_array(4, 4, likely("2026-03-01T11:00:00Z")),
        of_array(5, 5, json!({"phase": {"state": "held"}})),
        of_array(6, 6, likely("2026-03-01T10:30:00Z")),
        job(7, &json!({})),
    ];
    let daemon = Daemon::new(&[("GET /v1/jobs?all=false", 200, json!(jobs))]);
    let expect = "\
JOB       STATE    START                LIKELY               END
1[1]      running  2026-03-01 09:00:00  -                    by 2026-03-01 10:30:00
1[2]      running  2026-03-01 09:00:00  -                    by 2026-03-01 10:30:00
1[3-4,6]  queued   by 2026-03-01 09:00:00  2026-03-01 11:00:00  -
1[5]      held     -                    -                    -
7         queued   -                    -                    -
1[3-4,6] queued, likely done by 2026-03-01 12:30:00
";
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let line = "queue --columns job,state,start,likely,end --exact";
    assert_eq!(words(&daemon.stdout(line)), words(expect));
    let each = daemon.stdout(&format!("{line} --each"));
    assert_eq!(each.lines().count(), 8, "{each}");
    assert_eq!(parsed(&daemon.stdout("queue --json")), json!(jobs), "JSON has each job");
}

#[test]
fn watching_shows_it_again_and_again() {
    let daemon = Daemon::new(&[("GET /v1/jobs?all=false", 200, json!([]))]);
    let mut child =
        daemon.command("queue --watch=1s").stdout(Stdio::piped()).spawn().expect("a program that starts");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    // Three texts, each with the time above it; then whoever looked has gone.
    let shown: Vec<String> = lines.take(9).collect();
    assert_eq!(shown.iter().filter(|line| *line == "no jobs").count(), 3, "{shown:?}");
    assert_eq!(child.wait().expect("an end").code(), Some(0));
}

#[test]
fn all_about_a_job() {
    let changes = json!({
        "array": 10, "index": 2, "promise": promise(), "begin": "2026-03-01T08:30:00Z", "after": [3, 4], "restartable": true,
        "error": "/home/ada/12.err", "attempts": 3, "runs": 2, "unenforced": ["memory"],
        "reasons": [
            {"why": "after", "jobs": [4]},
            {"why": "resources", "kind": "cpus", "requested": 4, "free": 2},
            {"why": "resources", "kind": "gpus", "requested": 1, "free": 0},
            {"why": "resources", "kind": "memory", "requested": 104_857_600, "free": 1024},
        ],
        "judged": [{"promised": "2026-03-01T07:00:00Z", "judgement": "late", "by": 90.0, "why": "away"}],
        "usage": {
            "total": {"user": 90.0, "system": 0.5, "memory_peak": 1_048_576, "stops": 1, "source": "processes"},
            "attempts": [
                {"attempt": 1, "usage": {"user": 60.0, "system": 0.25, "memory_peak": 1_048_576, "stops": 0, "source": "processes"}},
                {"attempt": 2, "usage": {
                    "user": 30.0, "system": 0.25, "memory_peak": 1024, "io_read": 4096, "io_written": 0, "stops": 1,
                    "source": "control_group",
                }},
            ],
        },
    });
    let daemon = Daemon::new(&[("GET /v1/jobs/12", 200, job(12, &changes))]);
    let expect = "\
job 12: count, index 2 of the array 10
  state      queued
  why        waits for the end of job 4
  why        waits for 2 processors; only 2 free
  why        waits for 1 GPU
  why        waits for 100MiB of memory; only 1KiB free
  promised   starts by 2026-03-01 10:00:00, resources reserved until 2026-03-01 11:30:00
  plan       starts by 2026-03-01 09:00:00, resources reserved until 2026-03-01 10:30:00
    plan     at 2026-03-01 08:00:00: starts by 2026-03-01 10:00:00 (submitted)
    plan     at 2026-03-01 08:30:00: starts by 2026-03-01 09:00:00 (another job freed resources)
  judged     a start by 2026-03-01 07:00:00: late by 1m30s: the daemon did not run or stalled, or the machine was suspended
  request    4 cpus, 100MiB, 1h30m, not before 2026-03-01 08:30:00, after 3-4, restartable
  runs       ./count input
  in         /home/ada
  output     /home/ada/12.out
  errors     /home/ada/12.err
  of         ada (1000), in batch, submitted 2026-03-01 08:00:00
  begun      2 times
  used       1m31s of cpu time (1m30s user, 0.5s system), at most 1MiB of memory in its largest process, stopped once
    attempt  1: 1m of cpu time (1m user, 0.25s system), at most 1MiB of memory in its largest process
    attempt  2: 30.3s of cpu time (30s user, 0.25s system), at most 1KiB of memory, 4KiB read, 0B written, stopped once
  unenforced memory
";
    assert_eq!(daemon.stdout("show 12 --long"), expect);
    let short = daemon.stdout("show 12");
    let promises = "  plan       starts by 2026-03-01 09:00, resources reserved until 2026-03-01 10:30\n    at first at 2026-03-01 08:00: \
                    starts by 2026-03-01 10:00 (submitted)\n";
    assert!(
        short.contains(promises) && !short.contains("unenforced") && !short.contains("1: 1m of cpu"),
        "{short}"
    );
    assert_eq!(parsed(&daemon.stdout("show 12 --json")), job(12, &changes));
    daemon.fails("show 13", 1, "nothing at GET /v1/jobs/13");
}

#[test]
fn a_job_that_is_parked_because_memory_is_short() {
    let phase = json!({"state": "opportunistic", "start": "2026-03-01T09:00:00Z", "parked": true});
    let short = json!({"phase": phase, "reasons": [{"why": "memory_short"}]});
    let shown = Daemon::new(&[("GET /v1/jobs/1", 200, job(1, &short))]).stdout("show 1 --long");
    let expect = "  state      parked: memory is short; ran opportunistically from 2026-03-01 09:00:00\n  why        stopped because \
                  the memory of the machine is short; its window is not affected\n";
    assert!(shown.contains(expect), "{shown}");
}

#[test]
fn a_job_that_was_written_out_and_one_that_was_not() {
    let (start, end) = ("2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z");
    let show = |changes: &serde_json::Value| {
        Daemon::new(&[("GET /v1/jobs/1", 200, job(1, changes))]).stdout("show 1 --long")
    };
    let phase = json!({"state": "suspended", "start": start, "end": end, "cpus": []});
    let shown = show(&json!({"phase": phase, "written_out": true}));
    let expect = "  memory     written out: it has no process and no memory, and continues by the restart of its queue\n";
    assert!(shown.contains(expect), "{shown}");
    let shown = show(&json!({"write_out_failed": "exit 5"}));
    assert!(shown.contains("  checkpoint failed: exit 5; the job began anew\n"), "{shown}");
}

#[test]
fn where_a_job_stands() {
    #[track_caller]
    fn check(phase: &serde_json::Value, expect: &str) {
        let daemon = Daemon::new(&[("GET /v1/jobs/1", 200, job(1, &json!({"phase": phase.clone()})))]);
        let shown = daemon.stdout("show 1 --long");
        let state = shown.lines().nth(1).and_then(|line| line.strip_prefix("  state      "));
        assert_eq!(state, Some(expect));
    }
    let (start, end) = ("2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z");
    check(&json!({"state": "held"}), "held; `miserly release` releases it");
    check(
        &json!({"state": "opportunistic", "start": start, "parked": false}),
        "running opportunistically on idle resources since 2026-03-01 09:00:00",
    );
    check(
        &json!({"state": "running", "start": start, "end": end, "cpus": [0, 1, 2, 5]}),
        "running since 2026-03-01 09:00:00, on cpus 0-2,5; killed at 2026-03-01 10:00:00 at the latest",
    );
    check(
        &json!({"state": "done", "start": start, "end": end, "exit": {"code": 0}}),
        "exited with 0, ran from 2026-03-01 09:00:00 to 2026-03-01 10:00:00",
    );
    check(
        &json!({"state": "done", "start": start, "end": end, "exit": {"code": 0}, "cpu_ranges": [[0, 2], [5, 5]]}),
        "exited with 0, ran from 2026-03-01 09:00:00 to 2026-03-01 10:00:00, on cpus 0-2,5",
    );
    check(
        &json!({"state": "killed", "start": null, "end": end, "by": "user", "exit": null}),
        "cancelled at 2026-03-01 10:00:00, never ran",
    );
    check(
        &json!({"state": "failed", "at": end, "why": "directory", "message": "no /x"}),
        "failed to start at 2026-03-01 10:00:00: its working folder does not exist: no /x",
    );
    check(
        &json!({"state": "adopted", "end": end, "cpus": [0, 1]}),
        "adopted: it runs on cpus 0-1, until 2026-03-01 10:00:00, and the state does not have it",
    );
    check(
        &json!({"state": "unreadable", "problem": "its checksum differs", "cpus": []}),
        "unreadable (its checksum differs): it does not run until its record can be read",
    );
    check(
        &json!({"state": "lost", "at": end, "why": "shim"}),
        "lost, found at 2026-03-01 10:00:00: its shim was killed; its result is unknown",
    );
}

#[test]
fn pools_as_bars() {
    let slice = |minute: u32, cpus: u64, free: u64| {
        let from = format!("2026-03-01T09:{minute:02}:00Z");
        json!({"from": from, "cpus": cpus, "cpus_free": free, "memory_free": 1_u64 << 30})
    };
    let pools = json!({"pools": [
        {"queue": "batch", "cpus": 8, "slices": [slice(0, 8, 2), slice(30, 4, 4)]},
        {"queue": "night", "cpus": 2, "slices": [slice(0, 2, 2)], "usage": [
            {"user": "erika", "uid": 1000, "share": 0.75, "cpu_hours": 1200.5},
            {"user": "max", "uid": 1001, "share": 0.25, "cpu_hours": 400.25},
        ]},
    ]});
    let daemon = Daemon::new(&[("GET /v1/pools", 200, pools.clone())]);
    let expect = "\
batch: 8 cpus; # in a window, . free
  2026-03-01 09:00:00  ######..  2 of 8 free, 1GiB
  2026-03-01 09:30:00  ....      4 of 4 free, 1GiB

night: 2 cpus; # in a window, . free
  2026-03-01 09:00:00  ..  2 of 2 free, 1GiB
  USER   USAGE SHARE  CPU HOURS
  erika        0.750   1 200.50
  max          0.250     400.25
";
    assert_eq!(daemon.stdout("pools"), expect);
    assert_eq!(parsed(&daemon.stdout("pools --json")), pools);
}

#[test]
fn limits_with_what_counts() {
    let limit = |limit: &str, unit: &str, most: f64, used: f64| json!({"limit": limit, "together": false, "unit": unit, "most": most, "used": used});
    let mut hours = limit("course.cpu-hours", "cpu_hours", 5000.0, 1262.5);
    for (field, value) in [("together", json!(true)), ("unfinished", json!(48.0)), ("days", json!(30))] {
        hours[field] = value;
    }
    hours["less_at"] = json!("2026-03-02T08:00:00Z");
    let limits = [
        limit("user-limits.jobs", "jobs", 1000.0, 12.0),
        limit("user-limits.bytes", "bytes", 1_048_576.0, 2048.0),
        limit("students.cpus", "cpus", 4.0, 4.0),
        hours,
    ];
    let report = json!({"user": "erika", "uid": 1000, "limits": limits});
    let daemon = Daemon::new(&[("GET /v1/limits", 200, report.clone())]);
    let expect = "\
LIMIT              FOR                           MOST      COUNTS  NOTE
user-limits.jobs   erika                        1 000          12
user-limits.bytes  erika                         1MiB        2KiB
students.cpus      erika                            4           4
course.cpu-hours   all its users together  5 000.00 h  1 310.50 h  1 262.50 h in 30 days, 48.00 h of unfinished jobs; less from 2026-03-02 08:00:00
";
    assert_eq!(daemon.stdout("limits"), expect);
    assert_eq!(parsed(&daemon.stdout("limits --json")), report);
    let daemon = Daemon::new(&[("GET /v1/limits", 200, json!({"user": "root", "uid": 0, "limits": []}))]);
    assert_eq!(daemon.stdout("limits"), "no limits apply to the jobs of root\n");
}

#[test]
fn damage_and_adopted_jobs_are_in_the_status() {
    let status = json!({
        "version": "0.1.0", "pid": 17, "since": "2026-03-01T08:00:00Z", "now": "2026-03-01T09:00:00Z", "state": "/state",
        "draining": false, "cpus": 16, "promises": 0, "kept": 0, "late": 0, "lost": 0, "withdrawn": 0, "waiting_shims": 0, "open": 0, "at_risk": 0, "queues": [], "unenforced": [],
        "checking": true,
        "damage": [{"part": "job 3", "job": 3, "problem": "its checksum differs"}],
        "adopted": [
            {"job": 4, "attempt": 1, "cpus": [2, 3], "end": "2026-03-01T10:00:00Z", "problem": "the state does not have it"},
            {"job": 5, "attempt": 2, "cpus": [], "problem": "the state does not have it"},
        ],
    });
    let daemon = Daemon::new(&[("GET /v1/status", 200, status.clone())]);
    let expect = "\
adopted        job 4 runs until 2026-03-01 10:00:00, cpus 2-3: the state does not have it
adopted        job 5 runs without a known end, no cpus of its own: the state does not have it
damage         job 3: its checksum differs
checking       the history; damage that is found is listed here
";
    assert!(daemon.stdout("status").contains(expect), "{}", daemon.stdout("status"));
    assert_eq!(parsed(&daemon.stdout("status --json")), status);
}

#[test]
fn how_the_daemon_is() {
    let mut status = json!({
        "version": "0.1.0", "pid": 17, "since": "2026-03-01T08:00:00Z", "now": "2026-03-01T09:00:00Z", "state": "/state",
        "draining": true, "cpus": 16, "promises": 9, "kept": 5, "late": 1, "lost": 1, "withdrawn": 1, "waiting_shims": 0, "open": 1, "at_risk": 1,
        "missed": [
            {"job": 3, "at": "2026-03-01T08:00:00Z", "promised": "2026-03-01T07:59:58Z", "judgement": "late", "by": 2.0, "why": "away"}
        ],
        "queues": [{
            "name": "batch", "policy": "miser", "promises": "every job", "cpus": 8, "memory": 1_u64 << 34, "cpus_held": 4,
            "memory_held": 0, "running": 1, "waiting": 2,
        }],
        "unenforced": [{"what": "memory", "sentence": "Strangers may take it."}],
        "critical_priority": {"means": "nice", "sentence": "jobs in their windows are nice to themselves"},
        "pressure": {
            "machine": {
                "cpu": {"avg10": 12.25, "avg60": 1.0, "avg300": 0.0}, "memory": {"avg10": 3.0, "avg60": 0.0, "avg300": 0.0},
                "memory_full": {"avg10": 0.5, "avg60": 0.0, "avg300": 0.0},
            },
            "jobs": {"cpu": {"avg10": 1.0, "avg60": 1.0, "avg300": 0.0}},
        },
    });
    let daemon = Daemon::new(&[("GET /v1/status", 200, status.clone())]);
    let expect = "\
miserly 0.1.0, process 17, since 2026-03-01 08:00:00
state          /state
configuration  none: half the machine, one queue
cpus for jobs  16
promises       9 given: 5 kept, 1 late, 1 lost, 1 withdrawn, 1 open (1 at risk)
not kept       job 3 started 2s late, promised by 2026-03-01 07:59:58: the daemon did not run or stalled, or the machine was suspended
priority       jobs in their windows are nice to themselves
pressure       machine: cpu 12.2 %, memory 3.0 % (all processes 0.5 %); jobs: cpu 1.0 %
draining       no new jobs are accepted; undo with `miserly drain --undo`

QUEUE  POLICY  PROMISES   CPUS  HELD  MEMORY  HELD MEMORY  RUNNING  WAITING
batch  miser   every job     8     4   16GiB           0B        1        2

Not enforced on this machine:
  memory: Strangers may take it.
";
    assert_eq!(daemon.stdout("status"), expect);
    assert_eq!(parsed(&daemon.stdout("status --json")), status);
    // Who wants the past looks where this daemon keeps it.
    status["state"] = json!(daemon.lab.path("elsewhere"));
    let daemon = Daemon::new(&[("GET /v1/status", 200, status)]);
    for line in ["export", "replay"] {
        daemon.fails(line, 2, "/elsewhere");
        daemon.fails(&format!("{line} --state named"), 2, "named");
    }
    // A folder that is named needs no daemon, and a variable without a value names none.
    let _ = daemon.command("export").env("MISERLY_SOCKET", "").output();
    assert_eq!(daemon.requests().len(), 2);
    let says = "cannot get the state folder from the daemon of MISERLY_SOCKET; give --state";
    Daemon::new(&[]).fails("export", 1, says);
}
