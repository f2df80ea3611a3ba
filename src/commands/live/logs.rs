//! `miserly logs`: the past and present output of a job.

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

use super::client;
use crate::args::LogsArgs;

pub(crate) fn run(args: &LogsArgs) -> anyhow::Result<ExitCode> {
    let client = client(&args.daemon)?;
    let job = client.job(args.job)?;
    let mut output = Output::new(if args.error { job.error } else { job.output });
    if args.follow {
        follow(client, args.job, &mut output)?;
    } else if !output.pass_on()? {
        let state = if matches!(job.phase, Phase::Held | Phase::Queued) {
            "it has not started"
        } else {
            "the file is gone"
        };
        eprintln!("error: job {}: there is no {}: {state}", args.job, output.path.display());
        return Ok(ExitCode::from(1));
    }
    Ok(ExitCode::SUCCESS)
}

/// Copies the output of the job until the job has ended. A change in the folder of the file or the
/// end of the job wakes it.
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
    // The whole output exists now, whatever was read before the end of the job.
    output.pass_on()?;
    match waiting.join() {
        Ok(ended) => Ok(ended.map(drop)?),
        Err(_) => bail!("the waiting for job {job} failed"),
    }
}

/// Returns a descriptor with an event for each change of a file in the folder. The file need not
/// exist yet.
fn watch(folder: &Path) -> io::Result<OwnedFd> {
    let watched = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    inotify::add_watch(&watched, folder, WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::MOVED_TO)?;
    Ok(watched)
}

type Waiting = thread::JoinHandle<Result<(), ClientError>>;

/// Returns a descriptor that is closed at the other end when the job has ended, and the waiting
/// thread.
fn end_of(client: Client, job: i64) -> io::Result<(OwnedFd, Waiting)> {
    let (over, open) = pipe_with(PipeFlags::CLOEXEC)?;
    let waiting = thread::Builder::new().spawn(move || {
        let ended = client.wait(job).map(drop);
        drop(open);
        ended
    })?;
    Ok((over, waiting))
}

/// Blocks until a file of the folder changes or the job is over. Returns whether it is over.
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
    // The file of the event is irrelevant: the reader checks for more output in any case.
    while events.next().is_ok() {}
    Ok(is_over)
}

/// A growing file, and the number of its bytes that were copied.
struct Output {
    path: PathBuf,
    passed: u64,
}

impl Output {
    const fn new(path: PathBuf) -> Output {
        Output { path, passed: 0 }
    }

    /// Copies the new part of the file and returns whether the file exists. A file that a new run
    /// of the job truncated is copied from its beginning.
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
