//! Signals that Python has, such as that of Ctrl-C, while a long piece of work is done.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use miserly_core::Time;
use miserly_sim::{Finished, Observer, SystemSnapshot};
use pyo3::prelude::*;

use crate::error::defect;

/// The time between two looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// Whether a piece of work has to end.
#[derive(Default)]
pub(crate) struct Stop(AtomicBool);

impl Stop {
    /// Unwinds if the work has to end.
    pub(crate) fn check(&self) {
        if self.0.load(Ordering::Relaxed) {
            resume_unwind(Box::new("interrupted"));
        }
    }
}

/// An observer that unwinds if the work has to end.
pub(crate) struct StopWatch<'a>(pub(crate) &'a Stop);

impl Observer for StopWatch<'_> {
    fn instant(&mut self, _now: Time, _snapshot: SystemSnapshot) {
        self.0.check();
    }

    fn finished(&mut self, _job: &Finished) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the error of a signal that Python has.
pub(crate) fn signals() -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        Ok(())
    })
}

/// Does a piece of work on a thread of its own, while this one looks for signals. The work looks at its [`Stop`].
pub(crate) fn interruptible<T: Send>(py: Python<'_>, work: impl FnOnce(&Stop) -> T + Send) -> PyResult<T> {
    let stop = Stop::default();
    py.detach(|| {
        thread::scope(|scope| {
            let (ended, end) = channel::<()>();
            let worker = scope.spawn(|| {
                let _ended = ended; // Dropped at the end, also of a panic.
                work(&stop)
            });
            let mut signal = None;
            while end.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if signal.is_none()
                    && let Err(raised) = signals()
                {
                    stop.0.store(true, Ordering::Relaxed);
                    signal = Some(raised);
                }
            }
            match (worker.join(), signal) {
                (_, Some(signal)) => Err(signal),
                (Ok(made), None) => Ok(made),
                (Err(panic), None) => Err(defect(&*panic)),
            }
        })
    })
}
