//! `miserly cancel`, `hold`, `release` and `requeue`: one request for each of the jobs.

use std::collections::BTreeSet;
use std::process::ExitCode;

use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Filter, JobChange, JobIds, JobView, Problem, ProblemCode, SignalRequest};

use super::job_lists::{self, Scope};
use super::modify;
use super::queue::{self, Wanted};
use super::text::jobs;
use super::{client, print_answer};
use crate::args::{CancelArgs, JobList, JobsArgs, ReleaseArgs, SignalArgs, TakeBackArgs};
use crate::failure::print_failure;

pub(crate) fn cancel(args: &CancelArgs) -> anyhow::Result<ExitCode> {
    // From the highest number: a job that waits behind others does not start while these are cancelled.
    let client = client(&args.ask.daemon)?;
    let mut numbers = if args.jobs.is_empty() {
        let found = queue::jobs(&client, &Wanted::cancelled(args))?;
        if found.is_empty() {
            let problem = Problem::new(ProblemCode::NotFound, "no unfinished job is selected");
            return Err(ClientError::from(problem).into());
        }
        found.iter().map(|job| job.number).collect()
    } else {
        job_lists::numbers(&client, &JobList::all(&args.jobs), Scope::Unfinished, args.ask.json)?
    };
    if args.dry_run {
        if args.array {
            numbers = with_arrays(&client, &numbers)?;
        }
        return modify::preview(&client, &numbers, &JobChange::Cancel, args.ask.json);
    }
    numbers.reverse();
    send(&client, &numbers, args.ask.json, "cancelled", |client, job| client.cancel(job, args.array))
}

/// Returns jobs with all unfinished jobs of their arrays.
fn with_arrays(client: &Client, jobs: &[i64]) -> Result<Vec<i64>, ClientError> {
    let all = client.all_jobs(&Filter::default())?;
    let is_given = |job: &&JobView| jobs.contains(&job.number);
    let arrays: BTreeSet<i64> = all.iter().filter(is_given).filter_map(|job| job.array).collect();
    let is_meant = |job: &&JobView| is_given(job) || job.array.is_some_and(|array| arrays.contains(&array));
    Ok(all.iter().filter(is_meant).map(|job| job.number).collect())
}

pub(crate) fn hold(args: &TakeBackArgs) -> anyhow::Result<ExitCode> {
    if args.dry_run {
        return preview(&args.jobs, &JobChange::Hold);
    }
    requests(&args.jobs, "held", Order::Descending, |client, job| client.hold(job, args.move_promises))
}

pub(crate) fn release(args: &ReleaseArgs) -> anyhow::Result<ExitCode> {
    if args.dry_run {
        return preview(&args.jobs, &JobChange::Release);
    }
    requests(&args.jobs, "released", Order::Ascending, Client::release)
}

pub(crate) fn requeue(args: &TakeBackArgs) -> anyhow::Result<ExitCode> {
    if args.dry_run {
        return preview(&args.jobs, &JobChange::Requeue);
    }
    requests(&args.jobs, "requeued", Order::Ascending, |client, job| client.requeue(job, args.move_promises))
}

pub(crate) fn signal(args: &SignalArgs) -> anyhow::Result<ExitCode> {
    let signal = SignalRequest { signal: args.signal, main: args.main };
    requests(&args.jobs, &format!("sent {}", args.signal.name()), Order::Ascending, |client, job| {
        client.signal(job, &signal)
    })
}

pub(crate) fn pause(args: &JobsArgs) -> anyhow::Result<ExitCode> {
    requests(args, "paused", Order::Ascending, Client::pause)
}

pub(crate) fn resume(args: &JobsArgs) -> anyhow::Result<ExitCode> {
    requests(args, "resumed", Order::Ascending, Client::resume)
}

/// Prints the promises that a change would move.
fn preview(args: &JobsArgs, change: &JobChange) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(&args.jobs), Scope::Unfinished, args.json)?;
    modify::preview(&client, &numbers, change, args.json)
}

/// The order of requests for several jobs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// As given, or from the lowest number of a range.
    Ascending,
    /// The reverse.
    Descending,
}

/// Sends the request for each job. A refusal does not stop the others, but the command fails.
fn requests(
    args: &JobsArgs,
    done: &str,
    order: Order,
    request: impl Fn(&Client, i64) -> Result<JobIds, ClientError>,
) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let mut numbers = job_lists::numbers(&client, &JobList::all(&args.jobs), Scope::Unfinished, args.json)?;
    if order == Order::Descending {
        numbers.reverse();
    }
    send(&client, &numbers, args.json, done, request)
}

/// Sends the request for each job in this order, and prints the jobs of all answers.
fn send(
    client: &Client,
    numbers: &[i64],
    json: bool,
    done: &str,
    request: impl Fn(&Client, i64) -> Result<JobIds, ClientError>,
) -> anyhow::Result<ExitCode> {
    let mut handed = Vec::new();
    let code = each(numbers, json, |job| {
        handed.extend(request(client, job)?.jobs);
        Ok(())
    })?;
    handed.sort_unstable();
    if json || !handed.is_empty() {
        let word = if handed.len() == 1 { "job" } else { "jobs" };
        let shown = format!("{word} {}: {done}\n", jobs(&handed));
        print_answer(json, &JobIds { jobs: handed }, || shown)?;
    }
    Ok(code)
}

/// Calls `request` for each of some jobs. The failure of a single one is that of the command; else as [`each`].
pub(super) fn one_or_each(
    jobs: &[i64],
    json: bool,
    mut request: impl FnMut(i64) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let [job] = jobs else { return each(jobs, json, request) };
    request(*job)?;
    Ok(ExitCode::SUCCESS)
}

/// Calls `request` for each of some jobs. A refusal does not stop the others, but the command fails.
fn each(
    jobs: &[i64],
    json: bool,
    mut request: impl FnMut(i64) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for &job in jobs {
        match request(job) {
            Ok(()) => {}
            Err(error) if matches!(error.downcast_ref(), Some(ClientError::Refused(_))) => {
                print_failure(json, Some(job), &error);
                code = ExitCode::from(1);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(code)
}
