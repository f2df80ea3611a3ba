//! The presets on made files, each with the jobs worked out by hand; and on the real rows of a folder.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use miserly_workload::Trace;
use miserly_workload::swf::Field;
use proptest::prelude::*;

use crate::remark::RemarkEffect;
use crate::{
    ColumnMap, Format, ImportError, ImportOptions, ImportedLog, PRESETS, Report, TimeZone, find_preset,
    import, propose,
};

/// Opens a made file.
fn made(name: &str) -> Trace {
    Trace::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/presets").join(name)).unwrap()
}

fn options(preset: &str) -> ImportOptions {
    ImportOptions {
        keep_ids: true,
        columns: Some(Arc::new(find_preset(preset).unwrap().map().unwrap())),
        ..ImportOptions::default()
    }
}

fn lines(log: &ImportedLog) -> Vec<String> {
    let mut text = Vec::new();
    log.write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines().filter(|line| !line.starts_with(';')).map(str::to_owned).collect()
}

fn remark_counts(report: &Report) -> Vec<(&'static str, u64)> {
    let of = |sort| report.remarks.with_effect(sort).map(|(remark, tally)| (remark.name(), tally.count));
    RemarkEffect::ALL.into_iter().flat_map(of).collect()
}

/// Compares the jobs and the remarks of a made file.
#[track_caller]
fn check(preset: &str, file: &str, jobs: &[&str], remarks: &[(&str, u64)]) {
    check_with(&options(preset), file, jobs, remarks);
}

#[track_caller]
fn check_with(options: &ImportOptions, file: &str, jobs: &[&str], remarks: &[(&str, u64)]) {
    let log = import(&made(file), Format::Table, options).unwrap();
    assert_eq!(lines(&log), jobs);
    assert_eq!(remark_counts(&log.report), remarks);
    let left_out = log.report.remarks.with_effect(RemarkEffect::LeftOut).map(|(_, tally)| tally.count);
    assert_eq!(log.report.read, log.report.written + left_out.sum::<u64>());
}

#[test]
fn eagle() {
    check(
        "eagle",
        "eagle.csv",
        &[
            "1 0 10 1800 36 -1 -1 36 3600 -1 1 1 -1 -1 1 1 -1 -1 1 0 - n1 a1",
            "2 0 10 1800 36 -1 -1 36 3600 -1 1 1 -1 -1 1 1 -1 -1 1 0 - n1 a1",
            "3 60 60 7230 72 -1 -1 72 7200 14223 0 2 -1 -1 2 2 -1 -1 2 4 1024000 n,2 a1",
            "4 120 180 -1 1 -1 -1 1 600 -1 5 1 -1 -1 1 1 -1 -1 1 0 - n3 a2",
            "5 3600 0 5 4 -1 -1 4 60 1024 0 1 -1 -1 1 1 -1 -1 1 0 4096 n8 a1",
            "6 4200 30 60 2 -1 -1 2 60 -1 -1 2 -1 -1 1 1 -1 -1 1 0 - n9 a1",
            "7 26407800 3600 3600 36 -1 -1 36 3600 -1 1 1 -1 -1 1 1 -1 -1 1 0 - n7 a1",
        ],
        &[
            ("unfinished", 2),
            ("dropped", 1),
            ("never_started", 1),
            ("unknown_state", 1),
            ("repeated_hour", 1),
            ("numbered_again", 7),
        ],
    );
}

#[test]
fn f_data() {
    check(
        "f-data",
        "f-data.csv",
        &[
            "1 0 60 600 4 -1 -1 4 3600 -1 1 1 -1 -1 -1 -1 -1 -1 4 jnam_1",
            "2 121 9 10 3 -1 -1 2 600 -1 0 1 -1 -1 -1 -1 -1 -1 3 jnam_2",
            "3 180 5 60 1 -1 -1 1 60 -1 1 2 -1 -1 -1 -1 -1 -1 1 jnam_3",
            "4 240 10 60 1 -1 -1 1 -1 -1 1 2 -1 -1 -1 -1 -1 -1 1 jnam_3",
            "5 300 0 0 1 -1 -1 1 60 -1 1 2 -1 -1 -1 -1 -1 -1 1 jnam_3",
            "6 360 60 3600 384 -1 -1 384 7200 -1 1 2 -1 -1 -1 -1 -1 -1 384 -",
            "7 420 60 120 1 -1 -1 1 60 -1 -1 3 -1 -1 -1 -1 -1 -1 1 jnam_4",
            "8 480 -1 121 1 -1 -1 1 600 -1 1 3 -1 -1 -1 -1 -1 -1 1 jnam_4",
        ],
        &[
            ("dropped", 2),
            ("started_early", 1),
            ("no_time_limit", 1),
            ("unknown_state", 1),
            ("rounded", 1),
            ("numbered_again", 8),
        ],
    );
}

#[test]
fn m100() {
    check(
        "m100",
        "m100.csv",
        &[
            "11 0 60 3600 64 -1 -1 64 7200 7864320 1 500 50 -1 1 1 -1 -1 2 8 503316480 -",
            "12 30 30 60 32 -1 -1 32 -1 32000 1 501 50 -1 2 1 -1 -1 1 - 1024000 volta",
            "16 180 120 200 1 -1 -1 1 300 -1 0 502 50 -1 1 2 -1 -1 1 - - -",
            "17 240 10 65 33 -1 -1 33 60 -1 0 502 50 -1 1 2 -1 -1 1 1 - -",
            "19 360 0 30 32 -1 -1 32 60 -1 0 502 50 -1 1 2 -1 -1 1 - - -",
        ],
        &[("unfinished", 1), ("dropped", 4), ("delayed", 1), ("no_time_limit", 1), ("part_of_processor", 1)],
    );
    let log = import(&made("m100.csv"), Format::Table, &options("m100")).unwrap();
    let rules: Vec<_> = log.report.rules.iter().map(|rule| (rule.text.as_str(), rule.tally.count)).collect();
    assert_eq!(rules, [("nodes == \"[]\" and runtime == 0", 3), ("end < start", 1)]);
    assert_eq!(log.report.rules[0].tally.examples, ["line 4", "line 6", "line 11"]);
}

#[test]
fn pm100() {
    check(
        "pm100",
        "pm100.csv",
        &[
            "1 0 20 3600 128 -1 -1 16 86400 1941504 1 7 25200 -1 1 1 -1 -1 1 4 248512512",
            "2 10 10 30 128 -1 -1 128 600 -1 0 7 25200 -1 1 1 -1 -1 1 0 -",
            "3 20 0 40 128 -1 -1 128 600 81920 0 8 25200 -1 1 1 -1 -1 1 0 10485760",
            "4 30 50 60 512 -1 -1 512 600 81920 1 8 25200 -1 1 1 -1 -1 4 16 41943040",
            "5 40 1 9 128 -1 -1 128 600 81920 5 8 25200 -1 2 1 -1 -1 1 0 10485760",
            "7 60 1 1 128 -1 -1 128 600 81920 0 8 25200 -1 2 1 -1 -1 1 0 10485760",
            "8 70 0 0 128 -1 -1 128 600 81920 1 9 25200 -1 2 1 -1 -1 1 0 10485760",
            "9 80 10 10 128 -1 -1 128 600 81920 0 9 25200 -1 2 1 -1 -1 1 0 10485760",
        ],
        &[("unfinished", 1), ("dropped", 1), ("delayed", 1), ("started_ineligible", 1)],
    );
}

