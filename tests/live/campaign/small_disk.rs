//! A campaign on a file system that is full again and again. A namespace of one's own can mount it without privileges.

use std::fs;
use std::process::Command;
use std::thread;
use std::time::Duration;

use miserly_test_support::Requirement;

use super::fault::Fault;
use super::{Campaign, configuration, seed};
use crate::damage::{Small, fill};
use crate::support::{Daemon, Draws, rounds};

/// The variable that is set in the namespace.
const CHILD: &str = "MISERLY_TEST_SMALL_DISK";

/// The faults beside those of other campaigns.
const FAULTS: [Fault; 6] = [
    Fault::FullFileSystem,
    Fault::FullFileSystem,
    Fault::FullFileSystem,
    Fault::KillDaemon,
    Fault::KillShim,
    Fault::Terminate,
];

/// Leaves the state no room for a while.
pub(super) fn fill_for(daemon: &Daemon, pause: Duration) {
    let filler = fill(&daemon.state());
    thread::sleep(pause);
    fs::remove_file(filler).expect("a file that can be removed");
}

/// Plays a campaign on a small file system.
fn play() {
    let seed = seed(19);
    let daemon = Daemon::asleep_with_faults(&configuration::any(&mut Draws::new(seed)));
    let small = Small::mount_with(daemon.state(), "64m").expect("a namespace of one's own can mount it");
    let mut campaign = Campaign::new(daemon, seed);
    campaign.daemon.start();
    campaign.play(rounds().div_ceil(4), &FAULTS);
    drop(small);
}

#[test]
fn a_file_system_that_is_full_again_and_again_loses_nothing() {
    if std::env::var_os(CHILD).is_some() {
        return play();
    }
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--mount"])
        .arg(std::env::current_exe().expect("this program"));
    let test = "campaign::small_disk::a_file_system_that_is_full_again_and_again_loses_nothing";
    let output = command.args([test, "--exact", "--nocapture"]).env(CHILD, "1").output();
    match output {
        Ok(output) if output.status.success() => {}
        // The child ran and failed: this is its output.
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("running 1 test") => {
            let [stdout, stderr] =
                [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
            panic!("{stdout}\n{stderr}");
        }
        other => {
            let missing = format!("needs a user namespace with a small file system ({other:?})");
            Requirement::Namespaces.is_met(false, &missing);
        }
    }
}
