//! What becomes of the lines of a log: read = simulated + skipped, always.

use serde_json::{Value, json};

use crate::support::{Lab, gzipped, line, log, parsed, small_log, without_timing};

/// Runs `log.swf` under EASY; every run accounts for every line.
#[track_caller]
fn run(lab: &Lab, options: &str) -> Value {
    accounted(lab.document(&format!("simulate log.swf --policy easy --json {options}")))
}

/// A document in which every line is accounted for.
#[track_caller]
fn accounted(document: Value) -> Value {
    let jobs = &document["jobs"];
    let number = |value: &Value| value.as_u64().expect("a count");
    let skipped: u64 = jobs["skipped"].as_object().expect("reasons").values().map(number).sum();
    assert_eq!(number(&jobs["read"]), number(&jobs["simulated"]) + skipped, "{jobs}");
    document
}

/// One log and what is skipped of it.
#[track_caller]
fn check(text: &str, options: &str, skipped: &Value) {
    assert_eq!(run(&Lab::with_log(text), options)["jobs"]["skipped"], *skipped, "{options}");
}

/// One log of which all lines are skipped.
#[track_caller]
fn check_all(text: &str, options: &str, skipped: &Value) {
    let line = format!("simulate log.swf --policy easy --json {options}");
    let document = accounted(Lab::with_log(text).empty_document(&line));
    assert_eq!(document["jobs"]["skipped"], *skipped, "{options}");
}

#[test]
fn malformed_lines_are_counted() {
    let text = format!("{}1 2 3\nnonsense\n\n  \n; a comment\n", small_log());
    check(&text, "--lenient", &json!({"malformed": 2, "too_wide": 1}));
    check_all("; MaxProcs: 10\nnonsense\n", "--lenient", &json!({"malformed": 1}));
    // A binary file is all malformed, but still read to its end.
    check_all("\u{7f}ELF\u{1}\u{2}\n\u{0}\u{0}\n", "--lenient --procs 4", &json!({"malformed": 2}));
}

#[test]
fn jobs_that_cannot_run_are_counted_by_reason() {
    let jobs =
        [(1, 0, 10, 1, 10), (2, -1, 10, 1, 10), (3, 5, -1, 1, 10), (4, 5, 10, -1, 10), (5, 5, 10, 11, 10)];
    let reasons = &json!({"no_submit_time": 1, "no_runtime": 1, "no_processors": 1, "too_wide": 1});
    check(&log(&jobs), "", reasons);
}

#[test]
fn policies_that_need_what_the_log_lacks_are_warned_of() {
    let job = |number| format!("{number} 0 -1 60 4 -1 -1 4 -1 -1 1 -1 -1 -1 -1 -1 -1 -1\n");
    let lab = Lab::with_log(&format!("; MaxProcs: 4\n{}{}", job(1), job(2)));
    let check = |policy: &str, warnings: &[&str]| {
        let run = lab.run(&format!("compare log.swf -p {policy} --estimates exact --json"));
        let lines: Vec<&str> = run.stderr.lines().filter(|line| line.starts_with("warning")).collect();
        let lacks = "2 of 2 jobs are without";
        let expect = warnings.iter().map(|text| format!("warning: log.swf: {policy}: {lacks} {text}"));
        assert_eq!(lines, expect.collect::<Vec<_>>());
    };
    check("easy", &[]);
    check("fcfs(order='usage_share')", &["a user; its order takes them as jobs of one user"]);
    check("fcfs(order='group_usage')", &["a group; its order takes them as jobs of one group"]);
    check("easy(predict=last2)", &["a user; it takes their estimates as predictions"]);
    check("fcfs(order='memory')", &["memory; its order takes it as 0"]);
    let expect =
        "warning: log.swf: easy: 2 of 2 jobs are without an estimate; it knows their runtimes instead\n";
    for command in ["compare", "what-if"] {
        assert_eq!(lab.run(&format!("{command} log.swf -p fcfs -p easy")).stderr, expect);
    }
}

#[test]
fn filters_see_the_fields_of_the_log() {
    let jobs = [(1, 0, 0, 1, 10), (2, 0, 10, 1, -1), (3, 0, 0, 1, -1), (4, 0, 10, 2, 10)];
    check(&log(&jobs), "--drop runtime<=0 --drop estimate<=0", &json!({"runtime<=0": 2, "estimate<=0": 1}));
    check(&log(&jobs), "--drop estimate<=0 --drop runtime<=0", &json!({"estimate<=0": 2, "runtime<=0": 1}));
    check(&log(&jobs), "--drop allocated=2 --drop user==7", &json!({"allocated=2": 1}));
}

