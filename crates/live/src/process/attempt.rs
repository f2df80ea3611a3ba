//! The supervising thread of one attempt.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use miserly_core::Span;
use miserly_engine::{Action, Attempt, AttemptOutcome, Input, Launch};
use miserly_launch::{FindError, FoundAttempt, LaunchError, Shim, ShimRefusal, launch};
use tokio::sync::mpsc::UnboundedSender;

use super::message::{Waker, WorkerHandle, WorkerMessage};
use super::{Home, convert, folder, outcome};
use crate::crash_point::CrashPoint;

/// The limit of attempts. A launch is retried after the death of its shim only while the job has
/// fewer attempts.
const TRIES: u32 = 3;

/// The first pause before a retry. Each pause is twice as long as the one before.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);

/// The first task of a thread.
pub(super) enum Begin {
    /// Launch the attempt.
    Launch(Box<Launch>),
    /// Find out the state of the attempt, which could not be read before.
    Find,
    /// Supervise a shim that was found alive.
    Alive(Box<Shim>),
    /// End an unknown job with this grace period. Nothing is reported, and its folder is removed.
    Unknown(Box<Shim>, Span),
    /// Only wait: the attempt is over, and its end was reported.
    Over,
}

/// The thread of an attempt.
pub(super) struct Worker {
    pub(super) home: Home,
    pub(super) attempt: Attempt,
    pub(super) messages: mpsc::Receiver<WorkerMessage>,
    pub(super) waker: Waker,
    pub(super) reports: UnboundedSender<Input>,
    /// Messages that arrived while they could not be carried out.
    pub(super) deferred: Vec<WorkerMessage>,
}

impl Worker {
    /// Starts a thread and returns its handle.
    pub(super) fn spawn(
        home: Home,
        attempt: Attempt,
        begin: Begin,
        reports: UnboundedSender<Input>,
    ) -> io::Result<WorkerHandle> {
        let waker = Waker::new()?;
        let (sender, messages) = mpsc::channel();
        let worker = Worker { home, attempt, messages, waker: waker.clone(), reports, deferred: vec![] };
        let name = format!("job {}.{}", attempt.job, attempt.nth);
        thread::Builder::new().name(name).stack_size(256 * 1024).spawn(move || worker.run(begin))?;
        Ok(WorkerHandle::new(sender, waker))
    }

    fn run(mut self, begin: Begin) {
        let shim = match begin {
            // The folder belongs to another attempt: nothing in it is adopted or removed.
            Begin::Launch(_) if self.folder().exists() => {
                let message = format!("{} is there already", self.folder().display());
                tracing::error!("job {} cannot be launched: {message}", self.attempt.job);
                return self.report(self.home.failed(message));
            }
            Begin::Launch(launch) => self.launch(&launch),
            Begin::Unknown(shim, grace) => {
                self.deferred.push(WorkerMessage::Do(Action::Kill { grace }));
                self.supervise(*shim);
                return super::remove(&self.folder());
            }
            Begin::Find => self.find_or_report(),
            Begin::Alive(shim) => Some(*shim),
            Begin::Over => None,
        };
        if let Some(shim) = shim {
            let outcome = self.supervise(shim);
            self.report(outcome);
        }
        self.wait_to_forget();
    }

    fn folder(&self) -> PathBuf {
        folder(&self.home.folder, self.attempt)
    }

