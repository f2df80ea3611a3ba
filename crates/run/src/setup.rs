//! The setup of a run, and the run itself.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use miserly_core::devices::{DeviceDemand, DeviceFit, FitRule, TypicalDemands};
use miserly_core::{JobNumber, Kind, Machine, Procs, Resources, Span, Spread};
use miserly_machine_file::{MachineSpec, Pools};
use miserly_policies::{PolicyError, PolicySpec};
use miserly_sim::{
    DeviceUse, FeedbackJobs, Grouping, Job, Label, LabelValue, LoggedStatus, Metrics, Observer, RunError,
    Series, Simulation, SuitedRanges,
};
use miserly_workload::swf::{Extra, Field, Names, ReadError, Record, Status};
use miserly_workload::{
    Feedback, Job as LoggedJob, JobOptions, Jobs, LineCounts, LogDates, Survey, Trace, TraceError, preceding,
};

use crate::document::{BatchesDoc, DetailsDoc, GpuUseDoc, OpportunisticDoc, RunDoc, SlicingDoc, TraceDoc};
use crate::error::SetupError;
use crate::log::Log;
use crate::names::resolve_names;
use crate::options::RunOptions;
use crate::recorded::RecordedSchedule;
use crate::stopwatch::Stopwatch;
use crate::system::{machines, policies, system};
use crate::warmup::warmup_of;

/// The number of the job after whose end another one is submitted, and the think time between.
pub type Preceding = (JobNumber, Span);

/// A job of a simulation, and the job that it follows; `None`: it is submitted as logged.
pub type FollowingJob = (Job, Option<Preceding>);

/// The setup of a run: a log, a machine and options.
///
/// It is immutable. Several threads may run it, under any policies, any number of times.
pub struct RunSetup {
    /// The log.
    pub trace: Arc<Trace>,
    /// The result of the survey of the log.
    pub survey: Arc<Survey>,
    pub(crate) spec: MachineSpec,
    machine: Arc<Machine>,
    pub(crate) options: RunOptions,
    sha256: Option<String>,
    /// The names in the header of the log, of each of [`Names::FIELDS`].
    names: [Names; 4],
}

impl RunSetup {
    /// Surveys the log, and settles the machine.
    ///
    /// # Errors
    /// If the log cannot be read or has no jobs, if no machine size is known, or if the slice is empty.
    pub fn new(trace: Trace, options: RunOptions) -> Result<RunSetup, SetupError> {
        options.check()?;
        let survey = trace.survey()?;
        RunSetup::surveyed(Arc::new(trace), Arc::new(survey), options)
    }

    /// Returns the setup of one of many runs that share a log.
    ///
    /// # Errors
    /// As [`new`](RunSetup::new).
    pub fn shared(log: &Log, options: RunOptions) -> Result<RunSetup, SetupError> {
        options.check()?;
        let setup = RunSetup::surveyed(Arc::clone(&log.trace), Arc::clone(&log.survey), options)?;
        Ok(RunSetup { sha256: Some(log.sha256.clone()), ..setup })
    }

    /// Returns the setup of a run with other options on the same log, which is not surveyed again.
    ///
    /// # Errors
    /// As [`new`](RunSetup::new).
    pub fn with_options(&self, options: RunOptions) -> Result<RunSetup, SetupError> {
        options.check()?;
        let setup = RunSetup::surveyed(Arc::clone(&self.trace), Arc::clone(&self.survey), options)?;
        Ok(RunSetup { sha256: self.sha256.clone(), ..setup })
    }

    /// Returns the SHA-256 of the log, if it was requested.
    pub fn sha256(&self) -> Option<&str> {
        self.sha256.as_deref()
    }

    /// Returns the machine.
    pub fn machine(&self) -> &MachineSpec {
        &self.spec
    }

