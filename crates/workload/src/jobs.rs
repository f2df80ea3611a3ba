//! From the lines of a log to the jobs of a run: parse, drop, fall back, cut at the estimate, estimate.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;
use std::sync::Arc;

use miserly_core::{ActualRuntime, Kind, Machine, Request, Resources, Span, Terms, Time, queue_position};

use crate::estimates::{Estimates, Factor};
use crate::filter::Filter;
use crate::swf::{Field, ReadError, Reader, Record, Status};
use crate::trace::{Trace, TraceError};

/// What happens to a job that reaches the log's own estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overrun {
    /// It is killed there (Zotkin et al. §2).
    #[default]
    Kill,
    /// Its estimate is taken to be its runtime, as the archive repairs such logs.
    Extend,
    /// It runs on, overdue.
    Run,
}

impl fmt::Display for Overrun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Overrun::Kill => "kill",
            Overrun::Extend => "extend",
            Overrun::Run => "run",
        })
    }
}

/// Which field is the job's size, where both are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProcsField {
    /// Allocated processors (field 5) first.
    #[default]
    Allocated,
    /// Requested processors (field 8) first.
    Requested,
}

impl ProcsField {
    /// The job's size: the one field if it is more than 0, else the other.
    pub fn size(self, record: &Record) -> Option<u64> {
        let (first, second) = match self {
            ProcsField::Allocated => (Field::Allocated, Field::RequestedProcs),
            ProcsField::Requested => (Field::RequestedProcs, Field::Allocated),
        };
        record.positive(first).or_else(|| record.positive(second))
    }
}

impl fmt::Display for ProcsField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProcsField::Allocated => "allocated",
            ProcsField::Requested => "requested",
        })
    }
}

/// How a log is read.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    /// The machine's processors: wider jobs are skipped.
    pub procs: u32,
    /// The machine, where more than its processors counts: jobs that could never run on it are skipped.
    pub machine: Option<Arc<Machine>>,
    /// The pools of the machine's queues, where it has any: jobs that could never run in that of their queue are skipped.
    pub pools: Arc<[Machine]>,
    /// Which field is the size.
    pub procs_field: ProcsField,
    /// Jobs to leave out: those that meet any of these.
    pub drop: Vec<Filter>,
    /// What happens at the log's own estimate.
    pub overrun: Overrun,
    /// What the scheduler is told.
    pub estimates: Estimates,
    /// The seed of randomised estimates.
    pub seed: u64,
    /// Skip malformed lines instead of stopping at the first.
    pub lenient: bool,
    /// Only jobs submitted then or later, in the log's seconds.
    pub from: Option<i64>,
    /// Only jobs submitted before then, in the log's seconds.
    pub to: Option<i64>,
    /// Only the jobs of these users, if any is named.
    pub users: Vec<u32>,
    /// Only the jobs of these queues, if any is named.
    pub queues: Vec<u32>,
    /// What becomes of the submit times.
    pub arrivals: Arrivals,
    /// Keep each job's line, for writing it again.
    pub keep_records: bool,
}

/// What becomes of the submit times of the jobs that are left when all others are out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// They stay as they are.
    #[default]
    Logged,
    /// The load becomes so many times as high: the time since the first submission is divided by this.
    Scaled(Factor),
    /// All jobs are submitted at time 0 (Zotkin et al. §4, the off-line variant). A policy that goes by arrival takes
    /// them by their numbers, which in the archive's logs is the order of their submission.
    Offline,
}

impl Arrivals {
    /// Where a submission at `submit` goes, of a log whose first is at `first`. The order stays.
    fn of(self, submit: Time, first: Time) -> Time {
        match self {
            Arrivals::Logged => submit,
            Arrivals::Scaled(factor) => first + factor.divide(submit - first),
            Arrivals::Offline => Time::ZERO,
        }
    }
}

/// A job of a run.
#[derive(Clone, Debug)]
pub struct Job {
    /// What its user asked for.
    pub request: Request,
    /// How long it runs: what the log says, cut at the log's estimate if that is the rule.
    pub runtime: ActualRuntime,
    /// Whether it was cut.
    pub killed: bool,
    /// How it ended, as the log has it.
    pub status: Status,
    /// The memory that it really uses, kB for all its processors; `None` where the log does not know.
    pub used_memory: Option<u64>,
    /// Its line, if it was to be kept.
    pub record: Option<Box<Record>>,
}

