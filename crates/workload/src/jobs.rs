//! Conversion of a log's lines to the jobs of a run: parsing, filters, fallbacks, kills and
//! estimates.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::sync::Arc;

use miserly_core::devices::DeviceDemand;
use miserly_core::{
    ActualRuntime, Constraints, Form, Kind, Machine, Procs, Request, Resources, Span, Time, queue_position,
};

use crate::estimates::tsafrir::{LEAST, Tsafrir};
use crate::estimates::{Estimates, Factor};
use crate::filter::FieldFilter;
use crate::shake::Shaken;
use crate::swf::{Deviations, Extra, Field, ReadError, Reader, Record, Status};
use crate::trace::{Trace, TraceError};
use miserly_core::named_enum;

/// Thousandths in one.
const THOUSAND: u64 = 1_000;

named_enum! {
    /// The treatment of a job that reaches the log's own estimate.
    #[derive(Default)]
    pub enum Overrun {
        /// The job is killed (Zotkin et al. §2).
        #[default]
        Kill "kill",
        /// The estimate is raised to the runtime, as the archive repairs such logs.
        Extend "extend",
        /// The job continues, overdue.
        Run "run",
    }
}

named_enum! {
    /// The preferred field for a job's size.
    #[derive(Default)]
    pub enum ProcsField {
        /// Allocated processors (field 5).
        #[default]
        Allocated "allocated",
        /// Requested processors (field 8).
        Requested "requested",
    }
}

impl ProcsField {
    /// Returns the preferred field if it is positive, else the other one.
    pub fn size(self, record: &Record) -> Option<Procs> {
        let (first, second) = match self {
            ProcsField::Allocated => (Field::Allocated, Field::RequestedProcs),
            ProcsField::Requested => (Field::RequestedProcs, Field::Allocated),
        };
        record.positive(first).or_else(|| record.positive(second)).map(Procs::new)
    }
}

/// Options for reading a log.
#[derive(Clone, Debug, Default)]
pub struct JobOptions {
    /// Processors of the machine. Wider jobs are skipped.
    pub procs: Procs,
    /// The machine, if it has more than processors. Jobs that can never run on it are skipped.
    pub machine: Option<Arc<Machine>>,
    /// Pools of the machine's queues, if any. Jobs that can never run in their pool are skipped.
    pub pools: Arc<[Machine]>,
    /// Preferred field for the size.
    pub procs_field: ProcsField,
    /// Filters. Jobs that meet any of them are skipped.
    pub drop: Vec<FieldFilter>,
    /// Treatment of jobs at the log's own estimate.
    pub overrun: Overrun,
    /// Model of the estimates.
    pub estimates: Estimates,
    /// The number of seconds by which submissions are [moved](crate::shaken), after their transformation.
    pub shake: u32,
    /// Seed of randomised estimates and of moves.
    pub seed: u64,
    /// Whether malformed lines are skipped instead of stopping at the first.
    pub lenient: bool,
    /// Earliest submission, in seconds of the log.
    pub from: Option<i64>,
    /// Latest submission, excluded, in seconds of the log.
    pub to: Option<i64>,
    /// Users whose jobs are used; all if empty.
    pub users: Vec<u32>,
    /// Queues whose jobs are used; all if empty.
    pub queues: Vec<u32>,
    /// Transformation of the submissions.
    pub arrivals: ArrivalScaling,
    /// Whether each job keeps its line, for output.
    pub keep_records: bool,
}

impl JobOptions {
    /// Returns whether submissions differ from those of the log.
    pub fn moves_submissions(&self) -> bool {
        self.arrivals != ArrivalScaling::Logged || self.shake > 0
    }
}

/// The transformation of the submissions of all remaining jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrivalScaling {
    /// None.
    #[default]
    Logged,
    /// Multiplies the load: the time since the first submission is divided by this factor.
    Scaled(Factor),
    /// Submits all jobs at time 0 (Zotkin et al. §4, the off-line variant).
    ///
    /// A policy in arrival order takes them by number, which is the submission order in the
    /// archive's logs.
    Offline,
}

impl ArrivalScaling {
    /// Returns the transformed submission, given the first submission of the log. The order is
    /// kept.
    fn apply(self, submit: Time, first: Time) -> Time {
        match self {
            ArrivalScaling::Logged => submit,
            ArrivalScaling::Scaled(factor) => first + factor.divide(submit - first),
            ArrivalScaling::Offline => Time::ZERO,
        }
    }
}

