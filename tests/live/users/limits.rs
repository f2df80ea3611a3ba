//! Limits of users and of a group together, with real processes and a daemon that is killed.

use std::fs;

use miserly_api::model::LimitsReport;

use super::{Account, Daemon, asleep, command_of, is_done, refused, submit, text, touch};
use crate::support::accounts::{Accounts, Group};
use crate::support::{SOON, until};

/// Writes that it began, and waits for a file of its own.
const WAIT: &str = "touch began.$MISERLY_JOB_ID; while [ ! -e go.$MISERLY_JOB_ID ]; do sleep 0.05; done";

fn begins(daemon: &Daemon, user: &Account, job: i64) {
    let file = daemon.path(&user.name).join(format!("began.{job}"));
    until("it begins", SOON, || file.exists().then_some(()));
}

/// Returns the numbers of the jobs of a user that have begun.
fn begun(daemon: &Daemon, user: &Account) -> Vec<i64> {
    let files = fs::read_dir(daemon.path(&user.name)).expect("a folder").flatten();
    let number = |name: String| name.strip_prefix("began.").and_then(|number| number.parse().ok());
    let mut begun: Vec<i64> = files.filter_map(|file| number(file.file_name().into_string().ok()?)).collect();
    begun.sort_unstable();
    begun
}

/// Returns the processor-hours of ended windows that count for the group.
fn used(daemon: &Daemon, user: &Account) -> f64 {
    let output = command_of(daemon, user, &["limits", "--json"]);
    let report: LimitsReport = serde_json::from_slice(&output.stdout).expect("a report");
    let limit = report.limits.iter().find(|limit| limit.limit == "course.cpu-hours").expect("the limit");
    assert!(limit.together);
    limit.used
}

#[test]
fn limits_hold_for_processes_and_outlive_a_killed_daemon() {
    let Some(accounts) = Accounts::new() else { return };
    let group = Group::new("course");
    for user in [&accounts.ann, &accounts.bob] {
        user.change(&["--append", "--groups", &group.0]);
    }
    let more = format!(
        "[user-limits]\nrunning = 1\n[[limit]]\nname = 'course'\ngroups = ['{}']\ntogether = true\nqueued = 4\n\
         cpu-hours = 0.1\nperiod = '7d'\n",
        group.0
    );
    let mut daemon = asleep(&accounts, "");
    let configuration = fs::read_to_string(daemon.path("daemon.toml")).expect("a configuration");
    daemon.configure(&format!("{configuration}{more}"));
    daemon.start();
    let (ann, bob) = (&accounts.ann, &accounts.bob);
    // Each of them has a minute.
    let jobs = [(); 3].map(|()| submit(&daemon, ann, &[], WAIT));
    begins(&daemon, ann, jobs[0]);
    let shown = text(&command_of(&daemon, ann, &["show", &jobs[1].to_string()]).stdout);
    assert!(shown.contains("waits for a place that other jobs have"), "{shown}");
    assert!(shown.contains("user-limits.running is 1"), "{shown}");
    let long = ["submit", "--time", "4min", "--", "true"];
    refused(&command_of(&daemon, bob, &long), "course.cpu-hours is 0.10 hours");

    // The first one ends while no daemon runs.
    daemon.kill();
    touch(&daemon, ann, &format!("go.{}", jobs[0]));
    daemon.start();
    begins(&daemon, ann, jobs[1]);
    is_done(&daemon, jobs[0]);
    let first = used(&daemon, bob);
    assert!(first > 0.0);
    daemon.kill();
    daemon.start();
    assert!((used(&daemon, bob) - first).abs() < f64::EPSILON, "a restart keeps the counter");
    assert_eq!(begun(&daemon, ann), jobs[..2]);

    touch(&daemon, ann, &format!("go.{}", jobs[1]));
    begins(&daemon, ann, jobs[2]);
    touch(&daemon, ann, &format!("go.{}", jobs[2]));
    for job in jobs {
        is_done(&daemon, job);
    }
    assert!(used(&daemon, ann) > first);
    let table = text(&command_of(&daemon, bob, &["limits"]).stdout);
    assert!(table.contains("course.queued") && table.contains("user-limits.running"), "{table}");
}
