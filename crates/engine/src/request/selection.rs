//! The jobs that a request selects.

use std::collections::{BTreeMap, BTreeSet};

use miserly_api::model::{
    ChangedJobs, JobIds, JobRef, Phase, Problem, ProblemCode, RefusedJobs, Selection, SkippedJobs,
    job_ranges, matches_pattern,
};

use crate::request::handler::{Handled, RequestError};
use crate::{Caller, DaemonReply, Engine, Journal, Launcher, Now, Record, Snapshot};

/// The jobs of a selection, and what became of them.
#[derive(Debug, Default)]
pub(crate) struct SelectedJobs {
    /// The jobs to change, by number.
    pub(crate) jobs: BTreeSet<i64>,
    pub(crate) refused: Refusals,
    skipped: Vec<SkippedJobs>,
}

/// The jobs that do not change, by reason, in the order in which the reasons were found.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    reasons: Vec<(Vec<i64>, Option<JobRef>, Problem)>,
    /// The reasons by their texts without the number of the job.
    by_text: BTreeMap<String, usize>,
}

impl Refusals {
    /// Adds a job that does not change.
    pub(crate) fn add(&mut self, job: i64, problem: Problem) {
        let text = problem.message.replace(&format!("job {job} "), "");
        let next = self.reasons.len();
        let nth = *self.by_text.entry(text).or_insert(next);
        if nth == next {
            self.reasons.push((vec![], None, problem));
        }
        self.reasons[nth].0.push(job);
    }

    fn add_range(&mut self, range: JobRef, problem: Problem) {
        self.reasons.push((vec![], Some(range), problem));
    }

    fn into_replies(self) -> Vec<RefusedJobs> {
        let reply = |(jobs, range, problem): (Vec<i64>, Option<JobRef>, Problem)| RefusedJobs {
            jobs: range.map_or_else(|| job_ranges(&jobs), |range| vec![range]),
            problem,
        };
        self.reasons.into_iter().map(reply).collect()
    }
}

impl SelectedJobs {
    /// Returns the reply to the request, after these jobs changed.
    pub(crate) fn reply(self, changed: Vec<i64>) -> ChangedJobs {
        ChangedJobs { jobs: changed, refused: self.refused.into_replies(), skipped: self.skipped }
    }
}

/// Returns the reply to a request for one job or one array, which is refused as a whole.
pub(crate) fn as_one(changed: ChangedJobs) -> Handled {
    match changed.refused.into_iter().next() {
        Some(refused) => Err(refused.problem.into()),
        None => Ok(DaemonReply::JobIds(JobIds { jobs: changed.jobs })),
    }
}

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Returns the unfinished jobs that a selection means.
    ///
    /// A single job is taken as it is. Of a range, the numbers without an unfinished job are skipped.
    ///
    /// O(log n) for each selected job, and O(n) for n unfinished jobs if the selection names none.
    ///
    /// # Errors
    /// If the selection is empty, or it names no job and there is none.
    pub(crate) fn select(
        &self,
        now: Now,
        caller: &Caller,
        selection: &Selection,
    ) -> Result<SelectedJobs, RequestError> {
        if !selection.has_field() {
            let message = "name the jobs, or a filter such as the user; an empty selection means no job";
            return Err(Problem::with_field("select", message).into());
        }
        let mut selected = SelectedJobs::default();
        let mut filter = JobFilter::new(self, now, caller, selection);
        for range in &selection.jobs {
            self.select_range(range, &mut filter, &mut selected);
        }
        for array in &selection.arrays {
            self.select_array(caller, *array, &mut filter, &mut selected);
        }
        if selection.jobs.is_empty() && selection.arrays.is_empty() {
            let numbers = self.jobs.records().map(|record| record.number);
            let numbers: BTreeSet<i64> = numbers.chain(self.unrecorded.numbers()).collect();
            selected.jobs.extend(numbers.into_iter().filter(|number| filter.admits(*number)));
            if selected.jobs.is_empty() {
                return Err(Problem::new(ProblemCode::NotFound, "no unfinished job is selected").into());
            }
        }
        Ok(selected)
    }

    fn select_range(&self, range: &JobRef, filter: &mut JobFilter<'_, L, J>, selected: &mut SelectedJobs) {
        if let JobRef::One(job) = range {
            // Also a job that is over: the change has the reason why it does not apply.
            if !filter.has_conditions() || filter.admits(*job) {
                selected.jobs.insert(*job);
            }
            return;
        }
        let found = self.unfinished_in(range);
        if found.is_empty() {
            selected.refused.add_range(range.clone(), none_in(range));
            return;
        }
        let count = range.count().saturating_sub(found.len() as u64);
        if count > 0 {
            selected.skipped.push(SkippedJobs { range: range.clone(), count });
        }
        selected.jobs.extend(found.into_iter().filter(|number| filter.admits(*number)));
    }

    fn select_array(
        &self,
        caller: &Caller,
        array: i64,
        filter: &mut JobFilter<'_, L, J>,
        selected: &mut SelectedJobs,
    ) {
        let found = self.unfinished_of(array);
        if found.is_empty() {
            let message = format!("job {array} is not the first of an array");
            let problem = self.changeable_job(caller, array).err();
            selected
                .refused
                .add(array, problem.unwrap_or_else(|| Problem::new(ProblemCode::Conflict, message)));
        }
        selected.jobs.extend(found.into_iter().filter(|number| filter.admits(*number)));
    }

    /// Returns the unfinished jobs of a range, by number.
    fn unfinished_in(&self, range: &JobRef) -> BTreeSet<i64> {
        let numbers = range.numbers();
        let records = self.jobs.all().from(*numbers.start());
        let records = records.take_while(|record| record.number <= *numbers.end());
        let meant = records.filter(|record| {
            range.admits(record.number, record.array.map(|of| of.first), record.array.map(|of| of.index))
        });
        let meant = meant.map(|record| record.number);
        // Of a job without a record the index is unknown.
        let unrecorded = self.unrecorded.numbers().into_iter();
        meant.chain(unrecorded.filter(|number| range.admits(*number, None, None))).collect()
    }

    /// Returns the unfinished jobs of an array, by number. Their numbers are consecutive.
    fn unfinished_of(&self, array: i64) -> Vec<i64> {
        let of = |record: &&Record| record.array.is_some_and(|of| of.first == array);
        self.jobs.all().from(array).take_while(of).map(|record| record.number).collect()
    }
}

