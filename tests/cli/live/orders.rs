use serde_json::{Value, json};

use super::daemon::{Daemon, job};
use crate::support::Lab;

#[test]
fn each_command_asks_for_what_it_says() {
    #[track_caller]
    fn check(line: &str, asked: &str, body: &Value, answer: &Value, says: &str) {
        let daemon = Daemon::new(&[(asked, 200, answer.clone())]);
        assert_eq!(daemon.stdout(line), says, "{line}");
        assert_eq!(daemon.requests(), [(asked.to_owned(), body.clone())], "{line}");
    }
    let change = "POST /v1/jobs/change";
    let body = |change: &str, select: Value, moves: bool| json!({"change": change, "select": select, "move_promises": moves});
    let one = || json!({"jobs": ["12"]});
    let done = json!({"jobs": [12]});
    check("cancel 12", change, &body("cancel", one(), false), &done, "job 12: cancelled\n");
    let many = json!({"jobs": (12..=4012).chain([5000, 5002, 5003]).collect::<Vec<i64>>()});
    check(
        "cancel --array 12",
        change,
        &body("cancel", json!({"arrays": [12]}), false),
        &many,
        "jobs 12-4012, 5000, 5002-5003: cancelled\n",
    );
    let named = json!({"jobs": ["10-20", "1[60]", "2[3-5,8]", "3[1]", "25"]});
    check(
        "cancel 10-20 1_60,2[3-5,8] 3_[1] 25",
        change,
        &body("cancel", named, false),
        &done,
        "job 12: cancelled\n",
    );
    check("hold 12", change, &body("hold", one(), false), &done, "job 12: held\n");
    check("release 12", change, &body("release", one(), false), &done, "job 12: released\n");
    check("requeue 12 --move-promises", change, &body("requeue", one(), true), &done, "job 12: requeued\n");
    let longer = job(
        12,
        &json!({"phase": {
            "state": "running", "start": "2026-03-01T09:00:00Z", "end": "2026-03-01T11:00:00Z", "cpus": [0],
        }}),
    );
    let says =
        "job 12: running since 2026-03-01 09:00, on cpus 0; killed at 2026-03-01 11:00 at the latest\n";
    check("extend 12 30m", "POST /v1/jobs/12/extend", &json!({"by": 1800.0}), &longer, says);
    let none = json!({"jobs": []});
    let drained = "no new jobs are accepted; those that were keep their promises. `miserly drain --undo` accepts jobs again\n";
    check("drain", "POST /v1/drain", &json!({"on": true}), &none, drained);
    check("drain --undo", "POST /v1/drain", &json!({"on": false}), &none, "new jobs are accepted again\n");
}

/// The refusal of some does not stop the others.
#[test]
fn several_jobs() {
    let problem = |code: &str, message: &str| json!({"code": code, "message": message});
    let refused = json!([
        {"jobs": ["2"], "problem": problem("conflict", "job 2 has ended")},
        {"jobs": ["4-9", "12"], "problem": problem("forbidden", "job 4 is another user's")},
        {"jobs": ["40-50"], "problem": problem("not_found", "there is no unfinished job from 40 to 50")},
    ]);
    let skipped = json!([{"range": "10-20", "count": 9}, {"range": "1[3-8]", "count": 2}]);
    let answer = json!({"jobs": [1, 3], "refused": refused, "skipped": skipped});
    let daemon = Daemon::new(&[("POST /v1/jobs/change", 200, answer)]);
    let run = daemon.run("hold 1 2 3");
    let errors = "note: 10-20: skipped 9 numbers without an unfinished job
note: 1[3-8]: skipped 2 indexes without an unfinished job
error: job 2 has ended
error: jobs 4-9, 12: job 4 is another user's
error: there is no unfinished job from 40 to 50
";
    let expect = (Some(1), "jobs 1, 3: held\n", errors);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), expect);
    let run = daemon.run("hold --json 1 2 3");
    assert_eq!(serde_json::from_str::<Value>(&run.stdout).unwrap(), json!({"jobs": [1, 3]}));
    assert_eq!(run.stderr.lines().count(), 3, "{}", run.stderr);
}

