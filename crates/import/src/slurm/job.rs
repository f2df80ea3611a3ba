//! One line of the accounting as one job.

use jiff::tz::TimeZone;
use miserly_workload::swf::{Field, Record};

use super::columns::{Column, Row};
use super::state::{Fate, fate};
use super::values::{Per, TimeLimit, count, instant, memory, span, time_limit};
use super::{SlurmOptions, SubmitAt};
use crate::error::FieldError;
use crate::numbering::Numbering;
use crate::remark::Remark;

/// The most memory that the log's reader admits, in kB: fifteen digits.
const MOST_MEMORY: i64 = 999_999_999_999_999;

/// What a line comes to.
pub(super) struct Entry {
    /// The job, its submission in seconds of the Unix epoch; `None` if it is left out.
    pub(super) record: Option<Record>,
    /// What is to be said of it.
    pub(super) remarks: Vec<Remark>,
}

/// The numbers that names and ids became.
pub(super) struct Numbers {
    pub(super) users: Numbering,
    pub(super) groups: Numbering,
    pub(super) queues: Numbering,
    pub(super) qos: Numbering,
    /// Tasks of arrays and parts of heterogeneous jobs, where they have no number of their own.
    pub(super) parts: Numbering,
}

impl Numbers {
    /// The number of a job: `JobIDRaw` is one. A `JobID` can also be `7_3` or `7+1`, which get numbers that no job has.
    fn job(&mut self, text: &str) -> Option<i64> {
        const PARTS: i64 = 10_000_000_000;
        match text.split_once(['_', '+']) {
            None => text.parse::<u32>().ok().map(i64::from),
            Some((job, _)) => job.parse::<u32>().ok().map(|_| PARTS + self.parts.number(Some(text))),
        }
    }

    /// Sets the fields that name somebody or something.
    fn name(&mut self, row: &Row<'_>, record: &mut Record) {
        record.set(Field::User, self.users.number(row.value(Column::User)));
        record.set(Field::Group, self.groups.number(row.value(Column::Group)));
        record.set(Field::Queue, self.queues.number(row.value(Column::Partition)));
        let qos = row.value(Column::Qos).map(|qos| format!("QOS {qos}"));
        record.set(Field::Partition, self.qos.number(qos.as_deref()));
    }
}

impl Entry {
    fn left_out(remark: Remark) -> Entry {
        Entry { record: None, remarks: vec![remark] }
    }
}

/// The job that a line tells of.
pub(super) fn entry(
    row: &Row<'_>,
    options: &SlurmOptions,
    numbers: &mut Numbers,
) -> Result<Entry, FieldError> {
    let fate = fate(row.text(Column::State));
    if let Some(remark) = left_out(row, fate) {
        return Ok(Entry::left_out(remark));
    }
    let Some(number) = row.parsed(Column::Job, "job number", |text| numbers.job(text))? else {
        return Err(FieldError::Value { field: "JobIDRaw", value: String::new(), expected: "job number" });
    };
    let Some(times) = Times::of(row, options)? else {
        return Ok(Entry::left_out(Remark::NoSubmitTime));
    };
    let sizes = Sizes::of(row)?;
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
    set(Field::Status, status(fate));
    numbers.name(row, &mut record);
    let mut remarks = times.remarks;
    let without_limit = estimate.is_none() && row.has(Column::TimeLimit);
    remarks.extend(made([
        (without_limit, Remark::NoTimeLimit),
        (fate.is_none(), Remark::UnknownState),
        (sizes.nodes.is_some_and(|nodes| nodes > 1), Remark::ManyNodes),
        (row.text(Column::Resources).contains("gres/"), Remark::GenericResources),
    ]));
    Ok(Entry { record: Some(record), remarks })
}

/// Why the line is no job of the log, if it is none.
fn left_out(row: &Row<'_>, fate: Option<Fate>) -> Option<Remark> {
    let ends = !row.has(Column::End) || row.value(Column::End).is_some();
    match fate {
        _ if row.text(Column::Job).contains('.') => Some(Remark::Step),
        Some(Fate::Elsewhere) => Some(Remark::Elsewhere),
        Some(Fate::Unfinished) => Some(Remark::Unfinished),
        Some(Fate::Over(_)) | None => (!ends).then_some(Remark::Unfinished),
    }
}

/// The remarks whose conditions hold.
fn made<const N: usize>(conditions: [(bool, Remark); N]) -> impl Iterator<Item = Remark> {
    conditions.into_iter().filter_map(|(holds, remark)| holds.then_some(remark))
}

