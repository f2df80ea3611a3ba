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
    /// The program or script, and its arguments; - is a script on standard input. Options on the command line override the
    /// #MISERLY and #SBATCH lines of a script (a file that begins with #!)
    #[arg(value_name = "PROGRAM", required = true, num_args = 1.., trailing_var_arg = true)]
    pub(crate) command: Vec<OsString>,

    /// Waits until the job has ended and exits with its exit code
    #[arg(long, conflicts_with = "quote")]
    pub(crate) wait: bool,

    /// Prints the promise that the job would get now, and submits nothing
    #[arg(long)]
    pub(crate) quote: bool,

    /// Prints only the job number
    #[arg(long, short, conflicts_with_all = ["json", "quote"])]
    pub(crate) quiet: bool,

    /// Prints JSON
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
    /// The time limit: seconds, or 90min, 12h, 7d, 1:30:00. Required here or in the script; the job is ended when it is reached
    #[arg(long, short, value_name = "TIME", value_parser = length_of_time)]
    pub(crate) time: Option<u64>,

    /// The number of processors [default: 1]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) cpus: Option<u64>,

    /// The memory of the job, such as 512MiB or 8GiB [default: from the queue]
    #[arg(long, short, value_name = "SIZE", value_parser = memory)]
    pub(crate) memory: Option<u64>,

    /// The memory for each processor, such as 512MiB or 8GiB
    #[arg(long, value_name = "SIZE", value_parser = memory, conflicts_with = "memory")]
    pub(crate) memory_per_cpu: Option<u64>,

    /// The queue [default: the first one]
    #[arg(long, value_name = "QUEUE")]
    pub(crate) queue: Option<String>,

    /// The job name [default: the name of the program]
    #[arg(long, short, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The earliest start: 2026-03-01T08:00, 08:00 (the next one), +2h, tomorrow
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub(crate) begin: Option<Timestamp>,

    /// The latest end, in the notation of --begin; the job is refused if it cannot end by then
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub(crate) deadline: Option<Timestamp>,

    /// The jobs that must end first, with any result
    #[arg(long, value_name = "JOB,...", value_parser = jobs)]
    pub(crate) after: Option<JobNumbers>,

    /// The indices of an array, such as 0-15 or 0-15:4; each job gets its index in MISERLY_ARRAY_INDEX
    #[arg(long, short, value_name = "RANGE", value_parser = array)]
    pub(crate) array: Option<Array>,

    /// Lets the scheduler stop the job and start it again from the beginning
    #[arg(long)]
    pub(crate) restartable: bool,

    /// Runs the job in its window only, not ahead of its promised start
    #[arg(long)]
    pub(crate) no_opportunistic: bool,

    /// Holds the job until it is released
    #[arg(long)]
    pub(crate) hold: bool,

    /// The output file; %j is the job number, %A the array number, %a the array index, %x the job name
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The file of the error output, with the same % codes [default: the output file]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) error: Option<PathBuf>,

    /// The working folder of the job [default: the current folder]
    #[arg(long, short, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// The environment of the job: ALL, NONE, or a list of NAME and NAME=VALUE, separated by commas [default: ALL]
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

pub(crate) fn when(text: &str) -> Result<Timestamp, String> {
    instant(text, &Zoned::now())
}

fn jobs(text: &str) -> Result<JobNumbers, String> {
    job_numbers(text).map(JobNumbers)
}
