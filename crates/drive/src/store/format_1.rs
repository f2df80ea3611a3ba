//! Jobs as format 1 has them: flags and options beside a stage.

use miserly_core::{Span, Time};
use miserly_saved::SavedEntry;
use miserly_slurm::Detail;
use serde::Deserialize;

use super::JobRow;
use crate::instant::instant;
use crate::scheduler::{
    Assignment, DrivenJob, DrivenState, EarlyRun, LikelyStart, NodeShare, Opportunistic, Run, Unplanned,
    UserPromise,
};

/// A job in format 1. Instants are in ticks, if nothing else is said.
#[derive(Deserialize)]
pub(super) struct OldRow {
    number: i64,
    facts: Facts,
    entry: Option<SavedEntry>,
}

#[derive(Deserialize)]
struct Facts {
    form: Detail,
    /// Seconds.
    submitted: i64,
    stage: Stage,
    aside: Option<Aside>,
    #[serde(default)]
    was_placed: bool,
    #[serde(default)]
    failures: u32,
    told: Option<String>,
    promised: Option<(i64, i64)>,
    opportunistic: Option<OldOpportunistic>,
    quantum: Option<Quantum>,
    #[serde(default)]
    had_quantum: bool,
    suspension: Option<Suspension>,
    #[serde(default)]
    stood: i64,
    /// Seconds.
    #[serde(default)]
    lost: i64,
    #[serde(default)]
    rests_until: i64,
    broken: Option<String>,
    delayed: Option<String>,
    likely: Option<(i64, i64)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Stage {
    Waiting,
    Placed { since: i64, asked: u32, nodes: Vec<String>, reason: String },
    Running,
}

#[derive(Deserialize)]
struct Aside {
    until: Option<i64>,
    why: String,
}

#[derive(Deserialize)]
struct Quantum {
    until: i64,
    /// Seconds.
    start: Option<i64>,
}

#[derive(Deserialize)]
struct Suspension {
    since: Option<i64>,
}

#[derive(Deserialize)]
struct OldOpportunistic {
    run: OldRun,
    shares: Vec<NodeShare>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum OldRun {
    Placed {
        since: i64,
        asked: u32,
    },
    /// The start is in seconds.
    Running {
        start: i64,
    },
    /// The start and the end of the wait are in seconds.
    Parked {
        since: i64,
        start: Option<i64>,
        waits_since: Option<i64>,
        eligible: Option<i64>,
    },
}

impl From<OldRow> for JobRow {
    fn from(OldRow { number, facts, entry }: OldRow) -> JobRow {
        let promise = facts.promised.map(|(first, latest)| UserPromise {
            first: Time::from_ticks(first),
            latest: Time::from_ticks(latest),
            broken: facts.broken.clone(),
            delayed: facts.delayed.clone(),
        });
        let likely = facts.likely.map(|(median, by_95)| LikelyStart {
            median: Time::from_ticks(median),
            by_95: Time::from_ticks(by_95),
        });
        let mut job = DrivenJob::restored(facts.state());
        job.number = number;
        job.form = facts.form;
        job.submitted = instant(facts.submitted);
        job.was_placed = facts.was_placed;
        job.failed_starts = facts.failures;
        job.comment = facts.told;
        job.promise = promise;
        job.had_quantum = facts.had_quantum;
        job.lost = Span::from_secs(facts.lost).unwrap_or(Span::ZERO);
        job.no_early_run_before = Some(Time::from_ticks(facts.rests_until)).filter(|at| *at > Time::ZERO);
        job.likely = likely;
        JobRow { job, entry }
    }
}

impl Facts {
    fn state(&self) -> DrivenState {
        let opportunistic = self.opportunistic.as_ref().map(OldOpportunistic::read);
        match &self.stage {
            Stage::Waiting => {
                let unplanned = self.aside.as_ref().map(|aside| Unplanned {
                    until: aside.until.map(Time::from_ticks),
                    why: aside.why.clone(),
                });
                DrivenState::waiting(unplanned, opportunistic)
            }
            Stage::Placed { since, asked, nodes, reason } => {
                let assignment = Assignment {
                    since: Time::from_ticks(*since),
                    nodes: nodes.clone(),
                    last: None,
                    reason: reason.clone(),
                    quantum: self.quantum.as_ref().map(|quantum| Time::from_ticks(quantum.until)),
                };
                match std::num::NonZero::new(*asked) {
                    Some(commands) => DrivenState::Placed { assignment, commands },
                    None => DrivenState::Assigned { assignment, opportunistic },
                }
            }
            Stage::Running => DrivenState::Running(self.run()),
        }
    }

    fn run(&self) -> Run {
        let suspended_for = Span::from_ticks(self.stood);
        match (&self.suspension, &self.quantum) {
            (Some(Suspension { since }), _) => {
                Run::Suspended { since: since.map(Time::from_ticks), suspended_for }
            }
            (None, Some(Quantum { until, start: Some(start) })) => {
                Run::Quantum { until: Time::from_ticks(*until), start: instant(*start) }
            }
            (None, _) => Run::Ordinary { suspended_for },
        }
    }
}

impl OldOpportunistic {
    fn read(&self) -> Opportunistic {
        let run = match self.run {
            OldRun::Placed { since, asked } => {
                EarlyRun::Placed { since: Time::from_ticks(since), commands: asked }
            }
            OldRun::Running { start } => EarlyRun::Running { start: instant(start) },
            OldRun::Parked { start, waits_since: Some(since), eligible, .. } => EarlyRun::Parked {
                since: Time::from_ticks(since),
                start: start.map(instant),
                eligible: eligible.map(instant),
            },
            OldRun::Parked { since, start, waits_since: None, .. } => EarlyRun::Parking {
                since: Time::from_ticks(since),
                start: start.map(instant),
                last_command: None,
            },
        };
        Opportunistic { run, shares: self.shares.clone() }
    }
}
