//! Shims whose connection breaks, that are stopped or terminated: their jobs still end.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::model::{Exit, JobView, KilledBy, Phase, PromiseChangeReason, Submission};
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    Daemon, SOON, cpus, exact_queue, kept_but_for_stalls, miserly, processes, queue, sh, until,
};

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

fn shim(daemon: &Daemon) -> Pid {
    let shims = processes::shims(&daemon.path(""));
    assert_eq!(shims.len(), 1, "one shim: {}", processes::describe(&daemon.path("")));
    shims[0]
}

#[test]
fn a_cancel_works_although_somebody_else_has_taken_the_connection() {
    let daemon = Daemon::of_policy("miser");
    let (number, pid) = started(&daemon, "exec sleep 300", 600.0);
    let stranger = UnixStream::connect(daemon.state().join(format!("attempts/{number}.1/ctl")));
    let _stranger = stranger.expect("a shim that listens");
    daemon.client().cancel(number, false).expect("it can be cancelled");
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::User, .. }), "{ended:?}");
    is_gone(pid, "it ends");
}

#[test]
fn a_cancel_reaches_a_job_that_has_stopped_its_shim() {
    let daemon = Daemon::of_policy("miser");
    let (number, pid) = started(&daemon, "kill -STOP $PPID; exec sleep 300", 600.0);
    until("its shim is stopped", SOON, || {
        (processes::state(shim(&daemon).as_raw_nonzero().get().unsigned_abs())? == "T").then_some(())
    });
    daemon.client().cancel(number, false).expect("it can be cancelled");
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::User, .. }), "{ended:?}");
    is_gone(pid, "it ends");
}