/// What became of the lines: `read` = jobs handed out + the sum of `skipped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines that are neither comments nor blank.
    pub read: u64,
    /// Jobs handed out.
    pub used: u64,
    /// Lines left out, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Jobs submitted before one above them.
    pub out_of_order: u64,
    /// Jobs handed out whose estimate the log does not know: their runtime stands for it.
    pub without_estimate: u64,
}

/// Why a line gives no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Skip {
    Dropped(usize),
    NoSubmit,
    BeforeFrom,
    AfterTo,
    OtherUser,
    OtherQueue,
    NoSize,
    TooWide,
    NoRuntime,
    FitsNoHost,
    TooLargeForQueue,
}

/// The jobs of a log, one at a time, in the order of their submission.
///
/// A log that is in order streams through; one that is not is held and sorted first, stably.
pub struct Jobs<'a> {
    trace: &'a Trace,
    options: JobOptions,
    counts: Counts,
    source: Lines<'a>,
    /// The first submission.
    first: Option<Time>,
}

/// Where the records come from.
enum Lines<'a> {
    Stream(Reader<Box<dyn BufRead + Send + 'a>>),
    /// In order, and how many were handed out.
    Sorted(Vec<Record>, usize),
}

impl<'a> Jobs<'a> {
    /// The jobs of `trace`; `in_order` as its survey found it.
    ///
    /// # Errors
    /// If the log cannot be opened or, where it has to be sorted, read.
    pub fn new(trace: &'a Trace, in_order: bool, options: JobOptions) -> Result<Jobs<'a>, TraceError> {
        let source = Lines::Stream(trace.reader()?);
        let mut jobs = Jobs { trace, options, counts: Counts::default(), source, first: None };
        if !in_order {
            jobs.sort()?;
        }
        Ok(jobs)
    }

    /// What has become of the lines so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Reads all that is left and puts it in order.
    fn sort(&mut self) -> Result<(), TraceError> {
        let Jobs { trace, options, counts, source, .. } = self;
        let mut records = Vec::new();
        let mut latest = i64::MIN;
        while let Some(record) = source.next(trace, options.lenient, counts)? {
            let submit = record.get(Field::Submit);
            counts.out_of_order += u64::from((0..latest).contains(&submit));
            latest = latest.max(submit);
            records.push(record.clone());
        }
        records.sort_by_key(|record| record.get(Field::Submit));
        *source = Lines::Sorted(records, 0);
        Ok(())
    }

    fn next_job(&mut self) -> Result<Option<Job>, TraceError> {
        let Jobs { trace, options, counts, source, first } = self;
        while let Some(record) = source.next(trace, options.lenient, counts)? {
            match job_of(record, options) {
                Ok(mut job) => {
                    let submit = job.request.submit;
                    job.request.submit = options.arrivals.of(submit, *first.get_or_insert(submit));
                    counts.used += 1;
                    counts.without_estimate += u64::from(record.positive(Field::Estimate).is_none());
                    return Ok(Some(job));
                }
                Err(skip) => *counts.skipped.entry(skip.reason(options)).or_default() += 1,
            }
        }
        Ok(None)
    }
}

impl Iterator for Jobs<'_> {
    type Item = Result<Job, TraceError>;

    fn next(&mut self) -> Option<Result<Job, TraceError>> {
        self.next_job().transpose()
    }
}

impl Lines<'_> {
    /// The next well-formed line.
    fn next(
        &mut self,
        trace: &Trace,
        lenient: bool,
        counts: &mut Counts,
    ) -> Result<Option<&Record>, TraceError> {
        let reader = match self {
            Lines::Sorted(records, done) => {
                *done += 1;
                return Ok(records.get(*done - 1));
            }
            Lines::Stream(reader) => reader,
        };
        loop {
            match reader.advance() {
                Ok(false) => return Ok(None),
                Ok(true) => break,
                Err(ReadError::Malformed { .. }) if lenient => {
                    counts.read += 1;
                    *counts.skipped.entry("malformed".into()).or_default() += 1;
                }
                Err(error) => return Err(trace.read_error(error)),
            }
        }
        counts.read += 1;
        Ok(Some(reader.record()))
    }
}

