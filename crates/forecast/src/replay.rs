//! The forecasts of a whole log: a run of the policy, with a forecast at each submission.

use std::collections::BTreeMap;
use std::io;

use miserly_core::{Effect, JobId, JobNumber, Request, Span, System, Time};
use miserly_policies::{Needs, PolicyError, PolicySpec};
use miserly_run::{RunSetup, SetupError};
use miserly_sim::{Finished, Observer};
use rayon::prelude::*;

use crate::ahead::{Points, Rules, SystemCopy};
use crate::audit::{Audit, Outcome, SizeClass};
use crate::calibration::Scale;
use crate::runtimes::Runtimes;
use crate::{Bmbp, Calibration, LEVELS, RuntimeModel};

/// The number of copies of the system that are simulated together.
const TOGETHER: usize = 256;

/// The reason why a log has no forecasts.
#[derive(Debug, thiserror::Error)]
pub enum ForecastError {
    /// The policy does not run on the machine.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The log cannot be read, or the run failed.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// The policy cannot be forecast.
    #[error(
        "policy {policy}: no forecasts, because {why}; use a policy that starts each job once, such as easy"
    )]
    Unsuitable {
        /// The policy.
        policy: String,
        /// The reason.
        why: &'static str,
    },
    /// The machine has several queues.
    #[error("a machine with several queues has no forecasts; choose a machine with one queue")]
    Queues,
}

/// The forecast of a job with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobForecast {
    /// The job.
    pub number: JobNumber,
    /// Its submission.
    pub submit: Time,
    /// Its processors.
    pub procs: u64,
    /// Whether it started at its submission.
    pub at_once: bool,
    /// The upper bounds of the wait for each of [`LEVELS`], in seconds.
    pub bounds: [u64; LEVELS.len()],
    /// The promised wait, in seconds.
    pub promise: Option<u64>,
    /// The bound of the baseline, in seconds.
    pub bmbp: Option<u64>,
    /// The wait that followed, in seconds, if the job started.
    pub wait: Option<u64>,
    /// The level of the bound that the wait just kept, in millionths, if the job waited.
    pub level: Option<u64>,
}

/// The forecasts of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecasts {
    /// Each job, in the order of submission.
    pub jobs: Vec<JobForecast>,
    /// The audit of the jobs after the first tenth.
    pub audit: Audit,
}

/// Runs a log under a policy and forecasts each job at its submission.
///
/// `draws` is the number of futures with likely runtimes that are simulated for each job that waits. `progress` receives
/// the number of jobs that were submitted since the last call. The result does not depend on the number of
/// threads.
///
/// # Errors
/// If the policy or the machine is unsuitable, or the run fails.
pub fn forecast_log(
    setup: &RunSetup,
    policy: &PolicySpec,
    draws: u64,
    progress: &mut dyn FnMut(u64),
) -> Result<Forecasts, ForecastError> {
    check_policy(policy)?;
    let mut simulation = setup.simulation(policy)?;
    if simulation.system().queues().len() != 1 {
        return Err(ForecastError::Queues);
    }
    let rules = Rules {
        policy: policy.clone(),
        machine: simulation.system().queues()[0].ledger().machine().clone(),
        seed: setup.options().jobs.seed,
        event_order: setup.options().event_order,
    };
    let mut recorder = Recorder::new(&rules, draws, progress);
    let run = simulation.run(&mut setup.jobs().map_err(SetupError::from)?, &mut [&mut recorder]);
    run.map_err(SetupError::from)?;
    recorder.simulate();
    Ok(recorder.calibrate())
}

/// Checks that the futures of jobs can be simulated under a policy.
///
/// # Errors
/// [`ForecastError::Unsuitable`].
pub fn check_policy(policy: &PolicySpec) -> Result<(), ForecastError> {
    match unsuitable(&policy.needs()) {
        Some(why) => Err(ForecastError::Unsuitable { policy: policy.to_string(), why }),
        None => Ok(()),
    }
}

/// Checks that the futures of the jobs of a live queue can be simulated under a policy. Its requeued jobs may begin anew.
///
/// # Errors
/// [`ForecastError::Unsuitable`].
pub(crate) fn check_live_policy(policy: &PolicySpec) -> Result<(), ForecastError> {
    let needs = policy.needs();
    let requeue = needs.requeue && needs.quanta;
    match unsuitable(&Needs { requeue, ..needs }) {
        Some(why) => Err(ForecastError::Unsuitable { policy: policy.to_string(), why }),
        None => Ok(()),
    }
}

/// Returns the reason why a policy with these needs cannot be forecast.
fn unsuitable(needs: &Needs) -> Option<&'static str> {
    let reasons = [
        (needs.suspension, "it suspends jobs"),
        (needs.time_slices, "it slices time"),
        (needs.resizing, "it resizes jobs"),
        (needs.requeue, "it requeues jobs"),
        (needs.known_runtimes, "it knows the actual runtimes"),
    ];
    reasons.into_iter().find(|(unmet, _)| *unmet).map(|(_, why)| why)
}

/// An event of the run, in order.
#[derive(Clone, Copy, Debug)]
enum Note {
    /// The job at this position was submitted.
    Submitted(usize),
    /// The job at this position started.
    Started(usize, Time),
}

/// A job of the run.
#[derive(Clone, Debug)]
struct Noted {
    number: JobNumber,
    submit: Time,
    procs: u64,
    at_once: bool,
    promise: Option<Time>,
    points: Points,
}

/// A waiting job with the state of the system at its submission.
struct Pending {
    position: usize,
    job: JobId,
    copy: SystemCopy,
    likely: Vec<(u64, Runtimes)>,
}

