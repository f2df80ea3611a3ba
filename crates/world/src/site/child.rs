//! The child of a main process, which lives on when its parent has exited.

use miserly_attempt::shim::Signal;

use super::processes::EXIT;

/// A child.
#[derive(Clone, Debug)]
pub(super) struct Child {
    pub(super) pid: u32,
    is_stubborn: bool,
    /// The instant at which it exits if it is not stopped.
    exits_at: i64,
    /// The instant at which it was stopped, if it is.
    stopped_at: Option<i64>,
    has_term: bool,
}

impl Child {
    pub(super) fn new(pid: u32, exits_at: i64, is_stubborn: bool) -> Child {
        Child { pid, is_stubborn, exits_at, stopped_at: None, has_term: false }
    }

    /// Moves all instants.
    pub(super) fn shift(&mut self, by: i64) {
        self.exits_at += by;
        self.stopped_at = self.stopped_at.map(|at| at + by);
    }

    pub(super) fn is_running(&self) -> bool {
        self.stopped_at.is_none()
    }

    /// Returns the instant at which it exits.
    pub(super) fn next(&self) -> Option<i64> {
        self.is_running().then_some(self.exits_at)
    }

    /// Receives a signal.
    pub(super) fn signal(&mut self, signal: Signal, now: i64) {
        match signal {
            Signal::Terminate => self.has_term = true,
            Signal::Stop => drop(self.stopped_at.get_or_insert(now)),
            Signal::Continue => self.exits_at += self.stopped_at.take().map_or(0, |at| now - at),
            Signal::Number(_) => {}
        }
        if self.has_term && !self.is_stubborn && self.is_running() {
            self.exits_at = self.exits_at.min(now + EXIT);
        }
    }
}
