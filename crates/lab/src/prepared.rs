//! From a log and the options of a run to the run.

use std::io;
use std::path::Path;
use std::sync::Arc;

use miserly_core::{Instants, Machine, Span};
use miserly_policies::{Chosen, PolicyError};
use miserly_report::{BatchSettings, BatchesDoc, Details, EarlyDoc, Outcome, Settings, SlicingDoc, TraceDoc};
use miserly_sim::{BatchRule, Grouping, Metrics, Observer, RunError, Series, Simulation};
use miserly_workload::swf::ReadError;
use miserly_workload::{
    Arrivals, Counts, Estimates, Filter, JobOptions, Jobs, Overrun, ProcsField, Survey, Trace, TraceError,
};

use crate::experiment::Log;
use crate::filling::FillingOptions;
use crate::machine::{MachineError, MachineSpec, Pools};
use crate::stopwatch::Stopwatch;

/// How a log becomes a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// The machine's processors, in place of what the log's header says.
    pub procs: Option<u32>,
    /// The machine; goes before `procs`.
    pub machine: Option<MachineSpec>,
    /// What the policy is told of the runtimes.
    pub estimates: Estimates,
    /// What happens to a job that reaches the log's own estimate.
    pub overrun: Overrun,
    /// How the events of one instant reach the policy.
    pub instants: Instants,
    /// Which field is a job's size, where both are known.
    pub procs_field: ProcsField,
    /// Jobs to leave out: those that meet any of these.
    pub drop: Vec<Filter>,
    /// Skip and count malformed lines instead of stopping at the first.
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
    /// Simulate, but do not measure, jobs submitted within so many seconds of the first one.
    pub warmup: i64,
    /// Measure the jobs of these batches by termination, in place of those behind the warm-up.
    pub batches: Option<BatchRule>,
    /// The seed of random draws.
    pub seed: u64,
    /// What runs beside the windows of jobs, on machines with pools.
    pub filling: FillingOptions,
    /// Also tell the distributions and the series over time.
    pub details: bool,
    /// Also measure the groups of the jobs by these.
    pub by: Vec<Grouping>,
}

/// Why a log cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// An empty slice.
    #[error("no job is submitted at {from} s or later and before {to} s: --to must be above --from")]
    EmptySlice {
        /// The slice's begin, seconds.
        from: i64,
        /// Its end, seconds.
        to: i64,
    },
    /// There is no such machine.
    #[error(transparent)]
    Machine(#[from] MachineError),
    /// The log cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// An option that needs pools, on a machine without.
    #[error(
        "{0} is for machines with pools: give --machine a file with [pool] or [[queue]] (docs/machines.md)"
    )]
    NoPools(&'static str),
    /// A run that ended before its batches were full.
    #[error(
        "{ended} jobs ended, but {wanted} are needed for the batches: give fewer or shorter ones, or a longer log"
    )]
    TooShort {
        /// How many ended.
        ended: u64,
        /// How many the batches need.
        wanted: u64,
    },
    /// The policy does not run on the machine.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The run stopped.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The file of the jobs cannot be written.
    #[error("cannot write the jobs: {0}")]
    Write(#[from] io::Error),
}

/// A log that is ready to be run, any number of times and from several threads.
pub struct Prepared {
    /// The log.
    pub trace: Arc<Trace>,
    /// What a first look at it found.
    pub survey: Arc<Survey>,
    /// How its lines become jobs.
    pub job_options: JobOptions,
    /// What it is run on.
    spec: MachineSpec,
    machine: Arc<Machine>,
    options: RunOptions,
    sha256: Option<String>,
}

impl Prepared {
    /// Looks the log over once, and settles the machine.
    ///
    /// # Errors
    /// If the log cannot be read or has no jobs, if no machine size is known, or if the slice is empty.
    pub fn new(trace: Trace, options: RunOptions) -> Result<Prepared, PrepareError> {
        options.check()?;
        let survey = trace.survey()?;
        Prepared::surveyed(Arc::new(trace), Arc::new(survey), options)
    }

    /// A log that many runs share.
    ///
    /// # Errors
    /// As [`new`](Prepared::new).
    pub fn of(log: &Log, options: RunOptions) -> Result<Prepared, PrepareError> {
        options.check()?;
        let prepared = Prepared::surveyed(Arc::clone(&log.trace), Arc::clone(&log.survey), options)?;
        Ok(Prepared { sha256: Some(log.sha256.clone()), ..prepared })
    }

