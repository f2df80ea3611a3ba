//! What `--json` prints is a contract: docs/simulate.schema.json.

use std::fs;

use boon::{Compiler, SchemaIndex, Schemas};
use serde_json::{Value, json};

use crate::support::{Lab, log, of_project, parsed, small_log, without_timing};

pub(crate) struct Schema {
    schemas: Schemas,
    index: SchemaIndex,
}

impl Schema {
    pub(crate) fn load() -> Schema {
        let text = fs::read_to_string(of_project("docs/simulate.schema.json")).expect("the schema");
        let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
        compiler.add_resource("file:///simulate.json", parsed(&text)).expect("a resource");
        let index = compiler.compile("file:///simulate.json", &mut schemas).expect("a schema");
        Schema { schemas, index }
    }

    fn allows(&self, document: &Value) -> bool {
        self.schemas.validate(document, self.index).is_ok()
    }

    #[track_caller]
    pub(crate) fn check(&self, document: &Value) {
        if let Err(error) = self.schemas.validate(document, self.index) {
            panic!("{error:#}");
        }
    }
}

#[test]
fn documents_follow_the_schema() {
    let (schema, lab) = (Schema::load(), Lab::with_log(&small_log()));
    for options in [
        "",
        "--estimates exact*1.5 --overrun run --event-order sequential --procs-field requested --procs 12",
        "--estimates uniform:2.5:mean --overrun extend --drop runtime<=0 --drop user!=-3 --lenient",
        "--from 1m --to 1h --warmup 2s --seed 7",
        "--drop job>0",
        "--details",
        "--details --drop job>0",
        "--by category --by user --by queue --by runtime-bin --by lsf-class --by estimate --by estimate-category --by status",
        "--by category --by user --drop job>0",
    ] {
        // Without any job, the document is printed all the same.
        let run = lab.run(&format!("simulate log.swf -p easy(backfill=shortest) --json {options}"));
        schema.check(&parsed(&run.stdout));
    }
    for policy in ["gang", "gang(packing=migration,slots=2)"] {
        schema.check(&lab.document(&format!("simulate log.swf -p {policy} --json")));
    }
    let comparison = lab.document("compare log.swf log.swf --json");
    let runs = comparison["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 12);
    for run in runs {
        schema.check(run);
    }
}

#[test]
fn undefined_measures_are_null() {
    let (schema, lab) = (Schema::load(), Lab::with_log(&small_log()));
    let empty = lab.empty_document("simulate log.swf -p fcfs --json --drop job>0");
    schema.check(&empty);
    assert_eq!(empty["jobs"]["skipped"], json!({"job>0": 4}));
    assert_eq!(empty["jobs"]["simulated"], 0);
    for measure in empty["metrics"].as_object().expect("measures").values() {
        let undefined =
            json!({"count": 0, "mean": null, "median": null, "p95": null, "p99": null, "max": null});
        assert_eq!(measure, &undefined);
    }
    for figure in ["utilization", "loss_of_capacity", "makespan", "throughput_per_hour"] {
        assert_eq!(empty[figure], Value::Null, "{figure}");
    }
    // Of runtime 0, a job has no slowdown, and all that is divided by a makespan of 0 is undefined.
    lab.write("zero.swf", log(&[(1, 0, 0, 1, 10)]));
    let zero = lab.document("simulate zero.swf -p fcfs --json");
    schema.check(&zero);
    assert_eq!(zero["metrics"]["slowdown"]["mean"], Value::Null);
    assert_eq!(zero["metrics"]["bounded_slowdown"]["mean"], 1.0);
    assert_eq!((&zero["makespan"], &zero["utilization"]), (&json!(0.0), &Value::Null));
}

#[test]
fn the_schema_is_strict() {
    let (schema, lab) = (Schema::load(), Lab::with_log(&small_log()));
    let document = lab.document("simulate log.swf -p easy --json");
    let mut changed = 0;
    for pointer in objects(&document, "") {
        // Reasons come and go with the log.
        if pointer == "/jobs/skipped" {
            continue;
        }
        let object = document.pointer(&pointer).and_then(Value::as_object).expect("an object");
        for key in object.keys().map(String::as_str).chain(["unheard_of"]) {
            let mut other = document.clone();
            let object = other.pointer_mut(&pointer).and_then(Value::as_object_mut).expect("an object");
            if object.remove(key).is_none() {
                object.insert(key.into(), json!(1));
            }
            assert!(!schema.allows(&other), "{pointer} without, or with, {key}");
            changed += 1;
        }
    }
    assert!(changed > 80, "{changed}");
}

/// The pointers to every object of a document.
fn objects(value: &Value, pointer: &str) -> Vec<String> {
    let Some(object) = value.as_object() else { return vec![] };
    let inner = object.iter().flat_map(|(key, value)| objects(value, &format!("{pointer}/{key}")));
    std::iter::once(pointer.to_owned()).chain(inner).collect()
}

/// What the issue promises, in its order; more keys may stand between.
const PROMISED: &str = "
    version policy
    settings procs event_order overrun estimates procs_field drop warmup seed
    trace name sha256
    jobs read simulated measured skipped killed_at_estimate
    metrics wait mean median p95 p99 max response mean median p95 p99 max slowdown mean median p95 p99 max
    bounded_slowdown mean median p95 p99 max bounded_slowdown_standard mean median p95 p99 max
    width_slowdown mean median p95 p99 max
    utilization makespan promises made kept broken timing seconds jobs_per_second";

#[test]
fn keys_come_as_promised() {
    let text = Lab::with_log(&small_log()).stdout("simulate log.swf -p easy --json");
    let mut keys = text.lines().filter_map(|line| line.trim_start().strip_prefix('"')?.split_once("\":"));
    for promised in PROMISED.split_whitespace() {
        assert!(keys.any(|(key, _)| key == promised), "{promised} is not there, or too early:\n{text}");
    }
}

#[test]
fn figures_of_a_run_that_can_be_checked_by_hand() {
    let run = Lab::with_log(&small_log()).document("simulate log.swf -p easy --json");
    assert_eq!(run["jobs"]["skipped"], json!({"too_wide": 1}));
    assert_eq!((&run["jobs"]["read"], &run["jobs"]["simulated"]), (&json!(4), &json!(3)));
    // Waits of 0, 99 and 0; busy for 600 + 500 + 392 processor-seconds of 10 x 150.
    assert_eq!(run["metrics"]["wait"]["mean"], 33.0);
    assert_eq!(
        (&run["metrics"]["wait"]["median"], &run["metrics"]["wait"]["max"]),
        (&json!(0.0), &json!(99.0))
    );
    assert_eq!(run["makespan"], 150.0);
    let utilization = run["utilization"].as_f64().expect("a number");
    assert!((utilization - 1492.0 / 1500.0).abs() < 1e-9, "{utilization}");
    assert_eq!(run["promises"], json!({"made": 1, "kept": 1, "broken": 0}));
}

#[test]
fn the_same_bytes_but_for_the_timing() {
    let lab = Lab::with_log(&small_log());
    let document = || {
        let text = lab.stdout("simulate log.swf -p conservative --estimates uniform:5 --json");
        text.split_once("\"timing\"").map(|(before, _)| before.to_owned()).expect("a timing")
    };
    assert_eq!(document(), document());
}

#[test]
fn the_same_on_any_number_of_threads() {
    let lab = Lab::new();
    let compare = |threads: &str| {
        let output = lab.command("compare --json").env("RAYON_NUM_THREADS", threads).output();
        without_timing(&String::from_utf8(output.expect("a run").stdout).expect("text")).to_string()
    };
    assert_eq!(compare("1"), compare("2"));
}

/// Half-widths stand where a measure's own batches, of 64 jobs or more, are not alike beyond chance, and only there.
#[test]
fn half_widths_stand_only_where_they_can_be_trusted() {
    let compared = Lab::with_log(&small_log()).document("compare --json");
    let [mut trusted, mut not] = [0, 0];
    for difference in compared["differences"].as_array().unwrap() {
        let uncertainty = &compared["runs"][0]["uncertainty"];
        assert!(uncertainty["jobs_per_batch"].as_u64().unwrap() >= 64);
        let chance = 2.0 / uncertainty["batches"].as_f64().unwrap().sqrt();
        let alike = difference["autocorrelation"].as_f64().unwrap() > chance;
        assert_eq!(difference["half_width"].is_null(), alike, "{difference}");
        assert_eq!(difference["within_noise"].is_null(), alike, "{difference}");
        assert!(difference["mean"].is_f64(), "{difference}");
        *if alike { &mut not } else { &mut trusted } += 1;
    }
    assert!(trusted > 0 && not > 0, "{trusted} {not}");
}
