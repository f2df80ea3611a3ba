//! Runs in batches by termination, and claims about differences.

use serde_json::{Value, json};

use crate::document::Schema;
use crate::support::{Lab, experiment_with};

const BATCHES: &str = r#"
title = "Batches"
[[trace]]
name = "made"
model = "feitelson96"
jobs = 1500
[policies]
buddy = "gang(packing=buddy)"
migration = "gang(packing=migration)"
[[runs]]
name = "all"
policies = ["buddy", "migration", "easy"]
loads = [0.4, 1]
options = { batches = { jobs = 100, count = 12, discard = 1 } }
[[table]]
title = "Slots"
value = "slicing.slots.mean"
where = { load = 0.4 }
rows = [{ label = "slots" }, { label = "unifications", value = "batches.unifications" }]
columns = [{ label = "buddy", policy = "buddy" }, { label = "migration", policy = "migration" }]
[[claim]]
text = "migration uses fewer slots"
holds = "fewer > noise"
let.fewer = { value = "batches.rows", policy = "buddy", load = 0.4, less = { policy = "migration", load = 0.4 } }
let.noise = { value = "batches.rows", policy = "buddy", load = 0.4, less = { policy = "migration", load = 0.4 }, of = "half-width" }
"#;

/// The documents of the runs, as `simulate` would print them.
fn documents(lab: &Lab, folder: &str) -> Vec<Value> {
    let index: Value = serde_json::from_str(&lab.read(&format!("{folder}/index.json"))).expect("JSON");
    let keys = index["runs"].as_array().expect("runs").iter();
    let document = |run: &Value| {
        let key = run["key"].as_str().expect("a key");
        let kept: Value =
            serde_json::from_str(&lab.read(&format!("{folder}/runs/{key}.json"))).expect("JSON");
        let mut run = kept["run"].clone();
        run["timing"] = json!({ "seconds": 0.0, "jobs_per_second": 0.0 });
        run
    };
    keys.map(document).collect()
}

#[test]
fn a_run_in_batches_ends_with_them() {
    let (schema, lab) = (Schema::load(), Lab::new());
    lab.write("batches.toml", BATCHES);
    let run = lab.run("experiment run batches.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("| migration uses fewer slots | fewer "), "{}", run.stdout);
    assert!(run.stdout.contains(" ±"), "a single run has an interval by its batches: {}", run.stdout);
    let documents = documents(&lab, "batches-results");
    assert_eq!(documents.len(), 6);
    for document in &documents {
        schema.check(document);
        let (jobs, batches) = (&document["jobs"], &document["batches"]);
        assert_eq!(jobs["measured"], 1200);
        assert!(jobs["simulated"].as_u64() < Some(1500) && jobs["skipped"]["unfinished"].as_u64() > Some(0));
        assert_eq!(batches["means"]["slowdown"].as_array().map(Vec::len), Some(12));
        assert_eq!(document["uncertainty"]["jobs_per_batch"], 100);
        let sliced = document["policy"].as_str().is_some_and(|policy| policy.starts_with("gang"));
        assert_eq!(batches["means"].get("slots").is_some(), sliced);
        assert_eq!(document.get("slicing").is_some(), sliced);
    }
}

#[test]
fn several_seeds_are_compared_seed_by_seed() {
    let lab = Lab::new();
    let text = BATCHES.replace("jobs = 1500", "jobs = 1500\nseeds = [1, 2, 3]");
    lab.write("seeds.toml", text.replace("batches.rows", "metrics.wait.mean"));
    let run = lab.run("experiment run seeds.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("| migration uses fewer slots | fewer "), "{}", run.stdout);
}

#[track_caller]
fn refused(from: &str, to: &str, expect: &str) {
    let says = experiment_with(BATCHES, from, to);
    assert!(says.contains(expect), "{says}");
}

#[test]
fn mistakes_are_said() {
    refused("count = 12", "count = 15", "1500 jobs ended, but the batches need 1600; give fewer or");
    refused("count = 12", "count = 0", "batches: jobs and count must be 1 to 1000000000");
    refused("options = {", "options = { warmup = 5,", "give warmup or batches, not both");
    refused(
        "options = {",
        "record = { jobs = true }\noptions = {",
        "remove jobs, longest-waits and gantt from record",
    );
    refused(
        "let.fewer = { value = \"batches.rows\"",
        "let.fewer = { value = \"utilization\"",
        "less: \"utilization\" is not a mean of a run in batches",
    );
}
