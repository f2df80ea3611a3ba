//! `miserly cancel`, `hold`, `release` and `requeue`: one request for each of the jobs.

use std::process::ExitCode;

use miserly_api::client::{Client, ClientError};
use miserly_api::model::JobIds;

use super::text::jobs;
use super::{client, print_answer};
use crate::args::{CancelArgs, JobsArgs, TakeBackArgs};
use crate::failure::print_failure;

pub(crate) fn cancel(args: &CancelArgs) -> anyhow::Result<ExitCode> {
    each(&args.jobs, "cancelled", |client, job| client.cancel(job, args.array))
}

pub(crate) fn hold(args: &TakeBackArgs) -> anyhow::Result<ExitCode> {
    each(&args.jobs, "held", |client, job| client.hold(job, args.move_promises))
}

pub(crate) fn release(args: &JobsArgs) -> anyhow::Result<ExitCode> {
    each(args, "released", Client::release)
}

pub(crate) fn requeue(args: &TakeBackArgs) -> anyhow::Result<ExitCode> {
    each(&args.jobs, "requeued", |client, job| client.requeue(job, args.move_promises))
}

/// Sends the request for each job. A refusal does not stop the others, but the command fails.
fn each(
    args: &JobsArgs,
    done: &str,
    request: impl Fn(&Client, i64) -> Result<JobIds, ClientError>,
) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let (mut handed, mut code) = (Vec::new(), ExitCode::SUCCESS);
    for &job in &args.jobs {
        match request(&client, job) {
            Ok(those) => handed.extend(those.jobs),
            Err(error @ ClientError::Refused(_)) => {
                print_failure(args.json, Some(job), &error.into());
                code = ExitCode::from(1);
            }
            Err(error) => return Err(error.into()),
        }
    }
    if args.json || !handed.is_empty() {
        let word = if handed.len() == 1 { "job" } else { "jobs" };
        let shown = format!("{word} {}: {done}\n", jobs(&handed));
        print_answer(args.json, &JobIds { jobs: handed }, || shown)?;
    }
    Ok(code)
}
