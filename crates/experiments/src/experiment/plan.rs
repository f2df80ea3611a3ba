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
use super::reading::Reading;
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

impl PlannedRun {
    fn seed(&self) -> &str {
        self.axes.get("seed").map_or("", String::as_str)
    }
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
        for reading in experiment.readings() {
            for block in &experiment.file.runs {
                plan_block(experiment, block, &reading, (logs, machines), &mut runs)?;
            }
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
    reading: &Reading<'_>,
    found: (&Logs, &Machines),
    runs: &mut Vec<PlannedRun>,
) -> Result<(), ExperimentError> {
    let block = entry.get_ref();
    let taken = reading.of(block);
    let of_policies = block.policies.iter();
    let labels = of_policies.flat_map(|label| block.estimates.iter().map(move |model| (label, model)));
    for (trace, at) in logs_of(experiment, block, &taken) {
        let before = runs.len();
        for (machine, load) in machines_and_loads(block) {
            for (label, model) in labels.clone() {
                let policy = experiment.policy(taken.policy(label))?;
                let estimates = experiment.estimates(taken.estimates(model))?;
                let named = Named {
                    reading: &reading.name(),
                    trace,
                    policy: label.get_ref(),
                    estimates: experiment.estimates(model)?,
                };
                let drawn = || seeds(block, shakes(experiment, block, at), &policy, estimates);
                for seed in experiment.seed_of_model(at).unwrap_or_else(drawn) {
                    let machine = machine.as_deref();
                    let request = RunRequest {
                        entry,
                        taken: &taken,
                        named,
                        at,
                        machine,
                        load,
                        policy: &policy,
                        estimates,
                        seed,
                    };
                    runs.push(request.plan(experiment, found)?);
                }
            }
        }
        let made: BTreeSet<&str> = runs[before..].iter().map(PlannedRun::seed).collect();
        if wanted_seeds(block).len() > 1 && made.len() == 1 && experiment.seed_of_model(at).is_none() {
            return Err(experiment.wrong(entry, nothing_drawn(trace)));
        }
    }
    Ok(())
}

fn nothing_drawn(trace: &str) -> String {
    format!(
        "nothing is drawn at random on the log {trace:?}, so all repetitions are one run; add options = {{ shake = \"30s\" }}, \
         which moves its submissions, or leave repetitions and seeds out"
    )
}

/// Returns the logs of a block under a reading: the name in the block, and the position.
fn logs_of<'a>(
    experiment: &'a Experiment,
    block: &RunsFile,
    taken: &Reading<'_>,
) -> impl Iterator<Item = (&'a str, usize)> {
    let positions = |name| experiment.positions_of(taken.trace(name)).into_iter().map(move |at| (name, at));
    experiment.traces_of(block).into_iter().flat_map(positions)
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

/// Returns the seeds that a block asks for.
fn wanted_seeds(block: &RunsFile) -> Vec<u64> {
    match block.repetitions {
        Some(most) => (1..=most).collect(),
        None if block.seeds.is_empty() => vec![1],
        None => block.seeds.clone(),
    }
}

/// Returns the seeds of a run: one is enough if nothing is drawn.
fn seeds(block: &RunsFile, shakes: bool, policy: &PolicySpec, estimates: Estimates) -> Vec<u64> {
    let mut seeds = wanted_seeds(block);
    if !shakes && !estimates.draws() && !policy.is_random() {
        seeds.truncate(1);
    }
    seeds
}

/// The names by which tables and claims find a run. A reading changes the run, not these.
#[derive(Clone, Copy)]
struct Named<'a> {
    reading: &'a str,
    trace: &'a str,
    policy: &'a str,
    estimates: Estimates,
}

/// A run that a block requests.
struct RunRequest<'a> {
    entry: &'a Spanned<RunsFile>,
    /// The reading, as far as it changes the block.
    taken: &'a Reading<'a>,
    named: Named<'a>,
    /// The position of the log.
    at: usize,
    machine: Option<&'a str>,
    load: Option<f64>,
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
            axes: self.axes(),
            policy: self.policy.clone(),
            setup: None,
            record,
            key: String::new(),
        };
        let Ok(log) = &logs.found[self.at] else { return Ok(run) };
        let options = self
            .options(&trace.options, machines)
            .map_err(|problem| experiment.wrong(self.entry, problem))?;
        let setup = RunSetup::shared(log, options).map_err(|error| ExperimentError::Run {
            run: format!("{}: trace {}", experiment.name, trace.name),
            error: Box::new(error),
        })?;
        let settings = setup.settings();
        run.key = Determined::new(
            (setup.name(), &log.sha256, &logs.read[self.at]),
            self.policy.to_string(),
            &settings,
            &run.record,
        )
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
        let mut written = self.taken.options(&of_block.over(of_log));
        written.scale_load = self.load.or(written.scale_load);
        let mut options = written.run_options()?;
        options.machine = written.machine(machines)?;
        options.jobs.estimates = self.estimates;
        options.jobs.seed = self.seed;
        options.details = block.record.details;
        options.by = block.record.groupings().map_err(|error| error.to_string())?;
        Ok(options)
    }

    fn axes(&self) -> Axes {
        let block = self.entry.get_ref();
        let load = self.load.or(block.options.scale_load).unwrap_or(1.0);
        let machine = self.machine.or(block.options.machine.as_deref()).unwrap_or("own");
        let Named { reading, trace, policy, estimates } = self.named;
        let values = [
            block.name.clone(),
            trace.to_owned(),
            policy.to_owned(),
            estimates.to_string(),
            estimates.model().to_owned(),
            estimates.factor().to_string(),
            machine.to_owned(),
            load.to_string(),
            self.seed.to_string(),
            reading.to_owned(),
        ];
        AXES.iter().map(ToString::to_string).zip(values).collect()
    }
}
