//! Stopping and resuming, with and without a daemon.

use std::time::Duration;

use miserly_launch::{AttemptPhase, CommandError, ShimCommand, ShimReply};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{SECOND, Test, done, ended, gone, is_stopped, kill, until};

const COUNTS: &str = "sh -c 'echo $$; i=0; while :; do i=$((i+1)); sleep 0.01; done' & echo $$; i=0; while :; do i=$((i+1)); echo line; sleep 0.01; done";

#[test]
fn stopped_is_all_of_it_and_going_on_too() {
    let test = Test::new(COUNTS);
    let mut shim = test.launch();
    let pids = test.pids(2);
    for _ in 0..10 {
        assert_eq!(done(&mut shim, &ShimCommand::Stop).phase, AttemptPhase::Stopped);
        assert!(pids.iter().all(|pid| is_stopped(*pid)));
        let written = test.out();
        std::thread::sleep(Duration::from_millis(30));
        assert_eq!(test.out(), written);
        assert_eq!(done(&mut shim, &ShimCommand::Resume).phase, AttemptPhase::Running);
        until(|| (test.out().len() > written.len()).then_some(()));
    }
    kill(&mut shim);
    assert_eq!(ended(&shim).stops, 10);
}

#[test]
fn a_job_that_makes_processes_stops_too() {
    let test = Test::new("for i in 1 2 3 4; do (while :; do /bin/true; done) & done; echo here; wait");
    let mut shim = test.launch();
    test.wait_out("here");
    for _ in 0..5 {
        assert_eq!(done(&mut shim, &ShimCommand::Stop).phase, AttemptPhase::Stopped);
        assert_eq!(done(&mut shim, &ShimCommand::Status).phase, AttemptPhase::Stopped);
        done(&mut shim, &ShimCommand::Resume);
    }
    kill(&mut shim);
}

#[test]
fn replies_carry_the_numbers_of_their_commands() {
    let test = Test::new("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    let commands = [ShimCommand::Stop, ShimCommand::Status, ShimCommand::Status];
    let sent = commands.map(|command| shim.send(&command).unwrap());
    let mut numbers: Vec<u64> = (0..3).map(|_| until(|| shim.receive().unwrap()).number).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, sent);
    assert_eq!(shim.receive().unwrap(), None);
    kill(&mut shim);
}

#[test]
fn an_overridden_stop_is_answered() {
    let test = Test::new("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    let stop = shim.send(&ShimCommand::Stop).unwrap();
    let resume = shim.send(&ShimCommand::Resume).unwrap();
    let mut replies = [(); 2].map(|()| until(|| shim.receive().unwrap()));
    replies.sort_unstable_by_key(|reply| reply.number);
    let [first, second] = replies;
    assert_eq!((first.number, second.number), (stop, resume));
    assert!(matches!(first.reply, ShimReply::Done(_) | ShimReply::NotStopped { .. }), "{first:?}");
    assert!(matches!(second.reply, ShimReply::Done(_)), "{second:?}");
    assert_eq!(done(&mut shim, &ShimCommand::Status).phase, AttemptPhase::Running);
    kill(&mut shim);
}

#[test]
fn without_a_daemon_a_stopped_job_goes_on_after_a_time() {
    let mut test = Test::new(COUNTS);
    test.spec.orphan_resume_delay = SECOND / 2;
    let mut shim = test.launch();
    let pids = test.pids(2);
    done(&mut shim, &ShimCommand::Stop);
    drop(shim);
    until(|| pids.iter().all(|pid| !is_stopped(*pid)).then_some(()));
    let miserly_launch::FoundAttempt::Alive(mut shim) = test.find() else { panic!("it is lost") };
    assert_eq!(done(&mut shim, &ShimCommand::Status).phase, AttemptPhase::Running);
    kill(&mut shim);
}

#[test]
fn a_hung_shim_is_not_waited_for_for_ever() {
    let test = Test::new("sleep 100");
    let mut shim = test.launch();
    let pid = Pid::from_raw(shim.identity().pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    assert!(matches!(shim.request(&ShimCommand::Status), Err(CommandError::Silent)));
    kill_process(pid, Signal::CONT).unwrap();
    kill(&mut shim);
}

#[test]
fn a_shim_pays_no_heed_to_the_signals_of_a_terminal() {
    let test = Test::new("echo here; sleep 100");
    let mut shim = test.launch();
    test.wait_out("here");
    let pid = Pid::from_raw(shim.identity().pid.try_into().unwrap()).unwrap();
    for signal in [Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::PIPE, Signal::TSTP] {
        kill_process(pid, signal).unwrap();
    }
    assert_eq!(done(&mut shim, &ShimCommand::Status).phase, AttemptPhase::Running);
    kill(&mut shim);
}

#[test]
fn a_request_to_an_exited_shim_fails() {
    let test = Test::new("exit 0");
    let mut shim = test.launch();
    ended(&shim);
    assert!(gone(&shim));
    assert!(matches!(shim.request(&ShimCommand::Status), Err(CommandError::Gone)));
}
