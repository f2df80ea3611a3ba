//! The breakdowns of a run: `--by`, and `by` of an experiment.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::document::Schema;
use crate::support::{Lab, Run, small_log};

/// Users 1 to `users` in turn, the last of them unknown; each job twice as long as the one before, up to a day.
fn log(users: i64) -> String {
    let line = |job: i64| {
        let user = if job % users == 0 { -1 } else { job % users };
        let (submit, run, procs) = (50 * job, 1i64 << (job % 17), 1 + job % 10);
        format!(
            "{job} {submit} -1 {run} {procs} -1 -1 {procs} {run} -1 1 {user} -1 -1 {} -1 -1 -1\n",
            job % 3
        )
    };
    "; MaxProcs: 10\n".to_owned() + &(1..=300).map(line).collect::<String>()
}

/// The groups of a breakdown, as their names and one of their figures.
fn figures(document: &Value, by: &str, pointer: &str) -> Vec<(String, f64)> {
    let groups = document["by"][by].as_array().expect("a breakdown").iter();
    let name = |group: &Value| group["group"].as_str().expect("a name").to_owned();
    groups.map(|group| (name(group), group.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0))).collect()
}

#[test]
fn groups_come_in_their_order_and_sum_up_to_the_run() {
    let lab = Lab::with_log(&log(12));
    let options = "--by user --by category --by runtime-bin --by queue --by lsf-class --by user --by estimate --by estimate-category --by status";
    let run = lab.document(&format!("simulate log.swf -p easy --warmup 1h --json {options}"));
    Schema::load().check(&run);
    let measured = run["jobs"]["measured"].as_f64().expect("a number");
    assert!(measured < 300.0);
    let waited = run["metrics"]["wait"]["mean"].as_f64().expect("a mean") * measured;
    for by in
        ["category", "user", "queue", "runtime-bin", "lsf-class", "estimate", "estimate-category", "status"]
    {
        let jobs = figures(&run, by, "/jobs");
        let means = figures(&run, by, "/metrics/wait/mean");
        let sum: f64 = jobs.iter().zip(&means).map(|((_, jobs), (_, mean))| jobs * mean).sum();
        let all: f64 = jobs.iter().map(|(_, jobs)| jobs).sum();
        assert!((all - measured).abs() < 0.5, "{by}: {all} jobs of {measured}");
        assert!((sum - waited).abs() < 1e-9 * waited, "{by}: {sum} for {waited}");
    }
    let names = |by| figures(&run, by, "/jobs").into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("user").join(" "), "1 2 3 4 5 6 7 8 9 10 11 unknown");
    assert_eq!(names("queue"), ["0", "1", "2"]);
    assert_eq!(
        names("category")[..5],
        ["0-10min 1p", "0-10min 2-8p", "0-10min 9-32p", "0-10min >32p", "10min-1h 1p"]
    );
    let classes = names("lsf-class");
    assert_eq!((classes.len(), classes[0].as_str(), classes[12].as_str()), (13, "vst-sj", "beyond"));
    assert_eq!(figures(&run, "runtime-bin", "/from").last(), Some(&("65536-131072s".into(), 65536.0)));
}

