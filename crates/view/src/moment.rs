//! The state at an instant, ready to be shown.

use std::sync::Arc;

use serde::Serialize;

use crate::holes::{Hole, holes};
use crate::hosts::{HostNow, Placed};
use crate::list_row::ArrayCounts;
use crate::use_of_pool::use_of_pool;
use crate::words::Sentences;
use crate::{Account, Facts, Job, Lists, PoolFacts, State};
use miserly_scene::DAY;

/// The quarters of an hour of a day.
const QUARTERS: usize = 96;

/// The most ended jobs of other users that are listed.
const ENDED_MOST: usize = 50;

/// The most waiting jobs of other users that are listed, and the most running ones.
const LISTED_MOST: usize = 2000;

/// The most hosts of a pool that are listed one by one.
const HOSTS_MOST: usize = 1024;

/// What is not known at an earlier instant.
const EARLIER: &str = "no forecast at an earlier instant; the reasons follow from the jobs that ran then, \
                       and the promises are the last ones of the jobs";

/// The machine at an instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Moment {
    /// The instant.
    pub now: i64,
    /// The instant as text.
    pub text: String,
    /// The name of the machine or the run.
    pub title: String,
    /// Whether it changes as time goes by.
    pub live: bool,
    /// What is not known at this instant, if it is before the last known one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The pools.
    pub pools: Vec<PoolNow>,
    /// The waiting jobs, in the order of their starts.
    pub waiting: Vec<Line>,
    /// The running and suspended jobs, by their ends.
    pub running: Vec<Line>,
    /// The jobs that ended last, the latest first.
    pub ended: Vec<Line>,
    /// The number of all waiting jobs.
    pub waiting_count: usize,
    /// The number of all running and suspended jobs.
    pub running_count: usize,
    /// Promises and forecasts so far.
    pub account: Account,
    /// The median time by which jobs started before their first promises, milliseconds, of the jobs that are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slack: Option<i64>,
}

/// A pool at an instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PoolNow {
    /// The facts about it.
    #[serde(flatten)]
    pub facts: PoolFacts,
    /// The free processors that are reserved for a job within an hour.
    pub reserved: u64,
    /// The processors that are free for an hour at least.
    pub free: u64,
    /// The jobs in their windows.
    pub running: usize,
    /// The jobs before their windows.
    pub waiting: usize,
    /// The use of the last day: percent of the processors that jobs had in their windows, for each quarter of an hour since the first known job.
    pub day: Vec<u8>,
    /// The jobs that would start now.
    pub holes: Vec<Hole>,
    /// The map of its processors: its hosts in order, or groups of them if they are more than 1024. Without hosts: the pool, or groups of its
    /// processors.
    pub hosts: Vec<HostNow>,
    /// The number of all its hosts.
    pub host_count: usize,
}

/// A job, ready to be shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Line {
    /// The job.
    #[serde(flatten)]
    pub job: Job,
    /// Whether it is a job of the user for whom this is shown.
    pub own: bool,
    /// The name of its pool, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool_name: Option<String>,
    /// The start as text: the actual one, or the promised one.
    pub start_text: String,
    /// The likely start and the bound of 95 % as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub likely_text: Option<[String; 2]>,
    /// The end as text.
    pub end_text: String,
    /// The sentence on it.
    pub sentence: String,
    /// The jobs of the array, if this is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayCounts>,
}

impl Moment {
    /// Returns the state of a machine at the instant of these facts. O(n log n) for n jobs.
    pub fn new(facts: &Facts) -> Moment {
        let [waiting, running, ended] = Lists::new(facts).jobs(facts);
        let sentences = Sentences::new(facts);
        let lines = |jobs: &[&Job], others: usize, all: usize| -> Vec<Line> {
            let listed =
                (0..).zip(jobs).filter(|(place, job)| *place < others || facts.is_own(job)).take(all);
            listed.map(|(_, job)| line(facts, &sentences, job)).collect()
        };
        Moment {
            waiting: lines(&waiting, LISTED_MOST, 2 * LISTED_MOST),
            running: lines(&running, LISTED_MOST, 2 * LISTED_MOST),
            ended: lines(&ended, ENDED_MOST, 2 * ENDED_MOST),
            ..Moment::without_jobs(facts)
        }
    }

