//! Signals of the user to the processes of the job.

use super::host::{Host, Recipients, Signal};
use super::supervisor::Supervisor;

/// Signals that are to be sent, and the number of the last one that was received.
#[derive(Debug, Default)]
pub(super) struct UserSignals {
    last: u32,
    /// The number of each signal, and whether only the main process receives it.
    pending: Vec<(u8, bool)>,
}

impl UserSignals {
    /// The most signals that wait until the command runs. Further ones are dropped.
    const MOST: usize = 100;

    /// Adds a signal with a number, unless it was received before.
    pub(super) fn add(&mut self, nth: u32, signal: u8, main_only: bool) {
        if nth > self.last {
            self.last = nth;
            self.push(signal, main_only);
        }
    }

    /// Adds a signal.
    pub(super) fn push(&mut self, signal: u8, main_only: bool) {
        if self.pending.len() < UserSignals::MOST {
            self.pending.push((signal, main_only));
        }
    }
}

impl<H: Host> Supervisor<H> {
    /// Sends the signals of the user, once the main process has become the command.
    ///
    /// A stopped process gets them when it continues.
    pub(super) fn send_user_signals(&mut self) {
        let runs = self.main.is_permitted && self.main.connection.is_none() && self.main.exit.is_none();
        if !runs {
            return;
        }
        for (signal, main_only) in std::mem::take(&mut self.signals_to_send.pending) {
            let to = if main_only { Recipients::Main } else { Recipients::All };
            if let Err(error) = self.host.signal(Signal::Number(signal), to) {
                self.host.log(&error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_counts_once() {
        let mut signals = UserSignals::default();
        for nth in [1, 1, 2, 1, 2] {
            signals.add(nth, 10, nth == 2);
        }
        assert_eq!(signals.pending, [(10, false), (10, true)]);
    }

    #[test]
    fn a_command_that_never_runs_collects_few_signals() {
        let mut signals = UserSignals::default();
        (1..1000).for_each(|nth| signals.add(nth, 10, false));
        assert_eq!(signals.pending.len(), UserSignals::MOST);
    }
}
