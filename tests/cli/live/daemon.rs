//! A socket with prepared answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::support::{Lab, Run};

/// A received request: `POST /v1/jobs`, and its body.
pub(crate) type Request = (String, Value);

/// A folder with the socket of a daemon.
pub(crate) struct Daemon {
    pub(crate) lab: Lab,
    asked: Arc<Mutex<Vec<Request>>>,
}

impl Daemon {
    /// Answers requests such as `GET /v1/jobs/12` with a status and a document. Unknown requests get 404.
    pub(crate) fn new(answers: &[(&str, u16, Value)]) -> Daemon {
        let lab = Lab::new();
        let listener = UnixListener::bind(lab.path("socket")).expect("a socket");
        let answers: Vec<(String, u16, Value)> = answers
            .iter()
            .map(|(asked, status, answer)| ((*asked).to_owned(), *status, answer.clone()))
            .collect();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.expect("a connection");
                let (answers, heard) = (answers.clone(), Arc::clone(&heard));
                thread::spawn(move || answer(stream, &answers, &heard));
            }
        });
        Daemon { lab, asked }
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.asked.lock().expect("a lock").clone()
    }

    /// Returns the program, with this daemon and the time zone UTC.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = self.lab.command(line);
        command.env("MISERLY_SOCKET", self.lab.path("socket")).env("TZ", "UTC");
        command
    }

    pub(crate) fn run(&self, line: &str) -> Run {
        Run::from_output(&self.command(line).output().expect("a program that starts"))
    }

    /// Returns the standard output. The program must succeed with an empty standard error.
    #[track_caller]
    pub(crate) fn stdout(&self, line: &str) -> String {
        let run = self.run(line);
        assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "miserly {line}");
        run.stdout
    }

    /// Checks that the program fails with a code and a message.
    #[track_caller]
    pub(crate) fn fails(&self, line: &str, code: i32, says: &str) {
        let run = self.run(line);
        assert_eq!(run.code, Some(code), "miserly {line}: {}", run.stderr);
        assert!(run.stderr.contains(says), "miserly {line}: {}", run.stderr);
    }
}

fn answer(stream: UnixStream, answers: &[(String, u16, Value)], requests: &Mutex<Vec<Request>>) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or_default() <= 2 {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or_default()];
    reader.read_exact(&mut body).expect("a body");
    let asked = head[0].trim_end_matches(" HTTP/1.1").to_owned();
    requests.lock().expect("a lock").push((asked.clone(), serde_json::from_slice(&body).unwrap_or_default()));
    let found = answers.iter().find(|(known, ..)| *known == asked);
    let (status, answer) = found.map_or_else(
        || (404, json!({"code": "not_found", "message": format!("nothing at {asked}")})),
        |(_, status, answer)| (*status, answer.clone()),
    );
    let text = answer.to_string();
    let head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", text.len());
    // The client may have closed the connection.
    let _ = reader.get_mut().write_all([head, text].concat().as_bytes());
}

/// Returns a waiting job with these changes.
pub(crate) fn job(number: i64, changes: &Value) -> Value {
    let mut job = json!({
        "number": number, "name": "count", "uid": 1000, "user": "ada", "queue": "batch", "cpus": 4,
        "memory": 104_857_600, "time": 5400.0, "command": ["./count", "input"], "script": false,
        "directory": "/home/ada", "output": "/home/ada/12.out", "error": "/home/ada/12.out",
        "submitted": "2026-03-01T08:00:00Z", "restartable": false, "opportunistic": true,
        "phase": {"state": "queued"}, "attempts": 0, "runs": 0,
    });
    for (key, value) in changes.as_object().expect("changes") {
        job[key] = value.clone();
    }
    job
}

/// Returns a promise that became earlier once.
pub(crate) fn promise() -> Value {
    let window = |start: &str, end: &str| json!({"start": start, "end": end});
    json!({
        "promised": window("2026-03-01T10:00:00Z", "2026-03-01T11:30:00Z"),
        "now": window("2026-03-01T09:00:00Z", "2026-03-01T10:30:00Z"),
        "history": [
            {"at": "2026-03-01T08:00:00Z", "start": "2026-03-01T10:00:00Z", "why": "submitted"},
            {"at": "2026-03-01T08:30:00Z", "start": "2026-03-01T09:00:00Z", "why": "earlier"},
        ],
    })
}
