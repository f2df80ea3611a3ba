//! Other users and other daemons, end to end. Only root can take another identity: without it these tests report a skip.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use miserly_api::model::Submission;
use miserly_test_support::Requirement;
use rustix::process::geteuid;

use crate::support::{Daemon, SOON, cpus, is_over, miserly, queue, sh, until};

/// The number of an unprivileged user.
const OTHER: u32 = 33;

/// Returns whether this process can become another user. If not, reports the skip of a test.
#[track_caller]
pub(crate) fn is_root() -> bool {
    Requirement::Root.is_met(geteuid().is_root(), "needs root, to become another user")
}

/// Runs a command of the other user. Its program is a copy that this user may run.
fn as_other(daemon: &Daemon, arguments: &[&str]) -> Output {
    let program = daemon.path("miserly");
    if !program.exists() {
        fs::copy(env!("CARGO_BIN_EXE_miserly"), &program).expect("a copy");
        fs::set_permissions(&program, Permissions::from_mode(0o755)).expect("a mode");
    }
    let mut command = Command::new(program);
    command.args(arguments).env("MISERLY_SOCKET", &daemon.socket).current_dir("/").uid(OTHER).gid(OTHER);
    command.output().expect("a program that starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").mode() & 0o7777
}

#[test]
fn everybody_looks_and_nobody_else_changes() {
    if !is_root() {
        return;
    }
    let daemon = Daemon::for_everybody("");
    assert_eq!((mode(&daemon.path("run/miserly")), mode(&daemon.path("run"))), (0o755, 0o755));
    let secret = sh("sleep 60 # a-secret-word", 120.0);
    let number = daemon.submit(&Submission { name: Some("public-name".into()), ..secret }).to_string();
    let listed = as_other(&daemon, &["queue", "--json", "--details"]);
    let shown = as_other(&daemon, &["show", &number]);
    for output in [&listed, &shown] {
        let text = text(&output.stdout);
        assert!(text.contains("public-name") && !text.contains("secret"), "{output:?}");
        assert!(!text.contains("/dev/null") && !text.contains("/bin/sh"), "{text}");
    }
    for request in ["cancel", "hold", "release", "requeue"] {
        let output = as_other(&daemon, &[request, &number]);
        assert_eq!(output.status.code(), Some(1), "{request} {output:?}");
        assert!(text(&output.stderr).contains("another user's"), "{request} {output:?}");
    }
    let logs = as_other(&daemon, &["logs", &number]);
    assert!(text(&logs.stderr).contains("another user's"), "{logs:?}");
    let drain = as_other(&daemon, &["drain"]);
    assert!(text(&drain.stderr).contains("only an operator"), "{drain:?}");
    let submit = as_other(&daemon, &["submit", "--time", "5s", "true"]);
    assert!(text(&submit.stderr).contains("have a daemon of your own"), "{submit:?}");
    // Root reads what others do not.
    assert!(daemon.job(number.parse().unwrap()).command.expect("root reads it")[2].contains("secret"));
}

#[test]
fn a_queue_of_an_unknown_group_is_closed() {
    if !is_root() {
        return;
    }
    let daemon = Daemon::for_everybody("");
    daemon.configure(&format!("access = \"everybody\"\n{}groups = [\"no-such-group\"]\n", queue("miser")));
    let mut daemon = daemon;
    daemon.stop();
    daemon.start();
    let submit = as_other(&daemon, &["submit", "--time", "5s", "true"]);
    assert!(text(&submit.stderr).contains("queue batch is not open to you"), "{submit:?}");
    assert!(daemon.log().contains("the system knows no group \"no-such-group\"; it admits nobody"));
    // Root is the daemon's user.
    daemon.submit(&sh("true", 5.0));
}

