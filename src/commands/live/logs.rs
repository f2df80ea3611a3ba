//! `miserly logs`: the output of a job, also while it runs.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::bail;
use miserly_api::client::Client;
use miserly_api::model::Phase;

use super::client as client_of;
use super::job_lists::{self, Scope};
use super::output_file::OutputFile;
use crate::args::{JobList, LogsArgs};
use crate::colour::message_head;
use crate::failure::print_failure;
use crate::output::print;

pub(crate) fn run(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let client = client_of(&args.daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(&args.jobs), Scope::All, false)?;
    if let [job] = numbers[..] {
        return logs(&client, args, job);
    }
    if args.follow {
        bail!("--follow: give one job, not {}", numbers.len());
    }
    let mut code = ExitCode::SUCCESS;
    for (nth, job) in numbers.into_iter().enumerate() {
        let gap = if nth > 0 { "\n" } else { "" };
        print(&format!("{gap}==> job {job} <==\n"))?;
        match logs(&client, args, job) {
            Ok(one) if one == ExitCode::SUCCESS => {}
            Ok(_) => code = ExitCode::from(1),
            Err(error) => {
                print_failure(false, Some(job), &error);
                code = ExitCode::from(1);
            }
        }
    }
    Ok(code)
}

/// Prints the output of one job.
fn logs(client: &Client, args: &LogsArgs, number: i64) -> anyhow::Result<ExitCode> {
    let job = client.job(number)?;
    let Some(mut output) = OutputFile::for_job(&job, args.error, &args.daemon) else {
        bail!("job {number} is another user's; only that user, root and the daemon's user read its output")
    };
    if !args.raw && io::stdout().is_terminal() {
        output = output.with_visible_controls();
    }
    if args.follow {
        output.follow(false)?;
    } else if !output.pass_on()? {
        let state = if matches!(job.phase, Phase::Held | Phase::Queued) {
            "it has not started"
        } else {
            "the file is gone"
        };
        let (error, path) = (message_head("error"), output.path.display());
        note!("{error} job {number}: there is no {path}: {state}");
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}