    /// Returns the state without its jobs, which [`Lists`] has.
    pub fn without_jobs(facts: &Facts) -> Moment {
        let placed = Placed::new(facts);
        let count = |of: &dyn Fn(State) -> bool| facts.jobs.iter().filter(|job| of(job.state)).count();
        Moment {
            now: facts.now,
            text: facts.clock.exact(facts.now),
            title: facts.title.clone(),
            live: facts.live,
            note: facts.earlier.then(|| EARLIER.to_owned()),
            pools: (0..)
                .zip(&facts.pools)
                .map(|(place, pool)| pool_now(facts, &placed, place, pool))
                .collect(),
            waiting: vec![],
            running: vec![],
            ended: vec![],
            waiting_count: count(&State::is_before_start),
            running_count: count(&State::holds),
            account: facts.account.clone(),
            slack: slack(&facts.jobs),
        }
    }
}

/// Returns the median time from the start of a job to the latest start that was promised first.
fn slack(jobs: &[Arc<Job>]) -> Option<i64> {
    let slack = |job: &Arc<Job>| {
        let start = job.start.filter(|_| !job.state.is_before_start())?;
        Some(job.promised_first?.saturating_sub(start))
    };
    let mut all: Vec<i64> = jobs.iter().filter_map(slack).collect();
    let middle = all.len() / 2;
    (!all.is_empty()).then(|| *all.select_nth_unstable(middle).1)
}

fn pool_now(facts: &Facts, placed: &Placed<'_>, place: usize, pool: &PoolFacts) -> PoolNow {
    let count = |of: &dyn Fn(State) -> bool| {
        facts.jobs.iter().filter(|job| job.pool == place && of(job.state)).count()
    };
    let idle = pool.cpus.saturating_sub(pool.held);
    let reserved = placed.reserved(place).min(idle);
    PoolNow {
        facts: pool.clone(),
        reserved,
        free: idle - reserved,
        running: count(&State::holds),
        waiting: count(&State::is_before_start),
        day: day(facts, place, pool.cpus),
        holes: holes(&pool.slices),
        hosts: placed.hosts(place, HOSTS_MOST, reserved),
        host_count: pool.hosts.len().max(1),
    }
}

/// Returns the use of a pool in the last day, in percent. The time before the first known job is not a part of it.
fn day(facts: &Facts, place: usize, cpus: u64) -> Vec<u8> {
    let begin = facts.now.saturating_sub(DAY);
    let used = use_of_pool(facts, place, begin, facts.now, QUARTERS);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 100")]
    let percent = |cpus_used: f64| (100.0 * cpus_used / cpus.max(1) as f64).round().clamp(0.0, 100.0) as u8;
    let quarter = DAY / i64::try_from(QUARTERS).unwrap_or(96);
    let unknown = facts.range().0.saturating_sub(begin).max(0) / quarter;
    used.into_iter().skip(usize::try_from(unknown).unwrap_or(0).min(QUARTERS - 1)).map(percent).collect()
}

pub(crate) fn line(facts: &Facts, sentences: &Sentences<'_>, job: &Job) -> Line {
    let text = |at: i64| facts.clock.instant(at, facts.now);
    let latest = |at: i64| facts.clock.latest(at, facts.now);
    let by = |at: i64| format!("by {}", latest(at));
    let start = if job.state.is_before_start() { None } else { job.start };
    let start_text = match (start, job.promised, job.planned) {
        (Some(start), ..) => text(start),
        (None, Some(promised), _) if job.state.is_before_start() => by(promised),
        (None, None, Some(planned)) if job.state.is_before_start() => format!("plan {}", text(planned)),
        _ => "-".to_owned(),
    };
    let end_text = match (job.state, job.end) {
        (State::Ended, Some(end)) => text(end),
        (_, Some(end)) => by(end),
        (_, None) => job.window().map_or_else(|| "-".to_owned(), |start| by(start.saturating_add(job.limit))),
    };
    Line {
        own: facts.is_own(job),
        pool_name: facts.pools.get(job.pool).filter(|_| facts.pools.len() > 1).map(|pool| pool.name.clone()),
        start_text,
        likely_text: job.likely.map(|[median, _, last]| [text(median), latest(last)]),
        end_text,
        sentence: sentences.sentence(job),
        array: None,
        job: job.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_use_of_a_day_begins_with_the_first_job() {
        let job = Job { procs: 8, state: State::Running, start: Some(0), end: Some(DAY), ..Job::default() };
        let facts = |hours: i64| Facts { now: hours * DAY / 24, ..Facts::of_jobs(8, [job.clone()]) };
        assert_eq!(day(&facts(1), 0, 8), [100; 4], "an hour");
        assert_eq!(day(&facts(30), 0, 8).len(), QUARTERS);
        assert_eq!(day(&facts(0), 0, 8).len(), 1);
    }
}
