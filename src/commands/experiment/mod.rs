//! `miserly experiment`, `miserly reproduce` and `miserly report`: runs by the hundred, and their
//! results.

#[cfg(feature = "slurm")]
mod cluster;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use miserly_experiments::experiment::{Executed, Experiment, Watcher, find, looked_in};
use miserly_experiments::papers::{self, ARCHIVE, PAPERS, Paper};
use miserly_experiments::present::number_charts;
use miserly_experiments::{ExperimentFile, Session, log_folders, page, run_part, write_page};
use miserly_gym::study;
use miserly_report::page::{Block, Claim, ClaimVerdict, Page, Section, exported, markdown};
use miserly_sim::Observer;

use crate::args::{ExperimentArgs, ExperimentCommand, On, ReportArgs, ReproduceArgs, RunExperimentArgs};
use crate::output::{print, print_json};
use crate::progress::Progress;
use crate::read_log::show_conversion;

pub(crate) fn run(args: &ExperimentArgs) -> anyhow::Result<()> {
    match &args.command {
        ExperimentCommand::Run(args) => run_file(args),
    }
}

fn run_file(args: &RunExperimentArgs) -> anyhow::Result<()> {
    let ExperimentFile { experiment, folders, folder, command } =
        ExperimentFile::open(&args.file, args.output.as_deref(), args.traces.as_deref())?;
    let name = experiment.name.clone();
    for missing in experiment.missing_logs(&folders) {
        note!("{name}: {missing} not found, skipping its tables; {}", looked_in(&folders));
    }
    if let Some(part) = args.part {
        let Executed { made, kept } =
            run_part(&experiment, &folders, &folder, part, &Watch(&Progress::new(0)))?;
        note!("{name}: {made} runs made, {kept} found and kept");
        return Ok(());
    }
    let traces = folders.first().filter(|_| folders.len() > 1).map(PathBuf::as_path);
    conduct(experiment, &folders, &folder, &command, |session| match args.on.on {
        Some(On::Slurm) => on_cluster(session, args, &folder, traces),
        None => Ok(()),
    })?;
    let page = page(&folder, args.drawn.bars)?;
    let Some(format) = args.format.format() else { return shown(&folder, &page, args.json) };
    write_page(&folder, &page)?;
    print(&exported(&page.sections, format))
}

/// Makes the open runs of a session on a cluster.
#[cfg(feature = "slurm")]
fn on_cluster(
    session: &Session,
    args: &RunExperimentArgs,
    folder: &Path,
    traces: Option<&Path>,
) -> anyhow::Result<()> {
    cluster::conduct(session, &args.on, &cluster::Place { file: &args.file, folder, traces })
}

/// This build knows no clusters.
#[cfg(not(feature = "slurm"))]
fn on_cluster(_: &Session, _: &RunExperimentArgs, _: &Path, _: Option<&Path>) -> anyhow::Result<()> {
    Err(crate::features::SLURM.absent("--on slurm"))
}

/// Runs the missing runs of an experiment: those that are missing after `elsewhere`.
fn conduct(
    experiment: Experiment,
    folders: &[PathBuf],
    folder: &Path,
    command: &str,
    elsewhere: impl FnOnce(&Session) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let name = experiment.name.clone();
    let session = Session::new(experiment, folders, folder, command)?;
    for report in session.conversions() {
        show_conversion(report);
    }
    let before = session.stored();
    elsewhere(&session)?;
    let there = session.stored() - before;
    let progress = Progress::new(session.open_jobs());
    let Executed { made, kept } = session.run(&Watch(&progress))?;
    drop(progress);
    let kept = kept.saturating_sub(there);
    let before = if kept > 0 { format!(", {kept} found and kept") } else { String::new() };
    note!("{name}: {} runs made{before}", made + there);
    Ok(())
}

/// Prints a page, and stores it in the folder.
fn shown(folder: &Path, page: &Page, json: bool) -> anyhow::Result<()> {
    write_page(folder, page)?;
    print_page(page, json)?;
    note!("report: {}", folder.join("report.html").display());
    Ok(())
}

/// Prints a page as text or JSON.
pub(super) fn print_page(page: &Page, json: bool) -> anyhow::Result<()> {
    if json { print_json(page) } else { print(&markdown(page)) }
}

/// The paper whose runs are real processes.
const MEASURED: &str = "miser-1999";

