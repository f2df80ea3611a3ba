//! The score of a policy on made windows: some to choose a policy on, and others that were held out.

use std::collections::BTreeMap;
use std::sync::Arc;

use miserly_core::named_enum;
use miserly_policies::PolicySpec;
use miserly_run::{Log, RunOptions, RunSetup, SetupError};
use miserly_sim::{InOrder, JobColumns, mean_with_half_width};
use miserly_workload::generate::{ModelOptions, find_model};
use miserly_workload::{JobOptions, Trace, TraceError};
use serde::Serialize;

use crate::gate::{self, PolicyKind};
use crate::study::StudyError;

/// The processors of the machine.
const PROCS: u64 = 256;

/// The jobs of a window, and the windows of a log.
const JOBS: usize = 512;
const WINDOWS: usize = 4;

/// The bound of the bounded slowdown, in seconds.
const BOUND: f64 = 10.0;

/// The jobs that are narrow have at most so many processors, and those that are short run at most so long, in seconds.
const NARROW: u64 = 8;
const SHORT: f64 = 3600.0;

named_enum! {
    /// Which windows judge a policy.
    pub enum WindowSet {
        /// Those on which a policy may be chosen.
        Training "training",
        /// Those that are held out.
        HeldOut "held-out",
    }
}

impl WindowSet {
    fn seeds(self) -> [u64; 3] {
        match self {
            WindowSet::Training => [1, 2, 3],
            WindowSet::HeldOut => [11, 12, 13],
        }
    }

    /// Returns the windows: 12 logs of 512 jobs of the model of Lublin and Feitelson on 256 processors, at a load of 0.85.
    ///
    /// # Errors
    /// None that is known: the model and its options are constants.
    pub fn logs(self) -> Result<Vec<Log>, StudyError> {
        let mut logs = Vec::new();
        for seed in self.seeds() {
            let options = ModelOptions {
                jobs: u64::try_from(JOBS * WINDOWS).ok(),
                procs: Some(PROCS.into()),
                load: Some(0.85),
                seed: Some(seed),
                ..ModelOptions::default()
            };
            let log = (find_model("lublin99")?.build)(&options)?.generate()?;
            let mut text = Vec::new();
            log.write(&mut text).map_err(|error| StudyError::Made(error.to_string()))?;
            let text = String::from_utf8_lossy(&text);
            let (header, jobs): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with(';'));
            for (window, jobs) in jobs.chunks(JOBS).enumerate() {
                let name = format!("lublin99, seed {seed}, window {}", window + 1);
                let text = format!("{}\n{}\n", header.join("\n"), jobs.join("\n"));
                let trace = Trace::memory(name, text.into_bytes());
                logs.push(Log::load(trace).map_err(refused)?);
            }
        }
        Ok(logs)
    }
}

fn refused(error: TraceError) -> StudyError {
    StudyError::Log(error.into())
}

/// A measure over the windows: smaller is better, but for the utilization.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScoredMeasure {
    /// The mean over the windows.
    pub mean: f64,
    /// That of the reference.
    pub reference: f64,
    /// The mean difference to the reference.
    pub difference: f64,
    /// Half of the width of the 95 % interval of the difference, by the pairs of windows.
    pub half_width: f64,
}

/// The score of a policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The policy.
    pub policy: String,
    /// The policy that it is compared with.
    pub against: String,
    /// The version of the program.
    pub version: &'static str,
    /// The set of windows.
    pub windows: &'static str,
    /// The checksum of each window.
    pub sha256: Vec<String>,
    /// The measures by name: `bounded_slowdown`, `wait` (the response less the runtime) and `area_weighted_response` in
    /// seconds, `utilization`, and
    /// `throughput_deviation`, the standard deviation of the jobs that end in an hour.
    pub measures: BTreeMap<&'static str, ScoredMeasure>,
    /// The mean wait of each class of jobs: narrow or wide, and short or long.
    pub classes: BTreeMap<&'static str, ScoredMeasure>,
    /// The classes that wait longer than under the reference, beyond chance.
    pub who_pays: Vec<&'static str>,
}

/// The names of the classes: by width, then by length.
const CLASSES: [[&str; 2]; 2] = [["narrow short", "narrow long"], ["wide short", "wide long"]];

/// Returns the setup in which a window is run: estimates are up to ten times too long, and jobs are measured from the first one.
///
/// # Errors
/// If the window is no log.
pub fn setup_of(window: &Log) -> Result<RunSetup, SetupError> {
    let options = RunOptions {
        jobs: JobOptions {
            estimates: "uniform:5".parse().unwrap_or_default(),
            seed: 1,
            ..JobOptions::default()
        },
        warmup: Some(0),
        ..RunOptions::default()
    };
    RunSetup::shared(window, options)
}

