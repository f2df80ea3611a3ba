//! What is told of logs, and logs that are made.

use serde_json::json;

use crate::support::{Lab, log, parsed, small_log};

#[test]
fn one_log_is_a_document_and_several_are_a_list() {
    let lab = Lab::with_log(&small_log());
    lab.write("other.swf", log(&[(1, 0, 10, 1, 10)]));
    for command in ["describe", "check"] {
        let one = lab.document(&format!("workload {command} log.swf --json"));
        let two = lab.document(&format!("workload {command} log.swf other.swf --json"));
        assert_eq!((two.as_array().map(Vec::len), &two[0]), (Some(2), &one));
        assert_eq!(two[1]["name"], "other.swf");
        let texts = ["log.swf", "other.swf"].map(|log| lab.stdout(&format!("workload {command} {log}")));
        assert_eq!(lab.stdout(&format!("workload {command} log.swf other.swf")), texts.join("\n"));
    }
}

#[test]
fn a_strict_check_fails_on_any_finding() {
    let lab = Lab::new();
    lab.write("sound.swf", "; MaxProcs: 4\n1 0 0 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1\n");
    lab.write("odd.swf", log(&[(1, 0, 20, 1, 10)]));
    let code = |line: &str| {
        let run = lab.run(line);
        assert!(run.stdout.contains("read") || run.stdout.contains("jobs in"), "{}", run.stdout);
        (run.code, run.stderr)
    };
    let told = |code_of_exit| (Some(code_of_exit), String::new());
    assert_eq!(code("workload check sound.swf --strict"), told(0));
    assert_eq!(code("workload check odd.swf"), told(0));
    assert_eq!(code("workload check odd.swf --strict"), told(1));
    assert_eq!(code("workload check sound.swf odd.swf --strict --json"), told(1));
}

#[test]
fn a_byte_order_mark_is_passed_over() {
    let lab = Lab::with_log(&small_log());
    lab.write("marked.swf", format!("\u{feff}{}", small_log()));
    let jobs = |file: &str| {
        let document = lab.document(&format!("simulate {file} -p easy --json"));
        json!([document["jobs"], document["metrics"]])
    };
    assert_eq!(jobs("marked.swf"), jobs("log.swf"));
    // Before a job, too; and nowhere but at the top.
    let line = "1 0 0 10 4 -1 -1 4 10 -1 1 1 1 1 1 1 -1 -1\n";
    lab.write("bare.swf", format!("\u{feff}{line}"));
    assert_eq!(lab.document("workload check bare.swf --procs 4 --json")["left_out"], 0);
    lab.write("twice.swf", format!("\u{feff}{line}\u{feff}{line}"));
    let twice = lab.run("workload check twice.swf --procs 4 --json");
    assert_eq!((twice.code, &parsed(&twice.stdout)["left_out"]), (Some(1), &json!(1)));
}

#[test]
fn a_model_has_its_own_shape() {
    let lab = Lab::new();
    let log = lab.stdout("workload generate --model sud");
    assert_eq!(log, lab.stdout("workload generate --model sud --jobs 18415 --procs 256 --seed 1"));
    assert_eq!(log.lines().filter(|line| !line.starts_with(';')).count(), 18_415);
    let shaped = lab.stdout("workload generate --model sud --jobs 5 --procs 7 --load 0.5 --seed 3");
    for part in ["jobs=5", "procs=7", "load=0.5", "seed=3"] {
        assert!(shaped.contains(&format!("; Note: parameter {part}\n")), "{shaped}");
    }
}

#[test]
fn parameters_of_a_model_are_set_by_name_and_told() {
    let lab = Lab::new();
    let log =
        lab.stdout("workload generate --jobs 9 --set run_order=0 --set users=2 --set run_max=3 --set seed=4");
    for part in ["jobs=9", "run_order=0", "users=2", "run_max=3", "seed=4", "square_weight=3"] {
        assert!(log.contains(&format!("; Note: parameter {part}\n")), "{part} is missing in\n{log}");
    }
    assert_eq!(
        log,
        lab.stdout("workload generate --jobs 9 --seed 4 --set run_max=3 --set users=2 --set run_order=0")
    );
}

#[test]
fn a_month_of_the_origin_2000_is_told_beside_the_paper() {
    let lab = Lab::new();
    lab.stdout("workload generate --model o2k --month 2000-03 --seed 5 -o march.swf");
    let text = lab.stdout("workload describe march.swf");
    assert!(text.contains("\n2000-03 beside the paper"), "{text}");
    let month = &lab.document("workload describe march.swf --json")["month"];
    assert_eq!(month["overall"]["ours"]["jobs"], 7034);
    assert_eq!(month["overall"]["paper"], json!({ "jobs": 7034, "procs": 0.85, "memory": 0.78 }));
    // Another log has no such part.
    lab.stdout("workload generate --jobs 50 -o made.swf");
    assert_eq!(lab.document("workload describe made.swf --json")["month"], json!(null));
    assert!(!lab.stdout("workload describe made.swf").contains("the paper"));
}