#[test]
fn helios() {
    check(
        "helios",
        "helios.csv",
        &[
            "1000 0 100 3600 48 -1 -1 48 -1 -1 1 1 -1 -1 1 -1 -1 -1 1 8",
            "1001 10 0 30 1 -1 -1 1 -1 -1 1 2 -1 -1 2 -1 -1 -1 1 0",
            "1002 20 10 20 96 -1 -1 96 -1 -1 5 2 -1 -1 2 -1 -1 -1 2 16",
            "1003 30 0 1 96 -1 -1 96 -1 -1 0 2 -1 -1 2 -1 -1 -1 2 16",
            "1004 40 10 604800 4 -1 -1 4 -1 -1 0 3 -1 -1 1 -1 -1 -1 1 1",
            "1005 50 0 10 4 -1 -1 4 -1 -1 0 3 -1 -1 1 -1 -1 -1 1 1",
            "1007 70 10 -1 4 -1 -1 4 -1 -1 5 3 -1 -1 1 -1 -1 -1 1 1",
            "1009 90 0 60 -1 -1 -1 -1 -1 -1 1 1 -1 -1 1 -1 -1 -1 1 3",
        ],
        &[("unfinished", 1), ("dropped", 1), ("never_started", 1)],
    );
    let log = import(&made("helios.csv"), Format::Table, &options("helios")).unwrap();
    assert_eq!(log.report.notes.iter().filter(|note| note.contains("no time limits")).count(), 1);
    assert!(log.comments.iter().any(|comment| comment.contains("no time limits")));
}

#[test]
fn acme_seren() {
    check(
        "acme-seren",
        "acme-seren.csv",
        &[
            "5778432 0 30 36000 256 -1 -1 256 -1 -1 1 1 -1 -1 1 -1 -1 -1 2 16",
            "5778433 10 0 15 16 -1 -1 16 -1 -1 0 2 -1 -1 2 -1 -1 -1 1 1",
            "5778434 20 0 1 16 -1 -1 16 -1 -1 5 2 -1 -1 2 -1 -1 -1 1 1",
            "5778435 30 1 2 16 -1 -1 16 -1 -1 0 2 -1 -1 2 -1 -1 -1 1 1",
            "5778436 40 2 3 16 -1 -1 16 -1 -1 0 2 -1 -1 2 -1 -1 -1 1 1",
            "5778438 60 0 60 2 -1 -1 2 -1 -1 1 2 -1 -1 3 -1 -1 -1 1 0",
            "5778440 80 0 0 128 -1 -1 128 -1 -1 1 3 -1 -1 4 -1 -1 -1 1 8",
            "5778441 90 10 20 128 -1 -1 128 -1 -1 0 3 -1 -1 4 -1 -1 -1 1 8",
        ],
        &[("unfinished", 1), ("dropped", 1)],
    );
}

#[test]
fn acme_kalos() {
    check(
        "acme-kalos",
        "acme-kalos.csv",
        &[
            "1 0 10 8 11280 -1 -1 11280 -1 8738134 0 1 -1 -1 1 -1 -1 -1 94 752 98566144000",
            "2 60 12 70 240 -1 -1 240 -1 4369067 5 1 -1 -1 2 -1 -1 -1 2 16 1048576000",
            "3 120 0 60 120 -1 -1 120 -1 8739 1 2 -1 -1 3 -1 -1 -1 1 8 1048576",
            "4 180 10 60 15 -1 -1 15 -1 -1 1 2 -1 -1 3 -1 -1 -1 1 1 -",
            "5 420 0 60 4 -1 -1 4 -1 524288 1 3 -1 -1 1 -1 -1 -1 1 0 2097152",
            "6 480 0 60 4 -1 -1 4 -1 524288 1 3 -1 -1 1 -1 -1 -1 1 0 2097152",
            "7 540 1 1 3 -1 -1 3 -1 699051 1 3 -1 -1 1 -1 -1 -1 1 0 2097152",
        ],
        &[("unfinished", 1), ("dropped", 2), ("numbered_again", 7)],
    );
}

#[test]
fn philly() {
    check(
        "philly",
        "philly.json",
        &[
            "1 0 30 3600 2 -1 -1 2 -1 -1 1 1 -1 -1 1 -1 -1 -1 1 2",
            "2 60 60 60 1 -1 -1 1 -1 -1 0 2 -1 -1 1 -1 -1 -1 1 1",
            "3 60 240 120 4 -1 -1 4 -1 -1 0 2 -1 -1 1 -1 -1 -1 2 4",
            "4 300 10 60 8 -1 -1 8 -1 -1 5 3 -1 -1 2 -1 -1 -1 1 8",
            "5 2817000 3600 10800 1 -1 -1 1 -1 -1 1 3 -1 -1 2 -1 -1 -1 1 1",
        ],
        &[("dropped", 5), ("no_submit_time", 1), ("repeated_hour", 1), ("numbered_again", 5)],
    );
}

#[test]
fn pai() {
    check(
        "pai",
        "pai/pai_task_table.csv",
        &[
            "1 0 100 3900 14 -1 -1 14 -1 3692252 1 1 -1 -1 -1 -1 -1 -1 1 MISC|T4 51691520",
            "2 10 0 990 1 -1 -1 1 -1 1048576 1 2 -1 -1 -1 -1 -1 -1 0.25 V100 1048576",
            "3 20 80 500 5 -1 -1 5 -1 2097152 0 2 -1 -1 -1 -1 -1 -1 4 P100 10485760",
        ],
        &[
            ("dropped", 4),
            ("part_of_job", 2),
            ("no_submit_time", 1),
            ("part_of_processor", 1),
            ("numbered_again", 3),
        ],
    );
}

#[test]
fn openb() {
    check(
        "openb",
        "openb.csv",
        &[
            "1 0 0 12537496 12 -1 -1 12 -1 1398102 -1 -1 -1 -1 1 -1 -1 -1 1 - 16777216",
            "2 427061 10 12475889 7 -1 -1 7 -1 1947356 1 -1 -1 -1 1 -1 -1 -1 0.46 V100M16|V100M32 13631488",
            "3 427062 1 99 88 -1 -1 88 -1 3813004 0 -1 -1 -1 2 -1 -1 -1 8 - 335544320",
            "4 427070 0 100 4 -1 -1 4 -1 3906048 1 -1 -1 -1 3 -1 -1 -1 0 - 15624192",
            "5 427090 100 0 1 -1 -1 1 -1 1024 0 -1 -1 -1 3 -1 -1 -1 0.5 T4 1024",
            "6 427100 50 10 4 -1 -1 4 -1 1048576 1 -1 -1 -1 1 -1 -1 -1 2 P100 4194304",
            "7 427200 0 0 1 -1 -1 1 -1 1048576 -1 -1 -1 -1 3 -1 -1 -1 0 - 1048576",
            "8 427300 1 9 2 -1 -1 2 -1 2048000 1 -1 -1 -1 4 -1 -1 -1 0.01 G2 4096000",
        ],
        &[("dropped", 2), ("unknown_state", 2), ("part_of_processor", 2), ("numbered_again", 8)],
    );
    let log = import(&made("openb.csv"), Format::Table, &options("openb")).unwrap();
    assert!(!log.comments.iter().any(|comment| comment.contains("UnixStartTime")), "its times are relative");
}