/// Runs a policy on a window and returns its jobs.
///
/// # Errors
/// If it does not run.
pub fn run_window(setup: &RunSetup, policy: &PolicySpec) -> Result<JobColumns, SetupError> {
    let mut columns = InOrder::new(JobColumns::default());
    setup.outcome(policy, false, &mut [&mut columns])?;
    Ok(columns.into_inner())
}

/// Scores a policy against another one. `run` runs it on a window. The same windows and policies give the same score.
///
/// # Errors
/// If a run fails, or if the [gate](crate::gate::check) refuses the policy.
pub fn score<E: From<StudyError>>(
    set: WindowSet,
    policy: &str,
    kind: PolicyKind,
    against: &PolicySpec,
    mut run: impl FnMut(&Arc<RunSetup>) -> Result<JobColumns, E>,
) -> Result<Score, E> {
    gate::check(policy, kind, &mut run)?;
    let windows = set.logs()?;
    let (mut own, mut reference) = (Vec::new(), Vec::new());
    for window in &windows {
        let setup = Arc::new(setup_of(window).map_err(StudyError::from)?);
        own.push(Figures::new(&run(&setup)?));
        reference.push(Figures::new(&run_window(&setup, against).map_err(StudyError::from)?));
    }
    let paired = |figure: &dyn Fn(&Figures) -> f64| ScoredMeasure::new(&own, &reference, figure);
    let measures = NAMES.into_iter().enumerate().map(|(n, name)| (name, paired(&|of| of.measures[n])));
    let classes: BTreeMap<&str, ScoredMeasure> = CLASSES
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(n, name)| (name, paired(&|of| of.waits[n])))
        .collect();
    let pays = |(name, class): (&&'static str, &ScoredMeasure)| {
        (class.difference > class.half_width).then_some(*name)
    };
    Ok(Score {
        policy: policy.to_owned(),
        against: against.to_string(),
        version: env!("CARGO_PKG_VERSION"),
        windows: set.name(),
        sha256: windows.into_iter().map(|window| window.sha256).collect(),
        measures: measures.collect(),
        who_pays: classes.iter().filter_map(pays).collect(),
        classes,
    })
}

/// The measures of a window.
const NAMES: [&str; 5] =
    ["bounded_slowdown", "wait", "area_weighted_response", "utilization", "throughput_deviation"];

/// The figures of one window.
struct Figures {
    measures: [f64; NAMES.len()],
    waits: [f64; 4],
}

impl Figures {
    fn new(jobs: &JobColumns) -> Figures {
        let (mut slowdown, mut wait, mut areas, mut responses) = (0.0, 0.0, 0.0, 0.0);
        let mut classes = [(0.0, 0.0); 4];
        let mut ended: BTreeMap<i64, f64> = BTreeMap::new();
        let (mut first, mut last) = (f64::INFINITY, f64::NEG_INFINITY);
        for n in 0..jobs.number.len() {
            // A job that is suspended or has a slice of the time waits within its response, too.
            let (submit, end, runtime) = (jobs.submit[n], jobs.end[n], jobs.runtime[n]);
            let waited = (end - submit - runtime).max(0.0);
            let area = runtime * jobs.procs[n] as f64;
            slowdown += ((end - submit) / runtime.max(BOUND)).max(1.0);
            wait += waited;
            areas += area;
            responses += area * (end - submit);
            let class = usize::from(jobs.procs[n] > NARROW) * 2 + usize::from(runtime > SHORT);
            classes[class].0 += waited;
            classes[class].1 += 1.0;
            (first, last) = (first.min(submit), last.max(end));
            #[allow(clippy::cast_possible_truncation)] // An hour of a log fits.
            let hour = (end / 3600.0).floor() as i64;
            *ended.entry(hour).or_default() += 1.0;
        }
        let count = jobs.number.len() as f64;
        let hours = ((last / 3600.0).floor() - (first / 3600.0).floor()) + 1.0;
        let squares: f64 = ended.values().map(|jobs| jobs * jobs).sum();
        let throughput = count / hours;
        let utilization = areas / ((last - first) * PROCS as f64);
        let deviation = (squares / hours - throughput * throughput).max(0.0).sqrt();
        Figures {
            measures: [slowdown / count, wait / count, responses / areas, utilization, deviation],
            waits: classes.map(|(wait, count)| if count > 0.0 { wait / count } else { 0.0 }),
        }
    }
}

impl ScoredMeasure {
    fn new(own: &[Figures], reference: &[Figures], figure: &dyn Fn(&Figures) -> f64) -> ScoredMeasure {
        let mean = |of: &[Figures]| of.iter().map(figure).sum::<f64>() / of.len() as f64;
        let differences: Vec<f64> =
            own.iter().zip(reference).map(|(own, other)| figure(own) - figure(other)).collect();
        let (difference, half_width) = mean_with_half_width(&differences);
        let half_width = half_width.unwrap_or(f64::INFINITY);
        ScoredMeasure { mean: mean(own), reference: mean(reference), difference, half_width }
    }
}
