use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use super::daemon::{Daemon, job};
use crate::support::Lab;

/// Returns the number of this user, who has written the files.
fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[test]
fn what_was_written() {
    let lab = Lab::new();
    lab.write("out", "one\ntwo\n");
    lab.write("err", "oh\n");
    let files = json!({"uid": own(), "output": lab.path("out"), "error": lab.path("err")});
    let none = json!({"output": lab.path("none"), "error": lab.path("none")});
    let daemon =
        Daemon::new(&[("GET /v1/jobs/1", 200, job(1, &files)), ("GET /v1/jobs/2", 200, job(2, &none))]);
    assert_eq!(daemon.stdout("logs 1"), "one\ntwo\n");
    assert_eq!(daemon.stdout("logs --error 1"), "oh\n");
    daemon.fails("logs 2", 1, "it has not started");
}

/// A daemon whose only job ends when it is told to.
fn running(lab: &Lab, job: &Value) -> mpsc::Sender<()> {
    let listener = UnixListener::bind(lab.path("socket")).expect("a socket");
    let (end, ended) = mpsc::channel::<()>();
    let answer = job.to_string();
    thread::spawn(move || {
        for number in 0..2 {
            let (stream, _) = listener.accept().expect("a connection");
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            while reader.read_line(&mut line).expect("a request") > 2 {
                line.clear();
            }
            if number == 1 {
                let _ = ended.recv();
            }
            let head =
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", answer.len());
            reader.get_mut().write_all([head.as_str(), &answer].concat().as_bytes()).expect("an answer");
        }
    });
    end
}

#[test]
fn following_shows_what_comes_and_ends_with_the_job() {
    let lab = Lab::new();
    let end = running(&lab, &job(1, &json!({"uid": own(), "output": lab.path("out")})));
    let mut command = lab.command("logs -f 1 --socket socket");
    let mut child = command.stdout(Stdio::piped()).spawn().expect("a program that starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut next = || lines.next().transpose().expect("text");

    // It is not there yet.
    lab.write("other", "noise");
    lab.write("out", "one\n");
    assert_eq!(next().as_deref(), Some("one"));
    let mut out = OpenOptions::new().append(true).open(lab.path("out")).expect("a file");
    out.write_all(b"two\n").expect("a disk");
    assert_eq!(next().as_deref(), Some("two"));
    // A job that runs again begins anew.
    fs::write(lab.path("out"), "").expect("a file");
    lab.write("out", "3\n");
    assert_eq!(next().as_deref(), Some("3"));
    let mut out = OpenOptions::new().append(true).open(lab.path("out")).expect("a file");
    out.write_all(b"last\n").expect("a disk");
    drop(end);
    assert_eq!((next().as_deref(), next()), (Some("last"), None));
    assert_eq!(child.wait().expect("an end").code(), Some(0));
}
