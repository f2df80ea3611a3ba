//! Logs made of the users of a log (Zakay and Feitelson, Workload Resampling for Performance
//! Evaluation of Parallel Job Schedulers, ICPE 2013).

use std::collections::BTreeMap;

use crate::estimates::Factor;
use crate::generate::random::Stream;
use crate::swf::{Field, Record};
use crate::trace::{Trace, TraceError};
use crate::whole::WholeLog;

/// Streams of random numbers. Their values are part of the meaning of a seed.
mod purpose {
    pub(super) const LASTING: u64 = 61;
    pub(super) const TEMPORARY: u64 = 62;
}

const WEEK: i64 = 7 * 86_400;

/// How a log is resampled.
#[derive(Clone, Copy, Debug)]
pub struct Resampling {
    /// Length of the new log in weeks, 1 or more.
    pub weeks: u32,
    /// Weeks from which on a user is a long-term one, 1 or more. Default 12, decided here.
    pub lasting: u32,
    /// Factor of the number of users, and so of the load.
    pub users: Factor,
    /// Seed of all draws.
    pub seed: u64,
}

impl Default for Resampling {
    fn default() -> Resampling {
        Resampling { weeks: 52, lasting: 12, users: Factor::ONE, seed: 1 }
    }
}

/// The reason for which a log cannot be resampled.
#[derive(Debug, thiserror::Error)]
pub enum ResampleError {
    /// The log cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The log has no users.
    #[error("{name}: no job has a user (field 12); a log is resampled by its users")]
    NoUsers {
        /// Name of the log.
        name: String,
    },
}

/// The jobs of a user, with weeks counted from the first one that has a job of the user.
struct User {
    jobs: Vec<Record>,
    /// The first week of the log with a job.
    from: i64,
    /// The weeks from the first job's to the last one's, both included.
    weeks: i64,
}

/// Returns a log of other weeks with the users of this one. The same seed gives the same log.
///
/// Users are long-term or temporary, by the weeks from their first job to their last. A user comes
/// with all jobs from some week on, moved by whole weeks: weekday, time of day and the order of the
/// user's work stay. Jobs without a user are left out.
///
/// - As many long-term users are present as in the mean week of the log. At the start each is at a
///   random week of its jobs. After its last week another one takes the place, from its first week.
/// - Each week as many temporary users arrive as in the mean week of the log. They are drawn with
///   repetition. Those that arrived before the first week are there too.
///
/// The paper's summary was at hand and not its text: the limit of the weeks, and the way in which a
/// long-term user is replaced, are decided here.
///
/// So the load is that of the log in the mean over seeds. Each arrival has a user number of its own.
/// Recorded waits are unknown. Preceding jobs are renumbered, and unknown if they are not in the log.
///
/// # Errors
/// The log cannot be read, or has no users.
pub fn resample(trace: &Trace, resampling: &Resampling) -> Result<WholeLog, ResampleError> {
    let WholeLog { comments, jobs } = WholeLog::read(trace)?;
    let users = users(jobs);
    let first = users.iter().map(|user| user.from).min();
    let last = users.iter().map(|user| user.from + user.weeks).max();
    let Some((first, last)) = first.zip(last) else {
        return Err(ResampleError::NoUsers { name: trace.name().to_owned() });
    };
    let of_log = (last - first) as f64;
    let (lasting, temporary): (Vec<User>, Vec<User>) =
        users.into_iter().partition(|user| user.weeks >= i64::from(resampling.lasting));
    let mut made = Made { weeks: i64::from(resampling.weeks), ..Made::default() };
    let scale = resampling.users.as_f64();
    let weeks = lasting.iter().flat_map(|user| (0..user.weeks).map(move |week| (user, week)));
    let weeks: Vec<(&User, i64)> = weeks.collect();
    made.add_lasting(&lasting, &weeks, weeks.len() as f64 * scale / of_log, resampling.seed);
    made.add_temporary(&temporary, temporary.len() as f64 * scale / of_log, resampling);
    Ok(made.log(comments, resampling))
}

