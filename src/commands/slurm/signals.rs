//! The end of a long command by a signal: it finishes its step, and says what it has.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::INTERRUPTED;

/// Whether a signal has asked the command to end.
static ENDS: AtomicBool = AtomicBool::new(false);

/// Lets a signal end the loop of this thread after its step, and its [`park_timeout`](std::thread::park_timeout) at once. A second
/// one ends the process at once.
pub(super) fn end_at_signal() {
    let thread = std::thread::current();
    let handler = move || {
        if ENDS.swap(true, Ordering::Relaxed) {
            std::process::exit(INTERRUPTED);
        }
        thread.unpark();
    };
    // Without it a signal ends the process at once, without a line.
    let _ = ctrlc::set_handler(handler);
}

/// Returns whether a signal has asked the command to end.
pub(super) fn is_signalled() -> bool {
    ENDS.load(Ordering::Relaxed)
}