#[test]
fn spot_2026() {
    check(
        "spot-2026",
        "spot-2026.csv",
        &[
            "1 0 -1 100 4 -1 -1 4 -1 -1 -1 -1 0 -1 1 -1 -1 -1 1 1 GPU-series-1",
            "2 10 -1 3600 42 -1 -1 42 -1 -1 -1 -1 1 -1 2 -1 -1 -1 4 32 GPU-series-2",
            "3 20 -1 61 10 -1 -1 10 -1 -1 -1 -1 1 -1 2 -1 -1 -1 1 0.5 GPU-series-2",
            "4 30 -1 10 4 -1 -1 4 -1 -1 -1 -1 2 -1 1 -1 -1 -1 1 0 -",
            "5 40 -1 0 4 -1 -1 4 -1 -1 -1 -1 2 -1 1 -1 -1 -1 1 1 GPU-series-1",
            "6 50 -1 20 8 -1 -1 8 -1 -1 -1 -1 2 -1 1 -1 -1 -1 2 2 GPU-series-1",
            "7 60 -1 30 12 -1 -1 12 -1 -1 -1 -1 2 -1 1 -1 -1 -1 3 3 GPU-series-1",
            "8 70 -1 40 16 -1 -1 16 -1 -1 -1 -1 2 -1 2 -1 -1 -1 4 4 GPU-series-1",
            "9 80 -1 50 20 -1 -1 20 -1 -1 -1 -1 0 -1 2 -1 -1 -1 5 5 GPU-series-1",
            "10 90 -1 -1 24 -1 -1 24 -1 -1 -1 -1 0 -1 2 -1 -1 -1 6 6 GPU-series-1",
        ],
        &[("never_started", 1), ("rounded", 1), ("numbered_again", 10)],
    );
}

#[test]
fn supercloud() {
    check(
        "supercloud",
        "supercloud.csv",
        &[
            "40001 0 10 3600 40 -1 -1 40 345600 4352000 1 900 -1 -1 -1 -1 -1 -1 1 2 174080000 a",
            "40002 1 10 100 96 -1 -1 96 -1 85334 0 901 -1 -1 -1 -1 -1 -1 2 - 8192000 b",
            "40003 2 50 -1 -1 -1 -1 -1 3600 -1 5 901 -1 -1 -1 -1 -1 -1 - - - b",
            "40005 4 10 10 4 -1 -1 4 -1 1048576 0 902 -1 -1 -1 -1 -1 -1 1 1 4194304 c",
            "40006 5 10 10 4 -1 -1 4 60 -1 0 902 -1 -1 -1 -1 -1 -1 1 - - c",
            "40008 7 10 10 4 -1 -1 4 60 -1 0 902 -1 -1 -1 -1 -1 -1 1 - - c",
            "40009 8 10 10 4 -1 -1 4 60 -1 -1 902 -1 -1 -1 -1 -1 -1 1 - - c",
        ],
        &[
            ("unfinished", 2),
            ("dropped", 1),
            ("never_started", 1),
            ("no_time_limit", 2),
            ("unknown_state", 1),
        ],
    );
}

#[test]
fn lassen() {
    let without_zone = options("lassen");
    let error = import(&made("lassen.csv"), Format::Table, &without_zone).unwrap_err().to_string();
    assert!(
        error.contains(
            "lassen.csv:2: job_submit_time is \"2019-06-01 00:00:00\"; expected: time with an offset"
        ),
        "{error}"
    );
    check_with(
        &ImportOptions { time_zone: Some(TimeZone::UTC), ..without_zone },
        "lassen.csv",
        &[
            "500 0 601 3600 4 -1 -1 4 7200 -1 1 1 -1 -1 -1 -1 -1 -1 4",
            "501 10 10 60 1 -1 -1 1 60 -1 0 1 -1 -1 -1 -1 -1 -1 1",
            "502 20 10 43200 256 -1 -1 256 43200 -1 1 2 -1 -1 -1 -1 -1 -1 256",
            "503 30 0 0 1 -1 -1 1 60 -1 1 2 -1 -1 -1 -1 -1 -1 1",
            "505 50 1 2 1 -1 -1 1 60 -1 0 2 -1 -1 -1 -1 -1 -1 1",
            "506 60 1 3 2 -1 -1 2 60 -1 1 2 -1 -1 -1 -1 -1 -1 2",
            "507 70 1 4 2 -1 -1 2 60 -1 1 2 -1 -1 -1 -1 -1 -1 2",
            "508 80 -1 6 2 -1 -1 2 60 -1 1 3 -1 -1 -1 -1 -1 -1 2",
            "509 90 1 6 2 -1 -1 2 -1 -1 1 3 -1 -1 -1 -1 -1 -1 2",
        ],
        &[("dropped", 1), ("started_early", 1), ("no_time_limit", 1), ("rounded", 2)],
    );
}

#[test]
fn blue_waters() {
    check(
        "blue-waters",
        "blue-waters.txt",
        &[
            "100 0 100 14149 128 0 149 128 14400 -1 0 1 1 -1 1 -1 -1 -1 4",
            "101 1 0 60 16 -1 -1 16 432000 -1 1 2 1 -1 2 -1 -1 -1 1",
            "10000000001 2 1 60 32 -1 -1 32 600 -1 1 2 1 -1 2 -1 -1 -1 -",
            "106 10 10 70 1 -1 -1 1 60 -1 0 1 2 -1 1 -1 -1 -1 -",
        ],
        &[("event", 5), ("whole_array", 1), ("delayed", 1), ("many_nodes", 1)],
    );
}

#[test]
fn cerit_soft() {
    check(
        "cerit-soft",
        "cerit-soft.txt",
        &[
            "1 0 10 100 4 -1 -1 4 3600 1048576 -1 1 -1 -1 1 -1 -1 -1 4194304",
            "2 5 0 50 1 -1 -1 1 600 1048576 -1 2 -1 -1 2 -1 -1 -1 1048576",
            "3 10 100 3600 8 -1 -1 8 86400 1025 -1 1 -1 -1 1 -1 -1 -1 8193",
            "4 20 1 2 1 -1 -1 1 60 400 -1 3 -1 -1 1 -1 -1 -1 400",
            "5 30 2 3 1 -1 -1 1 60 400 -1 3 -1 -1 1 -1 -1 -1 400",
            "6 40 3 4 2 -1 -1 2 60 200 -1 3 -1 -1 1 -1 -1 -1 400",
            "7 50 4 5 1 -1 -1 1 60 -1 -1 3 -1 -1 1 -1 -1 -1 -",
            "8 60 5 6 1 -1 -1 1 60 400 -1 3 -1 -1 1 -1 -1 -1 400",
            "9 70 6 0 1 -1 -1 1 60 400 -1 3 -1 -1 1 -1 -1 -1 400",
            "10 80 7 8 1 -1 -1 1 60 400 -1 3 -1 -1 1 -1 -1 -1 400",
        ],
        &[("numbered_again", 10)],
    );
}

