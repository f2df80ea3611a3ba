//! The finished jobs of a run as columns.

use std::io;

use miserly_core::{JobNumber, Time};

use crate::{Finished, Observer, Sink};

/// The finished jobs as columns of one length, for arrays and data frames. Times are in seconds of the log.
///
/// As an observer it has the jobs in the order of their ends. Within [`InOrder`](crate::InOrder) it has them in the
/// order of their submission. Memory grows with the log.
///
/// # Example
/// ```
/// use std::convert::Infallible;
///
/// use miserly_core::{EventOrder, Machine, Request, Resources, Span, Time};
/// use miserly_policies::PolicySpec;
/// use miserly_sim::{Job, JobColumns, Simulation};
///
/// let machine = Machine::plain(4u64);
/// let policy = "easy".parse::<PolicySpec>()?.build(&machine, 0)?;
/// let minute = Span::from_secs(60).ok_or("a minute")?;
/// let request = |number| Request::new(number, Time::ZERO, minute, Resources::cpus(4u64));
/// let mut jobs = (1..=3).map(|number| Ok::<_, Infallible>(Job::new(request(number), minute)));
/// let mut columns = JobColumns::default();
/// Simulation::new(machine, policy, EventOrder::Batched).run(&mut jobs, &mut [&mut columns])?;
/// assert_eq!(columns.number, [1, 2, 3]);
/// assert_eq!(columns.start, [0.0, 60.0, 120.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct JobColumns {
    /// Numbers in the log.
    pub number: Vec<JobNumber>,
    /// Users; `None` if unknown.
    pub user: Vec<Option<u32>>,
    /// Requested processors.
    pub procs: Vec<u64>,
    /// Submissions.
    pub submit: Vec<f64>,
    /// Starts; of a requeued job the last one.
    pub start: Vec<f64>,
    /// Ends.
    pub end: Vec<f64>,
    /// Runtimes on the requested processors.
    pub runtime: Vec<f64>,
    /// Whether the jobs were killed at their time limits.
    pub killed: Vec<bool>,
    /// Start reasons, as [`Finished::reason_word`] has them.
    pub reason: Vec<&'static str>,
    /// Whether the jobs lost work, because they started more than once.
    pub restarted: Vec<bool>,
}

impl Sink for JobColumns {
    fn job(&mut self, job: &Finished) -> io::Result<()> {
        let secs = |time: Time| (time - Time::ZERO).as_secs_f64();
        self.number.push(job.request.number);
        self.user.push(job.request.user);
        self.procs.push(job.request.procs().into());
        self.submit.push(secs(job.request.submit));
        self.start.push(secs(job.start));
        self.end.push(secs(job.end));
        self.runtime.push(job.runtime.as_secs_f64());
        self.killed.push(job.killed);
        self.reason.push(job.reason_word());
        self.restarted.push(job.lost > 0);
        Ok(())
    }
}

impl Observer for JobColumns {
    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.job(job)
    }
}
