//! The raw mode of the terminal, in which each key is a byte for the job.

use std::io::{self, stdin};
use std::panic;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

/// The mode before the raw mode, while the terminal is in raw mode.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// The raw mode of the terminal on standard input. Dropping it restores the mode before it.
#[derive(Debug)]
pub(super) struct RawMode(());

impl RawMode {
    /// Changes the mode of the terminal. A panic restores it before its message is printed.
    ///
    /// # Errors
    /// Standard input is no terminal.
    pub(super) fn enter() -> io::Result<RawMode> {
        let before = tcgetattr(stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            restore();
            usual(info);
        }));
        *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
        let mode = RawMode(());
        tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        Ok(mode)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // The terminal may be gone.
        let _ = tcsetattr(stdin(), OptionalActions::Drain, &before);
    }
}
