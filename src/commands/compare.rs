//! `miserly compare`: several policies on the same logs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use miserly_experiments::{LogRuns, Recording};
use miserly_policies::PolicySpec;
use miserly_report::chart::Chart;
use miserly_report::page::exported;
use miserly_report::{
    AtomicFile, Compared, Verdict, best_run, compare_tables, needs_whole_runtimes, run_sections, slide,
};
use miserly_run::{DifferenceDoc, RunDoc, RunSetup, differences};
use miserly_sim::Grouping;
use miserly_workload::generate::{Feitelson96, Model};
use miserly_workload::{Estimates, Overrun, Trace};
use rayon::prelude::*;
use serde::Serialize;

use crate::args::{CompareArgs, RunArgs};
use crate::commands::simulate::{MadeRun, RunKind, recorded_jobs};
use crate::output::{print, print_json};
use crate::page::{Shown, forget};
use crate::picture;
use crate::progress::Progress;
use crate::run_options::{prepare, prepare_another, prepare_generated};
use crate::warnings::warn;

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

/// The policy of the default set with which the verdict compares the best one.
const DEFAULT_AGAINST: &str = "easy";

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
    #[serde(flatten)]
    verdict: &'a Verdict,
}

/// The schedules of one log: the recorded one, if there is one, and one for each policy.
#[derive(Default)]
struct Schedules {
    recorded: Option<RunDoc>,
    /// The jobs of the recorded schedule, for its chart.
    recorded_jobs: Option<Recording>,
    runs: Vec<RunDoc>,
    /// The recordings of the runs, for the charts of a page.
    recordings: Vec<Recording>,
    verdict: Option<Verdict>,
    /// The groupings of `--by`, for the tables.
    by: Vec<Grouping>,
    /// The grouping of the heat maps of a page.
    groups: String,
}

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    args.report.check()?;
    if let Some(option) = args.run.swept() {
        ensure!(!args.report.is_requested(), "--report: needs one value of {option}");
        ensure!(args.slide.is_none(), "--slide: needs one value of {option}");
    }
    ensure!(args.slide.is_none() || args.traces.len() < 2, "--slide: needs one log");
    let policies = policies_or_default(&args.policy)?;
    let difference = pair(&args.difference, &policies)?;
    let against = against(args, &policies)?;
    let (setups, shown): (Vec<RunSetup>, Vec<Shown>) = setups(args)?.into_iter().unzip();
    let jobs = args.jobs.as_deref().map(|folder| JobFiles::new(folder, &setups, &policies)).transpose()?;
    let mut schedules = schedules(&setups, &policies, jobs.as_ref(), args.is_drawn())?;
    let warned = warn(schedules.iter().flat_map(|schedules| &schedules.runs));
    for ((setup, shown), schedules) in setups.iter().zip(shown).zip(&mut schedules) {
        let groups = shown.pays.to_string();
        schedules.verdict = schedules.verdict(setup, &policies, &against, &groups)?;
        schedules.groups = shown.heat.to_string();
        schedules.by = shown.by;
        if let Some(path) = &args.slide {
            let runs: Vec<&RunDoc> = schedules.runs.iter().collect();
            let charts = schedules.of_page().schedules(None);
            write_slide(path, schedules.compared(&runs, &against, &groups), &charts)?;
        }
    }
    args.report.write(schedules.iter().map(Schedules::of_page).collect(), difference)?;
    schedules.iter_mut().for_each(Schedules::forget);
    if args.json {
        print_json(&CompareDoc::new(&schedules))?;
        return warned;
    }
    warned?;
    let style = args.table.style();
    if let Some(format) = args.table.format() {
        let sections =
            schedules.iter().flat_map(|schedules| run_sections(&schedules.all(), schedules.words(), style));
        return print(&exported(&sections.collect::<Vec<_>>(), format));
    }
    let tables = schedules.iter().map(|schedules| {
        let tables = compare_tables(&schedules.all(), style);
        let verdict = schedules.words().map(|verdict| style.paragraph(&format!("verdict: {verdict}")));
        tables + &verdict.map_or_else(String::new, |verdict| format!("\n{verdict}\n"))
    });
    print(&tables.collect::<Vec<_>>().join("\n"))
}

/// Writes the verdict as a picture.
fn write_slide(path: &Path, compared: Compared<'_>, schedules: &[Chart]) -> anyhow::Result<()> {
    let picture = slide(&compared, schedules)
        .context("--slide: there are no two policies with different waits to compare")?;
    let svg = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg"));
    let bytes = if svg {
        picture.into_bytes()
    } else {
        picture::png(&picture).with_context(|| format!("--slide {}", path.display()))?
    };
    let written = AtomicFile::write(path, |output| output.write_all(&bytes));
    written.with_context(|| format!("--slide {}", path.display()))
}

