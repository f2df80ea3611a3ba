//! Reading a cluster again and again.

use std::time::Duration;

use crate::{Change, Cluster, Slurm, SlurmError, changes};

/// The shortest and the longest time between two readings.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_mins(1);

/// The time between two readings, as a multiple of the controller's time for one. So it spends less than 1 % on them.
const SHARE: u32 = 100;

/// The part of the time of the commands that counts as the controller's, where `sdiag` says nothing.
const PART: u32 = 10;

/// The number of readings between two looks at the controller's own statistics.
const STRIDE: u32 = 20;

/// Reads a cluster again and again.
///
/// The time between two readings follows from the controller's time for one, by its own statistics (`sdiag`) of the calling
/// user. While the controller does not answer, the last state stays, and the time doubles.
#[derive(Debug)]
pub struct Poller {
    slurm: Slurm,
    last: Option<Cluster>,
    pause: Duration,
    cost: Cost,
}

/// What readings cost the controller.
#[derive(Debug, Default)]
struct Cost {
    /// The controller's time for requests of this user, at the last look.
    total: Option<Duration>,
    /// The readings since then.
    readings: u32,
    /// The controller's time for one, if it is known.
    one: Option<Duration>,
}

impl Poller {
    /// Returns a poller that has read nothing yet.
    pub fn new(slurm: Slurm) -> Poller {
        Poller { slurm, last: None, pause: LEAST, cost: Cost::default() }
    }

    /// Reads the cluster. Returns what changed since the last state; at the first time, every job is new.
    ///
    /// # Errors
    /// As [`Cluster::read`]. The last state stays.
    pub fn poll(&mut self) -> Result<Vec<Change>, SlurmError> {
        let read = Cluster::timed(&self.slurm);
        let took = read.as_ref().ok().map(|(_, took)| *took);
        if took.is_some() {
            self.cost.count(|| total_time(&self.slurm));
        }
        self.pause = next_pause(self.pause, took.map(|took| self.cost.one.unwrap_or(took / PART)));
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

impl Cost {
    /// Counts a reading, and looks at the statistics now and then.
    fn count(&mut self, total: impl FnOnce() -> Option<Duration>) {
        self.readings += 1;
        if self.total.is_some() && self.readings < STRIDE {
            return;
        }
        let total = total();
        // They begin again at midnight and at a restart.
        let since = self.total.zip(total).and_then(|(before, now)| now.checked_sub(before));
        self.one = since.map(|since| since / self.readings).or(self.one);
        (self.total, self.readings) = (total, 0);
    }
}

/// Returns the pause after a reading that cost the controller so much; after one that failed, twice the last pause.
fn next_pause(last: Duration, cost: Option<Duration>) -> Duration {
    cost.map_or(last * 2, |cost| cost * SHARE).clamp(LEAST, MOST)
}

/// Returns the controller's time for requests of this user, by its own statistics.
fn total_time(slurm: &Slurm) -> Option<Duration> {
    let answer = slurm.ask("sdiag", &[]).ok()?;
    total_in(&answer.text, rustix::process::getuid().as_raw())
}

fn total_in(text: &str, uid: u32) -> Option<Duration> {
    let users = text.split_once("statistics by user")?.1;
    let of_user = |line: &&str| {
        let number =
            line.split_once('(').and_then(|(_, rest)| rest.split_once(')')?.0.trim().parse::<u32>().ok());
        number == Some(uid)
    };
    let total = users.lines().find(of_user)?.rsplit_once("total_time:")?.1;
    total.trim().parse().ok().map(Duration::from_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_follows_from_the_cost_of_a_reading() {
        let millis = Duration::from_millis;
        assert_eq!(next_pause(LEAST, Some(millis(3))), LEAST);
        assert_eq!(next_pause(LEAST, Some(millis(50))), millis(5000));
        assert_eq!(next_pause(LEAST, Some(millis(5000))), MOST);
        assert_eq!(next_pause(millis(5000), None), millis(10_000));
        assert_eq!(next_pause(MOST, None), MOST);
    }

    #[test]
    fn the_statistics_of_the_user_are_found() {
        let text = "Remote Procedure Call statistics by message type\n\tREQUEST_JOB_INFO ( 2003) count:5 ave_time:277 total_time:1387\n\nRemote Procedure Call statistics by user\n\troot            (       0) count:26     ave_time:301    total_time:7841\n\tann             (    1000) count:2      ave_time:3      total_time:6\n\nPending RPC statistics\n";
        assert_eq!(total_in(text, 1000), Some(Duration::from_micros(6)));
        assert_eq!(total_in(text, 0), Some(Duration::from_micros(7841)));
        assert_eq!(total_in(text, 2003), None);
        assert_eq!(total_in("nothing", 0), None);
    }

    #[test]
    fn the_cost_of_a_reading_is_a_mean() {
        let mut cost = Cost::default();
        let total = |micros| move || Some(Duration::from_micros(micros));
        cost.count(total(1000));
        assert_eq!(cost.one, None);
        for _ in 1..STRIDE {
            cost.count(|| unreachable!("too early"));
        }
        cost.count(total(1000 + 300 * u64::from(STRIDE)));
        assert_eq!(cost.one, Some(Duration::from_micros(300)));
        // After a restart the last mean stays.
        for _ in 1..STRIDE {
            cost.count(|| unreachable!("too early"));
        }
        cost.count(total(5));
        assert_eq!(cost.one, Some(Duration::from_micros(300)));
    }
}
