//! Machines by name, by number and by file: on the command line and in experiments.

use serde_json::{Value, json};

use crate::support::{Lab, small_log, without_timing};

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
