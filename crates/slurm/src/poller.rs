//! Reading a cluster again and again.

use std::time::{Duration, Instant};

use crate::{Change, Cluster, Slurm, SlurmError, changes};

/// The shortest and the longest time between two readings.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_mins(1);

/// The time between two readings, as a multiple of the controller's time for one. So it spends less than 1 % on them.
const SHARE: u32 = 100;

/// The longest time between two readings of a poller that reads the jobs most: their starts wait for it.
const MOST_OF_OFTEN: Duration = Duration::from_secs(2);

/// The longest time between two readings of such a poller, if the work on a reading takes long.
const MOST_AFTER_WORK: Duration = Duration::from_secs(5);

/// The time between two readings, as a multiple of the processor time of this process and of its commands for one. So they take
/// 2 % of a processor.
const OWN_SHARE: u32 = 50;

/// The readings of all, for each of which some read the jobs only.
const JOBS_ONLY: u32 = 4;

/// The part of the time of the commands that counts as the controller's, where `sdiag` has no statistics.
const PART: u32 = 10;

/// The number of readings between two looks at the controller's own statistics.
const STRIDE: u32 = 20;

/// Reads a cluster again and again.
///
/// The time between two readings follows from the controller's time for one, by its own statistics (`sdiag`): the requests of
/// the calling user, or those of the kinds that a reading needs, whichever took less time. It follows as well from the processor
/// time of this process. While the controller does not answer, the last state stays, and the time doubles.
#[derive(Debug)]
pub struct Poller {
    slurm: Slurm,
    last: Option<Cluster>,
    pause: Duration,
    cost: Cost,
    /// The processor time of this process before the first reading.
    begun: Option<Duration>,
    /// The readings since then.
    readings: u32,
    /// The instant of the last reading of all, and the readings of jobs since then.
    all: Option<(Instant, u32)>,
    /// The controller's time at the last reading of all.
    begun_at: i64,
    /// Whether jobs are read more often than the rest.
    often: bool,
}

/// The cost of readings to the controller.
#[derive(Debug, Default)]
struct Cost {
    /// The controller's times for requests at the last look, of this user and of the kinds that a reading needs. Both have
    /// requests of others too.
    totals: Option<[Duration; 2]>,
    /// The readings since then.
    readings: u32,
    /// The controller's time for one, if it is known.
    one: Option<Duration>,
}

impl Poller {
    /// Returns a poller that has read nothing yet.
    pub fn new(slurm: Slurm) -> Poller {
        Poller {
            slurm,
            last: None,
            pause: LEAST,
            cost: Cost::default(),
            begun: processor_time(),
            readings: 0,
            all: None,
            begun_at: 0,
            often: false,
        }
    }

    /// Reads the jobs more often than nodes, partitions and reservations: at four of five readings they are as they were.
    ///
    /// It reads every two seconds, also if that costs the controller more. If the work of this process on a reading takes long, it
    /// reads every five seconds.
    #[must_use]
    pub fn jobs_most(self) -> Poller {
        Poller { often: true, ..self }
    }

    /// Returns whether the last reading was of all.
    pub fn is_complete(&self) -> bool {
        self.all.is_some_and(|(_, readings)| readings == 0)
    }

    /// Reads all at the next reading.
    pub fn read_all(&mut self) {
        self.all = None;
    }

    /// Reads the cluster. Returns the changes since the last state; at the first time, every job is new.
    ///
    /// # Errors
    /// As [`Cluster::read`]. The last state stays.
    pub fn poll(&mut self) -> Result<Vec<Change>, SlurmError> {
        let read = self.read();
        let took = read.as_ref().ok().map(|(_, took)| *took);
        if took.is_some() {
            self.cost.count(|| total_times(&self.slurm));
        }
        let controller = took.map(|took| self.cost.one.unwrap_or(took / PART));
        let changes = read.map(|(cluster, _)| {
            let before = self.last.take().unwrap_or_default();
            let changes = changes(&before, &cluster);
            self.last = Some(cluster);
            changes
        });
        self.readings += 1;
        let controller =
            controller.map(|cost| if self.often { cost.min(MOST_OF_OFTEN / SHARE) } else { cost });
        self.pause = next_pause(self.pause, controller, self.own());
        if self.often && controller.is_some() {
            self.pause = self.pause.min(MOST_AFTER_WORK);
        }
        changes
    }

    #[allow(clippy::disallowed_methods, reason = "the age of a reading decides no schedule")]
    fn read(&mut self) -> Result<(Cluster, Duration), SlurmError> {
        let known = self.last.as_ref().filter(|_| self.often).zip(self.all);
        if let Some((last, (at, readings))) = known.filter(|(_, (_, readings))| *readings < JOBS_ONLY) {
            let (jobs, took) = Cluster::timed_jobs(&self.slurm)?;
            self.all = Some((at, readings + 1));
            let mut cluster = Cluster { jobs, ..last.clone() };
            cluster.configuration.now = self.begun_at + i64::try_from(at.elapsed().as_secs()).unwrap_or(0);
            return Ok((cluster, took));
        }
        let read = Cluster::timed(&self.slurm)?;
        self.all = Some((Instant::now(), 0));
        self.begun_at = read.0.configuration.now;
        Ok(read)
    }