/// A job of a run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Request of the user.
    pub request: Request,
    /// Actual runtime, limited to the log's estimate if jobs are killed there.
    pub runtime: ActualRuntime,
    /// Whether the runtime was limited.
    pub killed: bool,
    /// Recorded exit status.
    pub status: Status,
    /// Memory actually used by all processors, in kB; `None` if unknown.
    pub used_memory: Option<u64>,
    /// Recorded wait; `None` if unknown.
    pub recorded_wait: Option<Span>,
    /// Recorded runtime, also beyond the log's estimate.
    pub recorded_runtime: Span,
    /// Line of the log, if kept.
    pub record: Option<Box<Record>>,
}

/// Counts of the lines: `read` = returned jobs + the sum of `skipped`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Lines that are neither comments nor blank.
    pub read: u64,
    /// Returned jobs.
    pub used: u64,
    /// Skipped lines by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Jobs submitted before a preceding line.
    pub out_of_order: u64,
    /// Returned jobs without an estimate in the log. Their runtime replaces it.
    pub without_estimate: u64,
    /// Lines among `read` that deviate from the format.
    pub deviations: Deviations,
    /// Returned jobs without a user.
    pub without_user: u64,
    /// Returned jobs without a group.
    pub without_group: u64,
    /// Returned jobs without memory, requested or used.
    pub without_memory: u64,
}

/// A reason to skip a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SkipReason {
    /// The filter at this position.
    Dropped(usize),
    /// Another reason, as documents name it.
    Named(&'static str),
}

/// The jobs of a log in the order of their submission.
///
/// A sorted log is streamed. Any other log is loaded and sorted first, with a stable sort.
pub struct Jobs<'a> {
    trace: &'a Trace,
    options: JobOptions,
    counts: LineCounts,
    source: RecordSource<'a>,
    /// First submission.
    first: Option<Time>,
    shaken: Shaken,
    /// Estimates that were dealt out, in the order of the log; empty under any other model.
    dealt: Vec<Span>,
}

/// The records of a log in the order of their submission.
#[expect(clippy::large_enum_variant, reason = "a run has one")]
pub(crate) enum RecordSource<'a> {
    Stream(Reader<Box<dyn BufRead + Send + 'a>>),
    /// Sorted records, and the number already returned.
    Sorted(Vec<Record>, usize),
}

impl<'a> Jobs<'a> {
    /// Creates the iterator; `in_order` is the result of the survey.
    ///
    /// # Errors
    /// The log cannot be opened or, if it must be sorted, read.
    pub fn new(trace: &'a Trace, in_order: bool, options: JobOptions) -> Result<Jobs<'a>, TraceError> {
        let mut counts = LineCounts::default();
        let source = RecordSource::new(trace, in_order, options.lenient, &mut counts)?;
        let dealt = match options.estimates {
            Estimates::Tsafrir { most, percent } => dealt(trace, in_order, &options, most, percent)?,
            _ => Vec::new(),
        };
        Ok(Jobs { trace, options, counts, source, first: None, shaken: Shaken::default(), dealt })
    }

    /// Returns the counts of the lines so far.
    pub fn counts(&self) -> &LineCounts {
        &self.counts
    }

    fn next_job(&mut self) -> Result<Option<Job>, TraceError> {
        let JobOptions { shake, seed, .. } = self.options;
        if shake == 0 {
            return self.next_logged();
        }
        let mut shaken = std::mem::take(&mut self.shaken);
        let next = shaken.next(shake, seed, || self.next_logged());
        self.shaken = shaken;
        next
    }

    /// Returns the next job in the order of the log.
    fn next_logged(&mut self) -> Result<Option<Job>, TraceError> {
        let Jobs { trace, options, counts, source, first, dealt, .. } = self;
        while let Some(record) = source.next(trace, options.lenient, counts)? {
            match job_from_record(record, options) {
                Ok(mut job) => {
                    let submit = job.request.submit;
                    job.request.submit = options.arrivals.apply(submit, *first.get_or_insert(submit));
                    if let Some(&estimate) = usize::try_from(counts.used).ok().and_then(|at| dealt.get(at)) {
                        job.request.estimate = estimate;
                    }
                    counts.used += 1;
                    counts.without_estimate += u64::from(record.positive(Field::Estimate).is_none());
                    counts.without_user += u64::from(job.request.user.is_none());
                    counts.without_group += u64::from(job.request.group.is_none());
                    counts.without_memory += u64::from(memory_of(record, Procs::ONE) == 0);
                    return Ok(Some(job));
                }
                Err(skip) => *counts.skipped.entry(skip.reason(options)).or_default() += 1,
            }
        }
        Ok(None)
    }
}

/// Returns the estimates of Tsafrir's model for the jobs of a log, in its order.
///
/// The greatest estimate and its share are those of the log, where they are not given. A log whose
/// greatest estimate is below the model's least one has that.
fn dealt(
    trace: &Trace,
    in_order: bool,
    options: &JobOptions,
    most: Option<Span>,
    percent: Option<Factor>,
) -> Result<Vec<Span>, TraceError> {
    let plain =
        JobOptions { estimates: Estimates::default(), shake: 0, keep_records: false, ..options.clone() };
    let seconds = |span: Span| span.secs().unsigned_abs();
    let (mut runtimes, mut estimates) = (Vec::new(), Vec::new());
    for job in Jobs::new(trace, in_order, plain)? {
        let job = job?;
        runtimes.push(seconds(job.runtime.0));
        estimates.push(seconds(job.request.estimate));
    }
    let of_log = || estimates.iter().copied().max().unwrap_or(0).max(LEAST);
    let greatest = most.map_or_else(of_log, seconds);
    let having = estimates.iter().filter(|&&estimate| estimate == greatest).count();
    let share = match (most, percent) {
        (_, Some(percent)) => Some(percent.as_f64() / 100.0),
        (None, None) if having > 0 => Some(having as f64 / estimates.len() as f64),
        _ => None,
    };
    let assigned = Tsafrir { most: greatest, share }.assign(&runtimes, options.seed);
    Ok(assigned.into_iter().map(span).collect())
}

impl Iterator for Jobs<'_> {
    type Item = Result<Job, TraceError>;

