//! `miserly submit`: a job or an array of jobs, and the promises to them.

use std::process::ExitCode;

use jiff::{SignedDuration, Timestamp};
use miserly_api::client::Client;
use miserly_api::model::{Accepted, NoPromise, Quote, Submission, Submitted, Window, job_ranges};

use super::quote::quoted_text;
use super::submission::submission;
use super::text::{counted, local};
use super::{client, places, print_answer, wait};
use crate::args::SubmitArgs;
use crate::colour::message_head;

pub(crate) fn run(args: &SubmitArgs) -> anyhow::Result<ExitCode> {
    let submission = submission(args)?;
    places::check(&submission)?;
    let client = client(&args.daemon)?;
    if args.quote {
        let quote = client.quote(&submission)?;
        print_answer(args.json, &quote, || quoted_text(&quote) + &late_text(&submission, &quote))?;
        return Ok(ExitCode::SUCCESS);
    }
    let submitted = client.submit(&submission)?;
    if !args.json {
        warn_of_mail(&client, &submission);
    }
    print_answer(args.json, &submitted, || {
        if args.quiet { numbers(&submitted) } else { accepted_text(&submitted.jobs) }
    })?;
    if args.wait { Ok(await_all(&client, &submitted.jobs, args.json)) } else { Ok(ExitCode::SUCCESS) }
}

/// Returns that the promised start of a quote is later than the latest start of the submission, if it is.
fn late_text(submission: &Submission, quote: &Quote) -> String {
    let wait = submission.start_within.and_then(|secs| SignedDuration::try_from_secs_f64(secs).ok());
    let now = Timestamp::now();
    let begin = submission.begin.map_or(now, |begin| begin.max(now));
    let Some(by) = wait.and_then(|wait| begin.checked_add(wait).ok()) else { return String::new() };
    let is_late = |window: &Option<Window>| window.is_none_or(|window| window.start > by);
    if !quote.windows.iter().any(is_late) {
        return String::new();
    }
    format!("would be given up unless it starts by {}, before its promise\n", local(by))
}

/// Warns of a job that asks for mail while no client of the daemon sends any.
pub(super) fn warn_of_mail(client: &Client, submission: &Submission) {
    // The job is accepted, so a failure here is none of the command.
    let sends_none = || client.status().is_ok_and(|status| status.mailer == Some(false));
    if submission.mail.is_some() && sends_none() {
        note!(
            "{} --mail: no mail is sent now, because `miserly hook --mail` does not run; an administrator starts it \
             (contrib/systemd/miserly-mail.service)",
            message_head("warning")
        );
    }
}

fn numbers(submitted: &Submitted) -> String {
    let numbers: Vec<i64> = submitted.jobs.iter().map(|job| job.number).collect();
    job_ranges(&numbers).iter().flat_map(|range| [range.to_string(), "\n".to_owned()]).collect()
}

fn await_all(client: &Client, jobs: &[Accepted], json: bool) -> ExitCode {
    let numbers: Vec<i64> = jobs.iter().map(|job| job.number).collect();
    wait::await_all(client, &numbers, json, |_| Ok(()))
}

/// Returns the text for accepted jobs. Of a long array, it names only the first and the last.
pub(super) fn accepted_text(jobs: &[Accepted]) -> String {
    match jobs {
        [one] => format!("job {}: {}\n", one.number, prospect_text(one)),
        [first, .., last] => format!(
            "{}, {}-{}\n  job {}: {}\n  job {}: {}\n",
            counted(jobs.len() as u64, "job"),
            first.number,
            last.number,
            first.number,
            prospect_text(first),
            last.number,
            prospect_text(last)
        ),
        [] => "no job\n".to_owned(),
    }
}

fn prospect_text(job: &Accepted) -> String {
    let text = start_text(job);
    match job.start_by {
        // A promise is a latest start: the job may start earlier.
        Some(by) if job.promise.is_none_or(|window| window.start > by) => {
            format!("{text}; given up unless it starts by {}", local(by))
        }
        _ => text,
    }
}

fn start_text(job: &Accepted) -> String {
    match (&job.promise, job.started) {
        (Some(window), true) => format!("started, resources reserved until {}", local(window.end)),
        (None, true) => "has started".to_owned(),
        (Some(window), false) => promised_text(window),
        (None, false) => no_promise_text(job.no_promise).to_owned(),
    }
}

/// Returns that a job has no promise, and why.
pub(super) const fn no_promise_text(why: Option<NoPromise>) -> &'static str {
    match why {
        Some(NoPromise::Held) => "no start is promised: the job is held",
        Some(NoPromise::After) => "no start is promised: it waits for a job whose end is not known",
        Some(NoPromise::Begin) => "no start is promised before its earliest start",
        Some(NoPromise::Place) => {
            "no start is promised: it waits for a place under the limit of its array or of its user"
        }
        Some(NoPromise::Policy) => "no start is promised to it by the policy of its queue",
        None => "no start is promised",
    }
}

pub(super) fn promised_text(window: &Window) -> String {
    format!("starts by {}, resources reserved until {} at the latest", local(window.start), local(window.end))
}
