//! Conversion of a line of the accounting to a job.

use jiff::tz::TimeZone;
use miserly_workload::swf::{Field, Record};

use super::columns::{AccountingRow, Column};
use super::state::{FinalState, final_state};
use super::values::{Instant, MemoryUnit, TimeForm, TimeLimit, count, instant, memory, span, time_limit};
use super::{SlurmOptions, SubmitAt};
use crate::error::FieldError;
use crate::number_map::NumberMap;
use crate::remark::Remark;

/// Maximum memory accepted by the log's reader, in kB: fifteen digits.
const MOST_MEMORY: i64 = 999_999_999_999_999;

/// The result of a line.
pub(super) struct LineResult {
    /// Job with its submission in seconds of the Unix epoch; `None` if it is excluded.
    pub(super) record: Option<Record>,
    /// Remarks on the job.
    pub(super) remarks: Vec<Remark>,
}

/// The mappings of names and ids to numbers.
pub(super) struct NumberMaps {
    pub(super) users: NumberMap,
    pub(super) groups: NumberMap,
    pub(super) queues: NumberMap,
    pub(super) qos: NumberMap,
    /// Tasks of arrays and parts of heterogeneous jobs without a number of their own.
    pub(super) parts: NumberMap,
}

impl NumberMaps {
    /// Returns the number of a job. Forms such as `7_3` or `7+1` receive numbers that no job has.
    fn job(&mut self, text: &str) -> Option<i64> {
        const PARTS: i64 = 10_000_000_000;
        match text.split_once(['_', '+']) {
            None => text.parse::<u32>().ok().map(i64::from),
            Some((job, _)) => job.parse::<u32>().ok().map(|_| PARTS + self.parts.number(Some(text))),
        }
    }

    /// Sets the fields for user, group, queue and partition.
    fn set_names(&mut self, row: &AccountingRow<'_>, record: &mut Record) {
        record.set(Field::User, self.users.number(row.value(Column::User)));
        record.set(Field::Group, self.groups.number(row.value(Column::Group)));
        record.set(Field::Queue, self.queues.number(row.value(Column::Partition)));
        let qos = row.value(Column::Qos).map(|qos| format!("QOS {qos}"));
        record.set(Field::Partition, self.qos.number(qos.as_deref()));
    }
}

impl LineResult {
    fn left_out(remark: Remark) -> LineResult {
        LineResult { record: None, remarks: vec![remark] }
    }
}

/// Converts a line to a job.
pub(super) fn line_result(
    row: &AccountingRow<'_>,
    options: &SlurmOptions,
    numbers: &mut NumberMaps,
) -> Result<LineResult, FieldError> {
    let final_state = final_state(row.text(Column::State));
    if let Some(remark) = left_out(row, final_state) {
        return Ok(LineResult::left_out(remark));
    }
    let Some(number) = row.parsed(Column::Job, "job number", |text| numbers.job(text))? else {
        return Err(FieldError::Value { field: "JobIDRaw", value: String::new(), expected: "job number" });
    };
    let Some(times) = Times::parse(row, options)? else {
        return Ok(LineResult::left_out(Remark::NoSubmitTime));
    };
    let sizes = JobSizes::parse(row)?;
    let estimate = estimate(row)?;
    let mut record = Record::unknown();
    let mut set = |field, value: Option<i64>| record.set(field, value.unwrap_or(-1));
    set(Field::Job, Some(number));
    set(Field::Submit, Some(times.submit));
    set(Field::Wait, times.wait);
    set(Field::Runtime, times.runtime);
    set(Field::Allocated, sizes.allocated);
    set(Field::CpuTime, cpu_time(row, &sizes)?);
    set(Field::RequestedProcs, sizes.requested.or(sizes.allocated));
    set(Field::Estimate, estimate);
    set(Field::RequestedMemory, sizes.memory);
    set(Field::Status, status(final_state));
    numbers.set_names(row, &mut record);
    let mut remarks = times.remarks;
    let without_limit = estimate.is_none() && row.has(Column::TimeLimit);
    remarks.extend(remarks_if([
        (without_limit, Remark::NoTimeLimit),
        (final_state.is_none(), Remark::UnknownState),
        (sizes.nodes.is_some_and(|nodes| nodes > 1), Remark::ManyNodes),
        (row.text(Column::Resources).contains("gres/"), Remark::GenericResources),
    ]));
    Ok(LineResult { record: Some(record), remarks })
}

/// Returns the reason to exclude the line, if any.
fn left_out(row: &AccountingRow<'_>, final_state: Option<FinalState>) -> Option<Remark> {
    let ends = !row.has(Column::End) || row.value(Column::End).is_some();
    match final_state {
        _ if row.text(Column::Job).contains('.') => Some(Remark::Step),
        Some(FinalState::Elsewhere) => Some(Remark::Elsewhere),
        Some(FinalState::Unfinished) => Some(Remark::Unfinished),
        Some(FinalState::Over(_)) | None => (!ends).then_some(Remark::Unfinished),
    }
}

/// Returns the remarks whose conditions hold.
fn remarks_if<const N: usize>(conditions: [(bool, Remark); N]) -> impl Iterator<Item = Remark> {
    conditions.into_iter().filter_map(|(holds, remark)| holds.then_some(remark))
}

