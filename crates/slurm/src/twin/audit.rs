//! The starts of a twin beside those of its cluster.

use miserly_core::{Span, Time};
use serde::Serialize;

/// The starts of a log beside those of a twin.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TwinAudit {
    /// Jobs with a recorded start.
    pub jobs: u64,
    /// Jobs that waited for more than one cycle, in the log or under the twin.
    pub waited: u64,
    /// Jobs with starts that differ by a cycle at most.
    pub close: u64,
    /// The same, of those that waited.
    pub close_of_waited: u64,
    /// The length of a cycle, seconds.
    pub cycle: i64,
    /// Half of the starts differ by at most this, seconds.
    pub median_difference: i64,
    /// 95 % of the starts differ by at most this, seconds.
    pub difference_95: i64,
    /// The mean recorded wait, seconds.
    pub recorded_mean_wait: f64,
    /// The mean wait under the twin, seconds.
    pub twin_mean_wait: f64,
}

impl TwinAudit {
    /// Compares the submissions, the recorded starts and those under the twin of jobs.
    pub fn new(jobs: &[(Time, Time, Time)], cycle: Span) -> TwinAudit {
        let mut differences: Vec<i64> =
            jobs.iter().map(|(_, start, twin)| (*twin - *start).secs().abs()).collect();
        differences.sort_unstable();
        let quantile = |share: usize| {
            let rank = (differences.len() * share).div_ceil(100).saturating_sub(1);
            differences.get(rank).copied().unwrap_or(0)
        };
        let is_close = |(_, start, twin): &&(Time, Time, Time)| (*twin - *start).secs().abs() <= cycle.secs();
        let waited = |(submit, start, twin): &&(Time, Time, Time)| (*start).max(*twin) - *submit > cycle;
        let mean = |wait: &dyn Fn(&(Time, Time, Time)) -> Span| {
            let sum: f64 = jobs.iter().map(|job| wait(job).as_secs_f64()).sum();
            if jobs.is_empty() { 0.0 } else { sum / jobs.len() as f64 }
        };
        TwinAudit {
            jobs: jobs.len() as u64,
            waited: jobs.iter().filter(waited).count() as u64,
            close: jobs.iter().filter(is_close).count() as u64,
            close_of_waited: jobs.iter().filter(waited).filter(is_close).count() as u64,
            cycle: cycle.secs(),
            median_difference: quantile(50),
            difference_95: quantile(95),
            recorded_mean_wait: mean(&|(submit, start, _)| *start - *submit),
            twin_mean_wait: mean(&|(submit, _, twin)| *twin - *submit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_compared() {
        let at = |seconds| Time::from_secs(seconds).unwrap();
        let jobs = [(0, 0, 1), (0, 100, 90), (0, 10, 12)]
            .map(|(submit, start, twin)| (at(submit), at(start), at(twin)));
        let audit = TwinAudit::new(&jobs, Span::from_secs(5).unwrap());
        assert_eq!((audit.jobs, audit.close, audit.waited, audit.close_of_waited), (3, 2, 2, 1));
        assert_eq!((audit.median_difference, audit.difference_95), (2, 10));
    }
}
