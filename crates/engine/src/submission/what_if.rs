//! What-if questions: copies of a queue without and with a change.

use miserly_api::model::{Problem, ProblemCode, Quote, Submission, WhatIf};
use miserly_core::{Entry, JobId, Procs, Resources, State};
use miserly_policies::PolicySpec;

use crate::request::problems::refused_field;
use crate::submission::quote::checked_driver;
use crate::{Caller, EndedJobs, Now, Queue, QueueCopy, QueueState, Snapshot, amounts, resources};

/// The most jobs of a queue for which another policy is tried.
const JOBS_MOST: usize = 2000;

/// The most bytes of a policy in a question.
const POLICY_MOST: usize = 1024;

/// Copies of a queue without and with a change, at one instant.
pub struct WhatIfCopies {
    /// The queue.
    pub queue: String,
    /// Without the change.
    pub before: QueueCopy,
    /// With the change.
    pub after: QueueCopy,
    /// The promise to the further job, if that is the change, and its number on the copy.
    pub quote: Option<(Quote, i64)>,
}

impl Snapshot {
    /// Returns copies of a queue without and with a change.
    ///
    /// O(n log n) for the n jobs of the queue.
    ///
    /// # Errors
    /// If there is not exactly one change, or the queue cannot have it.
    pub fn what_if(
        &self,
        now: Now,
        caller: &Caller,
        question: &WhatIf,
        launchable: &dyn Fn(&Submission, &str) -> Result<(), Problem>,
        ended: &dyn EndedJobs,
    ) -> Result<WhatIfCopies, Problem> {
        let WhatIf { queue, job, policy, cpus, without_uid } = question;
        let given = [job.is_some(), policy.is_some(), cpus.is_some(), without_uid.is_some()];
        if given.into_iter().filter(|given| *given).count() != 1 {
            let message = "give exactly one change: job, policy, cpus or without_uid";
            return Err(Problem::new(ProblemCode::Malformed, message));
        }
        let wanted = job.as_ref().and_then(|job| job.queue.as_deref()).or(queue.as_deref());
        let queue = self.queue_for(caller, wanted)?;
        self.stopped.check(&queue.name)?;
        let at = self.instant(now);
        let state = self.queue_state(&queue.name).map(|kept| kept.state.clone()).unwrap_or_default();
        let copy = |queue: &Queue, jobs, state: &QueueState| {
            let driver = checked_driver(queue, jobs, state)?;
            Ok::<_, Problem>(QueueCopy::new(queue.policy.clone(), at, &driver))
        };
        let before = copy(queue, self.entries_of(&queue.name), &state)?;
        let (after, quote) = if let Some(job) = job {
            let job = Submission { queue: Some(queue.name.clone()), ..job.clone() };
            let (quote, copy) = self.quote(now, caller, &job, launchable, ended)?;
            let message = "the job would not enter its queue now: it is held, or waits for an instant or for other jobs";
            let (copy, number) = copy.ok_or_else(|| Problem::new(ProblemCode::Refused, message))?;
            (copy, Some((quote, number)))
        } else if let Some(policy) = policy {
            let changed = Queue { policy: checked_policy(queue, policy)?, ..queue.clone() };
            let jobs = self.entries_of(&queue.name);
            check_number("policy", jobs.len())?;
            let begins = |(_, entry): &(JobId, Entry)| {
                entry.state == State::Waiting
                    && entry.request.constraints.begin.is_some_and(|begin| begin > at)
            };
            if !changed.knows_begin() && jobs.iter().any(begins) {
                let message =
                    format!("{} knows no earliest start, and a waiting job has one", changed.policy);
                return Err(refused_field("policy", message));
            }
            let jobs = jobs.into_iter().map(without_promise).collect();
            let state = QueueState { capacity: state.capacity, ..QueueState::default() };
            (copy(&changed, jobs, &state)?, None)
        } else if let Some(cpus) = *cpus {
            let changed = resized(queue, cpus)?;
            let fits = |(_, entry): &(JobId, Entry)| {
                entry.state != State::Waiting || entry.request.demand.fits_in(&changed.pool.most())
            };
            let jobs: Vec<_> = self.entries_of(&queue.name).into_iter().filter(fits).collect();
            check_number("cpus", jobs.len())?;
            let capacity = state.capacity.map(|left| with_more(resources(left), queue, cpus));
            let there = capacity.unwrap_or_else(|| changed.pool.at(at)).cpus_count().get();
            let running = jobs.iter().filter(|(_, entry)| matches!(entry.state, State::Running { .. }));
            let placements = running.filter_map(|(_, entry)| entry.placement());
            let held: u64 = placements.map(|placement| placement.total().cpus_count().get()).sum();
            if held > there {
                let message = format!("the running jobs of the queue have {held} processors");
                return Err(refused_field("cpus", message));
            }
            let jobs = jobs.into_iter().map(without_promise).collect();
            let capacity = capacity.map(|left| amounts(&left));
            let state = QueueState { capacity, ..state.clone() };
            (copy(&changed, jobs, &state)?, None)
        } else {
            let jobs = self.entries_where(&queue.name, |record| Some(record.uid) != *without_uid);
            (copy(queue, jobs, &state)?, None)
        };
        Ok(WhatIfCopies { queue: queue.name.clone(), before, after, quote })
    }
}