/// Programs get JSON, a line for each failure: the daemon's words, and the program's own where it has none.
#[test]
fn failures_for_programs() {
    #[track_caller]
    fn check(daemon: &Daemon, line: &str, code: i32, expect: &Value) {
        let run = daemon.run(line);
        let told: Value = serde_json::from_str(&run.stderr).expect("one document");
        assert_eq!((run.code, &told), (Some(code), &json!({ "error": expect })), "{line}");
    }
    let conflict = json!({"code": "conflict", "message": "it has ended", "field": "by"});
    let daemon = Daemon::new(&[
        (
            "POST /v1/jobs/change",
            200,
            json!({"jobs": [1], "refused": [{"jobs": ["2"], "problem": conflict.clone()}]}),
        ),
        ("POST /v1/jobs/3/extend", 409, conflict.clone()),
        ("GET /v1/jobs/4/wait", 404, json!({"code": "not_found", "message": "there is no job 4"})),
    ]);
    let of_job = json!({"code": "conflict", "message": "it has ended", "field": "by", "job": 2});
    check(&daemon, "hold --json 1 2", 1, &of_job);
    check(&daemon, "extend --json 3 5m", 1, &conflict);
    check(
        &daemon,
        "wait --json 4",
        125,
        &json!({"code": "not_found", "message": "there is no job 4", "job": 4}),
    );
    daemon.lab.write("job.sh", "#!/bin/sh\n#MISERLY --nonsense\n");
    let message = "job.sh:2: no option --nonsense; `miserly submit --help` lists them";
    check(&daemon, "submit --json job.sh", 2, &json!({"code": "malformed", "message": message}));
    let message = "no daemon answers on nowhere: No such file or directory (os error 2); start one with `miserly daemon`, or say \
        where it is with --socket or MISERLY_SOCKET";
    check(&daemon, "status --json --socket nowhere", 1, &json!({"code": "no_answer", "message": message}));
}

#[test]
fn waiting_for_several_exits_as_the_first_that_failed() {
    let done = |number, code: i32| {
        let (start, end) = ("2026-03-01T09:00:00Z", "2026-03-01T09:01:00Z");
        job(number, &json!({"phase": {"state": "done", "start": start, "end": end, "exit": {"code": code}}}))
    };
    let daemon = Daemon::new(&[
        ("GET /v1/jobs/1/wait", 200, done(1, 0)),
        ("GET /v1/jobs/2/wait", 200, done(2, 7)),
        ("GET /v1/jobs/3/wait", 200, done(3, 9)),
    ]);
    let run = daemon.run("wait 1 2 3");
    let expect = "job 1: exited with 0, ran from 2026-03-01 09:00:00 to 2026-03-01 09:01:00\n";
    assert!(run.code == Some(7) && run.stdout.starts_with(expect), "{}", run.stdout);
    daemon.fails("wait 1 4", 125, "job 4: nothing at");
}

#[test]
fn refusals_have_their_codes() {
    let problem = |code: &str| json!({"code": code, "message": "for a reason"});
    let daemon = Daemon::new(&[
        ("GET /v1/jobs/1", 400, problem("malformed")),
        ("GET /v1/jobs/2", 422, problem("refused")),
        ("GET /v1/jobs/3", 500, json!("what?")),
        ("GET /v1/jobs/4", 200, json!({"number": "four"})),
    ]);
    daemon.fails("show 1", 2, "for a reason");
    daemon.fails("show 2", 1, "for a reason");
    daemon.fails("show 3", 1, "does not speak as this version");
    daemon.fails("show 4", 1, "does not speak as this version");
    daemon.fails("show 0", 2, "is no job; write the number of a job");
}

#[test]
fn without_a_daemon_every_command_says_so() {
    let lab = Lab::new();
    let lines = [
        "submit -t 1s true",
        "queue",
        "show 1",
        "logs 1",
        "logs -f 1",
        "cancel 1",
        "hold 1",
        "release 1",
        "requeue 1",
        "extend 1 1h",
        "pools",
        "status",
        "drain",
    ];
    for line in lines {
        let run = lab.run(
            &format!("{line} --socket nowhere").replace("true --socket nowhere", "--socket nowhere true"),
        );
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{line}: {}", run.stderr);
        assert!(run.stderr.starts_with("error: no daemon answers on nowhere: "), "{line}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{line}: {}", run.stderr);
    }
    assert_eq!(lab.run("wait 1 --socket nowhere").code, Some(125));
}

/// A page of the jobs with numbers above `after`.
fn page(after: i64, all: bool, numbers: &[i64]) -> (String, u16, Value) {
    let jobs: Vec<Value> = numbers.iter().map(|number| job(*number, &json!({}))).collect();
    (format!("GET /v1/jobs?all={all}&limit=10000&after={after}"), 200, json!(jobs))
}

#[test]
fn ranges_of_jobs() {
    let (unfinished, status, jobs) = page(9, false, &[10, 12, 31]);
    let daemon = Daemon::new(&[
        (&unfinished, status, jobs),
        ("GET /v1/jobs?all=false&limit=10000&after=39", 200, json!([])),
        ("POST /v1/jobs/10/pause", 200, json!({"jobs": [10]})),
        ("POST /v1/jobs/12/pause", 200, json!({"jobs": [12]})),
        ("POST /v1/jobs/25/pause", 200, json!({"jobs": [25]})),
    ]);
    let run = daemon.run("pause 10-20 25,12");
    let note = "note: 10-20: skipped 9 numbers without an unfinished job\n";
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (Some(0), "jobs 10, 12, 25: paused\n", note)
    );
    let run = daemon.run("pause 40-50");
    let error = "error: there is no unfinished job from 40 to 50\n";
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), error));
    for command in ["cancel", "hold", "release", "requeue", "show", "logs", "wait", "pause"] {
        for bad in ["20-10", "1_", "1[5-3]", "0_1"] {
            daemon.fails(&format!("{command} {bad}"), 2, "is no job; write the number of a job");
        }
    }
    daemon.fails("extend 20-10 5m", 2, "is no job; write the number of a job");
    daemon.fails("cancel 1-2000000", 2, "a range has at most 1000000 numbers");
    daemon.fails("extend 12", 2, "<TIME>");
}

