//! `miserly export`: the finished jobs of a daemon, for the simulator and for other programs.

mod columns;

mod swf;

use std::io::Write;

use anyhow::{Context, bail};
use miserly_core::Procs;
use miserly_live::history::{FinishedJob, finished_jobs, procs};
use miserly_report::AtomicFile;

use crate::args::{ExportArgs, ExportFormat};
use crate::output::to_file;

/// Writes the history of a state.
pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<()> {
    let state = super::state_folder(args.state.as_deref())?;
    let jobs =
        finished_jobs(&state).with_context(|| format!("cannot read the history of {}", state.display()))?;
    if jobs.is_empty() {
        bail!("no job has ended in {}: there is nothing to export", state.display());
    }
    let procs = match args.procs {
        Some(procs) => Some(procs),
        None => procs(&state)?.map(Procs::new),
    };
    let bytes = bytes(&jobs, procs, args)?;
    match to_file(args.output.as_deref()) {
        None => std::io::stdout().lock().write_all(&bytes).context("cannot write to standard output"),
        Some(path) => {
            let written = AtomicFile::write(path, |output| output.write_all(&bytes));
            written.with_context(|| format!("cannot write {}", path.display()))
        }
    }
}

fn bytes(jobs: &[FinishedJob], procs: Option<Procs>, args: &ExportArgs) -> anyhow::Result<Vec<u8>> {
    match args.format {
        ExportFormat::Swf => Ok(swf::swf(jobs, procs)?),
        ExportFormat::Csv => Ok(columns::table(jobs).csv()?),
        #[cfg(feature = "parquet")]
        ExportFormat::Parquet => Ok(columns::table(jobs).parquet()?),
    }
}
