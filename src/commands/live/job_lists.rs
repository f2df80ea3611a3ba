//! The numbers of the jobs of a command.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Filter, JobRef, Problem, ProblemCode, listing};

use super::text::counted;
use crate::colour::message_head;

/// The jobs of a range that a command means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All jobs.
    All,
    /// Those that have not ended.
    Unfinished,
}

/// Returns the numbers of jobs in the order of the arguments, each once.
///
/// A single number is taken as it is. Of a range, the numbers without a job in the scope are left out, and a note has their
/// count.
///
/// # Errors
/// A range without any job in the scope.
pub(super) fn numbers(
    client: &Client,
    jobs: &[JobRef],
    scope: Scope,
    json: bool,
) -> Result<Vec<i64>, ClientError> {
    let mut seen = BTreeSet::new();
    let mut numbers = vec![];
    for range in jobs {
        let found = match range {
            JobRef::One(job) => vec![*job],
            range => in_range(client, range, scope, json)?,
        };
        numbers.extend(found.into_iter().filter(|job| seen.insert(*job)));
    }
    Ok(numbers)
}

/// Returns the number of one job.
///
/// # Errors
/// If an array has no job with the index.
pub(super) fn number(client: &Client, job: &JobRef) -> Result<i64, ClientError> {
    let found = numbers(client, std::slice::from_ref(job), Scope::All, true)?;
    found.first().copied().ok_or_else(|| none(job, Scope::All).into())
}

fn in_range(client: &Client, range: &JobRef, scope: Scope, json: bool) -> Result<Vec<i64>, ClientError> {
    let all = scope == Scope::All;
    let found = match range {
        // An array has no more jobs than a page.
        JobRef::Array(array, _) => {
            let filter = Filter { all, array: Some(*array), limit: Some(listing::MOST), ..Filter::default() };
            let jobs = client.jobs(&filter)?;
            let meant = jobs.iter().filter(|job| range.admits(job.number, job.array, job.index));
            meant.map(|job| job.number).collect()
        }
        _ => by_number(client, range, all)?,
    };
    if found.is_empty() {
        return Err(none(range, scope).into());
    }
    let skipped = range.count().saturating_sub(found.len() as u64);
    if skipped > 0 && !json {
        note_skipped(range, skipped, scope);
    }
    Ok(found)
}

fn by_number(client: &Client, range: &JobRef, all: bool) -> Result<Vec<i64>, ClientError> {
    let (first, last) = range.numbers().into_inner();
    let mut found: Vec<i64> = vec![];
    let filter = Filter { all, after: Some(first - 1), ..Filter::default() };
    client.each_page(&filter, |page| {
        found.extend(page.iter().map(|job| job.number).filter(|job| *job <= last));
        if page.last().is_some_and(|end| end.number < last) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    Ok(found)
}

/// Prints how many jobs of a range were skipped.
pub(super) fn note_skipped(range: &JobRef, skipped: u64, scope: Scope) {
    let of = if matches!(range, JobRef::Array(..)) { "index" } else { "number" };
    let article = if scope == Scope::All { "a" } else { "an" };
    let skipped =
        if of == "index" && skipped != 1 { format!("{skipped} indexes") } else { counted(skipped, of) };
    note!("{} {range}: skipped {skipped} without {article} {}", message_head("note"), what(scope));
}

fn none(range: &JobRef, scope: Scope) -> Problem {
    let what = what(scope);
    let message = match range {
        JobRef::Range(first, last) => format!("there is no {what} from {first} to {last}"),
        JobRef::One(_) | JobRef::Array(..) => format!("there is no {what} {range}"),
    };
    Problem::new(ProblemCode::NotFound, message)
}

const fn what(scope: Scope) -> &'static str {
    match scope {
        Scope::All => "job",
        Scope::Unfinished => "unfinished job",
    }
}
