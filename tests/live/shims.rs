//! Shims whose connection breaks, that are stopped, killed or terminated: their jobs still end, and in time.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use miserly_api::model::{Exit, KilledBy, LostBy, Phase, PromiseChangeReason, Submission};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Daemon, SOON, cpus, exact_queue, has_two_cpus, now, processes, queue, sh, until};

/// Longer than any end takes that the daemon notices by itself, and shorter than the jobs of these tests.
const PROMPT: Duration = Duration::from_secs(15);

/// Submits a job and waits until it has written its process number to `pid`.
fn started(daemon: &Daemon, script: &str, time: f64) -> (i64, u32) {
    let job = Submission {
        directory: daemon.path(""),
        no_opportunistic: true,
        ..sh(&format!("echo $$ > pid; {script}"), time)
    };
    let number = daemon.submit(&job);
    (number, daemon.pid_in("pid"))
}

/// Waits until a process has ended.
#[track_caller]
fn is_gone(pid: u32, what: &str) {
    until(what, SOON, || processes::state(pid).is_none_or(|state| state == "Z").then_some(()));
}

fn send(pid: Pid, signal: Signal) {
    kill_process(pid, signal).expect("a process that is there");
}

fn shim(daemon: &Daemon) -> Pid {
    let shims = processes::shims(&daemon.path(""));
    assert_eq!(shims.len(), 1, "one shim: {}", processes::describe(&daemon.path("")));
    shims[0]
}

#[track_caller]
fn check_prompt(began: Instant) {
    assert!(began.elapsed() < PROMPT, "it took {} s", began.elapsed().as_secs());
}

#[test]
fn a_cancel_works_although_somebody_else_has_taken_the_connection() {
    let daemon = Daemon::of_policy("miser");
    let (number, pid) = started(&daemon, "exec sleep 300", 600.0);
    let stranger = UnixStream::connect(daemon.state().join(format!("attempts/{number}.1/ctl")));
    let _stranger = stranger.expect("a shim that listens");
    std::thread::sleep(Duration::from_millis(300));
    let began = now();
    daemon.client().cancel(number, false).expect("it can be cancelled");
    until("it ends", PROMPT, || processes::state(pid).is_none().then_some(()));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::User, .. }), "{ended:?}");
}

#[test]
fn a_job_that_stops_its_shim_ends_with_its_window() {
    let daemon = Daemon::of_policy("miser");
    let began = now();
    let (number, pid) = started(&daemon, "kill -STOP $PPID; exec sleep 300", 3.0);
    until("it ends", PROMPT, || processes::state(pid).is_none().then_some(()));
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::Time, .. }), "{ended:?}");
    check_prompt(began);
}

#[test]
fn a_job_that_keeps_its_shim_stopped_ends_with_its_window() {
    let daemon = Daemon::of_policy("miser");
    let began = now();
    let script = "trap '' TERM; while :; do kill -STOP $PPID; done";
    let (number, pid) = started(&daemon, script, 3.0);
    until("it ends", PROMPT, || processes::state(pid).is_none().then_some(()));
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::Time, .. }), "{ended:?}");
    check_prompt(began);
}

#[test]
fn a_cancel_reaches_a_job_that_has_stopped_its_shim() {
    let daemon = Daemon::of_policy("miser");
    let (number, pid) = started(&daemon, "kill -STOP $PPID; exec sleep 300", 600.0);
    until("its shim is stopped", SOON, || {
        (processes::state(shim(&daemon).as_raw_nonzero().get().unsigned_abs())? == "T").then_some(())
    });
    daemon.client().cancel(number, false).expect("it can be cancelled");
    until("it ends", PROMPT, || processes::state(pid).is_none().then_some(()));
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::User, .. }), "{ended:?}");
}

/// The promised job needs all processors, and starts only when the overdue job has left them.
#[test]
fn a_promised_job_does_not_start_on_processors_that_an_overdue_job_holds() {
    let daemon = Daemon::of_policy("miser");
    let all = u64::try_from(cpus().len()).expect("a number of processors");
    let first = Submission {
        cpus: all,
        no_opportunistic: true,
        directory: daemon.path(""),
        ..sh("trap '' TERM; echo $$ > pid; while :; do kill -STOP $PPID; echo >> beats; done", 2.0)
    };
    let next = Submission {
        cpus: all,
        no_opportunistic: true,
        directory: daemon.path(""),
        ..sh("kill -0 $(cat pid) 2> /dev/null && exit 9; exit 0", 30.0)
    };
    let first = daemon.submit(&first);
    let next = daemon.submit(&next);
    let ended = daemon.wait(first).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::Time, .. }), "{ended:?}");
    let ended = daemon.wait(next).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(0), .. }), "{ended:?}");
}

#[test]
fn what_left_the_session_of_a_job_ends_when_its_shim_is_killed() {
    let daemon = Daemon::of_policy("miser");
    let script = "setsid sh -c 'echo $$ > left; exec sleep 300' & while [ ! -s left ]; do sleep 0.05; done; kill -9 $PPID; wait";
    let (number, pid) = started(&daemon, script, 600.0);
    let left = daemon.pid_in("left");
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Lost { why: LostBy::Shim, .. }), "{ended:?}");
    is_gone(pid, "the main process ends");
    is_gone(left, "the process that left ends");
}

