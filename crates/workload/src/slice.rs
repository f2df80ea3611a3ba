//! Windows of a log, each as a log of its own that begins with the jobs in the system.
//!
//! The log of a window begins some time before it: the warm-up. Jobs that run at the begin of the log are submitted at
//! second 0 with their remaining time. Jobs that wait then are submitted at second 1 with their whole time, so that no
//! policy starts one of them before those that run.
//! Measures of the window leave out the jobs that are submitted within the warm-up, as its header says. So no measure
//! needs the time that a job waited before the log.

use std::collections::BTreeSet;
use std::io::{self, Write};

use miserly_core::Procs;

use crate::dates::LogDates;
use crate::jobs::{LineCounts, ProcsField, RecordSource};
use crate::swf::{Field, Record, SwfWriter, is_count, value_of};
use crate::trace::{Survey, Trace, TraceError};

/// The shortest warm-up with the jobs in the system, in seconds: one for those that run, one for those that wait.
pub const LEAST_WARMUP: i64 = 2;

/// Header lines with times of the whole log.
const TIMES: [&str; 4] = ["UnixStartTime", "StartTime", "EndTime", "Warmup"];

/// Options of windows. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceOptions {
    /// Processors of the machine.
    pub procs: Procs,
    /// Preferred field for the size.
    pub procs_field: ProcsField,
    /// Length of a window.
    pub length: i64,
    /// The number of windows, at equal distances. Without it, windows follow each other.
    pub count: Option<u32>,
    /// The time before a window in its log: at least [`LEAST_WARMUP`], unless it is cold.
    pub warmup: i64,
    /// Whether the log of a window begins on an idle machine.
    pub cold: bool,
    /// Whether malformed lines are skipped.
    pub lenient: bool,
}

/// A window of a log. Times are in seconds of the log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Number, from 1.
    pub number: usize,
    /// Begin.
    pub begin: i64,
    /// End, excluded.
    pub end: i64,
    /// Jobs that are submitted in the window.
    pub jobs: u64,
    /// Work of these jobs over the capacity of the machine in the window.
    pub load: f64,
    /// Part of the window in which a job waits, by the recorded starts; `None` if the log has none.
    pub saturation: Option<f64>,
    /// Jobs that run at the begin of its log.
    pub running: u64,
    /// Jobs that wait at the begin of its log.
    pub waiting: u64,
}

/// The content of the log of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Jobs that run at its begin.
    pub running: u64,
    /// Jobs that wait at its begin.
    pub waiting: u64,
    /// All its jobs.
    pub jobs: u64,
    /// Earlier jobs without a recorded start and runtime, which may have been in the system.
    pub unknown: u64,
}

/// The reason for which a log has no windows.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    /// The log cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The log is shorter than a window.
    #[error("{name}: its submissions span {span} s; a window of {length} s does not fit")]
    TooShort {
        /// Name of the log.
        name: String,
        /// Seconds from the first submission to the last.
        span: i64,
        /// Length of a window in seconds.
        length: i64,
    },
    /// The log has no recorded starts.
    #[error(
        "{name}: no job has a recorded start, so the jobs at the begin of a window are unknown; \
         --cold begins on an idle machine"
    )]
    NoStarts {
        /// Name of the log.
        name: String,
    },
    /// The output fails.
    #[error("cannot write the log: {0}")]
    Write(#[from] io::Error),
}

/// A job at the begin of the log of a window.
enum State {
    Gone,
    /// Seconds that it has run.
    Running(i64),
    /// Its start.
    Waiting(i64),
    /// Start or runtime are not recorded.
    Unknown,
}

impl SliceOptions {
    /// Returns the begin of the log of a window with this begin.
    fn log_begin(&self, window: i64) -> i64 {
        window - if self.cold { self.warmup } else { self.warmup.max(LEAST_WARMUP) }
    }

    /// Returns the time before the window in its log.
    pub fn measured_from(&self) -> i64 {
        -self.log_begin(0)
    }
}

/// Returns the recorded start.
fn start(record: &Record) -> Option<i64> {
    record.get(Field::Submit).checked_add_unsigned(record.recorded(Field::Wait)?)
}

/// Returns the state of a job that was submitted by this instant.
fn state(record: &Record, at: i64) -> State {
    let Some((start, runtime)) = start(record).zip(record.recorded(Field::Runtime)) else {
        return State::Unknown;
    };
    if start > at {
        State::Waiting(start)
    } else if start.saturating_add_unsigned(runtime) > at {
        State::Running(at - start)
    } else {
        State::Gone
    }
}

