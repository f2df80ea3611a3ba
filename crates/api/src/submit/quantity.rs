//! The notation of durations, memory and arrays in job scripts and command lines.

use miserly_core::Span;
use miserly_units::{UnitError, parse_duration, parse_memory, parse_seconds};

use crate::model::{Array, IndexRange, Retry, digits, index_ranges, is_gpu_type};

/// The shortest time limit of a job.
const SHORTEST: Span = Span::from_ticks(1_000_000);

/// Returns the seconds of a duration of a second or more.
///
/// # Errors
/// A text that is no such duration.
pub fn length_of_time(text: &str) -> Result<u64, UnitError> {
    parse_seconds(text, SHORTEST).map(i64::unsigned_abs)
}

/// Returns the seconds of a longest wait, which may be 0.
///
/// # Errors
/// A text that is no duration.
pub fn wait_time(text: &str) -> Result<f64, UnitError> {
    parse_duration(text).map(Span::as_secs_f64)
}

/// Returns the bytes of an amount of memory.
///
/// # Errors
/// A text that is no amount of memory.
pub fn memory(text: &str) -> Result<u64, UnitError> {
    parse_memory(text)
}

/// Parses the indexes of an array: `0-15`, `0-15:4`, `1,3,5-9:2`. With `%4`, at most 4 of its jobs run at the same time.
///
/// # Errors
/// Any other text, and a step or a limit of 0.
pub fn array(text: &str) -> Result<Array, String> {
    let read = || {
        let (list, limit) = match text.split_once('%') {
            Some((list, limit)) => (list, Some(digits::<u32>(limit).filter(|limit| *limit > 0)?)),
            None => (text, None),
        };
        let mut ranges = index_ranges(list)?;
        let IndexRange { first, last, step } = ranges.remove(0);
        Some(Array { first, last, step, more: ranges, limit })
    };
    read().ok_or_else(|| {
        "write indexes, FIRST-LAST or FIRST-LAST:STEP, with commas between them, such as 0-15, 0-15:4 or 1,3,5-9, and \
         %N after them to run at most N jobs at the same time"
            .to_owned()
    })
}

/// Parses how often a job runs again after failures: `3`, or `3:75,111` with the exit codes that count.
///
/// # Errors
/// Any other text, and a limit beyond [`Retry::MOST`].
pub fn retry(text: &str) -> Result<Retry, String> {
    let read = || {
        let (limit, codes) = text.split_once(':').map_or((text, None), |(limit, codes)| (limit, Some(codes)));
        let limit = digits(limit).filter(|limit| (1..=Retry::MOST).contains(limit))?;
        let code = |code: &str| digits(code.trim()).filter(|code| (1..=255).contains(code));
        let codes = codes.map_or(Some(vec![]), |codes| codes.split(',').map(code).collect())?;
        Some(Retry { limit, codes })
    };
    let most = Retry::MOST;
    read().ok_or_else(|| {
        format!("write a number from 1 to {most}, and the exit codes that count, such as 3 or 3:75,111")
    })
}

/// The GPUs that a job requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuRequest {
    /// The number.
    pub count: u64,
    /// The type, or several with `|` between them; `None` for any.
    pub gpu_type: Option<String>,
}

impl From<u64> for GpuRequest {
    fn from(count: u64) -> GpuRequest {
        GpuRequest { count, gpu_type: None }
    }
}

/// Parses a number of GPUs: `2`, or with a type before it, as sbatch takes it: `a100:2`.
///
/// # Errors
/// Any other text.
pub fn gpus(text: &str) -> Result<GpuRequest, String> {
    let wrong = || "write a number of GPUs, such as 2, or one of a type, such as a100:2".to_owned();
    let (gpu_type, count) = text.rsplit_once(':').map_or((None, text), |(name, count)| (Some(name), count));
    if gpu_type.is_some_and(|types| types.split('|').any(|name| !is_gpu_type(name))) {
        return Err(wrong());
    }
    let count = count.parse().map_err(|_| wrong())?;
    Ok(GpuRequest { count, gpu_type: gpu_type.map(str::to_owned) })
}

/// Parses the GPUs of a generic resource, behind `gpu:`: `2`, `a100:2`, or a type alone, which is one of it.
///
/// # Errors
/// Any other text.
pub fn gres_gpus(text: &str) -> Result<GpuRequest, String> {
    let count = text.rsplit(':').next().unwrap_or_default();
    let is_number = !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { gpus(text) } else { gpus(&format!("{text}:1")) }
}

impl GpuRequest {
    /// Returns the text of it, as [`gpus`] parses it.
    pub fn written(&self) -> String {
        let count = self.count;
        self.gpu_type.as_ref().map_or_else(|| count.to_string(), |name| format!("{name}:{count}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries() {
        assert_eq!(retry("3"), Ok(Retry { limit: 3, codes: vec![] }));
        assert_eq!(retry("3:75, 111"), Ok(Retry { limit: 3, codes: vec![75, 111] }));
        for bad in ["", "0", "101", "-1", "3:", "3:0", "3:256", "3:a", ":75", "3:75,"] {
            assert!(retry(bad).is_err(), "{bad:?}");
        }
        let only = retry("1:75").unwrap();
        assert!(only.admits(75) && !only.admits(1) && !only.admits(0));
        assert!(retry("1").unwrap().admits(1) && !retry("1").unwrap().admits(0));
    }

    #[test]
    fn arrays() {
        let of = |first, last, step| Ok(Array::range(first, last, step));
        assert_eq!(array("0-15"), of(0, 15, 1));
        assert_eq!(array("0-15:4"), of(0, 15, 4));
        assert_eq!(array("7"), of(7, 7, 1));
        let more = |first, last, step| IndexRange { first, last, step };
        let list = Array { more: vec![more(3, 3, 1), more(5, 9, 2)], ..Array::range(1, 1, 1) };
        assert_eq!(array("1,3,5-9:2"), Ok(list.clone()));
        assert_eq!(list.indexes().into_iter().collect::<Vec<_>>(), [1, 3, 5, 7, 9]);
        assert_eq!(list.count(), 5);
        assert_eq!(array("1,3,5-9:2%4"), Ok(Array { limit: Some(4), ..list }));
        for bad in [
            "",
            "1-",
            "-1",
            "5-1",
            "0-15:0",
            "1,",
            ",1",
            "0-15%0",
            "0-15%",
            "%4",
            "0-15%4%4",
            "4294967296",
            "a-b",
        ] {
            assert!(array(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn gpus_of_a_type_or_of_any() {
        for (text, gpu_type, count) in [("2", None, 2), ("a100:4", Some("a100"), 4), ("0", None, 0)] {
            let gpu_type = gpu_type.map(str::to_owned);
            assert_eq!(gpus(text), Ok(GpuRequest { count, gpu_type }), "{text}");
        }
        for text in ["", "-1", "two", "1:", "1.5", ":2", "a100", "a b:2", "gpu:a100:2"] {
            assert!(gpus(text).is_err(), "{text}");
        }
    }
}
