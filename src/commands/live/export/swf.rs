//! The history in the Standard Workload Format.

use std::collections::BTreeMap;
use std::io;

use jiff::Timestamp;
use miserly_api::model::{Exit, KilledBy};
use miserly_core::{Procs, Span};
use miserly_live::history::{FinishedJob, JobOutcome};
use miserly_workload::swf::{Field, Record, SwfWriter};

/// Returns the jobs as a log. The format has whole seconds only. Instants are rounded down and
/// durations up, so a job that ran has a run time above 0.
///
/// `procs` are the machine's processors. Without them, the header has the most that jobs ever held
/// at a time.
pub(super) fn swf(jobs: &[FinishedJob], procs: Option<Procs>) -> io::Result<Vec<u8>> {
    let start = jobs.iter().map(|job| job.submitted.as_second()).min().unwrap_or(0);
    let (queues, names) = (numbers(jobs, |job| &job.queue), numbers(jobs, |job| &job.name));
    let mut writer = SwfWriter::new(Vec::new());
    let held = || (most_held(jobs), " (the most in use at a time; the history has no machine size)");
    let (most, note) = procs.map_or_else(held, |procs| (procs.get(), ""));
    for comment in ["Version: 2.2", "Computer: miserly daemon", "TimeZone: 0"] {
        writer.comment(&format!("; {comment}"))?;
    }
    writer.comment(&format!("; UnixStartTime: {start}\n; MaxProcs: {most}{note}"))?;
    writer.comment("; Note: users have their numbers of that machine")?;
    if jobs.iter().any(|job| job.usage.is_some_and(|usage| usage.of_processes)) {
        writer.comment(
            "; Note: the used memory of jobs without a control group is that of their largest process",
        )?;
    }
    for (name, number) in &queues {
        writer.comment(&format!("; Queue: {number} {name}"))?;
    }
    for (name, number) in &names {
        writer.comment(&format!("; Executable: {number} {}", name.escape_debug()))?;
    }
    // A clock that was set back may have reversed the order of numbers.
    let mut ordered: Vec<&FinishedJob> = jobs.iter().collect();
    ordered.sort_by_key(|job| (job.submitted, job.number));
    for job in ordered {
        writer.job(&record(job, start, queues[job.queue.as_str()], names[job.name.as_str()]))?;
    }
    Ok(writer.into_inner())
}

fn record(job: &FinishedJob, start: i64, queue: i64, name: i64) -> Record {
    let mut record = Record::unknown();
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let submit = job.submitted.as_second();
    record.set(Field::Job, job.number);
    record.set(Field::Submit, submit - start);
    record.set(Field::Wait, (job.started.unwrap_or(job.ended).as_second() - submit).max(0));
    record.set(Field::Runtime, job.runtime().map_or(0, up));
    if job.started.is_some() {
        record.set(Field::Allocated, whole(job.cpus));
    }
    if let Some(usage) = job.usage {
        let cpus = job.cpus.max(1);
        record.set_cpu_time(usage.user.saturating_add(usage.system) / cpus);
        if let Some(bytes) = usage.memory_peak {
            record.set(Field::UsedMemory, whole(bytes.div_ceil(1024).div_ceil(cpus)));
        }
    }
    record.set(Field::RequestedProcs, whole(job.cpus));
    record.set(Field::Estimate, up(job.time));
    record.set(Field::RequestedMemory, whole(job.memory.div_ceil(job.cpus.max(1))));
    record.set(Field::Status, status(job.outcome));
    record.set(Field::User, job.uid.into());
    record.set(Field::Executable, name);
    record.set(Field::Queue, queue);
    record
}

/// Returns a duration in whole seconds, rounded up.
fn up(span: Span) -> i64 {
    (span.max(Span::ZERO) + Span::from_ticks(999_999)).secs()
}

/// Returns the status of the format: 1 completed, 0 failed, 5 cancelled.
fn status(outcome: JobOutcome) -> i64 {
    match outcome {
        JobOutcome::Done(Exit::Code(0)) => 1,
        JobOutcome::Killed(KilledBy::User | KilledBy::Shutdown) => 5,
        _ => 0,
    }
}

/// Returns the names in alphabetical order, numbered from 1.
fn numbers<'a>(
    jobs: &'a [FinishedJob],
    name: impl Fn(&'a FinishedJob) -> &'a String,
) -> BTreeMap<&'a str, i64> {
    let mut names: BTreeMap<&str, i64> = jobs.iter().map(|job| (name(job).as_str(), 0)).collect();
    names.values_mut().zip(1..).for_each(|(number, next)| *number = next);
    names
}

/// Returns the most processors that jobs held at a time.
fn most_held(jobs: &[FinishedJob]) -> u64 {
    let ran = jobs.iter().filter_map(|job| Some((job.started?, job.ended, job.cpus)));
    // At one instant, ends come before starts.
    let mut changes: Vec<(Timestamp, bool, u64)> =
        ran.flat_map(|(start, end, cpus)| [(start, true, cpus), (end.max(start), false, cpus)]).collect();
    changes.sort_unstable();
    let mut held: u64 = 0;
    let at_a_time = changes.into_iter().map(|(_, starts, cpus)| {
        held = if starts { held + cpus } else { held.saturating_sub(cpus) };
        held
    });
    let widest = jobs.iter().map(|job| job.cpus).max();
    at_a_time.max().max(widest).unwrap_or(1).max(1)
}
