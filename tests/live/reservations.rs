//! Advance reservations with real processes, while the daemon is killed.

use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::model::{JobView, Phase, Reservation, ReservedTime, Submission};

use crate::same::play;
use crate::support::{Daemon, SOON, exact_queue, sh, until};

/// Returns the instants after a time from now, in seconds, and after another one.
fn time(from: u64, to: u64) -> ReservedTime {
    let now = Timestamp::now();
    ReservedTime { from: now + Duration::from_secs(from), to: now + Duration::from_secs(to) }
}

fn course(daemon: &Daemon, time: ReservedTime) -> Reservation {
    Reservation {
        name: "course".to_owned(),
        cpus: daemon.client().status().expect("a state").queues[0].cpus,
        users: vec!["root".to_owned()],
        times: vec![time],
        ..Reservation::default()
    }
}

fn waits(daemon: &Daemon, queue: Option<&str>, script: &str, time: f64) -> Submission {
    let queue = queue.map(str::to_owned);
    Submission { queue, directory: daemon.path(""), no_opportunistic: true, ..sh(script, time) }
}

fn start(view: &JobView) -> Timestamp {
    view.promise.as_ref().and_then(|promise| promise.now).expect("a promise").start
}

#[test]
fn it_keeps_its_time_over_kills_and_is_played_again() {
    let mut daemon = Daemon::with_faults(&exact_queue("conservative"));
    daemon.client().reserve(&course(&daemon, time(600, 1200))).expect("nothing is in its way");
    daemon.kill();
    daemon.start();
    let reserved = daemon.client().reservations().expect("a list")[0].times[0];
    // It fits neither before the reservation nor into it.
    let other = daemon.submit(&waits(&daemon, None, "echo other >> order", 1000.0));
    let script = "echo own >> order; while [ ! -e enough ]; do sleep 0.02; done";
    let own = daemon.submit(&waits(&daemon, Some("course"), script, 300.0));
    let close = |one: Timestamp, other: Timestamp| one.duration_since(other).abs().as_millis() < 1000;
    assert!(close(start(&daemon.job(own)), reserved.from));
    assert!(close(start(&daemon.job(other)), reserved.to));
    let order = || fs::read_to_string(daemon.path("order")).unwrap_or_default();
    assert_eq!(order(), "");
    // The machine sleeps until the reservation, and then to its end.
    daemon.set_ahead(601.0);
    until("its start", SOON, || order().contains("own").then_some(()));
    daemon.kill();
    daemon.start();
    assert!(matches!(daemon.job(own).phase, Phase::Running(_)));
    fs::write(daemon.path("enough"), "").expect("a file");
    daemon.wait(own);
    assert_eq!(daemon.job(other).phase, Phase::Queued);
    daemon.set_ahead(1201.0);
    daemon.wait(other);
    assert_eq!(fs::read_to_string(daemon.path("order")).expect("an order"), "own\nother\n");
    until("its end", SOON, || daemon.client().reservations().expect("a list").is_empty().then_some(()));
    daemon.stop();
    let played = play(&daemon.state());
    assert_eq!(played["difference"], serde_json::Value::Null, "{played:#}");
}
