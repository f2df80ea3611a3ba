//! The two reasons for which an opportunistic job is stopped: no resources are idle, or memory is short.
//!
//! The engine does not know of the second one, so no decision and no replay depends on it. A window ends both.

use miserly_launch::{BootTime, ShimCommand};
use miserly_marks::mark;

/// The reasons for which an attempt is stopped, and its window.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    /// Whether the engine has stopped it.
    by_engine: bool,
    /// Whether it is stopped because memory is short.
    short: bool,
    /// Whether its window has begun. Its memory is promised then.
    in_window: bool,
    /// The planned start of its window, at which its shim begins it in any case.
    start: Option<BootTime>,
}

impl Parking {
    /// Returns the state of an attempt with this planned start.
    pub(crate) fn new(start: Option<BootTime>) -> Parking {
        Parking { start, ..Parking::default() }
    }

    /// Takes note of a command of the engine. Returns whether the shim gets it now.
    pub(crate) fn admits(&mut self, command: &ShimCommand) -> bool {
        match command {
            ShimCommand::Stop => self.by_engine = true,
            ShimCommand::Resume => {
                self.by_engine = false;
                return !self.short;
            }
            ShimCommand::BeginWindow { .. } => *self = Parking { in_window: true, ..Parking::default() },
            ShimCommand::SetWindow(window) => self.start = Some(window.start),
            ShimCommand::RevokeWindow => self.start = None,
            _ => {}
        }
        true
    }

    /// Returns whether memory is short.
    pub(crate) const fn is_short(&self) -> bool {
        self.short
    }

    /// Takes note of a shortage of memory or of its end. Returns the command for the shim.
    ///
    /// A job in its window is not parked, not even if the daemon has not begun the window yet.
    pub(crate) fn set_short(&mut self, now: BootTime, short: bool) -> Option<ShimCommand> {
        let in_window = self.in_window || self.start.is_some_and(|start| start <= now);
        let short = short && !in_window;
        if short == self.short {
            return None;
        }
        mark!("memory is short");
        self.short = short;
        let command = if short { ShimCommand::Stop } else { ShimCommand::Resume };
        (!self.by_engine).then_some(command)
    }
}

#[cfg(test)]
mod tests {
    use miserly_launch::ReservedWindow;

    use super::*;
    use ShimCommand::{Resume, Stop};

    const NOW: BootTime = BootTime(100);

    #[test]
    fn a_job_goes_on_when_neither_reason_is_left() {
        let mut parking = Parking::new(None);
        assert_eq!(parking.set_short(NOW, true), Some(Stop));
        assert_eq!(parking.set_short(NOW, true), None);
        assert!(parking.admits(&Stop));
        assert!(!parking.admits(&Resume));
        assert_eq!(parking.set_short(NOW, false), Some(Resume));
        assert!(parking.admits(&Stop));
        assert_eq!(parking.set_short(NOW, true), None);
        assert_eq!(parking.set_short(NOW, false), None);
        assert!(parking.admits(&Resume));
    }

    #[test]
    fn a_job_in_its_window_is_not_parked() {
        let mut parking = Parking::new(None);
        assert_eq!(parking.set_short(NOW, true), Some(Stop));
        assert!(parking.admits(&ShimCommand::BeginWindow { cpus: vec![1], end: BootTime(500) }));
        assert_eq!(parking.set_short(NOW, true), None);
        assert_eq!(parking.set_short(NOW, false), None);
        assert!(parking.admits(&Resume));
    }

    #[test]
    fn a_job_whose_window_its_shim_begins_is_not_parked_from_then_on() {
        let mut parking = Parking::new(Some(BootTime(101)));
        assert_eq!(parking.set_short(NOW, true), Some(Stop));
        assert_eq!(parking.set_short(NOW, false), Some(Resume));
        assert_eq!(parking.set_short(BootTime(101), true), None);
        let window = ReservedWindow { start: BootTime(200), end: BootTime(300), cpus: vec![1], after: None };
        assert!(parking.admits(&ShimCommand::SetWindow(window)));
        assert_eq!(parking.set_short(BootTime(101), true), Some(Stop));
    }
}
