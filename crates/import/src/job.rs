//! Conversion of a row of accounting to its jobs.

use jiff::tz::TimeZone;
use miserly_workload::swf::{Extra, Field, Record};

use crate::error::FieldError;
use crate::number_map::NumberMap;
use crate::options::{ImportOptions, SubmitAt};
use crate::remark::Remark;
use crate::row::{Column, Row};
use crate::state::{FinalState, final_state};
use crate::values::{
    Instant, MemoryUnit, RequestedMemory, TimeForm, TimeLimit, count, gpus, instant, memory, span, tasks,
    time_limit, tres,
};

/// Maximum memory accepted by the log's reader, in kB: fifteen digits.
const MOST_MEMORY: i64 = 999_999_999_999_999;

/// The jobs of a row.
pub(crate) struct RowJobs {
    /// Jobs with their submission in seconds of the Unix epoch; none if they are excluded.
    pub(crate) records: Vec<Record>,
    /// Number of jobs, with excluded ones: more than one for the tasks of an array that wait together.
    pub(crate) count: u64,
    /// Remarks on each job.
    pub(crate) remarks: Vec<Remark>,
    /// The job if it runs: its remark depends on the later rows.
    pub(crate) unfinished: Option<Unfinished>,
    /// The latest time of the row, in seconds of the Unix epoch.
    pub(crate) latest: i64,
}

/// A job that runs, in seconds.
pub(crate) struct Unfinished {
    pub(crate) start: i64,
    pub(crate) limit: Option<i64>,
}

/// The mappings of names and ids to numbers.
pub(crate) struct NumberMaps {
    pub(crate) users: NumberMap,
    pub(crate) groups: NumberMap,
    pub(crate) queues: NumberMap,
    pub(crate) partitions: NumberMap,
    /// Tasks of arrays and parts of heterogeneous jobs without a number of their own.
    pub(crate) parts: NumberMap,
}

impl NumberMaps {
    /// Creates the mappings. With `keep`, users and groups keep numbers of their own.
    pub(crate) fn new(keep: bool) -> NumberMaps {
        let [users, groups] = [keep, keep].map(NumberMap::new);
        let [queues, partitions, parts] = [false; 3].map(NumberMap::new);
        NumberMaps { users, groups, queues, partitions, parts }
    }

    /// Returns the number of a job. Forms such as `7_3` or `7+1` receive numbers that no job has.
    fn job(&mut self, text: &str) -> Option<i64> {
        const PARTS: i64 = 10_000_000_000;
        match text.split_once(['_', '+']) {
            None => text.parse::<u32>().ok().map(i64::from),
            Some((job, _)) => job.parse::<u32>().ok().map(|_| PARTS + self.parts.number(Some(text))),
        }
    }

    /// Returns a number for a job with a name that is none.
    pub(crate) fn named_job(&mut self, name: Option<&str>) -> i64 {
        self.parts.number(name)
    }

    /// Sets the fields for user, group, queue and partition.
    pub(crate) fn set_names(
        &mut self,
        [user, group, queue, partition]: [Option<&str>; 4],
        record: &mut Record,
    ) {
        record.set(Field::User, self.users.number(user));
        record.set(Field::Group, self.groups.number(group));
        record.set(Field::Queue, self.queues.number(queue));
        record.set(Field::Partition, self.partitions.number(partition));
    }
}

impl RowJobs {
    fn left_out(remark: Remark, count: u64, latest: i64) -> RowJobs {
        RowJobs { records: vec![], count, remarks: vec![remark], unfinished: None, latest }
    }
}

