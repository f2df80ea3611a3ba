//! An output file of a job, which grows.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};
use miserly_api::client::{Client, ClientError};
use miserly_api::model::{JobView, OutputRequest, ProblemCode};
use miserly_live::open_output;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::pipe::{PipeFlags, pipe_with};

use super::client as client_of;
use super::visible::Visible;
use crate::args::DaemonArgs;

/// The pause between two looks at a file that only the daemon can read.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// The pause before another request to a daemon that is away.
pub(crate) const AWAY: Duration = Duration::from_secs(1);

/// A growing file, and the length that was copied.
pub(super) struct OutputFile {
    pub(super) path: PathBuf,
    pub(super) passed: u64,
    daemon: DaemonArgs,
    job: i64,
    /// The user of the job.
    uid: u32,
    /// Whether it is the file of the error output.
    error: bool,
    /// Whether it is copied to standard error.
    to_error: bool,
    /// Makes control characters visible, for a terminal.
    visible: Option<Visible>,
    /// Reads in place of this process, which may not.
    through: Option<Client>,
}

impl OutputFile {
    /// Returns an output file of a job, or its error output. `None` if it is another user's.
    pub(super) fn for_job(job: &JobView, error: bool, daemon: &DaemonArgs) -> Option<OutputFile> {
        let path = if error { job.error.clone() } else { job.output.clone() }?;
        let (job, uid, daemon) = (job.number, job.uid, daemon.clone());
        let (to_error, visible, through) = (false, None, None);
        Some(OutputFile { path, passed: 0, daemon, job, uid, error, to_error, visible, through })
    }

    /// Makes control characters visible, which another user may have written.
    pub(super) fn with_visible_controls(self) -> OutputFile {
        OutputFile { visible: Some(Visible::default()), ..self }
    }

    /// Copies it to standard error.
    pub(super) fn on_standard_error(self) -> OutputFile {
        OutputFile { to_error: true, ..self }
    }

    /// Copies the new content. Returns whether the file exists. A shorter file was truncated by another attempt of the job, and
    /// is copied from its beginning.
    ///
    /// A file that this process may not read is read by the daemon.
    pub(super) fn pass_on(&mut self) -> anyhow::Result<bool> {
        if let Some(client) = self.through.take() {
            let exists = self.pass_on_through(&client);
            self.through = Some(client);
            return exists;
        }
        let place = || format!("cannot read {}", self.path.display());
        let mut file = match open_output(&self.path, self.uid) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return self.read_through_daemon(error);
            }
            opened => opened.with_context(place)?,
        };
        if file.metadata().with_context(place)?.len() < self.passed {
            self.passed = 0;
        }
        file.seek(SeekFrom::Start(self.passed)).with_context(place)?;
        let copied = self.copy(&mut file)?;
        self.passed += copied;
        Ok(true)
    }

    /// Lets the daemon read from now on. If it does not, the error is that of this process.
    fn read_through_daemon(&mut self, denied: io::Error) -> anyhow::Result<bool> {
        let client = client_of(&self.daemon)?;
        let exists = match self.pass_on_through(&client) {
            Err(error) if is_refused(&error) => {
                return Err(denied).with_context(|| format!("cannot read {}", self.path.display()));
            }
            other => other?,
        };
        self.through = Some(client);
        Ok(exists)
    }

    /// Copies the output that the daemon reads. Returns whether the file exists.
    fn pass_on_through(&mut self, client: &Client) -> anyhow::Result<bool> {
        loop {
            let request = OutputRequest { from: self.passed, error: self.error };
            let part = match client.output(self.job, &request) {
                Err(ClientError::Refused(problem)) if problem.code == ProblemCode::NotFound => {
                    return Ok(false);
                }
                other => other?,
            };
            if part.length < self.passed {
                self.passed = 0;
                continue;
            }
            if part.bytes.is_empty() {
                return Ok(true);
            }
            // A later failure leaves no part to be copied again.
            let copied = self.copy(&mut &part.bytes[..])?;
            self.passed += copied;
        }
    }

    fn copy(&mut self, from: &mut impl Read) -> anyhow::Result<u64> {
        fn copy(from: &mut impl Read, visible: Option<&mut Visible>, mut to: impl Write) -> io::Result<u64> {
            let copied = match visible {
                Some(visible) => visible.copy(from, &mut to)?,
                None => io::copy(from, &mut to)?,
            };
            to.flush()?;
            Ok(copied)
        }
        let visible = self.visible.as_mut();
        if self.to_error {
            return Ok(copy(from, visible, io::stderr().lock())?);
        }
        Ok(copy(from, visible, io::stdout().lock())?)
    }

    /// Copies the output until the job has ended. Changes in the file's folder, and the end of the job, wake it. With `patient`,
    /// a daemon that is away is waited for.
    pub(super) fn follow(&mut self, patient: bool) -> anyhow::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("/")).to_owned();
        let watched = match watch(&folder) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => None,
            watched => Some(watched.with_context(|| format!("cannot watch {}", folder.display()))?),
        };
        let (over, waiting) = end_of(client_of(&self.daemon)?, self.job, patient)?;
        loop {
            self.pass_on_patiently(patient)?;
            if changed_or_over(watched.as_ref().filter(|_| self.through.is_none()), &over)? {
                break;
            }
        }
        // The output is complete now, even if the last read was before the end.
        self.pass_on_patiently(patient)?;
        match waiting.join() {
            Ok(ended) => Ok(ended.map(drop)?),
            Err(_) => bail!("waiting for job {} failed", self.job),
        }
    }

    fn pass_on_patiently(&mut self, patient: bool) -> anyhow::Result<()> {
        loop {
            match self.pass_on() {
                Err(error) if patient && error.downcast_ref().is_some_and(is_away) => thread::sleep(AWAY),
                other => return other.map(drop),
            }
        }
    }
}

