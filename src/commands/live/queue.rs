//! `miserly queue`: jobs and their promises.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use jiff::Timestamp;
use miserly_api::client::Client;
use miserly_api::model::{Filter, JobView, Phase, Window};
use miserly_units::{duration, memory, span_of_seconds};
use miserly_view::word;

use super::show::is_time_sliced;
use super::text::{local, plain, table};
use super::{client, print_answer};
use crate::args::QueueArgs;
use crate::output::print;

pub(crate) fn run(args: &QueueArgs) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let filter = Filter {
        all: args.all,
        uid: args.mine.then(|| rustix::process::geteuid().as_raw()),
        queue: args.queue.clone(),
        array: args.array,
        limit: args.limit,
        after: args.after,
        details: args.json && args.details,
    };
    if let Some(secs) = args.watch {
        return watch(&client, &filter, Duration::from_secs(secs));
    }
    let jobs = client.all_jobs(&filter)?;
    print_answer(args.json, &jobs, || shown(&jobs))?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the jobs until it is interrupted. On a terminal, each list replaces the last one.
fn watch(client: &Client, filter: &Filter, period: Duration) -> anyhow::Result<ExitCode> {
    let clear = if std::io::stdout().is_terminal() { "\x1b[H\x1b[2J" } else { "" };
    loop {
        let jobs = shown(&client.all_jobs(filter)?);
        print(&format!("{clear}{}\n\n{jobs}", local(Timestamp::now())))?;
        sleep(period);
    }
}

fn shown(jobs: &[JobView]) -> String {
    if jobs.is_empty() {
        return "no jobs\n".to_owned();
    }
    let mut header = vec!["JOB", "NAME", "USER", "QUEUE", "CPUS", "MEMORY", "TIME", "STATE", "START", "END"];
    let mut rows: Vec<Vec<String>> = jobs.iter().map(row).collect();
    if jobs.iter().any(|job| job.forecast.is_some()) {
        let place = header.len() - 1;
        header.insert(place, "LIKELY");
        for (row, job) in rows.iter_mut().zip(jobs) {
            row.insert(place, job.forecast.map_or_else(|| "-".to_owned(), |forecast| local(forecast.median)));
        }
    }
    table(&header, &["CPUS", "MEMORY", "TIME"], rows)
}

fn row(job: &JobView) -> Vec<String> {
    let (start, end) = span(job);
    vec![
        number(job),
        plain(&job.name),
        plain(&job.user),
        plain(&job.queue),
        job.cpus.to_string(),
        memory(job.memory),
        duration(span_of_seconds(job.time)),
        state_in_queue(job),
        start,
        end,
    ]
}

fn state_in_queue(job: &JobView) -> String {
    match job.overdue {
        None if is_time_sliced(job) => in_turns(job),
        _ => word(job).to_owned(),
    }
}

/// Returns the state of a job. For a time-sliced one, adds its number of slots and the number of
/// used slots.
fn in_turns(job: &JobView) -> String {
    let slots = job.slots.iter().map(|slots| format!(" {}/{}", slots.runs_in.len(), slots.used));
    [word(job).to_owned()].into_iter().chain(slots).collect()
}

/// Returns a job's number, with its index in its array.
fn number(job: &JobView) -> String {
    job.index.map_or_else(|| job.number.to_string(), |index| format!("{}[{index}]", job.number))
}

/// Returns the window that is promised to a job now.
fn promised_window(job: &JobView) -> Option<&Window> {
    job.promise.as_ref()?.now.as_ref()
}

/// Returns the start and the end of a job. They are the actual times if known, else promised
/// (`by`), else planned. The end of a time-sliced job is an estimate (`about`).
fn span(job: &JobView) -> (String, String) {
    let none = || "-".to_owned();
    match &job.phase {
        // It may come to share its processors with other slots.
        Phase::Running(holding) if job.slots.is_some() => {
            (local(holding.start), format!("about {}", local(holding.end)))
        }
        Phase::Running(holding) if job.overdue.is_some() => {
            (local(holding.start), format!("was {}", local(holding.end)))
        }
        Phase::Running(holding) | Phase::Suspended(holding) => {
            (local(holding.start), format!("by {}", local(holding.end)))
        }
        Phase::Done { start, end, .. } => (local(*start), local(*end)),
        Phase::Killed { start, end, .. } => (start.map_or_else(none, local), local(*end)),
        Phase::Failed { at, .. } | Phase::Lost { at, .. } => (none(), local(*at)),
        Phase::Adopted { end, .. } => (none(), end.map_or_else(none, |end| format!("by {}", local(end)))),
        Phase::Unreadable { .. } => (none(), none()),
        Phase::Held | Phase::Queued | Phase::Opportunistic { .. } => {
            match (promised_window(job), job.planned) {
                (Some(Window { start, end }), _) => {
                    (format!("by {}", local(*start)), format!("by {}", local(*end)))
                }
                (None, Some(planned)) => (format!("plan {}", local(planned)), none()),
                (None, None) => (none(), none()),
            }
        }
    }
}
