//! The use of a pool over time.

use crate::{Facts, State};

/// Returns the processors of a pool that jobs had in their windows, as the mean of each of `columns` equal parts of the time from
/// `from` to `to`.
///
/// Only jobs that started count. O(jobs x columns) at most.
pub(crate) fn use_of_pool(facts: &Facts, pool: usize, from: i64, to: i64, columns: usize) -> Vec<f64> {
    let mut taken = vec![0.0; columns];
    let width = to.saturating_sub(from) as f64 / columns.max(1) as f64;
    if width <= 0.0 {
        return taken;
    }
    for job in facts.jobs.iter().filter(|job| job.pool == pool) {
        let runs = matches!(job.state, State::Running | State::Ended);
        let (Some(start), true) = (job.start, runs) else { continue };
        let end = if job.state == State::Ended { job.end.unwrap_or(facts.now) } else { facts.now };
        let (start, end) = (start.max(from), end.min(to).min(facts.now));
        if start >= end {
            continue;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a column, from 0")]
        let column = |at: i64| (((at - from) as f64 / width) as usize).min(columns - 1);
        for (at, taken) in taken.iter_mut().enumerate().take(column(end) + 1).skip(column(start)) {
            let begin = from as f64 + at as f64 * width;
            let part = (end as f64).min(begin + width) - (start as f64).max(begin);
            *taken += job.procs as f64 * part.max(0.0) / width;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;

    #[test]
    fn a_job_counts_for_its_part_of_a_column() {
        let job =
            |state, start, end| Job { procs: 4, state, start: Some(start), end: Some(end), ..Job::default() };
        let jobs = [job(State::Ended, -10, 5), job(State::Running, 35, 90)];
        let facts = Facts { now: 40, ..Facts::of_jobs(8, jobs) };
        let used: Vec<String> =
            use_of_pool(&facts, 0, 0, 40, 4).into_iter().map(|cpus| format!("{cpus:.1}")).collect();
        assert_eq!(used, ["2.0", "0.0", "0.0", "2.0"]);
    }
}
