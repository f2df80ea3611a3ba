//! A job that the driver schedules, and its states.

use std::collections::BTreeSet;
use std::num::NonZero;

use miserly_core::{JobId, JobNumber, Span, Time};
use miserly_slurm::{Detail, Job};
use serde::{Deserialize, Serialize};

use super::opportunistic::Opportunistic;
use super::promises::UserPromise;
use super::{START_TIMEOUT, Step};
use crate::notes::{Note, StartRecord};

/// The first pause before a job that did not start is planned again. It doubles up to the last one.
pub(super) const FIRST_PAUSE: Span = Span::from_ticks(30 * 1_000_000);
pub(super) const LAST_PAUSE: Span = Span::from_ticks(600 * 1_000_000);

/// Forecasts that differ by this are the same.
const SMALL: Span = Span::from_ticks(60 * 1_000_000);

/// A job that the driver schedules. All but its handle is stored, beside its entry in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct DrivenJob {
    pub(crate) number: JobNumber,
    /// The handle in the ledger, if it is there.
    #[serde(skip)]
    pub(super) handle: Option<JobId>,
    /// Its form, as its user gave it.
    pub(crate) form: Detail,
    #[serde(with = "miserly_saved::ticks")]
    pub(crate) submitted: Time,
    state: DrivenState,
    /// Whether it was placed once. Slurm then shows the number of nodes that it was given there.
    pub(crate) was_placed: bool,
    /// The number of placements without a start.
    pub(crate) failed_starts: u32,
    /// The last comment that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) comment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) promise: Option<UserPromise>,
    /// Whether the policy gave it a quantum, for which it may have been unfit. It gets no second one.
    pub(crate) had_quantum: bool,
    /// The longest run ahead of its start that was lost.
    #[serde(with = "miserly_saved::ticks")]
    pub(crate) lost: Span,
    /// It does not run ahead of its start before this instant.
    #[serde(with = "miserly_saved::ticks::optional")]
    pub(crate) no_early_run_before: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) likely: Option<LikelyStart>,
}

/// The state of a job.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DrivenState {
    /// It waits in the ledger, or is about to.
    Waiting(Waiting),
    /// The policy starts it. Its placement is not passed on to Slurm yet.
    Assigned {
        assignment: Assignment,
        /// Its run ahead of its start, which has to end first, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opportunistic: Option<Opportunistic>,
    },
    /// Slurm has its placement, and starts it.
    Placed {
        assignment: Assignment,
        /// The number of placement commands.
        commands: NonZero<u32>,
    },
    /// It runs.
    Running(Run),
}

/// A job that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Waiting {
    /// Why it is not planned, if it is not. Then it is not in the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unplanned: Option<Unplanned>,
    /// Its run ahead of its start, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    opportunistic: Option<Opportunistic>,
}

/// Why a job is not planned, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Unplanned {
    /// The instant of the next try. Without one, it is planned when the reason is gone.
    #[serde(with = "miserly_saved::ticks::optional")]
    pub(crate) until: Option<Time>,
    pub(crate) why: String,
}

/// The nodes on which a job starts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Assignment {
    /// The instant of the decision, and then that of the first command.
    #[serde(with = "miserly_saved::ticks")]
    pub(crate) since: Time,
    pub(crate) nodes: Vec<String>,
    /// The node that Slurm fills last, if it is not the last one in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<String>,
    /// The reason of the policy.
    pub(crate) reason: String,
    /// The end of its quantum, if it runs for one.
    #[serde(with = "miserly_saved::ticks::optional")]
    pub(crate) quantum: Option<Time>,
}

impl Assignment {
    /// Returns the nodes that Slurm fills: all but the last one.
    pub(super) fn filled(&self) -> impl Iterator<Item = &String> {
        let last = self.last.as_ref().or(self.nodes.last());
        self.nodes.iter().filter(move |node| Some(*node) != last)
    }
}

/// A run at its own start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Run {
    /// It runs to its end.
    Ordinary {
        /// The time for which the driver had it suspended before.
        #[serde(with = "miserly_saved::ticks")]
        suspended_for: Span,
    },
    /// It runs for a quantum.
    Quantum {
        #[serde(with = "miserly_saved::ticks")]
        until: Time,
        #[serde(with = "miserly_saved::ticks")]
        start: Time,
    },
    /// The driver has it suspended, or is about to.
    Suspended {
        /// The instant at which it was seen suspended.
        #[serde(with = "miserly_saved::ticks::optional")]
        since: Option<Time>,
        /// The time for which the driver had it suspended before.
        #[serde(with = "miserly_saved::ticks")]
        suspended_for: Span,
    },
}

/// The start of a job in simulated futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct LikelyStart {
    #[serde(with = "miserly_saved::ticks")]
    pub(crate) median: Time,
    /// The start by which 95 % start.
    #[serde(with = "miserly_saved::ticks")]
    pub(crate) by_95: Time,
}

