//! The main process of a job.

use std::rc::Rc;

use miserly_attempt::shim::{SetupMessage, Signal};
use miserly_attempt::{Connection, Exit, StartFailure};
use miserly_core::draw;

use super::wire::End;
use super::{Machine, Place};
use crate::step::Habit;

/// The time from a request to end to the exit of a process that obeys.
const EXIT: i64 = 3_000;

/// The main process.
#[derive(Debug)]
pub(super) struct Main {
    pub(super) pid: u32,
    stage: Stage,
    habit: Habit,
    is_stopped: bool,
    /// Whether a request to end waits until it continues.
    has_term: bool,
    /// The instant at which it exits after a request.
    exits_at: Option<i64>,
    /// Whether it was stopped when it was asked to end. It then ends on processors that others have.
    lingers: bool,
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
    pub(super) fn new(place: &Place, habit: Habit, pid: u32, shim: End, now: i64) -> Main {
        let latency = draw(7, place.attempt.job, place.attempt.nth.into()) % 8_000;
        let here_at = Some(now + 2_000 + latency.cast_signed());
        Main {
            pid,
            stage: Stage::Preparing { shim, here_at },
            habit,
            is_stopped: false,
            has_term: false,
            exits_at: None,
            lingers: false,
            blocked_since: None,
        }
    }

    /// Returns whether the process exists.
    pub(super) fn lives(&self) -> bool {
        matches!(self.stage, Stage::Preparing { .. } | Stage::Command { .. })
    }

    /// Returns whether the command has begun and not ended.
    pub(super) fn is_command(&self) -> bool {
        matches!(self.stage, Stage::Command { .. })
    }

    pub(super) fn is_running(&self) -> bool {
        self.lives() && !self.is_stopped
    }

    /// Returns whether it uses processors to which it has a right.
    pub(super) fn uses_processors(&self) -> bool {
        self.is_command() && !self.is_stopped && !self.lingers
    }

    /// Returns the instant at which it does something.
    pub(super) fn next(&self, now: i64) -> Option<i64> {
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
        if self.is_stopped {
            return false;
        }
        if self.lives() && self.exits_at.is_some_and(|at| at <= now) {
            self.exit(Exit::Signal { signal: 15, core: false });
            return false;
        }
        match &mut self.stage {
            Stage::Preparing { shim, here_at } => match shim.receive_line() {
                Ok(Some(_)) => {
                    self.stage = Stage::Command { since: now, left: self.habit.ticks };
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
                Err(_) => self.exit(Exit::Code(1)),
            },
            Stage::Command { since, left } if *since + *left <= now => self.exit(Exit::Code(self.habit.code)),
            _ => {}
        }
        false
    }

    fn exit(&mut self, exit: Exit) {
        self.stage = Stage::Exited(exit);
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
                self.is_stopped = true;
            }
            Signal::Continue if self.is_stopped => {
                self.is_stopped = false;
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

    /// Returns the number of the process if it was killed.
    pub(super) fn kill(&mut self) -> Option<u32> {
        let lives = self.lives();
        if lives {
            self.exit(Exit::Signal { signal: 9, core: false });
        }
        lives.then_some(self.pid)
    }

    /// Returns its exit, once.
    pub(super) fn reap(&mut self) -> Option<Exit> {
        match std::mem::replace(&mut self.stage, Stage::Reaped) {
            Stage::Exited(exit) => Some(exit),
            stage => {
                self.stage = stage;
                None
            }
        }
    }

    pub(super) fn is_reaped(&self) -> bool {
        matches!(self.stage, Stage::Reaped)
    }
}

impl Machine {
    /// Runs the due steps of the main process of an attempt.
    pub(super) fn advance_main(&self, place: &Rc<Place>) {
        let mut main = place.main.borrow_mut();
        let Some(main) = main.as_mut().filter(|main| main.lives()) else { return };
        if main.advance(self.now()) {
            self.begin_command(place);
        }
        if !main.lives() {
            place.has_child_event.set(true);
            if let Some(since) = main.blocked_since.filter(|_| main.has_term && !self.shuts_down.get()) {
                self.blocked.borrow_mut().insert(place.attempt.job, self.now() - since);
            }
        }
    }
}
