//! The programs of a queue.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use miserly_cgroup::Capability;
use miserly_launch::{
    AttemptEnd, AttemptPhase, BootTime, EndCause, Exit, FoundAttempt, MachineClock as _, ProgramFailure,
    QueueProgram, QueuePrograms, RunMode, Shim, ShimCommand, ShimRefusal, ShimReply, StartFailure,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{SECOND, SOON, Test, alive, cpus, done, ended, kill, shims, until};

fn program(script: &str) -> QueueProgram {
    let argv = ["/bin/sh", "-c", script].map(Into::into).to_vec();
    QueueProgram { path: "/bin/sh".into(), argv, limit: SOON }
}

/// Returns an attempt of a script with these programs. All three run with the folder of the test in `$T`.
fn test(prolog: &str, script: &str, epilog: &str) -> Test {
    let mut test = Test::new(script);
    let env = vec![("T".into(), test.folder.path().into()), ("PATH".into(), "/usr/bin:/bin".into())];
    test.spec.env.clone_from(&env);
    let of = |script: &str| (!script.is_empty()).then(|| program(script));
    test.spec.queue_programs =
        Some(QueuePrograms { env, prolog: of(prolog), epilog: of(epilog), checkpoint: None });
    test
}

/// Returns an attempt of a script that waits beside a child, with this checkpoint command.
fn with_checkpoint(script: &str) -> Test {
    let waits = "sleep 1000 & echo $! > $T/child; echo $$ > $T/job; exec sleep 1000";
    let mut test = test("", waits, "");
    programs(&mut test).checkpoint = Some(program(script));
    test
}

/// Asks for a checkpoint of a job that runs, in a time. Returns the end of the job, of which no process is left.
fn written_out(test: &Test, time: Duration) -> AttemptEnd {
    let mut shim = test.launch();
    let job = pid(test, "job");
    let state = done(&mut shim, &ShimCommand::Checkpoint { until: BootTime::now().after(time) });
    assert_eq!(state.phase, AttemptPhase::Ending(Some(EndCause::User)));
    let end = ended(&shim);
    assert!(!alive(job) && !alive(pid(test, "child")));
    end
}

fn programs(test: &mut Test) -> &mut QueuePrograms {
    test.spec.queue_programs.as_mut().unwrap()
}

/// Returns a file of a test.
fn read(test: &Test, name: &str) -> String {
    fs::read_to_string(test.folder.path().join(name)).unwrap_or_default()
}

/// Waits for the number in a file of a test.
#[track_caller]
fn pid(test: &Test, name: &str) -> u32 {
    until(|| read(test, name).strip_suffix('\n')?.parse().ok())
}

/// Returns the failure of a prolog after which the command did not run.
#[track_caller]
fn failed(end: &AttemptEnd, test: &Test) -> ProgramFailure {
    assert_eq!(read(test, "ran"), "");
    match &end.exit {
        Exit::Failed(StartFailure::Prolog(failure)) => failure.clone(),
        other => panic!("{other:?}"),
    }
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
}

const RUN: &str = "echo ran >> $T/ran";
/// Writes the number of the shell to a file and sleeps.
const WAIT_PROLOG: &str = "echo $$ > $T/prolog; exec sleep 1000";
const WAIT_EPILOG: &str = "echo $$ > $T/epilog; exec sleep 1000";

#[test]
fn the_prolog_ends_before_the_command_and_the_job_before_the_epilog() {
    let script = "echo job >> $T/order; sleep 1000 & echo $! > $T/left";
    let epilog =
        "echo epilog >> $T/order; kill -0 $(cat $T/left) 2> /dev/null && echo alive >> $T/order; true";
    let test = test("sleep 0.1; echo prolog >> $T/order", script, epilog);
    let end = test.run();
    assert_eq!((&end.exit, end.cause), (&Exit::Code(0), None));
    assert_eq!(read(&test, "order"), "prolog\njob\nepilog\n");
    let [prolog, epilog] = [end.prolog, end.epilog].map(Option::unwrap);
    assert_eq!((prolog.failure, epilog.failure), (None, None));
}

#[test]
fn after_a_failed_prolog_the_command_does_not_run_and_the_epilog_does() {
    let not_there = "/no/such/program";
    for (prolog, expect) in
        [("echo no device >&2; exit 3", ProgramFailure::Code(3)), ("kill -9 $$", ProgramFailure::Signal(9))]
    {
        let test = test(prolog, RUN, "echo cleaned >> $T/epilog");
        let end = test.run();
        assert_eq!(failed(&end, &test), expect);
        assert_eq!(read(&test, "epilog"), "cleaned\n");
        let output = end.prolog.unwrap().output;
        assert_eq!(output, if prolog.contains("echo") { "no device" } else { "" });
    }
    let mut test = test("true", RUN, "");
    programs(&mut test).prolog.as_mut().unwrap().path = not_there.into();
    let end = test.run();
    assert!(failed(&end, &test).to_string().contains(not_there), "{end:?}");
}

#[test]
fn a_program_that_others_may_change_is_not_run() {
    let mut test = test("true", RUN, "");
    let path = test.folder.path().join("program");
    fs::write(&path, "#!/bin/sh\necho ran >> $T/ran\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    programs(&mut test).prolog.as_mut().unwrap().path = path;
    let end = test.run();
    assert!(failed(&end, &test).to_string().contains("chmod go-w"), "{end:?}");
}

#[test]
fn a_prolog_over_its_time_is_killed_with_all_its_processes() {
    let mut test = test("setsid sleep 1000 & echo $! > $T/child; trap '' TERM; sleep 1000", RUN, "");
    let limit = Duration::from_millis(500);
    programs(&mut test).prolog.as_mut().unwrap().limit = limit;
    let end = test.run();
    assert_eq!(failed(&end, &test), ProgramFailure::TimeLimit { limit });
    assert!(!alive(pid(&test, "child")));
}

#[test]
fn what_a_prolog_leaves_is_gone_before_the_command() {
    let script = "kill -0 $(cat $T/child) 2> /dev/null && echo alive; true";
    let test = test("setsid sleep 1000 & echo $! > $T/child", script, "");
    assert_eq!(test.run().exit, Exit::Code(0));
    assert_eq!((test.out(), alive(pid(&test, "child"))), (String::new(), false));
}

#[test]
fn a_failed_epilog_changes_no_outcome() {
    for (epilog, limit, expect) in [
        ("echo dirty; exit 4", SOON, ProgramFailure::Code(4)),
        ("echo dirty; sleep 1000", SECOND / 2, ProgramFailure::TimeLimit { limit: SECOND / 2 }),
    ] {
        let mut test = test("", "exit 7", epilog);
        programs(&mut test).epilog.as_mut().unwrap().limit = limit;
        let end = test.run();
        assert_eq!((end.exit, end.cause), (Exit::Code(7), None));
        let report = end.epilog.unwrap();
        assert_eq!((report.failure, report.output.as_str()), (Some(expect), "dirty"));
    }
}

#[test]
fn a_program_has_its_own_environment_and_none_of_the_job() {
    let mut test = test("env > $T/env; cat > $T/input; pwd > $T/cwd; umask > $T/umask", RUN, "");
    test.spec.env.push(("SECRET".into(), "of the job".into()));
    test.spec.umask = 0o077;
    assert_eq!(test.run().exit, Exit::Code(0));
    let env = read(&test, "env");
    assert!(env.contains("T=/") && !env.contains("SECRET"), "{env}");
    assert_eq!([read(&test, "input"), read(&test, "cwd"), read(&test, "umask")], ["", "/\n", "0022\n"]);
}

#[test]
fn programs_run_on_the_processors_of_the_job_and_not_in_its_group() {
    let look = |name: &str| {
        format!("grep Cpus_allowed_list /proc/self/status > $T/{name}; cat /proc/self/cgroup >> $T/{name}")
    };
    let mut test = test(&look("prolog"), "true", &look("epilog"));
    let last = *cpus().last().unwrap();
    test.spec.mode = RunMode::Reserved { cpus: vec![last], end: BootTime::now().after(SOON) };
    assert_eq!(test.run().exit, Exit::Code(0));
    let group = format!("/{}.1", test.spec.job);
    for name in ["prolog", "epilog"] {
        let found = read(&test, name);
        assert!(!found.contains(&group), "{found}");
        let on_cpu = found.starts_with(&format!("Cpus_allowed_list:\t{last}\n"));
        assert!(on_cpu || test.group_can(Capability::Cpus), "{found}");
    }
}

/// Returns an attempt whose prolog waits.
fn in_prolog() -> (Test, Shim, u32) {
    let test = test(WAIT_PROLOG, RUN, "echo cleaned >> $T/cleaned");
    let shim = test.launch();
    let prolog = pid(&test, "prolog");
    (test, shim, prolog)
}

#[test]
fn a_cancelled_job_ends_in_its_prolog_and_is_cleaned() {
    let (test, mut shim, prolog) = in_prolog();
    assert_eq!(done(&mut shim, &ShimCommand::Status).phase, AttemptPhase::Starting);
    done(&mut shim, &ShimCommand::Kill { grace: SECOND });
    let end = ended(&shim);
    assert_eq!((end.exit, end.cause), (Exit::Failed(StartFailure::Ended), Some(EndCause::User)));
    assert!(!alive(prolog));
    assert_eq!((read(&test, "ran"), read(&test, "cleaned")), (String::new(), "cleaned\n".to_owned()));
}

#[test]
fn the_prolog_is_part_of_the_window() {
    let (test, mut shim, _) = in_prolog();
    done(&mut shim, &ShimCommand::SetEnd { end: BootTime::now().after(SECOND), max_after_resume: None });
    let end = ended(&shim);
    assert_eq!((failed(&end, &test), end.cause), (ProgramFailure::Window, Some(EndCause::Time)));
    assert_eq!(read(&test, "cleaned"), "cleaned\n");
}

#[test]
fn a_shutdown_in_the_prolog_is_the_cause_of_the_end() {
    // Each process may get the signal first.
    for first in 0..3 {
        let (_test, shim, prolog) = in_prolog();
        match first {
            0 => {}
            1 => send(prolog, Signal::TERM),
            _ => send(shim.start().unwrap().unwrap().main.pid, Signal::TERM),
        }
        send(shim.identity().pid, Signal::TERM);
        let end = ended(&shim);
        assert!(matches!(end.exit, Exit::Failed(_)), "{end:?}");
        assert_eq!(end.cause, Some(EndCause::Shutdown));
    }
}

#[test]
fn a_stopped_job_begins_after_its_prolog_when_it_is_resumed() {
    let prolog = "echo $$ > $T/prolog; until test -e $T/go; do sleep 0.01; done; echo end > $T/ended";
    let test = test(prolog, RUN, "");
    let mut shim = test.launch();
    let runner = pid(&test, "prolog");
    assert_eq!(done(&mut shim, &ShimCommand::Stop).phase, AttemptPhase::Stopped);
    fs::write(test.folder.path().join("go"), "").unwrap();
    until(|| (!alive(runner)).then_some(()));
    assert_eq!(read(&test, "ended"), "end\n");
    assert_eq!(done(&mut shim, &ShimCommand::Status).phase, AttemptPhase::Stopped);
    assert_eq!(read(&test, "ran"), "");
    done(&mut shim, &ShimCommand::Resume);
    assert_eq!((ended(&shim).exit, read(&test, "ran")), (Exit::Code(0), "ran\n".to_owned()));
}

#[test]
fn a_stopped_job_whose_prolog_fails_has_ended() {
    let prolog = "echo $$ > $T/prolog; until test -e $T/go; do sleep 0.01; done; exit 5";
    let test = test(prolog, RUN, "");
    let mut shim = test.launch();
    pid(&test, "prolog");
    assert_eq!(done(&mut shim, &ShimCommand::Stop).phase, AttemptPhase::Stopped);
    fs::write(test.folder.path().join("go"), "").unwrap();
    assert_eq!(failed(&ended(&shim), &test), ProgramFailure::Code(5));
}

#[test]
fn no_command_and_no_deadline_ends_an_epilog() {
    let mut test = test("", "true", "echo $$ > $T/epilog; until test -e $T/go; do sleep 0.01; done");
    test.spec.mode = RunMode::Reserved { cpus: cpus(), end: BootTime::now().after(5 * SECOND) };
    test.spec.grace = Duration::ZERO;
    let mut shim = test.launch();
    let epilog = pid(&test, "epilog");
    let kill = shim.request(&ShimCommand::Kill { grace: Duration::ZERO }).unwrap();
    assert_eq!(kill, ShimReply::Refused(ShimRefusal::Ending));
    assert_eq!(done(&mut shim, &ShimCommand::Status).phase, AttemptPhase::Ending(None));
    let RunMode::Reserved { end, .. } = test.spec.mode else { unreachable!() };
    until(|| (BootTime::now() > end.after(SECOND / 5)).then_some(()));
    assert!(alive(epilog));
    fs::write(test.folder.path().join("go"), "").unwrap();
    let end = ended(&shim);
    assert_eq!((end.exit, end.cause, end.epilog.unwrap().failure), (Exit::Code(0), None, None));
}

#[test]
fn programs_without_their_shim_are_killed_and_not_repeated() {
    for (prolog, epilog, name) in [(WAIT_PROLOG, "", "prolog"), ("", WAIT_EPILOG, "epilog")] {
        let test = test(prolog, RUN, epilog);
        let mut shim = test.launch();
        let waits = pid(&test, name);
        send(shim.identity().pid, Signal::KILL);
        crate::support::gone(&shim);
        for _ in 0..2 {
            assert!(matches!(test.find(), FoundAttempt::Lost(_)));
            assert!(!alive(waits));
        }
        assert!(shim.request(&ShimCommand::Status).is_err());
        until(|| shims(&test.dir()).is_empty().then_some(()));
        assert_eq!(read(&test, "ran").is_empty(), name == "prolog");
    }
}

#[test]
fn an_epilog_whose_runner_is_killed_has_failed_and_leaves_nothing() {
    let test = test("", "true", WAIT_EPILOG);
    let mut shim = test.launch();
    let epilog = pid(&test, "epilog");
    let runner: u32 = crate::support::stat(epilog).unwrap()[1].parse().unwrap();
    assert_ne!(runner, shim.identity().pid);
    send(runner, Signal::KILL);
    let end = ended(&shim);
    assert_eq!((end.exit, end.epilog.unwrap().failure), (Exit::Code(0), Some(ProgramFailure::Killed)));
    assert!(!alive(epilog));
    assert!(shim.request(&ShimCommand::Status).is_err());
}

#[test]
fn the_daemon_can_kill_a_prolog_at_once() {
    let (test, mut shim, prolog) = in_prolog();
    kill(&mut shim);
    assert!(!alive(prolog));
    assert_eq!(read(&test, "cleaned"), "cleaned\n");
}

#[test]
fn a_checkpoint_command_runs_beside_the_job_which_is_killed_after_it() {
    let looks = "kill -0 $MISERLY_PID && test $MISERLY_PID = $(cat $T/job) && echo saved > $T/saved";
    let test = with_checkpoint(looks);
    let end = written_out(&test, SOON);
    assert_eq!((end.exit, end.cause), (Exit::Signal { signal: 9, core: false }, Some(EndCause::User)));
    assert_eq!((end.checkpoint.unwrap().failure, read(&test, "saved")), (None, "saved\n".to_owned()));
}

#[test]
fn a_checkpoint_command_that_fails_or_is_late_ends_the_job_and_says_so() {
    let failed = written_out(&with_checkpoint("echo no room; exit 5"), SOON).checkpoint.unwrap();
    assert_eq!((failed.failure, failed.output.as_str()), (Some(ProgramFailure::Code(5)), "no room"));
    let test = with_checkpoint("echo $$ > $T/saver; exec sleep 1000");
    let late = written_out(&test, SECOND).checkpoint.unwrap().failure;
    assert!(matches!(late, Some(ProgramFailure::TimeLimit { limit }) if limit <= SECOND), "{late:?}");
    assert!(!alive(pid(&test, "saver")));
    let none = written_out(&test_without_checkpoint(), SOON).checkpoint.unwrap().failure.unwrap();
    assert!(none.to_string().contains("the queue had none"), "{none}");
}

fn test_without_checkpoint() -> Test {
    let mut test = with_checkpoint("true");
    test.spec.queue_programs.as_mut().unwrap().checkpoint = None;
    test
}

#[test]
fn a_checkpoint_command_may_end_the_job_itself_and_a_stopped_job_runs_beside_it() {
    let test = with_checkpoint("kill -9 $MISERLY_PID; sleep 0.2; echo saved > $T/saved");
    let end = written_out(&test, SOON);
    assert_eq!((end.checkpoint.unwrap().failure, read(&test, "saved")), (None, "saved\n".to_owned()));
    let test = with_checkpoint("until grep -q 'State:.S' /proc/$MISERLY_PID/status; do sleep 0.01; done");
    let mut shim = test.launch();
    pid(&test, "job");
    assert_eq!(done(&mut shim, &ShimCommand::Stop).phase, AttemptPhase::Stopped);
    done(&mut shim, &ShimCommand::Checkpoint { until: BootTime::now().after(SOON) });
    assert_eq!(ended(&shim).checkpoint.unwrap().failure, None);
}

#[test]
fn a_kill_ends_a_checkpoint_and_a_job_that_has_not_begun_has_none() {
    let test = with_checkpoint("echo $$ > $T/saver; exec sleep 1000");
    let mut shim = test.launch();
    pid(&test, "job");
    done(&mut shim, &ShimCommand::Checkpoint { until: BootTime::now().after(SOON) });
    pid(&test, "saver");
    let again = shim.request(&ShimCommand::Checkpoint { until: BootTime::now() }).unwrap();
    assert_eq!(again, ShimReply::Refused(ShimRefusal::Ending));
    done(&mut shim, &ShimCommand::Kill { grace: Duration::ZERO });
    assert_eq!(ended(&shim).checkpoint.unwrap().failure, Some(ProgramFailure::Killed));
    let (_test, mut shim, _) = in_prolog();
    done(&mut shim, &ShimCommand::Checkpoint { until: BootTime::now().after(SOON) });
    let end = ended(&shim);
    assert_eq!(end.exit, Exit::Failed(StartFailure::Ended));
    assert!(end.checkpoint.unwrap().failure.is_some());
}
