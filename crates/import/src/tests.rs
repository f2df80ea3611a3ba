//! Accounting files of several Slurm versions, and each of their peculiarities alone.

use miserly_core::Procs;
use miserly_workload::{ProcsField, check};
use proptest::prelude::*;

use miserly_workload::Trace;
use miserly_workload::swf::Field;

use crate::remark::RemarkEffect;
use crate::{ImportError, ImportOptions, ImportedLog, Remark, Report, SubmitAt, TimeZone, slurm};

const HEADER: &str = "JobIDRaw|Submit|Eligible|Start|End|ElapsedRaw|Suspended|AllocCPUS|ReqCPUS|NNodes|TotalCPU|ReqMem|\
                      TimelimitRaw|State|UID|GID|Partition|QOSRAW|AllocTRES";
/// A job without remarks.
const PLAIN: &str = "7|1000|1000|1010|1110|100|00:00:00|4|4|1|00:06:40|4G|10|COMPLETED|500|50|batch|1|cpu=4";

fn import(text: &str, options: &ImportOptions) -> Result<ImportedLog, ImportError> {
    slurm(&Trace::memory("a.txt", format!("{text}\n").into()), options)
}

fn written(log: &ImportedLog) -> String {
    let mut text = Vec::new();
    log.write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Returns the eighteen fields of each job.
fn lines(log: &ImportedLog) -> Vec<String> {
    let text = written(log);
    let jobs = text.lines().filter(|line| !line.starts_with(';'));
    jobs.map(|line| line.split(' ').take(18).collect::<Vec<_>>().join(" ")).collect()
}

fn remark_counts(report: &Report) -> Vec<(&'static str, u64)> {
    let of = |sort| report.remarks.with_effect(sort).map(|(remark, tally)| (remark.name(), tally.count));
    RemarkEffect::ALL.into_iter().flat_map(of).collect()
}

/// Compares the jobs and the remarks of a whole file.
#[track_caller]
fn file(text: &str, zone: Option<&str>, jobs: &[&str], remarks: &[(&str, u64)]) {
    let time_zone = zone.map(|zone| TimeZone::get(zone).unwrap());
    let log = import(text, &ImportOptions { time_zone, ..ImportOptions::default() }).unwrap();
    assert_eq!(lines(&log), jobs);
    assert_eq!(remark_counts(&log.report), remarks);
}

#[test]
fn version_22_05_without_a_header() {
    file(
        include_str!("../tests/data/slurm-22.05.txt"),
        None,
        &[
            "1 0 60 3600 16 3413 -1 16 7200 4096000 1 1 1 -1 1 1 -1 -1",
            "2 10 60 60 64 0 -1 64 3600 262144 0 2 1 -1 2 1 -1 -1",
            "3 20 480 -1 -1 -1 -1 8 3600 1048576 5 1 1 -1 1 1 -1 -1",
            "4 30 7230 3600 8 3593 -1 8 3600 983040 0 3 2 -1 1 2 -1 -1",
        ],
        &[("unfinished", 2), ("never_started", 1), ("delayed", 1), ("many_nodes", 1)],
    );
}

#[test]
fn version_23_02_with_jobs_that_ran_again() {
    file(
        include_str!("../tests/data/slurm-23.02.txt"),
        None,
        &[
            "1 0 100 300 32 0 -1 32 3600 1048576 0 1 1 -1 1 1 -1 -1",
            "2 10 10 60 1 59 -1 1 600 1024000 0 2 1 -1 2 2 -1 -1",
            "3 15 15 60 4 30 -1 2 600 524288 0 3 1 -1 1 1 -1 -1",
            "4 80 220 100 1 98 -1 1 600 1024000 1 2 1 -1 2 2 -1 -1",
            "5 91 209 -1 -1 -1 -1 2 600 1048576 5 3 1 -1 1 1 -1 -1",
            "6 401 199 3600 32 3150 -1 32 3600 1048576 0 1 1 -1 1 1 -1 -1",
        ],
        &[("never_started", 1), ("run_again", 3), ("delayed", 3)],
    );
}

/// In the night when summer time begins, a job submitted ten seconds before midnight waits twenty
/// seconds.
#[test]
fn version_23_11_with_local_times_arrays_and_heterogeneous_jobs() {
    let text = include_str!("../tests/data/slurm-23.11.txt");
    let jobs = [
        "1 0 20 600 4 -1 -1 4 14400 1048576 0 1 1 -1 1 1 -1 -1",
        "2 0 10 10800 4 -1 -1 4 14400 1048576 1 1 1 -1 1 1 -1 -1",
        "3 7210 5 1800 64 -1 -1 64 3600 2097152 1 2 2 -1 2 2 -1 -1",
        "4 7210 5 1800 8 -1 -1 8 3600 2097152 1 2 2 -1 2 2 -1 -1",
    ];
    file(text, Some("Europe/Berlin"), &jobs, &[("unfinished", 7), ("delayed", 1), ("many_nodes", 1)]);
    let log = import(text, &ImportOptions::default()).unwrap();
    assert_eq!(log.report.remarks.count(Remark::LocalTime), 4);
    assert!(log.comments.contains(&"; TimeZone: 0".to_owned()));
    assert_eq!(log.report.unused, ["JobName"]);
}

/// Two jobs with offsets, the second one over the end of summer time.
#[test]
fn times_with_offsets_need_no_zone() {
    let text = "JobIDRaw|Submit|Start|End|AllocCPUS|State|Timelimit\n\
        1|2025-09-07T22:16:06+0200|2025-09-07T22:20:06+0200|2025-09-07T23:20:06+0200|4|COMPLETED|02:00:00\n\
        2|2025-10-26T02:30:00+0200|2025-10-26T02:10:00+0100|2025-10-26T03:20:06+0100|4|COMPLETED|02:00:00\n\
        3|2025-10-26T00:30:00Z|2025-10-26T01:10:00Z|2025-10-26T02:20:06Z|4|COMPLETED|02:00:00";
    let jobs = [
        "1 0 240 3600 4 -1 -1 4 7200 -1 1 -1 -1 -1 -1 -1 -1 -1",
        "2 4162434 2400 4206 4 -1 -1 4 7200 -1 1 -1 -1 -1 -1 -1 -1 -1",
        "3 4162434 2400 4206 4 -1 -1 4 7200 -1 1 -1 -1 -1 -1 -1 -1 -1",
    ];
    file(text, None, &jobs, &[]);
    file(text, Some("Europe/Oslo"), &jobs, &[]);
    let log = import(text, &ImportOptions::default()).unwrap();
    assert!(log.comments.contains(&"; UnixStartTime: 1757276166".to_owned()), "{:?}", log.comments);
}

#[test]
fn version_24_05_with_steps_suspension_and_gpus() {
    file(
        include_str!("../tests/data/slurm-24.05.txt"),
        None,
        &[
            "1 0 30 3600 48 3600 -1 48 5400 4053334 1 1 1 -1 1 1 -1 -1",
            "2 5 1 0 2 0 -1 2 300 1048576 0 2 1 -1 2 2 -1 -1",
            "3 9 91 600 128 563 -1 128 1800 2097152 0 2 1 -1 2 2 -1 -1",
        ],
        &[("step", 2), ("suspended", 1), ("many_nodes", 1), ("generic_resources", 1)],
    );
}

#[test]
fn version_24_11_of_a_federation_put_together_from_two_periods() {
    file(
        include_str!("../tests/data/slurm-24.11.txt"),
        None,
        &[
            "1 0 1 60 2 60 -1 2 -1 1048576 1 1 1 -1 1 1 -1 -1",
            "2 10 1 100 64 100 -1 64 3600 -1 0 2 2 -1 1 1 -1 -1",
            "3 12 1 10 1 10 -1 1 60 102400 0 3 2 -1 1 1 -1 -1",
            "4 20 1 10 1 10 -1 1 60 102400 -1 3 2 -1 1 1 -1 -1",
            "5 111 0 100 32 100 -1 32 3600 -1 1 2 2 -1 1 1 -1 -1",
        ],
        &[
            ("elsewhere", 1),
            ("repeated", 1),
            ("run_again", 1),
            ("no_time_limit", 1),
            ("unknown_state", 1),
            ("many_nodes", 1),
        ],
    );
}

/// Compares a field and the remarks of the plain job with some changed columns.
#[track_caller]
fn quirk(changes: &[(&str, &str)], field: Field, expect: i64, remarks: &[&str]) {
    let names: Vec<_> = HEADER.split('|').collect();
    let mut values: Vec<_> = PLAIN.split('|').collect();
    for (name, value) in changes {
        values[names.iter().position(|column| column == name).unwrap()] = value;
    }
    let log = import(&format!("{HEADER}\n{}\n", values.join("|")), &ImportOptions::default()).unwrap();
    assert_eq!(log.records[0].get(field), expect);
    assert_eq!(remark_counts(&log.report).into_iter().map(|(name, _)| name).collect::<Vec<_>>(), remarks);
}

#[test]
fn quirks() {
    quirk(&[], Field::Runtime, 100, &[]);
    quirk(&[("ElapsedRaw", ""), ("Suspended", "00:00:30")], Field::Runtime, 70, &["suspended"]);
    quirk(&[("ElapsedRaw", "70"), ("Suspended", "30")], Field::Runtime, 70, &["suspended"]);
    quirk(&[("Start", "None"), ("AllocCPUS", "0")], Field::Wait, 110, &["never_started"]);
    // Before 20.11, the start of a job cancelled in the queue was set to its end.
    quirk(
        &[("Start", "1110"), ("ElapsedRaw", "0"), ("AllocCPUS", "0")],
        Field::Runtime,
        -1,
        &["never_started"],
    );
    quirk(&[("Start", "990")], Field::Wait, -1, &["started_early"]);
    quirk(&[("Eligible", "Unknown")], Field::Submit, 0, &[]);
    quirk(&[("ReqMem", "4000Mc")], Field::RequestedMemory, 4_096_000, &[]);
    quirk(&[("ReqMem", "8Gn"), ("NNodes", "2")], Field::RequestedMemory, 4_194_304, &["many_nodes"]);
    quirk(&[("ReqMem", "0n")], Field::RequestedMemory, -1, &[]);
    quirk(&[("TimelimitRaw", "UNLIMITED")], Field::Estimate, -1, &["no_time_limit"]);
    quirk(&[("TimelimitRaw", "INVALID")], Field::Estimate, -1, &["no_time_limit"]);
    quirk(&[("TotalCPU", "01:00.400")], Field::CpuTime, 15, &[]);
    quirk(&[("TotalCPU", "INVALID")], Field::CpuTime, -1, &[]);
    quirk(&[("State", "CANCELLED by 0")], Field::Status, 5, &[]);
    quirk(&[("AllocTRES", "cpu=4,gres/gpu=1")], Field::Allocated, 4, &["generic_resources"]);
}

/// Nodes and GPUs are extra fields: those that a job had, else those that it wanted.
#[test]
fn nodes_and_gpus_are_written() {
    let header = format!("{HEADER}|ReqTRES");
    let rows = [
        PLAIN.replace("|cpu=4", "|cpu=4,gres/gpu=2,gres/gpu:a100=2|gres/gpu=3"),
        PLAIN.replace("7|1000", "8|1001").replace("|4|4|1|", "|4|4|3|").replace("|cpu=4", "||gres/gpu=1"),
        PLAIN.replace("7|1000", "9|1002").replace("|4|4|1|", "|4|4||") + "|",
    ];
    let log = import(&[&[header], &rows[..]].concat().join("\n"), &ImportOptions::default()).unwrap();
    let text = written(&log);
    assert!(text.contains("\n; Extra: nodes gpus gpu_type\n"), "{text}");
    let extras = |line: &str| line.split(' ').skip(18).collect::<Vec<_>>().join(" ");
    let jobs: Vec<String> = text.lines().filter(|line| !line.starts_with(';')).map(extras).collect();
    assert_eq!(jobs, ["1 2 a100", "3 1 -", "- - -"]);
    refused(
        &format!("{HEADER}\n{}", PLAIN.replace("|cpu=4", "|cpu=4,gres/gpu=two")),
        "a.txt:2: AllocTRES is \"cpu=4,gres/gpu=two\"; expected: list with whole numbers of GPUs; --lenient skips and \
         counts such lines",
    );
}

#[track_caller]
fn refused(text: &str, expect: &str) {
    let error = import(text, &ImportOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), expect);
}

