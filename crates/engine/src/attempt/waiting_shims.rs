//! Shims that wait for the windows of promised jobs: a promise of a queue that keeps reservations does not need the daemon.
//!
//! In the paper each accepted job waits inside the kernel, and the daemon "does not intervene until the job has terminated"
//! (Miser, section 3.3). Here the next promised jobs have a shim that holds their windows. The others get theirs in time,
//! from the daemon.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use miserly_core::{Span, Time};
use miserly_policies::Promises;
use serde::{Deserialize, Serialize};

use crate::attempt::planned_windows::Candidate;
use crate::job::table::JobTable;
use crate::{Action, Attempt, Ending, Engine, Journal, Launcher, PlannedWindow, Record, Run, WaitingShim};

/// The failures of the waiting shims of a job after which it gets no more.
const TRIES: usize = 3;

/// How many shims wait for windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingShimLimits {
    /// The most of all jobs together.
    pub most: usize,
    /// The number of windows on each processor for which a shim waits.
    pub per_cpu: usize,
}

impl WaitingShimLimits {
    /// No shim waits.
    pub const NONE: WaitingShimLimits = WaitingShimLimits { most: 0, per_cpu: 0 };
}

impl Default for WaitingShimLimits {
    /// Each processor starts its next two promised jobs without the daemon.
    fn default() -> WaitingShimLimits {
        WaitingShimLimits { most: 256, per_cpu: 2 }
    }
}

/// The facts about waiting shims that are not stored.
#[derive(Clone, Debug)]
pub(crate) struct WaitingShims {
    /// How often the shims of a job failed.
    failed: BTreeMap<i64, usize>,
    /// Whether no shim is to wait: an operator ends the daemon and holds all starts.
    are_held: bool,
    /// Whether that has changed.
    is_changed: bool,
    /// The first promised start for which no shim waits.
    pub(crate) needs_daemon: Option<Time>,
}

impl Default for WaitingShims {
    fn default() -> WaitingShims {
        // The windows that shims have are not known at a start.
        WaitingShims { failed: BTreeMap::new(), are_held: false, is_changed: true, needs_daemon: None }
    }
}

impl WaitingShims {
    pub(crate) const fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Lets the next batch plan the shims again.
    pub(crate) const fn plan_again(&mut self) {
        self.is_changed = true;
    }

    /// Takes note of shims that failed, and forgets those of jobs that have finished.
    pub(crate) fn note_failed(&mut self, failed: &[i64], jobs: &JobTable) {
        for job in failed {
            *self.failed.entry(*job).or_default() += 1;
        }
        self.failed.retain(|job, _| jobs.contains(*job));
    }
}

/// The jobs for which shims are to wait.
#[derive(Debug, Default)]
pub(crate) struct ShimPlan {
    /// The jobs with the earliest promised starts, by start.
    next: Vec<Candidate>,
    /// The first promised start of a job that may have no shim, or is beyond `next`.
    rest: Option<Time>,
}