impl Default for DrivenState {
    fn default() -> DrivenState {
        DrivenState::Waiting(Waiting::default())
    }
}

impl Run {
    /// A run that was not suspended.
    pub(crate) const ORDINARY: Run = Run::Ordinary { suspended_for: Span::ZERO };
}

impl DrivenState {
    /// Returns the state of a waiting job.
    pub(crate) fn waiting(unplanned: Option<Unplanned>, opportunistic: Option<Opportunistic>) -> DrivenState {
        DrivenState::Waiting(Waiting { unplanned, opportunistic })
    }

    fn opportunistic(&self) -> Option<&Opportunistic> {
        match self {
            DrivenState::Waiting(Waiting { opportunistic, .. })
            | DrivenState::Assigned { opportunistic, .. } => opportunistic.as_ref(),
            DrivenState::Placed { .. } | DrivenState::Running(_) => None,
        }
    }

    fn take_opportunistic(&mut self) -> Option<Opportunistic> {
        match self {
            DrivenState::Waiting(Waiting { opportunistic, .. })
            | DrivenState::Assigned { opportunistic, .. } => opportunistic.take(),
            DrivenState::Placed { .. } | DrivenState::Running(_) => None,
        }
    }

    fn unplanned(&self) -> Option<&Unplanned> {
        match self {
            DrivenState::Waiting(waiting) => waiting.unplanned.as_ref(),
            _ => None,
        }
    }

    fn assignment(&self) -> Option<&Assignment> {
        match self {
            DrivenState::Assigned { assignment, .. } | DrivenState::Placed { assignment, .. } => {
                Some(assignment)
            }
            DrivenState::Waiting(_) | DrivenState::Running(_) => None,
        }
    }
}

/// Its state.
impl DrivenJob {
    /// Returns a new job, which waits.
    pub(super) fn new(number: JobNumber, form: Detail, submitted: Time) -> DrivenJob {
        DrivenJob { number, form, submitted, ..DrivenJob::default() }
    }

    /// Returns a job in this state.
    pub(crate) fn restored(state: DrivenState) -> DrivenJob {
        DrivenJob { state, ..DrivenJob::default() }
    }

    /// Returns a copy to be stored.
    pub(super) fn without_handle(&self) -> DrivenJob {
        DrivenJob { handle: None, ..self.clone() }
    }

    pub(crate) fn state(&self) -> &DrivenState {
        &self.state
    }

    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.state, DrivenState::Waiting(_))
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.state, DrivenState::Running(_))
    }

    /// Returns whether the driver has it suspended, or is about to.
    pub(crate) fn is_suspended(&self) -> bool {
        matches!(self.state, DrivenState::Running(Run::Suspended { .. }))
    }

    /// Returns whether the job has nodes, or a place in the ledger.
    pub(super) fn has_place(&self) -> bool {
        !self.is_waiting() || self.handle.is_some()
    }

    /// Returns why it is not planned, if it is not.
    pub(crate) fn unplanned(&self) -> Option<&Unplanned> {
        self.state.unplanned()
    }

    /// Returns its run ahead of its start, if there is one.
    pub(crate) fn opportunistic(&self) -> Option<&Opportunistic> {
        self.state.opportunistic()
    }

    pub(super) fn opportunistic_mut(&mut self) -> Option<&mut Opportunistic> {
        match &mut self.state {
            DrivenState::Waiting(Waiting { opportunistic, .. })
            | DrivenState::Assigned { opportunistic, .. } => opportunistic.as_mut(),
            DrivenState::Placed { .. } | DrivenState::Running(_) => None,
        }
    }

    /// Returns the nodes on which it starts, from the decision until it runs.
    pub(super) fn assignment(&self) -> Option<&Assignment> {
        self.state.assignment()
    }

    /// Returns whether its placement is not passed on yet, because it waits for one of these nodes.
    pub(super) fn waits_for(&self, nodes: &BTreeSet<String>) -> bool {
        match &self.state {
            DrivenState::Assigned { assignment, .. } => {
                assignment.nodes.iter().any(|node| nodes.contains(node))
            }
            _ => false,
        }
    }

    /// Returns whether its form has the nodes that Slurm shows.
    pub(super) fn has_nodes_of(&self, job: &Job) -> bool {
        self.form.on.len() == job.on.len() && job.on.iter().all(|node| self.form.on.contains_key(node))
    }

    /// Returns the end of its quantum, if it runs for one, or is about to.
    pub(super) fn quantum(&self) -> Option<Time> {
        match self.state {
            DrivenState::Running(Run::Quantum { until, .. }) => Some(until),
            DrivenState::Running(_) => None,
            _ => self.assignment()?.quantum,
        }
    }

    /// Returns the start of its run for a quantum.
    pub(super) fn quantum_start(&self) -> Option<Time> {
        match self.state {
            DrivenState::Running(Run::Quantum { start, .. }) => Some(start),
            _ => None,
        }
    }

    /// Returns the time for which the driver has had it suspended until now.
    pub(super) fn suspended_for(&self, now: Time) -> Span {
        match self.state {
            DrivenState::Running(Run::Ordinary { suspended_for }) => suspended_for,
            DrivenState::Running(Run::Suspended { since, suspended_for }) => {
                suspended_for + since.map_or(Span::ZERO, |since| (now - since).max(Span::ZERO))
            }
            _ => Span::ZERO,
        }
    }

    /// Returns the likely start, which is not after the promise.
    pub(super) fn likely_start(&self) -> Option<Time> {
        let median = self.likely?.median;
        Some(self.promise.as_ref().map_or(median, |promise| median.min(promise.latest)))
    }

    /// Returns the first instant at which it may start, if it is not over.
    pub(super) fn begin(&self, at: Time) -> Option<Time> {
        self.form.eligible.and_then(Time::from_secs).filter(|begin| *begin > at)
    }

    /// Returns the record of its start.
    pub(super) fn record(&self, job: &str, start: Time) -> StartRecord {
        let took = match &self.state {
            DrivenState::Assigned { assignment, .. } | DrivenState::Placed { assignment, .. } => {
                start.secs() - assignment.since.secs()
            }
            _ => 0,
        };
        let slow = (took > START_TIMEOUT.secs()).then(|| format!("Slurm took {took} s to start it"));
        let promise = self.promise.as_ref();
        let cause = promise.and_then(|promise| promise.cause(start)).or(slow);
        StartRecord {
            job: job.to_owned(),
            submitted: self.submitted,
            first: promise.map(|promise| promise.first),
            last: promise.map(|promise| promise.latest),
            start,
            broken: cause,
        }
    }
}

