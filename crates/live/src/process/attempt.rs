//! The supervising thread of one attempt.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use miserly_api::model::Failure;
use miserly_engine::{Action, Attempt, AttemptOutcome, Input, Launch};
use miserly_launch::{
    CommandError, FindError, FoundAttempt, LaunchError, Shim, ShimCommand, ShimRefusal, ShimReply, launch,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc::UnboundedSender;

use super::message::{SlotTurn, Waker, WorkerHandle, WorkerMessage};
use super::{Home, folder, order, outcome};
use crate::clock::Clock;

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
    /// Supervise the shim of an unknown job, which has been ordered to end it. Nothing is reported,
    /// and its folder is removed.
    Unknown(Box<Shim>),
    /// Only wait: the attempt is over, and its end was reported.
    Over,
}

/// The reason why a shim did not carry out a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Untold {
    /// The shim cannot carry it out, or does not answer.
    Refused,
    /// The shim is gone, or the connection to it is broken.
    Cut,
}

pub(super) struct Worker {
    home: Home,
    attempt: Attempt,
    orders: mpsc::Receiver<WorkerMessage>,
    waker: Waker,
    reports: UnboundedSender<Input>,
    /// Messages that arrived while they could not be carried out.
    put_off: Vec<WorkerMessage>,
}

impl Worker {
    /// Starts a thread and returns its handle.
    pub(super) fn employ(
        home: Home,
        attempt: Attempt,
        begin: Begin,
        reports: UnboundedSender<Input>,
    ) -> io::Result<WorkerHandle> {
        let waker = Waker::new()?;
        let (sender, orders) = mpsc::channel();
        let worker = Worker { home, attempt, orders, waker: waker.clone(), reports, put_off: vec![] };
        let name = format!("job {}.{}", attempt.job, attempt.nth);
        thread::Builder::new().name(name).stack_size(256 * 1024).spawn(move || worker.run(begin))?;
        Ok(WorkerHandle::new(sender, waker))
    }

