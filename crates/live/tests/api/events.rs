//! Streams of events and metrics.

use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use miserly_api::client::{Client, ClientError};
use miserly_api::model::DaemonEvent;
use miserly_live::server::Limits;

use crate::samples;
use crate::server::{Server, request};

/// A time limit that the tests exceed.
const SHORT: Duration = Duration::from_millis(200);

/// Returns all events of a stream that ends.
fn events(client: &Client, after: Option<i64>) -> Vec<DaemonEvent> {
    let mut events = vec![];
    let add = |event| {
        events.extend(event);
        ControlFlow::Continue(())
    };
    client.events(after, add).expect("a stream");
    events
}

/// Returns a connection with a stream that goes on.
fn open(server: &Server) -> std::os::unix::net::UnixStream {
    let mut stream = server.connect();
    stream.write_all(request("GET", "/v1/events", "").as_bytes()).expect("a server");
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("a response");
    assert_eq!(&head, b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&head));
    stream
}

#[test]
fn the_client_reads_the_events_of_a_stream() {
    let server = Server::new();
    let expected: Vec<DaemonEvent> = samples::events().into_iter().map(|(event, _)| event).collect();
    assert_eq!(events(&server.client(), None), expected);
    assert_eq!(events(&server.client(), Some(12)), expected);
    assert_eq!(*server.fake.after.lock().unwrap(), [None, Some(12)]);
}

#[test]
fn a_client_ends_a_stream_that_is_silent() {
    let server = Server::new();
    server.fake.goes_on.store(true, Ordering::Relaxed);
    let mut seen = 0;
    let ended = server.client().events(None, |event| {
        seen += usize::from(event.is_some());
        if event.is_none() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    ended.unwrap();
    assert_eq!(seen, samples::events().len());
}

#[test]
fn a_stream_outlasts_the_time_limit_of_responses_and_ends_with_the_server() {
    let mut server = Server::within(Limits { timeout: SHORT, ..Limits::default() });
    server.fake.goes_on.store(true, Ordering::Relaxed);
    let client = server.client();
    let (sender, seen) = std::sync::mpsc::channel();
    let reading = thread::spawn(move || {
        client.events(None, |event| {
            let _ = sender.send(event.is_some());
            ControlFlow::Continue(())
        })
    });
    // The client looks once a second at a stream without events.
    while seen.recv().expect("a stream that goes on") {}
    server.stop();
    reading.join().unwrap().unwrap();
}

/// Returns the number of bytes of a stream that a client gets with a pause after each piece.
fn read_slowly(server: &Server, piece: usize, pause: Duration) -> usize {
    let mut stream = open(server);
    let (mut buffer, mut sum) = (vec![0; piece], 0);
    loop {
        thread::sleep(pause);
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return sum,
            Ok(size) => sum += size,
        }
    }
}

#[test]
fn a_slow_client_gets_a_large_event_if_it_reads_steadily() {
    let large = 4 << 20;
    let within = |timeout| {
        let server = Server::within(Limits { timeout, ..Limits::default() });
        server.fake.comment.store(large, Ordering::Relaxed);
        server
    };
    // It takes several times the limit. The limit leaves room for a machine that stalls.
    let limit = SHORT * 10;
    assert!(read_slowly(&within(limit), 128 << 10, limit / 10) > large);
    // A client that reads nothing for longer than the limit gets no more than what the system keeps for it.
    assert!(read_slowly(&within(SHORT), 128 << 10, SHORT * 3) < large);
}

#[test]
fn streams_take_no_seats_and_have_a_limit() {
    let limits = Limits { connections: 1, reserved: 0, streams_of_user: 2, ..Limits::default() };
    let server = Server::within(limits);
    server.fake.goes_on.store(true, Ordering::Relaxed);
    let first = open(&server);
    let second = open(&server);
    assert_eq!(server.request("GET", "/v1/status", "").status, 200);
    let Err(ClientError::Refused(problem)) = server.client().events(None, |_| ControlFlow::Break(())) else {
        panic!("a third stream")
    };
    assert!(problem.message.contains("streams"), "{problem}");
    drop(first);
    // Its place is free as soon as the server notices the disconnection.
    while server.client().events(None, |_| ControlFlow::Break(())).is_err() {
        thread::yield_now();
    }
    drop(second);
}

#[test]
fn metrics_are_text() {
    let server = Server::new();
    let text = server.client().metrics().unwrap();
    assert!(text.ends_with("connections 1\n# EOF\n"), "{text}");
}