/// Returns the names of the two policies of `--difference`, which must be among the compared ones.
fn pair(chosen: &[PolicySpec], policies: &[PolicySpec]) -> anyhow::Result<Option<[String; 2]>> {
    let names: Vec<String> = chosen.iter().map(PolicySpec::to_string).collect();
    let Ok([a, b]) = <[String; 2]>::try_from(names) else { return Ok(None) };
    ensure!(a != b, "--difference: the policies {a} and {b} are the same; name two");
    for name in [&a, &b] {
        let compared = policies.iter().any(|policy| policy.to_string() == *name);
        ensure!(compared, "--difference: policy {name} is not compared; add it with --policy");
    }
    Ok(Some([a, b]))
}

/// Returns the policy with which the verdict compares the best one.
fn against(args: &CompareArgs, policies: &[PolicySpec]) -> anyhow::Result<String> {
    let Some(against) = &args.against else {
        return Ok(args.policy.first().map_or_else(|| DEFAULT_AGAINST.to_owned(), PolicySpec::to_string));
    };
    ensure!(policies.contains(against), "--against: policy {against} is not compared; add it with --policy");
    Ok(against.to_string())
}

/// Runs every policy on every log, on all cores.
fn schedules(
    setups: &[RunSetup],
    policies: &[PolicySpec],
    files: Option<&JobFiles>,
    drawn: bool,
) -> anyhow::Result<Vec<Schedules>> {
    let jobs: u64 = setups.iter().map(|setup| setup.survey.records).sum();
    let progress = Progress::new(jobs * policies.len() as u64);
    let runs: Vec<(&RunSetup, &PolicySpec)> =
        setups.iter().flat_map(|setup| policies.iter().map(move |policy| (setup, policy))).collect();
    let made: Vec<anyhow::Result<MadeRun>> = runs
        .into_par_iter()
        .enumerate()
        .map(|(at, (setup, policy))| {
            // The first run of each log measures its recorded schedule.
            let kind = RunKind { policy, recorded: at.is_multiple_of(policies.len()), drawn };
            match files {
                None => Ok(kind.run(setup, false, &mut [&mut progress.watch()])?),
                Some(files) => kind.write_csv(setup, &files.0[at], &mut progress.watch()),
            }
        })
        .collect();
    drop(progress);
    // The first error in the order of the runs, not in the order of time.
    let mut made = made.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
    let of_log = |setup: &RunSetup| -> anyhow::Result<Schedules> {
        let mut schedules = Schedules::default();
        for MadeRun { outcome, recorded, recording } in made.by_ref().take(policies.len()) {
            schedules.runs.push(outcome);
            schedules.recorded = schedules.recorded.take().or(recorded);
            schedules.recordings.extend(recording);
        }
        let is_drawn = drawn && schedules.recorded.is_some();
        schedules.recorded_jobs = is_drawn.then(|| recorded_jobs(setup)).transpose()?;
        Ok(schedules)
    };
    setups.iter().map(of_log).collect()
}

impl Schedules {
    fn of_page(&self) -> LogRuns<'_> {
        LogRuns {
            recorded: self.recorded.as_ref(),
            recorded_jobs: self.recorded_jobs.as_ref(),
            verdict: self.words().map(str::to_owned),
            by: self.by.iter().map(ToString::to_string).collect(),
            groups: &self.groups,
            runs: self.runs.iter().zip(&self.recordings).collect(),
        }
    }

    /// Returns all schedules, the recorded one first.
    fn all(&self) -> Vec<&RunDoc> {
        self.recorded.iter().chain(&self.runs).collect()
    }

    /// Removes the data that only the page and the verdict needed.
    fn forget(&mut self) {
        self.recorded.iter_mut().chain(&mut self.runs).for_each(|outcome| forget(outcome, false, &self.by));
    }

    /// Returns the verdict in words.
    fn words(&self) -> Option<&str> {
        self.verdict.as_ref().map(|verdict| verdict.text.as_str())
    }

    fn compared<'a>(&'a self, runs: &'a [&'a RunDoc], against: &'a str, groups: &'a str) -> Compared<'a> {
        Compared { runs, against, groups, recorded: self.recorded.as_ref(), whole: None }
    }

    fn verdict(
        &self,
        setup: &RunSetup,
        policies: &[PolicySpec],
        against: &str,
        groups: &str,
    ) -> anyhow::Result<Option<Verdict>> {
        let runs: Vec<&RunDoc> = self.runs.iter().collect();
        verdict(setup, policies, self.compared(&runs, against, groups))
    }
}

impl<'a> CompareDoc<'a> {
    fn new(schedules: &'a [Schedules]) -> CompareDoc<'a> {
        let verdict = |schedules: &'a Schedules| {
            Some(VerdictDoc {
                trace: &schedules.runs.first()?.trace.name,
                verdict: schedules.verdict.as_ref()?,
            })
        };
        CompareDoc {
            version: env!("CARGO_PKG_VERSION"),
            runs: schedules.iter().flat_map(|schedules| &schedules.runs).collect(),
            recorded: schedules.iter().filter_map(|schedules| schedules.recorded.as_ref()).collect(),
            differences: schedules.iter().flat_map(|schedules| differences(&schedules.all())).collect(),
            verdicts: schedules.iter().filter_map(verdict).collect(),
        }
    }
}

