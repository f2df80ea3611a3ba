use miserly_workload::{ProcsField, check as check_log};
use proptest::prelude::*;

use super::*;
use crate::remark::RemarkEffect;

const PROFILES: &str = r#"{
    "short": {"type": "delay", "delay": 20.5},
    "long": {"type": "DelayProfile", "delay": 100},
    "wrong": {"type": "delay", "delay": 5, "ret": 1},
    "both": {"type": "composed", "seq": ["short", "long"], "repeat": 2},
    "flops": {"type": "parallel_homogeneous", "cpu": 1e6, "com": 0},
    "mixed": {"type": "SequentialCompositionProfile", "seq": ["short", "flops"]},
    "round": {"type": "composed", "seq": ["round"]}
}"#;

fn import(jobs: &str) -> Result<ImportedLog, ImportError> {
    let text = format!(r#"{{"nb_res": 8, "jobs": [{jobs}], "profiles": {PROFILES}}}"#);
    batsim(&Trace::memory("w.json", text.into()), &ImportOptions::default())
}

/// Compares the fields job, submit, runtime, processors, estimate, status of a single job.
#[track_caller]
fn check(job: &str, expect: Result<[i64; 6], &str>) {
    let fields =
        [Field::Job, Field::Submit, Field::Runtime, Field::Allocated, Field::Estimate, Field::Status];
    match (import(job), expect) {
        (Ok(log), Ok(expect)) => assert_eq!(fields.map(|field| log.records[0].get(field)), expect),
        (Err(error), Err(expect)) => assert!(error.to_string().contains(expect), "{error}"),
        (Ok(_), Err(expect)) => panic!("no error, where {expect:?} was expected"),
        (Err(error), Ok(_)) => panic!("{error}"),
    }
}

#[test]
fn jobs() {
    check(
        r#"{"id": 3, "subtime": 10, "res": 4, "walltime": 120, "profile": "long"}"#,
        Ok([3, 10, 100, 4, 120, 1]),
    );
    check(r#"{"id": "w0!3", "subtime": 9.5, "res": 1, "profile": "short"}"#, Ok([3, 10, 21, 1, -1, 1]));
    check(
        r#"{"id": 3, "subtime": 0, "res": 1, "walltime": -1, "profile": "both"}"#,
        Ok([3, 0, 241, 1, -1, 1]),
    );
    check(
        r#"{"id": 3, "subtime": 0, "res": 1, "walltime": 60, "profile": "long"}"#,
        Ok([3, 0, 100, 1, 60, 0]),
    );
    check(
        r#"{"id": 3, "subtime": 0, "res": 1, "walltime": 60, "profile": "wrong"}"#,
        Ok([3, 0, 5, 1, 60, 0]),
    );
    check(r#"{"id": "first", "subtime": 0, "res": 1, "profile": "wrong"}"#, Ok([1, 0, 5, 1, -1, 0]));
}

/// A job 0 is a number like any other, and two workloads together have numbers twice.
#[test]
fn original_numbers_are_kept_or_shown() {
    let job = |id: &str, at: f64| {
        format!(r#"{{"id": {id}, "subtime": {at}, "res": 1, "walltime": 10, "profile": "wrong"}}"#)
    };
    let numbers =
        |log: &ImportedLog| log.records.iter().map(|record| record.get(Field::Job)).collect::<Vec<_>>();
    let log = import(&[job("0", 0.0), job("7", 0.4)].join(",")).unwrap();
    assert_eq!(numbers(&log), [0, 7]);
    assert_eq!(log.report.remarks.count(Remark::Renumbered), 0);
    assert_eq!(log.report.remarks.count(Remark::Rounded), 1);
    let log = import(&[job("\"w0!1\"", 5.0), job("\"w1!1\"", 2.5)].join(",")).unwrap();
    assert_eq!(numbers(&log), [1, 2]);
    assert!(
        log.comments.contains(&"; Job: 1 w1!1".to_owned())
            && log.comments.contains(&"; Job: 2 w0!1".to_owned())
    );
    let (_, renumbered) = log
        .report
        .remarks
        .with_effect(RemarkEffect::Changed)
        .find(|(remark, _)| *remark == Remark::Renumbered)
        .unwrap();
    assert_eq!(renumbered.examples, ["w1!1 is now job 1", "w0!1 is now job 2"]);
}

#[test]
fn invalid_jobs() {
    check(
        r#"{"id": 3, "subtime": 0, "res": 1, "profile": "flops"}"#,
        Err("w.json: none of 1 jobs is made of delays"),
    );
    check(r#"{"id": 3, "subtime": 0, "res": 1, "profile": "none"}"#, Err("job 3: profile is \"none\""));
    check(r#"{"id": 3, "subtime": 0, "res": 1, "profile": "round"}"#, Err("job 3: profile is \"round\""));
    check(r#"{"id": 3, "subtime": -1, "res": 1, "profile": "short"}"#, Err("subtime is \"-1\""));
    check(r#"{"id": 3, "subtime": 0, "res": 0, "profile": "short"}"#, Err("nonzero u32 at line 1 column"));
    check(r#"{"id": 3, "res": 1, "profile": "short"}"#, Err("missing field `subtime`"));
}

#[test]
fn a_report_and_a_header() {
    let log = import(
        r#"{"id": "b", "subtime": 7, "res": 2, "walltime": 200, "profile": "long", "user": "ann"},
           {"id": "a", "subtime": 5, "res": 2, "profile": "mixed"},
           {"id": "c", "subtime": 1, "res": 2, "profile": "short"}"#,
    )
    .unwrap();
    assert_eq!(log.records.iter().map(|record| record.get(Field::Submit)).collect::<Vec<_>>(), [1, 7]);
    let Report { read, written, unused, remarks, .. } = &log.report;
    assert_eq!((*read, *written, unused.as_slice()), (3, 2, &["user".to_owned()][..]));
    let counts = [Remark::NoDuration, Remark::Renumbered, Remark::Rounded, Remark::NoWalltime];
    assert_eq!(counts.map(|remark| remarks.count(remark)), [1, 2, 1, 1]);
    assert!(log.comments.contains(&"; MaxProcs: 8".to_owned()), "{:?}", log.comments);
}

/// A sequence of sequences that doubles at each level would not terminate in practice.
#[test]
fn sequences_that_explode_are_refused() {
    let levels =
        (1..15).map(|n| format!(r#""{n}": {{"type": "composed", "seq": [{0}, {0}, {0}, {0}]}}"#, n - 1));
    let profiles: Vec<_> = levels.chain([r#""0": {"type": "delay", "delay": 1}"#.to_owned()]).collect();
    let text = format!(
        r#"{{"nb_res": 1, "jobs": [{{"id": 1, "subtime": 0, "res": 1, "profile": 14}}], "profiles": {{{}}}}}"#,
        profiles.join(",")
    );
    let error = batsim(&Trace::memory("w", text.into()), &ImportOptions::default()).unwrap_err();
    assert!(error.to_string().contains("profile is \"14\""), "{error}");
}

proptest! {
    /// For any numbers, each job is counted, and the written log is readable.
    #[test]
    fn nothing_is_lost_and_the_log_can_be_read(
        jobs in proptest::collection::vec((0..9_u64, 0.0..1.1e10_f64, 0.0..1.1e10_f64, 0..4_usize), 1..20),
    ) {
        let profiles = ["short", "long", "both", "flops"];
        let job = |&(id, subtime, walltime, profile): &(u64, f64, f64, usize)| {
            let profile = profiles[profile];
            format!(r#"{{"id": {id}, "subtime": {subtime}, "res": 1, "walltime": {walltime}, "profile": "{profile}"}}"#)
        };
        let text = jobs.iter().map(job).collect::<Vec<_>>().join(",");
        let Ok(log) = import(&text) else { return Ok(()) };
        let left_out: u64 = log.report.remarks.with_effect(RemarkEffect::LeftOut).map(|(_, tally)| tally.count).sum();
        prop_assert_eq!(log.report.read, log.report.written + left_out);
        let mut text = Vec::new();
        log.write(&mut text).unwrap();
        let found = check_log(&Trace::memory("made", text), None, ProcsField::Allocated).unwrap();
        prop_assert_eq!(found.read, log.report.written);
        prop_assert!(found.findings.keys().all(|anomaly| anomaly.name() != "malformed"));
    }

    #[test]
    fn any_text_is_refused(text: String) {
        let trace = Trace::memory("w.json", text.into());
        prop_assert!(batsim(&trace, &ImportOptions::default()).is_err());
    }
}
