//! Extra fields of jobs through the program, and windows of logs.

use miserly_workload::Trace;
use miserly_workload::swf::{Field, Record};

use crate::document::Schema;
use crate::support::{Lab, of_project};

fn gpus() -> Lab {
    Lab::with_log(&std::fs::read_to_string(of_project("tests/data/gpus.swf")).expect("a log of the project"))
}

fn records(lab: &Lab, name: &str) -> Vec<Record> {
    let trace = Trace::memory(name, lab.read(name).into_bytes());
    let (mut reader, mut records) = (trace.reader().expect("a log"), Vec::new());
    while let Some(record) = reader.next_job().expect("a job") {
        records.push(record.clone());
    }
    records
}

#[test]
fn runs_have_groups_of_extra_fields() {
    let lab = gpus();
    let run = lab.document(
        "simulate log.swf -p easy --json --by gpus --by name --by nodes --by gpu_type --by features --by account",
    );
    Schema::load().check(&run);
    assert_eq!(run["jobs"].get("extra_fields"), None, "they are no deviation");
    let groups = |by: &str| -> Vec<(String, u64)> {
        let groups = run["by"][by].as_array().expect("groups").iter();
        let group = |group: &serde_json::Value| {
            (group["group"].as_str().expect("a name").to_owned(), group["jobs"].as_u64().expect("a number"))
        };
        groups.map(group).collect()
    };
    let named = |groups: Vec<(&str, u64)>| -> Vec<(String, u64)> {
        groups.into_iter().map(|(name, jobs)| (name.to_owned(), jobs)).collect()
    };
    assert_eq!(groups("gpus"), named(vec![("0.25", 1), ("2.5", 1), ("4", 1), ("8", 2), ("unknown", 3)]));
    assert_eq!(groups("nodes"), named(vec![("1", 4), ("2", 2), ("3", 1), ("4", 1)]));
    assert_eq!(groups("gpu_type"), named(vec![("A100", 3), ("V100", 2), ("unknown", 3)]));
    assert_eq!(groups("features"), named(vec![("nvlink", 2), ("unknown", 6)]));
    let of_names = [("post", 2), ("test;1", 1), ("train", 2), ("train large", 2), ("unknown", 1)];
    assert_eq!(groups("name"), named(of_names.to_vec()));
    assert_eq!(groups("account"), named(vec![("chemistry", 3), ("physics", 4), ("unknown", 1)]));
}

/// A name may move the cursor of a terminal; tables and texts have another character in its place.
#[test]
fn no_text_of_a_log_controls_a_terminal() {
    let job = "1 0 -1 60 4 -1 -1 4 90 -1 1 1 1 -1 1 1 -1 -1 a%1B[2Jb";
    let lab = Lab::with_log(&format!("; MaxProcs: 8\n; Extra: name\n{job}\n"));
    for command in
        ["simulate log.swf -p easy --by name", "workload describe log.swf", "explain log.swf 1 -p easy"]
    {
        let text = lab.stdout(command);
        assert!(text.contains("a\u{fffd}[2Jb") && !text.contains('\x1b'), "{command}: {text}");
    }
}

#[test]
fn filters_keep_and_drop_by_extra_fields() {
    let lab = gpus();
    let run = lab.document("simulate log.swf -p easy --json --keep account=physics --drop gpu_type=V100");
    Schema::load().check(&run);
    assert_eq!(run["settings"]["drop"], serde_json::json!(["gpu_type=V100", "account!=physics"]));
    assert_eq!(
        (&run["jobs"]["simulated"], &run["jobs"]["skipped"]["account!=physics"]),
        (&2.into(), &4.into())
    );
    let refused = lab.run("compare log.swf --keep job_memory=-1");
    assert_eq!(refused.code, Some(2));
    assert!(
        refused.stderr.contains("log.swf: a filter compares job_memory, which the log has not"),
        "{}",
        refused.stderr
    );
    let partition = lab.document("simulate log.swf -p easy --json --keep partition=2");
    assert_eq!(partition["jobs"]["simulated"], 3);
}

/// The rows of the jobs that run have their own fields, whatever lines are left out between them.
#[test]
fn rows_of_jobs_have_their_extra_fields() {
    let lab = gpus();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[0].to_owned(), cells[28..].join("|"))
    };
    lab.stdout("simulate log.swf -p easy --drop job=1 --procs 32 --jobs out.csv");
    let text = lab.read("out.csv");
    let rows: Vec<_> = text.lines().map(row).collect();
    let expect = [
        ("job_id", "nodes|gpus|gpu_type|name|account|features"),
        ("2", "1|2.5|V100|train|physics|"),
        ("3", "2|8|A100|train large|physics|nvlink"),
        ("4", "1|||post|chemistry|"),
        ("5", "1|0.25|A100|test;1|chemistry|"),
        ("6", "1|4|V100|train|physics|"),
    ];
    assert_eq!(rows, expect.map(|(job, extras)| (job.to_owned(), extras.to_owned())));
    lab.stdout("simulate log.swf -p easy --drop job=1 --procs 32 --jobs out.swf");
    let kept = records(&lab, "log.swf");
    for job in records(&lab, "out.swf") {
        let logged = kept.iter().find(|logged| logged.get(Field::Job) == job.get(Field::Job));
        assert_eq!(Some(job.extras()), logged.map(Record::extras));
    }
}