fn none_in(range: &JobRef) -> Problem {
    let message = match range {
        JobRef::Range(first, last) => format!("there is no unfinished job from {first} to {last}"),
        JobRef::One(_) | JobRef::Array(..) => format!("there is no unfinished job {range}"),
    };
    Problem::new(ProblemCode::NotFound, message)
}

/// The conditions of a selection on each job.
struct JobFilter<'e, L, J> {
    engine: &'e Engine<L, J>,
    now: Now,
    caller: &'e Caller,
    selection: &'e Selection,
    /// The present state, for the phases of jobs.
    current: Option<Snapshot>,
    /// Whether a user has the name of the selection, by number.
    has_name: BTreeMap<u32, bool>,
}

impl<'e, L: Launcher, J: Journal> JobFilter<'e, L, J> {
    fn new(engine: &'e Engine<L, J>, now: Now, caller: &'e Caller, selection: &'e Selection) -> Self {
        let current = (!selection.states.is_empty()).then(|| engine.current());
        JobFilter { engine, now, caller, selection, current, has_name: BTreeMap::new() }
    }

    fn has_conditions(&self) -> bool {
        let Selection { jobs: _, arrays: _, uid, user, queue, states, name } = self.selection;
        uid.is_some() || user.is_some() || queue.is_some() || !states.is_empty() || name.is_some()
    }

    /// Returns whether an unfinished job meets all conditions.
    fn admits(&mut self, number: i64) -> bool {
        if !self.has_conditions() {
            return true;
        }
        let Some(record) = self.engine.jobs.get(number) else { return self.admits_unrecorded(number) };
        self.admits_facts(record.uid, &record.queue, &record.name)
            && self.admits_phase(|current, now| current.phase_of(now, record))
    }

    fn admits_unrecorded(&mut self, number: i64) -> bool {
        let current = self.engine.snapshots.latest();
        let Some(view) = current.unrecorded_view(self.now, self.caller, number) else { return false };
        self.admits_facts(view.uid, &view.queue, &view.name) && self.admits_phase(|_, _| view.phase.clone())
    }

    fn admits_facts(&mut self, uid: u32, queue: &str, name: &str) -> bool {
        let wanted = self.selection;
        wanted.uid.is_none_or(|wanted| wanted == uid)
            && wanted.queue.as_ref().is_none_or(|wanted| wanted == queue)
            && wanted.name.as_ref().is_none_or(|pattern| matches_pattern(pattern, name))
            && wanted.user.as_ref().is_none_or(|user| self.has_name(uid, user))
    }

    fn has_name(&mut self, uid: u32, user: &str) -> bool {
        let name = self.engine.info.users.0;
        *self.has_name.entry(uid).or_insert_with(|| name(uid) == *user)
    }

    fn admits_phase(&self, phase: impl FnOnce(&Snapshot, Now) -> Phase) -> bool {
        let Some(current) = &self.current else { return true };
        let phase = phase(current, self.now);
        self.selection.states.iter().any(|state| state.admits(&phase))
    }
}
