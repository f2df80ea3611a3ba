//! Requests of other users. Only root can take another identity: without it these tests report a
//! skip.

use std::os::unix::net::UnixStream;
use std::thread;

use miserly_live::server::{Access, Limits};
use miserly_test_support::Requirement;
use rustix::process::{Uid, geteuid};

use crate::server::{Answer, Server};

/// The number of an unprivileged user.
const OTHER: u32 = 65_534;

/// Runs `act` in a thread of the other user. Returns `None` if this process cannot change its
/// identity.
fn as_other<T: Send>(act: impl FnOnce() -> T + Send) -> Option<T> {
    if !Requirement::Root.is_met(geteuid().is_root(), "needs root, to become another user") {
        return None;
    }
    let acted = thread::scope(|scope| {
        let other = scope.spawn(|| {
            rustix::thread::set_thread_uid(Uid::from_raw(OTHER)).expect("root");
            act()
        });
        other.join()
    });
    Some(acted.expect("a thread that ends"))
}

#[test]
fn whoever_asks_is_who_the_kernel_says() {
    let server = Server::for_whom(Access::Everybody, Limits::default());
    let Some(answer) = as_other(|| server.request("GET", "/v1/status", "")) else { return };
    assert_eq!(answer.status, 200);
    let callers: Vec<u32> = server.fake.asked().iter().map(|(caller, _)| caller.uid).collect();
    assert_eq!(callers, [OTHER]);
}

#[test]
fn nobody_else_connects_to_an_own_socket() {
    let server = Server::new();
    let Some(connected) = as_other(|| UnixStream::connect(server.socket()).is_ok()) else { return };
    assert!(!connected);
    server.client().status().unwrap();
}

#[test]
fn one_user_leaves_room_for_the_others() {
    let server = Server::for_whom(Access::Everybody, Limits { connections_of_user: 2, ..Limits::default() });
    let Some((held, mut third)) = as_other(|| ([server.connect(), server.connect()], server.connect()))
    else {
        return;
    };
    assert_eq!(Answer::read(&mut third).status, 503);
    server.client().status().unwrap();
    drop(held);
}
