//! Machines with pools: Miser's Figures 1 and 2, and what is wrong with a file.

use serde_json::{Value, json};

use crate::support::{Lab, without_timing};

/// Figure 1: 24 of 32 processors are batch's, in three queues of 8.
const FIGURE_1: &str = r#"
[[host]]
name = "origin"
cpus = 32
memory = "1GB"
[pool]
cpus = 24
memory = "600MB"
[[queue]]
name = "math"
cpus = 8
memory = "200MB"
[[queue]]
name = "physics"
cpus = 8
memory = "200MB"
[[queue]]
name = "chemistry"
cpus = 8
memory = "200MB"
policy = "easy"
"#;

/// A line of a log: number, submission, runtime, processors, kB of each, estimate and queue.
fn line([number, submit, runtime, procs, memory, estimate, queue]: [i64; 7]) -> String {
    format!(
        "{number} {submit} -1 {runtime} {procs} -1 -1 {procs} {estimate} {memory} 1 -1 -1 -1 {queue} -1 -1 -1\n"
    )
}

/// Eight processors of the queue math are taken for 5 hours when `TupleCount` comes (Figure 2): 4 processors, 10 hours, 100 MB.
fn lab() -> Lab {
    let hours = |hours: i64| hours * 3600;
    let tuple_count = [2, 60, hours(8), 4, 25 * 1024, hours(10), 1];
    let lines = [
        [1, 0, hours(5), 8, 1024, hours(5), 1],
        tuple_count,
        [3, 120, hours(1), 8, 1024, hours(1), 2],
        [4, 180, hours(1), 9, 1024, hours(1), 3],
        [5, 240, hours(2), 8, 1024, hours(2), 3],
    ];
    let lab = Lab::with_log(&lines.map(line).concat());
    lab.write("figure-1.toml", FIGURE_1);
    lab
}

fn explain(lab: &Lab, options: &str) -> Value {
    let told = lab.stdout(&format!("explain log.swf 2 -p miser --json --machine ./figure-1.toml {options}"));
    serde_json::from_str(&told).expect("JSON")
}

#[test]
fn tuple_count_is_promised_its_window_and_runs_ahead_of_it() {
    let lab = lab();
    let alone = explain(&lab, "--no-opportunistic");
    assert_eq!(alone["reservations"][0]["start"], json!(18_000.0));
    assert_eq!((&alone["start"], &alone["end"]), (&json!(18_000.0), &json!(46_800.0)));
    // With 5 seconds for parking, what is left at its start is 8 hours less what it did from 60 s on.
    let early = explain(&lab, "");
    assert_eq!(early["reservations"], alone["reservations"]);
    assert_eq!((&early["start"], &early["end"]), (&json!(18_000.0), &json!(28_865.0)));
    assert_eq!(early["opportunistic"], json!({ "since": 60.0, "time": 17_935.0, "work": 71_740.0 }));
    let text = lab.stdout("explain log.swf 2 -p miser --machine ./figure-1.toml");
    assert!(text.contains("Before its start it ran opportunistically for 4h59m"), "{text}");
}

#[test]
fn each_queue_has_its_pool_and_perhaps_its_policy() {
    let lab = lab();
    let run = |options: &str| {
        let text =
            lab.stdout(&format!("simulate log.swf -p miser --json --machine ./figure-1.toml {options}"));
        without_timing(&text)
    };
    let document = run("");
    // Job 4 asks for 9 processors, and its queue has 8.
    assert_eq!(document["jobs"]["skipped"], json!({ "too_large_for_queue": 1 }));
    assert_eq!(
        document["opportunistic"],
        json!({ "jobs": 1, "done": 0, "time": 17_935.0, "work": 71_740.0,
        "share": 71_740.0 / 345_600.0 })
    );
    // Job 5's queue promises nothing.
    assert_eq!(document["promises"]["made"], json!(3));
    let queues = &document["settings"]["machine"]["pools"]["queues"];
    assert_eq!(queues[2]["policy"], json!("easy"));
    // Interactive work soon has all processors that are idle.
    let busy = run("--interactive poisson:1:1000000:32");
    assert!(busy["opportunistic"]["work"].as_f64().unwrap() < 1_000.0, "{}", busy["opportunistic"]);
    assert_eq!(run("--no-opportunistic").get("opportunistic"), None);
}

#[track_caller]
fn stderr(lab: &Lab, line: &str) -> String {
    let run = lab.run(line);
    assert_ne!(run.code, Some(0));
    run.stderr
}

#[track_caller]
fn wrong(lab: &Lab, text: &str, expect: &str) {
    lab.write("wrong.toml", text);
    let told = stderr(lab, "simulate log.swf -p miser --machine ./wrong.toml");
    assert!(told.contains(expect), "{told}");
}

#[test]
fn what_is_wrong_with_pools() {
    let lab = lab();
    let host = "[[host]]\nname = \"a\"\ncpus = 8\n";
    wrong(&lab, &format!("{host}[pool]\ncpus = 9\n"), "wrong.toml:4: on mon 00:00: the pool would have 9");
    wrong(&lab, &format!("utc-offset = \"+01:00\"\n{host}"), "wrong.toml:1: utc-offset is for calendars");
    wrong(&lab, &format!("{host}count = 2\n[pool]\ncpus = 9\n"), "pools are of one host that jobs share");
    let queue = format!("{host}[[queue]]\nname = \"q\"\ncpus = 8\npolicy = \"easier\"\n");
    wrong(&lab, &queue, "wrong.toml:7: policy: no policy \"easier\", did you mean \"easy\"");
    for option in ["--no-opportunistic", "--preempt-lead-time 5", "--interactive poisson:1:1:1"] {
        let told = stderr(&lab, &format!("simulate log.swf -p easy --procs 32 {option}"));
        assert!(told.contains("needs a machine with pools"), "{told}");
    }
}
