//! The changes of one batch of inputs, until they are durable.

use std::collections::{BTreeMap, BTreeSet};

use miserly_api::model::Problem;

use crate::job::table::JobTable;
use crate::promise::earlier::EarlierPromises;
use crate::{
    Action, Adoption, Attempt, BegunWindow, DaemonReply, EffectLine, JobRow, JobStart, JournalError,
    JournalLine, PlannedWindow, Record, Requester, RoundLine,
};

/// The changes of one batch of inputs, and the actions and replies that follow once they are durable.
///
/// Invariant: a job is in `finished` or in the job table, never in both.
#[derive(Debug, Default)]
pub(crate) struct PendingBatch {
    lines: Vec<JournalLine>,
    changed: BTreeSet<i64>,
    /// Jobs whose promise moved earlier. If nothing else of them changed, their records are not stored.
    moved: BTreeSet<i64>,
    /// Records of jobs that finished in this batch. They leave memory when they are durable.
    pub(crate) finished: BTreeMap<i64, Record>,
    /// The actions, in order.
    pub(crate) actions: Vec<(Attempt, Action)>,
    /// Windows that began without a daemon, until the system has started their jobs.
    pub(crate) begun: BTreeMap<i64, BegunWindow>,
    /// The processors of those windows, from the beginning on.
    pub(crate) taken: BTreeSet<u32>,
    /// The jobs whose waiting shims began their windows by themselves.
    pub(crate) shims_begun: BTreeSet<i64>,
    /// The jobs whose waiting shims failed.
    pub(crate) shims_failed: Vec<i64>,
    /// The adoptions that end with this batch.
    pub(crate) released: Vec<Adoption>,
    /// Jobs that started although their deadline had passed, until they are removed again.
    pub(crate) expired: Vec<i64>,
    /// The starts of jobs, for the observer.
    pub(crate) starts: Vec<JobStart>,
    /// The replies, in order.
    pub(crate) replies: Vec<(Box<dyn Requester>, Result<DaemonReply, Problem>)>,
    values_changed: bool,
    /// Whether the setup is to be stored.
    pub(crate) has_setup: bool,
}

impl PendingBatch {
    /// Appends a line to the journal.
    pub(crate) fn line(&mut self, line: &JournalLine) {
        self.lines.push(line.clone());
    }

    /// Appends the line of a round to the journal.
    pub(crate) fn round(&mut self, line: RoundLine) {
        self.lines.push(JournalLine::Round(Box::new(line)));
    }

    /// Marks a job's record as changed.
    pub(crate) fn touch(&mut self, job: i64) {
        self.changed.insert(job);
    }

    /// Marks a job's promise as moved earlier.
    pub(crate) fn touch_promise(&mut self, job: i64) {
        self.moved.insert(job);
    }

    /// Puts the moved promises of jobs whose records are not stored into `earlier`, and removes the others.
    pub(crate) fn update(&self, earlier: &mut EarlierPromises, jobs: &JobTable) {
        for number in self.changed.iter().chain(self.finished.keys()) {
            earlier.remove(*number);
        }
        let moved = self.moved.difference(&self.changed).filter_map(|number| jobs.get(*number));
        moved.for_each(|record| earlier.add(record));
    }

    /// Marks the named values as changed.
    pub(crate) fn touch_values(&mut self) {
        self.values_changed = true;
    }

    /// Adds the record of a job that has finished.
    pub(crate) fn finish(&mut self, record: Record) {
        self.finished.insert(record.number, record);
    }

    /// Returns whether a job has finished in this batch.
    pub(crate) fn has_finished(&self, job: i64) -> bool {
        self.finished.contains_key(&job)
    }

    /// Removes a job that was refused at its submission, so that its number can be used again.
    ///
    /// Its round stays in the journal if the policy decided anything else in it.
    pub(crate) fn withdraw(&mut self, job: i64) {
        self.finished.remove(&job);
        self.changed.remove(&job);
        self.moved.remove(&job);
        let submits = |line: &RoundLine| line.submitted.iter().any(|request| request.number == job);
        let nth =
            self.lines.iter().rposition(|line| matches!(line, JournalLine::Round(round) if submits(round)));
        let Some(nth) = nth else { return };
        let is_refusal =
            |effect: &EffectLine| matches!(effect, EffectLine::Refused { job: of, .. } if *of == job);
        if let JournalLine::Round(round) = &self.lines[nth]
            && round.effects.iter().all(is_refusal)
        {
            self.lines.remove(nth);
        }
    }

    /// Adds an action for an attempt.
    pub(crate) fn act(&mut self, attempt: Attempt, action: Action) {
        self.actions.push((attempt, action));
    }