/// Converts a row to its jobs.
pub(crate) fn jobs_of_row(
    row: &Row<'_>,
    options: &ImportOptions,
    numbers: &mut NumberMaps,
) -> Result<RowJobs, FieldError> {
    let tasks = array_tasks(row)?;
    let count = tasks.as_ref().map_or(1, |tasks| tasks.len() as u64);
    let final_state = final_state(row.text(Column::State));
    if let Some(remark) = left_out(row, final_state, tasks.is_some()) {
        let (unfinished, latest) = unfinished(row, options);
        let remark_is_open = remark == Remark::Unfinished && unfinished.is_some();
        let jobs = RowJobs::left_out(remark, count, latest);
        return Ok(if remark_is_open { RowJobs { remarks: vec![], unfinished, ..jobs } } else { jobs });
    }
    let Some(times) = Times::parse(row, options)? else {
        return Ok(RowJobs::left_out(Remark::NoSubmitTime, count, 0));
    };
    let sizes = JobSizes::parse(row, options)?;
    let estimate = estimate(row)?;
    let cpu_time = row.parsed(Column::TotalCpu, "span of time", span)?;
    let mut record = record(&times, &sizes, estimate, cpu_time, status(final_state));
    let [user, group, queue] =
        [Column::User, Column::Group, Column::Partition].map(|column| row.value(column));
    let qos = row.value(Column::Qos).map(|qos| format!("QOS {qos}"));
    numbers.set_names([user, group, queue, qos.as_deref()], &mut record);
    set_extras(row, &sizes, &mut record)?;
    let mut remarks = times.remarks;
    let without_limit = estimate.is_none() && row.has(Column::TimeLimit);
    let tres = [Column::AllocatedTres, Column::RequestedTres].map(|column| row.text(column));
    remarks.extend(remarks_if([
        (tasks.is_some(), Remark::CancelledTask),
        (without_limit, Remark::NoTimeLimit),
        (final_state.is_none() && row.has(Column::State), Remark::UnknownState),
        (sizes.nodes.is_some_and(|nodes| nodes > 1), Remark::ManyNodes),
        (tres.iter().any(|tres| tres.contains("gres/")), Remark::GenericResources),
    ]));
    let records = numbered(row, &record, tasks, numbers)?;
    Ok(RowJobs { records, count, remarks, unfinished: None, latest: times.latest })
}

/// Sets the extra fields for nodes and GPUs.
fn set_extras(row: &Row<'_>, sizes: &JobSizes, record: &mut Record) -> Result<(), FieldError> {
    let extras = record.extras_mut();
    if let Some(nodes) = sizes.nodes {
        extras.set_number(Extra::Nodes, nodes.unsigned_abs());
    }
    for column in [Column::AllocatedTres, Column::RequestedTres] {
        let (count, types) = row.parsed(column, "list with whole numbers of GPUs", gpus)?.unwrap_or_default();
        if count > 0 {
            extras.set_number(Extra::Gpus, count * 1_000);
            // Every text is a type.
            let _ = extras.set(Extra::GpuType, &types);
            break;
        }
    }
    Ok(())
}

/// Returns the record of a job without its number and names. `cpu_time` is the total of all processors, in milliseconds.
pub(crate) fn record(
    times: &Times,
    sizes: &JobSizes,
    estimate: Option<i64>,
    cpu_time: Option<i64>,
    status: Option<i64>,
) -> Record {
    let mut record = Record::unknown();
    let mut set = |field, value: Option<i64>| record.set(field, value.unwrap_or(-1));
    set(Field::Submit, Some(times.submit));
    set(Field::Wait, times.wait);
    set(Field::Runtime, times.runtime);
    set(Field::Allocated, sizes.allocated);
    if let Some((millis, procs)) = cpu_time.zip(sizes.allocated) {
        set(Field::CpuTime, Some(whole(millis / procs)));
    }
    set(Field::UsedMemory, sizes.used_memory);
    set(Field::RequestedProcs, sizes.requested.or(sizes.allocated));
    set(Field::Estimate, estimate);
    set(Field::RequestedMemory, sizes.memory);
    set(Field::Status, status);
    record
}