#[test]
fn beyond_twenty_users_the_others_share_a_row() {
    let lab = Lab::with_log(&log(26));
    // The row of the others in each table.
    let others = |command: &str| -> Vec<String> {
        let output = lab.command(command).env("COLUMNS", "200").output().expect("a program that starts");
        let text = Run::from_output(&output).stdout;
        let rows = text.lines().filter(|line| line.starts_with("others"));
        rows.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    let run = lab.document("simulate log.swf -p fcfs --json --by user");
    let mut groups = run["by"]["user"].as_array().expect("users").clone();
    assert_eq!(groups.len(), 26);
    groups.sort_by(|a, b| b["work"].as_f64().unwrap_or(0.0).total_cmp(&a["work"].as_f64().unwrap_or(0.0)));
    let sum = |of: fn(&Value) -> Option<f64>| groups[20..].iter().filter_map(of).sum::<f64>();
    let jobs = sum(|group| group["jobs"].as_f64());
    let waited = sum(|group| Some(group["jobs"].as_f64()? * group["metrics"]["wait"]["mean"].as_f64()?));
    let mean = miserly_report::figure(Some(waited / jobs));
    let rows = others("simulate log.swf -p fcfs --by user --seconds");
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert!(
        row.starts_with(&format!("others (6) {jobs} ")) && row.contains(&format!("% {mean} - - ")),
        "{row}"
    );
    // Waits, then bounded slowdowns: mean, 95th percentile, worst.
    let compared = others("compare log.swf -p fcfs -p fcfs --by user --seconds --all-measures");
    assert_eq!(compared.len(), 6);
    assert_eq!(compared[0], format!("others (6) {jobs} {mean} {mean}"));
    assert_eq!(compared[1], format!("others (6) {jobs} - -"));
    // By default there is one table, that of the measure of the verdict.
    assert_eq!(others("compare log.swf -p fcfs -p fcfs --by user --seconds"), compared[..1]);
}

#[test]
fn every_run_of_a_comparison_has_its_groups() {
    let comparison = Lab::with_log(&log(3)).document("compare log.swf -p easy -p fcfs --json --by queue");
    for run in comparison["runs"].as_array().expect("runs") {
        Schema::load().check(run);
        assert_eq!(figures(run, "queue", "/jobs"), ["0", "1", "2"].map(|queue| (queue.to_owned(), 100.0)));
    }
    assert_eq!(comparison["runs"][0]["by"].as_object().map(serde_json::Map::len), Some(1));
}

/// An experiment that records a breakdown, and draws it.
fn experiment(by: &str) -> String {
    format!(
        r#"title = "Groups"

[[trace]]
name = "log"
file = "log.swf"

[[runs]]
name = "all"
policies = ["easy", "fcfs"]
record = {{ by = ["category", "{by}"] }}

[[chart]]
title = "By length"
kind = "groups"
value = "by.runtime-bin:metrics.wait.mean"
lines = [{{ label = "EASY", policy = "easy" }}]

[[chart]]
title = "By category"
kind = "heat"
value = "by.category:metrics.bounded_slowdown.mean"
lines = [{{ label = "EASY", policy = "easy" }}, {{ label = "FCFS", policy = "fcfs" }}]
"#
    )
}

#[test]
fn an_experiment_records_and_draws_them() {
    let lab = Lab::with_log(&log(3));
    lab.write("groups.toml", experiment("runtime-bin"));
    assert_eq!(lab.run("experiment run groups.toml -o results").code, Some(0));
    let report = lab.read("results/report.html");
    for drawn in ["By length", "By category", "10min-1h 2-8p", "&gt;8h 9-32p"] {
        assert!(report.contains(drawn), "{drawn}");
    }
}

#[test]
fn an_experiment_knows_its_words() {
    let lab = Lab::with_log(&log(3));
    lab.write("groups.toml", experiment("colour"));
    let run = lab.run("experiment run groups.toml -o results");
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    let said = "groups.toml:7: by: unknown grouping \"colour\"; it must be one of category, user, group, queue, partition, runtime-bin, lsf-class, estimate, estimate-category, status, nodes, gpus, gpu_type, name, account, features, or ranges such as procs:1,8,64, runtime:1h,12h or time-limit:4h,1d";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert_eq!(lab.files(), ["groups.toml", "log.swf"]);
}

#[test]
fn no_group_is_told_where_none_was_asked_for() {
    let run = Lab::with_log(&log(3)).document("simulate log.swf -p easy --json");
    assert_eq!(run.get("by"), None);
    assert_eq!(run["jobs"]["measured"], json!(300));
}

#[test]
fn ranges_of_ones_own() {
    let lab = Lab::with_log(&log(12));
    let own = ["procs:1,4", "runtime:10min,1h", "procs:1,4+runtime:1h"];
    let options = own.join(" --by ");
    let run = lab.document(&format!("simulate log.swf -p easy --json --by {options}"));
    Schema::load().check(&run);
    let names = |by| figures(&run, by, "/jobs").into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("procs:1,4"), ["1p", "2-4p", ">4p"]);
    assert_eq!(names("runtime:10m,1h"), ["0-10m", "10m-1h", ">1h"]);
    let both = ["1p 0-1h", "1p >1h", "2-4p 0-1h", "2-4p >1h", ">4p 0-1h", ">4p >1h"];
    assert_eq!(names("procs:1,4+runtime:1h"), both);
    // Every tenth job has one processor, and three tenths have two to four.
    let jobs: Vec<f64> = figures(&run, "procs:1,4", "/jobs").into_iter().map(|(_, jobs)| jobs).collect();
    assert_eq!(jobs, [30.0, 90.0, 180.0]);
    let table = lab.stdout("compare log.swf -p easy -p fcfs --by procs:1,4+runtime:1h");
    assert!(table.contains("\nby procs + runtime\n") && table.contains("\n2-4p 0-1h "), "{table}");
    for (by, problem) in [("procs:4,1", "the bounds must ascend"), ("procs:x", "no number of processors")] {
        let run = lab.run(&format!("simulate log.swf -p easy --by {by}"));
        assert!(run.code == Some(2) && run.stderr.contains(problem), "{}", run.stderr);
    }
}

