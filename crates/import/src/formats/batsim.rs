//! Import of Batsim workloads: jobs in JSON, each with a profile of its behaviour.
//!
//! Only a profile of delays has a fixed duration. A profile that computes or communicates depends
//! on a platform, so such jobs are excluded and counted.

mod json;

mod profiles;

use std::collections::BTreeSet;

use miserly_core::Procs;
use miserly_workload::Trace;
use miserly_workload::swf::{Field, Record};

use self::json::{JsonJob, JsonWorkload};
use self::profiles::{ProfileDuration, duration};
use crate::error::{FieldError, ImportError};
use crate::log::{ImportedLog, LogHeader, Report, UnknownStatesReport, number};
use crate::options::ImportOptions;
use crate::remark::{Remark, Remarks};

/// Description of the format, for messages.
const FORMAT: &str = "a Batsim workload is one JSON object with nb_res, jobs and profiles";

/// Greatest time accepted by the log's reader, in seconds.
const SECONDS_MAX: f64 = 1e10;

/// Converts a Batsim workload, which is held in memory.
///
/// # Errors
/// The input is unreadable or not a workload, a job is invalid, or no job has a fixed duration.
pub fn batsim(trace: &Trace, options: &ImportOptions) -> Result<ImportedLog, ImportError> {
    let input = trace.unpacked()?;
    let workload: JsonWorkload =
        serde_json::from_reader(input).map_err(|error| ImportError::of_json(trace, error, FORMAT))?;
    let mut remarks = Remarks::default();
    let mut records = Vec::with_capacity(workload.jobs.len());
    for (place, job) in workload.jobs.iter().enumerate() {
        let failed = |error| ImportError::Job { name: trace.name().into(), job: job.id.to_string(), error };
        let record = record(job, &workload, &mut remarks).map_err(failed)?;
        records.extend(record.map(|record| (record, place)));
    }
    let read = workload.jobs.len() as u64;
    if records.is_empty() {
        return Err(ImportError::Empty { name: trace.name().into(), read, wanted: "made of delays" });
    }
    let (records, names) = numbered(records, &workload.jobs, &mut remarks);
    let procs = options.procs.or(workload.nb_res.map(u64::from).map(Procs::new));
    let report = Report {
        name: trace.name().into(),
        format: "Batsim workload",
        read,
        written: records.len() as u64,
        procs,
        busiest: None,
        unused: unused(&workload),
        remarks,
        rules: vec![],
        notes: vec![],
        unknown_states: UnknownStatesReport::default(),
    };
    let comments = LogHeader { jobs: names, ..head(&report) }.comments(report.written);
    Ok(ImportedLog { comments, records, report })
}

fn head(report: &Report) -> LogHeader<'_> {
    let Report { name, read, written, .. } = report;
    let name = name.rsplit('/').next().unwrap_or(name);
    let notes = vec![
        format!("made of the Batsim workload {name}: {written} of {read} jobs, those that are delays"),
        "status 0 is a job that its walltime would end, or whose profile returns an error".into(),
    ];
    LogHeader { computer: "none; a workload of Batsim", procs: report.procs, notes, ..LogHeader::default() }
}

/// Converts a job to a line of a log, or returns `None` if it has no fixed duration.
fn record(
    job: &JsonJob,
    workload: &JsonWorkload,
    remarks: &mut Remarks,
) -> Result<Option<Record>, FieldError> {
    let profile = job.profile.to_string();
    let found = duration(&workload.profiles, &profile).ok_or_else(|| FieldError::Value {
        field: "profile".into(),
        value: profile.clone(),
        expected: "profile that ends, of those in profiles",
    })?;
    let ProfileDuration::Seconds { seconds: delay, fails } = found else {
        remarks.add(Remark::NoDuration, || format!("job {}: profile {profile}", job.id));
        return Ok(None);
    };
    let walltime = job.walltime();
    let times = [job.subtime, delay, walltime.unwrap_or(0.0)];
    let rounded = times.iter().filter(|time| time.fract() != 0.0).count() as u64;
    let found = [(u64::from(walltime.is_none()), Remark::NoWalltime), (rounded, Remark::Rounded)];
    for (count, remark) in found.into_iter().filter(|(count, _)| *count > 0) {
        remarks.add_all(remark, count, || format!("job {}", job.id));
    }
    let [submit, runtime] = [seconds("subtime", job.subtime)?, seconds("delay", delay)?];
    let estimate = walltime.map(|walltime| seconds("walltime", walltime)).transpose()?;
    let killed = estimate.is_some_and(|estimate| runtime > estimate);
    let mut record = Record::unknown();
    record.set(Field::Submit, submit);
    record.set(Field::Runtime, runtime);
    record.set(Field::Allocated, job.res.get().into());
    record.set(Field::RequestedProcs, job.res.get().into());
    record.set(Field::Estimate, estimate.unwrap_or(-1));
    record.set(Field::Status, i64::from(!killed && !fails));
    Ok(Some(record))
}

/// Returns whole seconds, rounded half up.
#[expect(clippy::cast_possible_truncation, reason = "it is within ±10^10")]
fn seconds(field: &'static str, value: f64) -> Result<i64, FieldError> {
    if (0.0..=SECONDS_MAX).contains(&value) {
        return Ok((value + 0.5).floor() as i64);
    }
    Err(FieldError::Value {
        field: field.into(),
        value: value.to_string(),
        expected: "time from 0 to 10^10 s",
    })
}

/// Numbers the jobs: by their ids if these are distinct numbers, else from 1 in the order of submission. Then the ids are returned
/// too, for the header. Each record has its place in `jobs`.
fn numbered(
    mut records: Vec<(Record, usize)>,
    jobs: &[JsonJob],
    remarks: &mut Remarks,
) -> (Vec<Record>, Vec<String>) {
    let mut ids: Vec<i64> = records.iter().filter_map(|(_, place)| jobs[*place].id.number()).collect();
    ids.sort_unstable();
    ids.dedup();
    let are_numbers = ids.len() == records.len();
    if are_numbers {
        for (record, place) in &mut records {
            record.set(Field::Job, jobs[*place].id.number().unwrap_or(-1));
        }
    }
    records.sort_by_key(|(record, _)| (record.get(Field::Submit), record.get(Field::Job)));
    let places: Vec<usize> = records.iter().map(|(_, place)| *place).collect();
    let mut records: Vec<Record> = records.into_iter().map(|(record, _)| record).collect();
    if are_numbers {
        return (records, vec![]);
    }
    number(&mut records);
    let names: Vec<String> = places.into_iter().map(|place| jobs[place].id.to_string()).collect();
    for (name, number) in names.iter().zip(1..) {
        remarks.add(Remark::Renumbered, || format!("{name} is now job {number}"));
    }
    (records, names)
}

/// Returns the fields of jobs that Batsim passes to its scheduler.
fn unused(workload: &JsonWorkload) -> Vec<String> {
    let names: BTreeSet<_> = workload.jobs.iter().flat_map(|job| job.others.keys().cloned()).collect();
    names.into_iter().collect()
}

#[cfg(test)]
mod tests;
