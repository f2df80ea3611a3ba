//! Trials of another place for a job that starts.

use std::collections::BTreeMap;

use miserly_core::{Driver, Effect, Entry, EventOrder, Fault, JobId, Ledger, Placement, Round, State, Time};

use super::Scheduler;

/// The most trials of a pass.
const MOST: usize = 8;

/// The trials of a pass.
#[derive(Debug, Default)]
pub(super) struct Trials {
    made: usize,
    /// The places of jobs that start elsewhere than the policy wanted.
    moved: BTreeMap<JobId, Placement>,
}

impl Trials {
    /// Takes in that a job starts in another place than the policy wanted.
    pub(super) fn moved(&mut self, job: JobId, place: Placement) {
        self.moved.insert(job, place);
    }
}

impl Scheduler {
    /// Returns whether all promises hold if a job that starts now has this place, and not the one of the policy, beside those that
    /// were moved before it. After some trials it is not tried any more.
    ///
    /// It makes the ledger anew, and costs a pass of the policy.
    pub(super) fn keeps_promises(
        &self,
        at: Time,
        handle: JobId,
        place: &Placement,
        trials: &mut Trials,
    ) -> bool {
        let Some(ledger) = self.driver.as_ref().map(Driver::ledger).filter(|_| trials.made < MOST) else {
            return false;
        };
        trials.made += 1;
        let entry = |job: JobId| {
            let mut entry = ledger.entry(job).clone();
            let elsewhere = if job == handle { Some(place) } else { trials.moved.get(&job) };
            if let (State::Running { placement, .. }, Some(place)) = (&mut entry.state, elsewhere) {
                *placement = place.clone();
            }
            (job, entry)
        };
        let jobs = ledger.running().chain(ledger.suspended()).chain(ledger.waiting());
        let entries: Vec<(JobId, Entry)> = jobs.map(entry).collect();
        let machine = ledger.machine().clone();
        let Ok(policy) = self.settings.policy.build(&machine, self.settings.seed) else { return false };
        let Ok(moved) = Ledger::restored(machine, entries) else { return false };
        let mut driver = Driver::new(moved.with_state(ledger.state()), policy, EventOrder::Batched);
        driver.resume(at, None);
        let mut round = Round { fault: Some(Fault::Hosts), ..Round::default() };
        let mut effects = vec![];
        let is_done = driver.round(at, &mut round, &mut effects).is_ok();
        is_done && !effects.iter().any(|effect| matches!(effect, Effect::PromiseBroken { .. }))
    }
}
