//! The comments of jobs: their promises, or why they wait.

use std::collections::BTreeMap;
use std::ops::Bound;

use miserly_slurm::{Cluster, Detail, Job, JobState, task_ranges};

use super::job::{DrivenJob, DrivenState};
use super::{Scheduler, Step, UserPromise};
use crate::comment::{
    AHEAD, CommentField, FIRST_TASK, NOT_PLANNED, RUNS, STARTS_BY, STARTS_ON, SUSPENDED, WAITS, is_over,
    with_words,
};
use crate::instant::{local, minute};
use crate::orders::Order;

/// The most comments of a step, written or to be read.
const MOST_COMMENTS: usize = 20;

impl Scheduler {
    /// Returns whether it has taken in a job.
    pub(crate) fn has_job(&self, id: &str) -> bool {
        self.jobs.contains_key(id)
    }

    /// Takes in that the comment of a job was not written.
    pub(crate) fn forget_comment(&mut self, id: &str) {
        if let Some(job) = self.jobs.get_mut(id) {
            job.comment = None;
        }
    }

    /// Writes into the comments of users from now on: Slurm refuses those of administrators.
    pub(crate) fn write_user_comments(&mut self) {
        self.comment_field = Some(CommentField::Comment);
        for job in self.jobs.values_mut() {
            job.comment = None;
        }
    }

    /// Writes the promise of each waiting job, or the reason of its wait, into its comment.
    ///
    /// The waiting tasks of an array share a comment, because a comment of its own would part a task from the others.
    ///
    /// `read` are the descriptions that were read for this step.
    pub(super) fn write_comments(
        &mut self,
        cluster: &Cluster,
        read: &BTreeMap<String, Detail>,
        step: &mut Step,
    ) {
        let Some(field) = self.comment_field else { return };
        let groups = waiting_groups(cluster);
        let mut count = 0;
        let first = std::mem::take(&mut self.last_commented);
        for id in self.jobs_after(&first) {
            let Some((job, known)) = cluster.jobs.get(&id).zip(self.jobs.get(&id)) else { continue };
            let Some(group) = commented_group(job, known, &groups) else { continue };
            if count == MOST_COMMENTS {
                break;
            }
            let text = self.comment_on(field, &id, &group);
            let Some(text) = text.filter(|text| known.comment.as_ref() != Some(text)) else { continue };
            count += 1;
            if self.may_write(&id, read) {
                self.write_comment(id, &group, (field, text), step);
            } else {
                step.unread.extend(group.iter().map(|task| task.id.clone()));
            }
        }
        if self.last_commented.is_empty() {
            self.last_commented = first;
        }
    }

    /// Returns whether the comment of a job is known: others may have changed it. A job that is placed starts within a second.
    fn may_write(&self, id: &str, read: &BTreeMap<String, Detail>) -> bool {
        let is_known = |job: &DrivenJob| job.assignment().is_some() && job.comment.is_some();
        read.contains_key(id) || self.jobs.get(id).is_some_and(is_known)
    }

    fn write_comment(
        &mut self,
        id: String,
        group: &[&Job],
        (field, text): (CommentField, String),
        step: &mut Step,
    ) {
        let Some(known) = self.jobs.get_mut(&id) else { return };
        // Those that are read for the next step stay in front.
        if known.assignment().is_none() {
            self.last_commented.clone_from(&id);
        }
        step.changed = true;
        known.comment = Some(text.clone());
        step.orders.push(Order::Comment { job: id, tasks: waiting_tasks(group), field, text });
    }

    /// Returns the names of the jobs, those after this one first: each step goes on after the job at which the last one ended.
    fn jobs_after(&self, first: &String) -> Vec<String> {
        let after = self.jobs.range::<String, _>((Bound::Excluded(first), Bound::Unbounded));
        after.chain(self.jobs.range::<String, _>(..=first)).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the comment on a job, and on the waiting tasks of its array with it, if there is one.
    fn comment_on(&self, field: CommentField, id: &str, group: &[&Job]) -> Option<String> {
        let tasks: Vec<&DrivenJob> = group.iter().filter_map(|task| self.jobs.get(&task.id)).collect();
        let words = match group {
            [_] => tasks.first().map(|job| words(job)),
            _ => shared_words(&tasks),
        };
        let known = self.jobs.get(id)?;
        words.map(|words| with_words(field.text(&known.form), &words))
    }
}

/// Returns the jobs that share the comment of this one, if it has one to be written: the first task of an array has that of all.
fn commented_group<'a>(
    job: &'a Job,
    known: &DrivenJob,
    groups: &BTreeMap<u64, Vec<&'a Job>>,
) -> Option<Vec<&'a Job>> {
    if job.state == JobState::Pending
        && let Some(group) = groups.get(&job.number)
    {
        return (group[0].id == job.id).then(|| group.clone());
    }
    let is_written =
        known.runs_ahead() || known.is_suspended() || known.comment.as_deref().is_some_and(is_over);
    is_written.then(|| vec![job])
}