    fn surveyed(
        trace: Arc<Trace>,
        survey: Arc<Survey>,
        mut options: RunOptions,
    ) -> Result<RunSetup, SetupError> {
        if survey.records == 0 {
            return Err(TraceError::Empty { name: trace.name().into() }.into());
        }
        let procs = options.procs.or_else(|| survey.header.procs());
        let Some(spec) = options.machine.clone().or_else(|| procs.map(MachineSpec::plain)) else {
            return Err(no_machine(&trace, options.jobs.lenient).into());
        };
        if spec.devices.is_some() && spec.spread == Spread::Any {
            return Err(SetupError::SpanOfGpus(spec.name));
        }
        if let (None, Some(option)) = (&spec.pools, options.opportunistic.option()) {
            return Err(SetupError::NoPools(option));
        }
        let wrong = |error| SetupError::Filter { log: trace.name().into(), error };
        options.jobs.drop.iter_mut().try_for_each(|filter| filter.resolve(&survey.header)).map_err(wrong)?;
        resolve_names(&trace, &survey.header, &mut options)?;
        let machine = Arc::new(spec.machine());
        let unix_start = survey.header.unix_start();
        let pools = machines(&spec, unix_start);
        if options.batches.is_none() {
            options.warmup.get_or_insert_with(|| warmup_of(&survey, &options.jobs));
        }
        options.jobs.procs = spec.procs();
        options.jobs.machine = (!machine.is_plain()).then(|| Arc::clone(&machine));
        options.jobs.pools = pools.into();
        let machine = match spec.gpu_fit {
            FitRule::Best => machine,
            FitRule::Gradient => Arc::new(with_typical_demands(&trace, &survey, &options.jobs, &machine)?),
        };
        let names = Names::FIELDS.map(|field| survey.header.names(field));
        Ok(RunSetup { trace, survey, spec, machine, options, sha256: None, names })
    }

