//! The jobs that a command means.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use miserly_api::client::{Client, ClientError};
use miserly_api::model::{Filter, JobRef, JobView, ProblemCode, listing};

/// The most numbers that are looked up one by one.
const MOST: usize = 20;

/// A number of a job as a command of Slurm takes it, and the step after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NamedJob {
    pub(super) job: JobRef,
    pub(super) step: Option<String>,
}

impl NamedJob {
    /// Parses `12`, `12_3`, `12_[3-8]` or `12.batch`.
    ///
    /// # Errors
    /// Any other text, in the words of Slurm.
    pub(super) fn parse(text: &str) -> Result<NamedJob, String> {
        let (job, step) = text.split_once('.').map_or((text, None), |(job, step)| (job, Some(step)));
        let job = job.split_once('%').map_or(job, |(job, _)| job);
        match job.parse() {
            Ok(JobRef::Range(..)) | Err(_) => Err(format!("Invalid job id: {text}")),
            Ok(job) => Ok(NamedJob { job, step: step.map(str::to_owned) }),
        }
    }

    /// Parses numbers with commas between them.
    ///
    /// # Errors
    /// As [`NamedJob::parse`].
    pub(super) fn list<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Vec<NamedJob>, String> {
        let mut jobs = vec![];
        for text in texts {
            let mut inside = false;
            let parts = text.split(|letter: char| {
                inside = letter == '[' || (inside && letter != ']');
                letter == ',' && !inside
            });
            for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
                jobs.push(NamedJob::parse(part)?);
            }
        }
        Ok(jobs)
    }

    /// Returns whether a job is meant. The number of an array means all its jobs.
    pub(super) fn admits(&self, job: &JobView) -> bool {
        let is_array = matches!(self.job, JobRef::One(number) if job.array == Some(number));
        is_array || self.job.admits(job.number, job.array, job.index)
    }
}

/// Returns the jobs that are meant, also ended ones, by number. Those that do not exist are left out.
///
/// # Errors
/// If the daemon does not answer.
pub(super) fn named(client: &Client, named: &[NamedJob]) -> Result<Vec<JobView>, ClientError> {
    let mut found = vec![];
    if named.len() > MOST {
        let numbers = named.iter().map(|one| one.job.numbers());
        let (first, last) = numbers.fold((i64::MAX, 0), |(first, last), numbers| {
            (first.min(*numbers.start()), last.max(numbers.end().saturating_add(i64::from(listing::MOST))))
        });
        let filter = Filter { all: true, details: true, after: Some(first - 1), ..Filter::default() };
        client.each_page(&filter, |page| {
            let is_over = page.last().is_none_or(|job| job.number > last);
            found.extend(page.into_iter().filter(|job| named.iter().any(|one| one.admits(job))));
            if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        return Ok(found);
    }
    let mut seen = BTreeSet::new();
    for one in named {
        let array = match &one.job {
            JobRef::One(number) => match client.job(*number) {
                Ok(job) if job.array == Some(*number) => *number,
                Ok(job) => {
                    found.extend(Some(job).filter(|job| seen.insert(job.number)));
                    continue;
                }
                Err(ClientError::Refused(problem)) if problem.code == ProblemCode::NotFound => continue,
                Err(error) => return Err(error),
            },
            JobRef::Array(array, _) => *array,
            JobRef::Range(..) => continue,
        };
        let filter = Filter {
            all: true,
            details: true,
            array: Some(array),
            limit: Some(listing::MOST),
            ..Filter::default()
        };
        let jobs = client.jobs(&filter)?;
        found.extend(jobs.into_iter().filter(|job| one.admits(job) && seen.insert(job.number)));
    }
    found.sort_by_key(|job| job.number);
    Ok(found)
}

/// Returns all jobs that a filter admits and that are wanted.
///
/// # Errors
/// If the daemon does not answer.
pub(super) fn all(
    client: &Client,
    filter: &Filter,
    mut wanted: impl FnMut(&JobView) -> bool,
) -> Result<Vec<JobView>, ClientError> {
    let mut found = vec![];
    client.each_page(filter, |page| {
        found.extend(page.into_iter().filter(|job| wanted(job)));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

/// Returns whether a user is among those that are named, by name or number. No name means all users.
pub(super) fn is_of_user(job: &JobView, users: &[String]) -> bool {
    users.is_empty() || users.iter().any(|user| *user == job.user || *user == job.uid.to_string())
}

/// Checks that there are users of these names.
pub(super) fn check_users(users: &[String]) -> Result<(), String> {
    let is_unknown = |user: &&String| {
        user.parse::<u32>().is_err() && !matches!(nix::unistd::User::from_name(user), Ok(Some(_)))
    };
    users.iter().find(is_unknown).map_or(Ok(()), |user| Err(format!("Invalid user: {user}")))
}

/// Returns the number of the user of this process.
pub(super) fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}
