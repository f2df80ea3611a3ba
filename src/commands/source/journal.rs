//! The facts of a daemon's stored history.

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::model::StartReason;
use miserly_live::history::{FinishedJob, JobOutcome, finished_jobs, procs};
use miserly_view::{Account, Clock, Facts, Job, PoolFacts, State, plain, word_of_exit, word_of_kill};

use crate::commands::users::Users;

/// Returns the finished jobs in the state of a daemon, which need not run.
pub(super) fn stored(folder: &Path) -> anyhow::Result<Facts> {
    let finished = finished_jobs(folder)?;
    ensure!(!finished.is_empty(), "{}: no job has finished in this state", folder.display());
    let cpus = procs(folder)?.unwrap_or(1);
    let mut queues: Vec<&str> = finished.iter().map(|job| &*job.queue).collect();
    queues.sort_unstable();
    queues.dedup();
    let pool = |queue: &&str| PoolFacts {
        name: plain(queue),
        policy: "of the state".to_owned(),
        promises: "unknown".to_owned(),
        cpus,
        shared: queues.len() > 1,
        ..PoolFacts::default()
    };
    let mut users = Users::default();
    let named = |finished: &FinishedJob| job(finished, &queues, users.name(finished.uid)).map(Arc::new);
    let jobs: Vec<Arc<Job>> = finished.iter().filter_map(named).collect();
    Ok(Facts {
        now: jobs.iter().filter_map(|job| job.end).max().unwrap_or(0),
        clock: Clock::Wall(TimeZone::system()),
        title: folder.display().to_string(),
        live: false,
        earlier: false,
        uid: Some(rustix::process::geteuid().as_raw()),
        pools: queues.iter().map(pool).collect(),
        jobs,
        account: Account::default(),
    })
}

fn job(job: &FinishedJob, queues: &[&str], user: String) -> Option<Job> {
    let pool = queues.binary_search(&&*job.queue).ok()?;
    Some(Job {
        number: job.number,
        label: job
            .array
            .map_or_else(|| job.number.to_string(), |array| format!("{}[{}]", array.first, array.index)),
        array: job.array.map(|array| (array.first, array.index)),
        name: plain(&job.name),
        user,
        uid: Some(job.uid),
        pool,
        procs: job.cpus,
        memory: job.memory.saturating_mul(1024),
        limit: job.time.ticks() / 1000,
        state: State::Ended,
        word: word(job.outcome).to_owned(),
        submitted: job.submitted.as_millisecond(),
        begin: job.begin.map(Timestamp::as_millisecond),
        start: job.started.map(Timestamp::as_millisecond),
        end: Some(job.ended.as_millisecond()),
        cpus: job.cpu_ranges.clone(),
        reason: job.start_reason.map_or("", StartReason::name).to_owned(),
        ..Job::default()
    })
}

/// Returns the word for the outcome of a job.
fn word(outcome: JobOutcome) -> &'static str {
    match outcome {
        JobOutcome::Done(exit) => word_of_exit(exit),
        JobOutcome::Killed(by) => word_of_kill(by),
        JobOutcome::Failed => "not run",
        JobOutcome::Lost => "lost",
    }
}