    /// Adds the checksum of the log, for documents.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn with_checksum(mut self, wanted: bool) -> Result<RunSetup, TraceError> {
        self.sha256 = match self.sha256.take().filter(|_| wanted) {
            None if wanted => Some(self.trace.sha256()?),
            known => known,
        };
        Ok(self)
    }

    /// Adds distributions and series over time to the result.
    #[must_use]
    pub fn with_details(mut self, wanted: bool) -> RunSetup {
        self.options.details = wanted;
        self
    }

    /// Submits jobs after the end of an earlier one of the simulation. Memory then holds the log.
    #[must_use]
    pub fn with_feedback(mut self, feedback: Option<Feedback>) -> RunSetup {
        self.options.feedback = feedback;
        self
    }

    /// Adds measures of these groupings of the jobs.
    #[must_use]
    pub fn grouped(mut self, by: &[Grouping]) -> RunSetup {
        by.clone_into(&mut self.options.by);
        self
    }

    /// Returns the ranges of runtimes, processors and time limits that suit the jobs of the run. It reads the log.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn suited_ranges(&self) -> Result<SuitedRanges, TraceError> {
        let mut ranges = SuitedRanges::default();
        for job in self.logged_jobs(false)? {
            let job = job?;
            ranges.add(job.request.procs(), job.runtime.0, job.request.estimate);
        }
        Ok(ranges)
    }

    /// Counts the lines of the log, and the jobs of the run that lack facts. It reads the log.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn line_counts(&self) -> Result<LineCounts, TraceError> {
        let mut jobs = self.logged_jobs(false)?;
        jobs.by_ref().try_for_each(|job| job.map(drop))?;
        Ok(jobs.counts().clone())
    }

    /// Returns the options of the run.
    pub fn options(&self) -> &RunOptions {
        &self.options
    }

    /// Returns the processors of the machine.
    pub fn procs(&self) -> Procs {
        self.options.jobs.procs
    }

    /// Returns the time after the first submission in which jobs are not measured.
    pub fn warmup(&self) -> Span {
        Span::from_secs(self.options.warmup.unwrap_or_default()).unwrap_or(Span::MAX)
    }

    /// Returns a simulation of the machine under `policy`.
    ///
    /// # Errors
    /// If the policy does not run on the machine.
    pub fn simulation(&self, policy: &PolicySpec) -> Result<Simulation, PolicyError> {
        let machine = Machine::clone(&self.machine);
        let (seed, event_order) = (self.options.jobs.seed, self.options.event_order);
        let Some(pools) = &self.spec.pools else {
            let knows = policy.needs().known_runtimes;
            let simulation = Simulation::new(machine.clone(), policy.build(&machine, seed)?, event_order);
            return Ok(if knows { simulation.with_known_runtimes() } else { simulation });
        };
        let has = machine.capacity();
        let system = system(pools, &self.options.jobs.pools, policy, seed, event_order)?;
        let Some(config) = self.options.opportunistic.config(policies(pools, policy), has) else {
            return Ok(Simulation::of_queues(system, has.cpus_count().get()));
        };
        let simulation = Simulation::of_queues(system.with_opportunistic(config), has.cpus_count().get());
        Ok(match &self.options.opportunistic.interactive {
            Some(load) => simulation.with_interactive(load.changes(seed)),
            None => simulation,
        })
    }

    /// Returns whether there are opportunistic jobs under this policy.
    fn is_opportunistic(&self, policy: &PolicySpec) -> bool {
        let capacity = self.machine.capacity();
        let config = |pools: &Pools| self.options.opportunistic.config(policies(pools, policy), capacity);
        self.spec.pools.as_ref().and_then(config).is_some()
    }

    /// Returns the jobs of the simulation.
    ///
    /// # Errors
    /// If the log cannot be opened.
    pub fn jobs(&self) -> Result<impl Iterator<Item = Result<Job, TraceError>>, TraceError> {
        let wanted = self.labels();
        Ok(self.logged_jobs(!wanted.is_empty())?.map(move |job| job.map(|job| simulated(job, &wanted))))
    }

    /// Returns the lines of these jobs, as the log has them.
    ///
    /// # Errors
    /// If the log cannot be opened.
    pub fn records(&self) -> Result<impl Iterator<Item = Result<Record, TraceError>>, TraceError> {
        let record = |job: LoggedJob| job.record.map_or_else(Record::unknown, |record| *record);
        Ok(self.logged_jobs(true)?.map(move |job| job.map(record)))
    }

    /// Returns the properties by which the jobs are grouped.
    pub(crate) fn labels(&self) -> Vec<Label> {
        let label = |by: &Grouping| if let Grouping::Label(label) = by { Some(*label) } else { None };
        self.options.by.iter().filter_map(label).collect()
    }

    pub(crate) fn logged_jobs(&self, keep_records: bool) -> Result<Jobs<'_>, TraceError> {
        let options = JobOptions { keep_records, ..self.options.jobs.clone() };
        Jobs::new(&self.trace, self.survey.in_order, options)
    }

    /// Runs the log to its end, and returns the document of the result.
    ///
    /// With `pes`, the observers see the processors of each job by number.
    ///
    /// # Errors
    /// If the log cannot be read, an observer cannot write, or the policy does not run.
    pub fn outcome(
        &self,
        policy: &PolicySpec,
        pes: bool,
        observers: &mut [&mut dyn Observer],
    ) -> Result<RunDoc, SetupError> {
        self.run(policy, pes, observers, None).map(|(outcome, _)| outcome)
    }

    /// Runs the log as [`outcome`](RunSetup::outcome), and measures the waits that it records in the same pass, for
    /// the jobs that the options choose.
    ///
    /// In the recorded schedule each job starts after its recorded wait, and runs as in a simulation.
    /// It is `None` if the log has no positive wait, if the options change the submit times, or if they measure batches
    /// by termination.
    /// Jobs without a recorded wait are counted as [`NO_RECORDED_WAIT`](crate::NO_RECORDED_WAIT). If there are
    /// any, differences to other schedules have no interval.
    ///
    /// # Errors
    /// As [`outcome`](RunSetup::outcome).
    pub fn outcome_and_recorded(
        &self,
        policy: &PolicySpec,
        pes: bool,
        observers: &mut [&mut dyn Observer],
    ) -> Result<(RunDoc, Option<RunDoc>), SetupError> {
        self.run(policy, pes, observers, self.recorded_schedule())
    }

    fn run(
        &self,
        policy: &PolicySpec,
        pes: bool,
        observers: &mut [&mut dyn Observer],
        mut recorded: Option<RecordedSchedule>,
    ) -> Result<(RunDoc, Option<RunDoc>), SetupError> {
        let watch = Stopwatch::start();
        let simulation = self.simulation(policy)?;
        let mut simulation = if pes { simulation.with_numbered_processors() } else { simulation };
        let mut metrics = Metrics::new(self.procs(), self.warmup())
            .in_batches(self.options.batches)
            .grouped(&self.options.by);
        let mut series = self.options.details.then(|| Series::new(self.procs()));
        let mut used = self.machine.devices().map(|_| DeviceUse::default());
        let mut all: Vec<&mut dyn Observer> = vec![&mut metrics];
        if let Some(used) = &mut used {
            all.push(used);
        }
        if let Some(series) = &mut series {
            all.push(series);
        }
        for observer in observers.iter_mut() {
            all.push(&mut **observer);
        }
        let counts = match self.options.feedback {
            None => self.play(&mut simulation, &mut all, recorded.as_mut())?,
            Some(feedback) => self.play_with(feedback, &mut simulation, &mut all)?,
        };
        self.check_batches(&metrics)?;
        let seconds = watch.elapsed().as_secs_f64();
        let mut outcome = RunDoc::new(
            policy.to_string(),
            self.settings(),
            self.trace_doc(),
            &counts,
            &mut metrics,
            seconds,
        );
        if self.options.feedback.is_some() {
            // The jobs come in another order under each policy, so that no differences are of pairs.
            outcome.batch_sums = self.empty_metrics().batches;
        }
        self.name_groups(&mut outcome);
        outcome.opportunistic =
            self.is_opportunistic(policy).then(|| OpportunisticDoc::new(&metrics.opportunistic));
        outcome.gpus = used.as_ref().and_then(GpuUseDoc::new);
        let slices = simulation.system().queues().iter().any(|queue| queue.ledger().matrix().is_some());
        outcome.slicing = slices.then(|| SlicingDoc::new(&mut metrics));
        let log_at_its_end = counts.read == self.survey.records;
        outcome.batches = BatchesDoc::new(&metrics, self.procs(), slices, log_at_its_end);
        outcome.details = series.map(|series| DetailsDoc::new(&mut metrics, &series));
        Ok((outcome, recorded.and_then(|schedule| schedule.document(self, &counts))))
    }

    pub(crate) fn trace_doc(&self) -> TraceDoc {
        TraceDoc {
            name: self.name().to_owned(),
            sha256: self.sha256.clone().unwrap_or_default(),
            dates: self.dates(),
        }
    }

    fn check_batches(&self, metrics: &Metrics) -> Result<(), SetupError> {
        match self.options.batches {
            Some(rule) if metrics.simulated() < rule.ends() => {
                Err(SetupError::TooShort { ended: metrics.simulated(), wanted: rule.ends() })
            }
            _ => Ok(()),
        }
    }

    /// Returns all jobs of the simulation, each with the one after whose end it is submitted. Without feedback there is none.
    ///
    /// # Errors
    /// If the log cannot be read, or no job depends on another one.
    pub fn jobs_after(&self) -> Result<Vec<FollowingJob>, SetupError> {
        match self.options.feedback {
            None => Ok(self.jobs()?.map(|job| Ok((job?, None))).collect::<Result<_, TraceError>>()?),
            Some(feedback) => Ok(self.fed_jobs(feedback)?.0),
        }
    }

    fn fed_jobs(&self, feedback: Feedback) -> Result<(Vec<FollowingJob>, LineCounts), SetupError> {
        let mut source = self.logged_jobs(true)?;
        let jobs: Vec<LoggedJob> = source.by_ref().collect::<Result<_, _>>()?;
        let preceding = preceding(&jobs, feedback)
            .map_err(|why| SetupError::NoFeedback { log: self.name().to_owned(), why })?;
        let wanted = self.labels();
        let jobs = jobs.into_iter().map(|job| simulated(job, &wanted)).zip(preceding).collect();
        Ok((jobs, source.counts().clone()))
    }

    fn play(
        &self,
        simulation: &mut Simulation,
        observers: &mut [&mut dyn Observer],
        mut recorded: Option<&mut RecordedSchedule>,
    ) -> Result<LineCounts, RunError<TraceError>> {
        let mut record = |job: &LoggedJob| {
            if let Some(schedule) = &mut recorded {
                schedule.add(job);
            }
        };
        let wanted = self.labels();
        let mut jobs = self.logged_jobs(!wanted.is_empty()).map_err(RunError::Source)?;
        // A run of batches may end before the log does, and counts the lines up to there.
        if self.trace.is_stored() && self.options.batches.is_none() {
            let (run, counts) = jobs.read_ahead(record, |jobs| {
                simulation.run(&mut jobs.map(|job| job.map(|job| simulated(job, &wanted))), observers)
            });
            return run.map(|()| counts);
        }
        let mut of_job = |job: LoggedJob| {
            record(&job);
            simulated(job, &wanted)
        };
        simulation.run(&mut jobs.by_ref().map(|job| job.map(&mut of_job)), observers)?;
        Ok(jobs.counts().clone())
    }

    /// Runs the log with submissions after the ends of jobs.
    fn play_with(
        &self,
        feedback: Feedback,
        simulation: &mut Simulation,
        observers: &mut [&mut dyn Observer],
    ) -> Result<LineCounts, SetupError> {
        let (jobs, counts) = self.fed_jobs(feedback)?;
        let (mut first, mut later) = (Vec::new(), FeedbackJobs::default());
        for (job, preceding) in jobs {
            match preceding {
                None => first.push(job),
                Some((number, think)) => later.add(number, think, job),
            }
        }
        simulation.add_feedback(later);
        simulation.run(&mut first.into_iter().map(Ok::<_, TraceError>), observers)?;
        Ok(counts)
    }

    /// Adds the names in the header of the log to the numbers of users, queues and partitions.
    pub(crate) fn name_groups(&self, outcome: &mut RunDoc) {
        for (by, groups) in &mut outcome.by {
            let names = by.parse().map(|by| self.group_names(by)).unwrap_or_default();
            for group in groups {
                group.name = names.get(&group.group).cloned();
            }
        }
    }

    /// Returns the names of the groups in the header of the log, if the groups are numbers of users, groups, queues or partitions.
    ///
    /// A name that several numbers have is followed by the number in brackets.
    pub fn group_names(&self, by: Grouping) -> BTreeMap<String, String> {
        let Some(names) = field_of(by).and_then(|field| self.names_of(field)) else { return BTreeMap::new() };
        let (mut seen, mut repeated) = (BTreeSet::new(), BTreeSet::new());
        repeated.extend(names.iter().map(|(_, name)| name).filter(|name| !seen.insert(*name)));
        let text = |(number, name): &(u32, &str)| {
            if repeated.contains(name) { format!("{name} ({number})") } else { (*name).to_owned() }
        };
        names.iter().map(|named| (named.0.to_string(), text(&named))).collect()
    }

    /// Returns the names of the numbers of a field in the header of the log.
    fn names_of(&self, field: Field) -> Option<&Names> {
        let (_, names) = Names::FIELDS.iter().zip(&self.names).find(|(named, _)| **named == field)?;
        Some(names)
    }

    /// Returns the name of the number of a job's field in the header of the log.
    pub fn name_of(&self, field: Field, record: &Record) -> Option<&str> {
        self.names_of(field)?.get(record.recorded(field)?.try_into().ok()?)
    }

    /// Returns the dates of the run.
    ///
    /// Returns `None` if the log has no dates, or if the options change the submit times.
    pub fn dates(&self) -> Option<LogDates> {
        (!self.options.jobs.moves_submissions()).then(|| LogDates::of(&self.survey)).flatten()
    }

    /// Returns the file name of the log, without folders.
    pub fn name(&self) -> &str {
        let name = self.trace.name();
        Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name)
    }
}

