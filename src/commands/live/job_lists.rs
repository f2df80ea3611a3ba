//! The jobs of a command: single numbers and ranges of them.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Filter, Problem, ProblemCode};
use miserly_api::submit::JobRange;

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
    jobs: &[JobRange],
    scope: Scope,
    json: bool,
) -> Result<Vec<i64>, ClientError> {
    let mut seen = BTreeSet::new();
    let mut numbers = vec![];
    for range in jobs {
        let found = match *range {
            JobRange::One(job) => vec![job],
            JobRange::Range(first, last) => in_range(client, first, last, scope, json)?,
        };
        numbers.extend(found.into_iter().filter(|job| seen.insert(*job)));
    }
    Ok(numbers)
}

fn in_range(
    client: &Client,
    first: i64,
    last: i64,
    scope: Scope,
    json: bool,
) -> Result<Vec<i64>, ClientError> {
    let mut found: Vec<i64> = vec![];
    let filter = Filter { all: scope == Scope::All, after: Some(first - 1), ..Filter::default() };
    client.each_page(&filter, |page| {
        found.extend(page.iter().map(|job| job.number).filter(|job| *job <= last));
        if page.last().is_some_and(|end| end.number < last) {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    let (article, what) = match scope {
        Scope::All => ("a", "job"),
        Scope::Unfinished => ("an", "unfinished job"),
    };
    if found.is_empty() {
        let message = format!("there is no {what} from {first} to {last}");
        return Err(Problem::new(ProblemCode::NotFound, message).into());
    }
    let skipped = (last - first + 1).unsigned_abs() - found.len() as u64;
    if skipped > 0 && !json {
        let skipped = counted(skipped, "number");
        note!("{} {first}-{last}: skipped {skipped} without {article} {what}", message_head("note"));
    }
    Ok(found)
}
