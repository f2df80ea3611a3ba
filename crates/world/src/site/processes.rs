//! The main process of a job.

use std::rc::Rc;

use miserly_attempt::shim::{SetupMessage, Signal};
use miserly_attempt::{Connection, Exit, StartFailure};
use miserly_core::draw;

use super::child::Child;
use super::wire::End;
use super::{Machine, Place};
use crate::step::Habit;

/// The time from a request to end to the exit of a process that obeys.
pub(super) const EXIT: i64 = 3_000;

/// The main process.
#[derive(Debug)]
pub(super) struct Main {
    pub(super) pid: u32,
    child_pid: u32,
    stage: Stage,
    habit: Habit,
    is_stopped: bool,
    /// The instant since which it is stopped, or since which it is not.
    since: i64,
    /// Whether a request to end waits until it continues.
    has_term: bool,
    /// The instant at which it exits after a request.
    exits_at: Option<i64>,
    /// Whether it was stopped when it was asked to end. It then ends on processors that others have.
    lingers: bool,
    /// A child that has outlived it.
    child: Option<Child>,
    /// The children that have exited, to be reaped.
    zombies: Vec<u32>,
    /// The instant at which a step with the rights of its user blocked.
    blocked_since: Option<i64>,
}

/// Returns the failure of a job whose output blocks.
fn blocked() -> StartFailure {
    StartFailure::OutputFile { path: "out".into(), error: "it blocks".into() }
}

#[derive(Debug)]
enum Stage {
    /// The preparing program, which needs some time until it waits for its permission.
    Preparing {
        shim: End,
        here_at: Option<i64>,
    },
    /// The command, which still computes for a time as long as it is not stopped.
    Command {
        since: i64,
        left: i64,
    },
    /// It has exited, and is to be reaped.
    Exited(Exit),
    Reaped,
}

impl Main {
    pub(super) fn new(place: &Place, habit: Habit, [pid, child_pid]: [u32; 2], shim: End, now: i64) -> Main {
        let latency = draw(7, place.attempt.job, place.attempt.nth.into()) % 8_000;
        let here_at = Some(now + 2_000 + latency.cast_signed());
        Main {
            pid,
            child_pid,
            stage: Stage::Preparing { shim, here_at },
            habit,
            is_stopped: false,
            since: now,
            has_term: false,
            exits_at: None,
            lingers: false,
            child: None,
            zombies: vec![],
            blocked_since: None,
        }
    }

    /// Moves all instants.
    pub(super) fn shift(&mut self, by: i64) {
        self.since += by;
        match &mut self.stage {
            Stage::Preparing { here_at: Some(at), .. } | Stage::Command { since: at, .. } => *at += by,
            _ => {}
        }
        for at in self.exits_at.iter_mut().chain(&mut self.blocked_since) {
            *at += by;
        }
        if let Some(child) = &mut self.child {
            child.shift(by);
        }
    }

    /// Returns whether a process of the job exists.
    pub(super) fn has_process(&self) -> bool {
        self.lives() || self.child.is_some()
    }

    /// Returns whether the main process exists.
    pub(super) fn lives(&self) -> bool {
        matches!(self.stage, Stage::Preparing { .. } | Stage::Command { .. })
    }

    /// Returns whether the command has begun and not ended.
    pub(super) fn is_command(&self) -> bool {
        matches!(self.stage, Stage::Command { .. })
    }

    /// Returns whether the command has more than this time left, and nobody has asked it to end.
    pub(super) fn lasts(&self, ticks: i64) -> bool {
        matches!(self.stage, Stage::Command { left, .. } if left > ticks) && !self.has_term
    }

