//! The arguments of `miserly submit`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use miserly_api::submit::SubmitOptions;

use super::DaemonArgs;

/// The heading of the options that a script may have, too.
pub(super) const IN_SCRIPTS: &str = "Options that a script may have as #MISERLY lines";

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of its own.
pub(crate) struct SubmitArgs {
    /// The program or script, and its arguments; - is a script on standard input. Options on the command line override the
    /// #MISERLY and #SBATCH lines of a script (a file that begins with #!)
    #[arg(
        value_name = "PROGRAM",
        required_unless_present_any = ["wrap", "lines"],
        conflicts_with_all = ["wrap", "lines"],
        num_args = 1..,
        trailing_var_arg = true
    )]
    pub(crate) command: Vec<OsString>,

    /// Runs this command of a shell in place of a program
    #[arg(long, value_name = "COMMAND")]
    pub(crate) wrap: Option<String>,

    /// Runs each line of a file with a shell, as one job of an array; blank lines and comments (#) are left out
    #[arg(long, value_name = "FILE", conflicts_with_all = ["wrap", "array"])]
    pub(crate) lines: Option<PathBuf>,

    /// The most jobs of --lines that run at the same time
    #[arg(long, value_name = "N", requires = "lines", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at_once: Option<u32>,

    /// Waits until the job has ended and exits with its exit code
    #[arg(long, conflicts_with = "quote")]
    pub(crate) wait: bool,

    /// Prints the promise that the job would get now, and submits nothing
    #[arg(long)]
    pub(crate) quote: bool,

    /// Prints only the job number; of an array, the range of its numbers
    #[arg(long, short, conflicts_with_all = ["json", "quote"])]
    pub(crate) quiet: bool,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,

    // Last, because options after it would appear under its heading.
    #[command(flatten, next_help_heading = IN_SCRIPTS)]
    pub(crate) options: SubmitOptions,
}