/// Returns the jobs of a row with their numbers.
fn numbered(
    row: &Row<'_>,
    record: &Record,
    tasks: Option<Vec<u32>>,
    numbers: &mut NumberMaps,
) -> Result<Vec<Record>, FieldError> {
    let with = |number| {
        let mut record = record.clone();
        record.set(Field::Job, number);
        record
    };
    if let Some(tasks) = tasks {
        let array = row.text(Column::Tasks).split('_').next().unwrap_or_default();
        let of_task = |task| numbers.job(&format!("{array}_{task}"));
        let jobs: Option<Vec<i64>> = tasks.into_iter().map(of_task).collect();
        return Ok(jobs.unwrap_or_default().into_iter().map(with).collect());
    }
    if !row.has(Column::Job) {
        return Ok(vec![with(-1)]);
    }
    let number = row.parsed(Column::Job, "job number", |text| numbers.job(text))?;
    let missing = || FieldError::Value {
        field: Column::Job.names()[0].to_owned(),
        value: String::new(),
        expected: "job number",
    };
    Ok(vec![with(number.ok_or_else(missing)?)])
}

/// Returns the tasks of an array that never ran, which are one row, as in `123_[1,3-7:2]`. A list that Slurm cut short is one
/// job.
fn array_tasks(row: &Row<'_>) -> Result<Option<Vec<u32>>, FieldError> {
    let text = row.text(Column::Tasks);
    if !text.contains("_[") || text.contains("...") {
        return Ok(None);
    }
    row.parsed(Column::Tasks, "job number with up to a million tasks", |text| {
        let (array, rest) = text.split_once("_[")?;
        array.parse::<u32>().ok()?;
        tasks(rest.strip_suffix(']')?)
    })
}

/// Returns the job if it runs, and the latest time of the row. What is unreadable is unknown, because the job is left out.
fn unfinished(row: &Row<'_>, options: &ImportOptions) -> (Option<Unfinished>, i64) {
    let zone = options.time_zone.as_ref().unwrap_or(const { &TimeZone::UTC });
    let at = |column| row.value(column).and_then(|text| instant(text, zone)).map(seconds);
    let latest = [Column::Submit, Column::Start].into_iter().filter_map(at).max().unwrap_or(0);
    let runs = row.text(Column::State).starts_with("RUNNING");
    let start = at(Column::Start).filter(|_| runs);
    (start.map(|start| Unfinished { start, limit: estimate(row).ok().flatten() }), latest)
}

/// Returns the reason to exclude the row, if any.
fn left_out(row: &Row<'_>, final_state: Option<FinalState>, never_ran: bool) -> Option<Remark> {
    let has_end = !row.has(Column::End) || row.value(Column::End).is_some();
    let ends = has_end || never_ran && matches!(final_state, Some(FinalState::Over(_)));
    match final_state {
        _ if row.text(Column::Job).contains('.') => Some(Remark::Step),
        Some(FinalState::Elsewhere) => Some(Remark::Elsewhere),
        Some(FinalState::Unfinished) => Some(Remark::Unfinished),
        Some(FinalState::Over(_)) | None => (!ends).then_some(Remark::Unfinished),
    }
}

/// Returns the remarks whose conditions hold.
pub(crate) fn remarks_if<const N: usize>(conditions: [(bool, Remark); N]) -> impl Iterator<Item = Remark> {
    conditions.into_iter().filter_map(|(holds, remark)| holds.then_some(remark))
}

fn status(final_state: Option<FinalState>) -> Option<i64> {
    match final_state {
        Some(FinalState::Over(status)) => Some(status),
        _ => None,
    }
}

/// Returns the time limit in seconds, if there is one.
fn estimate(row: &Row<'_>) -> Result<Option<i64>, FieldError> {
    Ok(match row.parsed(Column::TimeLimit, "time limit in minutes", time_limit)? {
        Some(TimeLimit::Seconds(seconds)) => Some(seconds),
        Some(TimeLimit::Open) | None => None,
    })
}

