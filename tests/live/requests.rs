//! Requests that make no sense: each gets one clear answer, and nothing changes. Those that are too large or never end are tests of
//! `crates/live/tests/api`.

use miserly_api::model::{Phase, Submission};

use crate::support::wire::{request, send};
use crate::support::{Daemon, miserly, sh};

/// The beginning of a submission that would be accepted.
const WHOLE: &str = r#"{"command": ["/bin/true"], "directory": "/", "time": 5, "cpus": 1}"#;

#[test]
fn what_makes_no_sense_is_told_so_and_changes_nothing() {
    let daemon = Daemon::of_policy("miser");
    let first = daemon.submit(&sh("true", 5.0));
    daemon.wait(first);
    let before = daemon.client().status().expect("a status");

    let check = |bytes: &[u8], status: u16, code: &str, says: &str| {
        let answer = send(&daemon, bytes);
        assert_eq!((answer.status, answer.body["code"].as_str()), (status, Some(code)), "{answer:?}");
        let message = answer.body["message"].as_str().expect("a message");
        assert!(message.contains(says), "{says} is not in: {message}");
    };
    let submit = |body: &str| request("POST", "/v1/jobs", body);
    let field = |name: &str, value: &str| {
        format!(r#"{{"command": ["/bin/true"], "directory": "/", "time": 5, "cpus": 1, "{name}": {value}}}"#)
    };
    check(&submit(""), 400, "malformed", "directory");
    check(&submit(&WHOLE[..WHOLE.len() - 1]), 400, "malformed", "EOF");
    check(&submit("{]"), 400, "malformed", "line 1 column 2");
    check(&submit("[]"), 400, "malformed", "Submission");
    check(&submit(&field("tpus", "1")), 400, "malformed", "tpus");
    check(&submit(&field("after", "3")), 400, "malformed", "after");
    check(&submit(&field("array", r#""1-4""#)), 400, "malformed", "array");
    check(&submit(&field("deadline", r#""late""#)), 400, "malformed", "deadline");
    check(&submit(&WHOLE.replace("\"time\": 5", "\"time\": \"5\"")), 400, "malformed", "time");
    check(&submit(&WHOLE.replace("\"time\": 5", "\"time\": -5")), 400, "malformed", "time");
    check(&submit(&WHOLE.replace("\"time\": 5", "\"time\": 1e300")), 400, "malformed", "time");
    check(&submit(&WHOLE.replace("\"cpus\": 1", "\"cpus\": 0")), 400, "malformed", "at least one cpu");
    check(&submit(&WHOLE.replace("\"cpus\": 1", "\"cpus\": 100000")), 422, "refused", "100000 cpus");
    check(&submit(&"[".repeat(1 << 20)), 400, "malformed", "sequence");
    check(&submit(&field("after", "[7000]")), 400, "malformed", "no job 7000");
    check(&submit(&field("queue", r#""other""#)), 404, "not_found", "batch");
    check(&request("DELETE", "/v1/jobs/1", ""), 405, "malformed", "DELETE");
    check(&request("PUT", "/v1/jobs", WHOLE), 405, "malformed", "PUT");
    check(&request("POST", "/v1/jobs/", WHOLE), 404, "not_found", "/v1/openapi.json");
    check(&request("GET", "/../../etc/passwd", ""), 404, "not_found", "/v1/openapi.json");
    check(&request("POST", "/v1/jobs/1/extend", r#"{"by": "long"}"#), 400, "malformed", "by");
    check(&request("POST", "/v1/jobs/-1/cancel", ""), 404, "not_found", "-1");
    check(&request("GET", "/v1/jobs?limit=most", ""), 400, "malformed", "limit");

    // It is the same daemon, has promised nothing and made no jobs, and goes on.
    let after = daemon.client().status().expect("a status");
    assert_eq!((after.pid, after.promises, after.draining), (before.pid, before.promises, before.draining));
    assert!(daemon.history().iter().map(|job| job.number).eq([first]), "{:?}", daemon.history());
    let next = daemon.submit(&sh("true", 5.0));
    assert!(matches!(daemon.wait(next).phase, Phase::Done { .. }));
    assert_eq!(next, first + 1);
}

#[test]
fn a_dry_run_prints_the_promises_that_move_and_changes_nothing() {
    let daemon = Daemon::of_policy("conservative");
    let cpus = daemon.client().status().expect("a status").cpus;
    let whole = |more: Submission| Submission { cpus, no_opportunistic: true, ..more };
    let holder = daemon.submit(&whole(sh("sleep 600", 900.0)));
    let second = daemon.submit(&whole(sh("true", 60.0)));
    let third = daemon.submit(&whole(sh("true", 60.0)));
    let held = daemon.submit(&whole(Submission { hold: true, ..sh("true", 60.0) }));
    let socket = daemon.socket.display().to_string();
    let told = |command: &str, job: i64| {
        let output = miserly(&[command, "--dry-run", "--socket", &socket, &job.to_string()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let moves_third = format!("other promises that move: 1\n  job {third}: from ");
    for command in ["cancel", "hold"] {
        let told = told(command, second);
        let (ends, moves) =
            if command == "cancel" { told.split_once('\n').expect("lines") } else { ("", &*told) };
        assert_eq!(ends.starts_with(&format!("would end job {second}, ")), command == "cancel", "{told}");
        assert!(ends.is_empty() || ends.ends_with(", before its start: queued"), "{told}");
        assert!(moves.starts_with(&format!("job {second}: no promise; before: starts by ")), "{told}");
        assert!(told.contains(&moves_third), "{told}");
    }
    let of_held = told("cancel", held);
    assert!(of_held.contains(", before its start: held\n"), "{of_held}");
    let ends = told("cancel", holder);
    assert!(
        ends.starts_with(&format!("would end job {holder}, ")) && ends.contains("which runs since "),
        "{ends}"
    );
    assert!(ends.contains(&format!("\njob {holder}: no promise; before: has started, ends by ")), "{ends}");
    let releases = told("release", held);
    assert!(releases.starts_with(&format!("job {held}: starts by ")), "{releases}");
    assert!(releases.ends_with("; before: no promise\nno other promise moves\n"), "{releases}");
    assert!(matches!(daemon.job(holder).phase, Phase::Running(_)));
    assert!([second, third].iter().all(|job| daemon.job(*job).phase == Phase::Queued));
    assert_eq!(daemon.job(held).phase, Phase::Held);
    daemon.client().cancel(holder, false).expect("it is cancelled");
}
