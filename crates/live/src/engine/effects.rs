//! What comes of a round: for the records, and for the machine.

use std::sync::Arc;

use miserly_core::{Broken, Effect, Refusal, Span, State, Time};

use super::{Action, Attempt, Ending, Engine, Hands, Launch, Record, Run, SavedBroken, Stands, ToldAt};
use crate::clock::Now;
use crate::model::{Failure, Phase};

impl<H: Hands> Engine<H> {
    /// Takes in one effect on a job.
    pub(super) fn take_in(&mut self, now: Now, at: Time, number: i64, effect: Effect) {
        self.turn.touched.insert(number);
        match effect {
            Effect::Started { .. } => self.started(at, number),
            Effect::Promised { latest, .. } => self.told(now, number, latest, None),
            Effect::PromiseBroken { latest, why, .. } => self.told(now, number, latest, Some(why)),
            Effect::Suspended { .. } => self.suspended(at, number),
            Effect::Resumed { .. } => self.resumed(at, number),
            Effect::Requeued { .. } => self.displaced(number),
            Effect::Filled { procs, .. } => self.filled(at, number, procs.get()),
            Effect::Refused { why, .. } => self.refused(now, number, why),
            Effect::Moved { .. } => self.moved(number),
            // The ledger has the plan and the pace; and no policy that resizes or writes out is let in.
            Effect::Planned { .. }
            | Effect::Resized { .. }
            | Effect::Vacated { .. }
            | Effect::Paced { .. } => {}
        }
    }

    fn started(&mut self, at: Time, number: i64) {
        self.running.insert(number);
        let Some(record) = self.records.get_mut(&number) else { return };
        record.started.get_or_insert(at.ticks());
        if let Some((by, why)) = record.lateness(at) {
            self.counts.late += 1;
            record.late = Some((by.ticks(), why));
        }
        self.begin_window(at, number);
    }

    /// Gives a job that has started its processors, and has it run on them. One whose processes of before are not gone yet
    /// waits for that.
    pub(super) fn begin_window(&mut self, at: Time, number: i64) {
        let Some(record) = self.records.get(&number) else { return };
        if record.run.as_ref().is_some_and(|run| run.ending.is_some()) {
            return;
        }
        let whole = Span::from_ticks(record.time);
        let (cpus, end) = match self.turn.begun.remove(&number) {
            Some(begun) => (begun.cpus, begun.end),
            None => (self.cpus_for(number), at + whole),
        };
        let Some(record) = self.records.get_mut(&number) else { return };
        match &mut record.run {
            Some(run) => {
                run.critical = true;
                run.ahead = None;
                run.stopped = false;
                run.cpus.clone_from(&cpus);
                let attempt = Attempt { job: number, nth: run.nth };
                self.turn.actions.push((attempt, Action::Critical { cpus, end }));
            }
            None => self.launch(number, cpus, Some(end)),
        }
    }

    /// Takes the processors of a job that begins, or goes on: those that its policy decided on, or else the lowest that are free.
    pub(super) fn cpus_for(&mut self, number: i64) -> Vec<u32> {
        let Some(record) = self.records.get(&number) else { return vec![] };
        let job = self.handles.get(&number).copied();
        let entry = job.and_then(|job| self.system.ledger_of(job)?.get(job));
        match entry.and_then(|entry| entry.placement()?.pes()) {
            Some(pes) if self.takes_turns(&record.queue) => self.cpus.take_shared(&record.queue, pes),
            Some(pes) if self.cpus.has_own(&record.queue) => self.cpus.take_named(&record.queue, pes),
            _ => self.cpus.take(record.submission.cpus),
        }
    }

    /// Starts the processes of a job, as another attempt.
    pub(super) fn launch(&mut self, number: i64, cpus: Vec<u32>, end: Option<Time>) {
        let all = self.setup.early_cpus.clone();
        let in_turns = self.records.get(&number).is_some_and(|record| self.takes_turns(&record.queue));
        let Some(record) = self.records.get_mut(&number) else { return };
        record.attempts += 1;
        let nth = record.attempts;
        record.run = Some(Run {
            nth,
            cpus: cpus.clone(),
            critical: end.is_some(),
            stopped: false,
            ahead: None,
            ending: None,
        });
        let launch = Launch {
            submission: Arc::clone(&record.submission),
            name: record.name.clone(),
            array: record.array,
            uid: record.uid,
            output: super::paths::output(record),
            error: record.submission.error.is_some().then(|| super::paths::error(record)),
            memory: record.memory,
            cpus: if end.is_some() { cpus } else { all },
            end,
            ahead: None,
            grace: record.grace(self.setup.grace),
            alone: self.setup.alone,
            limit: in_turns.then(|| record.limit()),
        };
        self.turn.touched.insert(number);
        self.turn.actions.push((Attempt { job: number, nth }, Action::Launch(Box::new(launch))));
    }

