//! The notation of jobs: `12`, `10-20`, `1_60`, `1[3-200]`.
//!
//! Every argument and every field that names jobs is parsed here, and every printed list has this form.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::IndexRange;

/// The most numbers in one range.
const MOST: i64 = 1_000_000;

/// One job, or several: a number, a range of numbers, or some indexes of an array.
///
/// ```
/// use miserly_api::model::JobRef;
///
/// let one: JobRef = "1_60".parse().unwrap();
/// assert_eq!(one, "1[60]".parse().unwrap());
/// assert_eq!(one.to_string(), "1[60]");
/// assert!(one.admits(61, Some(1), Some(60)) && !one.admits(60, None, None));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub enum JobRef {
    /// The job with a number.
    One(i64),
    /// All jobs from the first to the last number, both included.
    Range(i64, i64),
    /// The jobs of the array with this number that have one of these indexes.
    Array(i64, Vec<IndexRange>),
}

impl JobRef {
    /// Returns whether a job is meant, by its number, the number of its array and its index there.
    pub fn admits(&self, number: i64, array: Option<i64>, index: Option<u32>) -> bool {
        match self {
            JobRef::One(one) => number == *one,
            JobRef::Range(first, last) => (*first..=*last).contains(&number),
            JobRef::Array(first, indexes) => {
                let has = |index: u32| indexes.iter().any(|range| range.contains(index));
                array == Some(*first) && index.is_some_and(has)
            }
        }
    }

    /// Returns the numbers among which the jobs are. The jobs of an array have consecutive numbers, in the order of their indexes.
    pub fn numbers(&self) -> RangeInclusive<i64> {
        match self {
            JobRef::One(one) => *one..=*one,
            JobRef::Range(first, last) => *first..=*last,
            JobRef::Array(first, indexes) => {
                let last = indexes.iter().map(|range| range.last).max().unwrap_or(0);
                *first..=first.saturating_add(last.into())
            }
        }
    }

    /// Returns whether it means exactly one job.
    pub fn is_single(&self) -> bool {
        self.count() == 1 && !matches!(self, JobRef::Range(..))
    }

    /// Returns the number of jobs that are meant if all of them exist.
    pub fn count(&self) -> u64 {
        match self {
            JobRef::One(_) => 1,
            JobRef::Range(first, last) => (last - first).unsigned_abs() + 1,
            JobRef::Array(_, indexes) => indexes.iter().copied().map(IndexRange::count).sum(),
        }
    }
}

impl IndexRange {
    /// Returns whether an index is in the range.
    pub fn contains(&self, index: u32) -> bool {
        (self.first..=self.last).contains(&index) && (index - self.first).is_multiple_of(self.step.max(1))
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobRef::One(one) => write!(f, "{one}"),
            JobRef::Range(first, last) => write!(f, "{first}-{last}"),
            JobRef::Array(first, indexes) => {
                write!(f, "{first}[")?;
                for (nth, IndexRange { first, last, step }) in indexes.iter().enumerate() {
                    let comma = if nth > 0 { "," } else { "" };
                    match (first == last, step) {
                        (true, _) => write!(f, "{comma}{first}")?,
                        (false, 1) => write!(f, "{comma}{first}-{last}")?,
                        (false, step) => write!(f, "{comma}{first}-{last}:{step}")?,
                    }
                }
                write!(f, "]")
            }
        }
    }
}

impl FromStr for JobRef {
    type Err = String;

    fn from_str(text: &str) -> Result<JobRef, String> {
        let read = parse(text.trim());
        match &read {
            Some(JobRef::Range(first, last)) if last - first >= MOST => {
                return Err(format!("{text}: a range has at most {MOST} numbers"));
            }
            _ => {}
        }
        read.ok_or_else(|| {
            format!(
                "{text:?} is no job; write the number of a job, such as 12, a range 10-20, or the index of an array, 12_3 \
                 or 12[3-8]"
            )
        })
    }
}

impl TryFrom<String> for JobRef {
    type Error = String;

    fn try_from(text: String) -> Result<JobRef, String> {
        text.parse()
    }
}

impl From<JobRef> for String {
    fn from(jobs: JobRef) -> String {
        jobs.to_string()
    }
}

fn parse(text: &str) -> Option<JobRef> {
    let number = |text: &str| digits::<i64>(text).filter(|number| *number > 0);
    if let Some(rest) = text.strip_suffix(']') {
        let (array, list) = rest.split_once('[')?;
        let array = number(array.strip_suffix('_').unwrap_or(array))?;
        return Some(JobRef::Array(array, index_ranges(list)?));
    }
    if let Some((array, indexes)) = text.split_once('_') {
        return Some(JobRef::Array(number(array)?, vec![index_range(indexes)?]));
    }
    match text.split_once('-') {
        None => number(text).map(JobRef::One),
        Some((first, last)) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(JobRef::Range(first, last))
        }
    }
}