/// Lists the windows of a log in the order of their begins.
///
/// The first window begins with the first submission, and no window ends after the last one.
///
/// # Errors
/// The log cannot be read, or is shorter than a window. [`SliceError::NoStarts`] unless the windows are cold.
pub fn windows(trace: &Trace, survey: &Survey, options: &SliceOptions) -> Result<Vec<Window>, SliceError> {
    let (first, last) = submissions(trace, survey, options)?;
    let mut windows = placed(trace, first, last, options)?;
    let mut works = vec![0_u128; windows.len()];
    let mut waits = vec![0_i64; windows.len()];
    let (mut waited_until, mut any_start) = (i64::MIN, false);
    each(trace, survey, options, |record| {
        let submit = record.get(Field::Submit);
        let size = options.procs_field.size(record).unwrap_or(Procs::ZERO);
        let work = u128::from(size) * u128::from(record.recorded(Field::Runtime).unwrap_or(0));
        for window in overlapping(&windows, submit, submit + 1) {
            windows[window].jobs += 1;
            works[window] += work;
        }
        let Some(start) = start(record) else { return };
        any_start = true;
        let from = submit.max(waited_until);
        if from < start {
            for window in overlapping(&windows, from, start) {
                waits[window] += start.min(windows[window].end) - from.max(windows[window].begin);
            }
            waited_until = start;
        }
        if options.cold {
            return;
        }
        let end = start.saturating_add_unsigned(record.recorded(Field::Runtime).unwrap_or(0));
        // The windows whose logs begin while the job is in the system.
        let since = windows.partition_point(|window| options.log_begin(window.begin) < submit);
        let until = windows.partition_point(|window| options.log_begin(window.begin) < end.max(start));
        for window in &mut windows[since..until.max(since)] {
            match state(record, options.log_begin(window.begin)) {
                State::Running(_) => window.running += 1,
                State::Waiting(_) => window.waiting += 1,
                State::Gone | State::Unknown => {}
            }
        }
    })?;
    if !any_start && !options.cold {
        return Err(SliceError::NoStarts { name: trace.name().into() });
    }
    let length = options.length as f64;
    for (window, (work, waited)) in windows.iter_mut().zip(works.into_iter().zip(waits)) {
        window.load = work as f64 / (options.procs.get() as f64 * length);
        window.saturation = any_start.then(|| waited as f64 / length);
    }
    Ok(windows)
}

/// Returns the window whose load is nearest to the middle of a range, of those in the range; the first of several.
pub fn with_load(windows: &[Window], low: f64, high: f64) -> Option<Window> {
    let distance = |window: &Window| (window.load - f64::midpoint(low, high)).abs();
    let within = windows.iter().filter(|window| (low..=high).contains(&window.load));
    within.min_by(|a, b| distance(a).total_cmp(&distance(b))).copied()
}

/// Writes the log of a window.
///
/// Jobs keep their numbers. Preceding jobs that are not in it become unknown.
///
/// # Errors
/// The log cannot be read, or the output fails.
pub fn write_window(
    trace: &Trace,
    survey: &Survey,
    options: &SliceOptions,
    window: &Window,
    output: impl Write,
) -> Result<Slice, SliceError> {
    let begin = options.log_begin(window.begin);
    let mut slice = Slice { running: 0, waiting: 0, jobs: 0, unknown: 0 };
    let mut jobs = Vec::new();
    each(trace, survey, options, |record| {
        let mut record = record.clone();
        let submit = record.get(Field::Submit);
        // A cold log has the jobs from its begin on, any other those after the state at its begin.
        if submit > begin || options.cold && submit == begin {
            if submit >= window.end {
                return;
            }
            record.set(Field::Submit, submit - begin);
        } else if options.cold {
            return;
        } else {
            match state(&record, begin) {
                State::Running(ran) => {
                    slice.running += 1;
                    record.set(Field::Submit, 0);
                    record.set(Field::Wait, 0);
                    record.set(Field::Runtime, record.get(Field::Runtime) - ran);
                    if record.positive(Field::Estimate).is_some() {
                        record.set(Field::Estimate, (record.get(Field::Estimate) - ran).max(1));
                    }
                }
                State::Waiting(start) => {
                    slice.waiting += 1;
                    record.set(Field::Submit, 1);
                    record.set(Field::Wait, start - begin - 1);
                }
                State::Unknown => {
                    slice.unknown += 1;
                    return;
                }
                State::Gone => return,
            }
        }
        jobs.push(record);
    })?;
    jobs.sort_by_key(|job| job.get(Field::Submit));
    let numbers: BTreeSet<i64> = jobs.iter().map(|job| job.get(Field::Job)).collect();
    slice.jobs = jobs.len() as u64;
    let mut writer = SwfWriter::new(output);
    for comment in comments(trace, survey, options, window, &slice) {
        writer.comment(&comment)?;
    }
    for job in &mut jobs {
        if !numbers.contains(&job.get(Field::PrecedingJob)) {
            job.set(Field::PrecedingJob, -1);
            job.set(Field::ThinkTime, -1);
        }
        writer.job(job)?;
    }
    writer.into_inner().flush()?;
    Ok(slice)
}

