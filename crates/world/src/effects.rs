//! The effects of a daemon on the rest of the world: the places between which it can be killed.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::rc::Rc;

/// The payload of the unwinding that stands for the death of a daemon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Killed;

/// A counter of effects, after which the daemon is killed. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Effects(Rc<Cell<Option<u32>>>);

impl Effects {
    /// Kills the daemon at the next effect but `after`, or not at all.
    pub(crate) fn kill_after(&self, after: Option<u32>) {
        self.0.set(after);
    }

    /// Passes a place at which the daemon can die.
    pub(crate) fn pass(&self) {
        match self.0.get() {
            Some(0) => {
                self.0.set(None);
                resume_unwind(Box::new(Killed));
            }
            Some(left) => self.0.set(Some(left - 1)),
            None => {}
        }
    }
}