/// The notation of a list is that of all commands.
#[test]
fn jobs_of_an_array_by_their_indexes() {
    let of_array = |number: i64, index: i64| job(number, &json!({"array": 86, "index": index}));
    let jobs = json!([of_array(86, 3), of_array(87, 4), of_array(88, 6)]);
    let moves = json!({"job": 87, "moved": [], "count": 0});
    let done = json!({"phase": {
        "state": "done", "start": "2026-03-01T09:00:00Z", "end": "2026-03-01T09:01:00Z", "exit": {"code": 0},
    }});
    let daemon = Daemon::new(&[
        ("GET /v1/jobs?all=true&array=86&limit=10000", 200, jobs.clone()),
        ("GET /v1/jobs?all=false&array=86&limit=10000", 200, jobs),
        ("GET /v1/jobs/87", 200, of_array(87, 4)),
        ("GET /v1/jobs/87/wait", 200, job(87, &done)),
        ("POST /v1/jobs/87/modify", 200, moves),
        ("POST /v1/jobs/87/pause", 200, json!({"jobs": [87]})),
        ("POST /v1/jobs/88/pause", 200, json!({"jobs": [88]})),
    ]);
    for named in ["86_4", "86[4]"] {
        assert!(daemon.stdout(&format!("show {named}")).starts_with("job 87: "), "{named}");
        assert!(daemon.stdout(&format!("wait {named}")).starts_with("job 87: "), "{named}");
        daemon.stdout(&format!("modify {named} --name other"));
        daemon.stdout(&format!("modify {named} --before 86[6]"));
    }
    assert!(daemon.requests().contains(&(
        "POST /v1/jobs/87/modify".to_owned(),
        json!({"changes": {"before": 88}, "move_promises": false}),
    )));
    let run = daemon.run("pause 86[4-7]");
    let note = "note: 86[4-7]: skipped 2 indexes without an unfinished job\n";
    let expect = (Some(0), "jobs 87-88: paused\n", note);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), expect);
    daemon.fails("forecast 86_4", 2, "job 87 has no forecast yet");
    daemon.fails("show 86_5", 1, "there is no job 86[5]");
    daemon.fails("attach 86[4-5]", 2, "name one job, such as 12 or 1_60");
}

#[test]
fn several_jobs_are_shown_and_extended() {
    let (unfinished, status, jobs) = page(4, false, &[5, 6]);
    let (all, _, ended) = page(4, true, &[5, 6]);
    let daemon = Daemon::new(&[
        (&unfinished, status, jobs),
        (&all, status, ended),
        ("GET /v1/jobs/5", 200, job(5, &json!({}))),
        ("GET /v1/jobs/6", 200, job(6, &json!({}))),
        ("POST /v1/jobs/5/extend", 200, job(5, &json!({}))),
        ("POST /v1/jobs/6/extend", 409, json!({"code": "conflict", "message": "no"})),
    ]);
    let text = daemon.stdout("show 5-6");
    assert!(text.contains("job 5: ") && text.contains("job 6: "), "{text}");
    let run = daemon.run("extend 5-6 5m");
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), "error: job 6: no\n"));
    assert!(run.stdout.starts_with("job 5: "), "{}", run.stdout);
}

/// Without `--user` it selects jobs of one's own, also for root. The daemon checks the conditions.
#[test]
fn cancel_selects_jobs_by_filters() {
    let daemon = Daemon::new(&[("POST /v1/jobs/change", 200, json!({"jobs": [12, 13, 14]}))]);
    let selected = |line: &str| {
        assert_eq!(daemon.stdout(line), "jobs 12-14: cancelled\n");
        let (_, body) = daemon.requests().pop().expect("a request");
        body["select"].clone()
    };
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(selected("cancel --name train?"), json!({"uid": uid, "name": "train?"}));
    let states = json!({"uid": uid, "queue": "q", "states": ["waiting", "held"]});
    assert_eq!(selected("cancel --queue q --state pending,held"), states);
    assert_eq!(selected("cancel --mine"), json!({"uid": uid}));
    assert_eq!(selected("cancel --user ben"), json!({"user": "ben"}));
    assert_eq!(daemon.requests().len(), 4, "one request each");
    daemon.fails("cancel", 2, "<JOB>");
    daemon.fails("cancel 12 --mine", 2, "cannot be used with");
}
