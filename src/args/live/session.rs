//! The arguments of the commands for interactive jobs.

use std::ffi::OsString;

use clap::Args;
use miserly_api::model::JobRef;
use miserly_api::submit::SubmitOptions;

use super::submit::IN_SCRIPTS;
use super::{DaemonArgs, one_job};

#[derive(Debug, Args)]
pub(crate) struct RunJobArgs {
    /// The program or script, and its arguments
    #[arg(value_name = "PROGRAM", required = true, num_args = 1.., trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,

    /// Gives the job a terminal: this one. Enter ~ . detaches from the job, which continues
    #[arg(long, conflicts_with_all = ["input", "error"])]
    pub(crate) pty: bool,

    /// Prints only what the job prints, and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,

    // Last, because options after it would appear under its heading.
    #[command(flatten, next_help_heading = IN_SCRIPTS)]
    pub(crate) options: SubmitOptions,
}

#[derive(Debug, Args)]
pub(crate) struct AllocArgs {
    /// Prints only what the shell prints, and errors
    #[arg(long, short)]
    pub(crate) quiet: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,

    #[command(flatten, next_help_heading = IN_SCRIPTS)]
    pub(crate) options: SubmitOptions,
}

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The job: its number, or ARRAY_INDEX
    #[arg(value_name = "JOB", value_parser = one_job)]
    pub(crate) job: JobRef,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}
