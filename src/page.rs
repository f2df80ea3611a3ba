//! The page of one or a few runs.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use miserly_lab::{Overview, Prepared, overview};
use miserly_policies::Chosen;
use miserly_report::page::html;
use miserly_report::{AtomicFile, Outcome};

use crate::args::ReportFileArgs;

/// Writes the page of these runs, if it was asked for.
pub(crate) fn write_page(
    args: &ReportFileArgs,
    runs: Vec<(&Prepared, &Chosen, &Outcome)>,
) -> anyhow::Result<()> {
    let Some(path) = &args.report else { return Ok(()) };
    let page = overview(&Overview { command: command(), runs, window: args.window })?;
    write(path, html(&page).as_bytes()).with_context(|| format!("--report {}", path.display()))
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let (file, mut output) = AtomicFile::create(path)?;
    output.write_all(bytes)?;
    file.commit(output)
}

/// The command as it was given, without the folder of the program.
fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    std::iter::once("miserly".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
