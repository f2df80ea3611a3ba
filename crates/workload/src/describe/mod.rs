//! The description of a log: its jobs, sizes, runtimes, users, times, and missing fields.

use std::collections::BTreeMap;

use crate::jobs::ProcsField;
use crate::swf::{Field, Header, LogLine, Names, ReadError};
use crate::trace::{Trace, TraceError};

mod spread;

mod arrivals;

mod estimates;

mod extras;

mod study;

mod by_size;

mod interest;

mod run_lengths;

mod o2k;

mod collect;

pub use crate::local_time::LogClock;
pub use arrivals::ArrivalTimes;
pub use by_size::{BUCKETS, OfSize, SizeBucket};
pub use estimates::{EstimateQuality, ROUND};
pub use extras::ExtraStats;
pub use interest::{Interest, Interesting, Popularity, SOME, Verdict, YES};
pub use o2k::{ClassRow, Demand, MonthStudy, Statement, Unit};
pub use run_lengths::{FEW_RUNS, RunLengths, Runs};
pub use spread::{Common, Proportion, ValueSpread};
pub use study::{Bin, Cdf, OfEstimate, Study};

use collect::Collector;
use miserly_core::Procs;

/// Number of commonest values.
pub const COMMONEST: usize = 10;

/// The unfiltered content of a log.
#[derive(Clone, Debug)]
pub struct Description {
    /// Name of the log.
    pub name: String,
    /// `Computer` of the header.
    pub computer: Option<String>,
    /// `Installation` of the header.
    pub installation: Option<String>,
    /// Processors of the machine: as given, else from the header.
    pub procs: Option<Procs>,
    /// Well-formed job lines.
    pub jobs: u64,
    /// Malformed job lines.
    pub malformed: u64,
    /// Time range of the log.
    pub span: Option<LogSpan>,
    /// Processor-seconds of the jobs with known size and runtime.
    pub work: u128,
    /// Sizes in processors.
    pub sizes: SizeStats,
    /// Runtimes in seconds.
    pub runtimes: RuntimeStats,
    /// Users' estimates and their accuracy.
    pub estimates: EstimateQuality,
    /// Repeated submissions of the same job.
    pub run_lengths: RunLengths,
    /// Runtimes and estimates in detail.
    pub study: Study,
    /// Users, with the jobs of the most active ones.
    pub users: Active,
    /// Submissions by time.
    pub arrivals: ArrivalTimes,
    /// Recorded waits in seconds.
    pub waits: Option<ValueSpread>,
    /// Jobs per status (field 11).
    pub statuses: BTreeMap<i64, u64>,
    /// Jobs with known requested memory.
    pub requested_memory: Proportion,
    /// Jobs with known used memory.
    pub used_memory: Proportion,
    /// Groups, commonest first.
    pub groups: Active,
    /// Queues, commonest first.
    pub queues: Active,
    /// Partitions, commonest first.
    pub partitions: Active,
    /// Extra fields that the header names.
    pub extras: Vec<ExtraStats>,
    /// Comparison with the paper's month of the NCSA Origin 2000, if the model `o2k` generated the
    /// log.
    pub month: Option<MonthStudy>,
    /// Number of jobs without each field.
    pub missing: [(Field, u64); 18],
}

/// The time range of a log in its own seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpan {
    /// First submission.
    pub first_submit: i64,
    /// Last submission.
    pub last_submit: i64,
    /// Last end, by the recorded waits. An unknown wait counts as zero.
    pub last_end: i64,
}

impl LogSpan {
    /// Returns the time from the first submission to the last, in seconds.
    pub const fn submissions(&self) -> u64 {
        self.last_submit.abs_diff(self.first_submit)
    }

    /// Returns the time from the first submission to the last end, in seconds.
    pub const fn whole(&self) -> u64 {
        self.last_end.abs_diff(self.first_submit)
    }
}

/// The sizes of the jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SizeStats {
    /// Known sizes.
    pub spread: Option<ValueSpread>,
    /// Jobs with one processor.
    pub serial: Proportion,
    /// Jobs with a power of two as their size, including 1.
    pub powers_of_two: Proportion,
    /// Number of different sizes.
    pub distinct: u64,
    /// Commonest sizes.
    pub common: Vec<Common>,
    /// Sizes that occur, ascending, with their jobs.
    pub by_size: Vec<OfSize>,
    /// Popularity of interesting sizes. The full machine is missing if its size is unknown.
    pub interesting: Vec<Interesting>,
}

/// The runtimes of the jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RuntimeStats {
    /// Known runtimes in seconds.
    pub spread: Option<ValueSpread>,
    /// Jobs that run for less than a minute.
    pub under_a_minute: Proportion,
    /// Parallel jobs in [`BUCKETS`] equal buckets in order of size.
    pub buckets: Vec<SizeBucket>,
}

/// Users, queues or partitions with their jobs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Active {
    /// Number of different ones.
    pub distinct: u64,
    /// Most active ones with their jobs.
    pub top: Vec<Common>,
    /// Names in the header.
    pub names: Names,
}

impl Description {
    /// Returns the offered load: work over the machine's capacity between the first and last
    /// submission.
    ///
    /// `None` if the machine's size is unknown or the log has no length.
    pub fn load(&self) -> Option<f64> {
        let capacity = self.procs?.get() as f64 * self.span?.submissions() as f64;
        (capacity > 0.0).then(|| self.work as f64 / capacity)
    }
}

/// Describes a log in one pass.
///
/// `procs` overrides the header's machine size. `field` is the preferred field for a job's size.
/// Memory grows with the different values, the users, and two numbers per job with an estimate. A
/// log of the model `o2k` needs some more per job.
///
/// # Errors
/// The log cannot be read or holds no jobs. Malformed lines are counted.
pub fn describe(trace: &Trace, procs: Option<Procs>, field: ProcsField) -> Result<Description, TraceError> {
    let mut reader = trace.reader()?;
    let mut header = Header::default();
    let mut collector = Collector::new(field);
    loop {
        match reader.next_line() {
            Ok(None) => break,
            Ok(Some(LogLine::Comment(comment))) => header.push(comment),
            Ok(Some(LogLine::Blank)) => {}
            Ok(Some(LogLine::Job(record))) => collector.add(record, &header),
            Err(ReadError::Malformed { .. }) => collector.malformed += 1,
            Err(error) => return Err(trace.read_error(error)),
        }
    }
    if collector.jobs == 0 {
        return Err(TraceError::Empty { name: trace.name().to_owned() });
    }
    Ok(collector.finish(trace.name(), procs.or_else(|| header.procs()), &header))
}

#[cfg(test)]
mod tests;
