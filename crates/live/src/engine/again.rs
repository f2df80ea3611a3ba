//! What a daemon before this one had on disk and may have told nobody: orders wait in memory for their turn, and go with it.

use std::collections::BTreeSet;

use miserly_core::{Span, Time};

use super::{Action, Attempt, Ending, Engine, Hands, Record, Run};
use crate::model::KilledBy;

impl<H: Hands> Engine<H> {
    /// Tells every living attempt all that holds for it, in place of what this turn changed of it. A shim that knows it already
    /// does nothing. Windows ahead are told by [`tell_ahead`](Engine::tell_ahead).
    pub(super) fn tell_again(&mut self, now: Time) {
        let launched: BTreeSet<Attempt> = self
            .turn
            .actions
            .iter()
            .filter(|(_, action)| matches!(action, Action::Launch(_)))
            .map(|(attempt, _)| *attempt)
            .collect();
        let living: BTreeSet<Attempt> =
            self.records.values().filter_map(Record::attempt).filter(|of| !launched.contains(of)).collect();
        self.turn.actions.retain(|(attempt, _)| !living.contains(attempt));
        for attempt in living {
            let whole = self.whole_order(now, attempt.job);
            self.turn.actions.extend(whole.into_iter().map(|action| (attempt, action)));
        }
    }

    /// All that holds for the processes of a job, but its window ahead.
    fn whole_order(&self, now: Time, job: i64) -> Vec<Action> {
        let Some(run) = self.records.get(&job).and_then(|record| record.run.as_ref()) else { return vec![] };
        if let Some(ending) = run.ending {
            return vec![self.kill(ending)];
        }
        let goes = if run.stopped { Action::Stop } else { Action::Continue };
        if let Some(end) = self.end_if_resumed(now, job) {
            return vec![goes, end];
        }
        if let Some(record) = self.records.get(&job).filter(|record| self.takes_turns(&record.queue)) {
            // Whose turn it is, is told by others.
            return vec![Action::Move(run.cpus.clone()), Action::RunFor(record.limit())];
        }
        // It is past its end where none is expected any more.
        let end = self.window_end(job).unwrap_or(now);
        let window = || Action::Critical { cpus: run.cpus.clone(), end };
        run.critical.then(window).into_iter().chain([goes]).collect()
    }

    /// How processes are ended: those in the way of others at once.
    pub(super) fn kill(&self, ending: Ending) -> Action {
        let grace = if ending == Ending::Displaced { Span::ZERO } else { self.setup.grace };
        Action::Kill { grace, by: KilledBy::User }
    }

    /// When the window of a job that runs ends; nothing, if that is past already.
    pub(super) fn window_end(&self, job: i64) -> Option<Time> {
        let record = self.records.get(&job)?;
        Some(self.expected_end(job)? - record.handover(self.setup.handover))
    }
}

impl Record {
    /// The attempt that is under way.
    pub(super) fn attempt(&self) -> Option<Attempt> {
        self.run.as_ref().map(|Run { nth, .. }| Attempt { job: self.number, nth: *nth })
    }
}