#[test]
fn kestrel_says_what_it_expected() {
    let error = import(&made("lassen.csv"), Format::Table, &options("kestrel")).unwrap_err().to_string();
    assert!(error.starts_with("preset kestrel:8:7: "), "{error}");
    assert!(error.contains("lassen.csv has no column \"job_id\"\npreset kestrel:9:10: "), "{error}");
    assert!(error.contains("lassen.csv has the columns allocation_id, primary_job_id, "), "{error}");
    assert!(error.contains("not known to this preset, which expects those of Eagle"), "{error}");
    // With the names that it expects, it reads the table.
    assert!(import(&made("eagle.csv"), Format::Table, &options("kestrel")).is_ok());
}

#[test]
fn every_preset_is_a_map_with_a_description() {
    assert!(PRESETS.is_sorted_by_key(|preset| preset.name));
    assert_eq!(PRESETS.len(), 16);
    for preset in PRESETS {
        let map = preset.map().unwrap();
        assert!(!map.about().is_empty(), "{}", preset.name);
    }
}

/// Returns the folder with real rows, if there is one.
fn real(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("MISERLY_TRACES").map(|folder| Path::new(&folder).join("tables").join(name));
    let found = path.filter(|path| path.is_file());
    if found.is_none() {
        eprintln!("skipped: no {name} in $MISERLY_TRACES/tables");
    }
    found
}

#[test]
fn eagle_on_real_rows() {
    let Some(path) = real("eagle_sample.csv.gz") else { return };
    let log = import(&Trace::open(&path).unwrap(), Format::Table, &options("eagle")).unwrap();
    assert_eq!((log.report.read, log.report.written), (1000, 1000));
    assert_eq!(remark_counts(&log.report), [("numbered_again", 1000)]);
    // The first two rows of the file, which are submitted at the same second.
    let rows = [("99825", "name00005115"), ("97235", "name00004370")];
    for ((number, (runtime, name)), line) in (1..).zip(rows).zip(lines(&log)) {
        let expect = format!(
            "{number} 0 1 {runtime} 10 -1 -1 10 172800 -1 1 1 -1 -1 1 1 -1 -1 10 0 - {name} account0003"
        );
        assert_eq!(line, expect);
    }
}

#[test]
fn openb_on_real_rows() {
    let Some(path) = real("openb_pod_list_default.csv.gz") else { return };
    let log = import(&Trace::open(&path).unwrap(), Format::Table, &options("openb")).unwrap();
    // 897 pods are pending and have no start, as counted with awk; 5193 run.
    assert_eq!((log.report.read, log.report.written), (8152, 7255));
    let counts = remark_counts(&log.report);
    assert_eq!(counts[..2], [("dropped", 897), ("unknown_state", 5193)]);
    assert_eq!(
        lines(&log)[1],
        "2 427061 0 12475899 6 -1 -1 6 -1 2097152 -1 -1 -1 -1 1 -1 -1 -1 0.46 12582912"
    );
}

/// The first rows may be jobs that have not ended.
#[test]
fn a_proposal_shows_ten_jobs_from_beyond_the_first_rows() {
    let mut table = "id,submit_time,start_time,end_time,cpus,state\n".to_owned();
    for id in 10..40 {
        let state = if id < 25 { "RUNNING" } else { "COMPLETED" };
        let times = "2024-01-01 00:01:00,2024-01-01 00:02:00";
        writeln!(table, "{id},2024-01-01 00:00:{id},{times},1,{state}").unwrap();
    }
    let proposal = propose(&Trace::memory("t", table.into()), &ImportOptions::default()).unwrap();
    let numbers: Vec<i64> = proposal.jobs.unwrap().jobs.iter().map(|job| job.get(Field::Job)).collect();
    assert!(numbers.into_iter().eq(25..35));
}

/// Returns the lines of a proposed map that name a field.
fn proposed(table: &str) -> Vec<String> {
    let proposal = propose(&Trace::memory("t", table.into()), &ImportOptions::default()).unwrap();
    let is_field = |line: &&str| {
        let word = line.trim_start_matches("# ").split(' ').next().unwrap_or_default();
        crate::TableField::ALL.iter().any(|field| field.name() == word) && line.contains(" = ")
    };
    proposal.toml.lines().filter(is_field).map(str::to_owned).collect()
}

#[test]
fn a_proposal_uses_words_units_and_values() {
    let table = "Key;QueuedEpoch_ms;t1;t2;wallHours;width;who;phase\n\
                 k1;1700000000000;1700000060;1700003660;2;4;ann;Succeeded\n\
                 k2;1700000100000;1700000160;1700001960;1;8;bob;Failed\n\
                 k3;1700000200000;1700000260;1700007460;4;4;ann;Evicted\n";
    let order = "check: by its content alone: times, \"QueuedEpoch_ms\" <= \"t1\" <= \"t2\" in 3 of 3 rows";
    assert_eq!(
        proposed(table),
        [
            "job = \"Key\"  # check: by its content alone: a value of its own in each row".to_owned(),
            "submit = { column = \"QueuedEpoch_ms\", unit = \"ms\" }  # by its name".to_owned(),
            format!("start = {{ column = \"t1\", unit = \"s\" }}  # {order}"),
            format!("end = {{ column = \"t2\", unit = \"s\" }}  # {order}"),
            "estimate = { column = \"wallHours\", unit = \"h\" }  # by its name; check: in seconds?".to_owned(),
            "procs = \"width\"  # by its name".to_owned(),
            "user = \"who\"  # by its name".to_owned(),
            "status = { column = \"phase\", completed = [\"Succeeded\"], failed = [\"Failed\"] }  # by its name; check: the meaning of its words; not known: \"Evicted\"".to_owned(),
        ]
        .map(|line| line.replace("; check: in seconds?", ""))
    );
}

