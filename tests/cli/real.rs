//! Real logs, which are no part of the project: a folder of them in `MISERLY_TRACES`.
//!
//! Without it these tests report a skip, or fail under `MISERLY_REQUIRE_TRACES=1`.

use miserly_test_support::Traces;
use serde_json::Value;

use crate::support::{Lab, parsed, without_timing};

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a count")
}

#[test]
fn every_line_is_accounted_for_and_every_promise_kept() {
    let Some(traces) = Traces::find() else { return };
    let logs = traces.all();
    let mut command = Lab::new().command("compare --json -p fcfs -p easy -p conservative");
    let output = command.current_dir(traces.folder()).args(&logs).output().expect("a program that starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document = parsed(&String::from_utf8_lossy(&output.stdout));
    let runs = document["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 3 * logs.len());
    for run in runs {
        let what = format!("{} {}", run["trace"]["name"], run["policy"]);
        let skipped: u64 = run["jobs"]["skipped"].as_object().expect("reasons").values().map(number).sum();
        assert_eq!(number(&run["jobs"]["read"]), number(&run["jobs"]["simulated"]) + skipped, "{what}");
        assert!(number(&run["jobs"]["simulated"]) > 0, "{what}");
        assert_eq!(number(&run["promises"]["broken"]), 0, "{what}");
        if run["policy"] == "conservative" {
            assert_eq!(run["promises"]["made"], run["jobs"]["simulated"], "{what}");
        }
    }
}

/// EASY's mean wait with the users' estimates, in both conventions for one instant.
#[track_caller]
fn check(log: &str, options: &str, jobs: u64, sequential: &str, batch: &str) {
    let Some(log) = Traces::find().and_then(|traces| traces.log(log)) else { return };
    for (event_order, expect) in [("sequential", sequential), ("batched", batch)] {
        let run = Lab::new().document(&format!(
            "simulate {} --policy easy --event-order {event_order} --procs-field requested --drop runtime<=0 \
             --drop estimate<=0 --json {options}",
            log.display()
        ));
        assert_eq!(number(&run["jobs"]["simulated"]), jobs);
        let wait = run["metrics"]["wait"]["mean"].as_f64().expect("a number");
        assert_eq!(format!("{wait:.2}"), expect, "{event_order}");
    }
}

/// The mean waits of the heaviest users, which have half of the work together, and of all others.
fn waits_by_usage(log: &str, policy: &str) -> Option<[String; 2]> {
    let log = Traces::find().and_then(|traces| traces.log(log))?;
    let run = Lab::new().document(&format!("simulate {} -p {policy} --by user --json", log.display()));
    let mut users = run["by"]["user"].as_array().expect("users").clone();
    let of = |user: &Value, at: &str| user.pointer(at).and_then(Value::as_f64).expect("a number");
    users.sort_by(|one, other| of(other, "/work").total_cmp(&of(one, "/work")));
    let half = users.iter().map(|user| of(user, "/work")).sum::<f64>() / 2.0;
    let mut before = 0.0;
    let mut sums = [(0.0, 0.0); 2];
    for user in &users {
        let (jobs, waits) = &mut sums[usize::from(before >= half)];
        *jobs += of(user, "/jobs");
        *waits += of(user, "/jobs") * of(user, "/metrics/wait/mean");
        before += of(user, "/work");
    }
    Some(sums.map(|(jobs, waits)| format!("{:.0}", waits / jobs)))
}

/// `what-if` and `compare` have one difference and one test of it, and no difference is outside its range.
#[test]
fn two_commands_agree_on_a_difference() {
    let Some(log) = Traces::find().and_then(|traces| traces.log("KTH-SP2-1996-2")) else { return };
    let policies = "-p easy -p easy(order=shortest) --warmup 7d --json";
    let compared = Lab::new().document(&format!("compare {} {policies}", log.display()));
    let asked = Lab::new().document(&format!("what-if {} {policies} --copies 4", log.display()));
    let wait = |run: usize| compared["runs"][run]["metrics"]["wait"]["mean"].as_f64().expect("a mean");
    let all = &asked["all"];
    for (name, expect) in [("before", wait(0)), ("after", wait(1)), ("difference", wait(1) - wait(0))] {
        assert!((all[name].as_f64().expect("a figure") - expect).abs() < 1e-6, "{name} {expect}: {all}");
    }
    let differences = compared["differences"].as_array().expect("pairs").iter();
    let mut pairs = differences.filter(|pair| pair["measure"] == "wait" && pair["policy_a"] == "easy");
    let noise = &pairs.next().expect("the pair")["within_noise"];
    assert_eq!(asked["significant"].as_bool(), noise.as_bool().map(|noise| !noise));
    let groups = ["by_group", "by_user"].map(|by| asked[by].as_array().expect("groups").iter());
    for group in groups.into_iter().flatten().chain([all, &asked["bounded_slowdown"]]) {
        let [figure, low, high] =
            ["/difference", "/range/0", "/range/1"].map(|at| group.pointer(at).and_then(Value::as_f64));
        assert!(figure.is_some() && low <= figure && figure <= high, "{group}");
    }
}

#[test]
fn light_users_wait_less_by_fair_share() {
    for (log, policy, expect) in [
        ("KTH-SP2-1996-2", "easy", ["15705", "5579"]),
        ("KTH-SP2-1996-2", "easy(order=fair-share)", ["19743", "3496"]),
        ("CTC-SP2-1996-3.1-cln", "easy", ["34565", "11893"]),
        ("CTC-SP2-1996-3.1-cln", "easy(order=fair-share)", ["41614", "9334"]),
    ] {
        let Some(waits) = waits_by_usage(log, policy) else { return };
        assert_eq!(waits, expect, "{log} {policy}");
    }
}

#[test]
fn kth_as_published() {
    check("KTH-SP2-1996-2", "", 28_481, "6836.87", "6834.59");
}

#[test]
fn ctc_as_published() {
    check("CTC-SP2-1996-3.1-cln", "--procs 338", 77_199, "14272.59", "13943.01");
}

#[test]
fn kth_the_same_on_any_number_of_threads() {
    let Some(log) = Traces::find().and_then(|traces| traces.log("KTH-SP2-1996-2")) else { return };
    let compare = |threads: &str| {
        let mut command = Lab::new().command("compare --json");
        let output = command.current_dir("/").arg(&log).env("RAYON_NUM_THREADS", threads).output();
        without_timing(&String::from_utf8(output.expect("a run").stdout).expect("text")).to_string()
    };
    assert_eq!(compare("1"), compare("2"));
}
