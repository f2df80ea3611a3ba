//! The reproduction of the published tables, and what stands beside them, as a page.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use miserly_core::Time;
use miserly_policies::{PolicyError, PolicySpec};
use miserly_report::page::{Block, Claim, ClaimVerdict, Emphasis, Page, Section, TableCell, TableData};
use miserly_run::SetupError;
use miserly_sim::mean_with_half_width;
use miserly_workload::generate::GenerateError;
use miserly_workload::{Trace, TraceError, shaken};
use rayon::prelude::*;

use crate::log::{JobLog, JobLogError};
use crate::orders::Order;
use crate::published::{BenchmarkLog, LOGS, PUBLISHED, PublishedRow, WINDOW_JOBS, WINDOWS};
use crate::simulated::schedule_with;

/// The name by which the paper is asked for.
pub const NAME: &str = "zhang-2020";

/// The paper.
pub const TITLE: &str = "Zhang, Dai, He, Bao, Xie: RLScheduler: An Automated HPC Batch Job Scheduler Using Reinforcement Learning, SC 2020";

/// The parts of the page.
pub const PARTS: [&str; 3] = ["1-tables", "2-wait", "3-beside"];

/// The policies of the simulator beside the published orders.
const BESIDE: [&str; 6] = [
    "easy",
    "conservative",
    "easy(order=shortest)",
    "easy(backfill=shortest)",
    "easy(backfill=shortest, predict=last2, book=guarded)",
    "easy(order=f1)",
];

/// The copies of a log, whose submissions are moved by up to this many seconds.
const COPIES: u64 = 10;
const MOVED_BY: u32 = 30;