#[test]
fn a_proposal_by_values_alone_says_so_and_leaves_open_what_is_not_sure() {
    let mut table = "c1,c2,c3,c4,c5,c6,c7,c8\n".to_owned();
    for row in 0..9 {
        let (runtime, begin) = (600 + 60 * row, 10 * row + 5);
        writeln!(
            table,
            "{},{},{},{},{},{},{},u{}",
            1_700_000_000 + 10 * row,
            1_700_000_000 + begin,
            1_700_000_000 + begin + runtime,
            runtime / 60,
            2 + row % 3 * 2,
            3600 + row % 2 * 3600,
            ["COMPLETED", "FAILED", "EVICTED"][row % 3],
            row % 4,
        )
        .unwrap();
    }
    let order = "by its content alone: times, \"c1\" <= \"c2\" <= \"c3\" in 9 of 9 rows";
    assert_eq!(
        proposed(&table),
        [
            format!("submit = {{ column = \"c1\", unit = \"s\" }}  # check: {order}"),
            format!("start = {{ column = \"c2\", unit = \"s\" }}  # check: {order}"),
            format!("end = {{ column = \"c3\", unit = \"s\" }}  # check: {order}"),
            "runtime = { column = \"c4\", unit = \"min\" }  # check: by its content alone: \"c3\" - \"c2\" in 9 of 9 rows".to_owned(),
            "# estimate = \"c6\"  # not sure: by its content alone: round numbers, with 9 of 9 runtimes within them in seconds".to_owned(),
            "procs = \"c5\"  # check: by its content alone: the only column of small whole numbers from 2 to 6".to_owned(),
            "# user = \"c8\"  # not sure: by its content alone: 4 different words that occur again".to_owned(),
            "# queue = \"c8\"  # not sure: by its content alone: 4 different words that occur again".to_owned(),
            "status = { column = \"c7\", completed = [\"COMPLETED\"], failed = [\"FAILED\"] }  # check: by its content alone: 2 of its 3 different words are final states; check: the meaning of its words; not known: \"EVICTED\"".to_owned(),
            "# estimate = \"...\"  # no column is surely the time limit: without one, a run takes the runtime or --estimates".to_owned(),
        ]
    );
}

#[test]
fn times_without_a_sure_order_are_left_open() {
    let lines =
        proposed("c1,c2,cores\n1700000000,1700000005,2\n1700000010,1700000011,2\n1700000020,1700000031,2\n");
    assert!(
        lines.contains(&"# submit = \"c1\"  # not sure: by its content alone: times".to_owned()),
        "{lines:?}"
    );
    assert!(!lines.iter().any(|line| line.starts_with("submit") || line.starts_with("start")), "{lines:?}");
}

#[test]
fn a_preview_has_ten_jobs_and_the_counts_of_all_rows() {
    let mut table = "id,s,r,p\n".to_owned();
    (0..30).for_each(|id| writeln!(table, "{id},{id},{},1", id % 5).unwrap());
    let map = ColumnMap::parse("my.toml", &format!("{PLAIN}[rules]\ndrop = ['runtime < 1']\n")).unwrap();
    let options = ImportOptions { keep_ids: true, ..ImportOptions::default() };
    let (jobs, report) = crate::preview(&Trace::memory("t", table.into()), &map, &options).unwrap();
    let numbers: Vec<i64> = jobs.jobs.iter().map(|job| job.get(Field::Job)).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 6, 7, 8, 9, 11, 12]);
    assert_eq!((report.read, report.written, report.rules[0].tally.count), (30, 24, 6));
}

#[test]
fn units_have_other_names() {
    let memory = |unit: &str| {
        let map = format!("{PLAIN}memory = {{ column = 'm', unit = '{unit}' }}\n");
        read("id,s,r,p,m\n1,1,1,1,2\n", &map).map(|lines| lines[0].split(' ').nth(9).unwrap().to_owned())
    };
    for (units, expect) in [
        (["kB", "KB", "KiB", "K"], "2"),
        (["MB", "MiB", "M", "MB"], "2048"),
        (["GB", "GiB", "G", "GB"], "2097152"),
    ] {
        for unit in units {
            assert_eq!(memory(unit).unwrap(), expect, "{unit}");
        }
    }
    assert!(memory("Gb").unwrap_err().contains("expected one of B, kB, MB, GB, TB, slurm, not \"Gb\""));
    let days = "[table]\nzone = '+05:30'\n[columns]\nsubmit = 's'\nruntime = { column = 'r', unit = 'd' }\nprocs = 'p'\n";
    assert_eq!(read("s,r,p\n2024-01-01 00:00:00,2,1\n", days).unwrap()[0].split(' ').nth(3), Some("172800"));
    let span = "[columns]\nsubmit = 's'\nruntime = { column = 'r', unit = 'GiB' }\nprocs = 'p'\n";
    assert!(read("s,r,p\n1,2,1\n", span).unwrap_err().contains("not \"GiB\""));
}

fn map_error(text: &str) -> String {
    ColumnMap::parse("my.toml", text).unwrap_err().to_string()
}

#[test]
fn errors_of_maps_have_line_and_column() {
    let check = |text: &str, expect: &str| {
        let error = map_error(text);
        assert!(error.lines().any(|line| line.starts_with(expect)), "{error}");
    };
    check("[table]\nzone = \"Mars\"", "my.toml:2:8: \"Mars\": unknown time zone; write it as");
    check("[tables]", "my.toml:1:2: unknown key \"tables\"; expected: table, columns, rules, join");
    check(
        "[columns]\nsubmit = \"a\"\nbegins = \"b\"",
        "my.toml:3:1: unknown field \"begins\"; expected: job, submit,",
    );
    check(
        "[columns]\nsubmit = { column = \"a\", unit = \"years\" }",
        "my.toml:2:33: expected one of datetime, s, ms, us, ns, not \"years\"",
    );
    check(
        "[columns]\nsubmit = \"a\"\nmemory = \"m\"",
        "my.toml:3:10: expected { column = \"m\", unit = \"UNIT\" } with one of the units B, kB, MB, GB, TB, slurm",
    );
    check(
        "[columns]\nsubmit = { columns = \"a\" }",
        "my.toml:2:12: unknown key \"columns\" of submit; expected: column, none, unit",
    );
    check("[columns]\nsubmit = [1]", "my.toml:2:10: expected a text, not array");
    check(
        "[columns]\nprocs = \"a\"\nruntime = \"b\"",
        "my.toml:1:1: [columns] does not say when a job was submitted; write submit = \"COLUMN\"",
    );
    check(
        "[rules]\nsame_job = \"both\"",
        "my.toml:2:12: expected one of own, attempts, last, gang, not \"both\"",
    );
    check("[columns\n", "my.toml:1:9: ");
    check("[table]\ndelimiter = \"ab\"", "my.toml:2:13: expected one character");
}