/// The first job keeps its shim stopped. The promised job needs all processors, and starts only when the overdue job has left them.
#[test]
fn a_promised_job_does_not_start_on_processors_that_an_overdue_job_holds() {
    let daemon = Daemon::of_policy("miser");
    let all = u64::try_from(cpus().len()).expect("a number of processors");
    let first = Submission {
        cpus: all,
        no_opportunistic: true,
        directory: daemon.path(""),
        ..sh("trap '' TERM; echo $$ > pid; while :; do kill -STOP $PPID; done", 1.0)
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

/// The parser of the command line alone would take more than a megabyte. The daemon runs its jobs by the program that it began as,
/// also if an upgrade has replaced the file.
#[test]
fn the_whole_program_is_a_small_shim_also_after_it_was_replaced() {
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
    fs::remove_file(&program).expect("a file that can be removed");
    fs::write(&program, "no program").expect("a file that can be written");
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

/// The engine's tests have the time for which no attempt begins.
#[test]
fn no_attempt_begins_while_shims_are_terminated_and_the_next_daemon_starts_the_job_late() {
    let mut daemon = Daemon::with_faults(&exact_queue("miser"));
    let (first, _) = started(&daemon, "exec sleep 300", 600.0);
    kill_process(shim(&daemon), Signal::TERM).expect("a process that is there");
    let ended = daemon.wait(first).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::Shutdown, .. }), "{ended:?}");
    let job = daemon.submit(&Submission { no_opportunistic: true, ..sh("exit 7", 60.0) });
    daemon.stop();
    assert!(!daemon.state().join(format!("attempts/{job}.1")).exists());
    daemon.set_ahead(60.0);
    daemon.start();
    let ended = daemon.wait(job);
    assert!(matches!(ended.phase, Phase::Done { exit: Exit::Code(7), .. }), "{ended:?}");
    let late = ended.late.expect("it started late");
    assert!(late.why == PromiseChangeReason::Shutdown && late.by > 50.0, "{late:?}");
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

/// A daemon whose shims wait, with a job on all processors until it is killed after four seconds, and three promised ones behind
/// it. Each of these writes its start into a file of its name, in nanoseconds, and runs until it is killed after a second.
fn with_waiting_shims() -> (Daemon, Vec<JobView>) {
    let daemon =
        Daemon::new(&format!("waiting-shims = 256\nwaiting-shims-per-cpu = 3\n{}", exact_queue("miser")));
    let all = u64::try_from(cpus().len()).expect("a number of processors");
    let job = |script: &str, time| Submission {
        cpus: all,
        no_opportunistic: true,
        directory: daemon.path(""),
        ..sh(script, time)
    };
    daemon.submit(&job("exec sleep 300", 4.0));
    let next = ["one", "two", "three"]
        .map(|name| daemon.submit(&job(&format!("date +%s%N > {name}; exec sleep 300"), 1.0)));
    until("three shims wait", SOON, || {
        let waits = daemon.client().status().expect("a status").waiting_shims == 3;
        (waits && processes::shims(&daemon.path("")).len() == 4).then_some(())
    });
    let jobs = next.map(|job| daemon.job(job)).to_vec();
    (daemon, jobs)
}

#[test]
fn promised_jobs_start_at_their_promises_without_a_daemon() {
    let (mut daemon, promised) = with_waiting_shims();
    assert_eq!(daemon.client().status().expect("a status").needs_daemon_from, None);
    daemon.kill();
    for (name, job) in ["one", "two", "three"].iter().zip(&promised) {
        let start: i128 =
            until("it starts", SOON, || fs::read_to_string(daemon.path(name)).ok()?.trim().parse().ok());
        let start = Timestamp::from_nanosecond(start).expect("a time");
        let promise = job.promise.as_ref().expect("miser promises").promised.start;
        assert!(start >= promise, "{start} is before {promise}");
    }
    daemon.start();
    for job in promised {
        let ended = daemon.wait(job.number);
        assert!(matches!(ended.phase, Phase::Killed { by: KilledBy::Time, .. }), "{ended:?}");
        assert_eq!(ended.runs, 1);
        kept_but_for_stalls(&ended);
    }
}

/// Prints the time of the daemon, and of the next start, after the end of a job before 3 and 250 waiting shims.
#[test]
#[ignore = "a measurement: cargo test --features full --test live -- --ignored --nocapture measured_cost_of_an_early_end"]
fn measured_cost_of_an_early_end() {
    for (per_cpu, least) in [(2, 3), (128, 240)] {
        let daemon = Daemon::new(&format!(
            "opportunistic = false\nwaiting-shims-per-cpu = {per_cpu}\n{}horizon = \"30d\"\n",
            exact_queue("miser")
        ));
        let running = cpus().iter().map(|_| daemon.submit(&sh("exec sleep 600", 700.0))).collect::<Vec<_>>();
        let times = (0..258).map(|nth| 60.0 + f64::from(nth * 37 % 600));
        let waiting: Vec<i64> = times.map(|time| daemon.submit(&sh("exec sleep 1000", time))).collect();
        let shims = until("the shims wait", SOON, || {
            let waits = daemon.client().status().expect("a status").waiting_shims;
            (waits >= least).then_some(waits)
        });
        let used = || -> u64 {
            let pid = daemon.pid().expect("a daemon").as_raw_nonzero().get().unsigned_abs();
            let field = |nth| processes::stat(pid, nth).and_then(|text| text.parse::<u64>().ok());
            field(14).zip(field(15)).map(|(user, system)| user + system).expect("its times")
        };
        let (before, asked) = (used(), Timestamp::now());
        daemon.client().cancel(running[0], false).expect("it can be cancelled");
        until("the next job starts", SOON, || {
            waiting.iter().any(|job| matches!(daemon.job(*job).phase, Phase::Running(_))).then_some(())
        });
        let start = Timestamp::now().duration_since(asked);
        thread::sleep(Duration::from_secs(3));
        println!(
            "{shims} shims: the next start after {start:#}, {} ticks of processor time",
            used() - before
        );
    }
}

#[test]
fn nothing_starts_without_a_daemon_that_was_stopped_with_hold() {
    let (mut daemon, promised) = with_waiting_shims();
    let stopped = miserly(&["stop", "--hold", "--socket", &daemon.socket.display().to_string()]);
    assert!(stopped.status.success(), "{stopped:?}");
    daemon.stop();
    assert_eq!(processes::shims(&daemon.path("")).len(), 1, "{}", processes::describe(&daemon.path("")));
    let last = promised.last().and_then(|job| job.promise.as_ref()).expect("miser promises").promised.end;
    until("the promises have passed", SOON, || (Timestamp::now() > last).then_some(()));
    assert!(!daemon.path("one").exists());
    daemon.start();
    for job in promised {
        let ended = daemon.wait(job.number);
        assert!(matches!(ended.phase, Phase::Killed { by: KilledBy::Time, .. }), "{ended:?}");
    }
}
