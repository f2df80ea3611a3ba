//! The page of one or a few runs.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use miserly_experiments::{LogRuns, Overview, overview, quoted};
pub(crate) use miserly_options::groupings;
use miserly_report::AtomicFile;
use miserly_report::page::{Page, html};
use miserly_run::{RunDoc, RunSetup};
use miserly_sim::Grouping;
use miserly_workload::TraceError;

use crate::args::{By, ReportFileArgs};

/// The groupings of the jobs of a log in a verdict and on a page.
pub(crate) struct Shown {
    /// Those of `--by`.
    pub(crate) by: Vec<Grouping>,
    /// The one that shows who gains and who pays: the first of `--by`, else the suited one.
    pub(crate) pays: Grouping,
    /// The one of the heat maps: the first of `--by` with ranges, else the suited one.
    pub(crate) heat: Grouping,
}

impl Shown {
    /// Returns the groupings for these of `--by`.
    ///
    /// # Errors
    /// If the log cannot be read, which suited groupings need.
    pub(crate) fn new(setup: &RunSetup, by: &[By]) -> Result<Shown, TraceError> {
        let by = groupings(setup, by)?;
        let ranges = by.iter().find(|kind| !kind.is_by_value() && **kind != Grouping::RuntimeBin);
        let heat = match ranges {
            Some(ranges) => *ranges,
            None => setup.suited_ranges()?.grouping(),
        };
        let pays = by.first().copied().unwrap_or(heat);
        Ok(Shown { by, pays, heat })
    }
}

impl ReportFileArgs {
    /// Returns whether a page was requested.
    pub(crate) fn is_requested(&self) -> bool {
        self.report.is_some()
    }

    /// Checks before the runs that the page can be written to its path.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        self.report.as_deref().map_or(Ok(()), check_page)
    }

    /// Makes the runs record the requested data, these groups, and the data of the page.
    pub(crate) fn records(
        &self,
        log: RunSetup,
        details: bool,
        by: &[Grouping],
        shown: Option<&Shown>,
    ) -> RunSetup {
        let of_page = self.is_requested().then_some(Grouping::RuntimeBin);
        let more = shown.into_iter().flat_map(|shown| [shown.pays, shown.heat]).chain(of_page);
        let by: BTreeSet<Grouping> = by.iter().copied().chain(more).collect();
        log.with_details(details || self.is_requested()).grouped(&Vec::from_iter(by))
    }

    /// Writes the page of the runs of these logs, if it was requested.
    pub(crate) fn write(
        &self,
        logs: Vec<LogRuns<'_>>,
        difference: Option<[String; 2]>,
    ) -> anyhow::Result<()> {
        let Some(path) = &self.report else { return Ok(()) };
        let page = overview(&Overview { command: command(), logs, difference, window: self.window });
        write_page(path, &page)
    }
}

/// Checks that a page can be written to this path.
pub(crate) fn check_page(path: &Path) -> anyhow::Result<()> {
    AtomicFile::create(path).map(drop).with_context(|| format!("--report {}", path.display()))
}

/// Writes a page to this path.
pub(crate) fn write_page(path: &Path, page: &Page) -> anyhow::Result<()> {
    let written = AtomicFile::write(path, |output| output.write_all(html(page).as_bytes()));
    written.with_context(|| format!("--report {}", path.display()))
}

/// Returns how a page was made.
pub(crate) fn made_by() -> Vec<(String, String)> {
    vec![
        ("command".to_owned(), command()),
        ("program".to_owned(), format!("miserly {}", env!("CARGO_PKG_VERSION"))),
    ]
}

/// Returns how the page of one log was made. The setup has the checksum of the log.
pub(crate) fn provenance(setup: &RunSetup) -> Vec<(String, String)> {
    let of_log = [
        (format!("log {}", setup.name()), format!("SHA-256 {}", setup.sha256().unwrap_or("unknown"))),
        ("settings".to_owned(), serde_json::to_string(&setup.settings()).unwrap_or_default()),
    ];
    made_by().into_iter().chain(of_log).collect()
}

/// Removes the data that only the page needed from a run.
pub(crate) fn forget(outcome: &mut RunDoc, details: bool, by: &[Grouping]) {
    if !details {
        outcome.details = None;
    }
    outcome.by.retain(|kind, _| by.iter().any(|wanted| wanted.to_string() == *kind));
}

/// Returns the command as given, without the folder of the program.
fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("miserly".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