    /// Returns the time for which the command still computes, or nothing if it has ended.
    pub(super) fn left(&self, now: i64) -> i64 {
        match self.stage {
            Stage::Command { left, .. } if self.is_stopped => left,
            Stage::Command { since, left } => (left - (now - since)).max(0),
            _ => 0,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.lives() && !self.is_stopped
    }

    /// Returns whether it waits for the permission to become the command.
    pub(super) fn is_preparing(&self) -> bool {
        matches!(self.stage, Stage::Preparing { .. })
    }

    /// Returns the processes that are not stopped.
    pub(super) fn running(&self) -> Vec<u32> {
        let main = self.is_running().then_some(self.pid);
        let child = self.child.as_ref().filter(|child| child.is_running()).map(|child| child.pid);
        main.into_iter().chain(child).collect()
    }

    /// Returns whether it uses processors to which it has a right.
    pub(super) fn uses_processors(&self) -> bool {
        let child = self.child.as_ref().is_some_and(Child::is_running);
        ((self.is_command() && !self.is_stopped) || child) && !self.lingers
    }

    /// Returns the instant since which it is stopped.
    pub(super) fn stopped_since(&self) -> Option<i64> {
        (self.lives() && self.is_stopped).then_some(self.since)
    }

    /// Returns the instant since which it runs.
    pub(super) fn running_since(&self) -> i64 {
        self.since
    }

    /// Returns whether it was asked to end.
    pub(super) fn is_ending(&self) -> bool {
        self.has_term
    }

    /// Returns the instant at which it does something.
    pub(super) fn next(&self, now: i64) -> Option<i64> {
        let child = self.child.as_ref().and_then(Child::next);
        self.next_of_main(now).into_iter().chain(child).min()
    }

    fn next_of_main(&self, now: i64) -> Option<i64> {
        if self.is_stopped {
            return None;
        }
        match &self.stage {
            Stage::Preparing { shim, .. } if shim.inbox().is_ready() => Some(now),
            Stage::Preparing { here_at, .. } => here_at.iter().copied().chain(self.exits_at).min(),
            Stage::Command { since, left } => {
                Some(self.exits_at.map_or(since + left, |at| at.min(since + left)))
            }
            Stage::Exited(_) | Stage::Reaped => None,
        }
    }

    /// Takes the steps that are due. Returns whether the command begins.
    fn advance(&mut self, now: i64) -> bool {
        if let Some(child) = self.child.take_if(|child| child.next().is_some_and(|at| at <= now)) {
            self.zombies.push(child.pid);
        }
        if self.is_stopped {
            return false;
        }
        if self.lives() && self.exits_at.is_some_and(|at| at <= now) {
            self.exit(Exit::Signal { signal: 15, core: false }, now);
            return false;
        }
        match &mut self.stage {
            Stage::Preparing { shim, here_at } => match shim.receive_line() {
                Ok(Some(_)) => {
                    self.stage = Stage::Command { since: now, left: self.habit.ticks };
                    self.since = now;
                    return true;
                }
                Ok(None) => {
                    if here_at.take_if(|at| *at <= now).is_some() {
                        let blocks = self.habit.blocks;
                        self.blocked_since = blocks.then_some(now);
                        let message =
                            if blocks { SetupMessage::Doing(blocked()) } else { SetupMessage::Here };
                        // A shim that has died does not receive it.
                        let _ = shim.send(&message);
                    }
                }
                Err(_) => self.exit(Exit::Code(1), now),
            },
            Stage::Command { since, left } if *since + *left <= now => {
                let exit = match self.habit.signal {
                    0 => Exit::Code(self.habit.code),
                    signal => Exit::Signal { signal: signal.into(), core: false },
                };
                self.exit(exit, now);
            }
            _ => {}
        }
        false
    }

    /// Exits. A child of the command lives on.
    fn exit(&mut self, exit: Exit, now: i64) {
        if self.is_command() && self.habit.leaves > 0 {
            let mut child = Child::new(self.child_pid, now + self.habit.leaves, self.habit.stubborn);
            if self.is_stopped {
                child.signal(Signal::Stop, now);
            }
            self.child = Some(child);
        }
        self.stage = Stage::Exited(exit);
    }

    /// Receives a signal, with its children.
    pub(super) fn signal_all(&mut self, signal: Signal, now: i64) {
        if let Some(child) = &mut self.child {
            child.signal(signal, now);
        }
        self.signal(signal, now);
    }

    /// Receives a signal.
    pub(super) fn signal(&mut self, signal: Signal, now: i64) {
        match signal {
            Signal::Terminate if self.lives() => {
                self.lingers |= self.is_stopped;
                self.has_term = true;
            }
            Signal::Stop if self.is_running() => {
                if let Stage::Command { since, left } = &mut self.stage {
                    *left = (*left - (now - *since)).max(0);
                }
                (self.is_stopped, self.since) = (true, now);
            }
            Signal::Continue if self.is_stopped => {
                (self.is_stopped, self.since) = (false, now);
                if let Stage::Command { since, .. } = &mut self.stage {
                    *since = now;
                }
            }
            _ => {}
        }
        let obeys = !self.habit.stubborn || !self.is_command();
        if self.has_term && obeys && !self.is_stopped {
            self.exits_at.get_or_insert(now + EXIT);
        }
    }

    /// Dies by `SIGKILL`, and its children live on.
    pub(super) fn die(&mut self, now: i64) {
        if self.lives() {
            self.exit(Exit::Signal { signal: 9, core: false }, now);
        }
    }

    /// Kills it and its children. Returns the numbers of those that lived.
    pub(super) fn kill(&mut self, now: i64) -> Vec<u32> {
        let main = self.lives().then_some(self.pid);
        self.die(now);
        let child = self.child.take().map(|child| child.pid).filter(|_| main.is_none());
        self.zombies.extend(child);
        main.into_iter().chain(child).collect()
    }

    /// Returns a process that has exited, once.
    pub(super) fn reap(&mut self) -> Option<(u32, Exit)> {
        let child = self.zombies.pop().map(|pid| (pid, Exit::Code(0)));
        child.or_else(|| Some((self.pid, self.reap_main()?)))
    }

    fn reap_main(&mut self) -> Option<Exit> {
        match std::mem::replace(&mut self.stage, Stage::Reaped) {
            Stage::Exited(exit) => Some(exit),
            stage => {
                self.stage = stage;
                None
            }
        }
    }

    pub(super) fn is_reaped(&self) -> bool {
        matches!(self.stage, Stage::Reaped) && self.child.is_none() && self.zombies.is_empty()
    }
}

impl Machine {
    /// Runs the due steps of the main process of an attempt.
    pub(super) fn advance_main(&self, place: &Rc<Place>) {
        let mut main = place.main.borrow_mut();
        let Some(main) = main.as_mut().filter(|main| main.has_process()) else { return };
        let before = (main.lives(), main.child.is_some());
        if main.advance(self.now()) {
            self.begin_command(place);
        }
        if before != (main.lives(), main.child.is_some()) {
            place.has_child_event.set(true);
            if let Some(since) = main.blocked_since.filter(|_| main.has_term && !self.shuts_down.get()) {
                self.blocked.borrow_mut().insert(place.attempt.job, self.now() - since);
            }
        }
    }
}