#[test]
fn a_log_is_converted_unchanged() {
    let lab = gpus();
    let said = lab.stdout("workload convert log.swf -o again.swf");
    assert_eq!(said, "log.swf: 8 of 8 jobs written\n");
    assert_eq!(records(&lab, "again.swf"), records(&lab, "log.swf"));
    assert!(lab.read("again.swf").contains("; MaxJobs: 8\n"));
    lab.stdout("workload import log.swf --keep user=3 -o few.swf");
    assert!(!lab.read("few.swf").contains("MaxJobs"), "the count is that of another log");
    let check = lab.run("workload check few.swf").stdout;
    assert!(!check.contains("count_differs"), "{check}");
    let refused = lab.run("workload convert log.swf -o log.swf");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("this is the input log"), "{}", refused.stderr);
}

/// Returns the number, the submission and the wait of each job.
fn starts(lab: &Lab, name: &str) -> Vec<[i64; 3]> {
    let start = |job: &Record| [Field::Job, Field::Submit, Field::Wait].map(|field| job.get(field));
    records(lab, name).iter().map(start).collect()
}

/// The schedule of a policy follows from the jobs in the system: the log of a window has the starts of the whole log.
#[test]
fn a_window_has_the_schedule_of_the_whole_log() {
    let lab = Lab::new();
    lab.stdout("workload generate --jobs 3000 --seed 5 --load 0.9 -o made.swf");
    for policy in ["fcfs", "easy", "conservative"] {
        lab.stdout(&format!("simulate made.swf -p {policy} --jobs whole.swf"));
        let listed = lab.document("workload slice whole.swf --days 1 --json");
        let windows = listed["windows"].as_array().expect("windows").iter();
        let busiest = windows.max_by_key(|window| window["waiting"].as_u64()).expect("a window");
        let busiest = &busiest["window"];
        for warmup in ["0", "3h"] {
            let part = "workload slice whole.swf --days 1 --json -o part.swf";
            let written = lab.document(&format!("{part} --window {busiest} --warmup {warmup}"));
            assert!(written["written"]["running"].as_u64() > Some(0), "{written}");
            let measured = written["warmup"].as_i64().expect("a time");
            let simulated = format!("simulate part.swf -p {policy} --jobs again.swf --json");
            let run = lab.document(&simulated);
            assert_eq!(run["settings"]["warmup"], measured, "{}", run["settings"]);
            assert_eq!(run["jobs"]["measured"], written["windows"][0]["jobs"]);
            // Later starts may follow from jobs that are submitted after the window.
            let pairs = starts(&lab, "part.swf").into_iter().zip(starts(&lab, "again.swf"));
            let inside: Vec<_> =
                pairs.filter(|([_, submit, wait], _)| submit + wait < measured + 86_400).collect();
            let first = inside.iter().find(|(logged, again)| logged != again);
            assert!(inside.len() > 500 && first.is_none(), "{policy}, warm-up {warmup}: {first:?}");
        }
    }
}

#[test]
fn windows_are_chosen_by_load_or_number() {
    let lab = gpus();
    let refused = |options: &str, message: &str| {
        let run = lab.run(&format!("workload slice log.swf {options}"));
        assert_eq!(run.code, Some(2), "{options}");
        assert!(run.stderr.contains(message), "{options}: {}", run.stderr);
    };
    refused("", "--weeks <N>");
    refused("--days 9", "log.swf: its submissions span 260000 s; a window of 777600 s does not fit");
    refused("--days 1 -o x.swf", "--output needs one window; choose it by --load or --window");
    refused("--days 1 --window 4", "--window 4: the windows are 1 to 3");
    refused("--days 1 --load 2..3", "none of 3 windows has a load from 2 to 3");
    refused("--days 1 --load 3", "no .. found");
    refused("--days 1 --load 3..2", "the range ends below its begin");
    refused("--days 1 --load x..2", "\"x\" is no load");
    refused("--days 1 --window 1 -o log.swf", "this is the input log");
    let text = lab.stdout("workload slice log.swf --days 1 --load 0..9 -o x.swf");
    assert!(text.contains("x.swf: "), "{text}");
    let cold = lab.stdout("workload slice log.swf --days 1 --window 2 --cold -o cold.swf");
    assert!(!cold.contains("run with their remaining time") && !cold.contains("warm-up"), "{cold}");
}
