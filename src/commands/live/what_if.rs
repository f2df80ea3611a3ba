//! `miserly what-if` without a log: how the starts of waiting jobs would change.

use anyhow::{bail, ensure};
use miserly_api::client::Client;
use miserly_api::model::{Filter, Submission, WhatIf, WhatIfAnswer, WhatIfDifference, WhatIfJob};
use miserly_api::submit::SubmitOptions;
use miserly_core::Procs;
use miserly_units::{duration_rounded, span_of_seconds};

use super::quote::quoted_text;
use super::submission::hypothetical;
use super::text::{counted, local, table};
use super::{client, print_answer};
use crate::args::{DaemonArgs, WhatIfArgs};

/// The most jobs in the table: those with the largest changes of their starts.
const SHOWN: usize = 20;

/// Asks the daemon of the arguments, and prints the answer.
pub(crate) fn run(args: &WhatIfArgs) -> anyhow::Result<()> {
    let client = client(&DaemonArgs { socket: args.socket.clone() })?;
    let answer = client.what_if(&question(args, &client)?)?;
    print_answer(args.json, &answer, || shown(&answer))
}

fn question(args: &WhatIfArgs, client: &Client) -> anyhow::Result<WhatIf> {
    let queue = match args.run.queue.as_slice() {
        [] => None,
        [queue] => Some(queue.clone()),
        _ => bail!("--queue: the question is about one queue"),
    };
    let change = &args.change;
    let job = match (change.cpus, change.time) {
        (Some(cpus), Some(time)) => Some(hypothetical(SubmitOptions {
            cpus: Some(cpus.get().into()),
            time: Some(time.secs().unsigned_abs()),
            submission: Submission { queue: queue.clone(), memory: change.memory, ..Submission::default() },
            ..SubmitOptions::default()
        })?),
        _ => None,
    };
    let policy = match args.policy.as_slice() {
        [] => None,
        [policy] => Some(policy.to_string()),
        _ => {
            bail!("--policy: without a log, give the one policy that would run in place of that of the queue")
        }
    };
    let without_uid = match change.without_user.as_slice() {
        [] => None,
        [user] => Some(uid(user, client)?),
        _ => bail!("--without-user: without a log, give one user"),
    };
    let cpus = change.new_procs.map(Procs::get);
    let given = [job.is_some(), policy.is_some(), cpus.is_some(), without_uid.is_some()];
    ensure!(
        given.into_iter().filter(|given| *given).count() == 1,
        "give one change: a job (--cpus and --time), a --policy, --new-procs, or --without-user; for other questions, \
         give a log"
    );
    Ok(WhatIf { queue, job, policy, cpus, without_uid })
}

/// Returns the number of a user: a number, or the name of a user with unfinished jobs.
fn uid(user: &str, client: &Client) -> anyhow::Result<u32> {
    if let Ok(uid) = user.parse() {
        return Ok(uid);
    }
    let jobs = client.all_jobs(&Filter::default())?;
    match jobs.iter().find(|job| job.user == user) {
        Some(job) => Ok(job.uid),
        None => bail!("--without-user {user}: this user has no unfinished job; `miserly queue` lists them"),
    }
}

fn shown(answer: &WhatIfAnswer) -> String {
    let mut text = format!("queue {}, {} simulated futures\n", answer.queue, answer.futures);
    if let Some(quote) = &answer.quote {
        text += &quoted_text(quote);
    }
    let count = |changes: fn(f64) -> bool| {
        answer.jobs.iter().filter(|job| changes(job.difference.median)).count() as u64
    };
    let (later, earlier) = (count(|seconds| seconds > 0.0), count(|seconds| seconds < 0.0));
    text += &format!(
        "{} compared: {later} likely to start later, {earlier} earlier\n",
        counted(answer.jobs.len() as u64, "waiting job")
    );
    if let Some(mean) = &answer.mean {
        text += &format!("mean start: {}\n", difference(mean));
    }
    if answer.not_compared > 0 {
        text += &format!("not compared: {}\n", counted(answer.not_compared, "job"));
    }
    let mut jobs: Vec<&WhatIfJob> = answer
        .jobs
        .iter()
        .filter(|job| job.difference.least != 0.0 || job.difference.largest != 0.0)
        .collect();
    if jobs.is_empty() {
        return text;
    }
    jobs.sort_by(|a, b| b.difference.median.abs().total_cmp(&a.difference.median.abs()));
    let rows = jobs.into_iter().take(SHOWN).map(|job| {
        vec![job.number.to_string(), local(job.before), local(job.after), difference(&job.difference)]
    });
    text + "\n" + &table(&["JOB", "LIKELY WITHOUT", "LIKELY WITH", "LATER BY"], &[], rows)
}

/// Returns a difference in words, with the range of the middle 90 % of the futures.
fn difference(difference: &WhatIfDifference) -> String {
    let WhatIfDifference { median, least, largest } = *difference;
    format!("{} ({} to {})", signed(median), signed(least), signed(largest))
}

fn signed(seconds: f64) -> String {
    let text = duration_rounded(span_of_seconds(seconds.abs()));
    if seconds < 0.0 { format!("-{text}") } else { text }
}