    fn run(mut self, begin: Begin) {
        let shim = match begin {
            // The folder belongs to another attempt: nothing in it is adopted or removed.
            Begin::Launch(_) if self.folder().exists() => return self.report(self.taken()),
            Begin::Launch(launch) => self.launch(&launch),
            Begin::Unknown(shim) => {
                self.tend(*shim);
                return super::remove(&self.folder());
            }
            Begin::Find => self.find_or_report(),
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

    fn taken(&self) -> AttemptOutcome {
        let message = format!("{} is there already", self.folder().display());
        tracing::error!("job {} cannot be launched: {message}", self.attempt.job);
        self.failed(message)
    }

    /// Launches the attempt, and retries while the machine temporarily lacks a resource.
    ///
    /// Retries end when the window has lost more than the grace. They also end at a message that
    /// requires a running job. The attempt then counts as never run, and the engine decides how to
    /// go on.
    fn launch(&mut self, wanted: &Launch) -> Option<Shim> {
        let order = order::order(&self.home, self.attempt, wanted);
        let latest = wanted.end.map(|_| self.home.clock.now() + wanted.grace);
        let mut pause = FIRST;
        loop {
            let error = match launch(&self.home.exe, &self.folder(), &order) {
                Ok(shim) => return Some(shim),
                Err(error) => error,
            };
            tracing::warn!("job {} cannot be launched: {error}", self.attempt.job);
            // Whatever the error is, only the files show the true state.
            match self.found() {
                Ok(FoundAttempt::NeverRan) if passes(&error) => {}
                Ok(FoundAttempt::NeverRan) => {
                    self.report(self.given_up(&error));
                    return None;
                }
                Ok(FoundAttempt::Alive(shim)) => return Some(shim),
                other => {
                    self.report(self.outcome(other));
                    return None;
                }
            }
            self.rest(&mut pause);
            let ends = |word: &WorkerMessage| {
                matches!(word, WorkerMessage::Do(Action::Kill { .. } | Action::BeginWindow { .. }))
            };
            if latest.is_some_and(|latest| self.home.clock.now() > latest) || self.put_off.iter().any(ends) {
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
    fn found(&mut self) -> Result<FoundAttempt, FindError> {
        let mut pause = FIRST;
        loop {
            match super::found(&self.home, self.attempt) {
                Err(error) if !super::is_final(&error) => {
                    tracing::warn!("job {}: {error}", self.attempt.job);
                    self.rest(&mut pause);
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

    fn outcome(&self, found: Result<FoundAttempt, FindError>) -> AttemptOutcome {
        found.map_or_else(|error| self.failed(error.to_string()), |found| outcome(&self.home, found))
    }

    fn failed(&self, message: String) -> AttemptOutcome {
        AttemptOutcome::Failed { at: self.home.clock.now(), why: Failure::System, message }
    }

    /// Waits, longer each time, and keeps the messages that arrive meanwhile.
    fn rest(&mut self, pause: &mut Duration) {
        thread::sleep(*pause);
        *pause = (*pause * 2).min(LONGEST);
        self.put_off.extend(self.orders.try_iter());
    }

    /// Returns the outcome of a launch that failed for good, or by the death of its shim.
    fn given_up(&self, error: &LaunchError) -> AttemptOutcome {
        if self.may_try_again(error) { AttemptOutcome::NeverRan } else { self.failed(error.to_string()) }
    }

    /// Returns whether a launch may be retried: its shim was killed before it began. The number of
    /// attempts is limited.
    fn may_try_again(&self, error: &LaunchError) -> bool {
        matches!(error, LaunchError::Died { .. }) && self.attempt.nth < TRIES
    }

    /// Carries out messages until the shim is gone. A context switch that failed is retried, later
    /// each time.
    fn tend(&mut self, mut shim: Shim) -> AttemptOutcome {
        let mut pause = FIRST;
        loop {
            let mut words = std::mem::take(&mut self.put_off);
            words.extend(self.orders.try_iter());
            let told = self.tell_all(&mut shim, words);
            if gone(&shim, &self.waker, told.is_err().then_some(pause)) {
                break;
            }
            self.waker.hush();
            pause = if told.is_err() { (pause * 2).min(LONGEST) } else { FIRST };
            if told == Err(Untold::Cut) {
                self.meet_again(&mut shim);
            }
        }
        match shim.end() {
            Ok(Some(end)) => order::ended(self.home.clock, &end),
            Ok(None) | Err(_) => self.settle(shim),
        }
    }

    /// Returns the outcome of an attempt without a record of its end.
    fn settle(&mut self, shim: Shim) -> AttemptOutcome {
        drop(shim);
        let found = self.found();
        self.outcome(found)
    }

    /// Reconnects to the shim. If that fails, the old connection stays.
    fn meet_again(&self, shim: &mut Shim) {
        if let Ok(FoundAttempt::Alive(again)) = super::found(&self.home, self.attempt) {
            *shim = again;
        }
    }

    /// Sends all messages to the shim. Of the context switches, only the last is sent.
    ///
    /// # Errors
    /// If that context switch failed. It is put off.
    fn tell_all(&mut self, shim: &mut Shim, words: Vec<WorkerMessage>) -> Result<(), Untold> {
        let (last, mut came) =
            (words.iter().rposition(|word| matches!(word, WorkerMessage::SetTurn(_))), Ok(()));
        for (nth, word) in words.into_iter().enumerate() {
            match word {
                WorkerMessage::Do(action) => {
                    if let Some(told) = order::told(self.home.clock, action) {
                        // A failure is logged. The shim still supervises the job to its end.
                        let _ = self.tell(shim, &told);
                    }
                }
                WorkerMessage::SetTurn(SlotTurn { runs, heard }) if Some(nth) == last => {
                    came = self.tell(shim, if runs { &ShimCommand::Resume } else { &ShimCommand::Stop });
                    drop(heard);
                    if came.is_err() {
                        self.put_off.push(WorkerMessage::SetTurn(SlotTurn { runs, heard: None }));
                    }
                }
                WorkerMessage::SetTurn(_) => {}
            }
        }
        came
    }

    fn tell(&self, shim: &mut Shim, told: &ShimCommand) -> Result<(), Untold> {
        let job = self.attempt.job;
        match shim.request(told) {
            Ok(ShimReply::Done(_)) => Ok(()),
            // The job runs until its grace ends, even if its slot does not.
            Ok(ShimReply::Refused(ShimRefusal::Ending))
                if matches!(told, ShimCommand::Stop | ShimCommand::Resume) =>
            {
                Ok(())
            }
            Ok(reply) => {
                tracing::warn!("job {job}: {told:?} came to {reply:?}");
                // Processes that have not stopped yet stop when they can.
                if matches!(reply, ShimReply::NotStopped { .. }) { Ok(()) } else { Err(Untold::Refused) }
            }
            Err(CommandError::Gone) => Err(Untold::Cut),
            Err(error) => {
                tracing::warn!("job {job}: {told:?} failed: {error}");
                Err(if matches!(error, CommandError::Silent) { Untold::Refused } else { Untold::Cut })
            }
        }
    }

    fn report(&self, outcome: AttemptOutcome) {
        // The receiver is gone only when the daemon ends. The next daemon finds the end.
        let _ = self.reports.send(Input::AttemptEnded(self.attempt, outcome));
    }

    /// Waits until the end of the attempt is on disk, then removes its folder. If the daemon ends
    /// first, the folder stays.
    fn wait_to_forget(&self) {
        while let Ok(word) = self.orders.recv() {
            if matches!(word, WorkerMessage::Do(Action::Forget)) {
                return super::retire::retire(&self.folder());
            }
        }
    }
}

/// Returns whether a launch failed for lack of disk space, memory, files or processes, which may be
/// available later.
fn passes(error: &LaunchError) -> bool {
    match error {
        LaunchError::Record(_) | LaunchError::Spawn { .. } | LaunchError::Unclear { .. } => true,
        LaunchError::Refused(refusal) => matches!(refusal, ShimRefusal::Begin { .. }),
        LaunchError::Spec(_) | LaunchError::Died { .. } => false,
    }
}

/// Waits until the shim is gone, a message arrives, or `within` has passed. Returns whether the
/// shim is gone.
fn gone(shim: &Shim, waker: &Waker, within: Option<Duration>) -> bool {
    let within = within.and_then(|within| Timespec::try_from(within).ok());
    let mut fds = [
        PollFd::from_borrowed_fd(shim.fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN),
    ];
    let waited = poll(&mut fds, within.as_ref());
    waited.is_ok() && !fds[0].revents().is_empty()
}
