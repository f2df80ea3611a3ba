//! The arguments of `miserly submit`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use jiff::{Timestamp, Zoned};
use miserly_api::model::{Array, Condition, EarlySignal, MailEvent, Retry};
use miserly_api::submit::{
    Export, Memory, SubmitOptions, after, array, early_signal, gpus, instant, length_of_time, mail_address,
    mail_events, memory, retry,
};

use super::DaemonArgs;

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
    #[arg(long, short, visible_alias = "mem", value_name = "SIZE", value_parser = memory)]
    pub(crate) memory: Option<u64>,

    /// The memory for each processor, such as 512MiB or 8GiB
    #[arg(long, visible_alias = "mem-per-cpu", value_name = "SIZE", value_parser = memory, conflicts_with = "memory")]
    pub(crate) memory_per_cpu: Option<u64>,

    /// The number of GPUs; the job gets their indexes in CUDA_VISIBLE_DEVICES
    #[arg(long, short = 'G', value_name = "N", value_parser = gpus)]
    pub(crate) gpus: Option<u64>,

    /// The queue [default: the first one]
    #[arg(long, visible_short_alias = 'p', visible_alias = "partition", value_name = "QUEUE")]
    pub(crate) queue: Option<String>,

    /// The reservation, in place of a queue; miserly reservation list lists them
    #[arg(long, value_name = "NAME")]
    pub(crate) reservation: Option<String>,

    /// The job name [default: the name of the program]
    #[arg(long, short, visible_short_alias = 'J', visible_alias = "job-name", value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The earliest start: 2026-03-01T08:00, 08:00 (the next one), +2h, tomorrow
    #[arg(long, visible_short_alias = 'b', value_name = "WHEN", value_parser = when)]
    pub(crate) begin: Option<Timestamp>,

    /// The latest end, in the notation of --begin; the job is refused if it cannot end by then
    #[arg(long, value_name = "WHEN", value_parser = when)]
    pub(crate) deadline: Option<Timestamp>,

    /// The jobs that must end first: 12,13 with any result, ok:12 with success, notok:12 with failure, each-ok:ARRAY with
    /// success of the job with the same index; ok:name=NAME takes the newest job of that name. Kinds can be mixed, such as
    /// ok:12,13,notok:14. The notation of sbatch (afterok:12:13) works, too
    #[arg(long, visible_alias = "dependency", value_name = "CONDITIONS", value_parser = conditions)]
    pub(crate) after: Option<Conditions>,

    /// The indices of an array, such as 0-15, 0-15:4 or 1,3,5-9; with %4, at most 4 of its jobs run at the same time. Each
    /// job gets its index in MISERLY_ARRAY_INDEX
    #[arg(long, short, value_name = "INDICES", value_parser = array)]
    pub(crate) array: Option<Array>,

    /// Lets the scheduler stop the job and start it again from the beginning
    #[arg(long, visible_alias = "requeue")]
    pub(crate) restartable: bool,

    /// Runs the job again after a failure, at most N times; with N:75,111 only after these exit codes
    #[arg(long, value_name = "N[:CODE,...]", value_parser = retry)]
    pub(crate) retry: Option<Retry>,

    /// Sends the job a signal before the end of its window: USR1@5min, or with seconds USR1@300 [default time: 60 seconds]; with
    /// B: before it only to the main process
    #[arg(long, value_name = "[B:]SIGNAL[@TIME]", value_parser = early_signal)]
    pub(crate) signal: Option<EarlySignal>,

    /// Asks for a mail on these events, which miserly hook --mail sends: begin, end, fail, moved, all, none
    #[arg(long, visible_alias = "mail-type", value_name = "EVENT,...", value_parser = events)]
    pub(crate) mail: Option<Events>,

    /// The address of the mail [default: the user]
    #[arg(long, visible_alias = "mail-user", value_name = "ADDRESS", value_parser = mail_address)]
    pub(crate) mail_to: Option<String>,

    /// Runs the job in its window only, not ahead of its promised start
    #[arg(long)]
    pub(crate) no_opportunistic: bool,

    /// Holds the job until it is released
    #[arg(long, visible_short_alias = 'H')]
    pub(crate) hold: bool,

    /// The file of the standard input, with the % codes of --output [default: the input is empty]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,

    /// The output file; %j is the job number, %A the array number, %a the array index, %x the job name
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// The file of the error output, with the same % codes [default: the output file]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) error: Option<PathBuf>,

    /// The working folder of the job [default: the current folder]
    #[arg(long, short, visible_short_alias = 'D', visible_alias = "chdir", value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// The environment of the job: ALL, NONE, or a list of NAME and NAME=VALUE, separated by commas [default: ALL]
    #[arg(long, value_name = "WHAT", value_parser = Export::parse)]
    pub(crate) export: Option<Export>,
}

/// Events of a mail. A newtype, because clap would make a repeated option of a plain vector.
#[derive(Clone, Debug)]
pub(crate) struct Events(Vec<MailEvent>);

fn events(text: &str) -> Result<Events, String> {
    mail_events(text).map(Events)
}

/// Conditions on other jobs. A newtype, because clap would make a repeated option of a plain vector.
#[derive(Clone, Debug)]
pub(crate) struct Conditions(Vec<Condition>);

impl OptionArgs {
    /// Returns the given options.
    pub(crate) fn options(&self) -> SubmitOptions {
        let per_cpu = self.memory_per_cpu.map(Memory::PerCpu);
        // A missing flag leaves the setting to the script.
        let flag = |set: bool| set.then_some(true);
        SubmitOptions {
            tasks: None,
            name: self.name.clone(),
            cpus: self.cpus,
            memory: self.memory.map(Memory::Job).or(per_cpu),
            time: self.time,
            queue: self.queue.clone(),
            reservation: self.reservation.clone(),
            begin: self.begin,
            deadline: self.deadline,
            after: self.after.clone().map(|Conditions(conditions)| conditions),
            array: self.array.clone(),
            restartable: flag(self.restartable),
            retry: self.retry.clone(),
            gpus: self.gpus,
            mail: self.mail.clone().map(|Events(events)| events),
            mail_to: self.mail_to.clone(),
            signal: self.signal,
            no_opportunistic: flag(self.no_opportunistic),
            hold: flag(self.hold),
            input: self.input.clone(),
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

fn conditions(text: &str) -> Result<Conditions, String> {
    after(text).map(Conditions)
}