pub(crate) fn reproduce(args: &ReproduceArgs) -> anyhow::Result<()> {
    let Some(name) = &args.paper else { return list(args.json) };
    if is_only(MEASURED, name) {
        #[cfg(feature = "measured")]
        return super::measured::reproduce(args);
        #[cfg(not(feature = "measured"))]
        return Err(crate::features::MEASURED.absent(MEASURED));
    }
    if is_only(study::NAME, name) {
        return reproduce_benchmark(args);
    }
    let Some(paper) = found(name) else {
        let known: Vec<_> = PAPERS.iter().map(|paper| paper.name).chain([study::NAME, MEASURED]).collect();
        bail!("no paper {name:?}; the papers are {}", known.join(", "));
    };
    let name = paper.name;
    refuse_measured(args, name)?;
    let folder = results_folder(args, name);
    let folders = log_folders(args.traces.as_deref());
    let command = repeating_command(args, name);
    let is_wanted = |part: &str| args.only.as_ref().is_none_or(|only| only == part);
    let mut parts = Vec::new();
    for (part, text) in paper.experiments.iter().filter(|(part, _)| is_wanted(part)) {
        let experiment = Experiment::parse(format!("{part}.toml"), *text)?.beside(paper.machines);
        parts.push((part, experiment));
    }
    let missing = missing_logs(parts.iter().map(|(_, experiment)| experiment), &folders);
    note_missing(name, missing, &format!("download them from {ARCHIVE}"), &folders);
    let mut pages = Vec::new();
    for (part, experiment) in parts {
        let part_folder = folder.join(part);
        conduct(experiment, &folders, &part_folder, &command, |_| Ok(()))?;
        let page = page(&part_folder, false)?;
        write_page(&part_folder, &page)?;
        pages.push(page);
    }
    if pages.is_empty() {
        let parts: Vec<_> = paper.experiments.iter().map(|(part, _)| *part).collect();
        bail!("no such part; the parts of {name} are {}", parts.join(", "));
    }
    show_whole(args, name, &whole(paper, pages))
}

/// Refuses the options of the measured paper for another one.
fn refuse_measured(args: &ReproduceArgs, name: &str) -> anyhow::Result<()> {
    match args.measured.first() {
        Some(option) => bail!("{option} is an option of {MEASURED} only; {name} is simulated"),
        None => Ok(()),
    }
}

/// Returns the folder of the results of a paper.
fn results_folder(args: &ReproduceArgs, name: &str) -> PathBuf {
    args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}-results")))
}

/// Returns the command that repeats a reproduction.
fn repeating_command(args: &ReproduceArgs, name: &str) -> String {
    let only = args.only.as_ref().map_or_else(String::new, |part| format!(" --only {part}"));
    format!("miserly reproduce {name}{only}")
}

/// Prints the page of a paper with its summary, and stores it. A single part does not replace the whole.
fn show_whole(args: &ReproduceArgs, name: &str, page: &Page) -> anyhow::Result<()> {
    let folder = results_folder(args, name);
    let place = args.only.as_ref().map_or_else(|| folder.clone(), |part| folder.join(part));
    shown(&place, page, args.json)?;
    if args.json { Ok(()) } else { print(&format!("\n{}\n", summary(page))) }
}

/// Returns each missing log of some experiments once, with its note.
fn missing_logs<'a>(experiments: impl Iterator<Item = &'a Experiment>, folders: &[PathBuf]) -> Vec<String> {
    let mut missing: BTreeMap<String, String> = BTreeMap::new();
    for log in experiments.flat_map(|experiment| experiment.missing_logs(folders)) {
        let file = log.split(' ').next().unwrap_or(&log).to_owned();
        missing.entry(file).or_insert(log);
    }
    missing.into_values().collect()
}

/// Prints the missing logs, and where to get them.
fn note_missing(name: &str, missing: Vec<String>, from: &str, folders: &[PathBuf]) {
    if missing.is_empty() {
        return;
    }
    note!("{name}: these logs are not found, so their cells are - and their claims are not decided:");
    for log in missing {
        note!("  {log}");
    }
    note!("{from}; {}", looked_in(folders));
}

