//! The grammar of experiment files, unchecked.

use miserly_run::BatchSettings;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::read::ReadFile;
use super::seconds;
use crate::chart_request::{AxisRequest, ChartKind, ChartRequest, LineRequest, Scale};
use crate::selector::{Scalar, Selector};

/// An experiment: logs, policies, the runs to make of them, and the tables, charts and claims to show.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct File {
    /// Its title.
    pub title: String,
    /// Its description: paragraphs.
    #[serde(default)]
    pub about: String,
    /// The logs.
    #[serde(rename = "trace", default)]
    pub traces: Vec<Spanned<TraceFile>>,
    /// Short names of policies: the name, and the written form.
    #[serde(default)]
    pub policies: BTreeMap<String, Spanned<String>>,
    /// The figures that results.csv has, as paths; all where none is named.
    #[serde(default)]
    pub metrics: Vec<Spanned<String>>,
    /// The runs.
    #[serde(default)]
    pub runs: Vec<Spanned<RunsFile>>,
    /// Other readings of what the paper leaves open.
    #[serde(rename = "reading", default)]
    pub readings: Vec<Spanned<ReadingFile>>,
    /// Tables, in the order in which they are shown.
    #[serde(rename = "table", default)]
    pub tables: Vec<Spanned<TableFile>>,
    /// Charts.
    #[serde(rename = "chart", default)]
    pub charts: Vec<Spanned<ChartFile>>,
    /// Claims that hold or do not.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Spanned<ClaimFile>>,
}

/// A log: a file, or a model that makes one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TraceFile {
    /// The name that runs and tables use.
    pub name: String,
    /// The file's name, a pattern or a folder; it is looked for in the folder of logs, then beside the experiment file.
    pub file: Option<String>,
    /// A file to take in its place if there is one, such as the log before it was cleaned.
    pub prefer: Option<String>,
    /// Texts that fields of the file's header contain, by the name of the field. Another log has others.
    #[serde(default)]
    pub header: BTreeMap<String, String>,
    /// How the file is read, if it is not as the Standard Workload Format has it.
    #[serde(default)]
    pub read: ReadFile,
    /// Jobs that are put back into the file. The log is then a reconstruction.
    pub put_back: Option<PutBackFile>,
    /// A model of `workload generate`, in place of a file.
    pub model: Option<String>,
    /// The model's number of jobs.
    pub jobs: Option<u64>,
    /// The model's offered load.
    pub load: Option<f64>,
    /// The model's seed.
    pub seed: Option<u64>,
    /// Several seeds of the model: a log for each, under one name. The runs of each have that seed too.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// The model's month.
    pub month: Option<String>,
    /// Further parameters of the model, by name, as `--set` takes them.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
    /// The origin of the log, or a remark. Shown if it is missing, and beside its results.
    pub note: Option<String>,
    /// Whether the experiment goes on without it.
    #[serde(default)]
    pub optional: bool,
    /// How its runs are set.
    #[serde(default)]
    pub options: Options,
    /// Estimates whose runtimes are studied apart.
    #[serde(default, deserialize_with = "seconds::list")]
    pub study: Vec<u64>,
}

/// Jobs of a user that a log lacks, to be made like others of this user.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PutBackFile {
    /// The user.
    pub user: i64,
    /// The first and the last number that the jobs may have.
    pub jobs: [i64; 2],
}

/// A reading of what a paper leaves open: the same runs with other settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReadingFile {
    /// Its name.
    pub name: String,
    /// The convention that it reads. Readings of different conventions are also combined.
    pub convention: String,
    /// The blocks of runs; all where none is named.
    #[serde(default)]
    pub runs: Vec<Spanned<String>>,
    /// Options that win over those of the runs.
    #[serde(default)]
    pub options: Options,
    /// Logs to use in place of others: the name in tables, and the log's name.
    #[serde(default)]
    pub traces: BTreeMap<String, Spanned<String>>,
    /// Policies to use in place of others.
    #[serde(default)]
    pub policies: BTreeMap<String, Spanned<String>>,
    /// Models of the estimates to use in place of others.
    #[serde(default)]
    pub estimates: BTreeMap<String, Spanned<String>>,
}

