//! What the shims do without a daemon: no window begins beside another one, jobs start by their promises, and end as planned.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use miserly_api::model::{JobView, Phase, Status};
use miserly_engine::Attempt;

use crate::site::Window;
use crate::step::{SECOND, Step};
use crate::world::{Checked, World};

/// The delay of a start, and the time for which two jobs may share a processor.
const TOLERANCE: i64 = SECOND;

/// The time for which the processes of a window outlive its end.
const END_TOLERANCE: i64 = SECOND / 100;

/// The time without a batch after which each shim has the window that is planned for it.
const SETTLED: i64 = 5 * SECOND;

/// What is known about the shims that wait.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alone {
    /// The number of batches, and when it was seen first.
    batches: (u64, i64),
    /// The jobs that start by themselves after these batches, with their latest promised starts.
    starts: BTreeMap<i64, i64>,
    /// The ends of the windows that their shims begin by themselves after these batches, by job.
    ends: BTreeMap<i64, i64>,
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
        if let Step::StopShim { .. } = step {
            // It begins its window late. The window still ends as planned.
            self.starts.clear();
        } else if !is_harmless {
            self.clear();
        }
    }

    fn clear(&mut self) {
        self.starts.clear();
        self.ends.clear();
    }
}

impl World {
    /// Takes note of the jobs that start by themselves if the daemon goes away now, and of the ends of their windows.
    pub(super) fn note_alone(&mut self, views: &[Rc<JobView>], status: &Status) {
        let batches = self.batches();
        if self.alone.batches.0 != batches {
            self.alone.batches = (batches, self.now);
            self.alone.clear();
        }
        let since = self.alone.batches.1.max(self.quiet_since());
        if status.waiting_shims == 0 || since + SETTLED > self.now || !self.machine.is_calm() {
            return self.alone.clear();
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
        let begins = |view: &&Rc<JobView>| matches!(view.phase, Phase::Queued | Phase::Opportunistic { .. });
        // The latest start of a window has the slack of the promise, and its shim has the planned one.
        let end = |view: &Rc<JobView>| {
            Some((view.number, self.ticks(view.promise.as_ref()?.now.as_ref()?.end) - self.slack()))
        };
        self.alone.ends = views.iter().filter(begins).filter_map(end).collect();
    }

    /// Checks the rules of the time without a daemon.
    pub(super) fn check_absence(&mut self) -> Checked {
        let Some(gone_at) = self.gone_at() else { return Ok(()) };
        self.check_overlaps(gone_at)?;
        if self.alone.batches.0 != self.batches() {
            return Ok(());
        }
        self.check_ends(gone_at)?;
        let begun: BTreeSet<i64> = self.machine.begun().keys().map(|attempt| attempt.job).collect();
        let late = |(_, latest): &(&i64, &i64)| **latest + self.cleanup() + TOLERANCE < self.now;
        let missing = self.alone.starts.iter().filter(late).find(|(job, _)| !begun.contains(job));
        missing.map_or(Ok(()), |(job, latest)| {
            Err(format!("job {job} has a shim that waits, and does not begin by {latest} without a daemon"))
        })
    }

    /// A window that began without a daemon ends as planned, also if it began late. A shim that is stopped at the end is late.
    fn check_ends(&mut self, gone_at: i64) -> Checked {
        for Window { attempt, since, obeys, .. } in self.machine.windows() {
            let Attempt { job, nth } = attempt;
            let is_over = |end: &i64| *end + END_TOLERANCE < self.now;
            let Some(end) = self.alone.ends.get(&job).copied().filter(is_over) else { continue };
            if !obeys {
                self.alone.ends.remove(&job);
            } else if since > gone_at {
                return Err(format!(
                    "the window of {job}.{nth} began without a daemon, and lasts beyond its end at {end}"
                ));
            }
        }
        Ok(())
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