#[test]
fn all_problems_of_a_map_are_one_error() {
    let map = "[table]\nzone = 'Mars'\nzones = 'UTC'\n[columns]\nsubmit = { column = 's', units = 'ms', unit = 'years' }\n\
               procs = 'Cpus'\nrun = 'r'\nname = 'n'\n[rules]\ndrop = ['n is null', 'cpus +', 'x > 1']\n";
    let expect = [
        "my.toml:2:8: \"Mars\": unknown time zone; write it as Europe/Berlin or UTC, or as an offset such as +05:30",
        "my.toml:3:1: unknown key \"zones\" of table; expected: about, format, delimiter, header, names, path, each, zone, relative, notes, unseen",
        "my.toml:4:1: [columns] does not say how long a job ran; write runtime = \"COLUMN\", or start = \"COLUMN\" and end = \"COLUMN\"",
        "my.toml:5:26: unknown key \"units\" of submit; expected: column, none, unit",
        "my.toml:5:47: expected one of datetime, s, ms, us, ns, not \"years\"",
    ];
    let of_table = [
        "my.toml:6:9: t has no column \"Cpus\"; write it as \"cpus\"",
        "my.toml:8:8: t has no column \"n\"",
        "my.toml:10:9: t has no column \"n\"",
        "my.toml:10:22: formula, at its end",
        "my.toml:10:32: formula, character 1, at \"x > 1\": unknown name",
    ];
    let check = |error: &str, expect: &[&str], last: Option<&str>| {
        let mut lines: Vec<&str> =
            error.lines().filter(|line| !line.contains("unknown field \"run\"")).collect();
        assert_eq!(lines.len() + 1, error.lines().count(), "{error}");
        if last.is_some() {
            assert_eq!(lines.pop(), last);
        }
        assert_eq!(lines.len(), expect.len(), "{error}");
        for (line, expect) in lines.iter().zip(expect) {
            assert!(line.starts_with(expect), "{line}");
        }
    };
    check(&map_error(map), &expect, None);
    let draft = ColumnMap::draft("my.toml", map).unwrap();
    let options = ImportOptions { columns: Some(Arc::new(draft)), ..ImportOptions::default() };
    let error =
        import(&Trace::memory("t", "id,s,cpus\n1,2,3\n".into()), Format::Table, &options).unwrap_err();
    let all: Vec<&str> = expect.into_iter().chain(of_table).collect();
    check(&error.to_string(), &all, Some("t has the columns id, s, cpus"));
}

/// Returns the lines of a table by a map, or its error.
fn read(table: &str, map: &str) -> Result<Vec<String>, String> {
    let map = ColumnMap::parse("my.toml", map).map_err(|error| error.to_string())?;
    let options = ImportOptions { keep_ids: true, columns: Some(Arc::new(map)), ..ImportOptions::default() };
    let log = import(&Trace::memory("t", table.into()), Format::Table, &options);
    log.map(|log| lines(&log)).map_err(|error: ImportError| error.to_string())
}

const PLAIN: &str = "[columns]\njob = 'id'\nsubmit = 's'\nruntime = 'r'\nprocs = 'p'\n";

#[test]
fn errors_of_tables_say_where_and_what_is_expected() {
    let check = |table: &str, map: &str, expect: &str| {
        let error = read(table, map).unwrap_err();
        assert!(error.starts_with(expect), "{error}");
    };
    check("id,s,r\n1,1,1\n", PLAIN, "my.toml:5:9: t has no column \"p\"; t has the columns id, s, r");
    check(
        "id,s,r,p\n1,1, x,1\n",
        PLAIN,
        "t:2: r is \" x\"; expected: number (my.toml:4: runtime = 'r'); --lenient",
    );
    check("id,s,r,p\n1,1,1,1\n2,noon,1,1\n", PLAIN, "t:3: s is \"noon\"; expected: date and time");
    check("id,s,r,p\n1,1,1\n", PLAIN, "t:2: 3 columns where 4 are expected");
    check(
        "id,s,r,p\n1,1,-5,1\n",
        PLAIN,
        "t:2: runtime is \"-5\"; expected: number from 0 of at most 15 digits (my.toml:4: runtime = 'r', where r is \"-5\")",
    );
    let minutes = "[columns]\nsubmit = 's'\nstart = 's'\nend = 'e'\nruntime = 'e - s'\nprocs = 'p'\n\
                   estimate = { column = 'l', unit = 'min', none = ['never'] }\n";
    check(
        "s,e,p,l\n20,05,1,3\n",
        minutes,
        "t:2: runtime is \"-15\"; expected: number from 0 of at most 15 digits (my.toml:5: runtime = 'e - s', where s is \"20\" and e is \"05\")",
    );
    check(
        "s,e,p,l\n20,30,1,none\n",
        minutes,
        "t:2: l is \"none\"; expected: number (my.toml:7: estimate = { column = 'l', unit = 'min', none = ['never'] })",
    );
    let berlin = format!("[table]\nzone = 'Europe/Berlin'\n{PLAIN}");
    check(
        "id,s,r,p\n1,2024-13-31 02:30:00,1,1\n",
        &berlin,
        "t:2: s is \"2024-13-31 02:30:00\"; expected: date and time, timestamp, or seconds of the Unix epoch (my.toml:5: submit = 's')",
    );
    check(
        "id,s,r,p\n1,1,5,x\n",
        &format!("{PLAIN}[rules]\ndrop = ['p > 4']\n"),
        "t:2: p is \"x\"; expected: number (my.toml:5: procs = 'p')",
    );
    check(
        "id,s,r,p,x\n1,1,5,1,y\n",
        &format!("{PLAIN}[rules]\ndrop = ['x > 4']\n"),
        "t:2: x is \"y\"; expected: number (my.toml:7: drop \"x > 4\")",
    );
    // Milliseconds are not taken for seconds.
    check("id,s,r,p\n1,1546300800000,5,1\n", PLAIN, "t:2: s is \"1546300800000\"; expected: date and time");
    check("id,s,r,p\n1,\"1,5,1\n", PLAIN, "t:2: row is ");
    let rules = |rule: &str| format!("{PLAIN}[rules]\ndrop = [{rule:?}]\n");
    check(
        "id,s,r,p\n1,1,5,1\n",
        &rules("runtim < 5"),
        "my.toml:7:9: formula, character 1, at \"runtim < 5\": unknown name",
    );
    check("id,s,r,p\n1,1,5,1\n", &rules("x is null"), "my.toml:7:9: t has no column \"x\"");
    check("id,s,r,p\n1,1,5,1\n", &rules("runtime <"), "my.toml:7:9: formula, at its end: expected a value");
    check(
        "id,s,r,p\n1,1,5,1\n",
        "[columns]\nsubmit = 's'\nruntime = 'r'\nprocs = 'p +'\n",
        "my.toml:4:9: formula, at its end",
    );
    check("id,s,r,p\n", PLAIN, "t: holds no jobs");
    check("[{\"id\": 1}, ", PLAIN, "t: EOF while parsing a value at line 1 column 12; a table in JSON is");
}

#[test]
fn expressions_units_and_words() {
    let table = "id,s,e,min,clock,p,m,w\n\
                 1,2024-03-01T12:00:00Z,2024-03-01T12:10:00+00:00,1.5,1-00:00:01,100,2,CANCELLED by 7\n\
                 2,2024-03-01T14:00:00+0200,2024-03-01T13:10:00+01,UNLIMITED,100:00:00,250,2,x\n";
    let map = "[columns]\njob = 'id'\nsubmit = 's'\nstart = 's'\nend = 'e'\nruntime = '(e - s) / 2'\n\
               estimate = { column = 'min', unit = 'min' }\nprocs = 'p / 100 * 2'\n\
               memory = { column = 'm', unit = 'kB', per = 'cpu' }\nsuspended = { column = 'clock', unit = 'dhms' }\n\
               status = { column = 'w', cancelled = ['CANCELLED'], failed = ['*'] }\n";
    assert_eq!(
        read(table, map).unwrap(),
        [
            "1 0 0 300 2 -1 -1 2 90 2 5 -1 -1 -1 -1 -1 -1 -1 4",
            "2 0 0 300 5 -1 -1 5 -1 2 0 -1 -1 -1 -1 -1 -1 -1 10",
        ]
    );
}

