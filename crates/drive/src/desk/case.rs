//! A job that the driver knows.

use std::collections::BTreeSet;

use miserly_core::{JobId, JobNumber, Span, Time};
use miserly_slurm::Detail;
use serde::{Deserialize, Serialize};

use super::opportunistic::Opportunistic;
use super::quanta::{Quantum, Suspension};
use super::{PATIENCE, Step};
use crate::notes::{Note, StartRecord};

/// The first pause before a job that did not start is planned again. It doubles up to the last one.
pub(super) const FIRST_PAUSE: Span = Span::from_ticks(30 * 1_000_000);
pub(super) const LAST_PAUSE: Span = Span::from_ticks(600 * 1_000_000);

/// Forecasts that differ by this are the same.
const SMALL: Span = Span::from_ticks(60 * 1_000_000);

/// A job that the driver knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) number: JobNumber,
    /// The handle in the ledger, if it is there.
    pub(crate) handle: Option<JobId>,
    pub(crate) facts: Facts,
}

/// The stored facts of a job beside its entry in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Facts {
    /// Its form, as its user gave it.
    pub(crate) form: Detail,
    /// Its submission, seconds since 1970.
    pub(crate) submitted: i64,
    pub(crate) stage: Stage,
    /// Why it is not in the ledger, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) aside: Option<Aside>,
    /// Whether it was placed once. Slurm then shows the number of nodes that it was given there.
    #[serde(default)]
    pub(crate) was_placed: bool,
    /// How often it was placed and did not start.
    #[serde(default)]
    pub(crate) failures: u32,
    /// The last comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<String>,
    /// Its first promise since it was seen, and the last one, with the time for its start. Ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) promised: Option<(i64, i64)>,
    /// Its run ahead of its start, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) opportunistic: Option<Opportunistic>,
    /// Its run for a quantum, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) quantum: Option<Quantum>,
    /// Whether the policy gave it a quantum, for which it may have been unfit. It gets no second one.
    #[serde(default)]
    pub(crate) had_quantum: bool,
    /// Its suspension by the driver, if it is suspended, or about to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) suspension: Option<Suspension>,
    /// The time for which the driver had it suspended before, in ticks.
    #[serde(default)]
    pub(crate) stood: i64,
    /// The longest run ahead of its start that was lost, in seconds.
    #[serde(default)]
    pub(crate) lost: i64,
    /// It does not run ahead of its start before this instant, in ticks.
    #[serde(default)]
    pub(crate) rests_until: i64,
    /// Why its promise was broken, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) broken: Option<String>,
    /// Why its start uses up some of the time that a promise has for it, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delayed: Option<String>,
    /// The median of its start in simulated futures, and the start by which 95 % start. Ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) likely: Option<(i64, i64)>,
}

impl Facts {
    /// Takes the promise back for good. The next one is another one. Returns the event, if the promise was not broken before.
    pub(super) fn withdraw_promise(&mut self, why: &str) -> Option<Note> {
        let broken = self.break_promise(why);
        if let Some((_, latest)) = self.promised.as_mut() {
            *latest = Time::MAX.ticks();
        }
        broken
    }

    /// Breaks the promise. Returns the event, if there is one that was not broken before.
    fn break_promise(&mut self, why: &str) -> Option<Note> {
        if self.promised.is_none() || self.broken.is_some() {
            return None;
        }
        self.broken = Some(why.to_owned());
        Some(Note::PromiseBroken { latest: None, why: why.to_owned() })
    }

    /// Returns the record of its start, in seconds since 1970.
    pub(super) fn record(&self, job: &str, start: i64) -> StartRecord {
        let seconds = |ticks: i64| Time::from_ticks(ticks).secs();
        let slow = match self.stage {
            Stage::Placed { since, .. } => {
                Some(start - seconds(since)).filter(|took| *took > PATIENCE.secs())
            }
            _ => None,
        };
        let slow = slow.map(|took| format!("Slurm took {took} s to start it"));
        let is_late = self.promised.is_some_and(|(_, last)| start > seconds(last));
        let delayed = self.delayed.clone().filter(|_| is_late);
        StartRecord {
            job: job.to_owned(),
            submitted: self.submitted,
            first: self.promised.map(|(first, _)| seconds(first)),
            last: self.promised.map(|(_, last)| seconds(last)),
            start,
            broken: self.broken.clone().or(delayed).or(slow),
        }
    }
}

/// Where a job is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Stage {
    /// It waits.
    #[default]
    Waiting,
    /// Slurm was asked to start it.
    Placed {
        /// The instant, in ticks.
        since: i64,
        /// How often Slurm was asked.
        asked: u32,
        /// The nodes.
        nodes: Vec<String>,
        /// The reason of the policy.
        reason: String,
    },
    /// It runs.
    Running,
}

/// Why a job is set aside, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Aside {
    /// The instant of the next try, in ticks. Without one, it is planned when the reason is gone.
    pub(crate) until: Option<i64>,
    pub(crate) why: String,
}