/// The times of a job as its accounting has them: instants in seconds of the Unix epoch, spans in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordedTimes {
    pub(crate) submitted: i64,
    pub(crate) eligible: Option<i64>,
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    pub(crate) elapsed: Option<i64>,
    pub(crate) suspended: i64,
    /// Whether the accounting has starts at all.
    pub(crate) has_starts: bool,
    /// Whether it says that the job had no processors.
    pub(crate) had_none: bool,
}

/// Submission, wait and runtime in seconds.
pub(crate) struct Times {
    pub(crate) submit: i64,
    pub(crate) wait: Option<i64>,
    pub(crate) runtime: Option<i64>,
    /// The latest of the times, in seconds of the Unix epoch.
    pub(crate) latest: i64,
    pub(crate) remarks: Vec<Remark>,
}

impl Times {
    /// Parses the times of a line, or returns `None` if the submission is unknown.
    fn parse(row: &Row<'_>, options: &ImportOptions) -> Result<Option<Times>, FieldError> {
        let ImportOptions { submit_at, ref time_zone, .. } = *options;
        let zone = time_zone.as_ref().unwrap_or(const { &TimeZone::UTC });
        let at = |column| row.parsed(column, "time", |text| instant(text, zone));
        let instants = [at(Column::Submit)?, at(Column::Eligible)?, at(Column::Start)?, at(Column::End)?];
        let [Some(submitted), eligible, start, end] = instants.map(|instant| instant.map(seconds)) else {
            return Ok(None);
        };
        let has = |form| instants.into_iter().flatten().any(|instant| instant.form == form);
        let recorded = RecordedTimes {
            submitted,
            eligible,
            start,
            end,
            elapsed: row.parsed(Column::Elapsed, "span of time", span)?.map(whole),
            suspended: row.parsed(Column::Suspended, "span of time", span)?.map_or(0, whole),
            has_starts: row.has(Column::Start),
            had_none: row.text(Column::Allocated) == "0",
        };
        let mut times = Times::new(&recorded, submit_at);
        times.remarks.extend(remarks_if([
            (has(TimeForm::Local) && time_zone.is_none(), Remark::LocalTime),
            (has(TimeForm::RepeatedLocal), Remark::RepeatedHour),
        ]));
        Ok(Some(times))
    }

    /// Returns submission, wait and runtime, with remarks on what contradicts.
    pub(crate) fn new(recorded: &RecordedTimes, submit_at: SubmitAt) -> Times {
        let &RecordedTimes { submitted, eligible, start, end, elapsed, suspended, has_starts, had_none } =
            recorded;
        let submit = match submit_at {
            SubmitAt::Submit => submitted,
            SubmitAt::Eligible => eligible.unwrap_or(submitted).max(submitted),
        };
        // Slurm itself subtracts the suspended time from the elapsed time.
        let runtime = elapsed.or_else(|| Some((end? - start? - suspended).max(0)));
        // Before 20.11, the start of a job that never ran was set to its end.
        let ran =
            if has_starts { start.is_some() && (runtime != Some(0) || !had_none) } else { runtime.is_some() };
        let begun = if ran { start } else { end };
        let wait = begun.map(|begun| begun - submit);
        let is_ineligible = |(eligible, start): (i64, i64)| (submit..eligible).contains(&start);
        let remarks = remarks_if([
            (!ran, Remark::NeverStarted),
            (ran && suspended > 0, Remark::Suspended),
            (eligible.is_some_and(|eligible| eligible > submitted), Remark::Delayed),
            (eligible.is_none() && submit_at == SubmitAt::Eligible, Remark::NeverEligible),
            (wait.is_some_and(|wait| wait < 0), Remark::StartedEarly),
            (ran && eligible.zip(start).is_some_and(is_ineligible), Remark::StartedIneligible),
            (ran && start.zip(end).is_some_and(|(start, end)| end < start), Remark::EndsEarly),
        ])
        .collect();
        let wait = wait.filter(|&wait| wait >= 0);
        let latest = [Some(submitted), start, end].into_iter().flatten().max().unwrap_or(0);
        Times { submit, wait, runtime: runtime.filter(|_| ran), latest, remarks }
    }
}

