//! Several queues, each with a pool of its own.

use crate::opportunistic::OpportunisticLayer;
use crate::{Driver, Effect, JobId, Ledger, OpportunisticConfig, Round, Time, Violation};

/// The queues of a machine: each a pool, which is a ledger of its own, and a policy (Miser §3.1, Figure 1).
///
/// The pools never sum to more than the machine has, so what one queue does in its pool is no concern of the others. A
/// machine without queues is a system of one.
pub struct System {
    queues: Vec<Driver>,
    /// Opportunistic work, if there is to be any.
    layer: Option<OpportunisticLayer>,
    /// The part of a round that concerns one queue.
    part: Round,
}

impl System {
    /// These queues; a request names its queue by position, and any number beyond them, or none, means the first.
    pub fn new(queues: Vec<Driver>) -> System {
        System { queues, layer: None, part: Round::default() }
    }

    /// The same, with jobs that were promised a start running ahead of it on what is idle.
    #[must_use]
    pub fn filling(self, filler: OpportunisticConfig) -> System {
        let layer = Some(OpportunisticLayer::over(filler, &self.queues));
        System { layer, ..self }
    }

    /// The queues, in order.
    pub fn queues(&self) -> &[Driver] {
        &self.queues
    }

    /// The queues, in order, to be told of something that is not an event.
    pub fn queues_mut(&mut self) -> &mut [Driver] {
        &mut self.queues
    }

    /// The position of the queue that the job is in.
    pub fn queue_of(&self, job: JobId) -> Option<usize> {
        self.queues.iter().position(|queue| queue.ledger().get(job).is_some())
    }

    /// The ledger that has the job.
    pub fn ledger_of(&self, job: JobId) -> Option<&Ledger> {
        self.queue_of(job).map(|queue| self.queues[queue].ledger())
    }

    /// When some policy wants a round, or a job that runs ahead of its start has to be parked, if nothing happens before.
    pub fn wake(&self) -> Option<Time> {
        let parking = self.layer.as_ref().and_then(OpportunisticLayer::wake);
        self.queues.iter().filter_map(Driver::wake).chain(parking).min()
    }

    /// Plays one round in each queue that something happens in, in the order of the queues.
    ///
    /// # Errors
    /// As [`Driver::round`]. A job that no queue has is the first queue's to refuse.
    pub fn round(
        &mut self,
        now: Time,
        round: &mut Round,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        let told = effects.len();
        if let Some(layer) = &mut self.layer {
            layer.hear(round);
        }
        self.round_in_queues(now, round, effects)?;
        if let Some(layer) = &mut self.layer {
            layer.fill(now, &mut self.queues, effects, told);
        }
        Ok(())
    }

    fn round_in_queues(
        &mut self,
        now: Time,
        round: &mut Round,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        if let ([only], None) = (&mut self.queues[..], &self.layer) {
            return only.round(now, round, effects);
        }
        let of_jobs = self.sorted(round);
        for (at, mine) in of_jobs.into_iter().enumerate() {
            self.part = mine;
            let queue = &mut self.queues[at];
            let due = queue.wake().is_some_and(|wake| wake <= now);
            if due || !self.part.is_empty() {
                queue.round(now, &mut self.part, effects)?;
            }
        }
        Ok(())
    }

    /// The round, queue by queue; it is left empty.
    fn sorted(&self, round: &mut Round) -> Vec<Round> {
        let fault = |queue| round.fault.filter(|fault| fault.concerns(queue));
        let part = |queue| Round { fault: fault(queue), ..Round::default() };
        let mut parts: Vec<Round> = (0..).take(self.queues.len()).map(part).collect();
        let of = |job| self.queue_of(job).unwrap_or(0);
        for ended in round.ended.drain(..) {
            parts[of(ended.job)].ended.push(ended);
        }
        for job in round.overdue.drain(..) {
            parts[of(job)].overdue.push(job);
        }
        for job in round.withdrawn.drain(..) {
            parts[of(job)].withdrawn.push(job);
        }
        for amendment in round.amended.drain(..) {
            parts[of(amendment.job)].amended.push(amendment);
        }
        for submission in round.submitted.drain(..) {
            let named = submission.request.queue.and_then(|queue| usize::try_from(queue).ok());
            let queue = named.filter(|queue| *queue < parts.len()).unwrap_or(0);
            parts[queue].submitted.push(submission);
        }
        round.clear();
        parts
    }
}

/// Returns the position, among `queues` queues, of the queue that has that number in a log.
///
/// The first queue has number 1. No number, or one that no queue has, means the first queue.
pub fn queue_position(number: Option<u32>, queues: usize) -> usize {
    let position = number.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
    position.filter(|position| *position < queues).unwrap_or(0)
}