fn status(fate: Option<Fate>) -> Option<i64> {
    match fate {
        Some(Fate::Over(status)) => Some(status),
        _ => None,
    }
}

/// The time limit in seconds, if there is one.
fn estimate(row: &Row<'_>) -> Result<Option<i64>, FieldError> {
    Ok(match row.parsed(Column::TimeLimit, "time limit in minutes", time_limit)? {
        Some(TimeLimit::Seconds(seconds)) => Some(seconds),
        Some(TimeLimit::Open) | None => None,
    })
}

/// When a job came, how long it waited, and how long it ran, in seconds.
struct Times {
    submit: i64,
    wait: Option<i64>,
    runtime: Option<i64>,
    remarks: Vec<Remark>,
}

impl Times {
    /// `None` if the submission is unknown.
    fn of(row: &Row<'_>, options: &SlurmOptions) -> Result<Option<Times>, FieldError> {
        let SlurmOptions { submit_at, ref time_zone, .. } = *options;
        let zone = time_zone.as_ref().unwrap_or(const { &TimeZone::UTC });
        let at = |column| row.parsed(column, "time", |text| instant(text, zone));
        let (Some((submitted, local)), eligible) = (at(Column::Submit)?, at(Column::Eligible)?) else {
            return Ok(None);
        };
        let (start, end) = (at(Column::Start)?.map(seconds), at(Column::End)?.map(seconds));
        let elapsed = row.parsed(Column::Elapsed, "span of time", span)?.map(whole);
        let suspended = row.parsed(Column::Suspended, "span of time", span)?.map_or(0, whole);
        let eligible = eligible.map(seconds);
        let submit = match submit_at {
            SubmitAt::Submit => submitted,
            SubmitAt::Eligible => eligible.unwrap_or(submitted).max(submitted),
        };
        // Slurm subtracts the suspended time from the elapsed time itself.
        let runtime = elapsed.or_else(|| Some((end? - start? - suspended).max(0)));
        // Before 20.11, a job that never ran had its start set to its end.
        let ran = start.is_some() && (runtime != Some(0) || row.text(Column::Allocated) != "0");
        let begun = if ran { start } else { end };
        let wait = begun.map(|begun| begun - submit);
        let remarks = made([
            (local && time_zone.is_none(), Remark::LocalTime),
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

fn seconds((seconds, _local): (i64, bool)) -> i64 {
    seconds
}

/// Milliseconds as seconds, rounded half up.
fn whole(millis: i64) -> i64 {
    (millis + 500) / 1000
}

/// Processors, nodes, and memory in kB per processor.
struct Sizes {
    allocated: Option<i64>,
    requested: Option<i64>,
    nodes: Option<i64>,
    memory: Option<i64>,
}

impl Sizes {
    fn of(row: &Row<'_>) -> Result<Sizes, FieldError> {
        let number = |column| row.parsed(column, "whole number", count).map(|found| found.filter(|&n| n > 0));
        let (allocated, requested) = (number(Column::Allocated)?, number(Column::Requested)?);
        let nodes = number(Column::Nodes)?;
        let asked = row.parsed(Column::Memory, "amount of memory", memory)?;
        // The processors that a run of the log will give it, so that its memory comes out as it was asked for.
        let procs = allocated.or(requested);
        let memory = asked.filter(|asked| asked.kilobytes > 0).and_then(|asked| match asked.per {
            Per::Processor => Some(asked.kilobytes),
            Per::Job => share(asked.kilobytes, procs?),
            Per::Node => share(asked.kilobytes.checked_mul(nodes?)?, procs?),
        });
        Ok(Sizes { allocated, requested, nodes, memory })
    }
}

/// What each of `procs` has, rounded up; `None` if that is beyond what the format holds.
fn share(kilobytes: i64, procs: i64) -> Option<i64> {
    let each = kilobytes.checked_add(procs - 1)? / procs;
    (each <= MOST_MEMORY).then_some(each)
}

/// The processor time of each processor, in whole seconds, rounded half up.
fn cpu_time(row: &Row<'_>, sizes: &Sizes) -> Result<Option<i64>, FieldError> {
    let total = row.parsed(Column::TotalCpu, "span of time", span)?;
    Ok(total.zip(sizes.allocated).map(|(millis, procs)| whole(millis / procs)))
}
