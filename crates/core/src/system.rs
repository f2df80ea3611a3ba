//! Several queues, each with a pool of its own.

use crate::opportunistic::OpportunisticLayer;
use crate::{Driver, Effect, JobId, Ledger, OpportunisticConfig, Round, Time, Violation};

/// The queues of a machine. Each has a policy and a pool, which is a ledger of its own (Miser §3.1,
/// Figure 1).
///
/// The pools never sum to more than the machine has, so queues are independent of each other. A
/// machine without queues is a system of one queue.
pub struct System {
    queues: Vec<Driver>,
    /// Opportunistic jobs, if they are enabled.
    layer: Option<OpportunisticLayer>,
    /// The part of a round that concerns one queue.
    part: Round,
}

/// The next wake-ups of the parts of a [`System`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WakeUps {
    /// That of each policy, in the order of the queues.
    pub queues: Vec<Option<Time>>,
    /// That of the opportunistic layer.
    pub opportunistic: Option<Time>,
}

impl System {
    /// Returns a system of these queues.
    ///
    /// A request names its queue by position. No position, or one beyond the queues, means the
    /// first queue.
    pub fn new(queues: Vec<Driver>) -> System {
        System { queues, layer: None, part: Round::default() }
    }

    /// Returns the system with opportunistic jobs: jobs with a promised start also run ahead of it
    /// on idle resources.
    #[must_use]
    pub fn with_opportunistic(self, config: OpportunisticConfig) -> System {
        let layer = Some(OpportunisticLayer::new(config, &self.queues));
        System { layer, ..self }
    }

    /// Returns the queues, in order.
    pub fn queues(&self) -> &[Driver] {
        &self.queues
    }

    /// Returns the queues, in order, for changes that are not events.
    pub fn queues_mut(&mut self) -> &mut [Driver] {
        &mut self.queues
    }

    /// Returns the position of the queue of the job.
    pub fn queue_of(&self, job: JobId) -> Option<usize> {
        self.queues.iter().position(|queue| queue.ledger().get(job).is_some())
    }

    /// Returns the ledger that has the job.
    pub fn ledger_of(&self, job: JobId) -> Option<&Ledger> {
        self.queue_of(job).map(|queue| self.queues[queue].ledger())
    }

    /// Returns the next wake-up of a policy or of the opportunistic layer, if nothing happens
    /// before.
    pub fn wake(&self) -> Option<Time> {
        let parking = self.layer.as_ref().and_then(OpportunisticLayer::wake);
        self.queues.iter().filter_map(Driver::wake).chain(parking).min()
    }

    /// Returns the wake-ups of the policies and of the opportunistic layer. A ledger does not have
    /// them.
    pub fn wake_ups(&self) -> WakeUps {
        WakeUps {
            queues: self.queues.iter().map(Driver::wake).collect(),
            opportunistic: self.layer.as_ref().and_then(OpportunisticLayer::wake),
        }
    }

    /// Continues restored queues after the round at `last`, with the wake-ups of that time.
    pub fn resume(&mut self, last: Time, wake_ups: &WakeUps) {
        for (at, queue) in self.queues.iter_mut().enumerate() {
            queue.resume(last, wake_ups.queues.get(at).copied().flatten());
        }
        if let Some(layer) = &mut self.layer {
            layer.resume(wake_ups.opportunistic);
        }
    }

    /// Plays one round in each queue with an event or a due wake-up, in the order of the queues.
    ///
    /// # Errors
    /// As [`Driver::round`]. The first queue rejects a job that is in no queue.
    pub fn round(
        &mut self,
        now: Time,
        round: &mut Round,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Violation> {
        let first = effects.len();
        if let Some(layer) = &mut self.layer {
            layer.observe(round);
        }
        self.round_in_queues(now, round, effects)?;
        if let Some(layer) = &mut self.layer {
            layer.assign(now, &mut self.queues, effects, first);
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
        let parts = self.parts(round);
        for (at, mine) in parts.into_iter().enumerate() {
            self.part = mine;
            let queue = &mut self.queues[at];
            let due = queue.wake().is_some_and(|wake| wake <= now);
            if due || !self.part.is_empty() {
                let played = queue.round(now, &mut self.part, effects);
                played.map_err(|violation| Violation { queue: at, ..violation })?;
            }
        }
        Ok(())
    }

    /// Returns the parts of the round, queue by queue. `round` is left empty.
    fn parts(&self, round: &mut Round) -> Vec<Round> {
        let fault = |queue| round.fault.filter(|fault| fault.concerns(queue));
        let part = |queue| Round { fault: fault(queue), ..Round::default() };
        let mut parts: Vec<Round> = (0..).take(self.queues.len()).map(part).collect();
        let queue_of = |job| self.queue_of(job).unwrap_or(0);
        for ended in round.ended.drain(..) {
            parts[queue_of(ended.job)].ended.push(ended);
        }
        for job in round.overdue.drain(..) {
            parts[queue_of(job)].overdue.push(job);
        }
        for job in round.withdrawn.drain(..) {
            parts[queue_of(job)].withdrawn.push(job);
        }
        for amendment in round.amended.drain(..) {
            parts[queue_of(amendment.job)].amended.push(amendment);
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

/// Returns the position, among `queues` queues, of the queue with that number in a log.
///
/// The first queue has number 1. No number, or an unknown number, means the first queue.
pub fn queue_position(number: Option<u32>, queues: usize) -> usize {
    let position = number.and_then(|number| usize::try_from(number).ok()?.checked_sub(1));
    position.filter(|position| *position < queues).unwrap_or(0)
}