/// The options of a run, as `miserly simulate` has them.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// The machine's processors.
    pub procs: Option<u32>,
    /// The machine: a built-in name, a number of processors, or a file.
    pub machine: Option<String>,
    /// one or any, in place of the setting of the machine.
    pub span: Option<String>,
    /// shared or whole, in place of the setting of the machine.
    pub sharing: Option<String>,
    /// kill, extend or run.
    pub overrun: Option<String>,
    /// batched or sequential.
    pub event_order: Option<String>,
    /// allocated or requested.
    pub procs_field: Option<String>,
    /// Jobs to leave out.
    pub drop: Option<Vec<String>>,
    /// Skip malformed lines.
    pub lenient: Option<bool>,
    /// Only jobs submitted then or later.
    #[serde(default, deserialize_with = "seconds::one")]
    pub from: Option<i64>,
    /// Only jobs submitted before then.
    #[serde(default, deserialize_with = "seconds::one")]
    pub to: Option<i64>,
    /// Only the jobs of these users.
    pub users: Option<Vec<u32>>,
    /// Only the jobs of these queues.
    pub queues: Option<Vec<u32>>,
    /// By how much the load is raised.
    pub scale_load: Option<f64>,
    /// Whether all jobs are submitted at time 0.
    pub offline: Option<bool>,
    /// fields or sessions: jobs are submitted after the simulated end of an earlier one.
    pub feedback: Option<String>,
    /// By how much submissions are moved at random. Each seed has moves of its own.
    #[serde(default, deserialize_with = "seconds::one")]
    pub shake: Option<i64>,
    /// The warm-up.
    #[serde(default, deserialize_with = "seconds::one")]
    pub warmup: Option<i64>,
    /// Which terminations are measured, in place of a warm-up.
    pub batches: Option<BatchSettings>,
}

/// A block of runs: every log under every policy with every model of the estimates and every seed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunsFile {
    /// The block's name, by which tables may ask for it.
    pub name: String,
    /// The logs; all of the experiment where none is named.
    #[serde(default)]
    pub traces: Vec<Spanned<String>>,
    /// The policies: short names, or written forms.
    pub policies: Vec<Spanned<String>>,
    /// Models of the estimates.
    #[serde(default = "log_estimates")]
    pub estimates: Vec<Spanned<String>>,
    /// Machines, in place of each log's own: built-in names, numbers of processors, files.
    #[serde(default)]
    pub machines: Vec<Scalar>,
    /// By how much the load is raised: 1 as it is.
    #[serde(default)]
    pub loads: Vec<f64>,
    /// The seeds of random draws.
    #[serde(default)]
    pub seeds: Vec<u64>,
    /// Seeds 1 to this, in place of `seeds`.
    pub repetitions: Option<u64>,
    /// The options of the runs. They win over those of the log.
    #[serde(default)]
    pub options: Options,
    /// The records beyond the measures.
    #[serde(default)]
    pub record: Record,
}

impl RunsFile {
    /// The machines, as they are written.
    pub(super) fn machines(&self) -> impl Iterator<Item = String> {
        self.machines.iter().map(Scalar::text)
    }
}

fn log_estimates() -> Vec<Spanned<String>> {
    vec![Spanned::new(0..0, "trace".into())]
}

/// The records of a run beyond the measures.
#[derive(Clone, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Record {
    /// Distributions, and the machine and the queue over time.
    #[serde(default)]
    pub details: bool,
    /// Measures by these kinds of groups.
    #[serde(default)]
    pub by: Vec<String>,
    /// The runtimes and waits of this share of the measured jobs, those that waited longest.
    #[serde(default)]
    pub longest_waits: Option<f64>,
    /// One row per job, in a file of its own.
    #[serde(default)]
    pub jobs: bool,
    /// The jobs of a window, for a Gantt chart: from and to, after the first submission.
    #[serde(default, deserialize_with = "seconds::window")]
    pub gantt: Option<[i64; 2]>,
}

/// A table of one figure of many runs, beside the paper's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableFile {
    /// Its title.
    pub title: String,
    /// A note.
    pub note: Option<String>,
    /// Which figure: a path into the document of a run, such as `metrics.wait.mean`.
    pub value: String,
    /// The divisor of the figure before it is shown.
    #[serde(default = "one")]
    pub unit: f64,
    /// Decimals; else two, or as many as a half width is worth.
    pub digits: Option<usize>,
    /// The selector of all cells.
    #[serde(default, rename = "where")]
    pub common: Selector,
    /// The rows.
    pub rows: Vec<Line>,
    /// The columns.
    pub columns: Vec<Line>,
    /// The paper's figures, row by row, in the table's unit; NaN where it has none.
    #[serde(default)]
    pub paper: Vec<Vec<f64>>,
}

