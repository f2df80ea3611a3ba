//! The decision which opportunistic jobs are parked because memory is short.

use std::time::Duration;

use miserly_engine::Attempt;

/// The share of the time in which all processes wait for memory, in hundredths of a percent, from which memory is short.
const PRESSURE: u32 = 1_000;

/// The least distance between the memory at which jobs are parked and that at which they go on, in bytes.
const LEAST_BAND: u64 = 64 << 20;

/// The time without a change after which a job goes on.
const QUIET: Duration = Duration::from_secs(2);

/// The state of the memory, and the opportunistic jobs. Memory is in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryReading {
    /// The memory that could be allocated without swapping (`MemAvailable`).
    pub available: u64,
    /// The memory that stays free for the system.
    pub reserve: u64,
    /// The memory that jobs in their windows have not taken yet, up to their requests.
    pub promised: u64,
    /// The share of the last 10 s in which all processes waited for memory, in hundredths of a percent.
    pub pressure: u32,
    /// The opportunistic jobs, from old to new.
    pub jobs: Vec<OpportunisticJob>,
    /// The time since a job was last parked or went on.
    pub quiet: Duration,
}

/// An opportunistic job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpportunisticJob {
    /// The attempt.
    pub attempt: Attempt,
    /// Whether it is parked because memory was short.
    pub parked: bool,
    /// Whether it is frozen already, for this reason or another one.
    pub frozen: bool,
}

/// The jobs whose state changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryDecision {
    /// The jobs to park.
    pub park: Vec<Attempt>,
    /// The jobs that go on.
    pub resume: Vec<Attempt>,
}

impl MemoryReading {
    /// Returns the memory that is free beyond the reserve and the promises; below 0 if they are not covered.
    fn headroom(&self) -> i128 {
        i128::from(self.available) - i128::from(self.reserve) - i128::from(self.promised)
    }

    /// Returns the headroom above which memory is certainly not short.
    fn band(&self) -> i128 {
        self.reserve.max(LEAST_BAND).into()
    }

    /// Returns whether memory is short: the reserve or the promises are not covered, or nearly so and processes wait for memory.
    ///
    /// Pressure alone is no shortage of the machine: a job that fills its own request waits, too.
    fn is_short(&self) -> bool {
        self.headroom() < 0 || (self.pressure >= PRESSURE && self.headroom() < self.band())
    }

    /// Decides which jobs are parked now and which go on.
    ///
    /// While memory is short, each reading parks the newer half of the running jobs, so that n jobs are parked after
    /// log2(n) + 1 readings. When the headroom is the band again, the oldest parked job goes on, one at a time.
    pub fn decide(&self) -> MemoryDecision {
        if self.is_short() {
            let running: Vec<Attempt> =
                self.jobs.iter().filter(|job| !job.parked && !job.frozen).map(|job| job.attempt).collect();
            // A job that is frozen for another reason stays so when that reason is over.
            let frozen = self.jobs.iter().filter(|job| !job.parked && job.frozen).map(|job| job.attempt);
            let newer = running[running.len() / 2..].iter().copied();
            return MemoryDecision { park: newer.chain(frozen).collect(), resume: vec![] };
        }
        let may_resume = self.headroom() >= self.band() && self.quiet >= QUIET;
        let oldest = self.jobs.iter().find(|job| job.parked && may_resume);
        MemoryDecision { park: vec![], resume: oldest.map(|job| job.attempt).into_iter().collect() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIB: u64 = 1 << 20;

    fn attempt(job: i64) -> Attempt {
        Attempt { job, nth: 1 }
    }

    /// Returns a reading with a reserve of 100 MiB. Lower case letters are running jobs, upper case ones parked, `#` a frozen
    /// one; they are numbered from 1.
    fn reading(available: u64, promised: u64, pressure: u32, jobs: &str) -> MemoryReading {
        let job = |(number, letter): (i64, char)| OpportunisticJob {
            attempt: attempt(number),
            parked: letter.is_uppercase(),
            frozen: letter == '#' || letter.is_uppercase(),
        };
        MemoryReading {
            available: available * MIB,
            reserve: 100 * MIB,
            promised: promised * MIB,
            pressure,
            jobs: (1..).zip(jobs.chars()).map(job).collect(),
            quiet: QUIET,
        }
    }

    #[track_caller]
    fn check(reading: &MemoryReading, park: &[i64], resume: &[i64]) {
        let attempts = |jobs: &[i64]| jobs.iter().copied().map(attempt).collect::<Vec<_>>();
        assert_eq!(reading.decide(), MemoryDecision { park: attempts(park), resume: attempts(resume) });
    }

    #[test]
    fn the_newer_half_is_parked_when_reserve_and_promises_are_not_covered() {
        check(&reading(1000, 900, 0, "abcd"), &[], &[]);
        check(&reading(999, 900, 0, "abcd"), &[3, 4], &[]);
        check(&reading(999, 900, 0, "abCD"), &[2], &[]);
        check(&reading(999, 900, 0, "aBCD"), &[1], &[]);
        check(&reading(999, 900, 0, "ABCD"), &[], &[]);
        check(&reading(0, 0, 0, ""), &[], &[]);
    }

    #[test]
    fn a_job_that_is_frozen_already_is_parked_beside_the_half() {
        check(&reading(50, 0, 0, "a#c"), &[3, 2], &[]);
    }

    #[test]
    fn pressure_counts_only_while_little_is_free() {
        check(&reading(150, 0, 1_000, "a"), &[1], &[]);
        check(&reading(150, 0, 999, "a"), &[], &[]);
        check(&reading(200, 0, 10_000, "a"), &[], &[]);
    }

    #[test]
    fn the_oldest_goes_on_when_there_is_room_and_a_while_has_passed() {
        check(&reading(1099, 900, 0, "aBC"), &[], &[]);
        check(&reading(1100, 900, 0, "aBC"), &[], &[2]);
        let soon = MemoryReading {
            quiet: QUIET.checked_sub(Duration::from_millis(1)).unwrap(),
            ..reading(1100, 900, 0, "aBC")
        };
        check(&soon, &[], &[]);
    }

    proptest! {
        /// The band keeps a job that goes on from being parked at the same memory.
        #[test]
        fn nothing_is_parked_and_resumed_at_once(
            available in 0..4000_u64, promised in 0..2000_u64, pressure in 0..=10_000_u32, jobs in "[a-fA-F#]{0,6}",
        ) {
            let reading = reading(available, promised, pressure, &jobs);
            let decision = reading.decide();
            prop_assert!(decision.park.is_empty() || decision.resume.is_empty());
            prop_assert_eq!(!decision.resume.is_empty(), {
                let room = available >= 200 + promised;
                room && jobs.contains(char::is_uppercase)
            });
        }

        /// However many jobs there are, few readings park all of them.
        #[test]
        fn all_are_parked_soon(count in 1..200_usize) {
            let mut reading = reading(0, 0, 0, &"a".repeat(count));
            let mut readings = 0;
            while reading.jobs.iter().any(|job| !job.parked) {
                for parked in reading.decide().park {
                    let job = reading.jobs.iter_mut().find(|job| job.attempt == parked).unwrap();
                    (job.parked, job.frozen) = (true, true);
                }
                readings += 1;
            }
            prop_assert!(readings <= usize::BITS - count.leading_zeros(), "{readings}");
        }
    }
}