fn seconds(instant: Instant) -> i64 {
    instant.seconds
}

/// Converts milliseconds to seconds, rounded half up.
pub(crate) fn whole(millis: i64) -> i64 {
    (millis + 500) / 1000
}

/// Processors, nodes, and memory in kB per processor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct JobSizes {
    pub(crate) allocated: Option<i64>,
    pub(crate) requested: Option<i64>,
    pub(crate) nodes: Option<i64>,
    pub(crate) memory: Option<i64>,
    pub(crate) used_memory: Option<i64>,
}

impl JobSizes {
    fn parse(row: &Row<'_>, options: &ImportOptions) -> Result<JobSizes, FieldError> {
        let number = |column, name: &'static str| -> Result<Option<i64>, FieldError> {
            let tres_count = |text: &str| tres(text, name).map_or(Some(0), count);
            let parse = |text: &str| if text.contains('=') { tres_count(text) } else { count(text) };
            Ok(row.parsed(column, "whole number", parse)?.filter(|&number| number > 0))
        };
        let first = |columns: [(Column, &'static str); 2]| {
            columns
                .into_iter()
                .map(|(column, name)| number(column, name))
                .find_map(Result::transpose)
                .transpose()
        };
        let of_nodes = |nodes: Option<i64>| nodes?.checked_mul(options.cpus_per_node?.into());
        let nodes = first([(Column::Nodes, ""), (Column::AllocatedTres, "node")])?;
        let requested_nodes = first([(Column::RequestedNodes, ""), (Column::RequestedTres, "node")])?;
        let allocated = first([(Column::Allocated, ""), (Column::AllocatedTres, "cpu")])?;
        let requested = first([(Column::Requested, ""), (Column::RequestedTres, "cpu")])?;
        // A count of nodes stands for processors only where these are not there. Of a job that never ran they are 0.
        let by_nodes =
            [Column::Allocated, Column::AllocatedTres].into_iter().all(|column| row.text(column).is_empty());
        let allocated = allocated.or_else(|| of_nodes(nodes).filter(|_| by_nodes));
        let requested = requested.or_else(|| of_nodes(requested_nodes));
        // The processors that a simulation will give the job, so that the total memory remains.
        let procs = allocated.or(requested);
        let of_column =
            |column, parse: fn(&str) -> Option<RequestedMemory>| -> Result<Option<i64>, FieldError> {
                let found = row.parsed(column, "amount of memory", parse)?;
                Ok(found.filter(|found| found.kilobytes > 0).and_then(|found| each(found, procs, nodes)))
            };
        let requested_memory = match of_column(Column::Memory, memory)? {
            None if !row.has(Column::Memory) => of_column(Column::RequestedTres, |text| {
                tres(text, "mem").map_or(Some(RequestedMemory { kilobytes: 0, per: MemoryUnit::Job }), memory)
            })?,
            known => known,
        };
        let used_memory = of_column(Column::UsedMemory, memory)?;
        Ok(JobSizes { allocated, requested, nodes, memory: requested_memory, used_memory })
    }
}

/// Returns the memory of each processor.
pub(crate) fn each(memory: RequestedMemory, procs: Option<i64>, nodes: Option<i64>) -> Option<i64> {
    match memory.per {
        MemoryUnit::Processor => Some(memory.kilobytes),
        MemoryUnit::Job => share(memory.kilobytes, procs?),
        MemoryUnit::Node => share(memory.kilobytes.checked_mul(nodes?)?, procs?),
    }
}

/// Returns the share of each processor, rounded up, or `None` beyond the range of the format.
fn share(kilobytes: i64, procs: i64) -> Option<i64> {
    let each = kilobytes.checked_add(procs - 1)? / procs;
    (each <= MOST_MEMORY).then_some(each)
}