#[test]
fn invalid_lines() {
    let lenient = "--lenient skips and counts such lines";
    let bad = |from: &str, to: &str| format!("{HEADER}\n{PLAIN}\n{}\n", PLAIN.replacen(from, to, 1));
    refused("", "a.txt: holds no jobs");
    refused(&format!("{HEADER}\n"), "a.txt: holds no jobs");
    refused(
        &bad("batch", "a|b"),
        &format!(
            "a.txt:3: 20 columns where 19 are expected (a separator in a value? JobName need not be there); {lenient}"
        ),
    );
    refused(&bad("1010", "noon"), &format!("a.txt:3: Start is \"noon\"; expected: time; {lenient}"));
    refused(&bad("7", "x"), &format!("a.txt:3: JobIDRaw is \"x\"; expected: job number; {lenient}"));
    refused(&bad("4G", "4X"), &format!("a.txt:3: ReqMem is \"4X\"; expected: amount of memory; {lenient}"));
    let log =
        import(&bad("batch", "a|b"), &ImportOptions { lenient: true, ..ImportOptions::default() }).unwrap();
    assert_eq!(remark_counts(&log.report), [("malformed", 1)]);
    assert_eq!((log.report.read, log.report.written), (2, 1));
}

#[test]
fn ids_can_be_kept_and_the_submission_chosen() {
    let later = PLAIN.replacen("1000|1000", "1000|1005", 1);
    let text = format!("{HEADER}\n{later}\n");
    let options = ImportOptions { keep_ids: true, submit_at: SubmitAt::Eligible, ..ImportOptions::default() };
    let log = import(&text, &options).unwrap();
    assert_eq!(lines(&log), ["7 0 5 100 4 100 -1 4 600 1048576 1 500 50 -1 1 1 -1 -1"]);
    assert!(log.comments.contains(&"; UnixStartTime: 1005".to_owned()));
}

