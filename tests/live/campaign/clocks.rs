//! The faults of a running daemon: errors of its disk, and steps of its clocks.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, RwLock};

use jiff::{SignedDuration, Timestamp};

/// The faults. A client reads them while it makes a request, so that no clock steps meanwhile.
pub(super) type Shared = Arc<RwLock<Clocks>>;

/// The faults, and the steps of the clocks so far.
///
/// The instants of jobs, of the daemon and of this test meet on one clock: the real time of day plus the time that the machine
/// slept. It is that of the daemon's promises.
pub(super) struct Clocks {
    file: PathBuf,
    disk: String,
    /// The seconds by which the time of day was set forward.
    set: f64,
    /// The end of each sleep, in real seconds since 1970, and the length of all sleeps until then.
    sleeps: Vec<(f64, f64)>,
}

impl Clocks {
    pub(super) fn new(file: PathBuf) -> Clocks {
        Clocks { file, disk: String::new(), set: 0.0, sleeps: vec![] }
    }

    /// Lets points of the disk fail: `POINT:ERROR` or `POINT:ERROR:N`. Without any, the disk works.
    pub(super) fn fail(&mut self, faults: &[&str]) {
        self.disk = faults.join("\n");
        self.write();
    }

    /// Sets the time of day, by seconds from the real one.
    pub(super) fn set(&mut self, by: f64) {
        self.set = by;
        self.write();
    }

    /// Lets the machine sleep. Both clocks go on.
    pub(super) fn sleep(&mut self, seconds: f64) {
        let slept = self.slept() + seconds;
        // The daemon may see it a moment before.
        self.sleeps.push((real(), slept));
        self.write();
    }

    fn slept(&self) -> f64 {
        self.sleeps.last().map_or(0.0, |(_, slept)| *slept)
    }

    /// Writes the file at once, as a reader sees it.
    fn write(&self) {
        let text = format!("{}\nwall:{}\nboot:{}\n", self.disk, self.set + self.slept(), self.slept());
        let new = self.file.with_extension("new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, &self.file)).expect("a file");
    }

    /// Returns the present time of day of the daemon, `seconds` later.
    pub(super) fn wall_in(&self, seconds: f64) -> Timestamp {
        let ahead = SignedDuration::from_secs_f64(self.set + self.slept() + seconds);
        Timestamp::now() + ahead
    }

    /// Returns the common instant of one that the daemon tells now.
    pub(super) fn told(&self, at: Timestamp) -> f64 {
        at.as_duration().as_secs_f64() - self.set
    }

    /// Returns the common instant of a real one, in seconds since 1970.
    pub(super) fn common(&self, real: f64) -> f64 {
        let slept = self.sleeps.iter().rev().find(|(at, _)| *at <= real);
        real + slept.map_or(0.0, |(_, slept)| *slept)
    }

    /// Returns whether the machine slept near a real instant.
    pub(super) fn slept_near(&self, real: f64) -> bool {
        self.sleeps.iter().any(|(at, _)| (real - 5.0..real + 10.0).contains(at))
    }
}

fn real() -> f64 {
    Timestamp::now().as_duration().as_secs_f64()
}