/// Checks that a daemon does not start on its state, and touches nothing.
#[track_caller]
fn refuses_its_state(daemon: &Daemon, says: &str) {
    let output = daemon.command(&[]).output().expect("a program");
    assert_eq!(output.status.code(), Some(2), "{}", daemon.log());
    assert!(daemon.log().contains(says), "{says} is not in: {}", daemon.log());
    assert_eq!(fs::read(daemon.path("victim")).expect("a file"), b"precious");
}
/// A state that another user could change is not used, and nothing in it is touched.
#[test]
fn a_state_of_another_user_is_refused() {
    if !is_root() {
        return;
    }
    let daemon = Daemon::asleep(&queue("miser"));
    fs::write(daemon.path("victim"), "precious").unwrap();
    fs::create_dir(daemon.state()).unwrap();
    symlink(daemon.path("victim"), daemon.state().join("lock")).unwrap();
    refuses_its_state(&daemon, "lock: it is a symbolic link");
    chown(daemon.state(), Some(OTHER), None).unwrap();
    refuses_its_state(&daemon, "state: it belongs to user 33");
    fs::remove_dir_all(daemon.state()).unwrap();
    // A folder above it.
    let above = daemon.path("above");
    fs::create_dir(&above).unwrap();
    symlink(&above, daemon.state()).unwrap();
    refuses_its_state(&daemon, "state: it is a symbolic link");
    fs::remove_file(daemon.state()).unwrap();
    chown(daemon.path(""), Some(OTHER), None).unwrap();
    refuses_its_state(&daemon, "it belongs to user 33");
    chown(daemon.path(""), Some(0), None).unwrap();
    fs::set_permissions(daemon.path(""), Permissions::from_mode(0o777)).unwrap();
    refuses_its_state(&daemon, "other users may write to it (mode 777)");
    assert!(!daemon.state().exists());
}

/// The output has the mode that the job's umask leaves, whatever the daemon's is.
#[test]
fn output_files_heed_the_umask_of_the_submission() {
    let daemon = Daemon::of_policy("miser");
    for (umask, expect) in [(0o022, 0o644), (0o077, 0o600), (0o027, 0o640)] {
        let [out, err, own] = ["out", "err", "own"].map(|name| daemon.path(&format!("{name}{umask:o}")));
        let job = daemon.submit(&Submission {
            umask,
            output: Some(out.clone()),
            error: Some(err.clone()),
            ..sh(&format!("touch {}", own.display()), 5.0)
        });
        daemon.wait(job);
        assert_eq!([&out, &err, &own].map(|path| mode(path)), [expect; 3], "{umask:o}");
    }
}

/// The shell's umask counts, also for the default output.
#[test]
fn the_umask_of_the_command_is_that_of_the_job() {
    let daemon = Daemon::of_policy("miser");
    let line = format!(
        "umask 077; exec {} submit --wait --time 5s --directory {} --socket {} true",
        env!("CARGO_BIN_EXE_miserly"),
        daemon.path("").display(),
        daemon.socket.display()
    );
    let output = Command::new("/bin/sh").args(["-c", &line]).output().expect("a shell");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(mode(&daemon.path("miserly-1.out")), 0o600);
}

/// Two daemons on one processor say so, both of them.
#[test]
fn daemons_see_each_other_s_processors() {
    let first = Daemon::of_policy("miser");
    let second = Daemon::of_policy("miser");
    let shared = |daemon: &Daemon, other: &Daemon| {
        let status = daemon.client().status().expect("a status");
        let pid = u32::try_from(other.pid().expect("it runs").as_raw_nonzero().get()).expect("a number");
        let found = status.shared_cpus.into_iter().find(|shared| shared.pid == pid);
        found.map(|shared| (shared.cpus, shared.uid))
    };
    let expect = Some((cpus(), geteuid().as_raw()));
    assert_eq!(shared(&second, &first), expect);
    assert_eq!(shared(&first, &second), expect);
    assert!(second.log().contains("jobs of both share them"), "{}", second.log());
    let text = text(&miserly(&["status", "--socket", &first.socket.display().to_string()]).stdout);
    assert!(text.contains("shared cpus") && text.contains("cpus for jobs"), "{text}");
}

/// Jobs of both would share them, so a second daemon needs an option.
#[test]
fn a_second_daemon_on_the_same_processors_is_refused() {
    let _first = Daemon::of_policy("miser");
    let second = Daemon::asleep(&queue("miser"));
    let with_option = second.command(&[]);
    let options = with_option.get_args().filter(|option| *option != "--share-cpus");
    let refused = Command::new(env!("CARGO_BIN_EXE_miserly")).args(options).output().expect("a program");
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("has the cpus") && said.contains("start it with --share-cpus"), "{said}");
    assert!(!second.socket.exists());
}

