//! `miserly modify`: changes of waiting jobs, with their new promises first.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::process::ExitCode;

use miserly_api::client::Client;
use miserly_api::model::{JobChange, JobView, Modification, Moves};
use miserly_view::word;

use super::job_lists::{self, Scope};
use super::job_requests::one_or_each;
use super::moves::moves_text;
use super::submission::{environment, is_past};
use super::text::{Instants, plain};
use super::{client, local, print_answer};
use crate::args::{JobList, JobsArgs, ModifyArgs};
use crate::colour::message_head;
use crate::output::print;

pub(crate) fn run(args: &ModifyArgs) -> anyhow::Result<ExitCode> {
    let JobsArgs { jobs, json, daemon } = &args.jobs;
    let client = client(daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(jobs), Scope::Unfinished, *json)?;
    let before = args.before.as_ref().map(|job| job_lists::number(&client, job)).transpose()?;
    let changes = args.changes(before, environment);
    if let Some(begin) = changes.begin.filter(|begin| !json && is_past(*begin)) {
        note!(
            "{} --begin {} is in the past; the job may start at once",
            message_head("warning"),
            local(begin)
        );
    }
    if args.dry_run {
        return preview(&client, &numbers, &JobChange::Modify(Box::new(changes)), *json);
    }
    let asks = !args.yes && !json && stdin().is_terminal() && stderr().is_terminal();
    one_or_each(&numbers, *json, |job| {
        if asks && !confirmed(&client, job, &changes)? {
            return Ok(());
        }
        let moves = client.modify(job, &changes, args.move_promises)?;
        print_moves(&moves, *json)
    })
}

/// Prints the promises that a change of some jobs would move, each on its own.
pub(super) fn preview(
    client: &Client,
    jobs: &[i64],
    change: &JobChange,
    json: bool,
) -> anyhow::Result<ExitCode> {
    one_or_each(jobs, json, |job| {
        let moves = client.preview(job, change)?;
        if !json && *change == JobChange::Cancel {
            print(&ended_text(&client.job(job)?))?;
        }
        print_moves(&moves, json)
    })
}

/// Returns the line on what a cancellation ends.
fn ended_text(job: &JobView) -> String {
    let name = plain(&job.name);
    match job.phase.started() {
        Some(start) => format!("would end job {}, {name}, which runs since {}\n", job.number, local(start)),
        None => format!("would end job {}, {name}, before its start: {}\n", job.number, word(job)),
    }
}

fn print_moves(moves: &Moves, json: bool) -> anyhow::Result<()> {
    print_answer(json, moves, || moves_text(moves, Instants::short()))
}

/// Shows the promises that a change would move, and asks whether to change the job.
fn confirmed(client: &Client, job: i64, changes: &Modification) -> anyhow::Result<bool> {
    let moves = client.preview(job, &JobChange::Modify(Box::new(changes.clone())))?;
    let mut err = stderr().lock();
    write!(err, "{}change it? [y/N] ", moves_text(&moves, Instants::short()))?;
    err.flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    let yes = matches!(answer.trim(), "y" | "Y" | "yes");
    if !yes {
        writeln!(err, "job {job} is as before")?;
    }
    Ok(yes)
}