fn is_refused(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClientError::Refused(_)))
}

/// Returns whether another daemon may answer soon.
pub(crate) fn is_away(error: &ClientError) -> bool {
    match error {
        ClientError::NoDaemon { .. } | ClientError::Gone { .. } | ClientError::Silent { .. } => true,
        ClientError::Refused(problem) => problem.code == ProblemCode::Unavailable,
        _ => false,
    }
}

/// Returns a descriptor with the events of all files in the folder, including files that do not
/// exist yet.
fn watch(folder: &Path) -> io::Result<OwnedFd> {
    let watched = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    inotify::add_watch(&watched, folder, WatchFlags::CREATE | WatchFlags::MODIFY | WatchFlags::MOVED_TO)?;
    Ok(watched)
}

pub(super) type Waiting = thread::JoinHandle<Result<JobView, ClientError>>;

/// Starts a thread that waits for the end of the job. Returns it with a descriptor that is closed
/// at the end. With `patient`, a daemon that is away is waited for.
pub(super) fn end_of(client: Client, job: i64, patient: bool) -> io::Result<(OwnedFd, Waiting)> {
    let (over, open) = pipe_with(PipeFlags::CLOEXEC)?;
    let waiting = thread::Builder::new().spawn(move || {
        let ended = loop {
            match client.wait(job) {
                Err(error) if patient && is_away(&error) => thread::sleep(AWAY),
                ended => break ended,
            }
        };
        drop(open);
        ended
    })?;
    Ok((over, waiting))
}

/// Waits until a file of the folder has changed or the job has ended. Returns whether the job has
/// ended. Without a folder it waits for a while.
fn changed_or_over(watched: Option<&OwnedFd>, over: &OwnedFd) -> io::Result<bool> {
    let mut polled = vec![PollFd::from_borrowed_fd(over.as_fd(), PollFlags::IN)];
    polled.extend(watched.map(|watched| PollFd::new(watched, PollFlags::IN)));
    match poll(&mut polled, watched.is_none().then_some(&PAUSE)) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(false),
        Err(error) => return Err(error.into()),
    }
    let is_over = !polled[0].revents().is_empty();
    if let Some(watched) = watched {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(watched, &mut buffer);
        // The file of the event does not matter: the next read finds any new content.
        while events.next().is_ok() {}
    }
    Ok(is_over)
}