/// Why a page cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A log cannot serve.
    #[error(transparent)]
    Log(#[from] JobLogError),
    /// A policy does not run.
    #[error(transparent)]
    Run(#[from] SetupError),
    /// A log ends before the last window does.
    #[error("{name}: {jobs} jobs that run, and the windows need {needed}; it is not the whole log")]
    Short {
        /// The log.
        name: String,
        /// Its jobs.
        jobs: usize,
        /// The jobs that are needed.
        needed: usize,
    },
    /// A window cannot be made.
    #[error("{0}")]
    Made(String),
    /// A policy decides by what is not known yet, or is not deterministic.
    #[error("{0}")]
    Peeks(String),
    /// The model of a window is not known.
    #[error(transparent)]
    Model(#[from] GenerateError),
    /// A policy is not understood.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// There is no such part.
    #[error("no part {wanted:?}; the parts of {NAME} are {}", PARTS.join(", "))]
    NoPart {
        /// The part that was asked for.
        wanted: String,
    },
}

/// A log of the tables that was found.
struct Found {
    row: BenchmarkLog,
    log: Arc<JobLog>,
    sha256: String,
}

/// Makes the page of the paper, or of one part of it. A log without a file leaves its rows empty.
///
/// # Errors
/// If a log cannot be read, or the part does not exist.
pub fn reproduce(files: &LogFiles, only: Option<&str>, command: &str) -> Result<Page, StudyError> {
    if let Some(part) = only.filter(|part| !PARTS.contains(part)) {
        return Err(StudyError::NoPart { wanted: part.to_owned() });
    }
    let mut found = Vec::new();
    for (row, path) in files {
        if let Some(path) = path {
            found.push(read(*row, path)?);
        }
    }
    let wanted = |part: &str| only.is_none_or(|only| only == part);
    let mut page = Page {
        title: TITLE.to_owned(),
        lead: Some(
            "Ten windows of 1 024 jobs of four logs, each on an empty machine. The scheduler commits to one job at a time. \
             Smaller is better; * marks orders that a defect of the published program turns over."
                .to_owned(),
        ),
        ..Page::default()
    };
    if wanted(PARTS[0]) {
        page.sections.push(tables(&found));
    }
    if wanted(PARTS[1]) {
        page.sections.push(true_waits(&found));
    }
    if wanted(PARTS[2]) {
        page.sections.push(beside(&found)?);
    }
    page.provenance.push(("command".into(), command.to_owned()));
    for log in &found {
        page.provenance.push((log.row.file.to_owned(), format!("SHA-256 {}", log.sha256)));
    }
    Ok(page)
}

/// The logs of the tables, each with its file, if there is one.
pub type LogFiles = [(BenchmarkLog, Option<PathBuf>); LOGS.len()];

/// Looks for each log: `find` returns the path of a name.
pub fn log_files(find: impl Fn(&str) -> Option<PathBuf>) -> LogFiles {
    LOGS.map(|row| {
        let names =
            [format!("{}.gz", row.file), row.file.to_owned(), row.file.trim_end_matches(".swf").to_owned()];
        (row, names.iter().find_map(|name| find(name)))
    })
}

fn read(row: BenchmarkLog, path: &Path) -> Result<Found, StudyError> {
    let trace = |error: TraceError| StudyError::Log(JobLogError::Trace(error));
    let log = Trace::open(path).map_err(trace)?;
    let sha256 = log.sha256().map_err(trace)?;
    let log = JobLog::read(&log)?;
    let needed = WINDOWS.into_iter().max().unwrap_or(0) + WINDOW_JOBS;
    if log.jobs.len() < needed {
        return Err(StudyError::Short { name: log.name, jobs: log.jobs.len(), needed });
    }
    Ok(Found { row, log: Arc::new(log), sha256 })
}

/// The mean bounded slowdown and the utilization of an order, as means over the windows.
fn cell(log: &Arc<JobLog>, order: Order, backfills: bool) -> (f64, f64) {
    let windows: Vec<(f64, f64)> = WINDOWS
        .par_iter()
        .map(|first| order.schedule(log, *first..first + WINDOW_JOBS, backfills))
        .map(|episode| (episode.mean_bounded_slowdown(), episode.utilization()))
        .collect();
    (mean(windows.iter().map(|(slowdown, _)| *slowdown)), mean(windows.iter().map(|(_, used)| *used)))
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

/// Chooses a measure: the published cells of a row, and ours of a cell.
type Choice = fn(&PublishedRow, (f64, f64)) -> ([f64; 5], f64);

/// The published cells beside ours.
fn tables(found: &[Found]) -> Section {
    let mut blocks = Vec::new();
    let mut claims = Vec::new();
    let measures: [(&str, usize, Choice); 2] = [
        ("Mean bounded slowdown", 2, |row, (slowdown, _)| (row.slowdown, slowdown)),
        ("Utilization", 3, |row, (_, used)| (row.utilization, used)),
    ];
    let cells: Vec<Vec<Option<(f64, f64)>>> = PUBLISHED
        .iter()
        .map(|row| {
            let log = found.iter().find(|found| found.row.name == row.log);
            let order = |order: &Order| log.map(|found| cell(&found.log, *order, row.backfills));
            Order::ALL[..5].iter().map(order).collect()
        })
        .collect();
    for (measure, places, choose) in measures {
        let mut table = TableData {
            caption: Some(format!("{measure}: ours, and in brackets the published figure")),
            header: vec![header(Order::ALL[..5].iter().map(|order| order.name().to_owned()))],
            rows: vec![],
        };
        for (row, cells) in PUBLISHED.iter().zip(&cells) {
            let mut line = vec![TableCell::text(label(row))];
            let mut equal = Some(0);
            for (index, cell) in cells.iter().enumerate() {
                let Some(ours) = *cell else {
                    equal = None;
                    line.push(TableCell::number("-").with(Emphasis::Muted));
                    continue;
                };
                let (published, ours) = choose(row, ours);
                let (ours, published) =
                    (format!("{ours:.places$}"), format!("{:.places$}", published[index]));
                let same = ours == published;
                equal = equal.map(|count| count + usize::from(same));
                let emphasis = if same { Emphasis::None } else { Emphasis::Off(1) };
                line.push(TableCell::number(format!("{ours} ({published})")).with(emphasis));
            }
            claims.push(claim(row, measure, places, equal));
            table.rows.push(line);
        }
        blocks.push(Block::Table(table));
    }
    blocks.push(Block::Claims(claims));
    Section { heading: "Tables V and VI".into(), blocks }
}

fn claim(row: &PublishedRow, measure: &str, places: usize, equal: Option<usize>) -> Claim {
    let verdict = match equal {
        None => ClaimVerdict::Unknown,
        Some(5) => ClaimVerdict::Holds,
        Some(_) => ClaimVerdict::DoesNotHold,
    };
    Claim {
        text: format!("{measure} of {} equals the published figures to {places} decimals", label(row)),
        section: if row.backfills { "table VI" } else { "table V" }.into(),
        verdict,
        figures: equal.map_or_else(String::new, |equal| format!("{equal} of 5 cells")),
        why: String::new(),
        readings: vec![],
    }
}

fn label(row: &PublishedRow) -> String {
    format!("{}{}", row.log, if row.backfills { ", backfilling" } else { "" })
}

fn header(names: impl Iterator<Item = String>) -> Vec<String> {
    std::iter::once("log".to_owned()).chain(names).collect()
}

/// WFP3 and UNICEP with the defect and without it.
fn true_waits(found: &[Found]) -> Section {
    let orders = [Order::Wfp3Published, Order::Wfp3, Order::UnicepPublished, Order::Unicep];
    let mut table = TableData {
        caption: Some("Mean bounded slowdown, with the defect (*) and with the true wait".into()),
        header: vec![header(
            orders.iter().map(|order| order.name().to_owned()).chain(["RL, published".into()]),
        )],
        rows: vec![],
    };
    for row in &PUBLISHED {
        let mut line = vec![TableCell::text(label(row))];
        let log = found.iter().find(|found| found.row.name == row.log);
        for order in orders {
            let ours = log.map(|found| cell(&found.log, order, row.backfills).0);
            line.push(TableCell::number(ours.map_or_else(|| "-".into(), |ours| format!("{ours:.2}"))));
        }
        line.push(TableCell::number(format!("{:.2}", row.learned)));
        table.rows.push(line);
    }
    let why = "The published program computes the wait of a job that has not started from a start of -1. The wait is -1 minus \
               the submission then, and both orders are turned over: they take the job that came last.";
    Section {
        heading: "With the true wait".into(),
        blocks: vec![Block::Text(why.into()), Block::Table(table)],
    }
}

/// Policies of the simulator on the same windows.
fn beside(found: &[Found]) -> Result<Section, StudyError> {
    let mut table = TableData {
        caption: Some(format!(
            "Mean bounded slowdown on the windows; in brackets the mean of {COPIES} copies, whose submissions are moved by up to \
             {MOVED_BY} s, with its 95 % interval"
        )),
        header: vec![
            std::iter::once("policy".to_owned())
                .chain(found.iter().map(|found| found.row.name.to_owned()))
                .collect(),
        ],
        rows: vec![],
    };
    for name in BESIDE {
        let policy: PolicySpec = name.parse().map_err(StudyError::Policy)?;
        let mut line = vec![TableCell::text(name)];
        for found in found {
            let copies: Vec<f64> = (0..=COPIES)
                .into_par_iter()
                .map(|copy| Ok(windows_mean(&policy, &copy_of(&found.log, copy))?))
                .collect::<Result<_, StudyError>>()?;
            let [own, copies @ ..] = &copies[..] else { continue };
            let (centre, half) = mean_with_half_width(copies);
            let half = half.unwrap_or(f64::INFINITY);
            line.push(TableCell::number(format!("{own:.2} ({centre:.2} ± {half:.2})")));
        }
        table.rows.push(line);
    }
    Ok(Section {
        heading: "Policies of the simulator on the same windows".into(),
        blocks: vec![Block::Table(table)],
    })
}

fn windows_mean(policy: &PolicySpec, log: &JobLog) -> Result<f64, SetupError> {
    let slowdown =
        |first: &usize| Ok(schedule_with(policy, log, *first..first + WINDOW_JOBS)?.mean_bounded_slowdown());
    let means: Vec<f64> = WINDOWS.par_iter().map(slowdown).collect::<Result<_, SetupError>>()?;
    Ok(mean(means.into_iter()))
}

/// Returns a copy of a log; copy 0 is the log itself.
fn copy_of(log: &JobLog, copy: u64) -> JobLog {
    let mut log = log.clone();
    if copy > 0 {
        for job in &mut log.jobs {
            let submit = Time::from_secs(job.submit).unwrap_or(Time::ZERO);
            job.submit = (shaken(submit, job.number, copy, MOVED_BY) - Time::ZERO).secs();
        }
    }
    log
}
