//! Reading a cluster again and again.

use std::time::Duration;

use crate::{Change, Cluster, Slurm, SlurmError, changes};

/// The shortest and the longest time between two readings.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_mins(1);

/// The time between two readings, as a multiple of the time that one takes. So the controller spends less than 1 % on them.
const SHARE: u32 = 100;

/// Reads a cluster again and again.
///
/// The time between two readings follows from the time that they take: the commands wait for the controller, so it spends no
/// more on them. While the controller does not answer, the last state stays, and the time doubles.
#[derive(Debug)]
pub struct Poller {
    slurm: Slurm,
    last: Option<Cluster>,
    pause: Duration,
}

impl Poller {
    /// Returns a poller that has read nothing yet.
    pub fn new(slurm: Slurm) -> Poller {
        Poller { slurm, last: None, pause: LEAST }
    }

    /// Reads the cluster. Returns what changed since the last state; at the first time, every job is new.
    ///
    /// # Errors
    /// As [`Cluster::read`]. The last state stays.
    pub fn poll(&mut self) -> Result<Vec<Change>, SlurmError> {
        let read = Cluster::timed(&self.slurm);
        self.pause = next_pause(self.pause, read.as_ref().ok().map(|(_, took)| *took));
        let (cluster, _) = read?;
        let before = self.last.take().unwrap_or_default();
        let changes = changes(&before, &cluster);
        self.last = Some(cluster);
        Ok(changes)
    }

    /// Returns the last state, if there is one.
    pub fn cluster(&self) -> Option<&Cluster> {
        self.last.as_ref()
    }

    /// Returns the time until the next reading.
    pub fn pause(&self) -> Duration {
        self.pause
    }
}

/// Returns the pause after a reading that took so long; after one that failed, twice the last pause.
fn next_pause(last: Duration, took: Option<Duration>) -> Duration {
    took.map_or(last * 2, |took| took * SHARE).clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_follows_from_the_time_of_a_reading() {
        let millis = Duration::from_millis;
        assert_eq!(next_pause(LEAST, Some(millis(3))), LEAST);
        assert_eq!(next_pause(LEAST, Some(millis(50))), millis(5000));
        assert_eq!(next_pause(LEAST, Some(millis(5000))), MOST);
        assert_eq!(next_pause(millis(5000), None), millis(10_000));
        assert_eq!(next_pause(MOST, None), MOST);
    }
}
