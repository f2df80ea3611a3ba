//! Accounting whose fields have positions: `lsb.acct` of LSF, and `accounting` of Grid Engine.
//!
//! Only positions that the public manual pages state are used.

use std::borrow::Cow;

use miserly_workload::Trace;

use super::clock;
use super::sacct::split;
use crate::accounting::{Accounting, lines};
use crate::error::{FieldError, ImportError};
use crate::format::Format;
use crate::log::Imported;
use crate::options::ImportOptions;
use crate::remark::Remark;
use crate::row::{Column, Row, Schema};

/// A field of a record: its column, its position from 0, and its name.
type Position = (Column, usize, &'static str);

/// The first fields of a `JOB_FINISH` record of LSF.
const LSF: [Position; 9] = [
    (Column::End, 2, "Event Time"),
    (Column::Job, 3, "jobId"),
    (Column::Requested, 6, "numProcessors"),
    (Column::Submit, 7, "submitTime"),
    (Column::Eligible, 8, "beginTime"),
    (Column::Start, 10, "startTime"),
    (Column::User, 11, "userName"),
    (Column::Partition, 12, "queue"),
    (Column::Allocated, 22, "numAskedHosts"),
];

/// Position of `numAskedHosts`. The names of so many hosts follow it, and then `numExHosts` with as many.
const LSF_ASKED_HOSTS: usize = 22;

/// The fields of a record of Grid Engine.
const GRID_ENGINE: [Position; 11] = [
    (Column::Partition, 0, "qname"),
    (Column::Group, 2, "group"),
    (Column::User, 3, "owner"),
    (Column::Job, 5, "job_number"),
    (Column::Submit, 8, "submission_time"),
    (Column::Start, 9, "start_time"),
    (Column::End, 10, "end_time"),
    (Column::State, 11, "failed"),
    (Column::Allocated, 34, "slots"),
    (Column::TotalCpu, 36, "cpu"),
    (Column::TimeLimit, 39, "category"),
];

/// Positions of further fields of Grid Engine.
const EXIT_STATUS: usize = 12;
const TASK_NUMBER: usize = 35;
const PE_TASK: usize = 41;

/// Fewest fields of a record of Grid Engine, up to `maxvmem`.
const GRID_ENGINE_FEWEST: usize = 43;

/// Returns whether a line is a record of LSF.
pub(crate) fn is_lsf(line: &str) -> bool {
    let Some((kind, rest)) = line.strip_prefix('"').and_then(|rest| rest.split_once('"')) else {
        return false;
    };
    let is_kind = kind.contains('_') && kind.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_kind && rest.starts_with(" \"")
}

/// Returns whether a line is a record of Grid Engine.
pub(crate) fn is_grid_engine(line: &str) -> bool {
    let fields: Vec<&str> = line.split(':').collect();
    let is_number = |place: usize| fields[place].parse::<u64>().is_ok();
    fields.len() >= GRID_ENGINE_FEWEST && [5, 8, 9, 10, 11].into_iter().all(is_number)
}

/// Converts `lsb.acct` of LSF. Only the records `JOB_FINISH` are jobs.
///
/// # Errors
/// See [`imported`](super::imported).
pub(super) fn lsf(trace: &Trace, options: &ImportOptions) -> Result<Imported, ImportError> {
    records(
        trace,
        Accounting::new(Format::Lsf, options),
        &schema(&LSF, &[(Column::State, 0, "jStatus")]),
        " ",
        lsf_row,
    )
}

/// Returns the row of a record, or the remark on one that is not a job.
type ToRow = for<'l> fn(&'l Schema, &[Cow<'l, str>]) -> Result<Result<Row<'l>, Remark>, FieldError>;

fn lsf_row<'s>(schema: &'s Schema, fields: &[Cow<'s, str>]) -> Result<Result<Row<'s>, Remark>, FieldError> {
    if fields[0] != "JOB_FINISH" {
        return Ok(Err(Remark::Event));
    }
    let number = |place: usize| fields.get(place).and_then(|field| field.parse::<usize>().ok());
    let hosts_at =
        number(LSF_ASKED_HOSTS).map(|asked| LSF_ASKED_HOSTS.saturating_add(1).saturating_add(asked));
    let hosts = hosts_at.and_then(|at| Some((at.checked_add(1)?, number(at)?)));
    let hosts =
        hosts.and_then(|(from, count)| Some((fields.get(from..from.checked_add(count)?)?, from + count)));
    // Behind the hosts: jStatus, hostFactor, jobName, command, 19 fields of usage, mailUser, projectName, exitStatus,
    // maxNumProcessors, loginShell, timeEvent, idx.
    let Some((hosts, status)) = hosts.filter(|(_, status)| fields.len() > status + 29) else {
        return Err(FieldError::Value {
            field: "JOB_FINISH".into(),
            value: format!("{} fields", fields.len()),
            expected: "the fields up to idx, as lsb.acct(5) has them",
        });
    };
    let mut row = placed(schema, &LSF, fields);
    // `4*host` is four slots on a host.
    let slots =
        hosts.iter().map(|host| host.split_once('*').and_then(|(n, _)| n.parse().ok()).unwrap_or(1_u64));
    row.set(Column::Allocated, slots.sum::<u64>().to_string());
    let index = fields[status + 29].as_ref();
    if index != "0" {
        row.set(Column::Job, format!("{}_{index}", fields[3]));
    }
    // JOB_STAT_DONE and JOB_STAT_EXIT of lsbatch.h.
    row.set(
        Column::State,
        match fields[status].as_ref() {
            "64" => "COMPLETED",
            "32" => "FAILED",
            _ => "?",
        },
    );
    Ok(Ok(row))
}

/// Converts `accounting` of Grid Engine. A slave task of a parallel job is a step of it.
///
/// # Errors
/// See [`imported`](super::imported).
pub(super) fn grid_engine(trace: &Trace, options: &ImportOptions) -> Result<Imported, ImportError> {
    let accounting = Accounting::new(Format::GridEngine, options);
    records(trace, accounting, &schema(&GRID_ENGINE, &[]), ":", grid_engine_row)
}

fn grid_engine_row<'s>(
    schema: &'s Schema,
    fields: &[Cow<'s, str>],
) -> Result<Result<Row<'s>, Remark>, FieldError> {
    if fields.len() < GRID_ENGINE_FEWEST {
        return Err(FieldError::Width { found: fields.len(), expected: GRID_ENGINE_FEWEST });
    }
    if fields[PE_TASK] != "NONE" {
        return Ok(Err(Remark::Step));
    }
    let mut row = placed(schema, &GRID_ENGINE, fields);
    if fields[TASK_NUMBER] != "0" {
        row.set(Column::Job, format!("{}_{}", fields[5], fields[TASK_NUMBER]));
    }
    let is_good = fields[11] == "0" && fields[EXIT_STATUS] == "0";
    row.set(Column::State, if is_good { "COMPLETED" } else { "FAILED" });
    row.set(Column::TotalCpu, format!("0:0:{}", fields[36]));
    row.set(Column::TimeLimit, hard_limit(&fields[39]).map_or_else(String::new, clock));
    Ok(Ok(row))
}

/// Returns the limit `h_rt` of a category, such as `-l h_rt=3600,mem_free=2G -pe smp 4`, in seconds.
fn hard_limit(category: &str) -> Option<i64> {
    let mut limits = category.split([' ', ',']).filter_map(|word| word.strip_prefix("h_rt="));
    limits.next_back()?.parse::<u32>().ok().map(i64::from)
}

fn schema(positions: &[Position], further: &[Position]) -> Schema {
    Schema::new(positions.iter().chain(further).map(|&(column, _, name)| (column, name)))
}

/// Returns the row of a record. A time of 0 is unknown.
fn placed<'s>(schema: &'s Schema, positions: &[Position], fields: &[Cow<'s, str>]) -> Row<'s> {
    let mut row = Row::new(schema);
    for &(column, place, _) in positions {
        let value = fields[place].clone();
        let is_time = matches!(column, Column::Submit | Column::Eligible | Column::Start | Column::End);
        if !(is_time && value == "0") {
            row.set(column, value);
        }
    }
    row
}

/// Adds the row of each record, unless it is not a job.
fn records(
    trace: &Trace,
    mut accounting: Accounting<'_>,
    schema: &Schema,
    separator: &str,
    to_row: ToRow,
) -> Result<Imported, ImportError> {
    lines(trace, &mut accounting, |accounting, text, line| {
        let added = match to_row(schema, &split(text, separator)) {
            Ok(Ok(row)) => accounting.add(Ok(row), line),
            Ok(Err(remark)) => {
                accounting.leave_out(remark, line);
                Ok(())
            }
            Err(error) => accounting.add(Err(error), line),
        };
        added.map_err(|error| error.at(trace.name(), line))
    })?;
    accounting.finish(trace.name())
}
