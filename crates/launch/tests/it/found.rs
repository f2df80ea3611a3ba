//! What a daemon that was away finds.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use miserly_launch::{Cause, Exit, FindError, Found, LostTo, Phase, Told, find};
use miserly_test_support::Requirement;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Test, alive, done, ended, exe, gone, kill, no_shim_is_left, stat, until};

fn kill_9(pid: u32) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
}

#[test]
fn a_shim_that_lives_is_adopted() {
    let test = Test::of("echo here; sleep 100");
    let shim = test.launch();
    let identity = shim.identity().clone();
    test.wait_out("here");
    drop(shim);
    let Found::Alive(mut shim) = test.find() else { panic!("it is not there") };
    assert_eq!(*shim.identity(), identity);
    assert_eq!(done(&mut shim, &Told::Hello).phase, Phase::Running);
    // A third one takes it over.
    let Found::Alive(mut third) = test.find() else { panic!("it is not there") };
    assert_eq!(done(&mut third, &Told::Hello).phase, Phase::Running);
    kill(&mut third);
}

#[test]
fn an_end_is_found_by_everybody_who_looks() {
    let test = Test::of("exit 4");
    test.run();
    for _ in 0..2 {
        let Found::Ended(end) = test.find() else { panic!("it has not ended") };
        assert_eq!(end.exit, Exit::Code(4));
    }
}

#[test]
fn a_shim_that_was_killed_is_lost_and_nothing_of_the_job_is_left() {
    let test = Test::of(
        "trap '' TERM HUP; (sleep 100 & echo $!; wait) & sleep 100 & echo $!; echo $$; wait; sleep 100",
    );
    let shim = test.launch();
    let pids = test.pids(3);
    kill_9(shim.identity().pid);
    assert!(gone(&shim));
    assert_eq!(shim.end().unwrap(), None);
    let Found::Lost(lost) = test.find() else { panic!("it is not lost") };
    assert_eq!(lost.to, LostTo::Kill);
    assert!(pids.contains(&lost.started.sid));
    assert!(pids.iter().all(|pid| !alive(*pid)));
    // The main process dies with the shim; the others were killed now.
    assert!(lost.killed.len() >= 3, "{:?}", lost.killed);
    let Found::Lost(again) = test.find() else { panic!("it is not lost any more") };
    assert!(again.killed.is_empty());
}

#[test]
fn a_lost_attempt_is_not_begun_again() {
    let test = Test::of("echo ran >>ran; echo here; sleep 100");
    let shim = test.launch();
    test.wait_out("here");
    kill_9(shim.identity().pid);
    assert!(gone(&shim));
    // Also if nobody has looked yet, and nothing tells of the first shim.
    for name in ["shim.json", "ctl", "end.room"] {
        fs::remove_file(test.dir().join(name)).unwrap();
    }
    begin_again(&test);
    assert!(matches!(test.find(), Found::Lost(_)));
    assert_eq!(fs::read_to_string(test.folder.path().join("ran")).unwrap(), "ran\n");
}

/// Calls a shim for an attempt, and waits until it has gone.
fn begin_again(test: &Test) {
    let mut shim = Command::new(exe());
    shim.arg("shim").arg(test.dir()).stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    no_shim_is_left(&test.dir());
}

/// A stranger who leads a session of its own.
fn stranger() -> Child {
    let child = Command::new("setsid").args(["sleep", "100"]).stdin(Stdio::null()).spawn().unwrap();
    // Started by a test, it leads no process group, and so it need not fork.
    until(|| stat(child.id()).filter(|stat| stat[3] == child.id().to_string()));
    child
}

fn start_time(child: &Child) -> u64 {
    stat(child.id()).unwrap()[19].parse().unwrap()
}

