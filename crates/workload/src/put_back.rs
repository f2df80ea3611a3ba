//! Jobs that a cleaning removed from a log, put back as a reconstruction.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use miserly_core::draw;

use crate::swf::{Field, Record};
use crate::trace::{Trace, TraceError};
use crate::whole::WholeLog;

/// The jobs of a user that a log lacks: the numbers of a range that no job of the log has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The user.
    pub user: i64,
    /// The job numbers.
    pub jobs: RangeInclusive<i64>,
}

/// The reason for which jobs cannot be put back.
#[derive(Debug, thiserror::Error)]
pub enum PutBackError {
    /// The log cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The log has nothing to make the jobs of.
    #[error("{name}: user {user} has no job with a number below {first}, so no job can be made like it")]
    NoModel {
        /// Name of the log.
        name: String,
        /// The user.
        user: i64,
        /// The first number of the range.
        first: i64,
    },
}

/// Returns the log with the jobs put back.
///
/// Each job is a copy of one of the user's last jobs before the range, drawn from those with the executable of the very
/// last one. Its recorded wait is unknown. The submissions of successive jobs divide the time between the jobs of the log
/// around them into equal parts. Times are in seconds. The same `seed` gives the same log.
///
/// # Errors
/// The log cannot be read, or the user has no job before the range.
pub fn put_back(trace: &Trace, removed: &Removed, seed: u64) -> Result<Trace, PutBackError> {
    let WholeLog { mut comments, mut jobs } = WholeLog::read(trace)?;
    let models = models(&jobs, removed);
    if models.is_empty() {
        let (name, user, first) = (trace.name().to_owned(), removed.user, *removed.jobs.start());
        return Err(PutBackError::NoModel { name, user, first });
    }
    let mut times: Vec<(i64, i64)> =
        jobs.iter().map(|job| (job.get(Field::Job), job.get(Field::Submit))).collect();
    times.sort_unstable();
    let there: BTreeSet<i64> = times.iter().map(|(job, _)| *job).collect();
    let missing = removed.jobs.clone().filter(|job| !there.contains(job));
    for number in missing {
        let after = times.partition_point(|(job, _)| *job < number);
        let Some((before, next)) = after.checked_sub(1).and_then(|at| times.get(at)).zip(times.get(after))
        else {
            continue;
        };
        let drawn = draw(seed, number, 0) % models.len() as u64;
        // The remainder is a position in the list.
        #[allow(clippy::cast_possible_truncation)]
        let mut job = models[drawn as usize].clone();
        let (parts, part) = (next.0 - before.0, number - before.0);
        job.set(Field::Job, number);
        job.set(Field::Submit, before.1 + (next.1 - before.1) * part / parts);
        job.set(Field::Wait, -1);
        jobs.push(job);
    }
    jobs.sort_by_key(|job| (job.get(Field::Submit), job.get(Field::Job)));
    comments.push("; Note: RECONSTRUCTION: jobs were put back that a cleaning had removed".to_owned());
    Ok(WholeLog { comments, jobs }.into_trace(trace.name()))
}

/// Returns the jobs of the user before the range, from the last one back to the first with another executable.
fn models(jobs: &[Record], removed: &Removed) -> Vec<Record> {
    let is_before =
        |job: &&Record| job.get(Field::User) == removed.user && job.get(Field::Job) < *removed.jobs.start();
    let mut before: Vec<Record> = jobs.iter().filter(is_before).cloned().collect();
    before.sort_by_key(|job| job.get(Field::Job));
    let Some(last) = before.last().map(|job| job.get(Field::Executable)) else { return before };
    let from = before.iter().rposition(|job| job.get(Field::Executable) != last).map_or(0, |at| at + 1);
    before.split_off(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs as number, submission, runtime, user and executable.
    fn log(jobs: &[[i64; 5]]) -> Trace {
        let line = |[job, submit, runtime, user, executable]: &[i64; 5]| {
            format!("{job} {submit} 0 {runtime} 1 -1 -1 1 60 -1 1 {user} -1 {executable} -1 -1 -1 -1\n")
        };
        Trace::memory("log", jobs.iter().map(line).collect::<String>().into_bytes())
    }

    /// Returns number, submission and runtime of each job.
    fn jobs(trace: &Trace) -> Vec<[i64; 3]> {
        let jobs = WholeLog::read(trace).unwrap().jobs;
        jobs.iter()
            .map(|job| [Field::Job, Field::Submit, Field::Runtime].map(|field| job.get(field)))
            .collect()
    }

    fn removed(jobs: RangeInclusive<i64>) -> Removed {
        Removed { user: 7, jobs }
    }

    #[test]
    fn the_numbers_that_are_missing_are_made_like_the_last_jobs_of_the_user() {
        let log = log(&[
            [1, 0, 900, 7, 1],
            [2, 5, 40, 7, 2],
            [3, 10, 300, 8, 2],
            [6, 40, 300, 8, 2],
            [8, 60, 1, 9, 1],
        ]);
        let back = put_back(&log, &removed(4..=7), 1).unwrap();
        let expected = [
            [1, 0, 900],
            [2, 5, 40],
            [3, 10, 300],
            [4, 20, 40],
            [5, 30, 40],
            [6, 40, 300],
            [7, 50, 40],
            [8, 60, 1],
        ];
        assert_eq!(jobs(&back), expected);
        assert!(WholeLog::read(&back).unwrap().comments[0].contains("RECONSTRUCTION"));
    }

    #[test]
    fn a_seed_draws_among_them() {
        let before = [[1, 0, 10, 7, 2], [2, 0, 20, 7, 2]];
        let log = log(&[&before[..], &[[203, 203, 1, 8, 1]]].concat());
        let runtimes = |seed| jobs(&put_back(&log, &removed(3..=202), seed).unwrap());
        assert_eq!(runtimes(1), runtimes(1));
        assert_ne!(runtimes(1), runtimes(2));
        let of_first = runtimes(1).iter().filter(|job| job[2] == 10).count();
        assert!((60..140).contains(&of_first), "{of_first}");
    }

    #[test]
    fn a_user_without_jobs_before_is_an_error() {
        let error = put_back(&log(&[[1, 0, 900, 8, 1]]), &removed(2..=3), 1).err().unwrap();
        assert!(error.to_string().contains("user 7 has no job with a number below 2"), "{error}");
    }
}
