//! Machines by name, by number and by file: on the command line and in experiments.

use serde_json::{Value, json};

use crate::support::{Lab, log, small_log, without_timing};

/// A folder with a log, and a machine of one host as wide as the log says.
fn lab() -> Lab {
    let lab = Lab::with_log(&small_log());
    lab.write("one.toml", "[[host]]\nname = \"eir\"\ncpus = 10\n");
    lab
}

/// What a run came to on a machine, and the machine.
fn run(lab: &Lab, options: &str) -> (Value, Value) {
    let text = lab.stdout(&format!("simulate log.swf -p easy --json {options}"));
    let mut document = without_timing(&text);
    let machine = document["settings"]["machine"].take();
    (document, machine)
}

#[test]
fn one_machine_asked_for_in_four_ways() {
    let lab = lab();
    let host =
        |name: &str| json!([{ "name": name, "count": null, "cpus": 10, "memory": null, "gpus": null }]);
    let plain = json!({ "name": "10", "span": "one", "sharing": "shared", "hosts": host("machine") });
    let (own, machine) = run(&lab, "");
    assert_eq!(machine, plain);
    for options in ["--procs 10", "--machine 10"] {
        assert_eq!(run(&lab, options), (own.clone(), plain.clone()), "{options}");
    }
    let file = json!({ "name": "one.toml", "span": "any", "sharing": "shared", "hosts": host("eir") });
    assert_eq!(run(&lab, "--machine ./one.toml --span any"), (own, file));
}

#[test]
fn a_machine_of_another_width_skips_other_jobs() {
    let lab = lab();
    let (document, _) = run(&lab, "--machine 11");
    assert_eq!(document["jobs"]["skipped"], json!({}));
    let (document, _) = run(&lab, "--machine 5");
    assert_eq!(document["jobs"]["skipped"], json!({ "too_wide": 3 }));
}

#[test]
fn experiments_on_machines_beside_their_file() {
    let lab = lab();
    lab.write(
        "machines.toml",
        r#"
title = "Machines"
metrics = ["settings.procs", "settings.machine.name"]
[[trace]]
name = "small"
file = "log.swf"
options = { procs = 7 }
[[trace]]
name = "made"
model = "feitelson96"
jobs = 20
options = { machine = "one.toml" }
[[runs]]
name = "swept"
policies = ["easy"]
machines = [12, "one.toml"]
[[runs]]
name = "own"
policies = ["easy"]
[[runs]]
name = "set"
policies = ["easy"]
options = { machine = "one.toml", span = "any" }
"#,
    );
    let run = lab.run("experiment run machines.toml");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let rows = lab.read("machines-results/results.csv");
    let told = |row: &str| {
        let cells: Vec<&str> = row.split(',').collect();
        [cells[0], cells[1], cells[6], cells[12], cells[13]].join(" ")
    };
    let rows: Vec<String> = rows.lines().skip(1).map(told).collect();
    let expect = [
        "swept small 12 12 12",
        "swept small one.toml 10 one.toml",
        "swept made 12 12 12",
        "swept made one.toml 10 one.toml",
        "own small own 7 7",
        "own made own 10 one.toml",
        "set small one.toml 10 one.toml",
        "set made one.toml 10 one.toml",
    ];
    assert_eq!(rows, expect);
    // The model made a log for the machine of its options.
    assert!(lab.read("machines-results/traces/made.json").contains("\"procs\": 10"));
}

#[test]
fn an_experiment_says_what_is_wrong_with_its_machines() {
    let lab = lab();
    let refused = |log: &str, runs: &str, expect: &str| {
        let head = "title = \"M\"\n[[trace]]\nname = \"a\"\nfile = \"log.swf\"\n";
        let block = "[[runs]]\nname = \"all\"\npolicies = [\"easy\"]\n";
        lab.write("m.toml", format!("{head}{log}\n{block}{runs}\n"));
        let run = lab.run("experiment run m.toml");
        assert_eq!((run.code, run.stderr.as_str()), (Some(2), format!("error: {expect}\n").as_str()));
    };
    let missing = "no machine \"o3k\": not built in (o2k), not a number of processors, and not a readable file (No such file or directory (os error 2))";
    refused("options = { machine = \"o3k\" }", "", &format!("m.toml:2: {missing}"));
    refused("", "machines = [\"o3k\"]", &format!("m.toml:6: {missing}"));
    refused("", "options = { machine = \"0\" }", "m.toml:6: machine 0: must have 1 to 1073741824 processors");
    refused("", "options = { machine = \"5\", procs = 5 }", "m.toml:6: give procs or machine, not both");
    refused("", "options = { span = \"two\" }", "m.toml:6: span = \"two\": must be one of one, any");
    refused(
        "",
        "options = { span = \"any\" }",
        "m.toml:6: span and sharing need a machine; give machine or machines",
    );
    lab.write("bad.toml", "[[host]]\nname = \"a\"\n");
    refused("", "machines = [\"bad.toml\"]", "m.toml:6: bad.toml:1: missing field `cpus`");
}

