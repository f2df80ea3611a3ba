//! The policy that predicts, around one that plans.

use miserly_core::{
    Context, Effect, Entry, Event, Expected, HostId, JobId, Ledger, Persistent, Policy, Prediction, Request,
    Span, State, Time, Violation,
};

use super::corrector::may_correct;
use super::{Book, Lengths, Passes, PredictionRules};

/// Predicted runtimes around a policy of the backfill family.
///
/// Before each pass of the inner policy it does three things, in this order:
/// 1. It learns from the jobs that ended.
/// 2. It corrects the predictions of running jobs that outlived them. The inner policy receives
///    [`Event::EndMoved`]. A job that is past its estimate is overdue, as without predictions.
/// 3. It predicts the runtimes of submitted jobs, once, and then hands them to the inner policy.
///
/// With [`Book::Both`] and [`Book::Guarded`] a job is planned by another span from its start on. The inner
/// policy then has another pass, by the new plan.
///
/// What it learned is stored by user in the ledger. Only with [`Book::Requested`] the promises of the
/// inner policy are passed on.
///
/// Each job costs O(log users).
pub struct Predictive {
    inner: Box<dyn Policy>,
    rules: PredictionRules,
    /// Jobs that were submitted since the last pass.
    arrived: Vec<JobId>,
    /// Jobs that ended since the last pass, and their runtimes, in the order of their ends.
    ended: Vec<(Request, Span)>,
    /// Running jobs that outlived their predictions since the last pass.
    outlived: Vec<JobId>,
    /// Whether anything happened since the last pass of the inner policy that calls for one.
    due: bool,
    /// Whether the predictions in the ledger may be those of other rules, or of other estimates.
    rebuilt: bool,
}

impl Predictive {
    /// Returns this policy around `inner`.
    pub fn new(inner: Box<dyn Policy>, rules: PredictionRules) -> Predictive {
        Predictive {
            inner,
            rules,
            arrived: vec![],
            ended: vec![],
            outlived: vec![],
            due: true,
            rebuilt: true,
        }
    }

    /// Stores the runtimes of ended jobs.
    fn learn(&mut self, context: &mut Context<'_>) {
        for (job, runtime) in self.ended.drain(..) {
            if let Some(user) = job.user {
                self.rules.predictor.learn(context, user, &job, runtime);
            }
        }
    }

    /// Corrects the predictions that were too short.
    fn correct(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        for job in std::mem::take(&mut self.outlived) {
            let entry = context.ledger().entry(job);
            let State::Running { expected: Expected::Overdue { since }, .. } = entry.state else { continue };
            let Some(present) = entry.prediction else { continue };
            let estimate = entry.request.estimate;
            let planned = self.rules.corrector.correct(present.runtime, present.planned, estimate);
            context.predict(job, Prediction { planned, ..present })?;
            self.inner.event(context.now(), Event::EndMoved { job, before: since }, context.ledger());
        }
        Ok(())
    }

    /// Predicts the runtimes of submitted jobs, and hands them to the inner policy.
    fn admit(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        for job in std::mem::take(&mut self.arrived) {
            let ledger = context.ledger();
            let request = ledger.request(job);
            let lengths = self.rules.predictor.predict(request, ledger);
            let planned = self.rules.book.while_waiting(lengths, request.estimate);
            self.due |= self.calls_for_pass(ledger, job);
            context.predict(job, Prediction { runtime: lengths.likely, planned })?;
            self.store(context, job, lengths)?;
            self.inner.event(context.now(), Event::Submitted(job), context.ledger());
        }
        Ok(())
    }

    /// Stores the lengths that only a guard uses.
    fn store(&self, context: &mut Context<'_>, job: JobId, lengths: Lengths) -> Result<(), Violation> {
        let Lengths { optimistic, cautious, .. } = lengths;
        match self.rules.book {
            Book::Guarded => context.set_job_state(job, &OtherLengths(Some([optimistic, cautious]))),
            Book::Predicted | Book::Requested | Book::Both => Ok(()),
        }
    }

    /// Makes the predictions of the ledger those of these rules: after other rules the jobs are predicted again, and after
    /// another estimate a waiting job is planned again.
    fn take_over(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let Followed(before) = context.ledger().policy_state();
        let rules = self.rules.words();
        let others = !before.is_empty() && before != rules;
        if before != rules {
            context.set_policy_state(&Followed(rules));
        }
        let mut changed = false;
        for job in context.ledger().waiting().collect::<Vec<_>>() {
            let entry = context.ledger().entry(job);
            let estimate = entry.request.estimate;
            let present = entry.prediction.filter(|_| !others);
            let lengths = match present {
                Some(present) if self.rules.predictor.heeds_estimates() => {
                    OtherLengths::lengths(entry, present).at_most(estimate)
                }
                Some(present) => OtherLengths::lengths(entry, present),
                None => self.rules.predictor.predict(&entry.request, context.ledger()),
            };
            let planned = self.rules.book.while_waiting(lengths, estimate);
            let prediction = Prediction { runtime: lengths.likely, planned };
            if entry.prediction != Some(prediction) {
                changed = true;
                context.predict(job, prediction)?;
                self.store(context, job, lengths)?;
            }
        }
        let running = context.ledger().running().filter(|_| others).collect::<Vec<_>>();
        for job in running {
            let entry = context.ledger().entry(job);
            let Some(present) = entry.prediction else { continue };
            let (likely, estimate) = (present.runtime, entry.request.estimate);
            let waiting = self.rules.book.while_waiting(Lengths::one(likely), estimate);
            let planned = self.rules.book.while_running(likely, estimate).unwrap_or(waiting);
            changed |= planned != present.planned;
            context.predict(job, Prediction { planned, ..present })?;
        }
        if changed {
            self.due = true;
            self.inner.rebuild(context.now(), context.ledger());
            self.inner.event(context.now(), Event::Rebuilt, context.ledger());
        }
        Ok(())
    }