#[test]
fn an_experiment_draws_ranges_of_its_own() {
    let lab = Lab::with_log(&log(3));
    let text = experiment("procs:1,4+runtime:60min").replace("runtime-bin:", "procs:1,4+runtime:1h:");
    assert!(text.contains("by.procs:1,4+runtime:1h:metrics.wait.mean"), "{text}");
    lab.write("groups.toml", text);
    let run = lab.run("experiment run groups.toml -o results");
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(lab.read("results/report.html").contains("2-4p 0-1h"));
}

#[test]
fn a_slide_has_the_verdict_in_one_picture() {
    let lab = Lab::with_log(&small_log());
    let line = "compare log.swf -p fcfs -p easy -p conservative --by procs:4 --slide slide.svg";
    let text = lab.stdout(line);
    let picture = lab.read("slide.svg");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    for part in ["Which policy", ">fcfs<", ">easy<", ">conservative<", "Who gains", "Who pays", "log.swf"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    for part in ["mean wait", "Who gains and who pays is unknown: the groups have too few jobs"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    // The schedules of the base and of the best policy, whose bars are of the classes of start reasons.
    for part in ["fcfs: ", "started at once (", "class=\"bars\""] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    // Both name the same change.
    let change = text.split("shortest mean wait: ").nth(1).and_then(|rest| rest.split(", ").nth(1));
    let change = change.and_then(|rest| rest.split(" fcfs").next()).expect("a verdict");
    assert!(picture.contains(&change.replace('\n', " ")), "{change}: {picture}");
    for (slide, problem) in
        [("slide.gif", "must end in .svg or .png"), ("slide.svg -p fcfs", "no two policies")]
    {
        let run = lab.run(&format!("compare log.swf --slide {slide}"));
        assert!(run.code == Some(2) && run.stderr.contains(problem), "{}", run.stderr);
    }
}

/// The programs are made ones: the first fails, and the second one's picture has what both got.
#[test]
fn a_slide_is_a_png_by_the_first_program_that_can() {
    let lab = Lab::with_log(&small_log());
    let slide = |programs: &[(&str, &str)]| {
        let folder = lab.path("programs");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        for (name, text) in programs {
            let file = folder.join(name);
            fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let _ = fs::remove_file(lab.path("slide.png"));
        let mut command = lab.command("compare log.swf -p fcfs -p easy --slide slide.png");
        Run::from_output(&command.env("PATH", &folder).output().unwrap())
    };
    let without = slide(&[]);
    assert!(without.code == Some(2) && without.stderr.contains("rsvg-convert"), "{}", without.stderr);
    let fails = ("rsvg-convert", "echo no fonts >&2; exit 3");
    let failed = slide(&[fails]);
    let problem = "--slide slide.png: rsvg-convert: exit status: 3, no fonts";
    assert!(failed.code == Some(2) && failed.stderr.contains(problem), "{}", failed.stderr);
    assert!(!lab.path("slide.png").exists());
    let succeeds = (
        "inkscape",
        "while read -r line; do echo \"$line\"; done <picture.svg >picture.png; echo $@ >>picture.png",
    );
    let drawn = slide(&[fails, succeeds]);
    assert_eq!(drawn.code, Some(0), "{}", drawn.stderr);
    let picture = lab.read("slide.png");
    assert!(picture.starts_with("<svg ") && picture.contains("--export-dpi=192"), "{picture}");
}

/// 4 096 jobs: each fourth is long and of queue 1, so it waits longer under `easy(order=shortest)`. The header names the queues 1
/// and 2, and one of two partitions.
fn queues() -> String {
    let mut text = "; MaxProcs: 8\n; Queue: 1 long\n; Queue: 2 short\n; Partition: 7 blue\n".to_owned();
    for job in 1..=4096_i64 {
        let mixed = job * 7919 % 101;
        let (queue, run) = match job % 4 {
            0 => (1, 900 + mixed % 7 * 10),
            3 => (3, 120),
            _ => (2, 60 + mixed % 5),
        };
        let (submit, procs) = (180 * job + mixed, 1 + mixed % 6);
        let partition = 7 + mixed % 2;
        text += &format!(
            "{job} {submit} -1 {run} {procs} -1 -1 {procs} {run} -1 1 1 -1 -1 {queue} {partition} -1 -1\n"
        );
    }
    text
}

#[test]
fn a_verdict_names_who_gains_and_who_pays_if_it_is_no_chance() {
    let lab = Lab::with_log(&queues());
    let line = "compare log.swf -p easy -p easy(order=shortest) --by queue";
    let document = lab.document(&format!("{line} --json"));
    let verdict = &document["verdicts"][0];
    let change = |group: &Value| group["after"].as_f64().zip(group["before"].as_f64()).expect("two waits");
    for (role, name) in [("gains", "short"), ("pays", "long")] {
        let group = &verdict[role];
        assert_eq!(group["name"], name, "{role}: {verdict}");
        let (after, before) = change(group);
        assert_eq!(after < before, role == "gains", "{verdict}");
        assert!((after - before).abs() > group["half_width"].as_f64().expect("an interval"), "{verdict}");
    }
    assert_eq!((&verdict["best"], &verdict["base"]), (&json!("easy(order=shortest)"), &json!("easy")));
    // The mean waits are those of the runs.
    let by_queue = |run: usize| figures(&document["runs"][run], "queue", "/metrics/wait/mean");
    let groups = verdict["groups"].as_array().expect("groups");
    for ((group, before), after) in groups.iter().zip(by_queue(0)).zip(by_queue(1)) {
        assert_eq!(change(group), (after.1, before.1));
    }
    let text = lab.stdout(line).replace('\n', " ");
    let parts =
        ["jobs of queue short gain most: they wait ", "The 1 024 jobs of queue long pay most: they wait "];
    for part in parts.into_iter().chain(["(95 % for 3 groups together)"]) {
        assert!(text.contains(part), "{part}: {text}");
    }
    lab.stdout(&format!("{line} --slide slide.svg"));
    let picture = lab.read("slide.svg");
    for part in [">queue short (", ">queue long (1 024 jobs): "] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    // Two policies that differ by chance alone: no group is named.
    let policies = "-p easy(order=random,seed=1) -p easy(order=random,seed=2)";
    let random = lab.document(&format!("compare log.swf {policies} --by partition --json"));
    let verdict = &random["verdicts"][0];
    assert_eq!((&verdict["gains"], &verdict["pays"]), (&Value::Null, &Value::Null), "{verdict}");
    assert!(verdict["groups"][0]["half_width"].is_number(), "{verdict}");
}

#[test]
fn groups_have_the_names_of_the_header() {
    let lab = Lab::with_log(&queues());
    let rows = |by: &str| -> Vec<String> {
        let text = lab.stdout(&format!("simulate log.swf -p easy --by {by}"));
        let table = text.split_once(&format!("\n{by} ")).expect("a table").1.lines().skip(1);
        table.map(|row| row.split("  ").next().unwrap_or_default().to_owned()).collect()
    };
    // By descending work; a number without a name has its field.
    assert_eq!(rows("queue"), ["long", "short", "queue 3"]);
    let mut partitions = rows("partition");
    partitions.sort();
    assert_eq!(partitions, ["blue", "partition 8"]);
    let run = lab.document("simulate log.swf -p easy --by queue --by partition --json");
    Schema::load().check(&run);
    let named = |by: &str| -> Vec<(Value, Value)> {
        let groups = run["by"][by].as_array().expect("groups").iter();
        groups.map(|group| (group["group"].clone(), group["name"].clone())).collect()
    };
    let queues_named = [(json!("1"), json!("long")), (json!("2"), json!("short")), (json!("3"), Value::Null)];
    assert_eq!(named("queue"), queues_named);
    assert_eq!(named("partition"), [(json!("7"), json!("blue")), (json!("8"), Value::Null)]);
    // One name for two numbers does not tell them apart.
    lab.write("twice.swf", queues().replace("2 short", "2 long"));
    let run = lab.document("simulate twice.swf -p easy --by queue --json");
    assert_eq!(run["by"]["queue"][1]["name"], "long (2)");
}

#[test]
fn time_limits_are_grouped_by_ranges_that_suit_the_log() {
    let lab = Lab::with_log(&queues());
    let run = lab.document("simulate log.swf -p easy --by time-limit --by time-limit:100,15min --json");
    Schema::load().check(&run);
    let names = |by| figures(&run, by, "/jobs").into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("time-limit:1m,2m"), ["0-1m", "1m-2m", ">2m"]);
    // A half of the jobs asks for about a minute, and a quarter for two.
    let jobs = figures(&run, "time-limit:1m40s,15m", "/jobs");
    assert_eq!(jobs[0], ("0-1m40s".to_owned(), 2048.0));
    assert!((jobs.iter().map(|(_, jobs)| jobs).sum::<f64>() - 4096.0).abs() < 0.5, "{jobs:?}");
    let text = lab.stdout("compare log.swf -p easy -p fcfs --by time-limit");
    assert!(text.contains("\nby time-limit\n") && text.contains("\n1m-2m "), "{text}");
    lab.write("groups.toml", experiment("time-limit"));
    let run = lab.run("experiment run groups.toml -o results");
    assert!(run.code == Some(2) && run.stderr.contains("or time-limit:4h,1d"), "{}", run.stderr);
}

/// Some seconds of waiting are nothing beside runtimes of 1 000 seconds, and no ratio is of nothing.
#[test]
fn a_verdict_has_no_ratio_of_nothing() {
    let job = |number, submit, run, procs| {
        format!("{number} {submit} -1 {run} {procs} -1 -1 {procs} {run} -1 1 -1 -1 -1 -1 -1 -1 -1\n")
    };
    let verdict = |lab: &Lab, line: &str| {
        let text = lab.stdout(line);
        let verdict = text.split("verdict: ").nth(1).expect("a verdict");
        verdict.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let calm = Lab::with_log(&format!("; MaxProcs: 8\n{}{}", job(1, 0, 60, 8), job(2, 100, 60, 8)));
    assert_eq!(verdict(&calm, "compare log.swf -p easy -p fcfs"), "No job waits under either policy.");
    let three = verdict(&calm, "compare log.swf -p easy -p fcfs -p conservative");
    assert_eq!(three, "No job waits under any of the policies.");
    // The second job waits for the first one, and the third one waits behind it under fcfs only.
    let jobs = [job(1, 0, 1000, 6), job(2, 996, 1000, 4), job(3, 996, 2, 2)];
    let busy = Lab::with_log(&format!("; MaxProcs: 8\n{}", jobs.concat()));
    let verdict = verdict(&busy, "compare log.swf -p fcfs -p easy");
    assert!(
        verdict.starts_with("easy has the shortest mean wait: 1.3s, against 2.7s under fcfs. "),
        "{verdict}"
    );
    busy.stdout("compare log.swf -p fcfs -p easy --slide slide.svg");
    let picture = busy.read("slide.svg");
    assert!(picture.contains(">easy: 1.3s, against 2.7s under fcfs<"), "{picture}");
}

/// Three policies leave no place for the recorded schedule, and two do.
#[test]
fn a_slide_has_the_policies_that_were_asked_for() {
    let lab = Lab::new();
    let march = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/how-to/march.sacct.gz");
    let policies = ["easy", "conservative", "easy(order=lxf)"];
    for (count, is_recorded) in [(2, true), (3, false)] {
        let of = policies[..count].join(" -p ");
        let run = lab.run(&format!("compare {march} --procs 256 -p {of} --slide slide.svg"));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let picture = lab.read("slide.svg");
        for policy in &policies[..count] {
            assert!(picture.contains(&format!(">{policy}<")), "{policy}: {picture}");
        }
        assert_eq!(picture.contains(">recorded<"), is_recorded, "{picture}");
    }
}

#[test]
fn the_recorded_schedule_has_a_line_on_a_page() {
    let job = |number| format!("{number} {number} 40 60 4 -1 -1 4 60 -1 1 -1 -1 -1 -1 -1 -1 -1\n");
    let lab = Lab::with_log(&format!("; MaxProcs: 8\n{}{}", job(1), job(2)));
    lab.stdout("compare log.swf -p easy --report page.html");
    let page = lab.read("page.html");
    let wait = page.split("data-chart=\"wait\"").nth(1).and_then(|rest| rest.split("</figure>").next());
    assert!(wait.expect("a chart").contains(">recorded<"), "{page}");
}