    fn next(&mut self) -> Option<Result<Job, TraceError>> {
        self.next_job().transpose()
    }
}

impl<'a> RecordSource<'a> {
    /// Creates the source; `in_order` is the result of the survey. Any other log is read and sorted.
    pub(crate) fn new(
        trace: &'a Trace,
        in_order: bool,
        lenient: bool,
        counts: &mut LineCounts,
    ) -> Result<RecordSource<'a>, TraceError> {
        let mut source = RecordSource::Stream(trace.reader()?);
        if in_order {
            return Ok(source);
        }
        let mut records = Vec::new();
        let mut latest = i64::MIN;
        while let Some(record) = source.next(trace, lenient, counts)? {
            let submit = record.get(Field::Submit);
            counts.out_of_order += u64::from((0..latest).contains(&submit));
            latest = latest.max(submit);
            records.push(record.clone());
        }
        records.sort_by_key(|record| record.get(Field::Submit));
        Ok(RecordSource::Sorted(records, 0))
    }

    /// Returns the next well-formed line.
    pub(crate) fn next(
        &mut self,
        trace: &Trace,
        lenient: bool,
        counts: &mut LineCounts,
    ) -> Result<Option<&Record>, TraceError> {
        let reader = match self {
            RecordSource::Sorted(records, done) => {
                *done += 1;
                return Ok(records.get(*done - 1));
            }
            RecordSource::Stream(reader) => reader,
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
        counts.deviations = reader.deviations();
        Ok(Some(reader.record()))
    }
}

impl SkipReason {
    fn reason(self, options: &JobOptions) -> String {
        match self {
            SkipReason::Dropped(filter) => options.drop[filter].to_string(),
            SkipReason::Named(reason) => reason.into(),
        }
    }
}

