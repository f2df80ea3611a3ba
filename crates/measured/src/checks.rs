//! The mechanisms: what must hold in every run, on any machine.

use std::collections::BTreeMap;

use miserly_api::model::JobView;
use miserly_report::page::{Claim, ClaimVerdict, ReadClaim};

use crate::program::Record;

/// Largest difference of the clocks of the daemon and of a job, microseconds.
const CLOCKS: i64 = 50_000;

/// The default `promise-slack`, seconds. The daemon of a measurement has none.
const DEFAULT_SLACK: f64 = 2.0;

/// A mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Mechanism {
    Results,
    Ends,
    Windows,
    Processors,
    Early,
    EarlyCopies,
    Kept,
    /// The reading of [`Mechanism::Kept`] in which promises have the default slack.
    KeptInSlack,
}

impl Mechanism {
    fn text(self) -> &'static str {
        match self {
            Mechanism::Results => "Each kernel had the result of a run on one thread, and verified it",
            Mechanism::Ends => "Each job ended by itself with exit code 0",
            Mechanism::Windows => {
                "Each command ran in the window of its job: it began at its start or later, or opportunistically before, and ended before its end"
            }
            Mechanism::Processors => {
                "Each job that ended in its window was on as many processors as it requested, all of the pool, and in the normal class"
            }
            Mechanism::Early => {
                "The work below the promised starts was opportunistic: it began before its window"
            }
            Mechanism::EarlyCopies => "In each batch with opportunistic work, a copy began before its window",
            Mechanism::Kept | Mechanism::KeptInSlack => {
                "No job started later than first promised, and no promise was broken"
            }
        }
    }

    /// Returns whether a failure is one of the program. Where other programs use all processors, opportunistic work may get no
    /// time before its window, and the daemon may be late.
    fn must_hold(self) -> bool {
        !matches!(self, Mechanism::EarlyCopies | Mechanism::Kept | Mechanism::KeptInSlack)
    }
}

/// The checks so far.
#[derive(Debug, Default)]
pub(crate) struct Checks {
    made: BTreeMap<Mechanism, (u64, Vec<String>)>,
}

impl Checks {
    /// Adds a check. `what` describes a failure.
    pub(crate) fn add(&mut self, mechanism: Mechanism, holds: bool, what: impl FnOnce() -> String) {
        let (count, failures) = self.made.entry(mechanism).or_default();
        *count += 1;
        if !holds {
            failures.push(what());
        }
    }

    /// Checks a job that ended, against the processors of the pool. `early` is whether it may run before its window.
    pub(crate) fn add_job(&mut self, job: &JobView, record: &Record, pool: &[u32], early: bool) {
        let number = job.number;
        self.add(Mechanism::Ends, job.phase.succeeded(), || format!("job {number}: {:?}", job.phase));
        let Some(promise) = &job.promise else {
            return self.add(Mechanism::Windows, false, || format!("job {number} has no promise"));
        };
        let window = promise.now.unwrap_or(promise.promised);
        let (start, end) = (window.start.as_microsecond(), window.end.as_microsecond());
        let begins = early || record.begin >= start - CLOCKS;
        self.add(Mechanism::Windows, begins && record.end <= end + CLOCKS, || {
            format!(
                "job {number} ran from {} to {}, its window is {start} to {end}",
                record.begin, record.end
            )
        });
        // A job that ended before its window was on idle processors.
        if record.end > start {
            let cpus = numbers(&record.cpus);
            let is_own = cpus.len() as u64 == job.cpus && cpus.iter().all(|cpu| pool.contains(cpu));
            // The class changes at the start of the window, a moment after its time.
            let is_settled = !early || record.end > start + 20 * CLOCKS;
            self.add(Mechanism::Processors, !is_settled || (is_own && !record.idle), || {
                format!("job {number} was on {} with idle class {}", record.cpus, record.idle)
            });
        }
        let promised = promise.promised.start.as_microsecond();
        let late = job.late.map_or(0.0, |late| late.by);
        #[allow(clippy::cast_possible_truncation, reason = "two seconds")]
        let slack = (1e6 * DEFAULT_SLACK) as i64;
        for (mechanism, in_time) in [
            (Mechanism::Kept, job.late.is_none() && start <= promised + CLOCKS),
            (Mechanism::KeptInSlack, late <= DEFAULT_SLACK && start <= promised + slack + CLOCKS),
        ] {
            self.add(mechanism, promise.at_risk.is_none() && in_time, || {
                format!("job {number}: {:?}, {:?}", promise.at_risk, job.late)
            });
        }
    }

