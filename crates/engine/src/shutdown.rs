//! A shutdown of the machine: no attempt begins, and what is late then has this cause.

use miserly_api::model::PromiseChangeReason;
use miserly_core::{BreachCause, Span};

use crate::{Engine, Journal, Launcher, Now};

/// The time for which launches wait after the last sign of a shutdown. If the daemon still runs then, there was none.
const HOLD: Span = Span::from_ticks(10_000_000);

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Notes a sign of a shutdown, and forgets an old one.
    pub(crate) fn note_shutdown(&mut self, now: Now, shuts_down: bool) {
        if shuts_down {
            self.values.set_shutdown(Some(now.ticks));
            self.launcher.hold_launches(HOLD);
        } else if self.values.shutdown().is_some_and(|at| now.ticks > at + HOLD + HOLD) {
            self.values.set_shutdown(None);
        }
    }

    /// Returns the cause of a breach. What is late because no daemon ran is late for a shutdown if the last daemon ended in one.
    pub(crate) fn promise_cause(&self, cause: BreachCause) -> PromiseChangeReason {
        match cause {
            BreachCause::Away if self.values.shutdown().is_some() => PromiseChangeReason::Shutdown,
            BreachCause::Overdue => PromiseChangeReason::Overdue,
            BreachCause::Away => PromiseChangeReason::Away,
            BreachCause::Capacity => PromiseChangeReason::Capacity,
            BreachCause::Amended => PromiseChangeReason::Amended,
        }
    }
}