/// The kernel names the process of the daemon; its jobs survive.
#[test]
fn a_daemon_is_reloaded_and_stopped_by_a_command() {
    let mut daemon = Daemon::of_policy("miser");
    let script = "while [ ! -e go ]; do sleep 0.05; done";
    let job = daemon.submit(&Submission { directory: daemon.path(""), ..sh(script, 20.0) });
    let socket = daemon.socket.display().to_string();
    let output = miserly(&["reload", "--socket", &socket]);
    assert!(
        output.status.success() && text(&output.stdout).contains("has the new configuration"),
        "{output:?}"
    );
    assert!(daemon.log().contains("the configuration was read again"));
    daemon.configure("cleanup-time = \"soon\"\n");
    let output = miserly(&["reload", "--socket", &socket]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = text(&output.stderr);
    assert!(
        said.contains("the configuration stays as it was: ") && said.contains("toml:1: cleanup-time"),
        "{said}"
    );
    daemon.configure(&queue("miser"));
    let output = miserly(&["stop", "--socket", &socket]);
    assert!(output.status.success() && text(&output.stdout).contains("has ended"), "{output:?}");
    assert!(daemon.log().contains("SIGTERM: the daemon ends"));
    assert_eq!(miserly(&["stop", "--socket", &socket]).status.code(), Some(1));
    daemon.start();
    fs::write(daemon.path("go"), "").expect("a file");
    assert!(is_over(&daemon.wait(job).phase));
}

#[test]
fn an_operator_reads_an_output_through_the_daemon() {
    if !is_root() {
        return;
    }
    let daemon = Daemon::for_everybody(&format!("operators.users = [\"{}\"]\n", name_of(OTHER)));
    let path = daemon.path("private-output");
    let script = "printf 'one\\ntwo\\n'; while [ ! -e go ]; do sleep 0.05; done; echo three; echo oh >&2";
    let submission = Submission {
        directory: daemon.path(""),
        output: Some(path.clone()),
        error: Some("private-error".into()),
        umask: 0o077,
        ..sh(script, 60.0)
    };
    let number = daemon.submit(&submission).to_string();
    until("it prints", SOON, || fs::read_to_string(&path).ok()?.ends_with("two\n").then_some(()));
    assert_eq!(mode(&path), 0o600);
    assert_eq!(text(&as_other(&daemon, &["logs", &number]).stdout), "one\ntwo\n");
    let followed = std::thread::scope(|scope| {
        let following = scope.spawn(|| as_other(&daemon, &["logs", "-f", &number]));
        fs::write(daemon.path("go"), "").expect("a file");
        following.join().expect("it ends")
    });
    assert_eq!(text(&followed.stdout), "one\ntwo\nthree\n", "{followed:?}");
    assert_eq!(text(&as_other(&daemon, &["logs", "--error", &number]).stdout), "oh\n");
    // An operator is not the user of the job, and does not type for that user.
    let attach = as_other(&daemon, &["attach", &number]);
    assert!(text(&attach.stderr).contains("has ended"), "{attach:?}");
}

#[test]
fn only_the_user_of_a_job_and_operators_read_its_output() {
    if !is_root() {
        return;
    }
    let daemon = Daemon::for_everybody("");
    let interaction = Some(miserly_api::model::Interaction::Stdin);
    let job = daemon.submit(&Submission { interaction, ..sh("sleep 60", 60.0) });
    until("it runs", SOON, || {
        matches!(daemon.job(job).phase, miserly_api::model::Phase::Running(_)).then_some(())
    });
    for command in ["logs", "attach"] {
        let refused = as_other(&daemon, &[command, &job.to_string()]);
        assert!(!refused.status.success(), "{refused:?}");
        assert!(text(&refused.stderr).contains("another user's"), "{refused:?}");
        assert!(!text(&refused.stderr).contains("/dev/null"), "{refused:?}");
    }
}

/// Returns the name of a user of this machine.
fn name_of(uid: u32) -> String {
    let output = Command::new("id").args(["-un", &uid.to_string()]).output().expect("a program");
    text(&output.stdout).trim().to_owned()
}
