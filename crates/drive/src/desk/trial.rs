//! Trials of another place for a job that starts.

use miserly_core::{Driver, Effect, Entry, EventOrder, Fault, JobId, Ledger, Placement, Round, State, Time};

use super::Desk;

impl Desk {
    /// Returns whether all promises hold if a job that starts now has this place, and not the one of the policy.
    ///
    /// It makes the ledger anew, and costs a pass of the policy.
    pub(super) fn keeps_promises(&self, at: Time, handle: JobId, place: &Placement) -> bool {
        let Some(ledger) = self.driver.as_ref().map(Driver::ledger) else { return false };
        let entry = |job: JobId| {
            let mut entry = ledger.entry(job).clone();
            if let State::Running { placement, .. } = &mut entry.state
                && job == handle
            {
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
