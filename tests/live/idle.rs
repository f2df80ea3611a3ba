//! Jobs that use almost no processor time, in a queue that warns or ends them.

use std::fs;

use miserly_api::model::{JobView, KilledBy, Phase, Submission};

use crate::support::terminal::Terminal;
use crate::support::{Daemon, SOON, queue, sh, until};

fn daemon(action: &str) -> Daemon {
    Daemon::new(&format!("{}idle-after = \"2s\"\nidle-action = \"{action}\"\n", queue("miser")))
}

fn job(daemon: &Daemon, script: &str) -> i64 {
    let output = Some(daemon.path("out-%j"));
    daemon.submit(&Submission { output, no_opportunistic: true, ..sh(script, 60.0) })
}

fn idle(daemon: &Daemon, number: i64) -> JobView {
    until("an idle job", SOON, || Some(daemon.job(number)).filter(|job| job.idle_since.is_some()))
}

#[test]
fn a_job_that_only_sleeps_is_warned_and_ended() {
    let daemon = daemon("end");
    let sleeps = job(&daemon, "sleep 60");
    let Phase::Killed { by: KilledBy::Idle, start: Some(start), end, .. } = daemon.wait(sleeps).phase else {
        panic!("{:?}", daemon.job(sleeps))
    };
    assert!(end.duration_since(start).as_secs() < 30);
    let output = fs::read_to_string(daemon.path(&format!("out-{sleeps}"))).unwrap();
    assert!(output.contains("used almost no processor time"), "{output}");
    // One that works is not: by itself or by short processes.
    let works = "end=$(($(date +%s) + 6)); while [ $(date +%s) -lt $end ]; do :; done";
    let works = job(&daemon, works);
    assert!(matches!(daemon.wait(works).phase, Phase::Done { .. }), "{:?}", daemon.job(works));
}

#[test]
fn an_idle_job_is_only_warned_and_shown_also_by_the_next_daemon() {
    let mut daemon = daemon("warn");
    let sleeps = job(&daemon, "sleep 8; echo slept");
    let since = idle(&daemon, sleeps).idle_since;
    daemon.kill();
    daemon.start();
    assert_eq!(idle(&daemon, sleeps).idle_since, since);
    assert!(matches!(daemon.wait(sleeps).phase, Phase::Done { .. }));
    let output = fs::read_to_string(daemon.path(&format!("out-{sleeps}"))).unwrap();
    assert!(output.contains("its processors could serve others") && output.contains("slept"), "{output}");
}

#[test]
fn a_terminal_gets_the_warning() {
    let daemon = daemon("end");
    let mut terminal = Terminal::new(&daemon, &["run", "--pty", "--time", "60s", "--", "sleep", "50"]);
    terminal.expect("used almost no processor time");
    terminal.expect("because it is idle");
    assert_eq!(terminal.code(), Some(143));
    let job = daemon.job(1);
    assert!(matches!(job.phase, Phase::Killed { by: KilledBy::Idle, .. }), "{:?}", job.phase);
}