/// Returns the users in the order of their numbers.
fn users(jobs: Vec<Record>) -> Vec<User> {
    let mut by_user: BTreeMap<u64, Vec<Record>> = BTreeMap::new();
    for job in jobs {
        if let (Some(user), Some(_)) = (job.recorded(Field::User), job.recorded(Field::Submit)) {
            by_user.entry(user).or_default().push(job);
        }
    }
    let user = |mut jobs: Vec<Record>| {
        jobs.sort_by_key(submit);
        let week = |job: Option<&Record>| job.map_or(0, |job| submit(job).div_euclid(WEEK));
        let (from, to) = (week(jobs.first()), week(jobs.last()));
        User { jobs, from, weeks: to - from + 1 }
    };
    by_user.into_values().map(user).collect()
}

fn submit(job: &Record) -> i64 {
    job.get(Field::Submit)
}

/// The new log.
#[derive(Default)]
struct Made {
    weeks: i64,
    /// Jobs with the number of the arrival of their user.
    jobs: Vec<(u64, Record)>,
    arrivals: u64,
}

impl Made {
    /// Adds the jobs of a user whose first week becomes this one, which may be before the log.
    fn add(&mut self, user: &User, week: i64) {
        self.arrivals += 1;
        for job in &user.jobs {
            let at = submit(job) + (week - user.from) * WEEK;
            if (0..self.weeks * WEEK).contains(&at) {
                let mut job = job.clone();
                job.set(Field::Submit, at);
                self.jobs.push((self.arrivals, job));
            }
        }
    }

    /// Adds users of these weeks of users, so many at a time.
    fn add_lasting(&mut self, users: &[User], weeks: &[(&User, i64)], present: f64, seed: u64) {
        let mut stream = Stream::new(seed, purpose::LASTING);
        for _ in 0..whole(present, &mut stream) {
            let (mut user, begun) = weeks[stream.below(weeks.len())];
            let mut week = -begun;
            loop {
                self.add(user, week);
                week += user.weeks;
                if week >= self.weeks {
                    break;
                }
                user = &users[stream.below(users.len())];
            }
        }
    }

    fn add_temporary(&mut self, users: &[User], per_week: f64, resampling: &Resampling) {
        let mut stream = Stream::new(resampling.seed, purpose::TEMPORARY);
        for week in 1 - i64::from(resampling.lasting)..self.weeks {
            for _ in 0..whole(per_week, &mut stream) {
                self.add(&users[stream.below(users.len())], week);
            }
        }
    }

    /// Numbers the jobs in the order of their submission.
    fn log(self, mut comments: Vec<String>, resampling: &Resampling) -> WholeLog {
        let Made { mut jobs, .. } = self;
        // The sort is stable: jobs of one second stay in the order of arrivals and of their log.
        jobs.sort_by_key(|(_, job)| submit(job));
        let mut numbers = BTreeMap::new();
        for (number, (arrival, job)) in (1_i64..).zip(&mut jobs) {
            numbers.insert((*arrival, job.get(Field::Job)), number);
            let preceding = numbers.get(&(*arrival, job.get(Field::PrecedingJob))).copied();
            job.set(Field::PrecedingJob, preceding.unwrap_or(-1));
            if preceding.is_none() {
                job.set(Field::ThinkTime, -1);
            }
            job.set(Field::Job, number);
            job.set(Field::Wait, -1);
            job.set(Field::User, i64::try_from(*arrival).unwrap_or(i64::MAX));
        }
        let names = ["MaxJobs", "MaxRecords", "EndTime", "User"];
        let is_other = |comment: &String| {
            let name = comment.trim_start().trim_start_matches(';').split(':').next().unwrap_or_default();
            !names.iter().any(|other| other.eq_ignore_ascii_case(name.trim()))
        };
        comments.retain(is_other);
        let Resampling { weeks, lasting, users, seed } = resampling;
        comments.extend([
            format!("; MaxJobs: {}", jobs.len()),
            format!("; MaxRecords: {}", jobs.len()),
            "; Note: RESAMPLED: the users of a log in other weeks; dates are not those of the jobs"
                .to_owned(),
            format!("; Note: weeks={weeks} long_term={lasting} users={users} seed={seed}"),
        ]);
        WholeLog { comments, jobs: jobs.into_iter().map(|(_, job)| job).collect() }
    }
}