/// Converts a record to a job, or returns the reason to skip it.
fn job_from_record(record: &Record, options: &JobOptions) -> Result<Job, SkipReason> {
    if let Some(filter) = options.drop.iter().position(|filter| filter.matches(record)) {
        return Err(SkipReason::Dropped(filter));
    }
    let number = record.get(Field::Job);
    let submit = submit_within(record, options)?;
    let (user, queue) = (small(record, Field::User), small(record, Field::Queue));
    if !is_selected(&options.users, user) {
        return Err(SkipReason::Named("other_user"));
    }
    if !is_selected(&options.queues, queue) {
        return Err(SkipReason::Named("other_queue"));
    }
    let procs = procs_of(record, options)?;
    let runtime = record.recorded(Field::Runtime).ok_or(SkipReason::Named("no_runtime"))?;
    let recorded_runtime = span(runtime);
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
        demand: Resources::cpus(procs)
            .with(Kind::Memory, memory_of(record, procs))
            .with(Kind::Gpus, gpus_of(record).div_ceil(THOUSAND)),
        form: form_of(record, options),
        user,
        group: small(record, Field::Group),
        queue,
        sizes: None,
        constraints: Constraints::NONE,
        devices: devices_of(record, options)?,
        known_runtime: None,
    };
    if options.machine.as_ref().is_some_and(|machine| !machine.could_hold(&request)) {
        return Err(SkipReason::Named("fits_no_host"));
    }
    let pool = options.pools.get(queue_position(queue, options.pools.len()));
    if pool.is_some_and(|pool| !pool.could_hold(&request)) {
        return Err(SkipReason::Named("too_large_for_queue"));
    }
    let used_memory = record.positive(Field::UsedMemory).map(|each| each.saturating_mul(procs.get()));
    let recorded_wait = record.recorded(Field::Wait).map(span);
    let status = record.status();
    let record = options.keep_records.then(|| Box::new(record.clone()));
    let runtime = ActualRuntime(runtime);
    Ok(Job { request, runtime, killed, status, used_memory, recorded_wait, recorded_runtime, record })
}

/// Returns whether the list is empty or contains the name.
fn is_selected(names: &[u32], name: Option<u32>) -> bool {
    names.is_empty() || name.is_some_and(|name| names.contains(&name))
}

fn submit_within(record: &Record, options: &JobOptions) -> Result<Time, SkipReason> {
    let secs = record.get(Field::Submit);
    if secs < 0 {
        return Err(SkipReason::Named("no_submit_time"));
    }
    if options.from.is_some_and(|from| secs < from) {
        return Err(SkipReason::Named("before_from"));
    }
    if options.to.is_some_and(|to| secs >= to) {
        return Err(SkipReason::Named("after_to"));
    }
    // The parser limits times far below the range of ticks.
    Time::from_secs(secs).ok_or(SkipReason::Named("no_submit_time"))
}

fn procs_of(record: &Record, options: &JobOptions) -> Result<Procs, SkipReason> {
    let procs = options.procs_field.size(record).ok_or(SkipReason::Named("no_processors"))?;
    if procs > options.procs { Err(SkipReason::Named("too_wide")) } else { Ok(procs) }
}

/// Returns the memory in kB: requested, else used, both per processor in the log.
fn memory_of(record: &Record, procs: Procs) -> u64 {
    let each = record.positive(Field::RequestedMemory).or_else(|| record.positive(Field::UsedMemory));
    each.unwrap_or(0).saturating_mul(procs.get())
}

/// Returns the GPUs in thousandths: those of the extra field, or none.
fn gpus_of(record: &Record) -> u64 {
    record.extras().number(Extra::Gpus).unwrap_or(0)
}

/// Returns the form of a job with GPUs, where hosts count GPUs without types: a part for each node that the log has, or one.
///
/// Each part has its GPUs on one host. Other jobs have the default form.
fn form_of(record: &Record, options: &JobOptions) -> Form {
    let counted = options.machine.as_ref().is_some_and(|machine| machine.capacity().get(Kind::Gpus) > 0);
    let nodes = record.extras().number(Extra::Nodes).and_then(|nodes| u32::try_from(nodes).ok());
    if counted && gpus_of(record) > 0 { Form::parts(nodes.unwrap_or(1).max(1)) } else { Form::ANY }
}

/// Returns the devices that a job demands on a machine that has some.
fn devices_of(record: &Record, options: &JobOptions) -> Result<Option<DeviceDemand>, SkipReason> {
    let table = options.machine.as_ref().and_then(|machine| machine.devices());
    let types = record.extras().text(Extra::GpuType);
    let demand = table.map(|table| table.demand_of_log(gpus_of(record), types.as_deref()));
    demand.transpose().map(Option::flatten).map_err(|_| SkipReason::Named("no_such_gpus"))
}

fn small(record: &Record, field: Field) -> Option<u32> {
    record.recorded(field).and_then(|value| u32::try_from(value).ok())
}

fn span(secs: u64) -> Span {
    i64::try_from(secs).ok().and_then(Span::from_secs).unwrap_or(Span::MAX)
}