/// Returns the comments of the log of a window.
fn comments(
    trace: &Trace,
    survey: &Survey,
    options: &SliceOptions,
    window: &Window,
    slice: &Slice,
) -> Vec<String> {
    let is_kept =
        |comment: &&String| !is_count(comment) && TIMES.iter().all(|name| value_of(comment, name).is_none());
    let mut comments: Vec<String> = survey.header.comments().iter().filter(is_kept).cloned().collect();
    comments.push(format!("; MaxJobs: {}", slice.jobs));
    comments.push(format!("; MaxRecords: {}", slice.jobs));
    let begin = options.log_begin(window.begin);
    comments.extend(LogDates::of(survey).map(|dates| format!("; UnixStartTime: {}", dates.start() + begin)));
    let Window { begin: from, end: to, .. } = window;
    comments.push(format!("; Note: the seconds {from} to {to} of {}, from second {begin} on", trace.stem()));
    if !options.cold {
        let Slice { running, waiting, .. } = slice;
        comments.push(format!(
            "; Note: {running} jobs at second 0 ran before, and have their remaining time; {waiting} jobs at second 1 waited before"
        ));
    }
    let measured = options.measured_from();
    if measured > 0 {
        comments.push(format!("; Warmup: {measured}"));
    }
    comments
}

/// Calls `work` with the records that have a submission, in its order.
fn each(
    trace: &Trace,
    survey: &Survey,
    options: &SliceOptions,
    mut work: impl FnMut(&Record),
) -> Result<(), TraceError> {
    let mut counts = LineCounts::default();
    let mut source = RecordSource::new(trace, survey.in_order, options.lenient, &mut counts)?;
    while let Some(record) = source.next(trace, options.lenient, &mut counts)? {
        if record.get(Field::Submit) >= 0 {
            work(record);
        }
    }
    Ok(())
}

/// Returns the first and the last submission.
fn submissions(trace: &Trace, survey: &Survey, options: &SliceOptions) -> Result<(i64, i64), TraceError> {
    let mut found: Option<(i64, i64)> = None;
    each(trace, survey, options, |record| {
        let submit = record.get(Field::Submit);
        found = Some(found.map_or((submit, submit), |(first, last)| (first.min(submit), last.max(submit))));
    })?;
    found.ok_or_else(|| TraceError::Empty { name: trace.name().to_owned() })
}

/// Returns the windows without their jobs.
fn placed(trace: &Trace, first: i64, last: i64, options: &SliceOptions) -> Result<Vec<Window>, SliceError> {
    let (span, length) = (last - first + 1, options.length);
    let room = span - length;
    if room < 0 {
        return Err(SliceError::TooShort { name: trace.name().into(), span: span - 1, length });
    }
    let begins: Vec<i64> = match options.count {
        None => (0..span / length).map(|window| first + window * length).collect(),
        Some(1) => vec![first],
        Some(count) => {
            (0..i64::from(count)).map(|window| first + window * room / (i64::from(count) - 1)).collect()
        }
    };
    let window = |(number, begin)| Window {
        number,
        begin,
        end: begin + length,
        jobs: 0,
        load: 0.0,
        saturation: None,
        running: 0,
        waiting: 0,
    };
    Ok((1..).zip(begins).map(window).collect())
}

/// Returns the positions of the windows that overlap a time that is not empty. Their begins and ends ascend.
fn overlapping(windows: &[Window], from: i64, to: i64) -> std::ops::Range<usize> {
    let since = windows.partition_point(|window| window.end <= from);
    let until = windows.partition_point(|window| window.begin < to);
    since..until.max(since)
}

#[cfg(test)]
mod tests;
