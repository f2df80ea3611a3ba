//! Jobs without a usable record, as clients see them.

use miserly_api::model::{AdoptedAttempt, Filter, JobView, Phase, SetAsideJob, StateDamage};
use miserly_core::Span;

use crate::{Adoption, Caller, JobRow, Now, Snapshot};

impl Snapshot {
    /// Returns the jobs without a usable record that a filter admits, by number.
    pub(crate) fn unrecorded_views(&self, now: Now, caller: &Caller, filter: &Filter) -> Vec<JobView> {
        let admits = |job: &i64| {
            filter.after.is_none_or(|after| *job > after) && filter.array.is_none_or(|array| *job == array)
        };
        let views = self.unrecorded.numbers().into_iter().filter(admits);
        let views = views.filter_map(|job| self.unrecorded_view(now, caller, job));
        let by_user = |view: &JobView| filter.uid.is_none_or(|uid| uid == view.uid);
        let by_queue = |view: &JobView| filter.queue.as_ref().is_none_or(|queue| *queue == view.queue);
        views.filter(|view| by_user(view) && by_queue(view)).collect()
    }

    /// Returns a job without a usable record. Returns `None` for any other job.
    pub(crate) fn unrecorded_view(&self, now: Now, caller: &Caller, job: i64) -> Option<JobView> {
        if self.jobs.get(job).is_some() {
            return None;
        }
        let adoption = self.unrecorded.attempt(job);
        if let (Some(record), Some(adoption)) = (self.unrecorded.aside.record(job), adoption) {
            let Adoption { end, cpus, .. } = adoption;
            let phase = Phase::Adopted { end: end.map(|end| now.wall_at(end)), cpus: cpus.clone() };
            let set_aside = Some(self.unrecorded.problem(job));
            return Some(JobView { phase, set_aside, ..self.view_for(now, caller, record) });
        }
        let mut view = match (self.unrecorded.unreadable(job), adoption) {
            (Some(row), adoption) => self.unreadable_view(now, row, adoption),
            (None, Some(adoption)) => self.adopted_view(now, adoption),
            (None, None) => return None,
        };
        if !self.info.is_operator(caller) {
            view.remove_details();
        }
        Some(view)
    }

    /// Returns a job whose row cannot be read. Only its number is certain.
    pub(crate) fn unreadable_view(&self, now: Now, row: &JobRow, adoption: Option<&Adoption>) -> JobView {
        let of_attempt = adoption.map(|adoption| self.adopted_view(now, adoption));
        let cpus = adoption.map(|adoption| adoption.cpus.clone()).unwrap_or_default();
        let problem = row.problem.clone().unwrap_or_default();
        let view = of_attempt.unwrap_or_else(|| self.empty_view(now, row.number));
        JobView {
            uid: row.uid,
            user: (self.info.users.0)(row.uid),
            queue: row.queue.clone(),
            phase: Phase::Unreadable { problem, cpus },
            ..view
        }
    }

    fn adopted_view(&self, now: Now, adoption: &Adoption) -> JobView {
        let end = adoption.end.map(|end| now.wall_at(end));
        JobView {
            name: adoption.name.clone(),
            cpus: adoption.cpus.len() as u64,
            memory: adoption.memory.saturating_mul(1024),
            time: adoption.end.map_or(0.0, |end| (end - now.ticks).max(Span::ZERO).as_secs_f64()),
            command: Some(adoption.command.clone()),
            directory: Some(adoption.directory.clone()),
            phase: Phase::Adopted { end, cpus: adoption.cpus.clone() },
            attempts: adoption.attempt.nth,
            runs: 1,
            ..self.empty_view(now, adoption.attempt.job)
        }
    }

    /// Returns a job of the daemon's user of which only the number is known.
    fn empty_view(&self, now: Now, number: i64) -> JobView {
        let uid = self.info.owner;
        JobView {
            number,
            uid,
            user: (self.info.users.0)(uid),
            submitted: now.wall,
            phase: Phase::Adopted { end: None, cpus: vec![] },
            ..JobView::default()
        }
    }

    /// Returns the unfinished jobs that cannot be read, as damage.
    pub(crate) fn unreadable_jobs(&self) -> Vec<StateDamage> {
        let damage = |row: &JobRow| {
            let job = row.number;
            let problem = row.problem.clone().unwrap_or_default();
            let then = match self.unrecorded.attempt(job) {
                Some(_) => "its attempt runs on",
                None => "it does not run, and its promise is broken",
            };
            StateDamage { part: format!("job {job}"), job: Some(job), problem: format!("{problem}; {then}") }
        };
        self.unrecorded.unreadable_rows().map(damage).collect()
    }

    /// Returns the jobs that are set aside, by number.
    pub(crate) fn set_aside_jobs(&self) -> Vec<SetAsideJob> {
        let held = self.jobs.iter().filter_map(|record| Some((record.number, record.set_aside.as_ref()?)));
        let running = self.unrecorded.aside.jobs().map(|(record, reason)| (record.number, reason));
        let mut jobs: Vec<SetAsideJob> =
            held.chain(running).map(|(job, reason)| SetAsideJob { job, reason: reason.clone() }).collect();
        jobs.sort_by_key(|one| one.job);
        jobs
    }

    /// Returns the adopted attempts.
    pub(crate) fn adopted(&self, now: Now) -> Vec<AdoptedAttempt> {
        let adopted = |adoption: &Adoption| AdoptedAttempt {
            job: adoption.attempt.job,
            attempt: adoption.attempt.nth,
            cpus: adoption.cpus.clone(),
            end: adoption.end.map(|end| now.wall_at(end)),
            problem: self.unrecorded.problem(adoption.attempt.job),
        };
        self.unrecorded.adopted().map(adopted).collect()
    }
}