/// Both jobs start at 02:30 by the clock, one of them an hour later. The epoch distinguishes them.
#[test]
fn a_repeated_hour_is_counted() {
    let header = "JobID|Submit|Start|End|AllocCPUS|State";
    let jobs = |first: &str, second: &str| {
        format!(
            "{header}\n7|{first}|{first}|{second}|1|COMPLETED\n8|1729980000|{second}|1730000000|1|COMPLETED\n"
        )
    };
    let local = jobs("2024-10-27T01:30:00", "2024-10-27T02:30:00");
    let expect = [
        "1 0 9000 11000 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1",
        "2 5400 0 3600 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1",
    ];
    file(&local, Some("Europe/Berlin"), &expect, &[("repeated_hour", 2)]);
    let epoch = jobs("1729985400", "1729992600");
    let later = [
        "1 0 12600 7400 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1",
        "2 5400 0 7200 1 -1 -1 1 -1 -1 1 -1 -1 -1 -1 -1 -1 -1",
    ];
    file(&epoch, Some("Europe/Berlin"), &later, &[]);
}

/// Short tasks of an array may differ only in their names.
#[test]
fn tasks_of_arrays_are_no_repetitions() {
    let header = "JobID|Submit|Start|End|AllocCPUS|State";
    let task = |id: &str| format!("{id}|0|5|9|1|COMPLETED\n");
    let text = format!("{header}\n{}{}{}{}", task("7_1"), task("7_2"), task("7+1"), task("7_2"));
    let log = import(&text, &ImportOptions::default()).unwrap();
    assert_eq!((log.report.written, remark_counts(&log.report)), (3, vec![("repeated", 1)]));
}