/// Looks for an attempt that was lost long ago, whose session's number is a stranger's now; `change` is what else its record says.
fn stranger_survives(change: impl Fn(&mut serde_json::Value, &Child)) {
    let test = Test::of("echo here; sleep 100");
    let shim = test.launch();
    test.wait_out("here");
    kill_9(shim.identity().pid);
    assert!(gone(&shim));
    let mut stranger = stranger();
    let path = test.dir().join("started.json");
    let mut started: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    (started["sid"], started["pid"]) = (stranger.id().into(), stranger.id().into());
    change(&mut started, &stranger);
    fs::write(&path, started.to_string()).unwrap();
    let Found::Lost(lost) = test.find() else { panic!("it is not lost") };
    assert!(lost.killed.is_empty() && alive(stranger.id()));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}

#[test]
fn a_session_whose_leader_is_another_is_left_alone() {
    stranger_survives(|started, stranger| {
        started["autogroup"] = serde_json::Value::Null;
        started["start_time"] = (start_time(stranger) - 1).into();
    });
}

#[test]
fn a_session_that_the_kernel_weighs_apart_is_left_alone() {
    let autogroup = fs::metadata("/proc/self/autogroup").is_ok();
    if !Requirement::Autogroup.is_met(autogroup, "needs a kernel with autogroups") {
        return;
    }
    // As if the leader had gone, which would have told: it is taken for the leader of old.
    stranger_survives(|started, stranger| {
        started["start_time"] = start_time(stranger).into();
    });
}

#[test]
fn another_boot_kills_nobody() {
    let test = Test::of("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    kill_9(shim.identity().pid);
    assert!(gone(&shim));
    let path = test.dir().join("started.json");
    let mut started: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    started["boot_id"] = "another".into();
    // This very process, and its session.
    started["pid"] = std::process::id().into();
    fs::write(&path, started.to_string()).unwrap();
    let Found::Lost(lost) = test.find() else { panic!("it is not lost") };
    assert_eq!((lost.to, lost.killed), (LostTo::Reboot, vec![]));
    assert!(shim.tell(&Told::Hello).is_err());
}

#[test]
fn a_shim_whose_folder_is_removed_does_not_stay_for_ever() {
    let test = Test::of("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    fs::remove_dir_all(test.dir()).unwrap();
    done(&mut shim, &Told::Kill { grace: Duration::ZERO, cause: Cause::User });
    assert!(gone(&shim));
}

#[test]
fn an_attempt_that_was_given_up_is_not_begun() {
    let test = Test::of("echo ran >>ran");
    fs::create_dir(test.dir()).unwrap();
    let order = serde_json::to_vec(&test.order).unwrap();
    fs::write(test.dir().join("order.json"), order).unwrap();
    assert!(matches!(test.find(), Found::NeverRan));
    // The shim that was on its way comes late.
    begin_again(&test);
    assert!(!test.folder.path().join("ran").exists());
    assert!(matches!(test.find(), Found::NeverRan));
}

#[test]
fn without_a_folder_it_never_ran() {
    let test = Test::of("");
    assert!(matches!(test.find(), Found::NeverRan));
    fs::create_dir(test.dir()).unwrap();
    assert!(matches!(test.find(), Found::NeverRan));
}

#[test]
fn a_shim_that_nobody_waits_for_runs_its_attempt() {
    let test = Test::of("echo ran >>ran");
    fs::create_dir(test.dir()).unwrap();
    fs::write(test.dir().join("order.json"), serde_json::to_vec(&test.order).unwrap()).unwrap();
    for _ in 0..3 {
        // The second and the third find that it has had a shim.
        Command::new(exe())
            .arg("shim")
            .arg(test.dir())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
    }
    until(|| test.dir().join("end.json").exists().then_some(()));
    assert_eq!(fs::read_to_string(test.folder.path().join("ran")).unwrap(), "ran\n");
}

#[test]
fn a_record_that_is_damaged_is_named() {
    let test = Test::of("exit 0");
    ended(&test.launch());
    fs::write(test.dir().join("end.json"), "{\"exit\": 3").unwrap();
    let error = find(&test.dir()).unwrap_err();
    assert!(matches!(error, FindError::Record(_)));
    assert!(error.to_string().contains("end.json is damaged: "), "{error}");
}
