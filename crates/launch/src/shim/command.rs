//! The program that becomes the command. What may take long, or never end, happens here: the shim can kill it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::Mode;
use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setpriority_process, setrlimit,
    setsid, umask,
};

use super::main_process::Word;
use crate::end::Failure;
use crate::folder::{self, Folder};
use crate::order::{Order, Output};
use crate::sys;

/// Gets ready, waits for the word of the shim, and becomes the command. It returns only if it does not.
pub(super) fn become_it(dir: &Path) -> Result<(), String> {
    let stream =
        UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?);
    if let Err(failure) = leave(&stream, dir) {
        // Without a shim there is nobody to tell.
        let _ = say(&stream, &Word::Failed(failure));
    }
    Ok(())
}

/// Does not outlive the shim, leads a session, and goes on when the shim says so.
fn leave(stream: &UnixStream, dir: &Path) -> Result<(), Failure> {
    let own = || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        setsid()?;
        sys::default_signals();
        say(stream, &Word::Here)
    };
    own().map_err(|error| setup("a session", &error))?;
    let folder = Folder::open(dir).map_err(|error| setup("its folder", &error))?;
    let order = folder.read::<Order>(folder::ORDER).map_err(|error| setup("its order", &error))?;
    // No word: the shim died before the signal of its death was ordered, or now.
    match (order, told_to_go(stream)) {
        (Some(order), true) => Err(run(&folder, &order)),
        _ => Err(Failure::Ended),
    }
}

fn say(mut stream: &UnixStream, word: &Word) -> io::Result<()> {
    stream.write_all(format!("{}\n", serde_json::to_string(word)?).as_bytes())
}

fn told_to_go(stream: &UnixStream) -> bool {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).is_ok_and(|read| read > 0)
}

/// Runs the command; why it could not.
fn run(folder: &Folder, order: &Order) -> Failure {
    match prepare(order).and_then(|outputs| Ok((command(folder, order)?, outputs))) {
        Ok(((mut command, path), (stdout, stderr))) => {
            let error = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).exec();
            Failure::Program { path, error: error.to_string() }
        }
        Err(failure) => failure,
    }
}

/// All that a command inherits but its arguments and environment; its outputs.
fn prepare(order: &Order) -> Result<(File, File), Failure> {
    umask(Mode::from_raw_mode(order.umask));
    let folder = |error: io::Error| Failure::Folder { path: order.cwd.clone(), error: error.to_string() };
    std::env::set_current_dir(&order.cwd).map_err(folder)?;
    let stdout = open(&order.stdout)?;
    let stderr = match &order.stderr {
        Some(output) => open(output)?,
        None => stdout.try_clone().map_err(|error| setup("its outputs", &error))?,
    };
    if order.nice > 0 {
        setpriority_process(None, order.nice).map_err(|error| setup("its nice", &error))?;
    }
    limit(Resource::Core, order.limits.core).map_err(|error| setup("the limit of its core file", &error))?;
    limit(Resource::Data, order.limits.memory).map_err(|error| setup("its memory limit", &error))?;
    files(order.limits.files).map_err(|error| setup("its limit of open files", &error))?;
    Ok((stdout, stderr))
}

fn open(output: &Output) -> Result<File, Failure> {
    let mut options = OpenOptions::new();
    options.create(true).append(output.append).write(true).truncate(!output.append);
    let failed = |error: io::Error| Failure::Output { path: output.path.clone(), error: error.to_string() };
    options.open(&output.path).map_err(failed)
}

/// Lowers a limit for good.
fn limit(resource: Resource, bytes: Option<u64>) -> io::Result<()> {
    let Some(bytes) = bytes else { return Ok(()) };
    let most = getrlimit(resource).maximum.map_or(bytes, |most| most.min(bytes));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Sets how many files may be open, unless the job asks for more.
fn files(soft: Option<u64>) -> io::Result<()> {
    let Some(soft) = soft else { return Ok(()) };
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(maximum.map_or(soft, |most| most.min(soft)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum })?)
}

/// The command, and the file that it names.
fn command(folder: &Folder, order: &Order) -> Result<(Command, PathBuf), Failure> {
    let (program, arguments) = match (&order.script, order.argv.split_first()) {
        (Some(text), _) => {
            let script = folder.write_script(text).map_err(|error| setup("its script", &error))?;
            (script, order.argv.as_slice())
        }
        (None, Some((program, arguments))) => (program.into(), arguments),
        (None, None) => return Err(setup("its command", &"there is none")),
    };
    let mut command = Command::new(&program);
    command.args(arguments).env_clear().envs(order.env.iter().map(|(name, value)| (name, value)));
    Ok((command, program))
}

fn setup(what: &str, error: &dyn ToString) -> Failure {
    Failure::Setup { what: what.to_owned(), error: error.to_string() }
}