/// Returns the comment on a job.
fn words(job: &DrivenJob) -> String {
    if job.runs_ahead() {
        let by = job.promise.as_ref().and_then(UserPromise::latest_known);
        let by = by.map(|latest| format!(", and starts by {}", local(latest)));
        return format!("{AHEAD}; if they are needed, it waits again{}", by.unwrap_or_default());
    }
    match job.state() {
        DrivenState::Running(_) if job.is_suspended() => SUSPENDED.to_owned(),
        DrivenState::Running(_) => RUNS.to_owned(),
        DrivenState::Assigned { assignment, .. } | DrivenState::Placed { assignment, .. } => {
            let briefly = " for a short time; if it has not ended then, it waits again";
            let briefly = if assignment.quantum.is_some() { briefly } else { "" };
            format!("{STARTS_ON}{}{briefly}", assignment.nodes.join(","))
        }
        DrivenState::Waiting(_) => waiting_words(job),
    }
}

fn waiting_words(job: &DrivenJob) -> String {
    let likely = job.likely_start().map(|at| format!(", likely {}", minute(at))).unwrap_or_default();
    if let Some(unplanned) = job.unplanned() {
        return format!("{NOT_PLANNED}{}", unplanned.why);
    }
    let Some(promise) = &job.promise else { return format!("{WAITS}{likely}") };
    match promise.latest_known() {
        Some(latest) => format!("{STARTS_BY}{}{likely}", local(latest)),
        // Its promise has no end.
        None => format!("{WAITS}: {}{likely}", promise.broken.as_deref().unwrap_or("no start is known")),
    }
}

/// Returns the comment on the waiting tasks of an array, if there is one.
fn shared_words(tasks: &[&DrivenJob]) -> Option<String> {
    let promises = tasks
        .iter()
        .filter(|job| job.unplanned().is_none())
        .filter_map(|job| job.promise.as_ref()?.latest_known());
    let (least, most) = (promises.clone().min(), promises.clone().max());
    if let Some((least, most)) = least.zip(most) {
        let [least, most] = [least, most].map(local);
        let without = tasks.len() - promises.count();
        let others = if without > 0 { format!("; {without} have no promise yet") } else { String::new() };
        return Some(format!("{FIRST_TASK}starts by {least}, the last by {most}{others}"));
    }
    match tasks.iter().filter_map(|job| job.likely_start()).min() {
        Some(first) => Some(format!("{WAITS}; {FIRST_TASK}starts likely {}", minute(first))),
        None => tasks.first().map(|task| words(task)),
    }
}

/// Returns the waiting jobs by number, those of an array in order: its tasks share a number, and a comment.
pub(crate) fn waiting_groups(cluster: &Cluster) -> BTreeMap<u64, Vec<&Job>> {
    let mut groups: BTreeMap<u64, Vec<&Job>> = BTreeMap::new();
    for job in cluster.jobs.values().filter(|job| job.state == JobState::Pending) {
        groups.entry(job.number).or_default().push(job);
    }
    for group in groups.values_mut().filter(|group| group.len() > 1) {
        group.sort_by_cached_key(|task| task.order());
    }
    groups
}

/// Returns several waiting tasks of an array in Slurm's notation: `17_[3-9]`.
pub(crate) fn waiting_tasks(group: &[&Job]) -> Option<String> {
    let [first, _, ..] = group else { return None };
    let (array, _) = first.array.as_ref()?;
    let numbers: Option<Vec<usize>> = group.iter().map(|job| job.array.as_ref()?.1.parse().ok()).collect();
    Some(format!("{array}_[{}]", task_ranges(&numbers?)))
}

#[cfg(test)]
mod tests {
    use miserly_core::Time;

    use super::super::job::LikelyStart;
    use super::*;

    fn waiting(promised: Option<i64>, likely: Option<i64>) -> DrivenJob {
        let at = |seconds| Time::from_secs(seconds).unwrap();
        let mut job = DrivenJob::default();
        job.promise = promised.map(|latest| UserPromise::new(at(latest)));
        job.likely = likely.map(|seconds| LikelyStart { median: at(seconds), by_95: at(seconds) });
        job
    }

    #[test]
    fn tasks_of_an_array_share_a_comment() {
        let [zero, minute_later] = [0, 60].map(|seconds| local(Time::from_secs(seconds).unwrap()));
        let [one, other, none] =
            [waiting(Some(60), Some(30)), waiting(Some(0), None), waiting(None, Some(0))];
        assert_eq!(
            shared_words(&[&one, &other]),
            Some(format!("the first of these tasks starts by {zero}, the last by {minute_later}"))
        );
        assert!(shared_words(&[&one, &none]).unwrap().ends_with("; 1 have no promise yet"));
        let likely = minute(Time::ZERO);
        assert_eq!(
            shared_words(&[&none, &none]),
            Some(format!("waits; the first of these tasks starts likely {likely}"))
        );
        assert_eq!(words(&none), format!("waits, likely {likely}"));
        assert_eq!(words(&other), format!("starts by {zero}"));
        let task = |place: &str| Job { array: Some((7, place.to_owned())), ..Job::default() };
        let tasks = ["3", "4", "9"].map(task);
        assert_eq!(waiting_tasks(&tasks.iter().collect::<Vec<_>>()).unwrap(), "7_[3-4,9]");
    }
}
