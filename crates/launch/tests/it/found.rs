//! States that a restarted daemon finds.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use miserly_launch::{
    AttemptPhase, AttemptProcesses, BootId, BootTime, Exit, FindError, FoundAttempt, KillResult, LossCause,
    MachineClock as _, ShimCommand, current_boot, find,
};
use miserly_test_support::Requirement;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{SOON, Test, alive, done, ended, exe, gone, kill, no_shim_is_left, stat, until};

fn kill_9(pid: u32) {
    signal(pid, Signal::KILL);
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

#[test]
fn a_shim_that_lives_is_adopted() {
    let test = Test::new("echo here; sleep 100");
    let shim = test.launch();
    let identity = shim.identity().clone();
    test.wait_out("here");
    drop(shim);
    let FoundAttempt::Alive(mut shim) = test.find() else { panic!("it is not there") };
    assert_eq!(*shim.identity(), identity);
    assert_eq!(done(&mut shim, &ShimCommand::Status).phase, AttemptPhase::Running);
    // A third connection takes it over.
    let FoundAttempt::Alive(mut third) = test.find() else { panic!("it is not there") };
    assert_eq!(done(&mut third, &ShimCommand::Status).phase, AttemptPhase::Running);
    kill(&mut third);
}

#[test]
fn an_end_is_found_repeatedly() {
    let test = Test::new("exit 4");
    test.run();
    for _ in 0..2 {
        let FoundAttempt::Ended(end) = test.find() else { panic!("it has not ended") };
        assert_eq!(end.exit, Exit::Code(4));
    }
}

#[test]
fn a_shim_that_was_killed_is_lost_and_nothing_of_the_job_is_left() {
    let test = Test::new(
        "trap '' TERM HUP; (sleep 100 & echo $!; wait) & sleep 100 & echo $!; echo $$; wait; sleep 100",
    );
    let shim = test.launch();
    let pids = test.pids(3);
    kill_9(shim.identity().pid);
    assert!(gone(&shim));
    assert_eq!(shim.end().unwrap(), None);
    let FoundAttempt::Lost(lost) = test.find() else { panic!("it is not lost") };
    assert_eq!(lost.cause, LossCause::Kill);
    assert!(pids.contains(&lost.started.sid));
    assert!(pids.iter().all(|pid| !alive(*pid)));
    // The main process dies with the shim; the others are killed now.
    assert!(lost.killed.len() >= 3, "{:?}", lost.killed);
    let FoundAttempt::Lost(again) = test.find() else { panic!("it is not lost any more") };
    assert!(again.killed.is_empty());
}

#[test]
fn what_left_the_session_of_a_killed_shim_is_killed_by_its_environment() {
    let test = Test::new("setsid sh -c 'echo $$; exec sleep 100' & wait");
    let shim = test.launch();
    let left = test.pids(1)[0];
    kill_9(shim.identity().pid);
    assert!(gone(&shim));
    let FoundAttempt::Lost(lost) = test.find() else { panic!("it is not lost") };
    assert!(lost.killed.contains(&left), "{:?}", lost.killed);
    assert!(!alive(left));
}

#[test]
fn a_job_is_killed_without_the_help_of_its_stopped_shim() {
    let test = Test::new("trap '' TERM; setsid env -i sh -c 'echo $$; exec sleep 100' & echo $$; wait");
    let shim = test.launch();
    let pids = test.pids(2);
    signal(shim.identity().pid, Signal::STOP);
    until(|| shim.is_stopped().unwrap().then_some(()));
    let KillResult::All(killed) =
        AttemptProcesses::read(&test.dir()).unwrap().kill_job(BootTime::now().after(SOON)).unwrap()
    else {
        panic!("something is left")
    };
    assert!(pids.iter().all(|pid| killed.contains(pid) && !alive(*pid)), "{pids:?} {killed:?}");
    shim.wake().unwrap();
    assert_eq!(ended(&shim).exit, Exit::Signal { signal: 9, core: false });
}

#[test]
fn a_lost_attempt_is_not_begun_again() {
    let test = Test::new("echo ran >>ran; echo here; sleep 100");
    let shim = test.launch();
    test.wait_out("here");
    kill_9(shim.identity().pid);
    assert!(gone(&shim));
    // Even before any `find`, and without a trace of the first shim.
    for name in ["shim.json", "ctl", "end.preallocated"] {
        fs::remove_file(test.dir().join(name)).unwrap();
    }
    call_shim_again(&test);
    assert!(matches!(test.find(), FoundAttempt::Lost(_)));
    assert_eq!(fs::read_to_string(test.folder.path().join("ran")).unwrap(), "ran\n");
}

/// Calls a shim for an attempt, and waits until it has gone.
fn call_shim_again(test: &Test) {
    let mut shim = Command::new(exe());
    shim.arg("shim").arg(test.dir()).stdin(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    no_shim_is_left(&test.dir());
}

/// Spawns an unrelated process that leads a session of its own.
fn unrelated() -> Child {
    let child = Command::new("setsid").args(["sleep", "100"]).stdin(Stdio::null()).spawn().unwrap();
    // Spawned by a test, it leads no process group and need not fork.
    until(|| stat(child.id()).filter(|stat| stat[3] == child.id().to_string()));
    child
}

fn start_time(child: &Child) -> u64 {
    stat(child.id()).unwrap()[19].parse().unwrap()
}

/// Finds an attempt that was lost long ago, whose session number an unrelated process has now.
///
/// `change` makes further changes to its start record.
fn unrelated_process_survives(change: impl Fn(&mut serde_json::Value, &Child)) {
    let test = Test::new("echo here; sleep 100");
    let shim = test.launch();
    test.wait_out("here");
    kill_9(shim.identity().pid);
    assert!(gone(&shim));
    let mut unrelated = unrelated();
    let path = test.dir().join("started.json");
    let mut started: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    (started["sid"], started["pid"]) = (unrelated.id().into(), unrelated.id().into());
    change(&mut started, &unrelated);
    fs::write(&path, started.to_string()).unwrap();
    let FoundAttempt::Lost(lost) = test.find() else { panic!("it is not lost") };
    assert!(!lost.killed.contains(&unrelated.id()) && alive(unrelated.id()));
    unrelated.kill().unwrap();
    unrelated.wait().unwrap();
}

#[test]
fn a_session_with_another_leader_is_not_killed() {
    unrelated_process_survives(|started, unrelated| {
        started["autogroup"] = serde_json::Value::Null;
        started["start_time"] = (start_time(unrelated) - 1).into();
    });
}

#[test]
fn a_session_with_another_autogroup_is_not_killed() {
    let autogroup = fs::metadata("/proc/self/autogroup").is_ok();
    if !Requirement::Autogroup.is_met(autogroup, "needs a kernel with autogroups") {
        return;
    }
    // The start equals that of the unrelated leader, so only the autogroup distinguishes the two.
    unrelated_process_survives(|started, unrelated| {
        started["start_time"] = start_time(unrelated).into();
    });
}

#[test]
fn another_boot_kills_no_process() {
    let test = Test::new("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    kill_9(shim.identity().pid);
    assert!(gone(&shim));
    let path = test.dir().join("started.json");
    let mut started: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    started["boot_id"] = "another".into();
    // The process of this test, and its session.
    started["pid"] = std::process::id().into();
    fs::write(&path, started.to_string()).unwrap();
    let FoundAttempt::Lost(lost) = test.find() else { panic!("it is not lost") };
    assert_eq!((lost.cause, lost.killed), (LossCause::Reboot, vec![]));
    assert!(shim.request(&ShimCommand::Status).is_err());
}

/// Returns the present content of a record.
fn record(test: &Test, name: &str) -> serde_json::Value {
    serde_json::from_slice(&fs::read(test.dir().join(name)).unwrap()).unwrap()
}

#[test]
fn each_record_names_the_boot_of_its_instants() {
    let test = Test::new("true");
    let at = test.run().at;
    let boot = current_boot().unwrap();
    assert_eq!(at.boot_time(&boot), Some(at.parts().0));
    for name in ["spec.json", "shim.json", "started.json", "end.json"] {
        assert_eq!(record(&test, name)["boot_id"], boot.to_string(), "{name}");
    }
}

#[test]
fn an_end_of_an_earlier_version_is_of_the_boot_of_its_shim() {
    let test = Test::new("true");
    let at = test.run().at.parts().0;
    let mut end = record(&test, "end.json");
    end.as_object_mut().unwrap().remove("boot_id");
    fs::write(test.dir().join("end.json"), end.to_string()).unwrap();
    let mut shim = record(&test, "shim.json");
    shim["boot_id"] = "another".into();
    fs::write(test.dir().join("shim.json"), shim.to_string()).unwrap();
    let FoundAttempt::Ended(end) = test.find() else { panic!("it has ended") };
    assert_eq!(end.at.parts(), (at, Some(&BootId::from("another"))));
    fs::remove_file(test.dir().join("shim.json")).unwrap();
    let FoundAttempt::Ended(end) = test.find() else { panic!("it has ended") };
    assert_eq!(end.at.parts(), (at, None));
}

#[test]
fn a_window_of_another_boot_is_not_begun() {
    let test = Test::new("echo ran >>ran");
    fs::create_dir(test.dir()).unwrap();
    let mut spec = serde_json::to_value(&test.spec).unwrap();
    spec["boot_id"] = "another".into();
    fs::write(test.dir().join("spec.json"), spec.to_string()).unwrap();
    call_shim_again(&test);
    assert!(matches!(test.find(), FoundAttempt::NeverRan));
    assert!(!test.folder.path().join("ran").exists());
}

#[test]
fn a_shim_exits_after_its_folder_is_deleted() {
    let test = Test::new("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    fs::remove_dir_all(test.dir()).unwrap();
    done(&mut shim, &ShimCommand::Kill { grace: Duration::ZERO });
    assert!(gone(&shim));
}

#[test]
fn an_attempt_that_was_given_up_is_not_begun() {
    let test = Test::new("echo ran >>ran");
    fs::create_dir(test.dir()).unwrap();
    let order = serde_json::to_vec(&test.spec).unwrap();
    fs::write(test.dir().join("spec.json"), order).unwrap();
    assert!(matches!(test.find(), FoundAttempt::NeverRan));
    // The delayed shim arrives.
    call_shim_again(&test);
    assert!(!test.folder.path().join("ran").exists());
    assert!(matches!(test.find(), FoundAttempt::NeverRan));
}

#[test]
fn without_a_folder_it_never_ran() {
    let test = Test::new("");
    assert!(matches!(test.find(), FoundAttempt::NeverRan));
    fs::create_dir(test.dir()).unwrap();
    assert!(matches!(test.find(), FoundAttempt::NeverRan));
}

#[test]
fn a_shim_without_a_launcher_runs_its_attempt() {
    let test = Test::new("echo ran >>ran");
    fs::create_dir(test.dir()).unwrap();
    fs::write(test.dir().join("spec.json"), serde_json::to_vec(&test.spec).unwrap()).unwrap();
    for _ in 0..3 {
        // The second and the third call find that the attempt has had a shim.
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
fn a_damaged_record_is_named_in_the_error() {
    let test = Test::new("exit 0");
    ended(&test.launch());
    fs::write(test.dir().join("end.json"), "{\"exit\": 3").unwrap();
    let error = find(&test.dir()).unwrap_err();
    assert!(matches!(error, FindError::Record(_)));
    assert!(error.to_string().contains("end.json is damaged: "), "{error}");
}