/// Checks that a copy of this number of jobs is planned anew in time.
fn check_number(field: &str, jobs: usize) -> Result<(), Problem> {
    if jobs <= JOBS_MOST {
        return Ok(());
    }
    let message = format!(
        "the queue has {jobs} jobs; a question about its {field} is answered for {JOBS_MOST} at most"
    );
    Err(refused_field(field, message))
}

/// Returns a queue with this number of processors.
fn resized(queue: &Queue, cpus: u64) -> Result<Queue, Problem> {
    let cpus_of = |amount: &Resources| amount.cpus_count().get();
    let most = cpus_of(&queue.pool.most());
    let least = queue.pool.steps().map(|(_, amount)| cpus_of(&amount)).filter(|cpus| *cpus > 0).min();
    let differs = most - least.unwrap_or(most);
    if cpus <= differs {
        let message =
            format!("must be at least {}, so that the queue has a processor at each time", differs + 1);
        return Err(refused_field("cpus", message));
    }
    let cpus = cpus.min(u64::from(u32::MAX));
    if queue.names_pes() {
        let message = format!("{} chooses processors by number", queue.policy);
        return Err(refused_field("cpus", message));
    }
    let pool = queue.pool.map(|amount| with_more(amount, queue, cpus));
    let changed = Queue { pool, ..queue.clone() };
    match queue.policy.build(&changed.machine(), 0) {
        Ok(_) => Ok(changed),
        Err(error) => Err(refused_field("cpus", error.to_string())),
    }
}

/// Returns an amount of a queue whose largest number of processors becomes `cpus`. No processors stay none.
fn with_more(amount: Resources, queue: &Queue, cpus: u64) -> Resources {
    let (now, most) = (amount.cpus_count().get(), queue.pool.most().cpus_count().get());
    let then = if now == 0 { 0 } else { now.saturating_add(cpus).saturating_sub(most) };
    amount.with_cpus(Procs::new(then))
}

/// Returns a policy that can take over the jobs of a queue.
fn checked_policy(queue: &Queue, written: &str) -> Result<PolicySpec, Problem> {
    if written.len() > POLICY_MOST {
        return Err(refused_field("policy", format!("it has more than {POLICY_MOST} bytes")));
    }
    let policy: PolicySpec = written.parse().map_err(|error| refused_field("policy", format!("{error}")))?;
    if let Err(error) = policy.build(&queue.machine(), 0) {
        return Err(refused_field("policy", error.to_string()));
    }
    if policy.needs().named_processors != queue.policy.needs().named_processors {
        let message = format!("{policy} cannot take over the jobs of {}", queue.policy);
        return Err(refused_field("policy", message));
    }
    Ok(policy)
}

/// Returns a job without the promise of its policy, if it waits.
fn without_promise((job, entry): (JobId, Entry)) -> (JobId, Entry) {
    match entry.state {
        State::Waiting => (job, Entry { promise: None, planned: None, planned_on: None, ..entry }),
        _ => (job, entry),
    }
}
