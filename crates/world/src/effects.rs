//! The effects of a daemon on the rest of the world: the places between which it can be killed.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// The payload of the unwinding that stands for the death of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Killed;

/// A counter of effects, after which the daemon is killed. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Effects(Arc<AtomicU32>);

/// The count that stands for no kill.
const NEVER: u32 = u32::MAX;

impl Default for Effects {
    fn default() -> Effects {
        Effects(Arc::new(AtomicU32::new(NEVER)))
    }
}

impl Effects {
    /// Kills the daemon at the next effect but `after`, or not at all.
    pub(crate) fn kill_after(&self, after: Option<u32>) {
        self.0.store(after.unwrap_or(NEVER), Ordering::Relaxed);
    }

    /// Kills the daemon.
    pub(crate) fn die(&self) -> ! {
        self.kill_after(None);
        resume_unwind(Box::new(Killed))
    }

    /// Passes a place at which the daemon can die.
    pub(crate) fn pass(&self) {
        match self.0.load(Ordering::Relaxed) {
            0 => self.die(),
            NEVER => {}
            left => self.0.store(left - 1, Ordering::Relaxed),
        }
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}
