//! `miserly logs`: the output of a job, also while it runs.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, bail};
use miserly_api::client::{Client, ClientError};
use miserly_api::model::Phase;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::client as client_of;
use super::job_lists::{self, Scope};
use crate::args::{JobList, LogsArgs};
use crate::colour::message_head;
use crate::failure::print_failure;
use crate::output::print;

pub(crate) fn run(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let client = client_of(&args.daemon)?;
    let numbers = job_lists::numbers(&client, &JobList::all(&args.jobs), Scope::All, false)?;
    if let [job] = numbers[..] {
        return logs(client, args, job);
    }
    if args.follow {
        bail!("--follow: give one job, not {}", numbers.len());
    }
    let mut code = ExitCode::SUCCESS;
    for (nth, job) in numbers.into_iter().enumerate() {
        let gap = if nth > 0 { "\n" } else { "" };
        print(&format!("{gap}==> job {job} <==\n"))?;
        let client = client_of(&args.daemon)?;
        match logs(client, args, job) {
            Ok(one) if one == ExitCode::SUCCESS => {}
            Ok(_) => code = ExitCode::from(1),
            Err(error) => {
                print_failure(false, Some(job), &error);
                code = ExitCode::from(1);
            }
        }
    }
    Ok(code)
}

/// Prints the output of one job.
fn logs(client: Client, args: &LogsArgs, number: i64) -> anyhow::Result<ExitCode> {
    let job = client.job(number)?;
    let Some(path) = (if args.error { job.error } else { job.output }) else {
        bail!("job {number} is another user's; only that user, root and the daemon's user read its output")
    };
    let mut output = Output::new(path);
    if args.follow {
        follow(client, number, &mut output)?;
    } else if !output.pass_on()? {
        let state = if matches!(job.phase, Phase::Held | Phase::Queued) {
            "it has not started"
        } else {
            "the file is gone"
        };
        let (error, path) = (message_head("error"), output.path.display());
        note!("{error} job {number}: there is no {path}: {state}");
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}

/// Copies the output of a job until the job has ended. Changes in the file's folder, and the
/// daemon's reply at the end, wake it.
fn follow(client: Client, job: i64, output: &mut Output) -> anyhow::Result<()> {
    let folder = output.path.parent().unwrap_or(Path::new("/")).to_owned();
    let watched = watch(&folder).with_context(|| format!("cannot watch {}", folder.display()))?;
    let (over, waiting) = end_of(client, job)?;
    loop {
        output.pass_on()?;
        if changed_or_over(&watched, &over)? {
            break;
        }
    }
    // The output is complete now, even if the last read was before the end.
    output.pass_on()?;
    match waiting.join() {
        Ok(ended) => Ok(ended.map(drop)?),
        Err(_) => bail!("waiting for job {job} failed"),
    }
}

/// Returns a descriptor with the events of all files in the folder, including files that do not
/// exist yet.
fn watch(folder: &Path) -> io::Result<OwnedFd> {
    let watched = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    inotify::add_watch(&watched, folder, WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::MOVED_TO)?;
    Ok(watched)
}

type Waiting = thread::JoinHandle<Result<(), ClientError>>;

/// Starts a thread that waits for the end of the job. Returns it with a descriptor that is closed
/// at the end.
fn end_of(client: Client, job: i64) -> io::Result<(OwnedFd, Waiting)> {
    let (over, open) = pipe_with(PipeFlags::CLOEXEC)?;
    let waiting = thread::Builder::new().spawn(move || {
        let ended = client.wait(job).map(drop);
        drop(open);
        ended
    })?;
    Ok((over, waiting))
}

/// Waits until a file of the folder has changed or the job has ended. Returns whether the job has
/// ended.
fn changed_or_over(watched: &OwnedFd, over: &OwnedFd) -> io::Result<bool> {
    let mut both =
        [PollFd::new(watched, PollFlags::IN), PollFd::from_borrowed_fd(over.as_fd(), PollFlags::IN)];
    match poll(&mut both, None) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let is_over = !both[1].revents().is_empty();
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(watched, &mut buffer);
    // The file of the event does not matter: the next read finds any new content.
    while events.next().is_ok() {}
    Ok(is_over)
}

/// A growing file, and the length that was copied.
struct Output {
    path: PathBuf,
    passed: u64,
}

impl Output {
    const fn new(path: PathBuf) -> Output {
        Output { path, passed: 0 }
    }

    /// Copies the new content to standard output. Returns whether the file exists. A shorter file
    /// was truncated by another attempt of the job, and is copied from its beginning.
    fn pass_on(&mut self) -> anyhow::Result<bool> {
        let place = || format!("cannot read {}", self.path.display());
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened.with_context(place)?,
        };
        if file.metadata().with_context(place)?.len() < self.passed {
            self.passed = 0;
        }
        file.seek(SeekFrom::Start(self.passed)).with_context(place)?;
        self.passed += copy(&mut file)?;
        Ok(true)
    }
}

fn copy(file: &mut impl Read) -> anyhow::Result<u64> {
    let mut out = io::stdout().lock();
    let copied = io::copy(file, &mut out)?;
    out.flush()?;
    Ok(copied)
}
