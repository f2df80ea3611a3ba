//! A client that attaches to a job: its connection leaves the server.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

use std::io::{IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::{UnixDatagram, UnixStream};

use miserly_api::client::ClientError;
use miserly_api::model::{OutputRequest, ProblemCode};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tempfile::TempDir;

use crate::server::Server;

/// The socket of a relay in a folder of an attempt.
fn relay(server: &Server) -> (TempDir, UnixDatagram) {
    let folder = TempDir::new().unwrap();
    let socket = UnixDatagram::bind(folder.path().join("relay")).unwrap();
    folder.path().clone_into(&mut server.fake.attempt.lock().unwrap());
    (folder, socket)
}

/// Waits for a connection that the server passes on.
fn passed(socket: &UnixDatagram) -> UnixStream {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut [IoSliceMut::new(&mut [0])], &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let stream = UnixStream::from(fd.expect("a descriptor"));
    stream.set_nonblocking(false).unwrap();
    stream
}

#[test]
fn the_connection_of_a_client_is_the_relay_s() {
    let server = Server::new();
    let (_folder, socket) = relay(&server);
    let mut client = server.client().attach(1).unwrap().stream;
    client.set_nonblocking(false).unwrap();
    let mut relay = passed(&socket);
    let mut bytes = [0; 4];
    client.write_all(b"ping").unwrap();
    relay.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"ping");
    relay.write_all(b"pong").unwrap();
    client.read_exact(&mut bytes).unwrap();
    assert_eq!(&bytes, b"pong");
    // The server has no part of it any more.
    drop(relay);
    assert_eq!(client.read(&mut bytes).unwrap(), 0);
}

#[test]
fn a_client_of_another_protocol_is_not_attached() {
    let server = Server::new();
    let (_folder, _socket) = relay(&server);
    assert_eq!(server.request("POST", "/v1/jobs/1/attach", "").status, 400);
}

#[test]
fn a_job_without_a_relay_is_a_problem() {
    let server = Server::new();
    match server.client().attach(409) {
        Err(ClientError::Refused(problem)) => assert_eq!(problem.code, ProblemCode::Conflict),
        other => panic!("{other:?}"),
    }
}

#[test]
fn output_comes_as_bytes_with_the_length_of_the_file() {
    let server = Server::new();
    let client = server.client();
    let part = client.output(7, &OutputRequest { from: 5, error: true }).unwrap();
    assert_eq!((&part.bytes[..], part.length), (&b"7 true\0"[..], 14));
    match client.output(404, &OutputRequest::default()) {
        Err(ClientError::Refused(problem)) => assert_eq!(problem.code, ProblemCode::NotFound),
        other => panic!("{other:?}"),
    }
}
