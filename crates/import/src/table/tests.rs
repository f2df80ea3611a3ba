//! The presets on made files, each with the jobs worked out by hand; and on the real rows of a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miserly_workload::Trace;

use crate::remark::RemarkEffect;
use crate::{ImportError, ImportOptions, ImportedLog, Report, find_preset, import};
use crate::{Format, TimeZone};

/// Opens a made file.
fn made(name: &str) -> Trace {
    Trace::open(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/presets").join(name)).unwrap()
}

fn options(preset: &str) -> ImportOptions {
    ImportOptions { keep_ids: true, columns: Some(Arc::new(find_preset(preset).unwrap())), ..ImportOptions::default() }
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
    println!("{:#?}", log.comments);
    println!("{:#?}", &lines(&log)[..5]);
    println!("{:?}", remark_counts(&log.report));
    assert_eq!((log.report.read, log.report.written), (1000, 1000));
}
