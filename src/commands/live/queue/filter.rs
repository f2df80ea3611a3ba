//! The jobs of the list, and those that a command selects.

use std::ops::ControlFlow;

use jiff::Timestamp;
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Filter, JobView, JudgedPromise, Judgement, Selection, matches_pattern};

use crate::args::{CancelArgs, QueueArgs, StateFilter};

/// The conditions of the list: the daemon checks the filter, and this program the rest.
pub(in super::super) struct Wanted<'a> {
    filter: Filter,
    /// The name of the user, if it is no number.
    user: Option<&'a str>,
    states: &'a [StateFilter],
    name: Option<&'a str>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    missed: bool,
}

impl Wanted<'_> {
    pub(super) fn from_args(args: &QueueArgs) -> Wanted<'_> {
        let (uid, user) = user(args.user.as_deref(), args.mine);
        let filter = Filter {
            all: args.all
                || args.missed
                || args.since.is_some()
                || args.state.iter().any(|state| state.is_of_ended()),
            uid,
            queue: args.queue.clone(),
            array: args.array,
            limit: args.limit,
            after: args.after,
            details: args.json && args.details,
        };
        let QueueArgs { state, name, since, until, missed, .. } = args;
        let name = name.as_deref();
        Wanted { filter, user, states: state, name, since: *since, until: *until, missed: *missed }
    }

    /// Returns the unfinished jobs that `cancel` selects: those of the caller, if the arguments name no user.
    pub(in super::super) fn cancelled(args: &CancelArgs) -> Wanted<'_> {
        let (uid, user) = user(args.user.as_deref(), args.user.is_none());
        let filter = Filter { uid, queue: args.queue.clone(), ..Filter::default() };
        let name = args.name.as_deref();
        Wanted { filter, user, states: &args.state, name, since: None, until: None, missed: false }
    }

    /// Returns the same conditions as a selection, which the daemon checks.
    pub(in super::super) fn selection(&self) -> Selection {
        Selection {
            uid: self.filter.uid,
            user: self.user.map(str::to_owned),
            queue: self.filter.queue.clone(),
            states: self.states.iter().map(|state| state.name()).collect(),
            name: self.name.map(str::to_owned),
            ..Selection::default()
        }
    }

    fn is_checked_here(&self) -> bool {
        !self.states.is_empty()
            || self.name.is_some()
            || self.since.is_some()
            || self.until.is_some()
            || self.user.is_some()
            || self.missed
    }

    fn admits(&self, job: &JobView) -> bool {
        (self.states.is_empty() || self.states.iter().any(|state| state.name().admits(&job.phase)))
            && self.name.is_none_or(|name| matches_pattern(name, &job.name))
            && self.since.is_none_or(|since| job.phase.ended().is_none_or(|ended| ended >= since))
            && self.until.is_none_or(|until| job.submitted <= until)
            && self.user.is_none_or(|user| job.user == user)
            && (!self.missed || is_missed(job))
    }
}

/// Returns whether a promise to a job is at risk, or was late or lost.
fn is_missed(job: &JobView) -> bool {
    let is_unkept = |judged: &JudgedPromise| matches!(judged.judgement, Judgement::Late | Judgement::Lost);
    job.judged.iter().any(is_unkept) || job.promise.as_ref().is_some_and(|promise| promise.at_risk.is_some())
}

/// Returns the number of a user, or else the name.
fn user(given: Option<&str>, mine: bool) -> (Option<u32>, Option<&str>) {
    let number = given.and_then(|user| user.parse().ok());
    let uid = if mine { Some(rustix::process::geteuid().as_raw()) } else { number };
    (uid, given.filter(|_| number.is_none()))
}

/// Returns the jobs that are wanted, by number.
pub(in super::super) fn jobs(client: &Client, wanted: &Wanted<'_>) -> Result<Vec<JobView>, ClientError> {
    if !wanted.is_checked_here() {
        return client.all_jobs(&wanted.filter);
    }
    if !wanted.filter.all && wanted.filter.limit.is_none() {
        let mut all = client.all_jobs(&wanted.filter)?;
        all.retain(|job| wanted.admits(job));
        return Ok(all);
    }
    // Pages, from the lowest number: what is not wanted is forgotten page by page.
    let mut found = vec![];
    client.each_page(&wanted.filter, |page| {
        found.extend(page.into_iter().filter(|job| wanted.admits(job)));
        ControlFlow::Continue(())
    })?;
    if let Some(limit) = wanted.filter.limit.map(|limit| limit as usize).filter(|limit| *limit < found.len())
    {
        cut(&mut found, limit, wanted.filter.after.is_some());
    }
    Ok(found)
}

/// Keeps the first jobs of a page; else the unfinished ones and the latest of the others.
fn cut(jobs: &mut Vec<JobView>, limit: usize, page: bool) {
    if page {
        return jobs.truncate(limit);
    }
    let unfinished = jobs.iter().filter(|job| job.phase.ended().is_none()).count();
    let mut left_out = (jobs.len() - unfinished).min(jobs.len() - limit);
    jobs.retain(|job| {
        let goes = left_out > 0 && job.phase.ended().is_some();
        left_out -= usize::from(goes);
        !goes
    });
    jobs.truncate(limit);
}
