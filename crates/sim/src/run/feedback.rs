//! Jobs that are submitted after the end of another job.

use std::collections::BTreeMap;

use miserly_core::{JobNumber, Span, Time};

use crate::job::Job;

/// Jobs that are submitted some time after the end of an earlier job, whenever that is in the simulation.
///
/// A job that is refused ends at its refusal. Memory holds all of these jobs.
#[derive(Clone, Debug, Default)]
pub struct FeedbackJobs {
    /// The jobs that wait for the end of a job, by its number, with their think times.
    after: BTreeMap<JobNumber, Vec<(Span, Job)>>,
    /// The jobs that were released, by their submission and the order of their release.
    due: BTreeMap<(Time, u64), Job>,
    released: u64,
}

impl FeedbackJobs {
    /// Adds a job that is submitted `think` after the end of the job with the number `preceding`. That job has to
    /// come in the run, or this one never does.
    pub fn add(&mut self, preceding: JobNumber, think: Span, job: Job) {
        self.after.entry(preceding).or_default().push((think, job));
    }

    /// Releases the jobs after a job that ended.
    pub(super) fn ended(&mut self, number: JobNumber, now: Time) {
        for (think, mut job) in self.after.remove(&number).into_iter().flatten() {
            job.request.submit = now + think;
            self.due.insert((job.request.submit, self.released), job);
            self.released += 1;
        }
    }

    /// Returns the first submission of a released job.
    pub(super) fn next_time(&self) -> Option<Time> {
        self.due.first_key_value().map(|((submit, _), _)| *submit)
    }

    /// Returns the next released job that is submitted by now.
    pub(super) fn next(&mut self, now: Time) -> Option<Job> {
        let first = self.due.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}
