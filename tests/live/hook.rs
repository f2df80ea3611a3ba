//! Programs at events, with real jobs.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use miserly_api::model::Submission;
use serde_json::Value;

use crate::support::{Daemon, SOON, queue, sh, until};

/// A running `miserly hook`, which ends with it.
struct Hook(Child);

impl Drop for Hook {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn program(daemon: &Daemon) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
    command.arg("hook").arg("--socket").arg(&daemon.socket);
    command
}

/// Starts a hook that adds each event to the file `told` in the daemon's folder.
fn hook(daemon: &Daemon, options: &[&str]) -> Hook {
    let told = daemon.path("told");
    let mut command = program(daemon);
    command.args(options).arg("--state").arg(daemon.path("hook.json"));
    command.args(["--", "sh", "-c", "cat >> \"$0\""]).arg(told);
    Hook(command.stdin(Stdio::null()).spawn().expect("the hook"))
}

/// Returns the reported events, each with its job.
fn told(path: &Path) -> Vec<(String, i64)> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let event = |line: &str| -> Option<(String, i64)> {
        let document: Value = serde_json::from_str(line).ok()?;
        Some((document["event"].as_str()?.to_owned(), document["job"]["number"].as_i64()?))
    };
    text.lines().filter_map(event).collect()
}

fn wait_for(daemon: &Daemon, event: &str, job: i64) {
    let path = daemon.path("told");
    until(&format!("{event} of job {job} is told"), SOON, || {
        told(&path).contains(&(event.to_owned(), job)).then_some(())
    });
}

#[test]
fn events_are_told_in_order_and_none_is_lost_without_the_hook() {
    let mut daemon = Daemon::new(&queue("easy"));
    let options = ["--on", "submitted,started,ended,failed"];
    let first = hook(&daemon, &options);
    until("the hook is there", SOON, || daemon.path("hook.json").exists().then_some(()));
    let good = daemon.submit(&sh("true", 60.0));
    wait_for(&daemon, "ended", good);
    let of_good: Vec<String> = told(&daemon.path("told"))
        .into_iter()
        .filter(|(_, job)| *job == good)
        .map(|(event, _)| event)
        .collect();
    assert_eq!(of_good, ["submitted", "started", "ended"]);
    let script = "while [ ! -e go ]; do sleep 0.05; done; exit 3";
    let waits = daemon.submit(&Submission { directory: daemon.path(""), ..sh(script, 60.0) });
    wait_for(&daemon, "started", waits);
    drop(first);
    fs::write(daemon.path("go"), "").expect("a file");
    until("the job has ended", SOON, || daemon.job(waits).phase.ended().map(|_| ()));
    let short = daemon.submit(&sh("true", 60.0));
    daemon.wait(short);
    daemon.kill();
    daemon.start();
    let _second = hook(&daemon, &options);
    wait_for(&daemon, "failed", waits);
    wait_for(&daemon, "ended", short);
    let ends = told(&daemon.path("told")).into_iter().filter(|(event, _)| event == "ended").count();
    assert_eq!(ends, 3);
    assert!(told(&daemon.path("told")).contains(&("submitted".to_owned(), short)));
}

#[test]
fn a_program_at_its_limit_is_killed_and_the_next_event_comes() {
    let daemon = Daemon::new(&queue("easy"));
    let script = "echo $MISERLY_JOB >> \"$0\"; exec sleep 600";
    let mut command = program(&daemon);
    command
        .args(["--limit", "1s", "--name", "tell*", "--on", "ended", "--state"])
        .arg(daemon.path("hook.json"));
    command.args(["--", "sh", "-c", script]).arg(daemon.path("told")).stdin(Stdio::null());
    let _hook = Hook(command.spawn().expect("the hook"));
    until("the hook is there", SOON, || daemon.path("hook.json").exists().then_some(()));
    let named = |name: &str| Submission { name: Some(name.to_owned()), ..sh("true", 60.0) };
    let jobs = ["tell-1", "silent", "tell-2"].map(|name| daemon.submit(&named(name)));
    let lines = format!("{}\n{}\n", jobs[0], jobs[2]);
    until("both are told", SOON, || {
        fs::read_to_string(daemon.path("told")).is_ok_and(|told| told == lines).then_some(())
    });
}

#[test]
fn a_comment_is_read_where_the_job_is() {
    let daemon = Daemon::new(&queue("easy"));
    let _hook = hook(&daemon, &["--on", "submitted"]);
    until("the hook is there", SOON, || daemon.path("hook.json").exists().then_some(()));
    let miserly = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
        command.arg(name).arg("--socket").arg(&daemon.socket).args(arguments);
        let output = command.current_dir(daemon.path("")).stdin(Stdio::null()).output().expect("a program");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let script = "#!/bin/sh\n#SBATCH --comment='of Slurm' -t 1 -H\n#MISERLY --comment 'of the script'\n";
    fs::write(daemon.path("job.sh"), script).expect("a script");
    let number = |text: String| -> i64 { text.trim().parse().expect("a number") };
    let of_script = number(miserly("submit", &["--quiet", "job.sh"]));
    let of_line = number(miserly("submit", &["--quiet", "--comment", "of the line", "job.sh"]));
    for (job, comment) in [(of_script, "of the script"), (of_line, "of the line")] {
        let shown = miserly("show", &[&job.to_string()]);
        assert!(shown.contains(&format!("\n  comment    {comment}\n")), "{shown}");
        wait_for(&daemon, "submitted", job);
        let told = fs::read_to_string(daemon.path("told")).expect("the events");
        assert!(told.contains(&format!("\"comment\":\"{comment}\"")), "{told}");
    }
}

#[test]
fn a_job_that_asks_for_mail_is_warned_while_none_is_sent() {
    let daemon = Daemon::new(&queue("easy"));
    let submitted = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_miserly"));
        command.arg("submit").arg("--socket").arg(&daemon.socket).args(["-t", "5s", "--mail", "end", "true"]);
        let output = command.current_dir(daemon.path("")).stdin(Stdio::null()).output().expect("a program");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let warned = submitted();
    assert!(warned.contains("no mail is sent now") && warned.contains("miserly hook --mail"), "{warned}");
    let mailer = |expect: bool| {
        until("the daemon knows the mailer", SOON, || {
            daemon.client().status().ok().filter(|status| status.mailer == Some(expect)).map(drop)
        });
    };
    let mut command = program(&daemon);
    command.args(["--mail", "--sendmail", "/bin/true"]).stdin(Stdio::null());
    let hook = Hook(command.spawn().expect("the hook"));
    mailer(true);
    assert_eq!(submitted(), "");
    drop(hook);
    mailer(false);
    let without =
        program(&daemon).args(["--mail", "--sendmail", "/nowhere/sendmail"]).output().expect("a program");
    assert_eq!(without.status.code(), Some(2), "{without:?}");
    assert!(String::from_utf8_lossy(&without.stderr).contains("there is no such program"), "{without:?}");
}
