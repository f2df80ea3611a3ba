//! The arguments of `miserly export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use miserly_core::Procs;

use super::procs;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The folder of the state of a daemon; where it is left out, that of the daemon that MISERLY_SOCKET names, or else of this
    /// user's
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    /// How it is written: swf is what miserly simulate reads
    #[arg(long, value_enum, default_value_t = ExportFormat::Swf)]
    pub(crate) format: ExportFormat,
    /// The machine's processors, for the header of swf; the most that jobs held at a time where it is left out
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A format of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The Standard Workload Format
    Swf,
    /// A line for each job
    Csv,
    /// The same as Parquet
    #[cfg(feature = "parquet")]
    Parquet,
}