impl Skip {
    fn reason(self, options: &JobOptions) -> String {
        match self {
            Skip::Dropped(filter) => options.drop[filter].to_string(),
            Skip::NoSubmit => "no_submit_time".into(),
            Skip::BeforeFrom => "before_from".into(),
            Skip::AfterTo => "after_to".into(),
            Skip::OtherUser => "other_user".into(),
            Skip::OtherQueue => "other_queue".into(),
            Skip::NoSize => "no_processors".into(),
            Skip::TooWide => "too_wide".into(),
            Skip::NoRuntime => "no_runtime".into(),
            Skip::FitsNoHost => "fits_no_host".into(),
            Skip::TooLargeForQueue => "too_large_for_queue".into(),
        }
    }
}

/// A record as the run sees it, or why it has no place in the run.
fn job_of(record: &Record, options: &JobOptions) -> Result<Job, Skip> {
    if let Some(filter) = options.drop.iter().position(|filter| filter.matches(record)) {
        return Err(Skip::Dropped(filter));
    }
    let number = record.get(Field::Job);
    let submit = submit_within(record, options)?;
    let (user, queue) = (small(record, Field::User), small(record, Field::Queue));
    if !named(&options.users, user) {
        return Err(Skip::OtherUser);
    }
    if !named(&options.queues, queue) {
        return Err(Skip::OtherQueue);
    }
    let procs = procs_of(record, options)?;
    let runtime = record.known(Field::Runtime).ok_or(Skip::NoRuntime)?;
    let trace_estimate = record.positive(Field::Estimate).unwrap_or(runtime);
    let (runtime, trace_estimate, killed) = match options.overrun {
        Overrun::Kill => (runtime.min(trace_estimate), trace_estimate, runtime > trace_estimate),
        Overrun::Extend => (runtime, trace_estimate.max(runtime), false),
        Overrun::Run => (runtime, trace_estimate, false),
    };
    let (runtime, trace_estimate) = (span(runtime), span(trace_estimate));
    let estimate = options.estimates.estimate(trace_estimate, runtime, options.seed, number);
    let request = Request {
        number,
        submit,
        estimate,
        demand: Resources::cpus(procs).with(Kind::Memory, memory_of(record, procs)),
        user,
        queue,
        terms: Terms::NONE,
    };
    if options.machine.as_ref().is_some_and(|machine| !machine.could_hold(&request)) {
        return Err(Skip::FitsNoHost);
    }
    let pool = options.pools.get(queue_position(queue, options.pools.len()));
    if pool.is_some_and(|pool| !pool.could_hold(&request)) {
        return Err(Skip::TooLargeForQueue);
    }
    let used_memory = record.positive(Field::UsedMemory).map(|each| each.saturating_mul(procs));
    let status = record.status();
    let record = options.keep_records.then(|| Box::new(record.clone()));
    Ok(Job { request, runtime: ActualRuntime(runtime), killed, status, used_memory, record })
}

/// Whether nobody is named, or this one.
fn named(names: &[u32], name: Option<u32>) -> bool {
    names.is_empty() || name.is_some_and(|name| names.contains(&name))
}

fn submit_within(record: &Record, options: &JobOptions) -> Result<Time, Skip> {
    let secs = record.get(Field::Submit);
    if secs < 0 {
        return Err(Skip::NoSubmit);
    }
    if options.from.is_some_and(|from| secs < from) {
        return Err(Skip::BeforeFrom);
    }
    if options.to.is_some_and(|to| secs >= to) {
        return Err(Skip::AfterTo);
    }
    // The parser bounds times far below what ticks can hold.
    Time::from_secs(secs).ok_or(Skip::NoSubmit)
}

fn procs_of(record: &Record, options: &JobOptions) -> Result<u64, Skip> {
    let procs = options.procs_field.size(record).ok_or(Skip::NoSize)?;
    if procs > u64::from(options.procs) { Err(Skip::TooWide) } else { Ok(procs) }
}

/// The job's memory in kB: requested, else used, both per processor.
fn memory_of(record: &Record, procs: u64) -> u64 {
    let each = record.positive(Field::RequestedMemory).or_else(|| record.positive(Field::UsedMemory));
    each.unwrap_or(0).saturating_mul(procs)
}

fn small(record: &Record, field: Field) -> Option<u32> {
    record.known(field).and_then(|value| u32::try_from(value).ok())
}

fn span(secs: u64) -> Span {
    i64::try_from(secs).ok().and_then(Span::from_secs).unwrap_or(Span::MAX)
}
