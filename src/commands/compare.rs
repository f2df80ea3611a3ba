//! `miserly compare`: several policies on the same logs.

use miserly_policies::PolicySpec;
use miserly_report::{DifferenceDoc, RunDoc, compare_tables, differences, verdict};
use miserly_run::{RunSetup, SetupError};
use miserly_workload::generate::{Feitelson96, Model};
use miserly_workload::{Estimates, Trace};
use rayon::prelude::*;
use serde::Serialize;

use crate::args::CompareArgs;
use crate::output::{print, print_json};
use crate::page::forget;
use crate::progress::Progress;
use crate::run::{open, prepare};

/// The default set of policies.
const DEFAULT_POLICIES: [&str; 6] = [
    "fcfs",
    "easy",
    "easy(backfill=shortest)",
    "easy(order=shortest)",
    "conservative",
    "conservative(order=shortest)",
];

/// The error of the estimates of the embedded workload. Backfilling depends on it.
const EMBEDDED_ESTIMATES: &str = "uniform:5";

/// The document of `--json`.
#[derive(Serialize)]
struct CompareDoc<'a> {
    version: &'static str,
    /// All runs: those of the first log first.
    runs: Vec<&'a RunDoc>,
    /// The recorded schedules of the logs that have one.
    recorded: Vec<&'a RunDoc>,
    differences: Vec<DifferenceDoc>,
    verdicts: Vec<VerdictDoc<'a>>,
}

/// The verdict on the runs of one log.
#[derive(Serialize)]
struct VerdictDoc<'a> {
    trace: &'a str,
    text: String,
}

/// The schedules of one log: the recorded one, if there is one, and one for each policy.
struct Schedules {
    recorded: Option<RunDoc>,
    runs: Vec<RunDoc>,
}

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    args.report.check()?;
    let policies = policies_or_default(&args.policy)?;
    let setups = setups(args)?;
    let mut schedules = schedules(&setups, &policies)?;
    let of_page = setups.iter().zip(&schedules).flat_map(|(setup, schedules)| {
        policies.iter().zip(&schedules.runs).map(move |(policy, outcome)| (setup, policy, outcome))
    });
    let recorded = setups.iter().zip(&schedules);
    let recorded = recorded.filter_map(|(setup, schedules)| Some((setup, schedules.recorded.as_ref()?)));
    args.report.write(of_page.collect(), recorded.collect(), &args.by)?;
    let verdicts: Vec<Option<String>> = schedules.iter().map(Schedules::verdict).collect();
    for outcome in schedules.iter_mut().flat_map(Schedules::all_mut) {
        forget(outcome, false, &args.by);
    }
    if args.json {
        return print_json(&CompareDoc::new(&schedules, &verdicts));
    }
    let style = args.table.style();
    let tables = schedules.iter().zip(&verdicts).map(|(schedules, verdict)| {
        let tables = compare_tables(&schedules.all(), style);
        let verdict = verdict.as_ref().map(|verdict| style.paragraph(&format!("verdict: {verdict}")));
        tables + &verdict.map_or_else(String::new, |verdict| format!("\n{verdict}\n"))
    });
    print(&tables.collect::<Vec<_>>().join("\n"))
}

/// Runs every policy on every log, on all cores.
fn schedules(setups: &[RunSetup], policies: &[PolicySpec]) -> anyhow::Result<Vec<Schedules>> {
    let jobs: u64 = setups.iter().map(|setup| setup.survey.records).sum();
    let progress = Progress::new(jobs * policies.len() as u64);
    let runs: Vec<(&RunSetup, &PolicySpec)> =
        setups.iter().flat_map(|setup| policies.iter().map(move |policy| (setup, policy))).collect();
    let outcomes: Vec<Result<RunDoc, SetupError>> = runs
        .into_par_iter()
        .map(|(setup, policy)| setup.outcome(policy, false, &mut [&mut progress.watch()]))
        .collect();
    drop(progress);
    // The first error in the order of the runs, not in the order of time.
    let mut outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
    let of_log = |setup: &RunSetup| {
        Ok(Schedules { recorded: setup.recorded()?, runs: outcomes.by_ref().take(policies.len()).collect() })
    };
    setups.iter().map(of_log).collect()
}

impl Schedules {
    /// Returns all schedules, the recorded one first.
    fn all(&self) -> Vec<&RunDoc> {
        self.recorded.iter().chain(&self.runs).collect()
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut RunDoc> {
        self.recorded.iter_mut().chain(&mut self.runs)
    }

    fn verdict(&self) -> Option<String> {
        verdict(self.recorded.as_ref(), &self.runs.iter().collect::<Vec<_>>())
    }
}

impl<'a> CompareDoc<'a> {
    fn new(schedules: &'a [Schedules], verdicts: &[Option<String>]) -> CompareDoc<'a> {
        let verdict = |(schedules, text): (&'a Schedules, &Option<String>)| {
            Some(VerdictDoc { trace: &schedules.runs.first()?.trace.name, text: text.clone()? })
        };
        CompareDoc {
            version: env!("CARGO_PKG_VERSION"),
            runs: schedules.iter().flat_map(|schedules| &schedules.runs).collect(),
            recorded: schedules.iter().filter_map(|schedules| schedules.recorded.as_ref()).collect(),
            differences: schedules.iter().flat_map(|schedules| differences(&schedules.all())).collect(),
            verdicts: schedules.iter().zip(verdicts).filter_map(verdict).collect(),
        }
    }
}

/// Returns these policies, or the default set if there are none.
pub(crate) fn policies_or_default(policies: &[PolicySpec]) -> anyhow::Result<Vec<PolicySpec>> {
    if policies.is_empty() {
        return Ok(DEFAULT_POLICIES.iter().map(|policy| policy.parse()).collect::<Result<_, _>>()?);
    }
    Ok(policies.to_vec())
}

/// Returns the setup of each log.
fn setups(args: &CompareArgs) -> anyhow::Result<Vec<RunSetup>> {
    let viewed = |log: RunSetup| -> anyhow::Result<RunSetup> {
        Ok(args.report.records(log.with_checksum(args.json || args.report.is_requested())?, false, &args.by))
    };
    if args.traces.is_empty() {
        let log = prepare(embedded()?, &args.run, EMBEDDED_ESTIMATES.parse()?)?;
        return Ok(vec![viewed(log)?]);
    }
    let prepare = |path: &std::path::PathBuf| -> anyhow::Result<RunSetup> {
        viewed(prepare(open(path)?, &args.run, Estimates::default())?)
    };
    args.traces.iter().map(prepare).collect()
}

/// Returns the workload that needs no download: the output of `miserly workload generate` without
/// parameters.
fn embedded() -> anyhow::Result<Trace> {
    let log = Feitelson96::with_shape(Feitelson96::SHAPE).generate()?;
    Ok(log.into_trace("embedded (miserly workload generate)"))
}