impl Case {
    /// Sets it aside. A promise to it is broken.
    pub(super) fn set_aside(&mut self, id: &str, aside: Aside, step: &mut Step) {
        if self.facts.aside.as_ref() == Some(&aside) {
            return;
        }
        let Aside { why, .. } = &aside;
        step.changed = true;
        step.notes.push((id.to_owned(), Note::SetAside { why: why.clone() }));
        step.notes.extend(self.facts.break_promise(why).map(|note| (id.to_owned(), note)));
        self.facts.aside = Some(aside);
    }

    /// Sets it aside after a placement without a start.
    pub(super) fn fail(&mut self, at: Time, id: &str, why: String, step: &mut Step) {
        self.facts.stage = Stage::Waiting;
        self.facts.quantum = None;
        self.facts.failures += 1;
        let until = Some((at + pause(self.facts.failures)).ticks());
        self.set_aside(id, Aside { until, why }, step);
    }

    /// Returns whether Slurm is not asked yet to start it, because it waits for one of these nodes.
    pub(super) fn waits_for(&self, left: &BTreeSet<String>) -> bool {
        match &self.facts.stage {
            Stage::Placed { asked: 0, nodes, .. } => nodes.iter().any(|node| left.contains(node)),
            _ => false,
        }
    }

    /// Takes in a new forecast. A small difference changes nothing, so that the comment stays.
    pub(super) fn set_likely(&mut self, now: Time, [median, by_95]: [Time; 2]) {
        if let Some((known, _)) = self.facts.likely {
            let known = Time::from_ticks(known);
            let small = Span::from_ticks((known - now).ticks() / 10).max(SMALL);
            if median.max(known) - median.min(known) <= small {
                return;
            }
        }
        self.facts.likely = Some((median.ticks(), by_95.ticks()));
    }

    /// Returns the likely start, which is not after the promise.
    pub(super) fn likely(&self) -> Option<Time> {
        let (median, _) = self.facts.likely?;
        let latest = self.facts.promised.map_or(i64::MAX, |(_, latest)| latest);
        Some(Time::from_ticks(median.min(latest)))
    }

    /// Returns the first instant at which it may start, if it is not over.
    pub(super) fn begin(&self, at: Time) -> Option<Time> {
        self.facts.form.eligible.and_then(Time::from_secs).filter(|begin| *begin > at)
    }
}

/// Returns the pause after this number of failures.
fn pause(failures: u32) -> Span {
    let factor = 1_i64 << failures.saturating_sub(1).min(20);
    Span::from_ticks(FIRST_PAUSE.ticks().saturating_mul(factor)).min(LAST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_last_one() {
        let seconds: Vec<i64> = (1..=7).map(|failures| pause(failures).secs()).collect();
        assert_eq!(seconds, [30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(pause(u32::MAX), LAST_PAUSE);
    }

    #[test]
    fn a_slow_start_is_a_cause() {
        let since = Time::from_secs(100).unwrap().ticks();
        let stage = Stage::Placed { since, asked: 1, nodes: vec![], reason: String::new() };
        let facts = Facts { promised: Some((since, since)), stage, ..Facts::default() };
        assert_eq!(facts.record("7", 115).broken, None);
        let slow = facts.record("7", 116);
        assert_eq!(
            (slow.is_kept(), slow.broken.as_deref()),
            (Some(false), Some("Slurm took 16 s to start it"))
        );
    }

    #[test]
    fn a_forecast_changes_when_it_differs_by_much() {
        let mut case = Case { number: 1, handle: None, facts: Facts::default() };
        let at = |seconds| Time::from_secs(seconds).unwrap();
        assert_eq!(case.likely(), None);
        // (now, forecast, what is shown then)
        for (now, median, shown) in [
            (0, 100, 100),
            (0, 160, 100),
            (0, 5000, 5000),
            (0, 5400, 5000),
            // More than a tenth of the time that is left.
            (4000, 5400, 5400),
        ] {
            case.set_likely(at(now), [at(median), at(9000)]);
            assert_eq!(case.likely(), Some(at(shown)), "{median} at {now}");
        }
        case.facts.promised = Some((at(9000).ticks(), at(5300).ticks()));
        assert_eq!(case.likely(), Some(at(5300)));
    }

    #[test]
    fn a_job_that_is_set_aside_loses_its_promise_once() {
        let facts = Facts { promised: Some((5, 9)), ..Facts::default() };
        let mut case = Case { number: 1, handle: None, facts };
        let mut step = Step::default();
        let aside = Aside { until: None, why: "it is held".into() };
        case.set_aside("7", aside.clone(), &mut step);
        case.set_aside("7", aside, &mut step);
        assert_eq!(step.notes.len(), 2, "{:?}", step.notes);
        assert_eq!(case.facts.broken.as_deref(), Some("it is held"));
        case.fail(Time::from_ticks(8), "7", "it did not start".into(), &mut step);
        assert_eq!(case.facts.aside.unwrap().until, Some(8 + 30_000_000));
    }
}
