//! The thread that sees to one attempt.

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

/// A shim that dies as it begins is tried again as long as its job has been started less often than this.
const TRIES: u32 = 3;

/// The first pause before something is tried again; each is twice as long as the one before.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);

/// How a thread begins.
pub(super) enum Begin {
    /// By launching it.
    Launch(Box<Launch>),
    /// By finding out what has become of it, which was not possible yet.
    Find,
    /// With a shim that was found alive.
    Alive(Box<Shim>),
    /// With a shim whose job nobody knows and which was told to end it: nothing is reported, and its folder goes.
    Unknown(Box<Shim>),
    /// With nothing: it is over, and that was reported.
    Over,
}

/// The reason why a shim did not carry out a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Untold {
    /// It cannot, or does not answer.
    Refused,
    /// It has gone, or the connection to it is broken.
    Cut,
}

pub(super) struct Worker {
    home: Home,
    attempt: Attempt,
    orders: mpsc::Receiver<WorkerMessage>,
    waker: Waker,
    reports: UnboundedSender<Input>,
    /// What it was told while it could not do it yet.
    put_off: Vec<WorkerMessage>,
}

impl Worker {
    /// Begins a thread; returns how to tell it what to do.
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
            // What is in the folder is another's, and so it stays: nothing there is adopted, or removed.
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

    /// Launches it, again and again where the machine lacks something for now; until its window has lost more than the grace,
    /// or it is told what only a job can do that runs. The engine sees then what is to become of it.
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
            // Whatever went wrong: what is certain is what is found.
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

    /// What has become of it, once that can be told.
    ///
    /// # Errors
    /// If a record of it is damaged, so that it can never be told.
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

    /// Its shim, if it is alive; else it is over, and that is reported.
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

    /// Waits, longer each time, and keeps what it is told meanwhile.
    fn rest(&mut self, pause: &mut Duration) {
        thread::sleep(*pause);
        *pause = (*pause * 2).min(LONGEST);
        self.put_off.extend(self.orders.try_iter());
    }

    /// A launch that failed for good, or by the death of its shim, which does not go on for ever.
    fn given_up(&self, error: &LaunchError) -> AttemptOutcome {
        if self.may_try_again(error) { AttemptOutcome::NeverRan } else { self.failed(error.to_string()) }
    }

    /// Whether it may have been an accident: the shim was killed before it began. That does not go on for ever.
    fn may_try_again(&self, error: &LaunchError) -> bool {
        matches!(error, LaunchError::Died { .. }) && self.attempt.nth < TRIES
    }

    /// Does what it is told until the shim is gone. What was to become of its turn and did not is tried again, later each time.
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

    /// What became of an attempt whose shim left no end.
    fn settle(&mut self, shim: Shim) -> AttemptOutcome {
        drop(shim);
        let found = self.found();
        self.outcome(found)
    }

    /// Another connection to it. If it cannot be reached it is as it was.
    fn meet_again(&self, shim: &mut Shim) {
        if let Ok(FoundAttempt::Alive(again)) = super::found(&self.home, self.attempt) {
            *shim = again;
        }
    }

    /// Tells the shim all of it, and of the turns the last.
    ///
    /// # Errors
    /// If that turn came to nothing, and is put off.
    fn tell_all(&mut self, shim: &mut Shim, words: Vec<WorkerMessage>) -> Result<(), Untold> {
        let (last, mut came) =
            (words.iter().rposition(|word| matches!(word, WorkerMessage::SetTurn(_))), Ok(()));
        for (nth, word) in words.into_iter().enumerate() {
            match word {
                WorkerMessage::Do(action) => {
                    if let Some(told) = order::told(self.home.clock, action) {
                        // What cannot be done is in the log, and its shim sees to the end all the same.
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
            // It runs its grace out, whoever's turn it is.
            Ok(ShimReply::Refused(ShimRefusal::Ending))
                if matches!(told, ShimCommand::Stop | ShimCommand::Resume) =>
            {
                Ok(())
            }
            Ok(reply) => {
                tracing::warn!("job {job}: {told:?} came to {reply:?}");
                // Those that have not stopped stop when they can.
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
        // Nobody listens only when the daemon ends, and then the next one finds it.
        let _ = self.reports.send(Input::AttemptEnded(self.attempt, outcome));
    }

    /// Its folder goes when its end is on disk; it stays when the daemon ends before.
    fn wait_to_forget(&self) {
        while let Ok(word) = self.orders.recv() {
            if matches!(word, WorkerMessage::Do(Action::Forget)) {
                return super::retire::retire(&self.folder());
            }
        }
    }
}

/// Whether a launch failed for something that may be there later: room, memory, files or processes.
fn passes(error: &LaunchError) -> bool {
    match error {
        LaunchError::Record(_) | LaunchError::Spawn { .. } | LaunchError::Unclear { .. } => true,
        LaunchError::Refused(refusal) => matches!(refusal, ShimRefusal::Begin { .. }),
        LaunchError::Spec(_) | LaunchError::Died { .. } => false,
    }
}

/// Waits until the shim has gone, or there is something to do, at the latest after that time; whether it has gone.
fn gone(shim: &Shim, waker: &Waker, within: Option<Duration>) -> bool {
    let within = within.and_then(|within| Timespec::try_from(within).ok());
    let mut fds = [
        PollFd::from_borrowed_fd(shim.fd(), PollFlags::IN),
        PollFd::from_borrowed_fd(waker.fd(), PollFlags::IN),
    ];
    let waited = poll(&mut fds, within.as_ref());
    waited.is_ok() && !fds[0].revents().is_empty()
}
