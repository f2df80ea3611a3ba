//! Many clients, and clients that hang.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use miserly_api::model::Submission;
use miserly_live::server::Limits;

use crate::server::{Answer, SOON, Server, request};

const PATIENCE: Duration = Duration::from_millis(300);

fn impatient() -> Server {
    Server::within(Limits { timeout: PATIENCE, ..Limits::default() })
}

/// Returns the real time, which these tests measure.
#[allow(clippy::disallowed_methods)]
fn now() -> Instant {
    Instant::now()
}

/// Returns the time until the other side closes, and its answer before.
fn until_closed(mut stream: UnixStream) -> (Duration, Answer) {
    let begin = now();
    let answer = Answer::read(&mut stream);
    (begin.elapsed(), answer)
}

#[test]
fn two_hundred_clients_at_once() {
    let server = Server::new();
    let socket = server.socket();
    let clients: Vec<_> = (0..200)
        .map(|number: u64| {
            let client = miserly_api::client::Client::new(socket.clone()).unwrap();
            thread::spawn(move || {
                let submission = Submission { cpus: number, directory: "/".into(), ..Submission::default() };
                client.submit(&submission).unwrap();
                client.jobs(&miserly_api::model::Filter::default()).unwrap().len()
            })
        })
        .collect();
    for client in clients {
        assert!(client.join().unwrap() > 0);
    }
    let asked = server.fake.asked();
    assert_eq!(asked.len(), 400);
    let mut cpus: Vec<u64> = asked
        .into_iter()
        .filter_map(|(_, question)| match question {
            miserly_engine::DaemonRequest::Submit(submission) => Some(submission.cpus),
            _ => None,
        })
        .collect();
    cpus.sort_unstable();
    assert!(cpus.into_iter().eq(0..200), "each was asked once");
}

#[test]
fn a_client_that_hangs_keeps_nobody_waiting() {
    let server = Server::within(Limits { timeout: 2 * SOON, ..Limits::default() });
    let whole = request("POST", "/v1/jobs", "{\"directory\": \"/\", \"time\": 1}");
    let hung: Vec<UnixStream> = (0..100)
        .map(|number| {
            let mut stream = server.connect();
            stream.write_all(&whole.as_bytes()[..number * whole.len() / 100]).unwrap();
            stream
        })
        .collect();
    let begin = now();
    server.client().status().unwrap();
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    drop(hung);
}

#[test]
fn a_client_that_hangs_is_cut_off() {
    let server = impatient();
    let whole = request("POST", "/v1/jobs", "{\"directory\": \"/\", \"time\": 1}");
    let body = whole.len() - 5;
    // Nothing at all, part of the head, part of the body.
    for (sent, status) in [(0, &[0, 408][..]), (20, &[0, 408]), (body, &[408])] {
        let mut stream = server.connect();
        stream.write_all(&whole.as_bytes()[..sent]).unwrap();
        let (took, answer) = until_closed(stream);
        assert!(status.contains(&answer.status), "{sent}: {answer:?}");
        // The server closed the connection: the reader did not give up.
        assert!(took >= PATIENCE / 2 && took < SOON, "{sent}: {took:?}");
    }
    assert!(server.fake.asked().is_empty(), "half a submission is none");
}

/// A client that sends requests and reads no replies fills its socket. Then it is disconnected.
#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let server = impatient();
    let mut stream = server.connect();
    stream.set_write_timeout(Some(SOON)).unwrap();
    let ask = b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";
    let error = loop {
        if let Err(error) = stream.write_all(ask) {
            break error;
        }
    };
    let cut_off = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
    assert!(cut_off.contains(&error.kind()), "{error}: it was not the writer that gave up");
}

/// A client that reads a little now and then does not keep its response for ever.
#[test]
fn a_client_that_reads_too_slowly_is_cut_off() {
    let server = impatient();
    let stream = server.connect();
    let (mut writer, mut reader) = (stream.try_clone().unwrap(), stream);
    writer.set_write_timeout(Some(SOON)).unwrap();
    let begin = now();
    let writing = thread::spawn(move || {
        let ask = b"GET /v1/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n";
        while writer.write_all(ask).is_ok() {}
    });
    // It always makes some progress.
    while begin.elapsed() < SOON && !writing.is_finished() {
        let _ = reader.read(&mut [0; 16]);
        thread::sleep(PATIENCE / 20);
    }
    assert!(writing.is_finished() && begin.elapsed() < SOON, "{:?}", begin.elapsed());
}

/// Sends a request that waits for a job.
fn waiting(server: &Server) -> UnixStream {
    let mut stream = server.connect();
    let asked = server.fake.asked().len();
    stream.write_all(request("GET", "/v1/jobs/2/wait", "").as_bytes()).expect("a server");
    while server.fake.asked().len() == asked {
        thread::yield_now();
    }
    stream
}

#[test]
fn clients_that_wait_for_jobs_take_no_seats() {
    let limits = Limits { connections: 1, reserved: 0, waiting_of_user: 2, ..Limits::default() };
    let server = Server::within(limits);
    let first = waiting(&server);
    let second = waiting(&server);
    assert_eq!(server.request("GET", "/v1/status", "").status, 200);
    let third = server.request("GET", "/v1/jobs/2/wait", "");
    assert_eq!((third.status, third.json()["code"].as_str()), (503, Some("unavailable")));
    drop(first);
    // Its place is free as soon as the server notices the disconnection.
    let refused = || {
        let mut stream = server.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request("GET", "/v1/jobs/2/wait", "").as_bytes()).unwrap();
        stream.read(&mut [0; 12]).is_ok()
    };
    while refused() {
        thread::yield_now();
    }
    server.fake.ended.notify_waiters();
    drop(second);
}

#[test]
fn a_crowd_is_refused_with_a_reason() {
    let server = Server::within(Limits { connections: 1, reserved: 0, ..Limits::default() });
    let held = server.connect();
    let crowded = server.request("GET", "/v1/status", "");
    assert_eq!((crowded.status, crowded.json()["code"].as_str()), (503, Some("unavailable")));
    drop(held);
    while server.request("GET", "/v1/status", "").status != 200 {
        thread::yield_now();
    }
}

#[test]
fn a_connection_may_be_used_again() {
    let server = Server::new();
    let mut stream = server.connect();
    for _ in 0..3 {
        stream.write_all(b"GET /v1/jobs/404 HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 404");
        let mut rest = [0; 1 << 12];
        while !rest.ends_with(b"}") {
            let read = stream.read(&mut rest).unwrap();
            if rest[..read].ends_with(b"}") {
                break;
            }
        }
    }
}