#[test]
fn stopped_shims_do_not_delay_the_start_of_a_daemon() {
    let mut daemon = Daemon::of_policy("fcfs");
    let all = cpus().len().min(3);
    let job = Submission { no_opportunistic: true, ..sh("exec sleep 300", 600.0) };
    let jobs: Vec<i64> = (0..all).map(|_| daemon.submit(&job)).collect();
    let shims = until("they run", SOON, || {
        let shims = processes::shims(&daemon.path(""));
        let records =
            jobs.iter().all(|job| daemon.state().join(format!("attempts/{job}.1/started.json")).exists());
        (records && shims.len() == all).then_some(shims)
    });
    daemon.kill();
    for shim in &shims {
        send(*shim, Signal::STOP);
    }
    let began = now();
    daemon.start();
    assert!(began.elapsed() < Duration::from_secs(9), "{:?}", began.elapsed());
    for job in jobs {
        daemon.client().cancel(job, false).expect("it can be cancelled");
        let ended = daemon.wait(job).phase;
        assert!(matches!(ended, Phase::Killed { by: KilledBy::User, .. }), "{ended:?}");
    }
}

/// The parser of the command line alone would take more than a megabyte.
#[test]
fn the_whole_program_is_a_small_shim() {
    let daemon = Daemon::asleep(&queue("miser"));
    let program = daemon.path("miserly");
    fs::copy(env!("CARGO_BIN_EXE_miserly"), &program).expect("a copy of the program");
    let mut copy = Command::new(&program);
    copy.args(daemon.command(&[]).get_args())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut process = copy.spawn().expect("a program that starts");
    let status = until("the daemon answers", SOON, || daemon.client().status().ok());
    let note = status.launcher.iter().find(|note| note.contains("miserly-shim")).expect("a note");
    assert!(note.contains("put miserly-shim of the same build beside it"), "{note}");
    let (number, _) = started(&daemon, "exec sleep 300", 600.0);
    let maps =
        fs::read_to_string(format!("/proc/{}/smaps", shim(&daemon).as_raw_nonzero())).expect("its memory");
    let (mut own, mut is_own) = (0, false);
    for line in maps.lines() {
        let (first, rest) = line.split_once(' ').unwrap_or_default();
        if first.contains('-') {
            is_own = rest.ends_with("[heap]") || rest.ends_with("[stack]");
        } else if first == "Private_Dirty:" && is_own {
            own += rest.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
        }
    }
    daemon.client().cancel(number, false).expect("it can be cancelled");
    daemon.wait(number);
    process.kill().expect("a child");
    process.wait().expect("a child");
    assert!((1..400).contains(&own), "{own} kB of heap and stack");
}