fn status(final_state: Option<FinalState>) -> Option<i64> {
    match final_state {
        Some(FinalState::Over(status)) => Some(status),
        _ => None,
    }
}

/// Returns the time limit in seconds, if there is one.
fn estimate(row: &AccountingRow<'_>) -> Result<Option<i64>, FieldError> {
    Ok(match row.parsed(Column::TimeLimit, "time limit in minutes", time_limit)? {
        Some(TimeLimit::Seconds(seconds)) => Some(seconds),
        Some(TimeLimit::Open) | None => None,
    })
}

/// Submission, wait and runtime in seconds.
struct Times {
    submit: i64,
    wait: Option<i64>,
    runtime: Option<i64>,
    remarks: Vec<Remark>,
}

impl Times {
    /// Parses the times of a line, or returns `None` if the submission is unknown.
    fn parse(row: &AccountingRow<'_>, options: &SlurmOptions) -> Result<Option<Times>, FieldError> {
        let SlurmOptions { submit_at, ref time_zone, .. } = *options;
        let zone = time_zone.as_ref().unwrap_or(const { &TimeZone::UTC });
        let at = |column| row.parsed(column, "time", |text| instant(text, zone));
        let instants = [at(Column::Submit)?, at(Column::Eligible)?, at(Column::Start)?, at(Column::End)?];
        let [Some(submitted), eligible, start, end] = instants.map(|instant| instant.map(seconds)) else {
            return Ok(None);
        };
        let has = |form| instants.into_iter().flatten().any(|instant| instant.form == form);
        let elapsed = row.parsed(Column::Elapsed, "span of time", span)?.map(whole);
        let suspended = row.parsed(Column::Suspended, "span of time", span)?.map_or(0, whole);
        let submit = match submit_at {
            SubmitAt::Submit => submitted,
            SubmitAt::Eligible => eligible.unwrap_or(submitted).max(submitted),
        };
        // Slurm itself subtracts the suspended time from the elapsed time.
        let runtime = elapsed.or_else(|| Some((end? - start? - suspended).max(0)));
        // Before 20.11, the start of a job that never ran was set to its end.
        let ran = start.is_some() && (runtime != Some(0) || row.text(Column::Allocated) != "0");
        let begun = if ran { start } else { end };
        let wait = begun.map(|begun| begun - submit);
        let remarks = remarks_if([
            (has(TimeForm::Local) && time_zone.is_none(), Remark::LocalTime),
            (has(TimeForm::RepeatedLocal), Remark::RepeatedHour),
            (!ran, Remark::NeverStarted),
            (ran && suspended > 0, Remark::Suspended),
            (eligible.is_some_and(|eligible| eligible > submitted), Remark::Delayed),
            (eligible.is_none() && submit_at == SubmitAt::Eligible, Remark::NeverEligible),
            (wait.is_some_and(|wait| wait < 0), Remark::StartedEarly),
        ])
        .collect();
        let wait = wait.filter(|&wait| wait >= 0);
        Ok(Some(Times { submit, wait, runtime: runtime.filter(|_| ran), remarks }))
    }
}

fn seconds(instant: Instant) -> i64 {
    instant.seconds
}

/// Converts milliseconds to seconds, rounded half up.
fn whole(millis: i64) -> i64 {
    (millis + 500) / 1000
}

/// Processors, nodes, and memory in kB per processor.
struct JobSizes {
    allocated: Option<i64>,
    requested: Option<i64>,
    nodes: Option<i64>,
    memory: Option<i64>,
}

impl JobSizes {
    fn parse(row: &AccountingRow<'_>) -> Result<JobSizes, FieldError> {
        let number = |column| row.parsed(column, "whole number", count).map(|found| found.filter(|&n| n > 0));
        let (allocated, requested) = (number(Column::Allocated)?, number(Column::Requested)?);
        let nodes = number(Column::Nodes)?;
        let requested_memory = row.parsed(Column::Memory, "amount of memory", memory)?;
        // The processors that a simulation will give the job, so that the total memory remains.
        let procs = allocated.or(requested);
        let memory = requested_memory.filter(|requested_memory| requested_memory.kilobytes > 0).and_then(
            |requested_memory| match requested_memory.per {
                MemoryUnit::Processor => Some(requested_memory.kilobytes),
                MemoryUnit::Job => share(requested_memory.kilobytes, procs?),
                MemoryUnit::Node => share(requested_memory.kilobytes.checked_mul(nodes?)?, procs?),
            },
        );
        Ok(JobSizes { allocated, requested, nodes, memory })
    }
}

/// Returns the share of each processor, rounded up, or `None` beyond the range of the format.
fn share(kilobytes: i64, procs: i64) -> Option<i64> {
    let each = kilobytes.checked_add(procs - 1)? / procs;
    (each <= MOST_MEMORY).then_some(each)
}

/// Returns the processor time per processor in whole seconds, rounded half up.
fn cpu_time(row: &AccountingRow<'_>, sizes: &JobSizes) -> Result<Option<i64>, FieldError> {
    let total = row.parsed(Column::TotalCpu, "span of time", span)?;
    Ok(total.zip(sizes.allocated).map(|(millis, procs)| whole(millis / procs)))
}