#[test]
fn forms_of_tables() {
    let expect = [
        "1 0 -1 10 4 -1 -1 4 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1",
        "2 5 -1 20 8 -1 -1 8 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1",
    ];
    let check = |table: &str, form: &str| {
        assert_eq!(read(table, &format!("[table]\n{form}\n{PLAIN}")).unwrap(), expect, "{table}");
    };
    check("id,s,r,p\n1,100,10,4\n2,105,20,8\n", "");
    check("\u{feff}id,s,r,p\r\n1,100,10,4\r\n2,105,20,8", "");
    check("p;r;x;s;id\n4;10;\"a;\"\"b\"\"\n c\";100;1\n8;20;;105;\"2\"\n", "delimiter = ';'");
    check("1 100  10 4\n 2 105 20 8\n", "format = 'text'\nheader = false\nnames = ['id', 's', 'r', 'p']");
    check(
        "{\"id\": 1, \"s\": 100, \"r\": 10, \"p\": 4}\n{\"id\": \"2\", \"s\": \"105\", \"r\": 20.0, \"p\": 8}\n",
        "",
    );
    check("[{\"id\": 1, \"s\": 100, \"r\": 10, \"p\": 4}, {\"id\": 2, \"s\": 105, \"r\": 20, \"p\": 8}]", "");
    check(
        "{\"a\": [7], \"x\": {\"jobs\": [{\"id\": 1, \"s\": 100, \"r\": 10, \"p\": 4}, {\"id\": 2, \"s\": 105, \"r\": 20, \"p\": 8}]}}",
        "path = 'x.jobs'",
    );
}

#[test]
fn rows_with_the_same_job() {
    let same = |same: &str| {
        let table = "id,s,r,p\n7,100,10,4\n7,105,20,8\n8,101,5,1\n";
        read(table, &format!("{PLAIN}[rules]\nsame_job = '{same}'\n")).unwrap()
    };
    let row = |job, submit, runtime, procs| {
        format!("{job} {submit} -1 {runtime} {procs} -1 -1 {procs} -1 -1 -1 -1 -1 -1 -1 -1 -1 -1")
    };
    assert_eq!(same("own"), [row(1, 0, 10, 4), row(2, 1, 5, 1), row(3, 5, 20, 8)]);
    assert_eq!(same("attempts"), [row(7, 0, 10, 4), row(8, 1, 5, 1), row(7, 5, 20, 8)]);
    assert_eq!(same("last"), [row(8, 0, 5, 1), row(7, 4, 20, 8)]);
    // Without starts, the parts of a gang run as long as the first.
    assert_eq!(same("gang"), [row(7, 0, 10, 12), row(8, 1, 5, 1)]);
}

#[test]
fn several_files_are_one_log() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("24_02.csv", "id,s,r,p\n1,100,10,4\n");
    write("24_03.csv", "p,r,s,id\n8,20,105,2\nx,20,105,2\n");
    write("readme.md", "none");
    let files = crate::table_files(folder.path()).unwrap();
    let pattern = crate::table_files(&folder.path().join("24_*.csv")).unwrap();
    assert_eq!((files.len(), &files), (2, &pattern));
    let map = ColumnMap::parse("my.toml", PLAIN).unwrap();
    let options = ImportOptions { lenient: true, columns: Some(Arc::new(map)), ..ImportOptions::default() };
    let log = import(&Trace::of_files("months", files), Format::Table, &options).unwrap();
    assert_eq!((log.report.read, log.report.written), (3, 2));
    let (_, malformed) = log.report.remarks.with_effect(RemarkEffect::LeftOut).next().unwrap();
    assert!(malformed.examples[0].contains("24_03.csv line 3: p is \"x\""), "{:?}", malformed.examples);
    assert!(crate::table_files(&folder.path().join("25_*.csv")).is_err());
}

#[cfg(not(feature = "parquet"))]
#[test]
fn without_the_feature_the_message_says_how_to_get_it() {
    let error = read("PAR1....", PLAIN).unwrap_err();
    assert!(
        error.contains(
            "which this build does not read; build it with `cargo build --release --features parquet`"
        ),
        "{error}"
    );
}

#[cfg(feature = "parquet")]
mod in_parquet {
    use parquet::basic::{Compression, GzipLevel, ZstdLevel};
    use parquet::data_type::{
        ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type, Int96, Int96Type,
    };
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;

    use super::*;

