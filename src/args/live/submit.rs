//! The arguments of `miserly submit`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use jiff::{Timestamp, Zoned};
use miserly_api::model::Array;
use miserly_api::submit::{
    Export, Memory, SubmitOptions, array, instant, job_numbers, length_of_time, memory,
};

use super::DaemonArgs;

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Each is a flag of its own.
pub(crate) struct SubmitArgs {
    /// What to run, and its arguments: a script, or a program. What a script (a file that begins with #!) says in lines #MISERLY
    /// or #SBATCH counts where nothing is said here. - is a script on standard input
    #[arg(value_name = "PROGRAM", required = true, num_args = 1.., trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,

    /// Wait until the job has ended, and exit as it did
    #[arg(long, conflicts_with = "quote")]
    pub(crate) wait: bool,

    /// Only tell what would be promised now; nobody is bound by it
    #[arg(long)]
    pub(crate) quote: bool,

    /// Print the job's number, and nothing else
    #[arg(long, short, conflicts_with_all = ["json", "quote"])]
    pub(crate) quiet: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,

    // Last, because options after it would appear under its heading.
    #[command(flatten)]
    pub(crate) options: OptionArgs,
}

/// The options that a script may also have.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Options that a script may have as #MISERLY lines")]
pub(crate) struct OptionArgs {
    /// For how long: seconds, or 15min, 1d12h, 1:30:00; then it is ended. Must be given, here or in the script
    #[arg(long, short, value_name = "TIME", value_parser = length_of_time)]
    pub(crate) time: Option<u64>,

    /// How many processors [default: 1]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cpus: Option<u64>,

    /// How much memory: 512MiB, 8GiB; else the queue's default
    #[arg(long, short, value_name = "SIZE", value_parser = memory)]
    pub(crate) memory: Option<u64>,

    /// How much memory for each processor
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "memory")]
    pub(crate) memory_per_cpu: Option<u64>,

    /// The queue; else the first one
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Option<String>,

    /// What you call it; else the program's name
    #[arg(long, short, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// Not before this instant: 2026-03-01T08:00, 08:00 (the next one), +2h, tomorrow
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub(crate) begin: Option<Timestamp>,

    /// To be over by this instant, or refused
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub(crate) deadline: Option<Timestamp>,

    /// Not before these jobs have ended, however they end
    #[arg(long, value_name = "JOB,...", value_parser = jobs)]
    pub(crate) after: Option<JobNumbers>,

    /// As many jobs, alike but for MISERLY_ARRAY_INDEX: 0-15, 0-15:4
    #[arg(long, short, value_name = "RANGE", value_parser = array)]
    pub(crate) array: Option<Array>,

    /// Its work may be thrown away and done again
    #[arg(long)]
    pub(crate) restartable: bool,

    /// Not to run ahead of its start on what is idle
    #[arg(long)]
    pub(crate) no_opportunistic: bool,

    /// Not to run until it is released
    #[arg(long)]
    pub(crate) hold: bool,

    /// Where its output goes: %j is its number, %A its array's, %a the index there, %x its name
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Where its errors go; else with its output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) error: Option<PathBuf>,

    /// The folder that it runs in; else this one
    #[arg(long, short, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// What it gets of your environment: ALL, NONE, or names and NAME=VALUE with commas between them [default: ALL]
    #[arg(long, value_name = "WHAT", value_parser = Export::parse)]
    pub(crate) export: Option<Export>,
}

/// The numbers of jobs. A newtype, because clap would make a repeated option of a plain vector.
#[derive(Clone, Debug)]
pub(crate) struct JobNumbers(Vec<i64>);

impl OptionArgs {
    /// Returns the given options.
    pub(crate) fn options(&self) -> SubmitOptions {
        let per_cpu = self.memory_per_cpu.map(Memory::PerCpu);
        // A missing flag leaves the setting to the script.
        let flag = |set: bool| set.then_some(true);
        SubmitOptions {
            name: self.name.clone(),
            cpus: self.cpus,
            memory: self.memory.map(Memory::Job).or(per_cpu),
            time: self.time,
            queue: self.queue.clone(),
            begin: self.begin,
            deadline: self.deadline,
            after: self.after.clone().map(|JobNumbers(jobs)| jobs),
            array: self.array,
            restartable: flag(self.restartable),
            no_opportunistic: flag(self.no_opportunistic),
            hold: flag(self.hold),
            output: self.output.clone(),
            error: self.error.clone(),
            directory: self.directory.clone(),
            export: self.export.clone(),
        }
    }
}

fn when(text: &str) -> Result<Timestamp, String> {
    instant(text, &Zoned::now())
}

fn jobs(text: &str) -> Result<JobNumbers, String> {
    job_numbers(text).map(JobNumbers)
}