/// Its transitions.
impl DrivenJob {
    /// Takes it for planned: it is in the ledger.
    pub(super) fn plan(&mut self) {
        if let DrivenState::Waiting(waiting) = &mut self.state {
            waiting.unplanned = None;
        }
    }

    /// Takes it for not planned. It has left the ledger, and a promise to it is broken.
    pub(super) fn unplan(&mut self, id: &str, unplanned: Unplanned, step: &mut Step) {
        if self.unplanned() == Some(&unplanned) {
            return;
        }
        let why = unplanned.why.clone();
        step.changed = true;
        let broken = self.promise.as_mut().and_then(|promise| promise.break_for(&why));
        step.notes.push((id.to_owned(), Note::NotPlanned { why }));
        step.notes.extend(broken.map(|note| (id.to_owned(), note)));
        self.state = DrivenState::waiting(Some(unplanned), self.state.take_opportunistic());
    }

    /// Ends the pause of a job that is not planned, if it has one.
    pub(super) fn end_pause(&mut self, at: Time) {
        if let DrivenState::Waiting(Waiting {
            unplanned: Some(Unplanned { until: Some(until), .. }), ..
        }) = &mut self.state
        {
            *until = at;
        }
    }

    /// Has it wait after a placement without a start. It is planned after a pause.
    pub(super) fn fail(&mut self, at: Time, id: &str, why: String, step: &mut Step) {
        self.failed_starts += 1;
        let until = Some(at + pause(self.failed_starts));
        self.unplan(id, Unplanned { until, why }, step);
    }

    /// Gives it nodes.
    pub(super) fn assign(&mut self, assignment: Assignment) {
        let opportunistic = self.state.take_opportunistic();
        self.state = DrivenState::Assigned { assignment, opportunistic };
        self.was_placed = true;
    }

    /// Takes in that its placement is passed on. Returns whether that is the first time.
    pub(super) fn place(&mut self, now: Time) -> bool {
        match &mut self.state {
            DrivenState::Assigned { assignment, .. } => {
                let assignment = Assignment { since: now, ..assignment.clone() };
                self.state = DrivenState::Placed { assignment, commands: NonZero::<u32>::MIN };
                true
            }
            DrivenState::Placed { commands, .. } => {
                *commands = commands.saturating_add(1);
                false
            }
            DrivenState::Waiting(_) | DrivenState::Running(_) => false,
        }
    }

    /// Has it wait again, with its place in the queue.
    pub(super) fn wait_again(&mut self) {
        self.state = DrivenState::waiting(None, self.state.take_opportunistic());
    }

    /// Has it run. One with a quantum runs for that.
    pub(super) fn run(&mut self, start: Time) {
        self.state = DrivenState::Running(match self.quantum() {
            Some(until) => Run::Quantum { until, start },
            None => Run::ORDINARY,
        });
    }

    /// Has a run go on in this way.
    pub(super) fn run_on(&mut self, run: Run) {
        self.state = DrivenState::Running(run);
    }

