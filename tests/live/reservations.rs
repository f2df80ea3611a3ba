//! Advance reservations with real processes, while the daemon is killed.

use std::fs;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::client::ClientError;
use miserly_api::model::{JobView, Phase, Possible, Reservation, ReservedTime, Submission};

use crate::same::play;
use crate::support::{Daemon, SOON, exact_queue, kept_but_for_stalls, sh, until};

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
    let mut daemon = Daemon::new(&exact_queue("conservative"));
    let reserved = time(4, 12);
    daemon.client().reserve(&course(&daemon, reserved)).expect("nothing is in its way");
    daemon.kill();
    daemon.start();
    let reserved = daemon.client().reservations().expect("a list")[0].times[0];
    // Ten seconds fit neither before it nor into it.
    let other = daemon.submit(&waits(&daemon, None, "echo other >> order", 10.0));
    let script = "echo own >> order; while [ ! -e enough ]; do sleep 0.02; done";
    let own = daemon.submit(&waits(&daemon, Some("course"), script, 6.0));
    let close = |one: Timestamp, other: Timestamp| one.duration_since(other).abs().as_millis() < 1000;
    assert!(close(start(&daemon.job(own)), reserved.from));
    assert!(close(start(&daemon.job(other)), reserved.to));
    let order = || fs::read_to_string(daemon.path("order")).unwrap_or_default();
    until("its start", SOON, || order().contains("own").then_some(()));
    assert!(Timestamp::now() >= reserved.from - Duration::from_millis(500));
    daemon.kill();
    daemon.start();
    assert!(matches!(daemon.job(own).phase, Phase::Running(_)));
    fs::write(daemon.path("enough"), "").expect("a file");
    for job in [own, other] {
        daemon.wait(job);
    }
    assert_eq!(fs::read_to_string(daemon.path("order")).expect("an order"), "own\nother\n");
    until("its end", SOON, || daemon.client().reservations().expect("a list").is_empty().then_some(()));
    daemon.history().iter().for_each(kept_but_for_stalls);
    daemon.stop();
    let played = play(&daemon.state());
    assert_eq!(played["difference"], serde_json::Value::Null, "{played:#}");
}

#[test]
fn a_refusal_names_the_next_time() {
    let daemon = Daemon::of_policy("miser");
    let running = daemon.submit(&waits(&daemon, None, "while [ ! -e enough ]; do sleep 0.02; done", 60.0));
    let wanted = course(&daemon, time(10, 20));
    let Err(ClientError::Refused(problem)) = daemon.client().reserve(&wanted) else {
        panic!("a job is in its way")
    };
    let Some(Possible::Reservation(window)) = problem.possible else { panic!("{problem}") };
    let times = vec![ReservedTime { from: window.start, to: window.end }];
    daemon.client().reserve(&Reservation { times, ..wanted }).expect("it is possible then");
    fs::write(daemon.path("enough"), "").expect("a file");
    daemon.wait(running);
    daemon.client().remove_reservation("course").expect("it has no jobs");
}