/// Parses a list of jobs with commas between them: `12`, `10-20,25`, `1[3-5,8],20`.
///
/// # Errors
/// A part that names no job, and a range of more than a million numbers.
pub fn job_refs(text: &str) -> Result<Vec<JobRef>, String> {
    split_outside(text, ',').into_iter().map(str::parse).collect()
}

/// Splits a text at the separators that are in no brackets.
pub(crate) fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let mut inside = false;
    let split = |letter: char| {
        inside = letter == '[' || (inside && letter != ']');
        letter == separator && !inside
    };
    text.split(split).collect()
}

/// Parses ranges of indexes with commas between them: `0-15`, `0-15:4`, `1,3,5-9:2`.
pub(crate) fn index_ranges(list: &str) -> Option<Vec<IndexRange>> {
    list.split(',').map(index_range).collect()
}

fn index_range(text: &str) -> Option<IndexRange> {
    let (range, step) = text.split_once(':').unwrap_or((text, "1"));
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let range = IndexRange { first: digits(first)?, last: digits(last)?, step: digits(step)? };
    (range.first <= range.last && range.step > 0).then_some(range)
}

/// Parses a number of plain digits, without sign or blanks.
pub(crate) fn digits<T: FromStr>(text: &str) -> Option<T> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}

/// Returns the ranges of consecutive numbers among those of some jobs, each once and in order.
pub fn job_ranges(jobs: &[i64]) -> Vec<JobRef> {
    let mut sorted = jobs.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let range = |run: &[i64]| match run {
        [one] => Some(JobRef::One(*one)),
        [first, .., last] => Some(JobRef::Range(*first, *last)),
        [] => None,
    };
    sorted.chunk_by(|one, next| one + 1 == *next).filter_map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::JobRef::{Array, One, Range};
    use super::*;

    fn array(first: i64, indexes: &[(u32, u32, u32)]) -> JobRef {
        let range = |&(first, last, step): &(u32, u32, u32)| IndexRange { first, last, step };
        Array(first, indexes.iter().map(range).collect())
    }

    #[track_caller]
    fn check(text: &str, expect: &[JobRef]) {
        assert_eq!(job_refs(text).as_deref(), Ok(expect), "{text}");
    }

    #[test]
    fn lists_of_jobs() {
        check("12", &[One(12)]);
        check("10-20, 25", &[Range(10, 20), One(25)]);
        check("7-7", &[Range(7, 7)]);
        check("1_60,1_3-7", &[array(1, &[(60, 60, 1)]), array(1, &[(3, 7, 1)])]);
        check("1[60],1_[60]", &[array(1, &[(60, 60, 1)]), array(1, &[(60, 60, 1)])]);
        check("1[3-5,8,10-20:2],20", &[array(1, &[(3, 5, 1), (8, 8, 1), (10, 20, 2)]), One(20)]);
    }

    #[test]
    fn what_names_no_job() {
        for bad in [
            "",
            "0",
            "12,",
            "-1",
            "5-",
            "a",
            "20-10",
            "1-2-3",
            "0-5",
            "1-1000001",
            "99999999999999999999",
            "1_",
            "_1",
            "0_1",
            "1_3-2",
            "1_2_3",
            "1[",
            "1[]",
            "1]",
            "[1]",
            "1[5-3]",
            "1[3:0]",
            "1[4294967296]",
            "1[2]3",
            "1[2][3]",
            "1[[2]]",
        ] {
            assert!(job_refs(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_printed_is_understood() {
        for text in ["12", "10-20", "1[60]", "1[3-200]", "1[0,2-8:2,11-12]"] {
            assert_eq!(text.parse::<JobRef>().unwrap().to_string(), text);
        }
        let ranges = job_ranges(&[14, 10, 12, 13, 12]);
        assert_eq!(ranges, [One(10), Range(12, 14)]);
        assert_eq!(job_ranges(&[]), []);
    }

    #[test]
    fn the_jobs_that_are_meant() {
        let some = array(5, &[(3, 9, 3)]);
        assert_eq!((some.count(), some.numbers(), some.is_single()), (3, 5..=14, false));
        assert!(some.admits(8, Some(5), Some(6)) && !some.admits(8, Some(5), Some(7)));
        assert!(!some.admits(8, Some(4), Some(6)) && !some.admits(8, None, None));
        assert!(Range(2, 4).admits(4, Some(1), Some(3)) && !Range(2, 4).admits(5, None, None));
        assert!(One(2).is_single() && !Range(2, 2).is_single(), "a range skips what it does not find");
    }
}
