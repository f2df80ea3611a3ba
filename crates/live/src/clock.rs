//! The clocks of the machine: ticks, on which every decision is based, and wall time, which is only displayed.

use jiff::{SignedDuration, Timestamp};
use miserly_launch::fault::ClockSteps;
use miserly_launch::{BootTime, MachineClock as _};
use miserly_launcher::Clocks;

/// The daemon's clock.
pub type BootClock = miserly_launcher::BootClock<MachineClocks>;

/// A source of wall time: [`time_of_day`], except in tests of clock changes.
pub type Wall = fn() -> Timestamp;

/// Returns the time of day of the machine, with the steps of a test.
pub fn time_of_day() -> Timestamp {
    let step = SignedDuration::from_micros(ClockSteps::now().wall);
    Timestamp::now().checked_add(step).unwrap_or(Timestamp::MAX)
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug)]
pub struct MachineClocks(pub Wall);

impl Clocks for MachineClocks {
    fn boot(&self) -> BootTime {
        BootTime::now()
    }

    fn wall(&self) -> Timestamp {
        (self.0)()
    }
}