/// The largest number of different typical demands.
const TYPICAL_MOST: usize = 64;

/// Returns the machine with the commonest demands of the log as typical ones, for the gradient of fragments. It reads the log.
fn with_typical_demands(
    trace: &Trace,
    survey: &Survey,
    options: &JobOptions,
    machine: &Machine,
) -> Result<Machine, TraceError> {
    let Some(table) = machine.devices() else { return Ok(machine.clone()) };
    let mut counts: BTreeMap<([u64; 4], DeviceDemand), i64> = BTreeMap::new();
    for job in Jobs::new(trace, survey.in_order, options.clone())? {
        let demand = machine.demand(&job?.request);
        let amounts = Kind::ALL.map(|kind| demand.amount().get(kind));
        if let Some(devices) = demand.devices() {
            *counts.entry((amounts, devices)).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, jobs)| std::cmp::Reverse(*jobs));
    counts.truncate(TYPICAL_MOST);
    let typical = counts.into_iter().map(|((amounts, devices), jobs)| {
        let each = Kind::ALL.into_iter().zip(amounts);
        let amount = each.fold(Resources::NONE, |sum, (kind, amount)| sum.with(kind, amount));
        (amount, devices, jobs)
    });
    let fit = DeviceFit::Gradient(Arc::new(TypicalDemands::new(typical.collect())));
    Ok(machine.clone().with_devices(Some(Arc::new(table.clone().with_fit(fit)))))
}

