//! What the scheduler did with the jobs, played by the machine.

use miserly_core::{
    Effect, Entry, Expected, Holds, JobId, Placement, Reason, Refusal, Resources, State, Time,
};

use super::live::{Here, Started};
use super::{RunError, Simulation, entry};
use crate::filling::Filling;
use crate::finished::Observer;
use crate::slices::Turns;

impl Simulation {
    /// Plays the machine: what the scheduler started runs, and will end.
    pub(super) fn apply(&mut self, now: Time, observers: &mut [&mut dyn Observer]) -> Result<(), RunError> {
        let mut effects = std::mem::take(&mut self.effects);
        self.vacate(now, &effects);
        for effect in effects.drain(..) {
            let Some(live) = &self.live[effect.job().index()] else { continue };
            for observer in observers.iter_mut() {
                observer.effect(now, live.request.number, &effect);
            }
            match effect {
                Effect::Refused { job, why } => self.refuse(now, job, why, observers)?,
                _ => self.play(now, effect)?,
            }
        }
        self.effects = effects;
        Ok(())
    }

    /// Does with a job what the scheduler did; it stays in the system.
    fn play(&mut self, now: Time, effect: Effect) -> Result<(), RunError> {
        let job = effect.job();
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        match effect {
            Effect::Started { reason, .. } => return self.start(now, job, reason),
            Effect::Resumed { .. } => {
                live.interrupted.go_on(now, entry(&self.system, live.queue, job).reading(now));
                return self.go_on(now, job);
            }
            Effect::Resized { .. } | Effect::Moved { .. } => return self.go_on(now, job),
            Effect::Filled { procs, .. } => return self.go_ahead(now, job, procs.get()),
            Effect::Paced { .. } => {
                live.see_turns(now, entry(&self.system, live.queue, job));
                return self.expect_end(now, job);
            }
            Effect::Suspended { .. } => {
                live.suspend(now);
                self.due.cancel(job);
            }
            Effect::Requeued { lost, .. } => {
                live.requeue(now, lost, &mut self.pes);
                self.due.cancel(job);
            }
            Effect::Vacated { .. } => live.interrupted.written(now),
            Effect::Promised { latest, .. } => {
                live.promised.get_or_insert(latest);
            }
            Effect::PromiseBroken { .. } => live.broken = true,
            Effect::Planned { .. } | Effect::Refused { .. } => {}
        }
        Ok(())
    }

    /// Lets a job run as it lies now.
    fn start(&mut self, now: Time, job: JobId, reason: Reason) -> Result<(), RunError> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        live.started = Some(Started { at: now, reason, rank: self.starts, outlives: false });
        self.load.fill(live.filling.as_mut(), now, 0);
        self.starts += 1;
        let ledger = self.system.queues()[live.queue].ledger();
        live.turns = ledger.matrix().map(|_| Turns::start(now, &self.rows[live.queue]));
        live.see_turns(now, ledger.entry(job));
        self.go_on(now, job)
    }

    /// Takes a job out of the system that will never start.
    fn refuse(
        &mut self,
        now: Time,
        job: JobId,
        why: Refusal,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), RunError> {
        let Some(live) = self.live[job.index()].take() else { return Ok(()) };
        for observer in observers.iter_mut() {
            observer.refused(now, &live.request, why)?;
        }
        self.unused.push(job);
        Ok(())
    }

    /// Takes the numbers of their processors from all jobs that the round moved, before anybody is given new ones:
    /// the ledger shows where they lie after its last pass only.
    fn vacate(&mut self, now: Time, effects: &[Effect]) {
        for effect in effects {
            let Some(live) = &mut self.live[effect.job().index()] else { continue };
            let moves = match effect {
                // Not yet, if it is being written out.
                Effect::Suspended { job } => !is_written_out(entry(&self.system, live.queue, *job)),
                Effect::Vacated { .. }
                | Effect::Resized { .. }
                | Effect::Moved { .. }
                | Effect::Requeued { .. }
                | Effect::Filled { .. }
                | Effect::Started { .. } => true,
                _ => false,
            };
            if moves {
                live.leave(now, &mut self.pes);
            }
        }
    }

    /// Notes where a job is now that runs on, and when it is due next.
    fn go_on(&mut self, now: Time, job: JobId) -> Result<(), RunError> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        let entry = entry(&self.system, live.queue, job);
        // Somebody may have taken its processors in this very round, and it has them until it is written out.
        if is_written_out(entry) || matches!(entry.state, State::Running { .. }) {
            live.come(now, entry, &mut self.pes);
        }
        self.expect_end(now, job)
    }

    /// Enters when a running job is due next, as it lies now: its end, or before that the end of its estimate.
    ///
    /// A quantum that it does not end in is the scheduler's to end. It does not end in one either if its memory is
    /// too small for it.
    fn expect_end(&mut self, now: Time, job: JobId) -> Result<(), RunError> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        let ledger = self.system.queues()[live.queue].ledger();
        let entry = ledger.entry(job);
        let State::Running { expected, quantum, ref placement, .. } = entry.state else { return Ok(()) };
        let end = now + live.left(now, entry);
        let short_of_memory = quantum.is_some() && live.outgrows(placement, ledger.machine());
        let Some(started) = &mut live.started else { return Ok(()) };
        match (quantum, expected) {
            (Some(until), _) if end > until || short_of_memory => {
                self.due.cancel(job);
            }
            (_, Expected::At(planned)) if end > planned => {
                started.outlives = true;
                self.due.push(job, planned, started.rank);
            }
            _ if end == Time::MAX => return Err(RunError::TooLong { job: live.request.number }),
            _ => {
                started.outlives = false;
                self.due.push(job, end, started.rank);
            }
        }
        Ok(())
    }

    /// Lets a waiting job run on so many idle processors from now on, or parks it.
    fn go_ahead(&mut self, now: Time, job: JobId, procs: u64) -> Result<(), RunError> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        self.load.fill(Some(live.filling.get_or_insert_with(|| Filling::since(now))), now, procs);
        if procs == 0 {
            self.due.cancel(job);
            return Ok(());
        }
        live.stay = self.pes.as_mut().map(|pes| {
            let placement = Placement::on_plain(Resources::cpus(procs));
            let had = pes.take(live.queue, &placement);
            Here { from: now, worked_from: now, worked_to: None, placement, had }
        });
        let end = now + live.left(now, entry(&self.system, live.queue, job));
        if end == Time::MAX {
            return Err(RunError::TooLong { job: live.request.number });
        }
        self.due.push(job, end, self.starts);
        self.starts += 1;
        Ok(())
    }
}

/// Whether a job keeps its processors although it is suspended.
fn is_written_out(entry: &Entry) -> bool {
    matches!(entry.state, State::Suspended { holds: Holds::All { .. }, .. })
}
