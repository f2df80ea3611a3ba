//! Follows one job through a run.

use miserly_core::{Effect, JobNumber, Request, Time};
use miserly_sim::{Finished, Observer, Standing};

use super::story::{Move, MoveKind, Passer, Story};

/// Follows one job through a run.
pub(super) struct Watch {
    job: JobNumber,
    /// Free processors and waiting jobs after the last instant.
    before: (u64, usize),
    pub(super) story: Option<Story>,
    /// The jobs submitted after ours that have not started yet.
    behind: Vec<Request>,
}

impl Watch {
    /// Of a job on an idle machine of `procs` processors.
    pub(super) fn of(job: JobNumber, procs: u64) -> Watch {
        Watch { job, before: (procs, 0), story: None, behind: Vec::new() }
    }

    pub(super) fn over(&self) -> bool {
        self.story.as_ref().is_some_and(|story| story.end.is_some())
    }
}

impl Observer for Watch {
    fn submitted(&mut self, _now: Time, request: &Request) {
        match &self.story {
            None if request.number == self.job => {
                let (free, waiting) = self.before;
                let request = request.clone();
                self.story = Some(Story {
                    request,
                    free,
                    waiting,
                    moves: vec![],
                    passed_by: vec![],
                    start: None,
                    end: None,
                });
            }
            Some(story) if story.start.is_none() => self.behind.push(request.clone()),
            _ => {}
        }
    }

    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        let Some(story) = &mut self.story else { return };
        if job != self.job {
            if let (Effect::Started { reason, .. }, None) = (effect, story.start)
                && let Some(place) = self.behind.iter().position(|request| request.number == job)
            {
                let request = self.behind.swap_remove(place);
                story.passed_by.push(Passer { request, start: now, reason: *reason });
            }
            return;
        }
        let (start, kind) = match *effect {
            Effect::Started { reason, .. } => {
                story.start.get_or_insert((now, reason));
                return;
            }
            Effect::Promised { latest, .. } => (latest, MoveKind::Promised),
            Effect::Planned { start, .. } => (start, MoveKind::Planned),
            Effect::PromiseBroken { latest, why, .. } => (latest, MoveKind::Broken(why)),
            _ => return,
        };
        // Under an overdue job a broken promise moves on with every event: the first and the last say enough.
        if let (MoveKind::Broken(_), [.., before, last]) = (kind, &mut story.moves[..])
            && matches!((before.kind, last.kind), (MoveKind::Broken(_), MoveKind::Broken(_)))
        {
            *last = Move { at: now, start, kind };
            return;
        }
        story.moves.push(Move { at: now, start, kind });
    }

    fn instant(&mut self, _now: Time, standing: Standing) {
        self.before = (standing.free, standing.waiting);
    }

    fn finished(&mut self, job: &Finished) -> std::io::Result<()> {
        // What ended in the instant of the submission was free for the job, though told after it.
        if let Some(story) = &mut self.story
            && job.end == story.request.submit
            && job.start < job.end
            && story.start.is_none()
        {
            story.free += job.request.procs();
        }
        if let Some(story) = self.story.as_mut().filter(|_| job.request.number == self.job) {
            story.end.get_or_insert((job.end, job.killed));
        }
        Ok(())
    }
}
