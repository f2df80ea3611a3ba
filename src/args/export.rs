//! The arguments of `miserly export`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use miserly_core::Procs;

use super::values::procs;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The folder of a daemon's state, also while it runs [default: that of the daemon of MISERLY_SOCKET, else of this user]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) state: Option<PathBuf>,
    /// The format; miserly simulate reads swf
    #[arg(long, value_enum, default_value_t = ExportFormat::Swf)]
    pub(crate) format: ExportFormat,
    /// The processors of the machine, for the header of swf [default: the most in use at a time]
    #[arg(long, value_name = "N", value_parser = procs())]
    pub(crate) procs: Option<Procs>,
    /// The output file; - is standard output [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// A format of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The Standard Workload Format
    Swf,
    /// Comma-separated values, a line for each job
    Csv,
    /// Parquet, with the columns of csv
    #[cfg(feature = "parquet")]
    Parquet,
}
