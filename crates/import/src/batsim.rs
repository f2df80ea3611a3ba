//! Import of Batsim workloads: jobs in JSON, each with a profile of its behaviour.
//!
//! Only a profile of delays has a fixed duration. A profile that computes or communicates depends
//! on a platform, so such jobs are excluded and counted.

mod json;

mod profiles;

use std::collections::BTreeSet;

use miserly_core::Procs;
use miserly_workload::Trace;
use miserly_workload::swf::{Field, ReadError, Record};

use self::json::{JsonJob, JsonWorkload};
use self::profiles::{ProfileDuration, duration};
use crate::error::{FieldError, ImportError};
use crate::log::{ImportedLog, LogHeader, Report, number, sort};
use crate::remark::{Remark, Remarks};

/// Greatest time accepted by the log's reader, in seconds.
const SECONDS_MAX: f64 = 1e10;

/// Options of the conversion.
#[derive(Clone, Debug, Default)]
pub struct BatsimOptions {
    /// Processors of the machine, instead of the workload's `nb_res`.
    pub procs: Option<Procs>,
}

/// Converts a Batsim workload, which is held in memory.
///
/// # Errors
/// The input is unreadable or not a workload, a job is invalid, or no job has a fixed duration.
pub fn batsim(trace: &Trace, options: &BatsimOptions) -> Result<ImportedLog, ImportError> {
    let input = trace.unpacked()?;
    let workload: JsonWorkload = serde_json::from_reader(input).map_err(|error| unreadable(trace, error))?;
    let mut remarks = Remarks::default();
    let mut records = Vec::with_capacity(workload.jobs.len());
    for job in &workload.jobs {
        let failed = |error| ImportError::Job { name: trace.name().into(), job: job.id.to_string(), error };
        records.extend(record(job, &workload, &mut remarks).map_err(failed)?);
    }
    let read = workload.jobs.len() as u64;
    if records.is_empty() {
        return Err(ImportError::Empty { name: trace.name().into(), read, wanted: "made of delays" });
    }
    assign_numbers(&mut records, &mut remarks);
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
    };
    let comments = head(&report).comments(records.len());
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

fn unreadable(trace: &Trace, error: serde_json::Error) -> ImportError {
    if error.is_io() {
        let line = error.line() as u64;
        return trace.read_error(ReadError::Io { line, error: error.into() }).into();
    }
    ImportError::Json { name: trace.name().into(), error }
}

/// Converts a job to a line of a log, or returns `None` if it has no fixed duration.
fn record(
    job: &JsonJob,
    workload: &JsonWorkload,
    remarks: &mut Remarks,
) -> Result<Option<Record>, FieldError> {
    let profile = job.profile.to_string();
    let found = duration(&workload.profiles, &profile).ok_or_else(|| FieldError::Value {
        field: "profile",
        value: profile.clone(),
        expected: "profile that ends, of those in profiles",
    })?;
    let ProfileDuration::Seconds { seconds: delay, fails } = found else {
        remarks.add(Remark::NoDuration, || format!("job {}: profile {profile}", job.id));
        return Ok(None);
    };
    let walltime = job.walltime();
    let times = [job.subtime, delay, walltime.unwrap_or(0.0)];
    let found = [
        (walltime.is_none(), Remark::NoWalltime),
        (times.iter().any(|time| time.fract() != 0.0), Remark::Rounded),
    ];
    for (_, remark) in found.into_iter().filter(|(found, _)| *found) {
        remarks.add(remark, || format!("job {}", job.id));
    }
    let [submit, runtime] = [seconds("subtime", job.subtime)?, seconds("delay", delay)?];
    let estimate = walltime.map(|walltime| seconds("walltime", walltime)).transpose()?;
    let killed = estimate.is_some_and(|estimate| runtime > estimate);
    let mut record = Record::unknown();
    record.set(Field::Job, job.id.number().unwrap_or(-1));
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
    Err(FieldError::Value { field, value: value.to_string(), expected: "time from 0 to 10^10 s" })
}

/// Keeps the ids as job numbers if they are distinct numbers from 1.
fn assign_numbers(records: &mut [Record], remarks: &mut Remarks) {
    sort(records);
    let ids: BTreeSet<i64> = records.iter().map(|record| record.get(Field::Job)).collect();
    if ids.len() == records.len() && ids.first() >= Some(&1) {
        return;
    }
    number(records);
    for record in records {
        remarks.add(Remark::Renumbered, || format!("now job {}", record.get(Field::Job)));
    }
}

/// Returns the fields of jobs that Batsim passes to its scheduler.
fn unused(workload: &JsonWorkload) -> Vec<String> {
    let names: BTreeSet<_> = workload.jobs.iter().flat_map(|job| job.others.keys().cloned()).collect();
    names.into_iter().collect()
}

#[cfg(test)]
mod tests;
