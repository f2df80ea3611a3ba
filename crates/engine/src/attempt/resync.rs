//! Resync: a new daemon resends the state of every living attempt.
//!
//! Actions wait in memory only, so those of an earlier daemon may be lost although their commit is durable.

use std::collections::BTreeSet;

use miserly_core::{Span, Time};
use miserly_marks::mark;

use crate::dependency::expected_ends::ExpectedEnds;
use crate::{Action, Attempt, Ending, Engine, Journal, Launcher, Record};

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Resends the full state to every living attempt, in place of its pending actions.
    ///
    /// A shim ignores a repeated state. Planned windows are sent by
    /// [`add_planned_windows`](Engine::add_planned_windows).
    pub(crate) fn resend_state(&mut self, now: Time) {
        let launched = self.batch.launched();
        let living: BTreeSet<Attempt> =
            self.jobs.records().filter_map(Record::attempt).filter(|of| !launched.contains(of)).collect();
        self.batch.drop_actions(&living);
        for attempt in living {
            for action in self.full_state(now, attempt.job) {
                self.batch.act(attempt, action);
            }
        }
    }

    /// Returns the actions that bring the attempt of a job into its present state, except for its planned window.
    fn full_state(&self, now: Time, job: i64) -> Vec<Action> {
        let Some(record) = self.jobs.get(job) else { return vec![] };
        let Some(run) = &record.run else { return vec![] };
        if let Some(ending) = run.ending {
            mark!("the end is sent again");
            return vec![match ending {
                Ending::WrittenOut => Action::WriteOut { until: self.write_out_end(now, job).unwrap_or(now) },
                _ => self.kill(ending),
            }];
        }
        let by_running_time = self.is_gang(&record.queue);
        let overdue = self.overdue_since(job).map(|_| Action::EndOverdue { by_running_time });
        if let Some(end) = overdue.clone().filter(|_| !by_running_time) {
            mark!("the end of an overdue job is sent again");
            return vec![end];
        }
        let goes = if run.stopped || run.paused { Action::Stop } else { Action::Continue };
        let signal = run.signal.map(Action::Signal);
        if let Some(end) = self.end_if_orphaned(now, job) {
            mark!("a suspended job is sent again");
            return [goes, end].into_iter().chain(signal).collect();
        }
        if by_running_time {
            mark!("a job of a slot is sent again");
            // The rotation of the slots stops and continues it.
            let state = [Action::Move(run.cpus.clone()), Action::RunFor(record.limit())];
            return state.into_iter().chain(signal).chain(overdue).collect();
        }
        mark!("a running job is sent again");
        let end = self.window_end(job).unwrap_or(now);
        let window = || Action::BeginWindow { cpus: run.cpus.clone(), end };
        run.in_window.then(window).into_iter().chain([goes]).chain(signal).collect()
    }

    /// Returns the action that ends an attempt. A displaced one has no grace period, as others need its processors.
    pub(crate) fn kill(&self, ending: Ending) -> Action {
        let grace = if ending == Ending::Displaced { Span::ZERO } else { self.setup.grace };
        Action::Kill { grace }
    }

    /// Returns the end of the window of a running job. It is unknown for an overdue job.
    pub(crate) fn window_end(&self, job: i64) -> Option<Time> {
        let record = self.jobs.get(job)?;
        Some(self.expected_end(job)? - record.cleanup_time(self.setup.cleanup_time))
    }
}
