//! What was answered holds, also when the daemon goes before its shims have heard of it.

use miserly_api::model::{Exit, KilledBy, Phase, Submission};

use crate::support::{Daemon, Draws, rounds, sh};

/// The daemon goes, in order or not, and comes back.
fn restart(daemon: &mut Daemon, draws: &mut Draws) {
    if draws.choice(&[true, false]) {
        daemon.kill();
    } else {
        daemon.stop();
    }
    daemon.start();
}

#[test]
fn a_job_that_was_cancelled_is_over_whatever_becomes_of_the_daemon() {
    let mut daemon = Daemon::of_policy("miser");
    let mut draws = Draws::new(7);
    for _ in 0..rounds() {
        let number = daemon.submit(&sh("exec sleep 300", 600.0));
        std::thread::sleep(std::time::Duration::from_micros(draws.below(50_000)));
        daemon.client().cancel(number, false).expect("it can be cancelled");
        restart(&mut daemon, &mut draws);
        let ended = daemon.wait(number).phase;
        assert!(matches!(ended, Phase::Killed { by: KilledBy::User, .. }), "{ended:?}");
    }
}

#[test]
fn a_job_whose_window_was_made_longer_is_not_killed_at_its_old_end() {
    let mut daemon = Daemon::of_policy("miser");
    let mut draws = Draws::new(8);
    for _ in 0..rounds().div_ceil(4) {
        let job = Submission { no_opportunistic: true, ..sh("sleep 5.5; exit 7", 5.0) };
        let number = daemon.submit(&job);
        daemon.client().extend(number, 60.0).expect("there is room");
        restart(&mut daemon, &mut draws);
        let ended = daemon.wait(number).phase;
        assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
    }
}