/// Returns the field whose numbers are the groups. The header may name them.
fn field_of(by: Grouping) -> Option<Field> {
    match by {
        Grouping::User => Some(Field::User),
        Grouping::Queue => Some(Field::Queue),
        Grouping::Label(Label::Group) => Some(Field::Group),
        Grouping::Label(Label::Partition) => Some(Field::Partition),
        _ => None,
    }
}

/// Returns the job of a simulation that a line of the log describes.
pub(crate) fn simulated(job: LoggedJob, wanted: &[Label]) -> Job {
    let labels = labels(&job, wanted);
    let LoggedJob { request, runtime, killed, used_memory, status, .. } = job;
    Job { request, runtime, killed, status: logged_status(status), used_memory, labels }
}

/// Returns these properties of a job, of which its line is kept.
pub(crate) fn labels(job: &LoggedJob, wanted: &[Label]) -> Vec<(Label, LabelValue)> {
    let Some(record) = job.record.as_ref() else { return Vec::new() };
    let number = |field| record.recorded(field).map(|number| LabelValue::new(number, &number.to_string()));
    let value = |label: &Label| {
        if let Some(field) = field_of(Grouping::Label(*label)) {
            return Some((*label, number(field)?));
        }
        let (extra, extras) = (Extra::named(label.name())?, record.extras());
        let order = extras.number(extra).unwrap_or_default();
        // Tables of groups go to terminals.
        let text = extras.text(extra)?.replace(char::is_control, "\u{fffd}");
        Some((*label, LabelValue::new(order, &text)))
    };
    wanted.iter().filter_map(value).collect()
}

/// Returns the end of a job as its log has it.
pub(crate) const fn logged_status(status: Status) -> LoggedStatus {
    match status {
        Status::Completed => LoggedStatus::Completed,
        Status::Failed => LoggedStatus::Failed,
        Status::Cancelled => LoggedStatus::Cancelled,
        Status::Unknown => LoggedStatus::Unknown,
    }
}

/// Returns the error for an unknown machine size: that of reading the log, if it is no log.
fn no_machine(trace: &Trace, lenient: bool) -> TraceError {
    let mut reader = match trace.reader() {
        Ok(reader) => reader,
        Err(error) => return error,
    };
    loop {
        match reader.next_job() {
            Err(ReadError::Malformed { .. }) if lenient => {}
            Err(error) => return trace.read_error(error),
            Ok(_) => return TraceError::NoMachine { name: trace.name().into() },
        }
    }
}
