//! The arguments of the commands that talk to the daemon.

mod hook;

mod modify;

mod queue;

mod reservation;

mod session;

mod slurm_names;

mod submit;

mod usage;

use clap::{Args, Subcommand, value_parser};
use miserly_api::model::{JobRef, JobSignal, job_refs};
use miserly_api::submit::{count, job_signal, length_of_time};

pub(crate) use self::hook::{HOOK_EVENTS, HookArgs};
pub(crate) use self::modify::ModifyArgs;
pub(crate) use self::queue::{Column, QueueArgs, SortKey, StateFilter};
pub(crate) use self::reservation::{AddArgs, RemoveArgs, ReservationArgs, ReservationCommand};
pub(crate) use self::session::{AllocArgs, AttachArgs, RunJobArgs};
pub(crate) use self::slurm_names::{SlurmNamesArgs, SlurmNamesCommand};
pub(crate) use self::submit::SubmitArgs;
pub(crate) use self::usage::UsageArgs;
use super::ExportArgs;
use super::daemon::{BackupArgs, ReplayArgs, ServeArgs, ShadowArgs, ShimArgs};
use super::socket::DaemonArgs;

/// The daemon, and the commands that talk to it.
#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Schedules jobs on this machine; each accepted job gets a promised start and end
    Daemon(ServeArgs),
    /// Tells what another policy would have done on the daemon's queues
    Shadow(ShadowArgs),
    /// Replays the daemon's journal in the simulator and compares every decision
    Replay(ReplayArgs),
    /// Supervises one attempt of a job; started by the daemon
    #[command(hide = true)]
    Shim(ShimArgs),
    /// Submits a job or an array to the daemon and prints the promise
    Submit(Box<SubmitArgs>),
    /// Runs a job with this command's input and output, or on this terminal, and exits with its exit code
    Run(Box<RunJobArgs>),
    /// Opens a shell in a window of its own, on this terminal
    Alloc(Box<AllocArgs>),
    /// Attaches to the terminal or the input of a job that runs
    ///
    /// A client that is attached is replaced. Enter ~ . detaches from a terminal, also Enter ~ d, since ssh takes the former.
    Attach(AttachArgs),
    /// Lists jobs with their promises
    Queue(QueueArgs),
    /// Shows jobs: their states, their promises, and why they wait
    Show(ShowArgs),
    /// Prints the output of jobs
    Logs(LogsArgs),
    /// Waits until jobs have ended and exits with their exit code
    Wait(JobsArgs),
    /// Ends running jobs and withdraws waiting ones
    Cancel(CancelArgs),
    /// Holds waiting jobs; they lose their windows
    Hold(TakeBackArgs),
    /// Releases held jobs; they get new windows
    Release(ReleaseArgs),
    /// Ends running jobs and queues them again
    Requeue(TakeBackArgs),
    /// Extends the windows of jobs, unless that breaks a promise
    Extend(ExtendArgs),
    /// Sends a signal to running jobs
    Signal(SignalArgs),
    /// Changes the most processors that resizable jobs want
    Resize(ResizeArgs),
    /// Stops running jobs in their windows, which go on; resume lets them continue
    Pause(JobsArgs),
    /// Lets paused jobs continue
    Resume(JobsArgs),
    /// Changes waiting jobs: time, processors, memory, queue, name, bounds, place; unless that breaks a promise
    ///
    /// On a terminal it shows the new promise and asks first. A job that requests no more than before keeps its place in the
    /// queue. Any other counts as submitted now.
    Modify(Box<ModifyArgs>),
    /// Draws the free resources of each pool over time
    Pools(AskArgs),
    /// Reserves resources for users or groups at some times
    Reservation(ReservationArgs),
    /// Shows the limits of your jobs, and their use
    Limits(AskArgs),
    /// Sums up what the finished jobs of the daemon had and used, by user, queue, name, day or month
    Usage(UsageArgs),
    /// Shows the state of the daemon
    Status(AskArgs),
    /// Prints the unfinished jobs, and then each change of a job, as lines of JSON
    ///
    /// It runs until the daemon ends.
    Events(EventsArgs),
    /// Runs a program at each event of jobs: a mail at the end, a message when a promise moves
    ///
    /// It runs until it is interrupted, beside the daemon, which never waits for it. A failure of the program is reported. After a
    /// break of the connection it goes on where it was.
    Hook(HookArgs),
    /// Prints the metrics of the daemon for Prometheus
    ///
    /// They name queues, and no users and no jobs.
    Metrics(DaemonArgs),
    /// Stops the daemon from accepting jobs; it keeps its promises
    Drain(DrainArgs),
    /// Ends the daemon; its jobs continue
    ///
    /// The command returns when the daemon has ended. Only the daemon's user and root can end it.
    Stop(StopArgs),
    /// Lets the daemon read its configuration again
    ///
    /// The command waits for the outcome, and prints why the daemon keeps the old one. Only the daemon's user and root can do this.
    Reload(DaemonArgs),
    /// Writes the history of the daemon's jobs as a log or a table
    Export(ExportArgs),
    /// Writes a checked copy of the daemon's state, also while the daemon runs
    ///
    /// It prints the path of the copy. `miserly daemon --restore FILE` restores it.
    Backup(BackupArgs),
    /// Makes links with the names of Slurm's commands, so that programs which call sbatch use the daemon
    SlurmNames(SlurmNamesArgs),
}

