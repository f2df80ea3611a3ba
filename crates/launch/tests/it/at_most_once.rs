//! A command runs at most once, whichever process is killed, and the reported state is true.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use miserly_launch::{BootTime, Exit, FoundAttempt, MachineClock as _, launch};
use miserly_test_support::Draws;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Test, exe, gone, no_shim_is_left, shims};

const ROUNDS: u32 = 150;

fn kill_shims(dir: &Path, draws: &mut Draws) {
    for pid in shims(dir) {
        // Sometimes the shim alone, sometimes what becomes the command, sometimes all.
        if draws.below(3) > 0 {
            // It may just have gone.
            let _ = kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL);
        }
    }
}

/// Starts the shim like a launcher that dies before the handshake.
fn launch_and_die(test: &Test) {
    fs::create_dir(test.dir()).unwrap();
    fs::write(test.dir().join("spec.json"), serde_json::to_vec(&test.spec).unwrap()).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut command = Command::new(exe());
    command.arg("shim").arg(test.dir()).stdin(OwnedFd::from(theirs)).stderr(Stdio::null());
    command.status().unwrap();
    drop(ours);
}

fn lines(test: &Test) -> usize {
    fs::read_to_string(test.folder.path().join("ran")).unwrap_or_default().lines().count()
}

/// Returns the state once there is no shim left.
fn settled(test: &Test) -> FoundAttempt {
    loop {
        match test.find() {
            FoundAttempt::Alive(shim) => assert!(gone(&shim)),
            settled => return settled,
        }
    }
}

/// One round: a name for what was found, which agrees with how often the command ran.
fn round(test: &Test, draws: &mut Draws, longest: Duration) -> &'static str {
    let delay = Duration::from_micros(draws.below(longest.as_micros().try_into().unwrap()));
    let dies = draws.below(2) == 0;
    let found = thread::scope(|scope| {
        scope.spawn(|| {
            if dies {
                launch_and_die(test);
            } else {
                // The shim may be killed, or the other process may declare the attempt void.
                let _ = launch(exe(), &test.dir(), &test.spec);
            }
        });
        thread::sleep(delay);
        kill_shims(&test.dir(), draws);
        // Before the launcher has made it, there is nothing to be found.
        crate::support::until(|| test.dir().join("spec.json").exists().then_some(()).or(has_settled(test)));
        settled(test)
    });
    let (name, runs) = match &found {
        FoundAttempt::NeverRan => ("never ran", 0..=0),
        FoundAttempt::Ended(end) if end.exit == Exit::Code(0) => ("ended", 1..=1),
        FoundAttempt::Ended(_) => ("killed", 0..=1),
        FoundAttempt::Lost(_) => ("lost", 0..=1),
        FoundAttempt::Alive(_) => ("alive", 2..=2),
    };
    assert!(runs.contains(&lines(test)), "{found:?}, and it ran {} times", lines(test));
    assert_eq!(std::mem::discriminant(&settled(test)), std::mem::discriminant(&found));
    name
}

fn has_settled(test: &Test) -> Option<()> {
    ["void", "end.json"].iter().any(|name| test.dir().join(name).exists()).then_some(())
}

#[test]
fn a_command_runs_at_most_once_after_any_kill() {
    let script = "echo ran >>ran; sleep 0.005";
    let begun = BootTime::now();
    for _ in 0..3 {
        Test::new(script).run();
    }
    let longest = BootTime::now().since(begun) / 3 * 5 / 4;
    let mut draws = Draws::new(7);
    let tests: Vec<Test> = (0..ROUNDS).map(|_| Test::new(script)).collect();
    let mut found: Vec<&str> = tests.iter().map(|test| round(test, &mut draws, longest)).collect();
    for (test, found) in tests.iter().zip(&found) {
        no_shim_is_left(&test.dir());
        assert!(lines(test) <= 1);
        assert!(*found != "never ran" || lines(test) == 0);
    }
    found.sort_unstable();
    let of_each: Vec<String> =
        found.chunk_by(|a, b| a == b).map(|alike| format!("{} {}", alike.len(), alike[0])).collect();
    println!("{ROUNDS} rounds, killed within {longest:?}: {}", of_each.join(", "));
    assert!(of_each.len() >= 2, "the kills hit nothing: {of_each:?}");
}
