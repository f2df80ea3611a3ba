//! Logs as the benchmark reads them.

use miserly_workload::swf::Field;
use miserly_workload::{Trace, TraceError};

/// The runtime of a job whose runtime is unknown, in seconds.
const UNKNOWN_RUNTIME: i64 = 10;

/// A job of the benchmark. Times are in seconds of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The number in the log.
    pub number: i64,
    /// The submission.
    pub submit: i64,
    /// The runtime, at least 1.
    pub runtime: i64,
    /// The estimate. Jobs run past it.
    pub estimate: i64,
    /// The processors, at least 1.
    pub procs: u32,
    /// The requested memory, the user, the group and the executable; -1 if unknown.
    pub labels: [i64; 4],
}

/// A log of the benchmark.
#[derive(Clone, Debug)]
pub struct JobLog {
    /// The name of the log.
    pub name: String,
    /// The jobs, in the order of their numbers.
    pub jobs: Vec<Job>,
    /// The processors of the machine.
    pub procs: u32,
    /// The longest runtime of the log.
    pub longest: i64,
    /// The largest requested memory, user, group and executable of the log.
    pub greatest: [i64; 4],
}

/// Why a log cannot serve the benchmark.
#[derive(Debug, thiserror::Error)]
pub enum JobLogError {
    /// It cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// It names no machine.
    #[error("{0}: the header has neither MaxProcs nor MaxNodes; write the processors of the machine there")]
    NoMachine(String),
    /// A job does not fit.
    #[error("{name}: job {number} has {procs} processors, and the machine has {machine}")]
    TooWide {
        /// The log.
        name: String,
        /// The job.
        number: i64,
        /// Its processors.
        procs: i64,
        /// Those of the machine.
        machine: u32,
    },
}

impl JobLog {
    /// Reads a log by the rules of the benchmark.
    ///
    /// A job has the larger one of its allocated and its requested processors. Its estimate is its runtime where the log
    /// has none. An unknown runtime is 10 s; a job with a runtime of 0 is left out.
    ///
    /// # Errors
    /// If the log cannot be read, or names no machine, or a job is wider than the machine.
    ///
    /// # Source
    /// Zhang et al.: `RLScheduler`, SC 2020; the reading of their published code.
    pub fn read(trace: &Trace) -> Result<JobLog, JobLogError> {
        let name = trace.name().to_owned();
        let header = trace.survey()?.header.procs().and_then(|procs| u32::try_from(u64::from(procs)).ok());
        let procs = header.ok_or_else(|| JobLogError::NoMachine(name.clone()))?;
        let mut log = JobLog { name, jobs: vec![], procs, longest: 1, greatest: [1; 4] };
        let mut reader = trace.reader()?;
        while let Some(record) = reader.next_job().map_err(|error| trace.read_error(error))? {
            let width = record.get(Field::Allocated).max(record.get(Field::RequestedProcs));
            let runtime = record.get(Field::Runtime);
            let labels = [Field::RequestedMemory, Field::User, Field::Group, Field::Executable];
            let labels = labels.map(|field| record.get(field));
            log.longest = log.longest.max(runtime);
            for (greatest, label) in log.greatest.iter_mut().zip(labels) {
                *greatest = label.max(*greatest);
            }
            if runtime == 0 {
                continue;
            }
            let number = record.get(Field::Job);
            let fits = u32::try_from(width).ok().filter(|width| *width <= procs);
            let Some(width) = fits.map(|width| width.max(1)).or((width < 1).then_some(1)) else {
                return Err(JobLogError::TooWide { name: log.name, number, procs: width, machine: procs });
            };
            let estimate = record.get(Field::Estimate);
            log.jobs.push(Job {
                number,
                submit: record.get(Field::Submit),
                runtime: if runtime < 0 { UNKNOWN_RUNTIME } else { runtime },
                // As published: an unknown runtime is an estimate of -1, too.
                estimate: if estimate == -1 { runtime } else { estimate },
                procs: width,
                labels,
            });
        }
        log.jobs.sort_by_key(|job| job.number);
        Ok(log)
    }
}
