//! `miserly extend`: longer windows, if no promise breaks.

use std::process::ExitCode;

use miserly_api::model::JobChange;

use super::job_lists::{self, Scope};
use super::job_requests::one_or_each;
use super::modify::preview;
use super::show::summary;
use super::text::Instants;
use super::{client, print_answer};
use crate::args::{ExtendArgs, JobList};

pub(crate) fn run(args: &ExtendArgs) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(&args.jobs), Scope::Unfinished, args.json)?;
    if args.dry_run {
        return preview(&client, &numbers, &JobChange::Extend(args.by as f64), args.json);
    }
    one_or_each(&numbers, args.json, |job| {
        // At most 10^10, which a double holds exactly.
        let job = client.extend(job, args.by as f64)?;
        print_answer(args.json, &job, || {
            format!("job {}: {}\n", job.number, summary(&job, Instants::short()))
        })
    })
}
