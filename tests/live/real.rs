//! Real processes: where they run, how they end, and what they are given.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use miserly_api::model::{Array, Exit, Failure, JobView, KilledBy, Phase, Submission, UsageSource};

use crate::support::{Daemon, SOON, processes, sh, until};

#[track_caller]
fn exit_of(job: &JobView) -> Exit {
    match job.phase {
        Phase::Done { exit, .. } => exit,
        ref other => panic!("job {} came to {other:?}", job.number),
    }
}

#[test]
fn codes_and_signals_are_those_of_the_job() {
    let daemon = Daemon::of_policy("miser");
    for (script, exit) in [
        ("exit 0", Exit::Code(0)),
        ("exit 42", Exit::Code(42)),
        ("exit 255", Exit::Code(255)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -USR1 $$", Exit::Signal(10)),
    ] {
        let number = daemon.submit(&sh(script, 20.0));
        assert_eq!(exit_of(&daemon.wait(number)), exit, "{script}");
    }
}

#[test]
fn what_a_job_used_is_known_also_if_no_daemon_saw_its_end() {
    let mut daemon = Daemon::of_policy("miser");
    let burn = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let seen = daemon.submit(&sh(burn, 60.0));
    let used = daemon.wait(seen).usage.expect("its usage");
    assert!(used.total.user > 0.0 && used.total.memory_peak > Some(100_000), "{used:?}");
    assert_eq!((used.total.source, used.attempts.len()), (UsageSource::Processes, 1));
    let script = format!("echo >began; {burn}; echo >done");
    let job = Submission { directory: daemon.path(""), no_opportunistic: true, ..sh(&script, 60.0) };
    let unseen = daemon.submit(&job);
    until("it begins", SOON, || daemon.path("began").exists().then_some(()));
    daemon.kill();
    until("it ends", SOON, || daemon.path("done").exists().then_some(()));
    daemon.start();
    let used = daemon.wait(unseen).usage.expect("its usage");
    assert!(used.total.user > 0.0, "{used:?}");
}

#[test]
fn a_job_stays_on_its_processors() {
    let daemon = Daemon::of_policy("miser");
    let script = "grep Cpus_allowed_list /proc/self/status; while [ ! -e go ]; do sleep 0.05; done";
    let job = Submission {
        directory: daemon.path(""),
        output: Some("out".into()),
        no_opportunistic: true,
        ..sh(script, 60.0)
    };
    let number = daemon.submit(&job);
    let written = || fs::read_to_string(daemon.path("out")).ok().filter(|text| text.ends_with('\n'));
    let allowed = until("it runs", SOON, written);
    let Phase::Running(holding) = daemon.job(number).phase else { panic!("it runs") };
    let cpus = holding.cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    assert_eq!(allowed.split_whitespace().last(), Some(cpus.as_str()));
    daemon.client().cancel(number, false).expect("it can be cancelled");
    let ended = daemon.wait(number).phase;
    assert!(matches!(ended, Phase::Killed { by: KilledBy::User, .. }), "{ended:?}");
}

#[test]
fn the_end_of_the_window_ends_a_job_and_its_children() {
    let daemon = Daemon::of_policy("miser");
    // A child in a session of its own too, and nobody who heeds TERM.
    let script = "trap '' TERM; sleep 600 & setsid sleep 600 & echo $! > child; sleep 600";
    let number = daemon.submit(&Submission { directory: daemon.path(""), ..sh(script, 1.0) });
    let ended = daemon.wait(number).phase;
    assert!(
        matches!(ended, Phase::Killed { by: KilledBy::Time, exit: Some(Exit::Signal(9)), .. }),
        "{ended:?}"
    );
    let daemons = daemon.pid();
    let left =
        || processes::of_daemon(&daemon.path("")).into_iter().filter(|pid| Some(*pid) != daemons).count();
    until("nothing of it is left", SOON, || (left() == 0).then_some(()));
}

#[test]
fn the_jobs_of_an_array_have_their_indexes() {
    let daemon = Daemon::of_policy("miser");
    let array = Some(Array::range(1, 10, 1));
    let script = "echo $MISERLY_ARRAY_INDEX; exit $MISERLY_ARRAY_INDEX";
    let output = Some(daemon.path("%a.out"));
    let submitted =
        daemon.client().submit(&Submission { array, output, ..sh(script, 5.0) }).expect("it is accepted");
    assert_eq!(submitted.jobs.len(), 10);
    for (index, job) in (1..).zip(&submitted.jobs) {
        assert_eq!(exit_of(&daemon.wait(job.number)), Exit::Code(index));
        let written = fs::read_to_string(daemon.path(&format!("{index}.out"))).expect("its output");
        assert_eq!(written, format!("{index}\n"));
    }
}

#[test]
fn folder_environment_and_output_are_as_submitted() {
    let daemon = Daemon::of_policy("miser");
    let folder = daemon.path("here");
    fs::create_dir(&folder).expect("a folder");
    let mut job = Submission {
        directory: folder.clone(),
        output: Some("out.%j".into()),
        error: Some("err.%j".into()),
        ..sh("pwd; echo \"$COLOUR\"; echo bad >&2", 20.0)
    };
    job.environment.insert("COLOUR".into(), "red, with 'quotes'".into());
    let number = daemon.submit(&job);
    assert_eq!(exit_of(&daemon.wait(number)), Exit::Code(0));
    let read = |name: String| fs::read_to_string(folder.join(name)).expect("a file of the job");
    assert_eq!(read(format!("out.{number}")), format!("{}\nred, with 'quotes'\n", folder.display()));
    assert_eq!(read(format!("err.{number}")), "bad\n");
}

#[test]
fn a_folder_that_vanished_fails_the_job_and_says_so() {
    let daemon = Daemon::of_policy("miser");
    let gone = daemon.path("gone");
    let fails = |job: &Submission, expected: Failure| {
        let number = daemon.submit(job);
        match daemon.wait(number).phase {
            Phase::Failed { why, message, .. } => {
                assert_eq!(why, expected, "{message}");
                assert!(message.contains("gone"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    };
    fails(&Submission { directory: gone.clone(), ..sh("true", 5.0) }, Failure::Directory);
    fails(&Submission { input: Some(gone.join("in")), ..sh("true", 5.0) }, Failure::Input);
    fails(&Submission { output: Some(gone.join("out")), ..sh("true", 5.0) }, Failure::Output);
    let command = vec![gone.join("program").to_string_lossy().into_owned()];
    fails(&Submission { command, ..sh("", 5.0) }, Failure::Program);
    // Nobody else suffers.
    let after = daemon.submit(&sh("exit 0", 5.0));
    assert_eq!(exit_of(&daemon.wait(after)), Exit::Code(0));
}

/// Its name is stored and shown, and the job runs there, also after a restart.
#[test]
fn a_folder_whose_name_is_no_text() {
    let mut daemon = Daemon::of_policy("miser");
    let folder = daemon.path("").join(OsStr::from_bytes(b"odd \xff\n"));
    fs::create_dir(&folder).expect("a folder");
    let run = |daemon: &Daemon, options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
        command.args(options).env("MISERLY_SOCKET", &daemon.socket).env("A", "1").current_dir(&folder);
        let output = command.stdin(Stdio::null()).output().expect("a program");
        assert!(output.status.success(), "{options:?}: {output:?}");
        output.stdout
    };
    let script = "pwd; echo $A; [ \"$SLURM_SUBMIT_DIR\" = \"$PWD\" ]";
    run(&daemon, &["submit", "-t", "5s", "--hold", "--wrap", script]);
    daemon.kill();
    daemon.start();
    assert!(String::from_utf8_lossy(&run(&daemon, &["show", "1"])).contains("odd "));
    run(&daemon, &["modify", "1", "--export", "ALL,A=7"]);
    run(&daemon, &["release", "1"]);
    run(&daemon, &["wait", "1"]);
    let expect = [folder.as_os_str().as_bytes(), b"\n7\n"].concat();
    assert_eq!(fs::read(folder.join("miserly-1.out")).expect("its output"), expect);
    assert!(run(&daemon, &["logs", "1"]).ends_with(b"\n7\n"));
}