/// Returns the rows of `out.csv` as values by position.
fn rows(lab: &Lab) -> Vec<Vec<String>> {
    let text = lab.read("out.csv");
    text.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect()).collect()
}

/// A public report: backfilling that gave whole hosts twice. 19 jobs on eight hosts of 16 processors.
#[test]
fn no_whole_host_is_given_twice() {
    const JOBS: [(i64, i64, i64); 19] = [
        (199, 64, 333),
        (344, 32, 574),
        (132, 64, 220),
        (132, 64, 220),
        (344, 32, 574),
        (338, 121, 564),
        (92, 16, 154),
        (132, 64, 220),
        (344, 32, 574),
        (415, 64, 692),
        (338, 121, 564),
        (337, 121, 563),
        (132, 64, 220),
        (337, 121, 563),
        (132, 64, 220),
        (92, 16, 154),
        (199, 64, 333),
        (338, 121, 564),
        (92, 16, 154),
    ];
    let jobs = JOBS.into_iter().zip(0..);
    let jobs: Vec<_> =
        jobs.map(|((runtime, procs, limit), at)| (at + 1, at, runtime, procs, limit)).collect();
    let lab = Lab::with_log(&log(&jobs));
    lab.write(
        "m.toml",
        "span = \"any\"\nsharing = \"whole\"\n[[host]]\nname = \"n\"\ncount = 8\ncpus = 16\n",
    );
    for policy in ["easy", "conservative", "fcfs", "easy(backfill=shortest)", "slurm"] {
        lab.stdout(&format!("simulate log.swf --machine m.toml -p {policy} --jobs out.csv"));
        let runs: Vec<(f64, f64, Vec<u32>)> =
            rows(&lab).iter().map(|row| (seconds(&row[8]), seconds(&row[10]), hosts(&row[14]))).collect();
        assert_eq!(runs.len(), 19, "{policy}");
        for (place, (start, end, held)) in runs.iter().enumerate() {
            let others = runs[place + 1..].iter().filter(|(begin, over, _)| begin < end && start < over);
            for (.., others) in others {
                assert!(held.iter().all(|host| !others.contains(host)), "{policy}: {held:?} and {others:?}");
            }
        }
    }
}

fn seconds(text: &str) -> f64 {
    text.parse().expect("a number of seconds")
}

/// Returns the hosts of 16 processors in a set of processors such as `0-15 80-127`.
fn hosts(set: &str) -> Vec<u32> {
    let bound = |text: &str| text.parse::<u32>().expect("a processor") / 16;
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        bound(first)..=bound(last)
    };
    set.split(' ').flat_map(range).collect()
}

/// A public report: 17 jobs of 20 s on four processors start in seven waves under EASY, and in eight in their order.
#[test]
fn waves_of_equal_jobs() {
    const JOBS: [(i64, i64); 17] = [
        (4, 80),
        (3, 80),
        (3, 80),
        (2, 80),
        (2, 80),
        (2, 80),
        (2, 80),
        (1, 70),
        (1, 65),
        (1, 60),
        (1, 55),
        (1, 50),
        (1, 45),
        (1, 40),
        (1, 35),
        (1, 30),
        (1, 25),
    ];
    let jobs: Vec<_> =
        JOBS.into_iter().zip(1..).map(|((procs, limit), job)| (job, 0, 20, procs, limit)).collect();
    let lab = Lab::with_log(&log(&jobs));
    for (policy, waves) in [("easy", 7), ("fcfs", 8)] {
        lab.stdout(&format!("simulate log.swf --procs 4 -p {policy} --jobs out.csv"));
        let starts: std::collections::BTreeSet<String> =
            rows(&lab).iter().map(|row| row[8].clone()).collect();
        assert_eq!(starts.len(), waves, "{policy}");
    }
}