/// Returns the verdict on runs of a log under these policies. If they cut too much of the recorded work, it runs the best policy
/// again without a cut.
pub(crate) fn verdict(
    setup: &RunSetup,
    policies: &[PolicySpec],
    compared: Compared<'_>,
) -> anyhow::Result<Option<Verdict>> {
    let best = best_run(compared.runs).filter(|_| compared.recorded.is_some_and(needs_whole_runtimes));
    let best = best.and_then(|best| policies.iter().find(|policy| policy.to_string() == best.policy));
    let whole = best.map(|policy| whole_runtimes(setup, policy)).transpose()?;
    Ok(Compared { whole: whole.as_ref(), ..compared }.verdict())
}

/// Runs the log under a policy without a cut at the estimates of jobs.
fn whole_runtimes(setup: &RunSetup, policy: &PolicySpec) -> anyhow::Result<RunDoc> {
    let mut options = setup.options().clone();
    options.jobs.overrun = Overrun::Extend;
    Ok(setup.with_options(options)?.outcome(policy, false, &mut [])?)
}

/// Returns these policies, or the default set if there are none.
pub(crate) fn policies_or_default(policies: &[PolicySpec]) -> anyhow::Result<Vec<PolicySpec>> {
    if policies.is_empty() {
        return Ok(DEFAULT_POLICIES.iter().map(|policy| policy.parse()).collect::<Result<_, _>>()?);
    }
    Ok(policies.to_vec())
}

/// The file of the jobs of each run, in the order of the runs.
struct JobFiles(Vec<PathBuf>);

impl JobFiles {
    /// Makes the folder and names the files: the log, the values that differ, and the policy.
    fn new(folder: &Path, setups: &[RunSetup], policies: &[PolicySpec]) -> anyhow::Result<JobFiles> {
        fs::create_dir_all(folder).with_context(|| format!("--jobs {}", folder.display()))?;
        let several = |value: fn(&RunSetup) -> String| {
            let values: BTreeSet<String> = setups.iter().map(value).collect();
            values.len() > 1
        };
        let size = |setup: &RunSetup| format!("procs {}", setup.settings().procs);
        let load = |setup: &RunSetup| format!("load {}", setup.settings().scale_load);
        let (mut names, mut files) = (BTreeMap::new(), Vec::new());
        for setup in setups {
            let mut parts = vec![setup.trace.stem().to_owned()];
            parts.extend(several(size).then(|| size(setup)));
            parts.extend(several(load).then(|| load(setup)));
            for policy in policies {
                let mut name = plain(&format!("{} {policy}", parts.join(" ")));
                let times = names.entry(name.to_lowercase()).and_modify(|times| *times += 1).or_insert(1);
                if *times > 1 {
                    name = format!("{name}-{times}");
                }
                files.push(folder.join(format!("{name}.csv")));
            }
        }
        Ok(JobFiles(files))
    }
}

/// Returns a text as a file name: letters, digits, points and hyphens.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_');
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// Returns the setup of each log, for each value of the options, and the groupings that are shown.
fn setups(args: &CompareArgs) -> anyhow::Result<Vec<(RunSetup, Shown)>> {
    let viewed = |log: RunSetup| -> anyhow::Result<(RunSetup, Shown)> {
        let log = log.with_feedback(args.feedback.feedback);
        let log = log.with_checksum(args.json || args.report.is_requested())?;
        let shown = Shown::new(&log, &args.by)?;
        Ok((args.report.records(log, args.slide.is_some(), &shown.by, Some(&shown)), shown))
    };
    if args.traces.is_empty() {
        let of_run =
            |run: &RunArgs| viewed(prepare_generated(embedded()?, run, EMBEDDED_ESTIMATES.parse()?)?);
        return args.run.sweep().iter().map(of_run).collect();
    }
    let mut setups = Vec::new();
    for path in &args.traces {
        let first = setups.len();
        for run in &args.run.sweep_of(path)? {
            let setup = match setups.get(first) {
                Some((other, _)) => prepare_another(other, run, Estimates::default())?,
                None => prepare(path, run, Estimates::default())?,
            };
            setups.push(viewed(setup)?);
        }
    }
    Ok(setups)
}

/// Returns the workload that needs no download: the output of `miserly workload generate` without
/// parameters.
fn embedded() -> anyhow::Result<Trace> {
    let log = Feitelson96::with_shape(Feitelson96::SHAPE).generate()?;
    Ok(log.into_trace("embedded (miserly workload generate)"))
}
