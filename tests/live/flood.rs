//! Two hundred clients of three users, two of which flood the daemon: the third one is served.

use std::collections::BTreeSet;

use crate::rights::is_root;
use crate::support::Daemon;
use crate::support::flood::flood;

#[test]
fn users_that_flood_the_daemon_keep_nobody_else_from_it() {
    if !is_root() {
        return;
    }
    let daemon = Daemon::for_everybody("");
    let before = daemon.client().status().expect("a status");
    let (honest, statuses) = flood(&daemon);

    let numbers: BTreeSet<i64> = honest.jobs.iter().copied().collect();
    assert_eq!((honest.jobs.len(), numbers.len()), (180, 180), "each submission has a number of its own");
    assert!(numbers.iter().copied().eq(1..=180), "no other job was accepted: {numbers:?}");
    // Lists and pools, malformed bodies, submissions without the right to, and too many connections or too slow ones.
    let expected = |status: &u16| [200, 400, 403, 408, 503].contains(status);
    assert!(statuses.iter().all(expected), "{statuses:?}");
    let answers: BTreeSet<u16> = statuses.into_iter().collect();
    assert!([200, 403, 503].iter().all(|status| answers.contains(status)), "{answers:?}");
    let after = daemon.client().status().expect("a status");
    assert_eq!((after.pid, after.promises), (before.pid, before.promises + 180));
}
