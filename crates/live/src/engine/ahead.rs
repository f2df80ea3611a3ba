//! Windows that are told ahead: a job that runs early begins and ends in its own, with no daemon there.

use std::collections::BTreeSet;

use miserly_core::{Amendment, Change, Round, Span, Time};

use super::{Action, Ahead, Attempt, Critical, Engine, EngineError, Hands, Record, ToldAhead, Turn};
use crate::clock::Now;

impl<H: Hands> Engine<H> {
    /// Tells jobs that run ahead of their windows when these are and on which processors, where this turn may have changed that.
    pub(super) fn tell_ahead(&mut self) {
        if self.turn.touched.is_empty() && self.turn.over.is_empty() {
            return;
        }
        for (number, ahead) in self.windows_ahead() {
            let Some(run) = self.records.get_mut(&number).and_then(|record| record.run.as_mut()) else {
                continue;
            };
            let told = Some(ToldAhead::of(&ahead));
            if run.ahead != told {
                run.ahead = told;
                self.turn.touched.insert(number);
                self.turn.hand_ahead(Attempt { job: number, nth: run.nth }, ahead);
            }
        }
    }

    /// The windows of jobs that run ahead of them, if all goes as it is planned now.
    ///
    /// Processors go by the lowest number to the earliest start. The ledger has seen to it that at each start enough are free, and
    /// one is as good as another, so this finds some for each; but not where a job is overdue, which nobody plans with.
    fn windows_ahead(&self) -> Vec<(i64, Ahead)> {
        let mut early: Vec<(Time, &Record)> =
            self.records.values().filter_map(|record| Some((self.start_ahead(record)?, record))).collect();
        early.sort_by_key(|(start, record)| (*start, record.number));
        if early.is_empty() {
            return vec![];
        }
        let mut free = self.cpus.free();
        let mut held: Vec<(Time, Vec<u32>)> =
            self.running.iter().filter_map(|number| self.holding(*number)).collect();
        let mut windows = vec![];
        for (start, record) in early {
            for (_, cpus) in held.extract_if(.., |(end, _)| *end <= start) {
                free.extend(cpus);
            }
            if let Some(cpus) = take(&mut free, record.submission.cpus) {
                held.push((start + record.planned(self.setup.handover), cpus.clone()));
                let end = start + Span::from_ticks(record.time);
                windows.push((record.number, Ahead { start, end, cpus }));
            }
        }
        windows
    }

    /// The promised start of a job that runs ahead of it.
    fn start_ahead(&self, record: &Record) -> Option<Time> {
        record.run.as_ref().filter(|run| !run.critical && run.ending.is_none())?;
        let job = self.handles.get(&record.number)?;
        let promise = self.system.ledger_of(*job)?.entry(*job).promise?;
        (promise.best < Time::MAX).then_some(promise.best)
    }

    /// Until when a running job has which processors.
    fn holding(&self, number: i64) -> Option<(Time, Vec<u32>)> {
        let run = self.records.get(&number)?.run.as_ref()?;
        let end = self.expected_end(number).unwrap_or(Time::from_ticks(i64::MIN));
        Some((end, run.cpus.clone()))
    }

    /// Whether jobs heard what they were told of their windows by the daemon before, nobody knows.
    pub(super) fn forget_told_ahead(&mut self) {
        for record in self.records.values_mut() {
            if let Some(run) = record.run.as_mut().filter(|run| run.ahead.is_some()) {
                run.ahead = None;
                self.turn.touched.insert(record.number);
            }
        }
    }

    /// Takes note of windows that began by themselves while nobody scheduled: what is planned for their jobs now is what is left
    /// of these windows, on the processors that they have.
    pub(super) fn note_begun(&mut self, at: Time, critical: Vec<Critical>, round: &mut Round) {
        for mut begun in critical {
            let number = begun.attempt.job;
            let Some(record) = self.records.get(&number) else { continue };
            let ahead = record
                .run
                .as_ref()
                .is_some_and(|run| run.nth == begun.attempt.nth && !run.critical && run.ending.is_none());
            let handover = record.handover(self.setup.handover);
            let Some(job) = self.handles.get(&number).copied().filter(|_| ahead && self.waits(number)) else {
                continue;
            };
            if !self.cpus.take_all_of(&begun.cpus) {
                // Told when another one held them, and never told otherwise: it moves.
                begun.cpus = self.cpus.take(begun.cpus.len() as u64);
            }
            let left = (begun.end + handover - at).max(Span::TICK);
            round.amended.push(Amendment { job, change: Change::Estimate(left) });
            self.turn.begun.insert(number, begun);
        }
    }

    /// What began by itself and could not be started, because another job is overdue there, waits as before.
    pub(super) fn forget_begun(&mut self, now: Now) -> Result<(), EngineError> {
        let mut round = Round::default();
        for (number, begun) in std::mem::take(&mut self.turn.begun) {
            self.cpus.give(&begun.cpus);
            if let (Some(record), Some(job)) = (self.records.get(&number), self.handles.get(&number)) {
                let change = Change::Estimate(record.planned(self.setup.handover));
                round.amended.push(Amendment { job: *job, change });
            }
        }
        if !round.is_empty() {
            self.play_now(now, round)?;
        }
        Ok(())
    }
}

/// The lowest of these processors, if there are so many.
fn take(free: &mut BTreeSet<u32>, count: u64) -> Option<Vec<u32>> {
    let taken: Vec<u32> = free.iter().copied().take(usize::try_from(count).ok()?).collect();
    let enough = taken.len() as u64 == count;
    for cpu in taken.iter().filter(|_| enough) {
        free.remove(cpu);
    }
    enough.then_some(taken)
}

impl Turn {
    /// With its launch, if that is still to be done.
    fn hand_ahead(&mut self, attempt: Attempt, ahead: Ahead) {
        let launch = self.actions.iter_mut().find_map(|(of, action)| match action {
            Action::Launch(launch) if *of == attempt => Some(launch),
            _ => None,
        });
        match launch {
            Some(launch) => launch.ahead = Some(ahead),
            None => self.actions.push((attempt, Action::Ahead(ahead))),
        }
    }
}

impl ToldAhead {
    fn of(ahead: &Ahead) -> ToldAhead {
        ToldAhead { start: ahead.start.ticks(), end: ahead.end.ticks(), cpus: ahead.cpus.clone() }
    }
}
