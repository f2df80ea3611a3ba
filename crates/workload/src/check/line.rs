//! Checks of a single line.

use miserly_core::Procs;

use super::Anomaly;
use crate::jobs::ProcsField;
use crate::swf::{Field, Record};

/// Tolerance of CPU time over runtime in seconds, because one of them is rounded.
const CPU_SLACK: i64 = 1;

/// Returns the anomalies of one job.
pub(super) fn anomalies(
    record: &Record,
    field: ProcsField,
    procs: Option<Procs>,
) -> impl Iterator<Item = Anomaly> {
    let found = [
        (record.get(Field::Submit) < 0).then_some(Anomaly::NoSubmitTime),
        size(record, field, procs),
        runtime(record),
        estimate(record),
        ran_past(record).then_some(Anomaly::RanPastEstimate),
        sizes_differ(record).then_some(Anomaly::SizesDiffer),
        (record.get(Field::Job) < 1).then_some(Anomaly::NoJobNumber),
        memory_over(record).then_some(Anomaly::MemoryOverRequest),
        cpu_over(record).then_some(Anomaly::CpuOverRuntime),
        status(record),
    ];
    found.into_iter().flatten()
}

fn size(record: &Record, field: ProcsField, procs: Option<Procs>) -> Option<Anomaly> {
    match field.size(record) {
        None => Some(Anomaly::NoProcessors),
        Some(size) if procs.is_some_and(|procs| size > procs) => Some(Anomaly::TooWide),
        Some(_) => None,
    }
}

fn runtime(record: &Record) -> Option<Anomaly> {
    match record.get(Field::Runtime) {
        0 => Some(Anomaly::ZeroRuntime),
        ..0 => Some(Anomaly::NoRuntime),
        _ => None,
    }
}

fn estimate(record: &Record) -> Option<Anomaly> {
    match record.get(Field::Estimate) {
        0 => Some(Anomaly::ZeroEstimate),
        ..0 => Some(Anomaly::NoEstimate),
        _ => None,
    }
}

fn ran_past(record: &Record) -> bool {
    record.positive(Field::Estimate).is_some_and(|_| record.get(Field::Runtime) > record.get(Field::Estimate))
}

fn sizes_differ(record: &Record) -> bool {
    let both = record.positive(Field::Allocated).zip(record.positive(Field::RequestedProcs));
    both.is_some_and(|(allocated, requested)| allocated != requested)
}

fn memory_over(record: &Record) -> bool {
    let both = record.positive(Field::UsedMemory).zip(record.positive(Field::RequestedMemory));
    both.is_some_and(|(used, requested)| used > requested)
}

fn cpu_over(record: &Record) -> bool {
    let allowed = record.get(Field::Runtime).max(0) + CPU_SLACK;
    let whole = record.get(Field::CpuTime);
    let beyond =
        || record.cpu_time().split_once('.').is_some_and(|(_, decimals)| decimals.contains(is_not_zero));
    record.recorded(Field::Runtime).is_some() && (whole > allowed || (whole == allowed && beyond()))
}

fn is_not_zero(digit: char) -> bool {
    digit != '0'
}

fn status(record: &Record) -> Option<Anomaly> {
    match record.get(Field::Status) {
        0 | 1 | 5 => None,
        2..=4 => Some(Anomaly::PartOfJob),
        _ => Some(Anomaly::UnknownStatus),
    }
}
