//! Rows of the same job that become one.

use std::io;
use std::sync::Arc;

use miserly_workload::Sorted;
use miserly_workload::swf::{Extra, Field, Record};

use crate::accounting::fold;
use crate::remark::{Remark, Remarks};

/// Rows by their job, submission and wait.
type Rows = Arc<Sorted<[i64; 3]>>;

/// Keeps the last run of each job: that with the latest submission, then the latest start.
pub(crate) fn keep_last(
    rows: &Rows,
    remarks: &mut Remarks,
    done: impl FnMut(&Record) -> io::Result<()>,
) -> io::Result<()> {
    fold_jobs(rows, Remark::EarlierRun, remarks, Record::clone_from, done)
}

/// Joins the parts of each job: sizes are summed, and it runs from the first start to the last end.
pub(crate) fn join_parts(
    rows: &Rows,
    remarks: &mut Remarks,
    done: impl FnMut(&Record) -> io::Result<()>,
) -> io::Result<()> {
    fold_jobs(rows, Remark::PartOfJob, remarks, join, done)
}

fn fold_jobs(
    rows: &Rows,
    remark: Remark,
    remarks: &mut Remarks,
    work: impl Fn(&mut Record, &Record),
    done: impl FnMut(&Record) -> io::Result<()>,
) -> io::Result<()> {
    let fold_job = |kept: &mut Record, later: &Record| {
        let is_same = later.get(Field::Job) == kept.get(Field::Job);
        if is_same {
            work(kept, later);
            remarks.add(remark, || format!("job {}", later.get(Field::Job)));
        }
        is_same
    };
    fold(rows, fold_job, done)
}

/// Adds a part to a job.
fn join(job: &mut Record, part: &Record) {
    let total = |record: &Record, field| {
        let procs = record.positive(Field::Allocated).or_else(|| record.positive(Field::RequestedProcs))?;
        record.positive(field)?.checked_mul(procs)
    };
    let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
        (Some(one), Some(other)) => one.checked_add(other),
        (one, other) => one.or(other),
    };
    let memory =
        [Field::RequestedMemory, Field::UsedMemory].map(|field| sum(total(job, field), total(part, field)));
    let runs = [&*job, part].map(run);
    let start = runs.iter().flatten().map(|(start, _)| *start).min();
    let end = runs.iter().flatten().map(|(_, end)| *end).max();
    for field in [Field::Allocated, Field::RequestedProcs] {
        set(job, field, sum(job.positive(field), part.positive(field)));
    }
    let procs = job.positive(Field::Allocated).or_else(|| job.positive(Field::RequestedProcs));
    for (field, memory) in [Field::RequestedMemory, Field::UsedMemory].into_iter().zip(memory) {
        set(job, field, memory.zip(procs).map(|(memory, procs)| memory.div_ceil(procs)));
    }
    let submit = job.get(Field::Submit).min(part.get(Field::Submit));
    job.set(Field::Submit, submit);
    if let Some((start, end)) = start.zip(end) {
        job.set(Field::Wait, (start - submit).max(0));
        job.set(Field::Runtime, end - start);
    }
    let statuses = [job, part].map(|record| record.get(Field::Status));
    let status = [0, 5, -1].into_iter().find(|status| statuses.contains(status)).unwrap_or(1);
    job.set(Field::Status, status);
    for extra in [Extra::Nodes, Extra::Gpus, Extra::JobMemory] {
        if let Some(total) = sum(job.extras().number(extra), part.extras().number(extra)) {
            job.extras_mut().set_number(extra, total);
        }
    }
    join_types(job, part);
}

/// Lists the types of GPUs of a job, with a bar between.
fn join_types(job: &mut Record, part: &Record) {
    let Some(more) = part.extras().text(Extra::GpuType) else { return };
    let types = match job.extras().text(Extra::GpuType) {
        Some(known) if known.split('|').any(|known| known == more) => return,
        Some(known) => format!("{known}|{more}"),
        None => more.into_owned(),
    };
    // A text is always valid.
    let _ = job.extras_mut().set(Extra::GpuType, &types);
}

fn set(record: &mut Record, field: Field, value: Option<u64>) {
    record.set(field, value.and_then(|value| i64::try_from(value).ok()).unwrap_or(-1));
}

/// Returns start and end of a record that ran.
fn run(record: &Record) -> Option<(i64, i64)> {
    let (wait, runtime) = (record.recorded(Field::Wait)?, record.recorded(Field::Runtime)?);
    let start = record.get(Field::Submit).checked_add_unsigned(wait)?;
    Some((start, start.checked_add_unsigned(runtime)?))
}