    /// Launches the attempt, and retries while the machine temporarily lacks a resource.
    ///
    /// Retries end when the window has lost more than the grace. They also end at a message that
    /// requires a running job. The attempt then counts as never run, and the engine decides how to
    /// go on.
    fn launch(&mut self, wanted: &Launch) -> Option<Shim> {
        let spec = convert::spec(&self.home, self.attempt, wanted);
        let latest = wanted.end.map(|_| self.home.clock.now() + wanted.grace);
        let mut pause = FIRST;
        loop {
            CrashPoint::BeforeLaunch.pass();
            let launched = launch(&self.home.exe, &self.folder(), &spec);
            CrashPoint::AfterLaunch.pass();
            let error = match launched {
                Ok(shim) => {
                    // The receiver is gone only when the daemon ends.
                    let _ = self.reports.send(Input::Launched(self.attempt, self.home.clock.now()));
                    return Some(shim);
                }
                Err(error) => error,
            };
            tracing::warn!("job {} cannot be launched: {error}", self.attempt.job);
            // Whatever the error is, only the files show the true state.
            match self.found() {
                Ok(FoundAttempt::NeverRan) if is_temporary(&error) => {}
                Ok(FoundAttempt::NeverRan) => {
                    self.report(self.failed_launch(&error));
                    return None;
                }
                Ok(FoundAttempt::Alive(shim)) => return Some(shim),
                other => {
                    self.report(self.outcome(other));
                    return None;
                }
            }
            self.pause(&mut pause);
            let ends = |message: &WorkerMessage| {
                use Action::{BeginWindow, EndOverdue, Kill};
                matches!(message, WorkerMessage::Do(Kill { .. } | BeginWindow { .. } | EndOverdue { .. }))
            };
            if latest.is_some_and(|latest| self.home.clock.now() > latest) || self.deferred.iter().any(ends) {
                self.report(AttemptOutcome::NeverRan);
                return None;
            }
            // It was given up, so nothing will run in it.
            super::remove(&self.folder());
        }
    }

    /// Returns the state of the attempt, once it can be determined.
    ///
    /// # Errors
    /// If a record of the attempt is damaged, so that its state can never be determined.
    pub(super) fn found(&mut self) -> Result<FoundAttempt, FindError> {
        let mut pause = FIRST;
        loop {
            match super::found(&self.home, self.attempt) {
                Err(error) if !super::is_final(&error) => {
                    match error {
                        FindError::Survivors { pids, .. } => self.report_survivors(pids),
                        error => tracing::warn!("job {}: {error}", self.attempt.job),
                    }
                    self.pause(&mut pause);
                }
                found => return found,
            }
        }
    }

    /// Returns the shim if it is alive. Otherwise reports the end of the attempt.
    fn find_or_report(&mut self) -> Option<Shim> {
        match self.found() {
            Ok(FoundAttempt::Alive(shim)) => Some(shim),
            other => {
                self.report(self.outcome(other));
                None
            }
        }
    }

    pub(super) fn outcome(&self, found: Result<FoundAttempt, FindError>) -> AttemptOutcome {
        found.map_or_else(|error| self.home.failed(error.to_string()), |found| outcome(&self.home, found))
    }

    /// Waits, longer each time, and keeps the messages that arrive meanwhile.
    fn pause(&mut self, pause: &mut Duration) {
        thread::sleep(*pause);
        *pause = (*pause * 2).min(LONGEST);
        self.deferred.extend(self.messages.try_iter());
    }

    /// Returns the outcome of a launch that failed for good. If its shim was killed before it began,
    /// the launch may be retried. The number of attempts is limited.
    fn failed_launch(&self, error: &LaunchError) -> AttemptOutcome {
        let retries = matches!(error, LaunchError::Died { .. }) && self.attempt.nth < TRIES;
        if retries { AttemptOutcome::NeverRan } else { self.home.failed(error.to_string()) }
    }

    fn report(&self, outcome: AttemptOutcome) {
        CrashPoint::BeforeReport.pass();
        // The receiver is gone only when the daemon ends. The next daemon finds the end.
        let _ = self.reports.send(Input::AttemptEnded(self.attempt, outcome));
    }

    /// Waits until the end of the attempt is on disk, then removes its folder. If the daemon ends
    /// first, the folder stays.
    fn wait_to_forget(&self) {
        while let Ok(message) = self.messages.recv() {
            if matches!(message, WorkerMessage::Do(Action::Forget)) {
                CrashPoint::BeforeForget.pass();
                return super::retire::retire(&self.folder());
            }
        }
    }
}

/// Returns whether a launch failed for lack of disk space, memory, files or processes, which may be
/// available later.
fn is_temporary(error: &LaunchError) -> bool {
    match error {
        LaunchError::Record(_) | LaunchError::Spawn { .. } | LaunchError::Unclear { .. } => true,
        LaunchError::Refused(refusal) => matches!(refusal, ShimRefusal::Begin { .. }),
        LaunchError::Spec(_) | LaunchError::Died { .. } => false,
    }
}
