//! How long something takes.

use std::time::{Duration, Instant};

/// How long something takes; never an input of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Starts now.
    #[allow(clippy::disallowed_methods)] // A run is measured, not driven, by the wall clock.
    pub fn start() -> Stopwatch {
        Stopwatch(Instant::now())
    }

    /// Since the start.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
