//! Requests that make no sense, are too large or never end: each gets one clear answer, nothing changes, and others are served.

use std::io::Write;
use std::os::unix::net::UnixStream;

use miserly_api::model::{Phase, Status, Submission};

use crate::support::wire::{Answer, connect, request, send};
use crate::support::{Daemon, miserly, sh};

/// The beginning of a submission that would be accepted.
const WHOLE: &str = r#"{"command": ["/bin/true"], "directory": "/", "time": 5, "cpus": 1}"#;

/// A daemon that has had one job; the job's number, and how the daemon stands.
fn with_one_job_over() -> (Daemon, i64, Status) {
    let daemon = Daemon::of_policy("miser");
    let first = daemon.submit(&sh("true", 5.0));
    daemon.wait(first);
    let before = daemon.client().status().expect("a status");
    (daemon, first, before)
}

#[test]
fn what_makes_no_sense_is_told_so_and_changes_nothing() {
    let (daemon, first, before) = with_one_job_over();

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

    unchanged(&daemon, &before, first);
}

#[test]
fn what_is_too_large_is_told_so_and_changes_nothing() {
    let (daemon, first, before) = with_one_job_over();

    let large = format!(r#"{{"script": "{}", "directory": "/", "time": 5}}"#, "#".repeat(4 << 20));
    let answer = send(&daemon, &request("POST", "/v1/jobs", &large));
    assert_eq!((answer.status, answer.body["code"].as_str()), (413, Some("malformed")), "{answer:?}");
    // One that does not say how large it is.
    let chunked =
        b"POST /v1/jobs HTTP/1.1\r\nhost: x\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = [b"100000\r\n".as_slice(), &b" ".repeat(1 << 20), b"\r\n"].concat();
    let answer = send(&daemon, &[chunked.as_slice(), &chunk.repeat(5), b"0\r\n\r\n"].concat());
    assert_eq!((answer.status, answer.body["code"].as_str()), (413, Some("malformed")), "{answer:?}");
    // Headers have no JSON in their answer: what asks is not known yet.
    let long = format!("GET /v1/status HTTP/1.1\r\nhost: {}\r\n\r\n", "x".repeat(2 << 20));
    let mut stream = connect(&daemon);
    // A client that first sends all reads the answer, too.
    stream.write_all(long.as_bytes()).expect("the daemon takes all of it");
    assert_eq!(Answer::read(&mut stream).status, 431);
    let many = format!("GET /v1/status HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(10_000));
    assert_eq!(send(&daemon, many.as_bytes()).status, 431);

    unchanged(&daemon, &before, first);
}

#[test]
fn what_is_no_http_is_let_go() {
    let (daemon, first, before) = with_one_job_over();

    let tls = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03];
    for bytes in
        [&tls[..], b"\0\0\0\0\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n", b"GET / HTTP/9.9\r\n\r\n", b"{}\r\n\r\n"]
    {
        let answer = send(&daemon, bytes);
        assert!(answer.status == 0 || (400..500).contains(&answer.status), "{bytes:?}: {answer:?}");
    }
    // And one that says nothing and goes.
    drop(connect(&daemon));

    unchanged(&daemon, &before, first);
}

/// Clients that hang in the middle of a head, of a body, and that ask again and again and read nothing.
#[test]
fn clients_that_hang_keep_nobody_waiting_and_are_cut_off() {
    let daemon = Daemon::of_policy("miser");
    let first = daemon.submit(&sh("true", 5.0));
    let whole = request("POST", "/v1/jobs", WHOLE);
    let hang = |sent: usize| -> Vec<UnixStream> {
        let client = |_| {
            let mut stream = connect(&daemon);
            stream.write_all(&whole[..sent]).expect("a daemon that listens");
            stream
        };
        (0..40).map(client).collect()
    };
    let (in_head, in_body) = (hang(20), hang(whole.len() - 5));
    let deaf: Vec<UnixStream> = (0..10).map(|_| deaf(&daemon)).collect();

    daemon.wait(first);
    let before = daemon.client().status().expect("a status");
    let next = daemon.submit(&sh("true", 5.0));
    assert!(matches!(daemon.wait(next).phase, Phase::Done { .. }));
    assert_eq!(next, first + 1, "half a submission has no number");

    for mut stream in in_head {
        let answer = Answer::read(&mut stream);
        assert!([0, 408].contains(&answer.status), "{answer:?}");
    }
    for mut stream in in_body {
        let answer = Answer::read(&mut stream);
        assert_eq!((answer.status, answer.body["code"].as_str()), (408, Some("malformed")), "{answer:?}");
    }
    let after = daemon.client().status().expect("a status");
    assert_eq!((after.promises, after.pid), (before.promises + 1, before.pid));
    drop(deaf);
}

/// One that asks as often as it can, and does not read what it is answered.
fn deaf(daemon: &Daemon) -> UnixStream {
    let mut stream = connect(daemon);
    stream.set_nonblocking(true).expect("a socket");
    // Until nothing more fits, on the way there and back.
    while stream.write_all(b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n").is_ok() {}
    stream
}

/// It is the same daemon, it has promised nothing and made no jobs, and goes on.
#[track_caller]
fn unchanged(daemon: &Daemon, before: &Status, last: i64) {
    let after = daemon.client().status().expect("a status");
    assert_eq!((after.pid, after.promises, after.draining), (before.pid, before.promises, before.draining));
    assert!(daemon.history().iter().map(|job| job.number).eq(1..=last), "{:?}", daemon.history());
    let next = daemon.submit(&sh("true", 5.0));
    assert!(matches!(daemon.wait(next).phase, Phase::Done { .. }));
    assert_eq!(next, last + 1);
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
