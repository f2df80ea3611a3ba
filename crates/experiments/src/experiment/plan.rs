//! From an experiment and its logs to the runs.

use std::collections::BTreeSet;

use miserly_policies::PolicySpec;
use miserly_workload::Estimates;
use toml::Spanned;

use super::axes::{AXES, Axes};
use super::checked::Experiment;
use super::error::ExperimentError;
use super::file::{Options, Record, RunsFile};
use super::key::Determined;
use super::logs::Logs;
use super::machines::Machines;
use miserly_run::{RunOptions, RunSetup};

/// One run of an experiment.
pub struct PlannedRun {
    /// The values of its axes.
    pub axes: Axes,
    /// The policy.
    pub policy: PolicySpec,
    /// Its setup; `None` if the log is missing.
    pub setup: Option<RunSetup>,
    /// The records beyond the measures.
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
    /// Returns the runs that `experiment` requests.
    ///
    /// # Errors
    /// If a log cannot be run with these options.
    pub fn new(experiment: &Experiment, logs: &Logs, machines: &Machines) -> Result<Plan, ExperimentError> {
        let mut runs = Vec::new();
        for block in &experiment.file.runs {
            plan_block(experiment, block, (logs, machines), &mut runs)?;
        }
        Ok(Plan { runs })
    }

    /// Returns the runs whose results are different, the first of each key.
    pub fn distinct(&self) -> Vec<&PlannedRun> {
        let mut seen = BTreeSet::new();
        self.runs.iter().filter(|run| run.setup.is_some() && seen.insert(&run.key)).collect()
    }
}

fn plan_block(
    experiment: &Experiment,
    entry: &Spanned<RunsFile>,
    found: (&Logs, &Machines),
    runs: &mut Vec<PlannedRun>,
) -> Result<(), ExperimentError> {
    let block = entry.get_ref();
    for at in experiment.traces_of(block) {
        for (machine, load) in machines_and_loads(block) {
            for label in &block.policies {
                let policy = experiment.policy(label)?;
                for model in &block.estimates {
                    let estimates = experiment.estimates(model)?;
                    for seed in experiment
                        .seed_of_model(at)
                        .unwrap_or_else(|| seeds(block, shakes(experiment, block, at), &policy, estimates))
                    {
                        let label = label.get_ref();
                        let request = RunRequest {
                            entry,
                            at,
                            machine: machine.as_deref(),
                            load,
                            label,
                            policy: &policy,
                            estimates,
                            seed,
                        };
                        runs.push(request.plan(experiment, found)?);
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns every machine under every load; `None` stands for that of the options.
fn machines_and_loads(block: &RunsFile) -> Vec<(Option<String>, Option<f64>)> {
    let machines = some_or_none(&block.machines().collect::<Vec<_>>());
    let loads = some_or_none(&block.loads);
    machines.iter().flat_map(|machine| loads.iter().map(|load| (machine.clone(), *load))).collect()
}

/// Returns each of a list, or once none.
fn some_or_none<T: Clone>(list: &[T]) -> Vec<Option<T>> {
    if list.is_empty() { vec![None] } else { list.iter().cloned().map(Some).collect() }
}

/// Returns whether a block moves the submissions of a log.
fn shakes(experiment: &Experiment, block: &RunsFile, at: usize) -> bool {
    let of_log = experiment.file.traces[at].get_ref().options.shake;
    block.options.shake.or(of_log).is_some_and(|secs| secs > 0)
}

/// Returns the seeds of a run: one is enough if nothing is drawn.
fn seeds(block: &RunsFile, shakes: bool, policy: &PolicySpec, estimates: Estimates) -> Vec<u64> {
    let mut seeds = match block.repetitions {
        Some(most) => (1..=most).collect(),
        None if block.seeds.is_empty() => vec![1],
        None => block.seeds.clone(),
    };
    if !shakes && !estimates.draws() && !policy.is_random() {
        seeds.truncate(1);
    }
    seeds
}

/// A run that a block requests.
struct RunRequest<'a> {
    entry: &'a Spanned<RunsFile>,
    /// The position of the log.
    at: usize,
    machine: Option<&'a str>,
    load: Option<f64>,
    label: &'a str,
    policy: &'a PolicySpec,
    estimates: Estimates,
    seed: u64,
}

impl RunRequest<'_> {
    fn plan(
        &self,
        experiment: &Experiment,
        (logs, machines): (&Logs, &Machines),
    ) -> Result<PlannedRun, ExperimentError> {
        let trace = experiment.file.traces[self.at].get_ref();
        let record = self.entry.get_ref().record.clone();
        let mut run = PlannedRun {
            axes: self.axes(&trace.name),
            policy: self.policy.clone(),
            setup: None,
            record,
            key: String::new(),
        };
        let Ok(log) = &logs.0[self.at] else { return Ok(run) };
        let options = self
            .options(&trace.options, machines)
            .map_err(|problem| experiment.wrong(self.entry, problem))?;
        let setup = RunSetup::shared(log, options).map_err(|error| ExperimentError::Run {
            run: format!("{}: trace {}", experiment.name, trace.name),
            error: Box::new(error),
        })?;
        let settings = setup.settings();
        run.key =
            Determined::new((setup.name(), &log.sha256), self.policy.to_string(), &settings, &run.record)
                .key();
        run.setup = Some(setup);
        Ok(run)
    }

    /// Returns the options of the run: those of the block, else those of the log.
    fn options(&self, of_log: &Options, machines: &Machines) -> Result<RunOptions, String> {
        let block = self.entry.get_ref();
        let of_block = Options {
            procs: block.options.procs.filter(|_| self.machine.is_none()),
            machine: self.machine.map(str::to_owned).or_else(|| block.options.machine.clone()),
            ..block.options.clone()
        };
        let mut written = of_block.over(of_log);
        written.scale_load = self.load.or(written.scale_load);
        let mut options = written.run_options()?;
        options.machine = written.machine(machines)?;
        options.jobs.estimates = self.estimates;
        options.jobs.seed = self.seed;
        options.details = block.record.details;
        options.by = block.record.groupings().map_err(|error| error.to_string())?;
        Ok(options)
    }

    fn axes(&self, trace: &str) -> Axes {
        let block = self.entry.get_ref();
        let load = self.load.or(block.options.scale_load).unwrap_or(1.0);
        let machine = self.machine.or(block.options.machine.as_deref()).unwrap_or("own");
        let (model, factor) = (self.estimates.model().to_owned(), self.estimates.factor().to_string());
        let values = [
            block.name.clone(),
            trace.to_owned(),
            self.label.to_owned(),
            self.estimates.to_string(),
            model,
            factor,
            machine.to_owned(),
            load.to_string(),
            self.seed.to_string(),
        ];
        AXES.iter().map(ToString::to_string).zip(values).collect()
    }
}