#[test]
fn a_window_of_the_log() {
    let jobs: Vec<_> = (0..10).map(|job| (job, 60 * job, 10, 1, 10)).collect();
    let lab = Lab::with_log(&log(&jobs));
    let document = run(&lab, "--from 2m --to 480 --warmup 1m");
    assert_eq!(document["jobs"]["skipped"], json!({"before_from": 2, "after_to": 2}));
    // Six jobs from second 120 on, of which the first is within the minute of warm-up.
    assert_eq!((&document["jobs"]["simulated"], &document["jobs"]["measured"]), (&json!(6), &json!(5)));
    let settings = &document["settings"];
    assert_eq!(
        (&settings["from"], &settings["to"], &settings["warmup"]),
        (&json!(120), &json!(480), &json!(60))
    );
}

#[test]
fn logs_that_are_out_of_order_are_sorted() {
    let (first, second, third) = ((1, 100, 10, 10, 10), (2, 50, 10, 10, 10), (3, 50, 20, 10, 20));
    let lab = Lab::with_log(&log(&[first, second, third]));
    assert_eq!(run(&lab, "--jobs out.csv")["jobs"]["out_of_order"], 2);
    let rows = lab.read("out.csv");
    let order: Vec<&str> = rows.lines().skip(1).filter_map(|row| row.split(',').next()).collect();
    assert_eq!(order, ["2", "3", "1"]);
    let sorted = Lab::with_log(&log(&[second, third, first]));
    assert_eq!(run(&sorted, "")["metrics"], run(&lab, "")["metrics"]);
}

#[test]
fn standard_input_is_a_log_like_any_other() {
    let lab = Lab::with_log(&small_log());
    lab.write("log.swf.gz", gzipped(small_log().as_bytes()));
    for (name, bytes) in
        [("log.swf", small_log().into_bytes()), ("log.swf.gz", gzipped(small_log().as_bytes()))]
    {
        let options = "-p conservative --json --drop job=2";
        let mut file = without_timing(&lab.stdout(&format!("simulate {name} {options}")));
        let piped = without_timing(&lab.fed(&format!("simulate - {options}"), &bytes));
        assert_eq!(
            (&file["trace"]["name"], &piped["trace"]["name"]),
            (&json!(name), &json!("standard input"))
        );
        file["trace"]["name"] = json!("standard input");
        assert_eq!(file, piped);
    }
    let told = lab.fed("explain - 2 --policy easy", small_log().as_bytes());
    assert_eq!(told, lab.stdout("explain log.swf 2 --policy easy"));
}

#[test]
fn nothing_is_left_of_standard_input() {
    let lab = Lab::new();
    let mut command = lab.command("simulate - --policy easy");
    command.env("TMPDIR", lab.path("")).stdin(std::process::Stdio::piped());
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("a program that starts");
    // While it still waits for more, there is no file with a name.
    std::io::Write::write_all(child.stdin.as_mut().expect("a pipe"), small_log().as_bytes())
        .expect("a reader");
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(lab.files(), [""; 0]);
    drop(child.stdin.take());
    assert!(child.wait().expect("an end").success());
}

#[test]
fn which_field_is_the_size() {
    // Allocated 3, requested 8.
    let text = "; MaxProcs: 10\n1 0 -1 10 3 -1 -1 8 10 -1 1 1 -1 -1 -1 -1 -1 -1\n";
    for (options, size) in [("", 3), ("--procs-field allocated", 3), ("--procs-field requested", 8)] {
        let document = run(&Lab::with_log(text), options);
        assert_eq!(document["utilization"], f64::from(size) / 10.0, "{options}");
    }
    check_all(text, "--procs-field requested --procs 7", &json!({"too_wide": 1}));
}

#[test]
fn estimates_are_a_property_of_the_run() {
    // The head, 2, waits for 1; whether 3 passes it depends on what is told of 3 and of 1.
    let lab = Lab::with_log(&log(&[(1, 0, 100, 6, 200), (2, 1, 50, 10, 50), (3, 2, 90, 4, 300)]));
    for (model, recorded, wait) in [
        ("trace", "trace", 247.0 / 3.0),
        ("trace*0.50", "trace*0.5", 247.0 / 3.0),
        ("exact", "exact", 99.0 / 3.0),
        ("exact*1.25", "exact*1.25", 99.0 / 3.0),
        ("uniform:1", "uniform:1", 99.0 / 3.0),
    ] {
        let document = run(&lab, &format!("--estimates {model}"));
        assert_eq!(document["settings"]["estimates"], recorded);
        assert_eq!(document["metrics"]["wait"]["mean"], wait, "{model}");
    }
    let drawn = |seed| run(&lab, &format!("--estimates uniform:50 --seed {seed}"))["metrics"].to_string();
    assert_eq!(drawn(3), drawn(3));
}