impl ShimPlan {
    pub(crate) fn candidates(&self) -> impl Iterator<Item = Candidate> {
        self.next.iter().copied()
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns the jobs for which shims are to wait. O(n) for n unfinished jobs.
    pub(crate) fn shim_plan(&self) -> ShimPlan {
        let mut plan = ShimPlan::default();
        let WaitingShimLimits { most, per_cpu } = self.setup.waiting_shims;
        let count = most.min(per_cpu.saturating_mul(self.setup.cpus.len()));
        let keeps: BTreeSet<&str> = self
            .setup
            .queues
            .iter()
            .filter(|queue| queue.policy.promises() == Promises::EveryJob)
            .map(|queue| queue.name.as_str())
            .collect();
        if keeps.is_empty() || count == 0 {
            return plan;
        }
        // The latest of the chosen ones is on top.
        let mut next: BinaryHeap<(Time, i64)> = BinaryHeap::new();
        let mut rest = |start: Time| plan.rest = Some(plan.rest.map_or(start, |rest| rest.min(start)));
        for record in self.jobs.records() {
            if record.run.is_some() || !record.is_in_ledger() || !self.is_waiting(record.number) {
                continue;
            }
            let Some(start) = self.entry(record.number).and_then(|entry| entry.promise).map(|of| of.best)
            else {
                continue;
            };
            if start == Time::MAX {
                continue;
            }
            if !keeps.contains(&*record.queue) || !self.may_wait(record) || self.shims.are_held {
                rest(start);
                continue;
            }
            next.push((start, record.number));
            if next.len() > count
                && let Some((start, _)) = next.pop()
            {
                rest(start);
            }
        }
        let next = next.into_sorted_vec();
        let records = next.iter().filter_map(|(_, number)| self.jobs.get(*number));
        let candidate = |record: &Record| {
            let waits = record.waits.filter(|waits| !waits.is_withdrawn);
            let nth = waits.map_or(record.attempts + 1, |waits| waits.nth);
            self.candidate_of(record, Attempt { job: record.number, nth }, waits.is_some())
        };
        plan.next = records.filter_map(candidate).collect();
        plan
    }

    /// Returns whether a shim may wait for the window of a promised job that has no attempt.
    fn may_wait(&self, record: &Record) -> bool {
        let earlier = self.shims.failed.get(&record.number).copied().unwrap_or(0);
        let failed_now = self.batch.shims_failed.iter().filter(|job| **job == record.number).count();
        record.gpus() == 0
            && record.after.is_empty()
            && earlier + failed_now < TRIES
            && !self.cpus.has_own(&record.queue)
            && !self.stopped.contains(&record.queue)
    }

    /// Launches, moves and withdraws shims by a plan, with the windows of its next jobs. Adds those that keep a window to `kept`.
    pub(crate) fn plan_shims(
        &mut self,
        plan: &ShimPlan,
        windows: Vec<(Candidate, PlannedWindow)>,
        kept: &mut BTreeSet<Attempt>,
    ) {
        let is_changed = std::mem::take(&mut self.shims.is_changed);
        let WaitingShimLimits { most, per_cpu } = self.setup.waiting_shims;
        let mut on: BTreeMap<u32, usize> = BTreeMap::new();
        let mut count = 0;
        let mut planned = BTreeSet::new();
        // A job that moves back a little keeps its shim.
        let next: BTreeSet<i64> = plan.next.iter().map(|candidate| candidate.job).collect();
        for (candidate, window) in windows {
            let is_next = window.cpus.iter().any(|cpu| on.get(cpu).copied().unwrap_or(0) < per_cpu);
            if !is_next || count >= most {
                continue;
            }
            count += 1;
            for cpu in &window.cpus {
                *on.entry(*cpu).or_default() += 1;
            }
            let attempt =
                if candidate.has_shim { Some(candidate.attempt) } else { self.launch_shim(candidate.job) };
            if let Some(attempt) = attempt {
                planned.insert(candidate.job);
                kept.insert(attempt);
                self.plan_window(attempt, window);
            }
        }
        let left = plan.next.iter().filter(|candidate| !planned.contains(&candidate.job));
        self.shims.needs_daemon = left.map(|candidate| candidate.start).chain(plan.rest).min();
        if most == 0 && !is_changed {
            // The plan after the change has withdrawn all.
            return;
        }
        let unwanted = |record: &&Record| {
            record.waits.is_some_and(|waits| !waits.is_withdrawn) && !next.contains(&record.number)
        };
        let unwanted: Vec<i64> = self.jobs.records().filter(unwanted).map(|record| record.number).collect();
        for number in unwanted {
            self.withdraw_shim(number);
        }
    }

    /// Launches a shim that waits for the window of a job. Returns `None` while an earlier one is not gone.
    fn launch_shim(&mut self, number: i64) -> Option<Attempt> {
        let record = self.jobs.get_mut(number).filter(|record| record.waits.is_none())?;
        record.attempts += 1;
        let nth = record.attempts;
        record.waits = Some(WaitingShim { nth, is_withdrawn: false });
        self.act_launch(number, nth, None, true);
        Some(Attempt { job: number, nth })
    }

    /// Takes the waiting shim of a job whose command begins. Returns the number of its attempt.
    pub(crate) fn take_waiting_shim(&mut self, number: i64) -> Option<u32> {
        let record = self.jobs.get_mut(number)?;
        let WaitingShim { nth, .. } = record.waits.take_if(|waits| !waits.is_withdrawn)?;
        self.batch.touch(number);
        Some(nth)
    }

    /// Runs the command of a waiting shim ahead of its window.
    pub(crate) fn run_shim_early(&mut self, number: i64, nth: u32) {
        let Some(record) = self.jobs.get_mut(number) else { return };
        record.run = Some(Run::new(nth, vec![], false));
        self.jobs.set_ahead(number);
        let cpus = self.setup.opportunistic_cpus.clone();
        self.batch.act(Attempt { job: number, nth }, Action::RunEarly { cpus });
    }

    /// Ends the waiting shim of a job.
    pub(crate) fn withdraw_shim(&mut self, number: i64) {
        let Some(record) = self.jobs.get_mut(number) else { return };
        let Some(attempt) = record.waiting_attempt() else { return };
        record.waits = Some(WaitingShim { nth: attempt.nth, is_withdrawn: true });
        self.batch.touch(number);
        self.batch.act(attempt, Action::Withdraw);
    }

    /// Ends all waiting shims, since what they were launched with may have changed.
    pub(crate) fn withdraw_shims(&mut self) {
        let waiting = self.jobs.records().filter(|record| record.waits.is_some());
        for number in waiting.map(|record| record.number).collect::<Vec<_>>() {
            self.withdraw_shim(number);
        }
    }

    /// Tells the shims that an earlier daemon has withdrawn to end. It is unknown whether they know.
    pub(crate) fn withdraw_again(&mut self) {
        let withdrawn = |record: &&Record| record.waits.is_some_and(|waits| waits.is_withdrawn);
        let records = self.jobs.records().filter(withdrawn);
        for attempt in records.filter_map(Record::waiting_attempt).collect::<Vec<_>>() {
            self.batch.act(attempt, Action::Withdraw);
        }
    }

    /// Withdraws all waiting shims, and launches no more: nothing starts without a daemon. Or ends that.
    pub(crate) fn hold_starts(&mut self, are_held: bool) {
        self.shims.are_held = are_held;
        self.shims.plan_again();
    }

    /// Applies the end of an attempt whose shim waited and whose command never ran. Returns whether it is one.
    pub(crate) fn end_waiting(&mut self, attempt: Attempt) -> bool {
        let record = self.jobs.get_mut(attempt.job);
        let Some(record) = record.filter(|record| record.waiting_attempt() == Some(attempt)) else {
            return false;
        };
        if record.waits.take().is_some_and(|waits| !waits.is_withdrawn) {
            self.batch.shims_failed.push(attempt.job);
        }
        record.never_ran += 1;
        self.batch.touch(attempt.job);
        self.forget(attempt);
        true
    }

    /// Takes note that the command of a waiting shim has begun, since the shim began the window by itself: the attempt becomes
    /// that of the job, which has run since `at`. Does nothing for any other attempt.
    pub(crate) fn begin_waiting(&mut self, attempt: Attempt, at: Time) {
        let number = attempt.job;
        let (waits, end) = (self.is_waiting(number) || self.jobs.is_running(number), self.window_end(number));
        let kill = self.kill(Ending::Displaced);
        let record = self.jobs.get_mut(number);
        let Some(record) = record.filter(|record| record.waiting_attempt() == Some(attempt)) else { return };
        record.waits = None;
        record.started = Some(at);
        self.batch.shims_begun.insert(number);
        self.batch.touch(number);
        if let Some(run) = &mut record.run {
            // It was withdrawn, and the next attempt waits for its end. No command begins twice.
            let next = Attempt { job: number, nth: std::mem::replace(&mut run.nth, attempt.nth) };
            self.batch.act(next, Action::Kill { grace: Span::ZERO });
            if let Some(end) = end.filter(|_| run.in_window) {
                let cpus = run.cpus.clone();
                self.batch.act(attempt, Action::BeginWindow { cpus, end });
            }
        } else {
            let mut run = Run::new(attempt.nth, vec![], false);
            if !waits {
                // The job is held, or waits for something: it was withdrawn too late.
                run.ending = Some(Ending::Displaced);
                self.batch.act(attempt, kill);
            }
            record.run = Some(run);
            self.jobs.set_ahead(number);
        }
    }

    /// Takes note that commands of waiting shims have begun, each at an instant.
    pub(crate) fn begin_all_waiting(&mut self, begun: impl IntoIterator<Item = (Attempt, Time)>) {
        for (attempt, at) in begun {
            self.begin_waiting(attempt, at);
        }
    }
}