    /// It runs on what is idle, or not at all, until its window begins.
    fn filled(&mut self, at: Time, number: i64, procs: u64) {
        let Some(record) = self.records.get_mut(&number) else { return };
        let Some(run) = &mut record.run else {
            if procs > 0 {
                record.started.get_or_insert(at.ticks());
                self.launch(number, vec![], None);
            }
            return;
        };
        if run.ending.is_some() || run.stopped == (procs == 0) {
            return;
        }
        run.stopped = procs == 0;
        let action = if run.stopped { Action::Stop } else { Action::Continue };
        self.turn.actions.push((Attempt { job: number, nth: run.nth }, action));
    }

    fn told(&mut self, now: Now, number: i64, latest: Time, broken: Option<Broken>) {
        if broken.is_some() && self.turn.begun.contains_key(&number) {
            // Its window began by itself when it was promised to; only the ledger comes late.
            return;
        }
        let Some(record) = self.records.get_mut(&number) else { return };
        match broken {
            Some(_) => self.counts.broken += 1,
            None if record.told.is_empty() => self.counts.promises += 1,
            None => {}
        }
        let broken = broken.map(SavedBroken::of);
        record.told.push(ToldAt { at: now.wall.as_microsecond(), start: latest.ticks(), broken });
    }

    fn suspended(&mut self, at: Time, number: i64) {
        self.running.remove(&number);
        let end = self.end_if_resumed(at, number);
        let Some(run) = self.records.get_mut(&number).and_then(|record| record.run.as_mut()) else { return };
        run.stopped = true;
        self.cpus.give(&std::mem::take(&mut run.cpus));
        let attempt = Attempt { job: number, nth: run.nth };
        self.turn.actions.push((attempt, Action::Stop));
        // Its window goes on when it does; until then it must not end.
        self.turn.actions.extend(end.map(|end| (attempt, end)));
    }

    /// When a suspended job is over at the latest, also if it goes on by itself because no daemon is there, and how long it goes on then.
    pub(super) fn end_if_resumed(&self, at: Time, number: i64) -> Option<Action> {
        let job = self.handles.get(&number)?;
        let entry = self.system.ledger_of(*job)?.entry(*job);
        let State::Suspended { until, .. } = entry.state else { return None };
        let record = self.records.get(&number)?;
        let left = entry.left(at, record.submission.cpus.into()) - record.handover(self.setup.handover);
        Some(Action::EndAlone { end: until + self.setup.alone + left, left })
    }

    fn resumed(&mut self, at: Time, number: i64) {
        self.running.insert(number);
        let end = self.window_end(number).unwrap_or(at);
        let cpus = self.cpus_for(number);
        let Some(run) = self.records.get_mut(&number).and_then(|record| record.run.as_mut()) else { return };
        run.stopped = false;
        run.cpus.clone_from(&cpus);
        let attempt = Attempt { job: number, nth: run.nth };
        self.turn.actions.push((attempt, Action::Critical { cpus, end }));
        self.turn.actions.push((attempt, Action::Continue));
    }

    /// Its policy took it off the machine: it starts from the beginning when its turn comes again.
    fn displaced(&mut self, number: i64) {
        self.running.remove(&number);
        let Some(record) = self.records.get_mut(&number) else { return };
        record.started = None;
        let Some(run) = &mut record.run else { return };
        self.cpus.give(&std::mem::take(&mut run.cpus));
        run.ending = Some(Ending::Displaced);
        let attempt = Attempt { job: number, nth: run.nth };
        let kill = self.kill(Ending::Displaced);
        self.turn.actions.push((attempt, kill));
    }

    fn refused(&mut self, now: Now, number: i64, why: Refusal) {
        let message = refusal(why).to_owned();
        self.finish(number, Phase::Failed { at: now.wall, why: Failure::Refused, message });
    }

    /// The job is over.
    pub(super) fn finish(&mut self, number: i64, phase: Phase) {
        let Some(mut record) = self.records.remove(&number) else { return };
        self.running.remove(&number);
        self.tied.remove(&number);
        if let Some(run) = record.run.take() {
            self.cpus.give(&run.cpus);
            self.turn.actions.push((Attempt { job: number, nth: run.nth }, Action::Forget));
        }
        record.entry = None;
        record.stands = Stands::Over(Box::new(phase));
        if let Some(job) = self.handles.get(&number).copied()
            && self.system.queue_of(job).is_none()
        {
            self.drop_handle(job);
        }
        self.turn.over.insert(number, record);
    }
}

impl Record {
    /// By how much a start now is later than what was promised before the promise was broken, and why.
    fn lateness(&self, at: Time) -> Option<(Span, SavedBroken)> {
        let broken = self.told.iter().position(|told| told.broken.is_some())?;
        let promised = self.told.get(broken.checked_sub(1)?)?;
        let by = at - Time::from_ticks(promised.start);
        (by > Span::ZERO).then_some((by, self.told[broken].broken?))
    }
}

/// Why a job will never start, in words.
pub(super) const fn refusal(why: Refusal) -> &'static str {
    match why {
        Refusal::BeyondClasses => "it asks for more than the largest of the policy's job classes",
        Refusal::TooLarge => "it asks for more than its queue's pool ever has",
        Refusal::NoWindow => "there is no window for it within the queue's horizon",
        Refusal::Deadline => "there is no window for it that ends by its deadline",
    }
}