    /// Adds the window that an attempt is expected to have: to its launch if that is pending, else as an action.
    pub(crate) fn plan_window(&mut self, attempt: Attempt, window: PlannedWindow) {
        let launch = self.actions.iter_mut().find_map(|(of, action)| match action {
            Action::Launch(launch) if *of == attempt => Some(launch),
            _ => None,
        });
        match launch {
            Some(launch) => launch.planned_window = Some(window),
            None => self.act(attempt, Action::PlanWindow(window)),
        }
    }

    /// Returns the attempts that this batch launches.
    pub(crate) fn launched(&self) -> BTreeSet<Attempt> {
        let launches = self.actions.iter().filter(|(_, action)| matches!(action, Action::Launch(_)));
        launches.map(|(attempt, _)| *attempt).collect()
    }

    /// Removes all actions for some attempts.
    pub(crate) fn drop_actions(&mut self, attempts: &BTreeSet<Attempt>) {
        self.actions.retain(|(attempt, _)| !attempts.contains(attempt));
    }

    /// Adds a reply.
    pub(crate) fn reply(&mut self, requester: Box<dyn Requester>, reply: Result<DaemonReply, Problem>) {
        self.replies.push((requester, reply));
    }

    /// Returns whether any job changed or finished.
    pub(crate) fn jobs_changed(&self) -> bool {
        !self.changed.is_empty() || !self.moved.is_empty() || !self.finished.is_empty()
    }

    /// Returns whether there is something to commit.
    pub(crate) fn has_changes(&self) -> bool {
        self.jobs_changed() || !self.lines.is_empty() || self.values_changed || self.has_setup
    }

    /// Returns the rows of the jobs that changed or finished.
    pub(crate) fn rows(&self, jobs: &JobTable) -> Result<Vec<JobRow>, JournalError> {
        let live = self.changed.iter().filter_map(|number| jobs.get(*number));
        live.chain(self.finished.values()).map(Record::row).collect()
    }

    /// Returns the number of journal lines.
    pub(crate) fn line_count(&self) -> usize {
        self.lines.len()
    }

    /// Takes the journal lines, as JSON.
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        // Only maps with other keys than strings have no JSON, and there are none.
        let text = |line| serde_json::to_string(&line).unwrap_or_default();
        std::mem::take(&mut self.lines).into_iter().map(text).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use miserly_core::{Refusal, Time};

    use super::*;
    use crate::JobState;

    const ATTEMPT: Attempt = Attempt { job: 1, nth: 1 };

    #[test]
    fn an_unchanged_batch_is_not_committed() {
        let mut batch = PendingBatch::default();
        batch.act(ATTEMPT, Action::Forget);
        assert!(!batch.has_changes());
        batch.touch_values();
        assert!(batch.has_changes() && !batch.jobs_changed());
    }

    #[test]
    fn a_refused_job_leaves_no_row() {
        let mut batch = PendingBatch::default();
        batch.touch(1);
        batch.finish(Record::new(1, JobState::Queued, Arc::default()));
        batch.withdraw(1);
        assert!(batch.rows(&JobTable::default()).unwrap().is_empty() && !batch.jobs_changed());
    }

    #[test]
    fn the_round_of_a_refused_job_stays_if_the_policy_decided_anything_else_in_it() {
        let refused = EffectLine::Refused { job: 1, why: Refusal::Deadline };
        let planned = EffectLine::Planned { job: 2, start: Time::from_ticks(9) };
        for (effects, lines) in [(vec![refused], 0), (vec![planned, refused], 1)] {
            let mut batch = PendingBatch::default();
            let submitted = r#"{"number":1,"submit":0,"estimate":7,"cpus":1,"memory":0,"gpus":0,"other":0,"user":0,"queue":0,"in_window_only":false,"restartable":false}"#;
            let submitted = vec![serde_json::from_str(submitted).unwrap()];
            batch.round(RoundLine { submitted, effects, ..RoundLine::default() });
            batch.withdraw(1);
            assert_eq!(batch.line_count(), lines);
        }
    }

    #[test]
    fn a_window_is_planned_by_an_action_of_its_own_unless_the_launch_is_pending() {
        let (start, end) = (Time::from_ticks(5), Time::from_ticks(9));
        let window = PlannedWindow { start, end, cpus: vec![0], after: vec![], latest: start };
        let mut batch = PendingBatch::default();
        batch.plan_window(ATTEMPT, window);
        assert!(matches!(&batch.actions[..], [(ATTEMPT, Action::PlanWindow(_))]));
    }
}
