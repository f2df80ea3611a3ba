//! The notation of lists of jobs.

use super::quantity::digits;

/// The most numbers in one range.
const MOST: i64 = 1_000_000;

/// A job number, or a range of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRange {
    /// A single job.
    One(i64),
    /// All jobs from the first to the last number, both included.
    Range(i64, i64),
}

/// Parses jobs with commas between them: `12`, `10-20`, `10-20,25`.
///
/// # Errors
/// A part that is no number above 0 and no range of them, and a range of more than a million numbers.
pub fn jobs(text: &str) -> Result<Vec<JobRange>, String> {
    text.split(',').map(|part| range(part.trim())).collect()
}

fn range(text: &str) -> Result<JobRange, String> {
    let number = |text: &str| digits::<i64>(text).filter(|number| *number > 0);
    let read = match text.split_once('-') {
        None => number(text).map(JobRange::One),
        Some((first, last)) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => Some(JobRange::Range(first, last)),
            _ => None,
        },
    };
    match read {
        Some(JobRange::Range(first, last)) if last - first >= MOST => {
            Err(format!("{text}: a range has at most {MOST} numbers"))
        }
        Some(range) => Ok(range),
        None => Err("write the numbers of jobs, such as 12, 10-20 or 10-20,25".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::JobRange::{One, Range};
    use super::*;

    #[test]
    fn lists_of_jobs() {
        assert_eq!(jobs("12"), Ok(vec![One(12)]));
        assert_eq!(jobs("10-20, 25"), Ok(vec![Range(10, 20), One(25)]));
        assert_eq!(jobs("7-7"), Ok(vec![Range(7, 7)]));
        for bad in
            ["", "0", "12,", "-1", "5-", "a", "20-10", "1-2-3", "0-5", "1-1000001", "99999999999999999999"]
        {
            assert!(jobs(bad).is_err(), "{bad:?}");
        }
    }
}
