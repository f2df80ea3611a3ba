//! What is in a log: how many jobs, how large, how long, from whom, when, and what the log does not say.

use std::collections::BTreeMap;

use crate::jobs::ProcsField;
use crate::swf::{Field, Header, Line, ReadError};
use crate::trace::{Trace, TraceError};

mod spread;

mod arrivals;

mod estimates;

mod study;

mod by_size;

mod interest;

mod run_lengths;

mod o2k;

mod collect;

pub use crate::local_time::Clock;
pub use arrivals::Arrivals;
pub use by_size::{BUCKETS, Bucket, OfSize};
pub use estimates::{EstimateQuality, ROUND};
pub use interest::{Interest, Interesting, Popularity, SOME, Verdict, YES};
pub use o2k::{ClassRow, Demand, MonthStudy, Statement, Unit};
pub use run_lengths::{FEW_RUNS, RunLengths, Runs};
pub use spread::{Common, Share, Spread};
pub use study::{Bin, Cdf, OfEstimate, Study};

use collect::Collector;

/// How many of the commonest values are kept.
pub const COMMONEST: usize = 10;

/// What a log holds, as it stands: nothing is dropped, cut or filled in.
#[derive(Clone, Debug)]
pub struct Description {
    /// The log's name.
    pub name: String,
    /// `Computer` of its header.
    pub computer: Option<String>,
    /// `Installation` of its header.
    pub installation: Option<String>,
    /// The machine's processors: as given, else as the header says.
    pub procs: Option<u32>,
    /// Job lines that can be read.
    pub jobs: u64,
    /// Job lines that cannot.
    pub malformed: u64,
    /// How long the log is.
    pub span: Option<LogSpan>,
    /// Processor-seconds of the jobs whose size and runtime are known.
    pub work: u128,
    /// The sizes in processors.
    pub sizes: Sizes,
    /// The runtimes in seconds.
    pub runtimes: Runtimes,
    /// The users' estimates, and how good they were.
    pub estimates: EstimateQuality,
    /// How often users submit the same job again.
    pub run_lengths: RunLengths,
    /// Runtimes and estimates in more detail.
    pub study: Study,
    /// The users, and the jobs of the most active.
    pub users: Active,
    /// When jobs are submitted.
    pub arrivals: Arrivals,
    /// The waits that the log records, in seconds.
    pub waits: Option<Spread>,
    /// How many jobs have which status (field 11).
    pub statuses: BTreeMap<i64, u64>,
    /// Jobs that say how much memory they asked for.
    pub requested_memory: Share,
    /// Jobs that say how much memory they used.
    pub used_memory: Share,
    /// The queues, the commonest first.
    pub queues: Active,
    /// The partitions, the commonest first.
    pub partitions: Active,
    /// The month of the NCSA Origin 2000 beside the paper's, if the model `o2k` made the log.
    pub month: Option<MonthStudy>,
    /// For each field, how many jobs do not know it.
    pub missing: [(Field, u64); 18],
}

/// From when to when a log goes, in its own seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpan {
    /// The first submission.
    pub first_submit: i64,
    /// The last submission.
    pub last_submit: i64,
    /// The last end, by the waits that the log records; an unknown wait counts as none.
    pub last_end: i64,
}

impl LogSpan {
    /// From the first submission to the last, in seconds.
    pub const fn submissions(&self) -> u64 {
        self.last_submit.abs_diff(self.first_submit)
    }

    /// From the first submission to the last end, in seconds.
    pub const fn whole(&self) -> u64 {
        self.last_end.abs_diff(self.first_submit)
    }
}

/// How many processors the jobs use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sizes {
    /// The sizes known.
    pub spread: Option<Spread>,
    /// Jobs of one processor.
    pub serial: Share,
    /// Jobs whose size is a power of two; one is the zeroth.
    pub powers_of_two: Share,
    /// How many different sizes there are.
    pub distinct: u64,
    /// The commonest sizes.
    pub common: Vec<Common>,
    /// The sizes that occur, ascending, with their jobs.
    pub by_size: Vec<OfSize>,
    /// How popular the interesting sizes are; the full machine is not there where its size is unknown.
    pub interesting: Vec<Interesting>,
}

/// How long the jobs run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runtimes {
    /// The runtimes known, in seconds.
    pub spread: Option<Spread>,
    /// Jobs that run for less than a minute.
    pub under_a_minute: Share,
    /// The parallel jobs in [`BUCKETS`] buckets of equally many, in order of size.
    pub buckets: Vec<Bucket>,
}

/// Who submits the jobs, or where they go: numbers of users, queues or partitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Active {
    /// How many there are.
    pub distinct: u64,
    /// The most active, with their jobs.
    pub top: Vec<Common>,
}

impl Description {
    /// The load that the jobs bring: their work over what the machine can do between the first submission
    /// and the last. `None` if the machine's size is unknown or the log has no length.
    pub fn load(&self) -> Option<f64> {
        let capacity = f64::from(self.procs?) * self.span?.submissions() as f64;
        (capacity > 0.0).then(|| self.work as f64 / capacity)
    }
}

/// Describes a log in one pass. `procs` overrides the header's machine size; `field` says which field is a
/// job's size where both are known.
///
/// Memory follows the different values in the log, the users, and two numbers per job that has an estimate; of a log of the model
/// `o2k`, some more per job.
///
/// # Errors
/// If the log cannot be read, or holds no jobs. Malformed lines are counted.
pub fn describe(trace: &Trace, procs: Option<u32>, field: ProcsField) -> Result<Description, TraceError> {
    let mut reader = trace.reader()?;
    let mut header = Header::default();
    let mut collector = Collector::new(field);
    loop {
        match reader.next_line() {
            Ok(None) => break,
            Ok(Some(Line::Comment(comment))) => header.push(comment),
            Ok(Some(Line::Blank)) => {}
            Ok(Some(Line::Job(record))) => collector.add(record, &header),
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
