//! Sums over finished jobs, with real processes.

use serde_json::Value;

use crate::support::{Daemon, miserly, queue, sh};

fn usage(daemon: &Daemon, options: &[&str]) -> String {
    let socket = daemon.socket.display().to_string();
    let output = miserly(&[&["usage", "--socket", &socket], options].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn sums_count_what_jobs_had_and_used() {
    let daemon = Daemon::new(&queue("easy"));
    let busy = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let jobs = [busy, "exit 3", "sleep 600"].map(|script| daemon.submit(&sh(script, 60.0)));
    for job in [jobs[0], jobs[1]] {
        daemon.wait(job);
    }
    daemon.client().cancel(jobs[2], false).expect("a cancelled job");
    daemon.wait(jobs[2]);
    let document: Value = serde_json::from_str(&usage(&daemon, &["--json"])).expect("JSON");
    let all = &document["all"];
    assert_eq!([&all["jobs"], &all["failed"], &all["cancelled"]], [3, 1, 1]);
    let hours = |field: &str| all[field].as_f64().expect("hours");
    assert!(hours("cpu_hours") > 0.0 && hours("used_cpu_hours") > 0.0, "{all}");
    assert!(hours("used_cpu_hours") < 1.1 * hours("cpu_hours"), "{all}");
    assert_eq!(usage(&daemon, &["--csv", "--by", "queue"]).lines().count(), 2);
    assert!(usage(&daemon, &["--until", "1d"]).starts_with("no job has ended"));
    let page = daemon.path("usage.html");
    usage(&daemon, &["--by", "day", "--report", &page.display().to_string()]);
    assert!(std::fs::read_to_string(page).expect("a page").contains("The largest jobs"));
}