/// A row or a column of a table, or a line of a chart.
#[derive(Clone, Debug, Deserialize)]
pub struct Line {
    /// The text beside it.
    pub label: String,
    /// Another figure than the chart's, for this line.
    pub value: Option<String>,
    /// Its runs.
    #[serde(flatten)]
    pub select: Selector,
}

/// A chart.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChartFile {
    /// Its title.
    pub title: String,
    /// A note.
    pub note: Option<String>,
    /// Its kind.
    pub kind: ChartKind,
    /// The axis of runs along which a line chart goes, such as factor.
    pub x: Option<String>,
    /// Which figure: a path into the document of a run, or of a log.
    pub value: String,
    /// The divisor of the figure before it is drawn.
    #[serde(default = "one")]
    pub unit: f64,
    /// The text at the axis.
    #[serde(default)]
    pub x_label: String,
    /// The text at the axis.
    #[serde(default)]
    pub y_label: String,
    /// How the axes are spaced.
    #[serde(default)]
    pub x_scale: Scale,
    /// How the axes are spaced.
    #[serde(default)]
    pub y_scale: Scale,
    /// The selector of all lines.
    #[serde(default, rename = "where")]
    pub common: Selector,
    /// The lines.
    pub lines: Vec<Line>,
}

impl ChartFile {
    /// Returns the request for the chart.
    pub fn request(&self) -> ChartRequest {
        let line = |line: &Line| LineRequest {
            label: line.label.clone(),
            figure: line.value.clone().unwrap_or_else(|| self.value.clone()),
            unit: self.unit,
            runs: self.common.and(&line.select),
        };
        ChartRequest {
            title: self.title.clone(),
            note: self.note.clone(),
            kind: self.kind,
            along: self.x.clone(),
            x: AxisRequest::new(&self.x_label, self.x_scale),
            y: AxisRequest::new(&self.y_label, self.y_scale),
            lines: self.lines.iter().map(line).collect(),
        }
    }
}

/// A claim about the results, decided by a formula.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ClaimFile {
    /// The claim, in words.
    pub text: String,
    /// Where the paper has it.
    pub section: Option<String>,
    /// Why it does not hold or cannot be tested, or what it depends on.
    pub why: Option<String>,
    /// Figures of runs, by name.
    #[serde(rename = "let", default)]
    pub figures: BTreeMap<String, FigureFile>,
    /// The formula over these names: holds unless it is 0. A claim without it cannot be tested.
    pub holds: Option<String>,
    /// Further figures to show: a label, and a formula.
    #[serde(default)]
    pub show: Vec<ShowFile>,
}

/// A figure of runs.
#[derive(Clone, Debug, Deserialize)]
pub struct FigureFile {
    /// Which figure: a path into the document of a run, or of a log.
    pub value: String,
    /// The runs that it is compared with: then the figure is of the differences from these, seed by seed or batch by batch.
    pub less: Option<Selector>,
    /// Which figure of them.
    #[serde(default)]
    pub of: OfDifference,
    /// Of several runs that differ in `over`: which of them.
    pub take: Option<Take>,
    /// The axis in which the runs differ, where `take` is given.
    pub over: Option<String>,
    /// The runs.
    #[serde(flatten)]
    pub select: Selector,
}

/// A figure of the differences of runs from others.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum OfDifference {
    /// Their mean.
    #[default]
    Mean,
    /// Half the width of its 95 % interval.
    HalfWidth,
}

/// A figure of several runs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Take {
    /// The least figure.
    Min,
    /// The largest figure.
    Max,
    /// Where the least figure is.
    Argmin,
    /// Where the largest figure is.
    Argmax,
}

/// A figure to show beside a claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShowFile {
    /// The text beside it.
    pub label: String,
    /// How it comes from the claim's figures.
    pub formula: String,
    /// Decimals.
    #[serde(default = "two")]
    pub digits: usize,
}

fn one() -> f64 {
    1.0
}

fn two() -> usize {
    2
}
