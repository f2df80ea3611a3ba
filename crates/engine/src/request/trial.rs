//! Trials: rounds that are played on copies of queues.

use miserly_api::model::{Problem, ProblemCode};
use miserly_core::{Driver, Effect, JobId, Ledger, Round, Span, State, System, Time, Violation};
use miserly_marks::mark;

use crate::request::handler::RequestError;
use crate::{Engine, EngineError, Journal, Launcher};

/// A queue after a round that was played on a copy.
pub(crate) struct TriedRound {
    /// The position of the queue.
    pub(crate) queue: usize,
    system: System,
    pub(crate) effects: Vec<Effect>,
    /// The changed jobs, by their handles on the copy.
    pub(crate) entered: Vec<(JobId, i64)>,
    /// The number of the first job whose promise broke.
    pub(crate) broken: Option<i64>,
}

impl TriedRound {
    /// Returns the copy of the ledger.
    pub(crate) fn ledger(&self) -> &Ledger {
        self.system.queues()[0].ledger()
    }

    /// Returns the effects on the changed jobs, with their numbers.
    pub(crate) fn effects_on_entered(&self) -> impl Iterator<Item = (i64, Effect)> {
        let number =
            |handle: JobId| self.entered.iter().find(|(of, _)| *of == handle).map(|(_, number)| *number);
        self.effects.iter().filter_map(move |effect| Some((number(effect.job())?, *effect)))
    }

    /// Returns the latest start of a changed job on the copy, if one is promised or it has started.
    pub(crate) fn start_of(&self, number: i64, slack: Span) -> Option<Time> {
        let (handle, _) = self.entered.iter().find(|(_, of)| *of == number)?;
        latest_start(self.ledger(), *handle, slack)
    }

    /// Returns the problem of a trial in which a promise to another job broke.
    pub(crate) fn check_kept(&self) -> Result<(), RequestError> {
        let Some(other) = self.broken else { return Ok(()) };
        mark!("refused: a change would break a promise");
        let message = format!("the promise to job {other} would break");
        Err(Problem { job: Some(other), ..Problem::new(ProblemCode::Refused, message) }.into())
    }
}

/// Returns the latest start of a job: its promised plan with the slack, or its start.
pub(crate) fn latest_start(ledger: &Ledger, job: JobId, slack: Span) -> Option<Time> {
    let entry = ledger.get(job)?;
    match entry.state {
        State::Waiting => entry
            .promise
            .map(|promise| promise.best)
            .filter(|best| *best < Time::MAX)
            .map(|best| best + slack),
        State::Running { start, .. } | State::Suspended { start, .. } => Some(start),
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Plays a round on a copy of a queue.
    pub(crate) fn try_round(&self, queue: usize, at: Time, round: Round) -> Result<TriedRound, RequestError> {
        let (system, effects) = self.play_trial(queue, at, round)?;
        let broken = effects.iter().find_map(|effect| match effect {
            Effect::PromiseBroken { job, .. } => Some(self.number(*job)),
            _ => None,
        });
        Ok(TriedRound { queue, system, effects, entered: vec![], broken })
    }

    /// Plays a round on a copy of a queue. Returns the copy, and the effects.
    pub(crate) fn play_trial(
        &self,
        queue: usize,
        at: Time,
        round: Round,
    ) -> Result<(System, Vec<Effect>), RequestError> {
        self.stopped.check(&self.setup.queues[queue].name)?;
        let ledger = self.system.queues()[queue].ledger().clone();
        play_on(self.setup.queues[queue].driver_over(ledger), queue, at, round)
    }
}

/// Plays a round on the copy of a queue. Returns the copy, and the effects.
pub(crate) fn play_on(
    copy: Driver,
    queue: usize,
    at: Time,
    mut round: Round,
) -> Result<(System, Vec<Effect>), RequestError> {
    let mut trial = System::new(vec![copy]);
    let mut effects = vec![];
    let played = trial.round(at, &mut round, &mut effects);
    played.map_err(|violation| EngineError::Violation(Violation { queue, ..violation }))?;
    Ok((trial, effects))
}