#[test]
fn the_header_says_how_the_log_was_made() {
    let options = ImportOptions { procs: Some(Procs::new(8)), nodes: Some(2), ..ImportOptions::default() };
    let log = import(&format!("{HEADER}\n{PLAIN}\n"), &options).unwrap();
    let has = |line: &str| assert!(log.comments.iter().any(|comment| comment == line), "{:?}", log.comments);
    has("; MaxNodes: 2");
    has("; MaxProcs: 8");
    has("; Queue: 1 batch");
    has("; Partition: 1 QOS 1");
    assert!(!log.comments.join("\n").contains("500"), "no user's id");
}

/// Returns words that occur in accounting, and some that do not.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "",
        "0",
        "1",
        "7",
        "7.batch",
        "7_3",
        "60",
        "1000",
        "9999999999",
        "None",
        "Unknown",
        "COMPLETED",
        "PENDING",
        "CANCELLED by 0",
        "2024-03-01T12:00:00",
        "1-02:03:04",
        "02:03.456",
        "277777:46:39.999",
        "4G",
        "4000Mc",
        "999999999999Gn",
        "999999999",
        "UNLIMITED",
        "batch",
    ];
    prop_oneof![4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => "[^|\n]{0,6}"]
}

proptest! {
    /// For any text, each line is counted, and the written log is readable.
    #[test]
    fn nothing_is_lost_and_the_log_can_be_read(
        rows in proptest::collection::vec(proptest::collection::vec(word(), 17..20), 0..30),
        keep_ids: bool,
        eligible: bool,
    ) {
        let rows: Vec<_> = rows.iter().map(|row| row.join("|")).collect();
        let submit_at = if eligible { SubmitAt::Eligible } else { SubmitAt::Submit };
        let options = ImportOptions { lenient: true, keep_ids, submit_at, ..ImportOptions::default() };
        let Ok(log) = import(&format!("{HEADER}\n{PLAIN}\n{}\n", rows.join("\n")), &options) else {
            panic!("the plain job is always there");
        };
        let left_out: u64 = log.report.remarks.with_effect(RemarkEffect::LeftOut).map(|(_, tally)| tally.count).sum();
        prop_assert_eq!(log.report.read, log.report.written + left_out);
        let mut text = Vec::new();
        log.write(&mut text).unwrap();
        let found = check(&Trace::memory("made", text), Some(Procs::new(8)), ProcsField::Allocated).unwrap();
        prop_assert_eq!(found.read, log.report.written);
        let names: Vec<_> = found.findings.keys().map(|anomaly| anomaly.name()).collect();
        prop_assert!(!names.contains(&"malformed") && !names.contains(&"out_of_order"), "{:?}", names);
    }

    #[test]
    fn any_text_is_refused_or_imported(text in "[JobIDRaw|Submit0-9\n ]{0,200}", any: String) {
        let options = ImportOptions { lenient: true, ..ImportOptions::default() };
        for text in [text, any] {
            if let Err(error) = import(&text, &options) {
                prop_assert!(error.to_string().starts_with("a.txt"));
            }
        }
    }
}
