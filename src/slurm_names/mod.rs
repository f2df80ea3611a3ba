//! Slurm's commands as names of this program: `sbatch`, `squeue`, `scancel`, `sacct`, `srun`, `salloc`, `sinfo`, `scontrol`, `sstat`,
//! and lists by `sacctmgr` and `sshare`.
//!
//! A link with such a name runs [`run`]. Options are read by one table ([`options`]), which the page for users shows, too.
//! Output, exit codes and words are those of Slurm 22.05, because programs read them.

mod columns;

mod facts;

mod hostlist;

mod install;

mod jobs;

mod options;

#[cfg(test)]
mod page;

mod pmi;

mod sacct;

mod sacctmgr;

mod salloc;

mod sbatch;

mod scancel;

mod scontrol;

mod sinfo;

mod squeue;

mod srun;

mod sstat;

mod step;

mod submission;

mod tables;

mod times;

use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use miserly_api::client::{Client, ClientError, find};
use miserly_api::model::{Exit, ProblemCode};
use nix::sys::signal::Signal;

pub(crate) use self::install::run as install;
use self::options::{Class, Given, Value};
use crate::commands::talk;
use crate::output::{is_broken_pipe, print};

/// The version of Slurm whose commands these are like.
const VERSION: &str = concat!("slurm 22.05.8 (miserly ", env!("CARGO_PKG_VERSION"), ")");

/// The name of the cluster.
const CLUSTER: &str = "miserly";

/// The names, and what each runs.
const NAMES: [(&str, Command); 11] = [
    ("sbatch", sbatch::run),
    ("squeue", squeue::run),
    ("scancel", scancel::run),
    ("sacct", sacct::run),
    ("srun", srun::run),
    ("salloc", salloc::run),
    ("sinfo", sinfo::run),
    ("scontrol", scontrol::run),
    ("sstat", sstat::run),
    ("sacctmgr", sacctmgr::run),
    ("sshare", sacctmgr::shares),
];

type Command = fn(Vec<OsString>) -> anyhow::Result<ExitCode>;

/// Returns the command of Slurm as which this program is called.
pub(crate) fn called() -> Option<&'static str> {
    let own = std::env::args_os().next()?;
    let name = Path::new(&own).file_name()?;
    NAMES.iter().map(|(own, _)| *own).find(|own| OsStr::new(own) == name)
}

/// Runs a command of Slurm with the arguments of this process.
pub(crate) fn run(name: &str) -> ExitCode {
    let words = std::env::args_os().skip(1).collect();
    let Some((_, command)) = NAMES.iter().find(|(own, _)| *own == name) else { return ExitCode::FAILURE };
    match command(words) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            print_error(name, &error);
            // These three have another code for a mistake in the command line, also in the form of a value.
            let text = crate::failure::text(&error);
            let is_form = || text.starts_with("Invalid --") || text.starts_with("Invalid time ");
            let is_usage = ["sbatch", "srun", "salloc"].contains(&name) && (error.is::<Usage>() || is_form());
            if is_usage { ExitCode::from(255) } else { ExitCode::FAILURE }
        }
    }
}

/// Prints an error as Slurm's commands do.
fn print_error(name: &str, error: &anyhow::Error) {
    if let Some(Usage(message)) = error.downcast_ref() {
        note!("{name}: {message}\nTry \"{name} --help\" for more information");
        return;
    }
    let text = crate::failure::text(error);
    // Slurm prints these without its name.
    let bare = ["slurm_", "Invalid hostlist: ", "Invalid job id specified for job", "invalid keyword"];
    if bare.iter().any(|begin| text.starts_with(begin)) {
        note!("{text}");
    } else {
        note!("{name}: error: {text}");
    }
}

/// A mistake in the command line.
#[derive(Debug)]
struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Usage {}

/// Reads the words of a command line. Returns `None` if help or the version was printed.
fn given(name: &'static str, words: Vec<OsString>, stops: bool) -> anyhow::Result<Option<Given>> {
    let given = options::parse(name, words, stops).map_err(|message| {
        if message.starts_with("--") { anyhow::anyhow!(message) } else { Usage(message).into() }
    })?;
    if given.has("help") || given.has("usage") {
        print(&help(name))?;
        return Ok(None);
    }
    if given.has("version") {
        print(&format!("{VERSION}\n"))?;
        return Ok(None);
    }
    if given.has("verbose") {
        print_without_effect(name, &given);
    }
    Ok(Some(given))
}