/// Returns how many claims of a page hold, in words.
pub(super) fn summary(page: &Page) -> String {
    let blocks = page.sections.iter().flat_map(|section| &section.blocks);
    let claims: Vec<&Claim> = blocks
        .filter_map(|block| if let Block::Claims(claims) = block { Some(claims) } else { None })
        .flatten()
        .collect();
    let with = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let mut text = format!(
        "{} of {} claims hold; {} do not hold, {} are not decided",
        with(ClaimVerdict::Holds),
        claims.len(),
        with(ClaimVerdict::DoesNotHold),
        with(ClaimVerdict::Unknown)
    );
    if with(ClaimVerdict::Untestable) > 0 {
        text.push_str(&format!(", {} cannot be tested", with(ClaimVerdict::Untestable)));
    }
    let turns = |claim: &&&Claim| {
        let mut read = claim.readings.iter().map(|reading| reading.verdict);
        claim.verdict == ClaimVerdict::DoesNotHold && read.any(|verdict| verdict == ClaimVerdict::Holds)
    };
    match claims.iter().filter(turns).count() {
        0 => text,
        turned => format!("{text}; {turned} of those that do not hold do so in another reading"),
    }
}

/// Returns whether a name is that of a paper whose runs are no experiment, or the start of it and of no other.
fn is_only(paper: &str, name: &str) -> bool {
    let mut others = PAPERS.iter().map(|paper| paper.name).chain([study::NAME, MEASURED]);
    paper.starts_with(name) && !others.any(|other| other != paper && other.starts_with(name))
}

/// Reproduces the benchmark of learned schedulers, which has a simulator of its own.
fn reproduce_benchmark(args: &ReproduceArgs) -> anyhow::Result<()> {
    let name = study::NAME;
    refuse_measured(args, name)?;
    let folders = log_folders(args.traces.as_deref());
    let files = study::log_files(|file| find(file, &folders));
    let missing = files.iter().filter(|(_, path)| path.is_none()).map(|(log, _)| log.file.to_owned());
    let from = format!("the SWF logs are at {ARCHIVE}, the Lublin logs with the paper's program");
    note_missing(name, missing.collect(), &from, &folders);
    let page = study::reproduce(&files, args.only.as_deref(), &repeating_command(args, name))?;
    show_whole(args, name, &page)
}

/// Returns the paper of that name, or the only one with a name that begins so.
fn found(name: &str) -> Option<&'static Paper> {
    let mut alike = PAPERS.iter().filter(|paper| paper.name.starts_with(name));
    let only = alike.next().filter(|_| alike.next().is_none());
    papers::find(name).or(only)
}

/// Returns the pages of a paper's experiments as one.
fn whole(paper: &Paper, pages: Vec<Page>) -> Page {
    let mut whole = Page { title: paper.title.to_owned(), ..Page::default() };
    for page in pages {
        let lead = page.lead.into_iter().map(Block::Text).collect();
        whole.sections.push(Section { heading: page.title, blocks: lead });
        whole.sections.extend(page.sections);
        for line in page.provenance {
            if !whole.provenance.contains(&line) {
                whole.provenance.push(line);
            }
        }
    }
    number_charts(&mut whole.sections);
    whole
}

fn list(json: bool) -> anyhow::Result<()> {
    let simulated = PAPERS.iter().map(|paper| {
        let parts: Vec<&str> = paper.experiments.iter().map(|(part, _)| *part).collect();
        (paper.name, paper.title, parts)
    });
    let benchmark = (study::NAME, study::TITLE, study::PARTS.to_vec());
    #[cfg(feature = "measured")]
    let measured = Some((MEASURED, miserly_measured::TITLE, miserly_measured::PARTS.to_vec()));
    #[cfg(not(feature = "measured"))]
    let measured = None;
    let papers = simulated.chain([benchmark]).chain(measured);
    if json {
        let document =
            |(name, title, parts)| serde_json::json!({ "name": name, "title": title, "parts": parts });
        return print_json(&papers.map(document).collect::<Vec<_>>());
    }
    let mut text = String::new();
    for (name, title, parts) in papers {
        text.push_str(&format!("{name:<16}{title}\n"));
        for part in parts {
            text.push_str(&format!("{:<16}  {part}\n", ""));
        }
    }
    print(&text)
}

pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let page = page(&args.folder, args.drawn.bars)?;
    write_page(&args.folder, &page)?;
    note!("report: {}", args.folder.join("report.html").display());
    Ok(())
}

/// A counter of the jobs of all runs.
struct Watch<'a>(&'a Progress);

impl Watcher for Watch<'_> {
    fn observer(&self) -> Box<dyn Observer + '_> {
        Box::new(self.0.watch())
    }
}
