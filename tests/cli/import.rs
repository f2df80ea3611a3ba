//! Other formats: from what somebody has to a run.

use std::fs;

use crate::support::{Lab, gzipped, of_project, parsed};

/// A folder with accounting and a workload.
fn lab() -> Lab {
    let lab = Lab::new();
    for name in ["november.sacct", "workload.json"] {
        lab.write(name, fs::read(of_project("tests/data").join(name)).expect("a file of the project"));
    }
    lab
}

#[test]
fn accounting_can_be_checked_and_run() {
    let lab = lab();
    let report = lab.stdout("workload import slurm november.sacct --procs 64 -o november.swf");
    assert!(report.starts_with("november.sacct: Slurm accounting\n6 jobs written of 6 read"), "{report}");
    let check = lab.document("workload check november.swf --json");
    assert_eq!((&check["read"], &check["left_out"]), (&6.into(), &1.into()));
    let kinds: Vec<_> =
        check["findings"].as_array().into_iter().flatten().map(|found| &found["kind"]).collect();
    assert_eq!(kinds, ["no_runtime", "sizes_differ"]);
    let run = lab.document("simulate november.swf --policy easy --json");
    assert_eq!(run["jobs"]["simulated"], 5);
}

#[test]
fn a_workload_of_batsim_is_clean_and_runs() {
    let lab = lab();
    lab.stdout("workload import batsim workload.json -o w.swf");
    assert!(lab.stdout("workload check w.swf").contains("; no anomalies\n"));
    assert_eq!(lab.document("simulate w.swf --policy easy --json")["jobs"]["simulated"], 3);
}

#[test]
fn gzipped_or_from_a_pipe_is_the_same() {
    let lab = lab();
    let text = fs::read(lab.path("november.sacct")).expect("a file");
    lab.write("november.sacct.gz", gzipped(&text));
    lab.stdout("workload import slurm november.sacct -o plain.swf");
    lab.stdout("workload import slurm november.sacct.gz -o packed.swf");
    lab.fed("workload import slurm - -o piped.swf", &text);
    let jobs =
        |name| lab.read(name).lines().filter(|line| !line.starts_with(';')).map(str::to_owned).collect();
    let plain: Vec<String> = jobs("plain.swf");
    assert_eq!((&plain, &plain), (&jobs("packed.swf"), &jobs("piped.swf")));
}

#[test]
fn without_a_file_the_log_is_printed_and_the_report_stands_beside_it() {
    let lab = lab();
    let run = lab.run("workload import slurm november.sacct --json");
    assert_eq!((run.code, parsed(&run.stderr)["written"].as_u64()), (Some(0), Some(6)));
    lab.stdout("workload import slurm november.sacct -o november.swf");
    assert_eq!(run.stdout, lab.read("november.swf"));
}

#[test]
fn accounting_that_is_cut_in_its_last_line_is_refused() {
    let lab = lab();
    let text = lab.read("november.sacct");
    let lines = text.lines().count();
    lab.write("cut.sacct", &text[..text.len() - 3]);
    let run = lab.run("workload import slurm cut.sacct -o cut.swf");
    let problem =
        format!("error: cut.sacct:{lines}: the last line has no line end, so the file may be cut in it;");
    assert!(run.code == Some(2) && run.stderr.starts_with(&problem), "{}", run.stderr);
    assert!(!lab.path("cut.swf").exists());
    let report = lab.stdout("workload import slurm cut.sacct --lenient -o cut.swf");
    assert!(report.contains("5 jobs written of 6 read"), "{report}");
}

#[test]
fn a_machine_that_is_too_small_for_its_accounting_is_warned_of() {
    let lab = lab();
    let run = lab.run("workload import slurm november.sacct --procs 1 -o small.swf");
    assert_eq!(run.code, Some(0));
    let start = "warning: november.sacct: the machine has 1 processors, but up to ";
    assert!(run.stderr.starts_with(start) && run.stderr.ends_with("; check --procs\n"), "{}", run.stderr);
}