/// Records what a forecast may use, and simulates ahead.
struct Recorder<'a> {
    rules: &'a Rules,
    draws: u64,
    progress: &'a mut dyn FnMut(u64),
    model: RuntimeModel,
    /// The positions of the jobs that did not start yet.
    positions: BTreeMap<JobNumber, usize>,
    submitted: Vec<usize>,
    jobs: Vec<Noted>,
    notes: Vec<Note>,
    pending: Vec<Pending>,
}

impl<'a> Recorder<'a> {
    fn new(rules: &'a Rules, draws: u64, progress: &'a mut dyn FnMut(u64)) -> Recorder<'a> {
        Recorder {
            rules,
            draws,
            progress,
            model: RuntimeModel::default(),
            positions: BTreeMap::new(),
            submitted: vec![],
            jobs: vec![],
            notes: vec![],
            pending: vec![],
        }
    }

    /// Simulates ahead for all pending jobs.
    fn simulate(&mut self) {
        let (rules, draws) = (self.rules, self.draws);
        let points: Vec<Points> = self
            .pending
            .par_iter()
            .map(|pending| pending.copy.points(rules, pending.job, &pending.likely, draws))
            .collect();
        for (pending, points) in self.pending.drain(..).zip(points) {
            self.jobs[pending.position].points = points;
        }
    }

    /// Forecasts all jobs in the order of events, so that each forecast uses earlier outcomes only.
    fn calibrate(&self) -> Forecasts {
        let mut calibration = Calibration::default();
        let mut baseline: BTreeMap<SizeClass, Bmbp> = BTreeMap::new();
        let mut audit = Audit::default();
        let mut jobs: Vec<JobForecast> = Vec::with_capacity(self.jobs.len());
        let measured = self.jobs.len() / 10;
        for note in &self.notes {
            match *note {
                Note::Submitted(position) => {
                    jobs.push(self.jobs[position].forecast(&calibration, &baseline));
                }
                Note::Started(position, at) => {
                    let noted = &self.jobs[position];
                    let (size, job) = (SizeClass::new(noted.procs), &mut jobs[position]);
                    let wait = seconds(at - noted.submit);
                    job.wait = Some(wait);
                    if !noted.at_once {
                        job.level = Some(calibration.level(size, &noted.scale(), wait));
                        calibration.add(size, &noted.scale(), noted.submit.secs(), job.bounds, wait);
                    }
                    baseline.entry(size).or_default().add(wait, job.bmbp);
                    if position >= measured {
                        audit.add(size, &job.outcome(wait));
                    }
                }
            }
        }
        Forecasts { jobs, audit }
    }
}

impl Noted {
    /// Returns the simulated waits.
    fn scale(&self) -> Scale {
        let wait = |start: &Time| seconds(*start - self.submit);
        let draws: Vec<u64> = self.points.likely.iter().map(wait).collect();
        let requested = self.points.requested.as_ref().map(wait).or(draws.last().copied()).unwrap_or(0);
        Scale::new(&draws, requested)
    }

    fn forecast(&self, calibration: &Calibration, baseline: &BTreeMap<SizeClass, Bmbp>) -> JobForecast {
        let size = SizeClass::new(self.procs);
        let promise = self.promise.map(|promise| seconds(promise - self.submit));
        let most = promise.unwrap_or(u64::MAX);
        let bounds = if self.at_once {
            [0; LEVELS.len()]
        } else {
            calibration.bounds(size, &self.scale()).map(|bound| bound.min(most))
        };
        JobForecast {
            number: self.number,
            submit: self.submit,
            procs: self.procs,
            at_once: self.at_once,
            bounds,
            promise: if self.at_once { promise.or(Some(0)) } else { promise },
            bmbp: baseline.get(&size).and_then(Bmbp::bound),
            wait: None,
            level: None,
        }
    }
}

impl JobForecast {
    fn outcome(&self, wait: u64) -> Outcome {
        let JobForecast { at_once, bounds, promise, bmbp, level, .. } = *self;
        Outcome { wait, at_once, bounds, promise, bmbp, level }
    }
}

impl Observer for Recorder<'_> {
    fn submitted(&mut self, now: Time, request: &Request) {
        let position = self.jobs.len();
        self.jobs.push(Noted {
            number: request.number,
            submit: now,
            procs: request.procs().get(),
            at_once: false,
            promise: None,
            points: Points::default(),
        });
        self.positions.insert(request.number, position);
        self.submitted.push(position);
        self.notes.push(Note::Submitted(position));
        (self.progress)(1);
    }

    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        if !matches!(effect, Effect::Started { .. }) {
            return;
        }
        if let Some(position) = self.positions.remove(&job) {
            self.jobs[position].at_once = self.submitted.contains(&position);
            self.notes.push(Note::Started(position, now));
        }
    }

    fn system(&mut self, now: Time, system: &System) {
        let queue = &system.queues()[0];
        for position in std::mem::take(&mut self.submitted) {
            let noted = &mut self.jobs[position];
            let Some(job) = SystemCopy::waiting(queue.ledger(), noted.number) else { continue };
            noted.promise = queue.ledger().entry(job).promise.map(|promise| promise.first);
            let copy = SystemCopy { now, ledger: queue.ledger().clone(), wake: queue.wake() };
            let likely = copy.likely_runtimes(&self.model);
            self.pending.push(Pending { position, job, copy, likely });
        }
        if self.pending.len() >= TOGETHER {
            self.simulate();
        }
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.model.learn(&job.request, job.runtime);
        Ok(())
    }
}

/// Returns whole seconds, rounded up.
pub(crate) fn seconds(span: Span) -> u64 {
    u64::try_from(span.ticks().max(0)).unwrap_or(0).div_ceil(1_000_000)
}
