//! An observer that follows one job through a run.

use miserly_core::{Driver, Effect, JobId, JobNumber, Ledger, Procs, Request, System, Time};
use miserly_sim::{Finished, Observer, SystemSnapshot};

use super::held::Held;
use super::story::{End, Event, MoveKind, Passer, SlotShare, Story, What};
use super::why::{EndedJob, WaitReason};

/// An observer that follows one job through a run.
pub(super) struct Watch {
    job: JobNumber,
    /// The submissions under this number that precede the followed one.
    earlier: usize,
    /// Free processors and waiting jobs after the last instant.
    before: (Procs, usize),
    pub(super) story: Option<Story>,
    /// The jobs that hold processors while it waits.
    pub(super) held: Held,
    /// The queue in which it waits, if it does not start at its submission.
    queue: Option<usize>,
    /// Whether it waits in the queue, or is not submitted yet.
    waits: bool,
    /// The jobs submitted after ours that have not started yet.
    behind: Vec<Request>,
    /// Its handle in the ledger, from its start on.
    handle: Option<JobId>,
    /// The jobs that ended at the present instant.
    ended: (Time, Vec<EndedJob>),
    /// Its slots after the last instant.
    slots: Option<SlotShare>,
}

impl Watch {
    /// Returns the observer of a job on an idle machine of `procs` processors: of the submission under its number behind so
    /// many `earlier` ones.
    pub(super) fn new(job: JobNumber, earlier: usize, procs: Procs) -> Watch {
        let before = (procs, 0);
        Watch {
            job,
            earlier,
            before,
            story: None,
            held: Held::default(),
            queue: None,
            waits: true,
            behind: Vec::new(),
            handle: None,
            ended: (Time::ZERO, Vec::new()),
            slots: None,
        }
    }

    pub(super) fn over(&self) -> bool {
        self.story.as_ref().is_some_and(|story| story.end.is_some())
    }
}

impl Observer for Watch {
    fn submitted(&mut self, _now: Time, request: &Request) {
        match &self.story {
            None if request.number == self.job && self.earlier > 0 => self.earlier -= 1,
            None if request.number == self.job => {
                let (free, waiting) = self.before;
                let request = request.clone();
                self.story = Some(Story {
                    request,
                    free,
                    waiting,
                    reason: None,
                    made_room: vec![],
                    events: vec![],
                    passed_by: vec![],
                    end: None,
                    opportunistic: None,
                });
            }
            None => {}
            // It may return to the queue.
            Some(_) => self.behind.push(request.clone()),
        }
    }

    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        self.held.effect(job, effect);
        let Some(story) = &mut self.story else { return };
        if job != self.job {
            if let Effect::Started { reason, .. } = effect
                && let Some(place) = self.behind.iter().position(|request| request.number == job)
            {
                let request = self.behind.swap_remove(place);
                if self.waits {
                    story.passed_by.push(Passer { request, start: now, reason: *reason });
                }
            }
            return;
        }
        let what = match *effect {
            Effect::Started { reason, .. } => What::Started(reason),
            Effect::Promised { latest, .. } => What::Moved(latest, MoveKind::Promised),
            Effect::Planned { start, .. } => What::Moved(start, MoveKind::Planned),
            Effect::PromiseBroken { latest, why, .. } => What::Moved(latest, MoveKind::BreachCause(why)),
            Effect::Suspended { .. } => What::Suspended,
            Effect::SwappedOut { .. } => What::SwappedOut,
            Effect::Resumed { .. } => What::Resumed,
            Effect::Resized { procs, .. } => What::Resized(procs),
            Effect::Moved { .. } => What::Remapped,
            // The ledger has the number of slots in which it runs.
            Effect::PaceChanged { .. } | Effect::EndMoved { .. } => return,
            Effect::Requeued { lost, .. } => What::Requeued(lost),
            Effect::OpportunisticProcs { procs, .. } => What::Opportunistic(procs),
            Effect::Refused { why, .. } => {
                story.end.get_or_insert((now, End::Refused(why)));
                return;
            }
        };
        match what {
            What::Started(_) => {
                if story.start().is_none() && story.request.submit < now && self.ended.0 == now {
                    story.made_room = std::mem::take(&mut self.ended.1);
                }
                (self.waits, self.handle) = (false, Some(effect.job()));
            }
            What::Requeued(_) => (self.waits, self.slots) = (true, None),
            _ => {}
        }
        story.note(Event { at: now, what });
    }

    fn instant(&mut self, _now: Time, snapshot: SystemSnapshot) {
        self.before = (snapshot.free, snapshot.waiting);
    }

    fn system(&mut self, now: Time, system: &System) {
        let Some(story) = &mut self.story else { return };
        if story.request.submit == now {
            story.reason = WaitReason::find(now, system, self.job);
            self.queue = queue(system, self.job);
        }
        if let Some(queue) = self.queue {
            let waits = story.start().is_none();
            self.held.round(now, system.queues()[queue].ledger(), waits);
        }
        let Some(handle) = self.handle else { return };
        let mut ledgers = system.queues().iter().map(Driver::ledger);
        let slots = ledgers.find_map(|ledger| slots(ledger, handle, self.job));
        if let Some(what) = slots.filter(|_| slots != self.slots).map(What::Slots) {
            story.note(Event { at: now, what });
            self.slots = slots;
        }
    }

    fn finished(&mut self, job: &Finished) -> std::io::Result<()> {
        self.held.finished(job);
        if self.ended.0 != job.end {
            self.ended = (job.end, Vec::new());
        }
        self.ended.1.push(EndedJob::new(job));
        // A job that ended at the submission left its processors free, though the report of its end
        // comes later.
        if let Some(story) = &mut self.story
            && job.end == story.request.submit
            && job.start < job.end
            && story.start().is_none()
        {
            story.free += job.request.procs();
        }
        let is_ours =
            |story: &&mut Story| job.request.number == self.job && job.request.submit == story.request.submit;
        if let Some(story) = self.story.as_mut().filter(is_ours) {
            story.opportunistic = job.opportunistic;
            let how = if job.killed { End::KilledAtEstimate } else { End::Done };
            story.end.get_or_insert((job.end, how));
        }
        Ok(())
    }
}

/// Returns the queue in which a job waits.
fn queue(system: &System, number: JobNumber) -> Option<usize> {
    system.queues().iter().position(|queue| {
        let ledger = queue.ledger();
        ledger.waiting().any(|job| ledger.request(job).number == number)
    })
}

/// Returns the slots of a time-sliced job with this handle and this number.
fn slots(ledger: &Ledger, handle: JobId, number: JobNumber) -> Option<SlotShare> {
    let entry = ledger.get(handle).filter(|entry| entry.request.number == number)?;
    let (slot, used) = (entry.placement()?.slot, ledger.matrix()?.used());
    Some(SlotShare { slot, runs_in: 1 + entry.alternate_slots.len(), used })
}

impl Story {
    /// Adds an event. Under an overdue job, a broken promise moves at every event: the first and
    /// the last are kept. An instant may have several rounds: the slots after the last count.
    fn note(&mut self, event: Event) {
        let broken = |event: &Event| matches!(event.what, What::Moved(_, MoveKind::BreachCause(_)));
        let slots = |event: &Event| matches!(event.what, What::Slots(_));
        match &mut self.events[..] {
            [.., before, last] if broken(before) && broken(last) && broken(&event) => *last = event,
            [.., last] if slots(last) && slots(&event) && last.at == event.at => *last = event,
            _ => self.events.push(event),
        }
    }
}

#[cfg(test)]
mod tests;
