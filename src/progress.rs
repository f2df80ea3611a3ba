//! Progress on a terminal, for runs that take longer than a second.

use std::io::{self, IsTerminal};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use miserly_core::Time;
use miserly_run::Stopwatch;
use miserly_sim::{Finished, Observer, SystemSnapshot};

/// The number of ended jobs between two readings of the clock.
const STRIDE: u64 = 256;

/// The run time before progress is shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// The remaining time for which a reason is shown.
const LONG: Duration = Duration::from_mins(1);

/// The number of waiting jobs that makes decisions slow.
const DEEP: usize = 1000;

/// The progress of one run or of several in parallel; quiet unless standard error is a terminal.
pub(crate) struct Progress {
    unit: &'static str,
    total: u64,
    done: AtomicU64,
    since: Stopwatch,
    bar: OnceLock<ProgressBar>,
    shown: bool,
}

impl Progress {
    /// Returns the progress of `total` jobs.
    pub(crate) fn new(total: u64) -> Progress {
        Progress::with_unit("jobs", total)
    }

    /// Returns the progress of `total` units.
    pub(crate) fn with_unit(unit: &'static str, total: u64) -> Progress {
        Progress {
            unit,
            total,
            done: AtomicU64::new(0),
            since: Stopwatch::start(),
            bar: OnceLock::new(),
            shown: io::stderr().is_terminal(),
        }
    }

    /// Returns a counter for the jobs of one run.
    pub(crate) fn watch(&self) -> Watch<'_> {
        Watch { progress: self, pending: 0, waiting: 0 }
    }

    /// Counts further units.
    pub(crate) fn add(&self, units: u64) {
        // The counter is only displayed, so it needs no ordering with other data.
        let done = self.done.fetch_add(units, Ordering::Relaxed) + units;
        if self.shown && self.since.elapsed() > PATIENCE {
            self.bar.get_or_init(|| self.start_bar()).set_position(done);
        }
    }

    /// Shows the reason for a long remaining time, if it is the queue.
    fn explain(&self, waiting: usize) {
        if let Some(bar) = self.bar.get() {
            bar.set_message(reason(bar.eta(), waiting));
        }
    }

    fn start_bar(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(self.total), ProgressDrawTarget::stderr());
        let template = format!("{{bar:40}} {{pos}} of {{len}} {}, {{eta}} left{{msg}}", self.unit);
        let style = ProgressStyle::with_template(&template);
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.get() {
            bar.finish_and_clear();
        }
    }
}

/// A counter of the jobs of one run.
pub(crate) struct Watch<'a> {
    progress: &'a Progress,
    pending: u64,
    /// Jobs in the queue.
    waiting: usize,
}

impl Observer for Watch<'_> {
    fn finished(&mut self, _job: &Finished) -> io::Result<()> {
        self.pending += 1;
        if self.pending == STRIDE {
            self.progress.add(self.pending);
            self.progress.explain(self.waiting);
            self.pending = 0;
        }
        Ok(())
    }

    fn instant(&mut self, _now: Time, snapshot: SystemSnapshot) {
        self.waiting = snapshot.waiting;
    }
}

/// Returns the reason for a long remaining time, or nothing.
fn reason(left: Duration, waiting: usize) -> String {
    if left < LONG || waiting < DEEP {
        return String::new();
    }
    format!(": {waiting} jobs wait, and decisions about so many are slow")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minutes_have_a_reason_if_the_queue_is_deep() {
        assert_eq!(reason(Duration::from_secs(30), 5000), "");
        assert_eq!(reason(Duration::from_secs(90), 50), "");
        assert!(reason(Duration::from_secs(90), 5000).contains("5000 jobs wait"));
    }
}
