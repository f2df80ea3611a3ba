//! Changes of the decayed usage where the allocations of jobs change.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Ledger;
use super::usage::{Owner, Usage};
use super::weights::UsageWeights;
use crate::{Entry, JobId, Procs, Span, State, Time};

/// The owner and the allocated processors of a job, before a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    owner: Owner,
    procs: u64,
}

impl Ledger {
    /// Returns the decayed usage of each user, if the policy needs it.
    pub fn usage(&self) -> Option<&Usage> {
        self.usage.as_deref()
    }

    /// Counts the usage of each user with this half-life from now on, or does not count it.
    ///
    /// Usage that was counted before is kept, and decays with the new half-life from the last change
    /// of each record. Without it, the current runs of running jobs are counted. `Span::MAX`: usage
    /// does not decay.
    pub fn count_usage(&mut self, half_life: Option<Span>) {
        let Some(half_life) = half_life else {
            self.usage = None;
            return;
        };
        let mut usage = match self.usage.take() {
            Some(usage) => usage,
            None => Box::new(self.usage_of_runs(half_life)),
        };
        usage.set_half_life(half_life);
        usage.set_procs(&self.procs_of_owners());
        self.usage = Some(usage);
    }

    /// Counts resources by these weights from now on, and not processors only. Call it before [`count_usage`](Ledger::count_usage).
    pub fn weigh_usage(&mut self, weights: Option<Arc<UsageWeights>>) {
        self.weights = weights;
    }

    /// Returns what a job costs now: by the weights of the policy, by the charge of the machine, or its processors.
    fn cost(&self, entry: &Entry) -> u64 {
        let procs = entry.allocated();
        match (&self.weights, entry.placement()) {
            (Some(weights), Some(placement)) if !procs.is_zero() => weights.charge(&entry.request, placement),
            (None, Some(placement)) if !procs.is_zero() => {
                self.machine.charge().map_or(procs.get(), |charge| charge.cost(&placement.total()))
            }
            _ => procs.get(),
        }
    }

    /// Returns what the jobs of each user and group cost now.
    fn procs_of_owners(&self) -> BTreeMap<Owner, u64> {
        let mut found: BTreeMap<Owner, u64> = BTreeMap::new();
        for entry in self.jobs.iter().flatten().filter(|entry| !entry.allocated().is_zero()) {
            // A job may cost nothing.
            let cost = self.cost(entry);
            if cost > 0 {
                *found.entry(Owner::from_request(&entry.request)).or_default() += cost;
            }
        }
        found
    }

    /// Returns the usage of the jobs that hold processors now, since the beginning of their present runs.
    fn usage_of_runs(&self, half_life: Span) -> Usage {
        let mut usage = Usage::none(half_life);
        let held = |job: JobId| {
            let entry = self.entry(job);
            let since = match &entry.state {
                State::Running { since, .. } => *since,
                _ => entry.progress.at,
            };
            (since, entry.admitted, job)
        };
        let mut runs: Vec<_> = self.running().chain(self.suspended()).map(held).collect();
        runs.sort_unstable();
        for (since, _, job) in runs {
            let entry = self.entry(job);
            if !entry.allocated().is_zero() {
                usage.change(since, Owner::from_request(&entry.request), 0, self.cost(entry));
            }
        }
        usage
    }

    /// Returns the holdings of a job before a change, if usage is counted.
    pub(super) fn charge(&self, job: JobId) -> Option<Charge> {
        self.usage.as_ref()?;
        let entry = self.get(job)?;
        Some(Charge { owner: Owner::from_request(&entry.request), procs: self.cost(entry) })
    }

    /// Counts the usage of a job up to `now`, and continues with its holdings after a change.
    pub(super) fn recharge(&mut self, job: JobId, now: Time, before: Option<Charge>) {
        let Some(Charge { owner, procs }) = before else { return };
        let after = self.get(job).map_or(0, |entry| self.cost(entry));
        if let Some(usage) = self.usage.as_mut().filter(|_| after != procs) {
            usage.change(now, owner, procs, after);
        }
    }

    /// Asserts that the allocated processors of each user and group follow from the jobs.
    pub(super) fn check_usage(&self, now: Time) {
        let Some(usage) = &self.usage else { return };
        let mut found = (**usage).clone();
        let owners = self.procs_of_owners();
        found.set_procs(&owners);
        assert_eq!(found, **usage, "the processors of each user and group follow from the jobs at {now}");
    }
}

impl Entry {
    /// Returns the number of processors that the job holds now. Processors that it uses ahead of its
    /// start do not count.
    pub fn allocated(&self) -> Procs {
        match &self.state {
            State::Waiting | State::Running { released: true, .. } => Procs::ZERO,
            State::Running { placement, .. } => placement.total().cpus_count(),
            State::Suspended { placement, holds, .. } if holds.part().has_cpus() => {
                placement.total().cpus_count()
            }
            State::Suspended { .. } => Procs::ZERO,
        }
    }
}