    /// Returns the mechanisms as claims.
    pub(crate) fn claims(&self) -> Vec<Claim> {
        let own = self.made.iter().filter(|(mechanism, _)| **mechanism != Mechanism::KeptInSlack);
        let claim = |(mechanism, made): (&Mechanism, &(u64, Vec<String>))| {
            let (verdict, figures) = verdict(made);
            let is_kept = *mechanism == Mechanism::Kept;
            let in_slack = self.made.get(&Mechanism::KeptInSlack).filter(|_| is_kept);
            let read = |made| {
                let (verdict, figures) = self::verdict(made);
                ReadClaim { name: format!("the default slack of {DEFAULT_SLACK} s"), verdict, figures }
            };
            let why = if is_kept && verdict == ClaimVerdict::DoesNotHold {
                "The daemon of the measurement gives promises without slack, so the launch alone makes a start late."
            } else {
                ""
            };
            let readings = in_slack.map(read).into_iter().collect();
            Claim {
                text: mechanism.text().into(),
                verdict,
                figures,
                why: why.into(),
                readings,
                ..Claim::default()
            }
        };
        own.map(claim).collect()
    }

    /// Returns the failures that are errors of the program.
    pub(crate) fn failures(&self) -> Vec<String> {
        let must_hold = self.made.iter().filter(|(mechanism, _)| mechanism.must_hold());
        must_hold.flat_map(|(_, (_, failures))| failures.clone()).collect()
    }
}

/// Returns the verdict of checks, and how many did not fail.
fn verdict((count, failures): &(u64, Vec<String>)) -> (ClaimVerdict, String) {
    match failures.first() {
        None => (ClaimVerdict::Holds, format!("{count} of {count}")),
        Some(first) => {
            let held = count - failures.len() as u64;
            (ClaimVerdict::DoesNotHold, format!("{held} of {count}; first: {first}"))
        }
    }
}

/// Parses processors as the kernel lists them: `0-2,7`.
pub(crate) fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<u32>> {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        Some(low.parse().ok()?..=high.parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors() {
        assert_eq!(numbers("0-2,7"), [0, 1, 2, 7]);
        assert_eq!(numbers("1"), [1]);
        assert_eq!(numbers(""), [0_u32; 0]);
    }

    #[test]
    fn a_failure_is_named_and_a_late_start_is_none_of_the_program() {
        let mut checks = Checks::default();
        checks.add(Mechanism::Results, true, || unreachable!());
        checks.add(Mechanism::Kept, false, || "job 3 was late".into());
        checks.add(Mechanism::KeptInSlack, true, || unreachable!());
        assert!(checks.failures().is_empty());
        checks.add(Mechanism::Results, false, || "cg: 1 is not 2".into());
        assert_eq!(checks.failures(), ["cg: 1 is not 2"]);
        let claims = checks.claims();
        assert_eq!(claims[0].figures, "1 of 2; first: cg: 1 is not 2");
        assert_eq!(claims[0].verdict, ClaimVerdict::DoesNotHold);
        assert_eq!(claims[1].figures, "0 of 1; first: job 3 was late");
        let read = ReadClaim {
            name: "the default slack of 2 s".into(),
            verdict: ClaimVerdict::Holds,
            figures: "1 of 1".into(),
        };
        assert_eq!((claims.len(), &claims[1].readings[..]), (2, &[read][..]));
    }
}
