//! From an experiment and its logs to the runs.

use std::collections::{BTreeMap, BTreeSet};

use miserly_policies::Chosen;
use miserly_workload::Estimates;

use super::checked::Experiment;
use super::error::ExperimentError;
use super::file::{Record, RunsFile};
use super::key::Determined;
use super::logs::Logs;
use crate::prepared::Prepared;

/// What tells the runs of an experiment apart, by name: `trace`, `policy`, `estimates`, `model`, `factor`, `seed`
/// and `runs`, the block.
pub type Axes = BTreeMap<String, String>;

/// The names of the axes.
pub const AXES: [&str; 7] = ["runs", "trace", "policy", "estimates", "model", "factor", "seed"];

/// One run of an experiment.
pub struct PlannedRun {
    /// What tells it from the others.
    pub axes: Axes,
    /// The policy.
    pub policy: Chosen,
    /// The log, ready to be run; `None` if it is missing.
    pub prepared: Option<Prepared>,
    /// What to record.
    pub record: Record,
    /// The key of its result; empty where the log is missing.
    pub key: String,
}

/// The runs of an experiment, in the order of its file.
pub struct Plan {
    /// The runs. Two of them may have one key: they are the same.
    pub runs: Vec<PlannedRun>,
}

impl Plan {
    /// The runs that `experiment` asks for.
    ///
    /// # Errors
    /// If a log cannot be run as it is asked for.
    pub fn new(experiment: &Experiment, logs: &Logs) -> Result<Plan, ExperimentError> {
        let mut runs = Vec::new();
        for block in &experiment.file.runs {
            plan_block(experiment, block.get_ref(), logs, &mut runs)?;
        }
        Ok(Plan { runs })
    }

    /// The runs whose results are different, the first of each key.
    pub fn distinct(&self) -> Vec<&PlannedRun> {
        let mut seen = BTreeSet::new();
        self.runs.iter().filter(|run| run.prepared.is_some() && seen.insert(&run.key)).collect()
    }
}

fn plan_block(
    experiment: &Experiment,
    block: &RunsFile,
    logs: &Logs,
    runs: &mut Vec<PlannedRun>,
) -> Result<(), ExperimentError> {
    for at in experiment.traces_of(block) {
        for label in &block.policies {
            let policy = experiment.policy(label)?;
            for model in &block.estimates {
                let estimates = experiment.estimates(model)?;
                for seed in seeds(block, &policy, estimates) {
                    let asked = Asked { block, at, label: label.get_ref(), policy: &policy, estimates, seed };
                    runs.push(asked.plan(experiment, logs)?);
                }
            }
        }
    }
    Ok(())
}

/// The seeds of a run: one is enough where nothing is drawn.
fn seeds(block: &RunsFile, policy: &Chosen, estimates: Estimates) -> Vec<u64> {
    let mut seeds = match block.repetitions {
        Some(most) => (1..=most).collect(),
        None if block.seeds.is_empty() => vec![1],
        None => block.seeds.clone(),
    };
    if !estimates.draws() && !policy.draws() {
        seeds.truncate(1);
    }
    seeds
}

/// A run as a block asks for it.
struct Asked<'a> {
    block: &'a RunsFile,
    /// The position of the log.
    at: usize,
    label: &'a str,
    policy: &'a Chosen,
    estimates: Estimates,
    seed: u64,
}

impl Asked<'_> {
    fn plan(&self, experiment: &Experiment, logs: &Logs) -> Result<PlannedRun, ExperimentError> {
        let trace = experiment.file.traces[self.at].get_ref();
        let record = self.block.record.clone();
        let mut run = PlannedRun {
            axes: self.axes(&trace.name),
            policy: self.policy.clone(),
            prepared: None,
            record,
            key: String::new(),
        };
        let Ok(log) = &logs.0[self.at] else { return Ok(run) };
        let written = self.block.options.over(&trace.options);
        // Both were checked when the file was read; together they are no worse.
        let mut options = written.run_options().unwrap_or_default();
        options.estimates = self.estimates;
        options.seed = self.seed;
        options.details = self.block.record.details;
        options.by = self.block.record.groupings().unwrap_or_default();
        let prepared = Prepared::of(log, options).map_err(|error| ExperimentError::Run {
            run: format!("{}: trace {}", experiment.name, trace.name),
            error: Box::new(error),
        })?;
        let settings = prepared.settings();
        run.key =
            Determined::new((prepared.name(), &log.sha256), self.policy.to_string(), &settings, &run.record)
                .key();
        run.prepared = Some(prepared);
        Ok(run)
    }

    fn axes(&self, trace: &str) -> Axes {
        let (model, factor) = (self.estimates.model().to_owned(), self.estimates.factor().to_string());
        let values = [
            self.block.name.clone(),
            trace.to_owned(),
            self.label.to_owned(),
            self.estimates.to_string(),
            model,
            factor,
            self.seed.to_string(),
        ];
        AXES.iter().map(ToString::to_string).zip(values).collect()
    }
}
