//! `miserly modify`: changes of waiting jobs, with their new promises first.

use std::io::{IsTerminal, Write, stderr, stdin};
use std::process::ExitCode;

use miserly_api::client::Client;
use miserly_api::model::{JobChange, Modification, Moves};

use super::job_lists::{self, Scope};
use super::job_requests::one_or_each;
use super::moves::moves_text;
use super::text::Instants;
use super::{client, print_answer};
use crate::args::{JobList, JobsArgs, ModifyArgs};

pub(crate) fn run(args: &ModifyArgs) -> anyhow::Result<ExitCode> {
    let JobsArgs { jobs, json, daemon } = &args.jobs;
    let client = client(daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(jobs), Scope::Unfinished, *json)?;
    let changes = args.changes();
    if args.dry_run {
        return preview(&client, &numbers, &JobChange::Modify(changes), *json);
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
    one_or_each(jobs, json, |job| print_moves(&client.preview(job, change)?, json))
}

fn print_moves(moves: &Moves, json: bool) -> anyhow::Result<()> {
    print_answer(json, moves, || moves_text(moves, Instants::short()))
}

/// Shows the promises that a change would move, and asks whether to change the job.
fn confirmed(client: &Client, job: i64, changes: &Modification) -> anyhow::Result<bool> {
    let moves = client.preview(job, &JobChange::Modify(changes.clone()))?;
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
