//! `miserly cancel`, `hold`, `release` and `requeue`: one request for all jobs. `signal`, `pause`, `resume`: one for each.

use std::collections::BTreeSet;
use std::process::ExitCode;

use miserly_api::client::{Client, ClientError};
use miserly_api::model::{
    ChangeRequest, ChangedJobs, Filter, JobChange, JobIds, JobRef, JobView, Problem, ProblemCode,
    RefusedJobs, Selection, SignalRequest, SkippedJobs, job_ranges,
};

use super::job_lists::{self, Scope};
use super::modify;
use super::queue::{self, Wanted};
use super::text;
use super::{client, print_answer};
use crate::args::{CancelArgs, JobList, JobsArgs, ReleaseArgs, ResizeArgs, SignalArgs, TakeBackArgs};
use crate::failure::print_failure;

pub(crate) fn cancel(args: &CancelArgs) -> anyhow::Result<ExitCode> {
    let client = client(&args.ask.daemon)?;
    if args.dry_run {
        return preview_cancel(&client, args);
    }
    let jobs = JobList::all(&args.jobs);
    let select = if args.array {
        let arrays = job_lists::numbers(&client, &jobs, Scope::Unfinished, args.ask.json)?;
        Selection { arrays, ..Selection::default() }
    } else if jobs.is_empty() {
        Wanted::cancelled(args).selection()
    } else {
        Selection::from_jobs(jobs)
    };
    let request = ChangeRequest { change: JobChange::Cancel, select, move_promises: false };
    change(&client, &request, args.ask.json, "cancelled")
}

/// Prints the promises that the cancellation of each selected job would move.
fn preview_cancel(client: &Client, args: &CancelArgs) -> anyhow::Result<ExitCode> {
    let numbers = if args.jobs.is_empty() {
        let found = queue::jobs(client, &Wanted::cancelled(args))?;
        if found.is_empty() {
            let problem = Problem::new(ProblemCode::NotFound, "no unfinished job is selected");
            return Err(ClientError::from(problem).into());
        }
        found.iter().map(|job| job.number).collect()
    } else {
        job_lists::numbers(client, &JobList::all(&args.jobs), Scope::Unfinished, args.ask.json)?
    };
    let numbers = if args.array { with_arrays(client, &numbers)? } else { numbers };
    modify::preview(client, &numbers, &JobChange::Cancel, args.ask.json)
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
    take_back(args, JobChange::Hold, "held")
}

pub(crate) fn release(args: &ReleaseArgs) -> anyhow::Result<ExitCode> {
    if args.dry_run {
        return preview(&args.jobs, &JobChange::Release);
    }
    change_listed(&args.jobs, JobChange::Release, false, "released")
}

pub(crate) fn requeue(args: &TakeBackArgs) -> anyhow::Result<ExitCode> {
    take_back(args, JobChange::Requeue, "requeued")
}

fn take_back(args: &TakeBackArgs, change: JobChange, done: &str) -> anyhow::Result<ExitCode> {
    if args.dry_run {
        return preview(&args.jobs, &change);
    }
    change_listed(&args.jobs, change, args.move_promises, done)
}

/// Changes the listed jobs.
fn change_listed(
    args: &JobsArgs,
    change: JobChange,
    move_promises: bool,
    done: &str,
) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let select = Selection::from_jobs(JobList::all(&args.jobs));
    self::change(&client, &ChangeRequest { change, select, move_promises }, args.json, done)
}

/// Sends one request for all jobs, and prints its outcome. A refusal does not stop the others, but the command fails.
fn change(client: &Client, request: &ChangeRequest, json: bool, done: &str) -> anyhow::Result<ExitCode> {
    let ChangedJobs { jobs, refused, skipped } = client.change_jobs(request)?;
    if !json {
        for SkippedJobs { range, count } in &skipped {
            job_lists::note_skipped(range, *count, Scope::Unfinished);
        }
    }
    let code = if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) };
    for RefusedJobs { jobs, problem } in refused {
        print_refusal(json, &jobs, problem);
    }
    print_jobs(jobs, json, done)?;
    Ok(code)
}

/// Prints why some jobs did not change.
fn print_refusal(json: bool, jobs: &[JobRef], problem: Problem) {
    let refused = |problem: Problem| anyhow::Error::from(ClientError::from(problem));
    match jobs {
        [JobRef::One(job)] => print_failure(json, Some(*job), &refused(problem)),
        // The message of a range without any job names it.
        [JobRef::Range(..) | JobRef::Array(..)] if problem.code == ProblemCode::NotFound => {
            print_failure(json, None, &refused(problem));
        }
        jobs => {
            let message = format!("jobs {}: {}", text::jobs(jobs), problem.message);
            print_failure(json, None, &refused(Problem { message, ..problem }));
        }
    }
}

/// Prints the jobs that changed, if there are any.
fn print_jobs(jobs: Vec<i64>, json: bool, done: &str) -> anyhow::Result<()> {
    if !json && jobs.is_empty() {
        return Ok(());
    }
    let word = if jobs.len() == 1 { "job" } else { "jobs" };
    let shown = format!("{word} {}: {done}\n", text::jobs(&job_ranges(&jobs)));
    print_answer(json, &JobIds { jobs }, || shown)
}

pub(crate) fn signal(args: &SignalArgs) -> anyhow::Result<ExitCode> {
    let signal = SignalRequest { signal: args.signal, main: args.main };
    requests(&args.jobs, &format!("sent {}", args.signal.name()), |client, job| client.signal(job, &signal))
}

pub(crate) fn resize(args: &ResizeArgs) -> anyhow::Result<ExitCode> {
    let done = format!("up to {} processors:", args.cpus);
    requests(&args.jobs, &done, |client, job| client.resize(job, args.cpus))
}

pub(crate) fn pause(args: &JobsArgs) -> anyhow::Result<ExitCode> {
    requests(args, "paused", Client::pause)
}

pub(crate) fn resume(args: &JobsArgs) -> anyhow::Result<ExitCode> {
    requests(args, "resumed", Client::resume)
}

/// Prints the promises that a change would move.
fn preview(args: &JobsArgs, change: &JobChange) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(&args.jobs), Scope::Unfinished, args.json)?;
    modify::preview(&client, &numbers, change, args.json)
}

/// Sends the request for each job, and prints the jobs of all answers. A refusal does not stop the others, but the command fails.
fn requests(
    args: &JobsArgs,
    done: &str,
    request: impl Fn(&Client, i64) -> Result<JobIds, ClientError>,
) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(&args.jobs), Scope::Unfinished, args.json)?;
    let mut changed = Vec::new();
    let code = each(&numbers, args.json, |job| {
        changed.extend(request(&client, job)?.jobs);
        Ok(())
    })?;
    print_jobs(changed, args.json, done)?;
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
