//! The effects of decisions on the machine.

use miserly_core::{
    Effect, Entry, Expected, Holds, JobId, Placement, Procs, Refusal, Resources, StartReason, State, Time,
};

use super::live::{Allocated, Due, Started};
use super::{RunError, Simulation, entry};
use crate::finished::Observer;
use crate::opportunistic::BeforeStart;
use crate::slices::Turns;

impl Simulation {
    /// Applies the effects of the round: jobs that started run, and will end.
    pub(super) fn apply<E>(
        &mut self,
        now: Time,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), RunError<E>> {
        let mut effects = std::mem::take(&mut self.effects);
        self.release_moved(now, &effects);
        for effect in effects.drain(..) {
            let Some(live) = &self.live[effect.job().index()] else { continue };
            for observer in observers.iter_mut() {
                observer.effect(now, live.request.number, &effect);
            }
            match effect {
                Effect::Refused { job, why } => self.refuse(now, job, why, observers)?,
                _ => self.apply_one(now, effect)?,
            }
        }
        self.effects = effects;
        Ok(())
    }

    /// Applies an effect on a job that remains in the system.
    fn apply_one<E>(&mut self, now: Time, effect: Effect) -> Result<(), RunError<E>> {
        let job = effect.job();
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        match effect {
            Effect::Started { reason, .. } => return self.start(now, job, reason),
            Effect::Resumed { .. } => {
                live.interrupted.go_on(now, entry(&self.system, live.queue, job).reading(now));
                return self.continue_run(now, job);
            }
            Effect::Resized { .. } | Effect::Moved { .. } => return self.continue_run(now, job),
            Effect::OpportunisticProcs { procs, .. } => return self.run_opportunistically(now, job, procs),
            Effect::EndMoved { .. } => return self.expect_end(now, job),
            Effect::PaceChanged { .. } => {
                live.record_slots(now, entry(&self.system, live.queue, job));
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
            Effect::SwappedOut { .. } => live.interrupted.written(now),
            Effect::Promised { latest, .. } => {
                live.promised.get_or_insert(latest);
                live.reserve(now, latest);
            }
            Effect::PromiseBroken { .. } => live.broken = true,
            Effect::Planned { start, .. } => live.reserve(now, start),
            Effect::Refused { .. } => {}
        }
        Ok(())
    }

    /// Starts a job.
    fn start<E>(&mut self, now: Time, job: JobId, reason: StartReason) -> Result<(), RunError<E>> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        live.started = Some(Started { at: now, reason, rank: self.starts, due: Due::End });
        self.load.set_opportunistic_procs(live.opportunistic.as_mut(), now, Procs::ZERO);
        self.starts += 1;
        let ledger = self.system.queues()[live.queue].ledger();
        live.turns = ledger.matrix().map(|_| Turns::start(now, &self.slots[live.queue]));
        live.record_slots(now, ledger.entry(job));
        live.note_device_type(ledger.entry(job), ledger.machine());
        self.continue_run(now, job)
    }

    /// Removes a job that will never start.
    fn refuse<E>(
        &mut self,
        now: Time,
        job: JobId,
        why: Refusal,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(), RunError<E>> {
        let Some(mut live) = self.live[job.index()].take() else { return Ok(()) };
        live.release(now, &mut self.pes);
        for observer in observers.iter_mut() {
            if !live.allocations.is_empty() {
                observer.removed(live.admission, &live.request, &live.allocations);
            }
            observer.refused(now, &live.request, why)?;
        }
        self.feedback.ended(live.request.number, now);
        self.unused.push(job);
        Ok(())
    }

    /// Ends the allocations of all jobs that the round moved, before any new allocation.
    ///
    /// The ledger only has the placements after its last pass.
    fn release_moved(&mut self, now: Time, effects: &[Effect]) {
        for effect in effects {
            let Some(live) = &mut self.live[effect.job().index()] else { continue };
            let moves = match effect {
                // Not yet, if it is being swapped out.
                Effect::Suspended { job } => !is_written_out(entry(&self.system, live.queue, *job)),
                Effect::SwappedOut { .. }
                | Effect::Resized { .. }
                | Effect::Moved { .. }
                | Effect::Requeued { .. }
                | Effect::OpportunisticProcs { .. }
                | Effect::Refused { .. }
                | Effect::Started { .. } => true,
                _ => false,
            };
            if moves {
                live.release(now, &mut self.pes);
            }
        }
    }

    /// Records the allocation of a running job, and its next event.
    fn continue_run<E>(&mut self, now: Time, job: JobId) -> Result<(), RunError<E>> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        let entry = entry(&self.system, live.queue, job);
        // Another job may get its processors in this round; it holds them until it is swapped out.
        if is_written_out(entry) || matches!(entry.state, State::Running { .. }) {
            live.allocate(now, entry, &mut self.pes);
        }
        self.expect_end(now, job)
    }

    /// Schedules the next event of a running job: its end, or before that the end of its estimate.
    ///
    /// The scheduler ends a quantum in which the job does not end, and one with too little memory
    /// for it.
    pub(super) fn expect_end<E>(&mut self, now: Time, job: JobId) -> Result<(), RunError<E>> {
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
                started.due = Due::EndOfEstimate;
                self.due.push(job, planned, started.rank);
            }
            _ if end == Time::MAX => return Err(RunError::TooLong { job: live.request.number }),
            _ => {
                started.due = Due::End;
                self.due.push(job, end, started.rank);
            }
        }
        Ok(())
    }

    /// Runs a waiting job on `procs` idle processors from now on, or parks it.
    fn run_opportunistically<E>(&mut self, now: Time, job: JobId, procs: Procs) -> Result<(), RunError<E>> {
        let Some(live) = &mut self.live[job.index()] else { return Ok(()) };
        self.load.set_opportunistic_procs(
            Some(live.opportunistic.get_or_insert_with(|| BeforeStart::since(now))),
            now,
            procs,
        );
        if procs.is_zero() {
            self.due.cancel(job);
            return Ok(());
        }
        live.allocated = self.pes.as_mut().map(|pes| {
            let placement = Placement::on_plain(Resources::cpus(procs));
            let had = pes.take(live.queue, &placement);
            Allocated { from: now, worked_from: now, worked_to: None, placement, had }
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

/// Returns whether a suspended job holds its processors.
fn is_written_out(entry: &Entry) -> bool {
    matches!(entry.state, State::Suspended { holds: Holds::All { .. }, .. })
}