    /// Returns the mean processor time of this process for a reading, and for the work on it.
    fn own(&self) -> Duration {
        let since = processor_time().zip(self.begun).map(|(now, begun)| now.saturating_sub(begun));
        since.unwrap_or_default() / self.readings.max(1)
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
    fn count(&mut self, totals: impl FnOnce() -> Option<[Duration; 2]>) {
        self.readings += 1;
        if self.totals.is_some() && self.one.is_some() && self.readings < STRIDE {
            return;
        }
        let totals = totals();
        // They begin again at midnight and at a restart.
        let since = self.totals.zip(totals).and_then(|(before, now)| {
            let least = [now[0].checked_sub(before[0])?, now[1].checked_sub(before[1])?];
            least.into_iter().min()
        });
        self.one = since.map(|since| since / self.readings).or(self.one);
        (self.totals, self.readings) = (totals, 0);
    }
}

/// Returns the pause after a reading that cost the controller and this process so much; after one that failed, twice the last
/// pause.
fn next_pause(last: Duration, controller: Option<Duration>, own: Duration) -> Duration {
    controller.map_or(last * 2, |cost| (cost * SHARE).max(own * OWN_SHARE)).clamp(LEAST, MOST)
}

/// Returns the processor time of this process and of the commands that it ran, in steps of mostly 10 ms.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in parentheses, may have spaces. Four times follow eleven fields later.
    let fields = text.rsplit_once(')')?.1.split_whitespace().skip(11).take(4);
    let ticks = fields.map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second()))
}

/// The requests of a reading.
const KINDS: [&str; 5] = [
    "REQUEST_BUILD_INFO",
    "REQUEST_NODE_INFO",
    "REQUEST_PARTITION_INFO",
    "REQUEST_RESERVATION_INFO",
    "REQUEST_JOB_INFO",
];

/// Returns the controller's times for requests, by its own statistics: of this user, and of the kinds of a reading.
fn total_times(slurm: &Slurm) -> Option<[Duration; 2]> {
    let answer = slurm.ask("sdiag", &[]).ok()?;
    totals_in(&answer.text, rustix::process::getuid().as_raw())
}

fn totals_in(text: &str, uid: u32) -> Option<[Duration; 2]> {
    let (kinds, users) = text.split_once("statistics by message type")?.1.split_once("statistics by user")?;
    let time = |line: &str| {
        let micros = line.rsplit_once("total_time:")?.1.trim().parse().ok()?;
        Some(Duration::from_micros(micros))
    };
    let number = |line: &str| line.split_once('(')?.1.split_once(')')?.0.trim().parse::<u32>().ok();
    let of_user = users.lines().find(|line| number(line) == Some(uid)).and_then(time)?;
    let needed = |line: &&str| line.split_whitespace().next().is_some_and(|kind| KINDS.contains(&kind));
    Some([of_user, kinds.lines().filter(needed).filter_map(time).sum()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_follows_from_the_cost_of_a_reading() {
        let millis = Duration::from_millis;
        assert_eq!(next_pause(LEAST, Some(millis(3)), millis(20)), LEAST);
        assert_eq!(next_pause(LEAST, Some(millis(50)), millis(100)), millis(5000));
        assert_eq!(next_pause(LEAST, Some(millis(5000)), millis(1)), MOST);
        assert_eq!(next_pause(millis(5000), None, millis(1)), millis(10_000));
        assert_eq!(next_pause(MOST, None, millis(1)), MOST);
        assert_eq!(next_pause(LEAST, Some(millis(3)), millis(70)), millis(3500));
    }

    #[test]
    fn the_statistics_of_the_user_are_found() {
        let text = "Remote Procedure Call statistics by message type\n\tREQUEST_JOB_INFO ( 2003) count:5 ave_time:277 total_time:1387\n\nRemote Procedure Call statistics by user\n\troot            (       0) count:26     ave_time:301    total_time:7841\n\tann             (    1000) count:2      ave_time:3      total_time:6\n\nPending RPC statistics\n";
        let micros = Duration::from_micros;
        assert_eq!(totals_in(text, 1000), Some([micros(6), micros(1387)]));
        assert_eq!(totals_in(text, 0), Some([micros(7841), micros(1387)]));
        assert_eq!(totals_in(text, 2003), None);
        assert_eq!(totals_in("nothing", 0), None);
    }

    #[test]
    fn the_cost_of_a_reading_is_a_mean() {
        let mut cost = Cost::default();
        let total = |micros| {
            move || Some([Duration::from_micros(micros), Duration::from_micros(9_000_000 + micros * micros)])
        };
        cost.count(total(1000));
        assert_eq!(cost.one, None);
        cost.count(total(1300));
        assert_eq!(cost.one, Some(Duration::from_micros(300)));
        for _ in 1..STRIDE {
            cost.count(|| unreachable!("too early"));
        }
        cost.count(total(1300 + 500 * u64::from(STRIDE)));
        assert_eq!(cost.one, Some(Duration::from_micros(500)));
        // After a restart the last mean stays.
        for _ in 1..STRIDE {
            cost.count(|| unreachable!("too early"));
        }
        cost.count(total(5));
        assert_eq!(cost.one, Some(Duration::from_micros(500)));
    }
}