/// Prints the given options that have no effect, and why.
fn print_without_effect(name: &str, given: &Given) {
    for (row, value) in given.options().filter(|(row, _)| row.class == Class::NoEffect) {
        let value = value.map(|value| format!("={value}")).unwrap_or_default();
        note!("{name}: --{}{value} has no effect: {}", row.long, row.note);
    }
}

/// Returns the help of a command: the table of its options.
fn help(name: &str) -> String {
    let mut text = format!("Usage: {name} [OPTIONS]\n\n");
    for row in options::rows(name) {
        let letter = row.letter.map_or_else(|| "    ".to_owned(), |letter| format!("-{letter}, "));
        let value = match row.value {
            Value::None => "",
            Value::Required => "=VALUE",
            Value::Optional => "[=VALUE]",
        };
        let effect = match row.class {
            Class::Works => "",
            Class::NoEffect => "no effect: ",
            Class::Refused => "refused: ",
        };
        text += &format!("  {letter}{:<28} {effect}{}\n", format!("--{}{value}", row.long), row.note);
    }
    text + "\nThis is miserly; docs/how-to/slurm-names.md has the differences from Slurm.\n"
}

/// Prints once, or every so many seconds with `--iterate`.
fn repeat(given: &Given, once: impl Fn() -> anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    let Some(every) = given.value("iterate") else { return once() };
    let every = every.parse().ok().filter(|secs| *secs > 0).context("--iterate: write seconds above 0")?;
    loop {
        once()?;
        std::thread::sleep(Duration::from_secs(every));
    }
}

/// Returns a client of the daemon.
fn client() -> anyhow::Result<Client> {
    talk(find(None)?)
}

/// Returns an error of the daemon after the words of Slurm for it, which programs look for.
fn refused(context: &str, error: ClientError) -> anyhow::Error {
    let known = match &error {
        ClientError::Refused(problem) if problem.message.starts_with("there is no queue") => {
            "Invalid partition name specified"
        }
        ClientError::Refused(problem) if problem.message.contains("has at most") => {
            "Requested node configuration is not available"
        }
        ClientError::Refused(problem) if problem.message.contains("to wait for") => "Job dependency problem",
        ClientError::Refused(problem) if problem.code == ProblemCode::NotFound => "Invalid job id specified",
        ClientError::Refused(problem) if problem.code == ProblemCode::Forbidden => "Access/permission denied",
        ClientError::Refused(_) => return anyhow::Error::from(error).context(context.to_owned()),
        _ => "Unable to contact slurm controller (connect failure)",
    };
    anyhow::Error::from(error).context(format!("{context}: {known}"))
}

/// Returns the short name of this machine.
pub(crate) fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.split('.').next().unwrap_or("localhost").to_owned()
}

/// Prints the end of a task as srun does, unless it succeeded.
pub(crate) fn note_end_of_task(host: &str, nth: u64, exit: Exit) {
    match exit {
        Exit::Code(0) => {}
        Exit::Code(code) => note!("srun: error: {host}: task {nth}: Exited with exit code {code}"),
        Exit::Signal(signal) => note!("srun: error: {host}: task {nth}: {}", signal_words(signal)),
    }
}

/// Returns a signal in the words of the C library, which Slurm prints.
fn signal_words(number: i32) -> String {
    let words = match Signal::try_from(number) {
        Ok(Signal::SIGHUP) => "Hangup",
        Ok(Signal::SIGINT) => "Interrupt",
        Ok(Signal::SIGQUIT) => "Quit",
        Ok(Signal::SIGILL) => "Illegal instruction",
        Ok(Signal::SIGABRT) => "Aborted",
        Ok(Signal::SIGBUS) => "Bus error",
        Ok(Signal::SIGFPE) => "Floating point exception",
        Ok(Signal::SIGKILL) => "Killed",
        Ok(Signal::SIGSEGV) => "Segmentation fault",
        Ok(Signal::SIGPIPE) => "Broken pipe",
        Ok(Signal::SIGTERM) => "Terminated",
        Ok(Signal::SIGXCPU) => "CPU time limit exceeded",
        _ => return format!("Signal {number}"),
    };
    words.to_owned()
}
