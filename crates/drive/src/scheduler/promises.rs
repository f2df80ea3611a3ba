//! The promises to users, and how a step changes them.

use std::collections::BTreeMap;

use miserly_core::{BreachCause, Span, Time};
use serde::{Deserialize, Serialize};

use super::cause::RebuildCause;
use super::job::DrivenJob;
use super::{START_TIMEOUT, Scheduler, Step};
use crate::notes::Note;

/// Slurm starts a placed job in less than this, as a rule.
const USUAL_START: Span = Span::from_ticks(5 * 1_000_000);

/// The promise to a user: the latest start by the policy, with the time that a start takes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct UserPromise {
    /// The first one since the job was seen.
    #[serde(with = "miserly_saved::ticks")]
    pub(crate) first: Time,
    /// The present one. [`Time::MAX`] while no latest start is known.
    #[serde(with = "miserly_saved::ticks")]
    pub(crate) latest: Time,
    /// Why it was broken, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) broken: Option<String>,
    /// Why its start uses up some of the time that the promise has for it, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delayed: Option<String>,
}

impl UserPromise {
    pub(super) fn new(latest: Time) -> UserPromise {
        UserPromise { first: latest, latest, broken: None, delayed: None }
    }

    /// Returns the latest start, if it is known.
    pub(super) fn latest_known(&self) -> Option<Time> {
        Some(self.latest).filter(|latest| *latest < Time::MAX)
    }

    /// Returns why the promise was broken, or is by this start.
    pub(super) fn cause(&self, start: Time) -> Option<String> {
        let delayed = self.delayed.as_ref().filter(|_| start > self.latest);
        self.broken.as_ref().or(delayed).cloned()
    }

    /// Breaks the promise. Returns the event, if it was not broken before.
    pub(super) fn break_for(&mut self, why: &str) -> Option<Note> {
        if self.broken.is_some() {
            return None;
        }
        self.broken = Some(why.to_owned());
        Some(Note::PromiseBroken { latest: None, why: why.to_owned() })
    }

    /// Takes the promise back for good. The next one is another one. Returns the event, if the promise was not broken before.
    pub(super) fn withdraw(&mut self, why: &str) -> Option<Note> {
        let broken = self.break_for(why);
        self.latest = Time::MAX;
        broken
    }
}

/// The promises that the passes of a step change, by job. A pass that follows a place which Slurm chose may give back what the pass
/// before took: only the difference between the begin and the end of the step counts.
pub(super) struct PromiseChanges {
    changes: BTreeMap<String, PromiseChange>,
    /// The jobs that are planned anew for changed requests.
    changed_requests: Vec<String>,
}

struct PromiseChange {
    /// The promise before the step.
    before: Option<Time>,
    /// The cause, should it be later now.
    why: Option<&'static str>,
}

impl PromiseChanges {
    pub(super) fn new(changed_requests: Vec<String>) -> PromiseChanges {
        PromiseChanges { changes: BTreeMap::new(), changed_requests }
    }

    /// Takes in the latest start that a pass promises to a user. `why`: the cause, if it breaks a promise.
    pub(super) fn set(&mut self, id: &str, job: &mut DrivenJob, latest: Time, why: Option<&'static str>) {
        let before = job.promise.as_ref().map(|promise| promise.latest);
        let change = self.changes.entry(id.to_owned()).or_insert(PromiseChange { before, why: None });
        change.why = why.or(change.why);
        let promise = job.promise.get_or_insert_with(|| UserPromise::new(latest));
        promise.latest = latest;
        if change.before.is_none() {
            promise.first = latest;
        }
    }
}

impl Scheduler {
    /// Reports the promises that a step has changed.
    pub(super) fn settle_promises(&mut self, at: Time, changes: PromiseChanges, step: &mut Step) {
        let delay = self.settings.delay();
        for (id, PromiseChange { before, why }) in changes.changes {
            let Some(job) = self.jobs.get_mut(&id).filter(|job| job.handle.is_some()) else { continue };
            let Some(promise) = &mut job.promise else { continue };
            let why = match (changes.changed_requests.contains(&id), why, &promise.broken) {
                (true, ..) => "it was planned anew for a changed request".to_owned(),
                (false, Some(why), _) => why.to_owned(),
                // It was not planned for a while, for this cause.
                (false, None, Some(broken)) => broken.clone(),
                (false, None, None) => "it was planned anew".to_owned(),
            };
            match before {
                Some(before) if promise.latest > before => {
                    // The time for its start makes up for it.
                    let usual = promise.latest - delay + USUAL_START;
                    if promise.latest_known().is_some() && usual <= before {
                        promise.latest = before;
                        promise.delayed = Some(why);
                        continue;
                    }
                    promise.broken = Some(why.clone());
                    step.notes.push((id, Note::PromiseBroken { latest: promise.latest_known(), why }));
                }
                // One that starts at once needs no note.
                Some(before) if promise.latest == before => {}
                _ if promise.latest > at + START_TIMEOUT => {
                    step.notes.push((id, Note::Promised { latest: promise.latest }));
                }
                _ => {}
            }
        }
    }
}

/// Returns the cause of a broken promise, in words. `rebuild`: why the ledger was made again before the pass, if it was.
pub(super) fn breach_cause(why: BreachCause, rebuild: Option<RebuildCause>) -> &'static str {
    match why {
        BreachCause::Overdue => "a job runs past its limit",
        BreachCause::Away => "the driver was away",
        BreachCause::Capacity => {
            rebuild.map_or("a job uses its nodes otherwise than planned", RebuildCause::words)
        }
        BreachCause::Amended => "the limit of a job was changed",
    }
}