/// As if an upgrade had replaced it with a program that is none.
#[test]
fn a_daemon_whose_program_was_replaced_still_runs_jobs() {
    let daemon = Daemon::asleep(&queue("miser"));
    let program = daemon.path("miserly");
    fs::copy(env!("CARGO_BIN_EXE_miserly"), &program).expect("a copy of the program");
    let command = daemon.command(&[]);
    let mut copy = Command::new(&program);
    copy.args(command.get_args()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = copy.spawn().expect("a program that starts");
    let status = until("the daemon answers", SOON, || daemon.client().status().ok());
    assert!(status.launcher.iter().any(|note| note.contains("miserly-shim")), "{:?}", status.launcher);
    fs::remove_file(&program).expect("a file that can be removed");
    fs::write(&program, "no program").expect("a file that can be written");
    let number = daemon.submit(&sh("exit 7", 600.0));
    let ended = daemon.wait(number).phase;
    process.kill().expect("a child");
    process.wait().expect("a child");
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
}

/// Sends `SIGTERM` to all shims and jobs of a daemon, as an orderly shutdown does.
fn terminate_all(daemon: &Daemon) {
    let mut all = processes::of_daemon(&daemon.path(""));
    // The jobs first: their shims may see the ends before their own signals.
    all.sort_by_key(|pid| std::cmp::Reverse(pid.as_raw_nonzero()));
    for pid in all {
        // A process may have ended because of the others.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Waits until no process of a daemon is left.
fn is_quiet(daemon: &Daemon) {
    until("all processes end", SOON, || processes::of_daemon(&daemon.path("")).is_empty().then_some(()));
}

/// Returns a job that signs its attempt and then sleeps, only in its first attempt.
fn signs(daemon: &Daemon, restartable: bool) -> Submission {
    let script = "echo $MISERLY_JOB_ID $MISERLY_ATTEMPT >> ran; [ $MISERLY_ATTEMPT -gt 1 ] || exec sleep 300";
    Submission { directory: daemon.path(""), no_opportunistic: true, restartable, ..sh(script, 600.0) }
}

fn ran(daemon: &Daemon) -> Vec<String> {
    let text = fs::read_to_string(daemon.path("ran")).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

/// Runs a restartable job and one that is not, one after the other.
fn shutdown(daemon: &mut Daemon, restartable: bool, end: impl Fn(&mut Daemon)) -> (i64, Phase) {
    let number = daemon.submit(&signs(daemon, restartable));
    until("it runs", SOON, || (ran(daemon) == [format!("{number} 1")]).then_some(()));
    end(daemon);
    is_quiet(daemon);
    daemon.start();
    (number, daemon.wait(number).phase)
}

/// Everything is terminated at once, also the daemon.
fn reboot(daemon: &mut Daemon) {
    let pid = daemon.pid().expect("a daemon");
    terminate_all(daemon);
    let _ = kill_process(pid, Signal::TERM);
    daemon.stop();
}

/// The daemon is stopped before its jobs are terminated.
fn stop_session(daemon: &mut Daemon) {
    daemon.stop();
    terminate_all(daemon);
}

#[test]
fn a_restartable_job_runs_again_after_an_orderly_reboot() {
    for end in [reboot, stop_session] {
        let mut daemon = Daemon::of_policy("miser");
        let (number, phase) = shutdown(&mut daemon, true, end);
        assert!(matches!(phase, Phase::Done { exit: Exit::Code(0), .. }), "{phase:?}");
        // The second attempt never ran if the daemon launched it during the shutdown.
        let ran = ran(&daemon);
        assert!(ran.len() == 2 && ran[0] == format!("{number} 1"), "{ran:?}");
    }
}

#[test]
fn a_job_that_is_not_restartable_is_killed_by_an_orderly_shutdown() {
    for end in [reboot, stop_session] {
        let mut daemon = Daemon::of_policy("miser");
        let (number, phase) = shutdown(&mut daemon, false, end);
        assert!(format!("{phase:?}").contains("Shutdown"), "{phase:?}");
        assert_eq!(ran(&daemon), [format!("{number} 1")]);
    }
}

#[test]
fn a_job_runs_on_when_only_its_daemon_is_stopped() {
    let mut daemon = Daemon::of_policy("miser");
    let (number, pid) = started(&daemon, "while [ ! -e go ]; do sleep 0.05; done; exit 7", 600.0);
    daemon.stop();
    daemon.start();
    assert_eq!(daemon.pid_in("pid"), pid);
    fs::write(daemon.path("go"), "").expect("a file");
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
}

/// Returns whether an attempt of a job has a folder.
fn has_begun(daemon: &Daemon, job: i64) -> bool {
    daemon.state().join(format!("attempts/{job}.1")).exists()
}

/// Checks that a job was late because of a shutdown.
#[track_caller]
fn check_late_by_shutdown(daemon: &Daemon, job: i64, at_least: f64) {
    let ended = daemon.wait(job);
    assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
    let late = ended.late.expect("it started late");
    assert_eq!(late.why, PromiseChangeReason::Shutdown, "{late:?}");
    assert!(late.by >= at_least, "{late:?}");
}

#[test]
fn no_attempt_begins_after_a_power_failure_and_the_delay_has_its_cause() {
    let daemon = Daemon::new(&exact_queue("miser"));
    send(daemon.pid().expect("a daemon"), Signal::POWER);
    until("it has the signal", SOON, || daemon.log().contains("SIGPWR").then_some(()));
    let job = daemon.submit(&Submission { no_opportunistic: true, ..sh("exit 7", 60.0) });
    std::thread::sleep(Duration::from_secs(2));
    assert!(!has_begun(&daemon, job));
    // The machine did not shut down.
    check_late_by_shutdown(&daemon, job, 5.0);
}

#[test]
fn no_attempt_begins_while_shims_are_terminated_and_the_next_daemon_starts_the_job_late() {
    if !has_two_cpus() {
        return;
    }
    let mut daemon = Daemon::new(&exact_queue("miser"));
    let (first, _) = started(&daemon, "exec sleep 300", 600.0);
    send(shim(&daemon), Signal::TERM);
    let ended = daemon.wait(first).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::Shutdown, .. }), "{ended:?}");
    let job = daemon.submit(&Submission { no_opportunistic: true, ..sh("exit 7", 60.0) });
    std::thread::sleep(Duration::from_secs(1));
    assert!(!has_begun(&daemon, job));
    daemon.stop();
    daemon.start();
    check_late_by_shutdown(&daemon, job, 0.5);
}

#[test]
fn a_variable_that_is_no_text_reaches_the_job() {
    let daemon = Daemon::of_policy("miser");
    let out = daemon.path("odd");
    let mut submit = Command::new(env!("CARGO_BIN_EXE_miserly"));
    submit.arg("submit").arg("--socket").arg(&daemon.socket).args([
        "--time",
        "60",
        "--wait",
        "-o",
        "/dev/null",
    ]);
    submit.arg("/bin/sh").args(["-c", "printf %s \"$ODD\" > \"$0\""]).arg(&out);
    submit.current_dir(daemon.path("")).env("ODD", OsStr::from_bytes(b"a\xff/b"));
    let status = submit.stdin(Stdio::null()).stdout(Stdio::null()).status().expect("a program that starts");
    assert_eq!(status.code(), Some(0));
    assert_eq!(fs::read(out).expect("a file"), b"a\xff/b");
}
