//! The logs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use miserly_core::Procs;
use miserly_sim::Job;
use miserly_workload::generate::{Feitelson96, Model};
use miserly_workload::{Estimates, JobOptions, Jobs, Survey, Trace, TraceError};

/// A log in memory, as plain text, and how it is read.
pub(crate) struct Log {
    pub(crate) name: String,
    pub(crate) procs: Procs,
    trace: Trace,
    estimates: Estimates,
}

impl Log {
    pub(crate) fn survey(&self) -> Survey {
        self.trace.survey().expect("the log can be read")
    }

    /// Returns the jobs of a simulation, in the order of their submission.
    pub(crate) fn jobs(&self, survey: &Survey) -> impl Iterator<Item = Result<Job, TraceError>> {
        self.logged_jobs(survey).map(|job| job.map(|job| Job::new(job.request, job.runtime.0)))
    }

    /// Returns the jobs as they are read, in the order of their submission.
    pub(crate) fn logged_jobs(&self, survey: &Survey) -> Jobs<'_> {
        let options =
            JobOptions { procs: self.procs, estimates: self.estimates, seed: 1, ..JobOptions::default() };
        Jobs::new(&self.trace, survey.in_order, options).expect("the log can be read")
    }

    /// Returns the first `count` jobs.
    pub(crate) fn first(&self, count: usize) -> Vec<Job> {
        self.jobs(&self.survey()).take(count).map(|job| job.expect("the log is well-formed")).collect()
    }
}

/// The generated logs, and the real ones that are at hand.
pub(crate) fn logs() -> Vec<Log> {
    let mut logs = vec![made("kth-sized", 28_489, 100, 0.69), made("ctc-sized", 77_222, 338, 0.84)];
    if let Some(folder) = std::env::var_os("MISERLY_TRACES") {
        let real = ["KTH-SP2-1996-2", "CTC-SP2-1996-3.1-cln"];
        logs.extend(real.iter().filter_map(|name| read(folder.as_ref(), name)));
    }
    logs
}

/// With estimates up to ten times the runtime, where backfilling has something to do.
fn made(name: &str, jobs: u64, procs: u32, load: f64) -> Log {
    let estimates = "uniform:5".parse().expect("a model of estimates");
    Log { estimates, ..made_exactly(name, jobs, procs, load) }
}

/// With exact estimates.
pub(crate) fn made_exactly(name: &str, jobs: u64, procs: u32, load: f64) -> Log {
    let model = Feitelson96 { jobs, procs, load, ..Feitelson96::default() };
    let trace = model.generate().expect("the parameters make sense").into_trace(name);
    Log { name: name.into(), procs: Procs::new(procs.into()), trace, estimates: Estimates::default() }
}

/// A real log, unpacked, with its users' estimates; `None` where it is missing.
fn read(folder: &Path, name: &str) -> Option<Log> {
    let mut text = Vec::new();
    let file = File::open(folder.join(format!("{name}.swf.gz"))).ok()?;
    MultiGzDecoder::new(file).read_to_end(&mut text).ok()?;
    let trace = Trace::memory(name, text);
    let procs = trace.survey().ok()?.header.procs()?;
    Some(Log { name: name.into(), procs, trace, estimates: Estimates::default() })
}