#[test]
fn what_happens_at_the_estimate() {
    let lab = Lab::with_log(&log(&[(1, 0, 100, 10, 60), (2, 1, 10, 10, 10)]));
    for (overrun, killed, wait, makespan) in
        [("kill", 1, 59.0, 70.0), ("extend", 0, 99.0, 110.0), ("run", 0, 99.0, 110.0)]
    {
        let document = run(&lab, &format!("--overrun {overrun}"));
        assert_eq!(document["settings"]["overrun"], overrun);
        assert_eq!(document["jobs"]["killed_at_estimate"], killed);
        assert_eq!(
            (&document["metrics"]["wait"]["max"], &document["makespan"]),
            (&json!(wait), &json!(makespan))
        );
    }
    // Extended, the job has told the truth; run, it breaks the promise to the one behind it.
    assert_eq!(run(&lab, "--overrun extend")["promises"], json!({"made": 1, "kept": 1, "broken": 0}));
    assert_eq!(run(&lab, "--overrun run")["promises"], json!({"made": 1, "kept": 0, "broken": 1}));
}

#[test]
fn the_convention_for_one_instant_changes_the_schedule() {
    // At second 100 job 1 ends, before its estimate, and job 3 comes. In a batch the end is first, and the head
    // starts. One by one, the submission is first: 3 fits beside 1, and the head waits for it.
    let lab = Lab::with_log(&log(&[(1, 0, 100, 6, 200), (2, 1, 50, 8, 50), (3, 100, 20, 4, 20)]));
    for (event_order, waits) in [("batched", 99.0 + 50.0), ("sequential", 119.0)] {
        let document = run(&lab, &format!("--event-order {event_order}"));
        assert_eq!(document["settings"]["event_order"], event_order);
        assert_eq!(document["metrics"]["wait"]["mean"], waits / 3.0);
    }
}

#[test]
fn the_last_line_needs_no_end() {
    let text = format!("; MaxProcs: 10\r\n{}", line((1, 0, 10, 1, 10)).trim_end());
    assert_eq!(run(&Lab::with_log(&text), "")["jobs"]["simulated"], 1);
    let twice =
        [gzipped(text.as_bytes()), gzipped(b"\n"), gzipped(line((2, 0, 10, 1, 10)).as_bytes())].concat();
    let document = parsed(&Lab::new().fed("simulate - -p easy --json", &twice));
    assert_eq!(document["jobs"]["simulated"], 2);
}

/// Lublin's model writes twenty fields, pandas writes whole numbers with decimals, and some write five fields.
#[test]
fn lines_that_deviate_are_read_and_counted() {
    let twenty = "; MaxNodes: 256\n    1     286 -1      68   8 -1 -1 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1\n\
                  \x20   2     614 -1       4   2 -1 -1 -1 -1 -1 -1 -1 1 -1 -1 -1 0 -1 -1 -1\r\n";
    let decimals = "; MaxProcs: 10\n1 0.0 -1.0 30.0 2.0 -1 -1 2.0 60.0 -1 1 1 1 -1 1 -1 -1 -1\n";
    let counted = |text: &str, options: &str, kind: &str, lines: u64, warning: &str| {
        let lab = Lab::with_log(text);
        let result = lab.run(&format!("simulate log.swf -p easy --json {options}"));
        let document = accounted(parsed(&result.stdout));
        assert_eq!(document["jobs"][kind], lines, "{document}");
        let warning = format!("warning: log.swf: {lines} of {lines} lines {warning}\n");
        assert!(result.stderr.contains(&warning), "{}", result.stderr);
        document
    };
    let run =
        counted(twenty, "", "extra_fields", 2, "have more than 18 fields, and the further ones are ignored");
    assert_eq!((&run["jobs"]["simulated"], &run["metrics"]["response"]["mean"]), (&json!(2), &json!(36.0)));
    let run = counted(decimals, "", "decimals", 1, "have whole numbers with decimals, such as 30.0");
    assert_eq!(run["metrics"]["response"]["mean"], 30.0);
    let few = "have fewer than 18 fields, and the missing ones are unknown";
    let run = counted("; MaxProcs: 4\n1 0 0 30 2\n", "--missing-fields", "missing_fields", 1, few);
    assert_eq!(run["metrics"]["response"]["mean"], 30.0);
    let named = Lab::with_log(&format!("; Field: 19 energy\n{twenty}"));
    let check = named.stdout("workload check log.swf");
    assert!(check.contains("extra_fields: 2") && check.contains("field 19 (energy)"), "{check}");
}

#[test]
fn submissions_of_the_epoch_are_shown_as_dates() {
    let jobs = [(1, 1_641_021_741, 10, 10, 10), (2, 1_641_021_742, 10, 10, 10)];
    for header in ["", "; UnixStartTime: 0\n"] {
        let lab = Lab::with_log(&format!("{header}{}", log(&jobs)));
        let text = lab.stdout("explain log.swf 2 -p easy");
        assert!(text.contains("2022-01-01 07:22") && !text.contains("18993d"), "{text}");
    }
}