/// Jobs in one argument, with commas between them.
#[derive(Clone, Debug)]
pub(crate) struct JobList(Vec<JobRef>);

impl JobList {
    /// Returns the jobs of several arguments.
    pub(crate) fn all(lists: &[JobList]) -> Vec<JobRef> {
        lists.iter().flat_map(|JobList(ranges)| ranges).cloned().collect()
    }
}

fn job_list(text: &str) -> Result<JobList, String> {
    job_refs(text).map(JobList)
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// Prints everything: all promises, attempts and what is not enforced, with dates and seconds
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) long: bool,
}

#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    /// The jobs: numbers, ranges such as 10-20, indexes of an array such as 1_60 or 1[3-8]; a range skips numbers without a job
    #[arg(value_name = "JOB", required = true, value_parser = job_list)]
    pub(crate) jobs: Vec<JobList>,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SignalArgs {
    /// The signal: HUP, INT, QUIT, USR1, USR2, ALRM, TERM, WINCH, or its number
    #[arg(value_name = "SIGNAL", value_parser = job_signal)]
    pub(crate) signal: JobSignal,

    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// Sends it only to the main process: the program, or the shell of the script
    #[arg(long)]
    pub(crate) main: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ResizeArgs {
    /// The processors that the jobs want: at most those of their submission
    #[arg(value_name = "CPUS", value_parser = count)]
    pub(crate) cpus: u64,

    #[command(flatten)]
    pub(crate) jobs: JobsArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TakeBackArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// Breaks the promises to jobs that wait for these; without it the request is refused
    #[arg(long)]
    pub(crate) move_promises: bool,

    /// Prints the promises that would move, and changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) jobs: JobsArgs,

    /// Prints the promises that the jobs would get, each on its own, and changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("filter").multiple(true))]
pub(crate) struct CancelArgs {
    /// The jobs: numbers, ranges such as 10-20, indexes of an array such as 1_60 or 1[3-8]; a range skips jobs that have ended
    #[arg(value_name = "JOB", required_unless_present = "filter", conflicts_with = "filter", value_parser = job_list)]
    pub(crate) jobs: Vec<JobList>,

    /// Takes the numbers as arrays and cancels all their jobs
    #[arg(long, conflicts_with = "filter")]
    pub(crate) array: bool,

    /// Cancels all your unfinished jobs, or those of them that the other filters admit
    #[arg(long, visible_alias = "me", group = "filter", help_heading = "Filters")]
    pub(crate) mine: bool,

    /// Cancels the unfinished jobs of a user, by name or number; for operators, if it is another user
    #[arg(
        long,
        short,
        value_name = "USER",
        conflicts_with = "mine",
        group = "filter",
        help_heading = "Filters"
    )]
    pub(crate) user: Option<String>,

    /// Limits the jobs to a queue; yours, without --user
    #[arg(
        long,
        visible_short_alias = 'p',
        visible_alias = "partition",
        value_name = "QUEUE",
        group = "filter",
        help_heading = "Filters"
    )]
    pub(crate) queue: Option<String>,

    /// Limits the jobs to these states, separated by commas; yours, without --user
    #[arg(
        long,
        visible_short_alias = 't',
        value_name = "STATE",
        value_enum,
        ignore_case = true,
        value_delimiter = ',',
        group = "filter",
        help_heading = "Filters"
    )]
    pub(crate) state: Vec<StateFilter>,

    /// Limits the jobs to this name, in which * is any text and ? any character; yours, without --user
    #[arg(long, short, value_name = "NAME", group = "filter", help_heading = "Filters")]
    pub(crate) name: Option<String>,

    /// Prints the promises that would move, each job on its own, and changes nothing
    #[arg(long, conflicts_with = "array")]
    pub(crate) dry_run: bool,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExtendArgs {
    /// The jobs: numbers, ranges such as 10-20, indexes of an array such as 1_60 or 1[3-8]; a range skips jobs that have ended
    #[arg(value_name = "JOB", required = true, num_args = 1.., value_parser = job_list)]
    pub(crate) jobs: Vec<JobList>,

    /// The added time: seconds, or 90min, 12h, 7d
    #[arg(value_name = "TIME", value_parser = length_of_time)]
    pub(crate) by: u64,

    /// Prints the promises that would move, and changes nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The jobs: numbers, ranges such as 10-20, indexes of an array such as 1_60 or 1[3-8]; a range skips numbers without a job
    #[arg(value_name = "JOB", required = true, value_parser = job_list)]
    pub(crate) jobs: Vec<JobList>,

    /// Continues until the job has ended; with one job only
    #[arg(long, short)]
    pub(crate) follow: bool,

    /// Prints the error output instead of the output
    #[arg(long, short)]
    pub(crate) error: bool,

    /// Prints control characters as they are; a terminal gets them in a visible form such as ^[ otherwise
    #[arg(long)]
    pub(crate) raw: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

/// The options of a request about the daemon itself.
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// Prints JSON
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// The number of the last known event (its journal): prints the changes after it, without a snapshot if the daemon remembers them
    #[arg(long, value_name = "N", value_parser = value_parser!(i64).range(0..))]
    pub(crate) after: Option<i64>,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

#[derive(Debug, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    pub(crate) daemon: DaemonArgs,

    /// Starts no promised job without the daemon: the shims that wait for windows end before it; for operators
    #[arg(long)]
    pub(crate) hold: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    /// Accepts jobs again
    #[arg(long)]
    pub(crate) undo: bool,

    #[command(flatten)]
    pub(crate) ask: AskArgs,
}

impl DaemonCommand {
    /// Returns whether it handles signals itself. Those of sessions read signals, and restore the terminal.
    pub(crate) fn handles_signals(&self) -> bool {
        matches!(
            self,
            DaemonCommand::Daemon(_)
                | DaemonCommand::Shim(_)
                | DaemonCommand::Events(_)
                | DaemonCommand::Run(_)
                | DaemonCommand::Alloc(_)
                | DaemonCommand::Attach(_)
        )
    }

    /// Returns whether it is a request to the daemon, if it has JSON output.
    pub(crate) fn asks(&self) -> bool {
        !matches!(self, DaemonCommand::Daemon(_) | DaemonCommand::Shadow(_) | DaemonCommand::Replay(_))
    }
}

/// Returns the parser of a job number.
fn job() -> clap::builder::RangedI64ValueParser<i64> {
    value_parser!(i64).range(1..)
}

/// Parses one job: its number, or the number of its array with its index.
fn one_job(text: &str) -> Result<JobRef, String> {
    let job: JobRef = text.parse()?;
    if job.is_single() { Ok(job) } else { Err("name one job, such as 12 or 1_60".to_owned()) }
}