    fn surveyed(
        trace: Arc<Trace>,
        survey: Arc<Survey>,
        options: RunOptions,
    ) -> Result<Prepared, PrepareError> {
        if survey.records == 0 {
            return Err(TraceError::Empty { name: trace.name().into() }.into());
        }
        let procs = options.procs.or_else(|| survey.header.procs());
        let Some(spec) = options.machine.clone().or_else(|| procs.map(MachineSpec::plain)) else {
            return Err(no_machine(&trace, options.lenient).into());
        };
        if let (None, Some(option)) = (&spec.pools, options.filling.asked()) {
            return Err(PrepareError::NoPools(option));
        }
        let machine = Arc::new(spec.machine());
        let unix_start = survey.header.unix_start();
        let pools = spec.pools.as_ref().map_or_else(Vec::new, |pools| pools.machines(unix_start));
        let job_options = JobOptions { pools: pools.into(), ..options.job_options(spec.procs(), &machine) };
        Ok(Prepared { trace, survey, job_options, spec, machine, options, sha256: None })
    }

    /// Also takes the checksum of the log, for documents.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn with_checksum(mut self, wanted: bool) -> Result<Prepared, TraceError> {
        self.sha256 = wanted.then(|| self.trace.sha256()).transpose()?;
        Ok(self)
    }

    /// Also tells the distributions and the series over time.
    #[must_use]
    pub fn with_details(mut self, wanted: bool) -> Prepared {
        self.options.details = wanted;
        self
    }

    /// Also measures the groups of the jobs by these.
    #[must_use]
    pub fn grouped(mut self, by: &[Grouping]) -> Prepared {
        by.clone_into(&mut self.options.by);
        self
    }

    /// A simulation of this log's machine under `policy`.
    ///
    /// # Errors
    /// If the policy does not run on the machine.
    pub fn simulation(&self, policy: &Chosen) -> Result<Simulation, PolicyError> {
        let machine = Machine::clone(&self.machine);
        let (seed, instants) = (self.job_options.seed, self.options.instants);
        let Some(pools) = &self.spec.pools else {
            let policy = policy.build(&machine, seed)?;
            return Ok(Simulation::new(machine, policy, instants));
        };
        let has = machine.capacity();
        let system = pools.system(&self.job_options.pools, policy, seed, instants)?;
        let Some(filler) = self.options.filling.filler(pools.policies(policy), has) else {
            return Ok(Simulation::over(system, has.cpus_count().get()));
        };
        let simulation = Simulation::over(system.filling(filler), has.cpus_count().get());
        Ok(match &self.options.filling.interactive {
            Some(load) => simulation.with_interactive(load.changes(seed)),
            None => simulation,
        })
    }

    /// Whether jobs run ahead of their starts under this policy.
    fn fills(&self, policy: &Chosen) -> bool {
        let filler =
            |pools: &Pools| self.options.filling.filler(pools.policies(policy), self.machine.capacity());
        self.spec.pools.as_ref().and_then(filler).is_some()
    }

    /// The log's jobs.
    ///
    /// # Errors
    /// If the log cannot be opened.
    pub fn jobs(&self) -> Result<Jobs<'_>, TraceError> {
        Jobs::new(&self.trace, self.survey.in_order, self.job_options.clone())
    }

    /// Runs the log to its end under the eyes of `observers`, and says what it came to.
    ///
    /// `pes` tells each job its processors by number.
    ///
    /// # Errors
    /// If the log cannot be read, an observer cannot write, or the policy does not run.
    pub fn outcome(
        &self,
        policy: &Chosen,
        pes: bool,
        observers: &mut [&mut dyn Observer],
    ) -> Result<Outcome, PrepareError> {
        let watch = Stopwatch::start();
        let simulation = self.simulation(policy)?;
        let mut simulation = if pes { simulation.with_pes() } else { simulation };
        let warmup = Span::from_secs(self.options.warmup).unwrap_or(Span::MAX);
        let mut metrics = Metrics::new(self.job_options.procs.into(), warmup)
            .in_batches(self.options.batches)
            .grouped(&self.options.by);
        let mut series = self.options.details.then(|| Series::new(self.job_options.procs.into()));
        let counts = self.play(&mut simulation, &mut metrics, series.as_mut(), observers)?;
        self.check_batches(&metrics)?;
        let seconds = watch.elapsed().as_secs_f64();
        let trace =
            TraceDoc { name: self.name().to_owned(), sha256: self.sha256.clone().unwrap_or_default() };
        let mut outcome =
            Outcome::new(policy.to_string(), self.settings(), trace, &counts, &mut metrics, seconds);
        outcome.early = self.fills(policy).then(|| EarlyDoc::of(&metrics.early));
        let slices = simulation.system().queues().iter().any(|queue| queue.ledger().matrix().is_some());
        outcome.slicing = slices.then(|| SlicingDoc::of(&mut metrics));
        let log_at_its_end = counts.read == self.survey.records;
        outcome.batches = BatchesDoc::of(&metrics, self.job_options.procs, slices, log_at_its_end);
        outcome.details = series.map(|series| Details::of(&mut metrics, &series));
        Ok(outcome)
    }

    fn check_batches(&self, metrics: &Metrics) -> Result<(), PrepareError> {
        match self.options.batches {
            Some(rule) if metrics.simulated() < rule.ends() => {
                Err(PrepareError::TooShort { ended: metrics.simulated(), wanted: rule.ends() })
            }
            _ => Ok(()),
        }
    }

    fn play(
        &self,
        simulation: &mut Simulation,
        metrics: &mut Metrics,
        series: Option<&mut Series>,
        others: &mut [&mut dyn Observer],
    ) -> Result<Counts, RunError> {
        let mut observers: Vec<&mut dyn Observer> = vec![metrics];
        if let Some(series) = series {
            observers.push(series);
        }
        for other in others.iter_mut() {
            observers.push(&mut **other);
        }
        let mut jobs = self.jobs()?;
        simulation.run(&mut jobs, &mut observers)?;
        Ok(jobs.counts().clone())
    }

    /// The log's file name, without folders.
    pub fn name(&self) -> &str {
        let name = self.trace.name();
        Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name)
    }

    /// How the run is set, as documents tell it.
    pub fn settings(&self) -> Settings {
        let RunOptions { instants, warmup, .. } = self.options;
        let jobs = &self.job_options;
        Settings {
            procs: jobs.procs,
            machine: self.spec.document(),
            instants: instants.to_string(),
            overrun: jobs.overrun.to_string(),
            estimates: jobs.estimates.to_string(),
            procs_field: jobs.procs_field.to_string(),
            drop: jobs.drop.iter().map(ToString::to_string).collect(),
            from: jobs.from,
            to: jobs.to,
            users: jobs.users.clone(),
            queues: jobs.queues.clone(),
            scale_load: if let Arrivals::Scaled(factor) = jobs.arrivals { factor.as_f64() } else { 1.0 },
            offline: jobs.arrivals == Arrivals::Offline,
            warmup,
            batches: self.options.batches.map(BatchSettings::from),
            seed: jobs.seed,
            filling: self.spec.pools.as_ref().map(|_| self.options.filling.document()),
            lenient: jobs.lenient,
        }
    }
}

impl RunOptions {
    fn check(&self) -> Result<(), PrepareError> {
        match (self.from, self.to) {
            (Some(from), Some(to)) if from >= to => Err(PrepareError::EmptySlice { from, to }),
            _ => Ok(()),
        }
    }

    /// How the lines of a log become jobs of `machine`, which has `procs` processors.
    fn job_options(&self, procs: u32, machine: &Arc<Machine>) -> JobOptions {
        JobOptions {
            procs,
            machine: (!machine.is_plain()).then(|| Arc::clone(machine)),
            pools: Arc::default(),
            procs_field: self.procs_field,
            drop: self.drop.clone(),
            overrun: self.overrun,
            estimates: self.estimates,
            seed: self.seed,
            lenient: self.lenient,
            from: self.from,
            to: self.to,
            users: self.users.clone(),
            queues: self.queues.clone(),
            arrivals: self.arrivals,
            keep_records: false,
        }
    }
}

/// What to say where no machine size is known: that the log is no log, if that is the reason.
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