/// Returns one of the two whole numbers beside `mean`, so that this is the mean of many draws.
#[expect(clippy::cast_possible_truncation, reason = "users in a log")]
fn whole(mean: f64, stream: &mut Stream) -> i64 {
    let more = stream.uniform() < mean.fract();
    mean.floor() as i64 + i64::from(more)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log with jobs as number, submission, user and preceding job.
    fn log(jobs: &[[i64; 4]]) -> Trace {
        let line = |[job, submit, user, preceding]: &[i64; 4]| {
            format!("{job} {submit} 5 60 1 -1 -1 1 60 -1 1 {user} -1 -1 -1 -1 {preceding} 10\n")
        };
        let comments = "; MaxJobs: 99\n; MaxProcs: 4\n";
        Trace::memory("log", (comments.to_owned() + &jobs.iter().map(line).collect::<String>()).into_bytes())
    }

    /// A log of 40 weeks: user 1 has a job at second 7 of each week and one an hour later, which names it;
    /// each week one of the users from 100 on has two jobs.
    fn forty_weeks() -> Trace {
        let jobs = (0..40).flat_map(|week| {
            let (number, at) = (4 * week, week * WEEK);
            [
                [number + 1, at + 7, 1, -1],
                [number + 2, at + 3607, 1, number + 1],
                [number + 3, at + 50_000, 100 + week, -1],
                [number + 4, at + 50_100, 100 + week, number + 1],
            ]
        });
        log(&jobs.collect::<Vec<_>>())
    }

    fn made(trace: &Trace, resampling: Resampling) -> WholeLog {
        resample(trace, &resampling).unwrap()
    }

    #[test]
    fn the_same_seed_makes_the_same_log_and_another_another() {
        let bytes = |seed| {
            let mut text = Vec::new();
            made(&forty_weeks(), Resampling { weeks: 9, seed, ..Resampling::default() })
                .write(&mut text)
                .unwrap();
            text
        };
        assert_eq!(bytes(1), bytes(1));
        assert_ne!(bytes(1), bytes(2));
    }

    /// One long-term user is present in each week, and one temporary user arrives: the load and the time in
    /// the week are those of the log, beyond its length too.
    #[test]
    fn each_week_is_as_the_log_has_it() {
        let log = made(&forty_weeks(), Resampling { weeks: 200, ..Resampling::default() });
        assert_eq!(log.jobs.len(), 800);
        for week in 0..200 {
            let jobs = log.jobs.iter().filter(|job| submit(job).div_euclid(WEEK) == week);
            let times: Vec<i64> = jobs.map(|job| submit(job).rem_euclid(WEEK)).collect();
            assert_eq!(times, [7, 3607, 50_000, 50_100]);
        }
        let preceding: Vec<i64> = log.jobs.iter().take(4).map(|job| job.get(Field::PrecedingJob)).collect();
        // The preceding job of a temporary user is one of another user.
        assert_eq!(preceding, [-1, 1, -1, -1]);
        assert!(log.jobs.iter().all(|job| job.get(Field::Wait) == -1));
        assert_eq!(log.comments[..2], ["; MaxProcs: 4", "; MaxJobs: 800"]);
    }

    #[test]
    fn the_number_of_users_scales_the_load() {
        let users = "2.5".parse().unwrap();
        let log = made(&forty_weeks(), Resampling { weeks: 400, users, ..Resampling::default() });
        let jobs = log.jobs.len() as f64 / 1600.0;
        assert!((jobs - 2.5).abs() < 0.35, "{jobs}");
    }

    #[test]
    fn a_log_without_users() {
        let error = resample(&log(&[[1, 0, -1, -1]]), &Resampling::default()).unwrap_err();
        assert_eq!(error.to_string(), "log: no job has a user (field 12); a log is resampled by its users");
    }
}
