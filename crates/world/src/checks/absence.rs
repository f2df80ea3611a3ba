//! What the shims do without a daemon: no window begins beside another one, and jobs start by their promises.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use miserly_api::model::{JobView, Phase, Status};

use crate::step::{SECOND, Step};
use crate::world::{Checked, World};

/// The delay of a start, and the time for which two jobs may share a processor.
const TOLERANCE: i64 = SECOND;

/// The time without a batch after which each shim has the window that is planned for it.
const SETTLED: i64 = 5 * SECOND;

/// What is known about the shims that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alone {
    /// The number of batches, and when it was seen first.
    batches: (u64, i64),
    /// The jobs that start by themselves after these batches, with their latest promised starts.
    starts: BTreeMap<i64, i64>,
}

impl Alone {
    /// Takes note of a step.
    pub(crate) fn note(&mut self, step: &Step) {
        use Step::{
            FailCommit, FailOpen, Kill, Request, SetWall, SignalMain, Stall, Start, Stop, Submit, Wait,
        };
        let is_harmless = matches!(
            step,
            Wait { .. }
                | Submit { .. }
                | Request { .. }
                | Stop
                | Start
                | Kill { .. }
                | Stall { .. }
                | SetWall { .. }
                | SignalMain { .. }
                | FailCommit { .. }
                | FailOpen
        );
        if !is_harmless {
            self.starts.clear();
        }
    }
}

impl World {
    /// Takes note of the jobs that start by themselves if the daemon goes away now.
    pub(super) fn note_alone(&mut self, views: &[Rc<JobView>], status: &Status) {
        let batches = self.batches();
        if self.alone.batches.0 != batches {
            self.alone.batches = (batches, self.now);
            self.alone.starts.clear();
        }
        let since = self.alone.batches.1.max(self.quiet_since());
        if status.waiting_shims == 0 || since + SETTLED > self.now || !self.machine.is_calm() {
            return self.alone.starts.clear();
        }
        let from = status.needs_daemon_from.map_or(i64::MAX, |from| self.ticks(from));
        let alone =
            |view: &&Rc<JobView>| matches!(view.phase, Phase::Queued) && self.watch.starts(view.number);
        let latest = |view: &Rc<JobView>| {
            let promise = view.promise.as_ref()?;
            let start = self.ticks(promise.now.as_ref()?.start);
            let is_open = start < from && promise.at_risk.is_none();
            is_open.then(|| (view.number, self.ticks(promise.promised.start)))
        };
        self.alone.starts = views.iter().filter(alone).filter_map(latest).collect();
    }

    /// Checks the rules of the time without a daemon.
    pub(super) fn check_absence(&self) -> Checked {
        let Some(gone_at) = self.gone_at() else { return Ok(()) };
        self.check_overlaps(gone_at)?;
        if self.alone.batches.0 != self.batches() {
            return Ok(());
        }
        let begun: BTreeSet<i64> = self.machine.begun().keys().map(|attempt| attempt.job).collect();
        let late = |(_, latest): &(&i64, &i64)| **latest + self.cleanup() + TOLERANCE < self.now;
        let missing = self.alone.starts.iter().filter(late).find(|(job, _)| !begun.contains(job));
        missing.map_or(Ok(()), |(job, latest)| {
            Err(format!("job {job} has a shim that waits, and does not begin by {latest} without a daemon"))
        })
    }

    /// No window begins beside another one on its processors. Jobs that were stopped go on by themselves, and are beside others.
    fn check_overlaps(&self, gone_at: i64) -> Checked {
        let mut owner = BTreeMap::new();
        for window in self.machine.windows().into_iter().filter(|_| !self.suspends) {
            for cpu in &window.cpus {
                let Some((other, before)) = owner.insert(*cpu, (window.attempt, window.since)) else {
                    continue;
                };
                let since = window.since.max(before);
                if since > gone_at && since + TOLERANCE < self.now {
                    let [one, two] = [other, window.attempt].map(|of| format!("{}.{}", of.job, of.nth));
                    return Err(format!(
                        "processor {cpu} is in the windows of {one} and {two} since {since}, without a daemon"
                    ));
                }
            }
        }
        Ok(())
    }
}