    const SCHEMA: &str = "message jobs {
        required int64 id; optional int64 submit (TIMESTAMP(MICROS,true)); optional int64 begin (TIMESTAMP(NANOS,false));
        optional int96 finish; optional int32 limit; required int64 cores (DECIMAL(9,2)); optional binary state (UTF8);
        optional double gpus; repeated double embedding;
    }";

    fn put<T: DataType>(group: &mut SerializedRowGroupWriter<'_, Vec<u8>>, values: &[T::T], levels: &[i16]) {
        let mut column = group.next_column().unwrap().unwrap();
        let levels = (!levels.is_empty()).then_some(levels);
        column.typed::<T>().write_batch(values, levels, None).unwrap();
        column.close().unwrap();
    }

    /// Returns a file with two groups of two rows.
    fn file(compression: Compression) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
        let mut writer = SerializedFileWriter::new(vec![], schema, properties).unwrap();
        // 2024-03-01 12:00:00 UTC, which is 13:00 in Berlin. Its Julian day is 2460371.
        let noon = 1_709_294_400_i64;
        for first in [0, 2] {
            let mut group = writer.next_row_group().unwrap();
            put::<Int64Type>(&mut group, &[first + 1, first + 2], &[]);
            put::<Int64Type>(
                &mut group,
                &[(noon + first) * 1_000_000, (noon + first + 1) * 1_000_000],
                &[1, 1],
            );
            put::<Int64Type>(&mut group, &[(noon + 3_600 + 10) * 1_000_000_000], &[1, 0]);
            let mut finish = Int96::new();
            let nanos = (13 * 3_600 + 60) * 1_000_000_000_u64;
            finish.set_data((nanos & 0xffff_ffff) as u32, (nanos >> 32) as u32, 2_460_371);
            put::<Int96Type>(&mut group, &[finish], &[1, 0]);
            put::<Int32Type>(&mut group, &[2, 3], &[1, 1]);
            put::<Int64Type>(&mut group, &[400, 150], &[]);
            put::<ByteArrayType>(&mut group, &[ByteArray::from("COMPLETED")], &[1, 0]);
            put::<DoubleType>(&mut group, &[0.25], &[0, 1]);
            let mut column = group.next_column().unwrap().unwrap();
            let embedding = column.typed::<DoubleType>().write_batch(
                &[1.5, 2.5, 3.5],
                Some(&[1, 1, 1]),
                Some(&[0, 1, 0]),
            );
            assert_eq!(embedding.unwrap(), 3);
            column.close().unwrap();
            group.close().unwrap();
        }
        writer.into_inner().unwrap()
    }

    const MAP: &str = "[table]\nzone = 'Europe/Berlin'\n[columns]\njob = 'id'\nsubmit = 'submit'\nstart = 'begin'\nend = 'finish'\n\
                       estimate = { column = 'limit', unit = 'min' }\nprocs = 'cores'\nstatus = 'state'\ngpus = 'gpus'\n";

    fn read_file(bytes: Vec<u8>, map: &str) -> Result<Vec<String>, String> {
        let columns = Some(Arc::new(ColumnMap::parse("my.toml", map).unwrap()));
        let options = ImportOptions { keep_ids: true, columns, ..ImportOptions::default() };
        let log = import(&Trace::memory("t", bytes), Format::Table, &options);
        log.map(|log| lines(&log)).map_err(|error| error.to_string())
    }

    #[test]
    fn types_and_compressions() {
        let zstd = Compression::ZSTD(ZstdLevel::default());
        for compression in
            [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::GZIP(GzipLevel::default()), zstd]
        {
            assert_eq!(
                read_file(file(compression), MAP).unwrap(),
                [
                    "1 0 10 50 4 -1 -1 4 120 -1 1 -1 -1 -1 -1 -1 -1 -1 -",
                    "2 1 -1 -1 2 -1 -1 2 180 -1 -1 -1 -1 -1 -1 -1 -1 -1 0.25",
                    "3 2 8 50 4 -1 -1 4 120 -1 1 -1 -1 -1 -1 -1 -1 -1 -",
                    "4 3 -1 -1 2 -1 -1 2 180 -1 -1 -1 -1 -1 -1 -1 -1 -1 0.25",
                ]
            );
        }
    }

    #[test]
    fn errors() {
        let error = |map: &str| read_file(file(Compression::SNAPPY), map).unwrap_err();
        let without_zone = MAP.replace("zone = 'Europe/Berlin'", "");
        assert!(
            error(&without_zone)
                .starts_with("t, row 1: begin is \"2024-03-01T13:00:10Z\"; expected: time with an offset")
        );
        let of_list = MAP.replace("'gpus'", "'embedding'");
        assert!(error(&of_list).contains("column \"embedding\" has lists"), "{}", error(&of_list));
        let cut = file(Compression::SNAPPY);
        let cut = cut[..cut.len() / 2].to_vec();
        assert!(read_file(cut, MAP).unwrap_err().starts_with("t: "));
        let named = Trace::memory("jobs.parquet", file(Compression::SNAPPY));
        assert_eq!(Format::of(&named).unwrap(), Format::Table);
        let error = import(&named, Format::Table, &ImportOptions::default()).unwrap_err().to_string();
        assert!(error.contains("a table in parquet with the columns id, submit, begin, finish, limit, cores, state, gpus, ...; say what"), "{error}");
    }
}

/// The map of arbitrary tables.
const ANY: &str = "[table]\nzone = 'Europe/Berlin'\n[columns]\njob = 'id'\nsubmit = 's'\nend = 'e'\n\
                   runtime = { column = 'r', unit = 'dhms' }\nprocs = 'p'\nmemory = { column = 'm', unit = 'slurm' }\ngpus = 'p / 3'\n\
                   [rules]\ndrop = ['end < submit', \"p == 'x'\"]\nsame_job = 'SAME'\n";

proptest! {
    #[test]
    fn every_row_of_any_table_is_accounted_for(
        cells in prop::collection::vec(prop::collection::vec("[0-9]{1,3}|[0-9]{9,12}|2024-03-31 0[0-9]:30:00(Z|)|[0-9]:00:0[0-9]|x|\"a,b\"|4G|.{0,3}", 4..8), 0..20),
        same in 0..4_usize,
    ) {
        let rows: Vec<String> = cells.iter().map(|row| row.join(",")).collect();
        let text = format!("id,s,e,r,p,m\n{}", rows.join("\n"));
        let map = ColumnMap::parse("any", &ANY.replace("SAME", crate::SameJob::ALL[same].name())).unwrap();
        let options = ImportOptions { lenient: true, keep_ids: true, columns: Some(Arc::new(map)), ..ImportOptions::default() };
        if let Ok(log) = import(&Trace::memory("t", text.into()), Format::Table, &options) {
            let left_out = log.report.remarks.with_effect(RemarkEffect::LeftOut).map(|(_, tally)| tally.count);
            prop_assert_eq!(log.report.read, log.report.written + left_out.sum::<u64>());
            let mut written = Vec::new();
            log.write(&mut written).unwrap();
            let checked = miserly_workload::check(&Trace::memory("made", written), None, miserly_workload::ProcsField::Allocated).unwrap();
            prop_assert_eq!(checked.read, log.report.written);
            prop_assert!(!checked.findings.contains_key(&miserly_workload::check::Anomaly::Malformed));
        }
    }

    #[test]
    fn any_text_is_a_map_or_refused_with_a_place(text in "(\\[(table|columns|rules|join)\\]\n|[a-z_]{1,8} = ('[a-z ]{0,5}'|[0-9]|true|\\[.{0,4}\\]|\\{ column = 'a' \\})\n|.{0,6}\n){0,8}") {
        if let Err(error) = ColumnMap::parse("m", &text) {
            let error = error.to_string();
            for line in error.lines() {
                let mut parts = line.split(':').skip(1);
                let are_numbers = parts.by_ref().take(2).all(|part| part.parse::<usize>().is_ok());
                prop_assert!(are_numbers && parts.next().is_some(), "{}", error);
            }
        }
    }
}

#[test]
fn names_and_accounts_need_keep_ids() {
    let options = ImportOptions { keep_ids: false, ..options("eagle") };
    let log = import(&made("eagle.csv"), Format::Table, &options).unwrap();
    assert_eq!(lines(&log)[2], "3 60 60 7230 72 -1 -1 72 7200 14223 0 2 -1 -1 2 2 -1 -1 2 4 1024000");
}

#[test]
fn users_with_names_have_them_in_the_header_with_keep_ids() {
    let table = "id,s,r,p,u\n1,1,1,1,bea\n2,2,1,1,\"ann\n; User: 3 x\"\n3,3,1,1,bea\n";
    let map = ColumnMap::parse("my.toml", &format!("{PLAIN}user = 'u'\n")).unwrap();
    for (keep_ids, expect) in
        [(true, vec!["; MaxUsers: 2", "; User: 1 bea", "; User: 2 ann\u{fffd}; User: 3 x"]), (false, vec![])]
    {
        let options =
            ImportOptions { keep_ids, columns: Some(Arc::new(map.clone())), ..ImportOptions::default() };
        let log = import(&Trace::memory("t", table.into()), Format::Table, &options).unwrap();
        let of_users = log.comments.iter().filter(|comment| comment.contains("User"));
        assert_eq!(of_users.collect::<Vec<_>>(), expect);
    }
}
