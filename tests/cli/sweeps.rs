//! Several values of an option, and the jobs of every run of a comparison.

use crate::support::{Lab, log, small_log};

/// Two jobs that fit into ten processors, one after the other.
fn lab() -> Lab {
    Lab::with_log(&log(&[(1, 0, 100, 6, 100), (2, 50, 100, 6, 100)]))
}

#[test]
fn a_table_for_each_load() {
    let lab = lab();
    let tables = lab.stdout("simulate log.swf -p easy --scale-load 1,1.2,2");
    assert_eq!(tables.matches("utilization").count(), 3, "{tables}");
    for load in ["load x 1\n", "load x 1.2\n", "load x 2\n"] {
        assert_eq!(tables.matches(load).count(), 1, "{load}{tables}");
    }
    let documents = lab.document("simulate log.swf -p easy --scale-load 1,2 --json");
    let waits: Vec<_> = documents
        .as_array()
        .into_iter()
        .flatten()
        .map(|run| run["metrics"]["wait"]["max"].as_f64())
        .collect();
    assert_eq!(waits, [Some(50.0), Some(75.0)]);
    let one = lab.document("simulate log.swf -p easy --scale-load 2 --json");
    assert_eq!(one["settings"]["scale_load"], 2.0);
}

#[test]
fn a_comparison_for_each_machine() {
    let lab = lab();
    let tables = lab.stdout("compare log.swf -p easy -p fcfs --procs 10,20");
    assert!(
        tables.contains("log.swf, 10 processors") && tables.contains("log.swf, 20 processors"),
        "{tables}"
    );
    let runs = lab.document("compare log.swf -p easy --procs 10,20 --scale-load 1,2 --json");
    let settings =
        |run: &serde_json::Value| (run["settings"]["procs"].as_u64(), run["settings"]["scale_load"].as_f64());
    let made: Vec<_> = runs["runs"].as_array().into_iter().flatten().map(settings).collect();
    let expect = [(10, 1.0), (10, 2.0), (20, 1.0), (20, 2.0)].map(|(procs, load)| (Some(procs), Some(load)));
    assert_eq!(made, expect);
}

#[test]
fn several_values_where_one_is_needed() {
    let lab = lab();
    let refused = |line: &str, why: &str| {
        let run = lab.run(line);
        assert_eq!((run.code, run.stderr), (Some(2), format!("error: {why}\n")), "{line}");
    };
    refused("explain log.swf 1 -p easy --procs 10,20", "--procs: several values; this needs one");
    refused("wait-of log.swf 1 1h --scale-load 1,2", "--scale-load: several values; this needs one");
    refused("simulate log.swf -p easy --procs 10,20 --jobs out.csv", "--jobs: needs one value of --procs");
    refused(
        "compare log.swf --scale-load 1,2 --report page.html",
        "--report: needs one value of --scale-load",
    );
    refused("compare - --procs 10,20", "-: several runs need a file, not standard input");
}

#[test]
fn the_jobs_of_every_run_of_a_comparison() {
    let lab = Lab::with_log(&small_log());
    lab.stdout("compare log.swf -p easy -p easy(order=shortest) --jobs jobs");
    lab.stdout("simulate log.swf -p easy --jobs easy.csv");
    assert_eq!(lab.read("jobs/log-easy.csv"), lab.read("easy.csv"));
    assert!(lab.path("jobs/log-easy-order-shortest.csv").exists());
    lab.stdout("compare log.swf -p easy --procs 10,20 --jobs more");
    assert_eq!(lab.read("more/log-procs-10-easy.csv"), lab.read("easy.csv"));
    assert!(lab.path("more/log-procs-20-easy.csv").exists());
}
