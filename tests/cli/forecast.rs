//! `miserly forecast`: the audit as a table, as JSON, and as rows of jobs.

use crate::support::{Lab, log};

/// Twenty jobs on ten processors, each of which has to wait for the one before.
fn lab() -> Lab {
    let jobs: Vec<_> = (0..20).map(|number| (number + 1, 10 * number, 100, 6, 300)).collect();
    Lab::with_log(&log(&jobs))
}

#[test]
fn the_audit_of_a_log() {
    let lab = lab();
    let tables = lab.stdout("forecast log.swf -p conservative --draws 3");
    for part in ["95 % kept", "BMBP", "first tenth is not audited", "3 for each job that waits"] {
        assert!(tables.contains(part), "{part}: {tables}");
    }
    lab.stdout("forecast log.swf -p conservative --draws 3 --report page.html");
    let page = lab.read("page.html");
    for part in ["Kept bounds by their level", "Kept bounds over the log", "SHA-256"] {
        assert!(page.contains(part), "{part}");
    }
    let document = lab.document("forecast log.swf -p conservative --draws 3 --json");
    let all = document["classes"].as_array().and_then(|classes| classes.last()).cloned().unwrap_or_default();
    assert_eq!((&document["jobs"], &all["jobs"], &all["procs"]), (&20.into(), &18.into(), &"all".into()));
    // No job starts later than it was promised.
    assert_eq!(all["promise"]["coverage"], 1.0);
    // Each wait is within the bound of level 100 %.
    assert_eq!(all["calibration"][19], 1.0);
}

#[test]
fn a_row_for_each_job() {
    let lab = lab();
    lab.stdout("forecast log.swf -p easy --draws 2 --jobs rows.csv");
    let rows = lab.read("rows.csv");
    let mut lines = rows.lines();
    let header = "job_id,submission_time,procs,at_once,median,bound_80,bound_95,promise,bmbp,wait";
    assert_eq!(lines.next(), Some(header));
    // The first job starts at once; the second one waits for its end.
    assert_eq!(lines.next(), Some("1,0,6,1,0,0,0,0,,0"));
    assert!(lines.next().is_some_and(|row| row.starts_with("2,10,6,0,") && row.ends_with(",90")), "{rows}");
    assert_eq!(rows.lines().count(), 21);
}

#[test]
fn policies_that_cannot_be_forecast() {
    let lab = lab();
    let refused = |line: &str, why: &str| {
        let run = lab.run(line);
        assert_eq!(run.code, Some(2), "{line}");
        assert!(run.stderr.contains(why), "{}", run.stderr);
    };
    refused("forecast log.swf -p ss", "no forecasts, because it suspends jobs");
    refused("forecast log.swf -p easy --draws 0", "0 is not in 1..=10000");
    refused("forecast log.swf -p easy --jobs log.swf", "--jobs log.swf: this is the input log");
}
