//! Jobs that a user submits after the end of an earlier one.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Span, named_enum};

use crate::jobs::Job;
use crate::swf::Field;

named_enum! {
    /// How a job finds the job after whose end it is submitted.
    pub enum Feedback {
        /// By the log: the preceding job and the think time, fields 17 and 18.
        Fields "fields",
        /// By the sessions of the recorded schedule: the job of the user that ended last before the
        /// submission, if that was less than [`THINK_MOST`] ago.
        Sessions "sessions",
    }
}

/// The longest think time within a session (Shmueli and Feitelson; Zakay and Feitelson): 20 minutes.
pub const THINK_MOST: Span = Span::from_ticks(1_200_000_000);

/// The reason for which a log gives no feedback.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoFeedback {
    /// No job names an earlier one.
    #[error(
        "no job names a preceding one that is simulated (field 17); --feedback sessions derives it from recorded waits"
    )]
    Fields,
    /// No job follows the end of another one of its user.
    #[error("no user has a session: this needs users (field 12) and recorded waits (field 3)")]
    Sessions,
}

/// Returns for each job, in the order of the log, the number of the job after whose end it is submitted, and the
/// think time between.
///
/// The jobs need their [lines](crate::JobOptions::keep_records). A job that names none, or one that is not
/// before it among the jobs, has `None`.
///
/// # Errors
/// No job depends on another one.
pub fn preceding(jobs: &[Job], feedback: Feedback) -> Result<Vec<Option<(i64, Span)>>, NoFeedback> {
    let (found, none): (Vec<_>, _) = match feedback {
        Feedback::Fields => (by_fields(jobs), NoFeedback::Fields),
        Feedback::Sessions => (by_sessions(jobs), NoFeedback::Sessions),
    };
    if found.iter().all(Option::is_none) { Err(none) } else { Ok(found) }
}

fn by_fields(jobs: &[Job]) -> Vec<Option<(i64, Span)>> {
    let mut earlier = BTreeSet::new();
    let named = |job: &Job| {
        let record = job.record.as_deref()?;
        let number = record.get(Field::PrecedingJob);
        let think =
            i64::try_from(record.recorded(Field::ThinkTime).unwrap_or(0)).ok().and_then(Span::from_secs)?;
        let found = earlier.contains(&number).then_some((number, think));
        earlier.insert(job.request.number);
        found
    };
    jobs.iter().map(named).collect()
}

fn by_sessions(jobs: &[Job]) -> Vec<Option<(i64, Span)>> {
    // The ends of each user's jobs so far in seconds, with their numbers.
    let mut ends: BTreeMap<u32, BTreeSet<(u64, i64)>> = BTreeMap::new();
    let follows = |job: &Job| {
        let (record, user) = (job.record.as_deref()?, job.request.user?);
        let submit = record.recorded(Field::Submit)?;
        let of_user = ends.entry(user).or_default();
        let last = of_user.range(..=(submit, i64::MAX)).next_back().copied();
        if let Some((wait, runtime)) = record.recorded(Field::Wait).zip(record.recorded(Field::Runtime)) {
            of_user.insert((submit + wait + runtime, job.request.number));
        }
        let (end, number) = last?;
        let think = i64::try_from(submit - end).ok().and_then(Span::from_secs)?;
        (think < THINK_MOST).then_some((number, think))
    };
    jobs.iter().map(follows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{JobOptions, Jobs, Trace};

    /// The preceding job and the think time in seconds, for jobs as submission, wait, runtime, user,
    /// preceding job and think time; the numbers are their places.
    fn found(jobs: &[[i64; 6]], feedback: Feedback) -> Result<Vec<Option<(i64, i64)>>, NoFeedback> {
        let line = |(number, [submit, wait, runtime, user, before, think]): (i64, &[i64; 6])| {
            format!(
                "{number} {submit} {wait} {runtime} 1 -1 -1 1 900 -1 1 {user} -1 -1 -1 -1 {before} {think}\n"
            )
        };
        let text: String = (1..).zip(jobs).map(line).collect();
        let trace = Trace::memory("log", text.into_bytes());
        let options = JobOptions { procs: 4_u64.into(), keep_records: true, ..JobOptions::default() };
        let jobs: Vec<Job> = Jobs::new(&trace, true, options).unwrap().map(Result::unwrap).collect();
        let found = preceding(&jobs, feedback)?;
        Ok(found.into_iter().map(|found| found.map(|(number, think)| (number, think.secs()))).collect())
    }

    #[test]
    fn by_the_fields_of_the_log() {
        let jobs =
            [[0, 0, 60, 1, -1, -1], [90, 0, 60, 1, 1, 30], [95, 0, 60, 1, 1, -1], [99, 0, 60, 1, 9, 5]];
        let expected = vec![None, Some((1, 30)), Some((1, 0)), None];
        assert_eq!(found(&jobs, Feedback::Fields), Ok(expected));
        assert_eq!(found(&jobs[..1], Feedback::Fields), Err(NoFeedback::Fields));
    }

    /// Job 1 ends at 100 and job 2 of the same user at 450. Job 3 comes while job 2 runs: it follows job 1.
    /// Job 4 comes at 460. Job 5 is of another user, and job 6 comes 20 minutes after the last end.
    #[test]
    fn by_sessions() {
        let jobs = [
            [0, 40, 60, 1, -1, -1],
            [50, 100, 300, 1, -1, -1],
            [100, 0, 20, 1, -1, -1],
            [460, 0, 10, 1, -1, -1],
            [465, 0, 10, 2, -1, -1],
            [1670, 0, 10, 1, -1, -1],
        ];
        let expected = vec![None, None, Some((1, 0)), Some((2, 10)), None, None];
        assert_eq!(found(&jobs, Feedback::Sessions), Ok(expected));
        let without_waits = jobs.map(|[submit, _, runtime, user, ..]| [submit, -1, runtime, user, -1, -1]);
        assert_eq!(found(&without_waits, Feedback::Sessions), Err(NoFeedback::Sessions));
    }
}