    /// Plans the jobs that started in the last pass as running jobs. Returns whether that moved an expected end.
    ///
    /// `effects` is the number of effects before that pass.
    fn plan_started(&mut self, context: &mut Context<'_>, effects: usize) -> Result<bool, Violation> {
        let started = |effect: &Effect| match effect {
            Effect::Started { job, .. } => Some(*job),
            _ => None,
        };
        let started: Vec<JobId> = context.effects().iter().skip(effects).filter_map(started).collect();
        let mut moved = false;
        for job in started {
            let entry = context.ledger().entry(job);
            let Some(present) = entry.prediction else { continue };
            let State::Running { expected: Expected::At(before), .. } = entry.state else { continue };
            let planned = self.rules.book.while_running(present.runtime, entry.request.estimate);
            let Some(planned) = planned.filter(|planned| *planned != present.planned) else { continue };
            moved = true;
            context.predict(job, Prediction { planned, ..present })?;
            self.inner.event(context.now(), Event::EndMoved { job, before }, context.ledger());
        }
        Ok(moved)
    }

    /// Returns whether the submission of a job calls for a pass.
    fn calls_for_pass(&self, ledger: &Ledger, job: JobId) -> bool {
        match self.rules.passes {
            Passes::Every | Passes::Published { fitting: false } => true,
            Passes::Published { fitting: true } => ledger.fit_request(job).is_some(),
        }
    }
}

impl Policy for Predictive {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn predicts(&self) -> bool {
        true
    }

    fn gives_quanta(&self) -> bool {
        self.inner.gives_quanta()
    }

    fn usage_half_life(&self) -> Option<Span> {
        self.inner.usage_half_life()
    }

    fn kept_hosts(&self, ledger: &Ledger) -> Vec<HostId> {
        self.inner.kept_hosts(ledger)
    }

    /// Jobs that ended in the same round are still to be learned from, so they are not dropped.
    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.arrived.clear();
        self.due = true;
        self.rebuilt = true;
        let outlived = |job: &JobId| {
            let entry = ledger.entry(*job);
            let overdue = matches!(entry.state, State::Running { expected: Expected::Overdue { .. }, .. });
            overdue && can_correct(entry)
        };
        self.outlived = ledger.running().filter(outlived).collect();
        self.inner.rebuild(now, ledger);
    }

    fn withdraw(&mut self, now: Time, job: JobId, ledger: &Ledger) -> bool {
        self.inner.withdraw(now, job, ledger)
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => {
                self.arrived.push(job);
                return;
            }
            Event::Overdue(job) if can_correct(ledger.entry(job)) => {
                self.outlived.push(job);
                self.due |= self.rules.passes == Passes::Every;
                return;
            }
            Event::Ended(ended) if self.rules.predictor.learns() => {
                let entry = ledger.entry(ended.job);
                if let State::Running { start, .. } = entry.state {
                    self.ended.push((entry.request.clone(), now - start));
                }
            }
            _ => {}
        }
        self.due = true;
        self.inner.event(now, event, ledger);
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.learn(context);
        self.correct(context)?;
        self.admit(context)?;
        if std::mem::take(&mut self.rebuilt) {
            self.take_over(context)?;
        }
        if !std::mem::take(&mut self.due) {
            return Ok(());
        }
        loop {
            let effects = context.effects().len();
            let mut within = context.for_inner_policy(self.rules.book == Book::Requested);
            self.inner.pass(&mut within)?;
            let wake = within.wake();
            if !self.plan_started(context, effects)? {
                return wake.map_or(Ok(()), |at| context.wake_at(at));
            }
        }
    }
}

/// The optimistic and the cautious length of a job, for a guard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OtherLengths(Option<[Span; 2]>);

impl OtherLengths {
    /// Returns the lengths of a predicted job. Where they are not known, the optimistic one is the likely one, and the cautious
    /// one is the estimate.
    pub(crate) fn lengths(entry: &Entry, prediction: Prediction) -> Lengths {
        let OtherLengths(stored) = entry.policy_state.get();
        let likely = prediction.runtime;
        let [optimistic, cautious] = stored.unwrap_or([likely, entry.request.estimate]);
        Lengths { likely, optimistic, cautious }
    }
}

impl Persistent for OtherLengths {
    const NAME: &'static str = "predict/lengths";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.into_iter().flatten().map(|length| length.ticks().cast_unsigned()));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<OtherLengths> {
        let length = |word: u64| Span::from_ticks(word.cast_signed());
        match *words {
            [] => Some(OtherLengths(None)),
            [optimistic, cautious] => Some(OtherLengths(Some([length(optimistic), length(cautious)]))),
            _ => None,
        }
    }
}

/// The rules by which the predictions of the ledger were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Followed(Vec<u64>);

impl Persistent for Followed {
    const NAME: &'static str = "predict/rules";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend_from_slice(&self.0);
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Followed> {
        Some(Followed(words.to_vec()))
    }
}

/// Returns whether a correction is possible: the estimate is not over.
fn can_correct(entry: &Entry) -> bool {
    entry.prediction.as_ref().is_some_and(|present| may_correct(present, entry.request.estimate))
}