    /// Takes its quantum away, so that it runs to its end. Returns the record of its start, if it was seen running.
    pub(super) fn forget_quantum(&mut self, id: &str) -> Option<StartRecord> {
        match &mut self.state {
            DrivenState::Running(Run::Quantum { start, .. }) => {
                let start = *start;
                let record = self.record(id, start);
                self.run_on(Run::ORDINARY);
                Some(record)
            }
            DrivenState::Assigned { assignment, .. } | DrivenState::Placed { assignment, .. } => {
                assignment.quantum = None;
                None
            }
            DrivenState::Waiting(_) | DrivenState::Running(_) => None,
        }
    }

    /// Has a job that runs wait as a new one: Slurm requeued it.
    pub(super) fn requeue(&mut self) {
        let mut form = std::mem::take(&mut self.form);
        form.on.clear();
        let (was_placed, had_quantum) = (self.was_placed, self.had_quantum);
        *self = DrivenJob { was_placed, had_quantum, ..DrivenJob::new(self.number, form, self.submitted) };
    }

    /// Has it run ahead of its start, or end such a run. It waits.
    pub(super) fn set_opportunistic(&mut self, opportunistic: Opportunistic) {
        let unplanned = self.state.unplanned().cloned();
        self.state = DrivenState::waiting(unplanned, Some(opportunistic));
    }

    /// Takes its run ahead of its start for over.
    pub(super) fn end_opportunistic(&mut self) -> Option<Opportunistic> {
        self.state.take_opportunistic()
    }

    /// Takes in a new forecast. A small difference changes nothing, so that the comment stays.
    pub(super) fn set_likely(&mut self, now: Time, likely: LikelyStart) {
        if let Some(LikelyStart { median: known, .. }) = self.likely {
            let small = Span::from_ticks((known - now).ticks() / 10).max(SMALL);
            if likely.median.max(known) - likely.median.min(known) <= small {
                return;
            }
        }
        self.likely = Some(likely);
    }
}

/// Returns the pause after this number of failures.
fn pause(failures: u32) -> Span {
    let factor = 1_i64 << failures.saturating_sub(1).min(20);
    Span::from_ticks(FIRST_PAUSE.ticks().saturating_mul(factor)).min(LAST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time::from_secs(seconds).unwrap()
    }

    fn promised(first: i64, latest: i64) -> DrivenJob {
        let promise = UserPromise { latest: at(latest), ..UserPromise::new(at(first)) };
        DrivenJob { promise: Some(promise), ..DrivenJob::default() }
    }

    #[test]
    fn pauses_double_up_to_the_last_one() {
        let seconds: Vec<i64> = (1..=7).map(|failures| pause(failures).secs()).collect();
        assert_eq!(seconds, [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(pause(u32::MAX), LAST_PAUSE);
    }

    #[test]
    fn a_slow_start_is_a_cause() {
        let mut job = promised(100, 100);
        let reason = String::new();
        job.assign(Assignment { since: at(90), nodes: vec![], last: None, reason, quantum: None });
        assert!(job.place(at(100)) && !job.place(at(105)));
        assert_eq!(job.record("7", at(115)).broken, None);
        let slow = job.record("7", at(116));
        assert_eq!(
            (slow.is_kept(), slow.broken.as_deref()),
            (Some(false), Some("Slurm took 16 s to start it"))
        );
    }

    #[test]
    fn a_forecast_changes_when_it_differs_by_much() {
        let mut job = DrivenJob::default();
        assert_eq!(job.likely_start(), None);
        // (now, forecast, what is shown then)
        for (now, median, shown) in [
            (0, 100, 100),
            (0, 160, 100),
            (0, 5000, 5000),
            (0, 5400, 5000),
            // More than a tenth of the time that is left.
            (4000, 5400, 5400),
        ] {
            job.set_likely(at(now), LikelyStart { median: at(median), by_95: at(9000) });
            assert_eq!(job.likely_start(), Some(at(shown)), "{median} at {now}");
        }
        job.promise = promised(9000, 5300).promise;
        assert_eq!(job.likely_start(), Some(at(5300)));
    }

    #[test]
    fn a_job_that_is_not_planned_loses_its_promise_once() {
        let mut job = promised(5, 9);
        let mut step = Step::default();
        let held = Unplanned { until: None, why: "it is held".into() };
        job.unplan("7", held.clone(), &mut step);
        job.unplan("7", held, &mut step);
        assert_eq!(step.notes.len(), 2, "{:?}", step.notes);
        assert_eq!(job.promise.as_ref().unwrap().broken.as_deref(), Some("it is held"));
        job.fail(at(8), "7", "it did not start".into(), &mut step);
        assert_eq!(job.unplanned().unwrap().until, Some(at(38)));
    }
}
