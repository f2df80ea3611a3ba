//! From the command line to a run.

use std::path::Path;

use anyhow::bail;
use miserly_core::{Machine, Span};
use miserly_policies::Chosen;
use miserly_report::{Outcome, Settings, TraceDoc};
use miserly_sim::{Metrics, Observer, RunError, Simulation};
use miserly_workload::swf::ReadError;
use miserly_workload::{Counts, Estimates, JobOptions, Jobs, Survey, Trace, TraceError};

use crate::args::RunArgs;
use crate::progress::Stopwatch;

/// A log that is ready to be run, any number of times and from several threads.
pub(crate) struct Prepared {
    pub(crate) trace: Trace,
    pub(crate) survey: Survey,
    pub(crate) options: JobOptions,
    args: RunArgs,
    sha256: Option<String>,
}

/// The log of that name; `-` is standard input.
pub(crate) fn open(path: &Path) -> Result<Trace, TraceError> {
    if path == Path::new("-") { Trace::stdin() } else { Trace::open(path) }
}

impl Prepared {
    /// Looks the log over once, and settles the machine.
    pub(crate) fn new(trace: Trace, args: &RunArgs, estimates: Estimates) -> anyhow::Result<Prepared> {
        if let (Some(from), Some(to)) = (args.from, args.to)
            && from >= to
        {
            bail!("no job is submitted at {from} s or later and before {to} s: --to must be above --from");
        }
        let survey = trace.survey()?;
        if survey.records == 0 {
            bail!(TraceError::Empty { name: trace.name().into() });
        }
        let Some(procs) = args.procs.or_else(|| survey.header.procs()) else {
            bail!(no_machine(&trace, args.lenient));
        };
        let options = JobOptions {
            procs,
            procs_field: args.procs_field.into(),
            drop: args.drop.clone(),
            overrun: args.overrun.into(),
            estimates: args.estimates.unwrap_or(estimates),
            seed: args.seed,
            lenient: args.lenient,
            from: args.from,
            to: args.to,
            keep_records: false,
        };
        Ok(Prepared { trace, survey, options, args: args.clone(), sha256: None })
    }

    /// Also takes the checksum of the log, for documents.
    pub(crate) fn with_checksum(mut self, wanted: bool) -> Result<Prepared, TraceError> {
        self.sha256 = wanted.then(|| self.trace.sha256()).transpose()?;
        Ok(self)
    }

    /// A simulation of this log's machine under `policy`.
    pub(crate) fn simulation(&self, policy: &Chosen) -> anyhow::Result<Simulation> {
        let machine = Machine::plain(self.options.procs.into());
        let policy = policy.build(&machine, self.options.seed)?;
        Ok(Simulation::new(machine, policy, self.args.instants.into()))
    }

    /// The log's jobs.
    pub(crate) fn jobs(&self) -> Result<Jobs<'_>, TraceError> {
        Jobs::new(&self.trace, self.survey.in_order, self.options.clone())
    }

    /// Runs the log to its end under the eyes of `observers`, and says what it came to.
    pub(crate) fn outcome(
        &self,
        policy: &Chosen,
        pes: bool,
        observers: &mut [&mut dyn Observer],
    ) -> anyhow::Result<Outcome> {
        let watch = Stopwatch::start();
        let simulation = self.simulation(policy)?;
        let mut simulation = if pes { simulation.with_pes() } else { simulation };
        // The parser bounds the warm-up.
        let warmup = Span::from_secs(self.args.warmup).unwrap_or(Span::MAX);
        let mut metrics = Metrics::new(self.options.procs.into(), warmup);
        let counts = self.play(&mut simulation, &mut metrics, observers)?;
        let seconds = watch.elapsed().as_secs_f64();
        let trace =
            TraceDoc { name: self.name().to_owned(), sha256: self.sha256.clone().unwrap_or_default() };
        Ok(Outcome::new(policy.to_string(), self.settings(), trace, &counts, &mut metrics, seconds))
    }

    fn play(
        &self,
        simulation: &mut Simulation,
        metrics: &mut Metrics,
        others: &mut [&mut dyn Observer],
    ) -> Result<Counts, RunError> {
        let mut observers: Vec<&mut dyn Observer> = vec![metrics];
        for other in others.iter_mut() {
            observers.push(&mut **other);
        }
        let mut jobs = self.jobs()?;
        simulation.run(&mut jobs, &mut observers)?;
        Ok(jobs.counts().clone())
    }

    /// The log's file name, without folders.
    pub(crate) fn name(&self) -> &str {
        let name = self.trace.name();
        Path::new(name).file_name().and_then(|name| name.to_str()).unwrap_or(name)
    }

    pub(crate) fn settings(&self) -> Settings {
        let options = &self.options;
        Settings {
            procs: options.procs,
            instants: miserly_core::Instants::from(self.args.instants).to_string(),
            overrun: options.overrun.to_string(),
            estimates: options.estimates.to_string(),
            procs_field: options.procs_field.to_string(),
            drop: options.drop.iter().map(ToString::to_string).collect(),
            from: options.from,
            to: options.to,
            warmup: self.args.warmup,
            seed: options.seed,
            lenient: options.lenient,
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
