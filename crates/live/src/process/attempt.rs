//! The thread that sees to one attempt.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread;

use miserly_launch::{Found, LaunchError, Reply, Shim, TellError, launch};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use tokio::sync::mpsc::UnboundedSender;

use super::{Home, folder, order, outcome};
use crate::clock::Clock;
use crate::engine::{Action, Attempt, Input, Launch, Outcome};
use crate::model::Failure;

/// A shim that dies as it begins is tried again as long as its job has been started less often than this.
const TRIES: u32 = 3;

/// How a thread begins.
pub(super) enum Begin {
    /// By launching it.
    Launch(Box<Launch>),
    /// With a shim that was found alive.
    Alive(Box<Shim>),
    /// With a shim whose job nobody knows and which was told to end it: nothing is reported, and its folder goes.
    Unknown(Box<Shim>),
    /// With nothing: it is over, and that was reported.
    Over,
}

/// Gets the thread to look at what it is told.
#[derive(Clone, Debug)]
pub(super) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(super) fn wake(&self) {
        // It is full only if the thread has not looked since very many times, and then it will.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

pub(super) struct Worker {
    home: Home,
    attempt: Attempt,
    orders: mpsc::Receiver<Action>,
    waker: Waker,
    reports: UnboundedSender<Input>,
}

impl Worker {
    /// Begins a thread; returns how to tell it what to do.
    pub(super) fn employ(
        home: Home,
        attempt: Attempt,
        begin: Begin,
        reports: UnboundedSender<Input>,
    ) -> io::Result<(mpsc::Sender<Action>, Waker)> {
        let waker = Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        let (sender, orders) = mpsc::channel();
        let worker = Worker { home, attempt, orders, waker: waker.clone(), reports };
        let name = format!("job {}.{}", attempt.job, attempt.nth);
        thread::Builder::new().name(name).stack_size(256 * 1024).spawn(move || worker.run(begin))?;
        Ok((sender, waker))
    }

    fn run(self, begin: Begin) {
        let shim = match begin {
            // What is in the folder is another's, and so it stays: nothing there is adopted, or removed.
            Begin::Launch(_) if self.folder().exists() => return self.report(self.taken()),
            Begin::Launch(launch) => self.launch(&launch),
            Begin::Unknown(shim) => {
                self.tend(*shim);
                return super::remove(&self.folder());
            }
            Begin::Alive(shim) => Some(*shim),
            Begin::Over => None,
        };
        if let Some(shim) = shim {
            let outcome = self.tend(shim);
            self.report(outcome);
        }
        self.wait_to_forget();
    }

    fn folder(&self) -> PathBuf {
        folder(&self.home.folder, self.attempt)
    }

    fn taken(&self) -> Outcome {
        let message = format!("{} is there already", self.folder().display());
        tracing::error!("job {} cannot be launched: {message}", self.attempt.job);
        Outcome::Failed { at: self.home.clock.now(), why: Failure::System, message }
    }

    fn launch(&self, wanted: &Launch) -> Option<Shim> {
        let order = order::order(&self.home, self.attempt, wanted);
        match launch(&self.home.exe, &self.folder(), &order) {
            Ok(shim) => Some(shim),
            Err(error) => {
                tracing::warn!("job {} cannot be launched: {error}", self.attempt.job);
                // Whatever went wrong: what is certain is what is found.
                match super::found(&self.home, self.attempt) {
                    Ok(Found::Alive(shim)) => return Some(shim),
                    Ok(Found::NeverRan) if self.may_try_again(&error) => self.report(Outcome::NeverRan),
                    Ok(Found::NeverRan) | Err(_) => self.report(Outcome::Failed {
                        at: self.home.clock.now(),
                        why: Failure::System,
                        message: error.to_string(),
                    }),
                    Ok(found) => self.report(outcome(&self.home, found)),
                }
                None
            }
        }
    }

    /// Whether it may have been an accident: the shim was killed before it began. That does not go on for ever.
    fn may_try_again(&self, error: &LaunchError) -> bool {
        matches!(error, LaunchError::Died { .. }) && self.attempt.nth < TRIES
    }

    /// Does what it is told until the shim is gone.
    fn tend(&self, mut shim: Shim) -> Outcome {
        loop {
            if gone(&shim, &self.waker) {
                break;
            }
            let _ = rustix::io::read(&*self.waker.0, &mut [0_u8; 8]);
            while let Ok(action) = self.orders.try_recv() {
                self.tell(&mut shim, action);
            }
        }
        match shim.end() {
            Ok(Some(end)) => order::ended(self.home.clock, &end),
            Ok(None) | Err(_) => self.settle(shim),
        }
    }

    /// What became of an attempt whose shim left no end.
    fn settle(&self, shim: Shim) -> Outcome {
        drop(shim);
        match super::found(&self.home, self.attempt) {
            Ok(found) => outcome(&self.home, found),
            Err(error) => Outcome::Failed {
                at: self.home.clock.now(),
                why: Failure::System,
                message: error.to_string(),
            },
        }
    }

    fn tell(&self, shim: &mut Shim, action: Action) {
        let Some(told) = order::told(self.home.clock, action) else { return };
        match shim.tell(&told) {
            Ok(Reply::Done(_)) | Err(TellError::Gone) => {}
            Ok(reply) => tracing::warn!("job {}: {told:?} came to {reply:?}", self.attempt.job),
            Err(error) => tracing::warn!("job {}: {told:?} failed: {error}", self.attempt.job),
        }
    }

    fn report(&self, outcome: Outcome) {
        // Nobody listens only when the daemon ends, and then the next one finds it.
        let _ = self.reports.send(Input::Over(self.attempt, outcome));
    }

    /// Its folder goes when its end is on disk; it stays when the daemon ends before.
    fn wait_to_forget(&self) {
        while let Ok(action) = self.orders.recv() {
            if matches!(action, Action::Forget) {
                return super::remove(&self.folder());
            }
        }
    }
}

/// Waits until the shim has gone, or there is something to do; whether it has gone.
fn gone(shim: &Shim, waker: &Waker) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(shim.fd(), PollFlags::IN), PollFd::new(&*waker.0, PollFlags::IN)];
    let waited = poll(&mut fds, None);
    waited.is_ok() && !fds[0].revents().is_empty()
}
