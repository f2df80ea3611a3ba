//! The journal: what happened, and what came of it; never a decision that can be derived again.

use miserly_core::{Amendment, Change, Effect, EndHow, Fault, JobId, Reason, Refusal, Round, Time};
use serde::{Deserialize, Serialize};

use super::saved::{SavedBroken, SavedRequest};
use super::setup::Setup;
use super::{Amounts, amounts};

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum JournalLine {
    /// A daemon began, or read its configuration again.
    Began {
        /// When, ticks.
        at: i64,
        /// When, wall time in microseconds since 1970.
        wall: i64,
        /// Its version.
        version: String,
        /// The queues from now on.
        queues: Vec<QueueLine>,
        /// What jobs may use ahead of their windows, if they may.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        early: Option<EarlyLine>,
    },
    /// A round was played.
    Round(Box<RoundLine>),
    /// A daemon went away in order.
    Went {
        /// When, ticks.
        at: i64,
    },
}

/// A queue, as far as decisions depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct QueueLine {
    /// Its name.
    pub name: String,
    /// Its policy, as it is written.
    pub policy: String,
    /// What its pool has: from when on in ticks, and how much of each kind. The last one holds until `again` after the first.
    pub pool: Vec<(i64, Amounts)>,
    /// When all is as it was; none for a pool that is always the same.
    pub again: Option<i64>,
}

/// What jobs may use ahead of their windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct EarlyLine {
    /// How long before a start what it needs is left free, ticks.
    pub lead: i64,
    /// What the machine has.
    pub machine: Amounts,
}

/// One round: what happened, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RoundLine {
    /// When, ticks.
    pub at: i64,
    /// When the round was played, wall time in microseconds since 1970.
    pub wall: i64,
    /// Jobs that ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedLine>,
    /// Jobs that did not end when they should have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overdue: Vec<i64>,
    /// Jobs that were taken back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<i64>,
    /// Requests that were changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub amended: Vec<AmendedLine>,
    /// Nobody scheduled before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub away: bool,
    /// A pool now has so much.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<(u32, Amounts)>,
    /// Jobs that were submitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub submitted: Vec<SavedRequest>,
    /// What came of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectLine>,
}

/// A job that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct EndedLine {
    /// The job.
    pub job: i64,
    /// How.
    pub how: HowLine,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HowLine {
    /// By itself.
    Done,
    /// At the end of its window.
    Estimate,
    /// By somebody else.
    Cancelled,
}

/// A request that was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct AmendedLine {
    /// The job.
    pub job: i64,
    /// Its new estimate, ticks, if that was changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<i64>,
    /// Its new earliest start, ticks, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<i64>,
}

/// What came of a round for one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the core's effects")]
pub enum EffectLine {
    Started { job: i64, reason: ReasonLine, planned: i64 },
    Promised { job: i64, latest: i64 },
    Broken { job: i64, latest: i64, why: SavedBroken },
    Planned { job: i64, start: i64 },
    Suspended { job: i64 },
    Vacated { job: i64 },
    Resumed { job: i64 },
    Resized { job: i64, procs: u64 },
    Moved { job: i64 },
    Paced { job: i64 },
    Requeued { job: i64 },
    Filled { job: i64, procs: u64 },
    Refused { job: i64, why: RefusalLine },
}

/// Why a job started when it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "they are the core's reasons")]
pub enum ReasonLine {
    AtOnce,
    Reserved,
    Backfilled,
    Promised,
    Quantum,
}

/// Why a job will never start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "they are the core's refusals")]
pub enum RefusalLine {
    BeyondClasses,
    TooLarge,
    NoWindow,
    Deadline,
}

impl JournalLine {
    /// That a daemon began with this set-up.
    pub fn began(at: Time, wall: i64, setup: &Setup) -> JournalLine {
        let queue = |queue: &super::setup::Queue| {
            let steps = queue.steps();
            let first = steps.first().map_or(0, |(at, _)| *at);
            let again =
                queue.pool.next(Time::ZERO).map(|_| first.saturating_add(queue.pool.period().ticks()));
            QueueLine { name: queue.name.clone(), policy: queue.policy.to_string(), pool: steps, again }
        };
        let queues = setup.queues.iter().map(queue).collect();
        let early =
            setup.early.map(|early| EarlyLine { lead: early.lead.ticks(), machine: amounts(&early.machine) });
        JournalLine::Began { early, at: at.ticks(), wall, version: env!("CARGO_PKG_VERSION").into(), queues }
    }
}

impl RoundLine {
    /// What is about to be played, with the jobs by their numbers.
    pub fn of(at: Time, wall: i64, round: &Round, number: impl Fn(JobId) -> i64) -> RoundLine {
        let capacity = match &round.fault {
            Some(Fault::Capacity { queue, capacity }) => Some((*queue, amounts(capacity))),
            _ => None,
        };
        RoundLine {
            at: at.ticks(),
            wall,
            ended: round
                .ended
                .iter()
                .map(|ended| EndedLine { job: number(ended.job), how: HowLine::of(ended.how) })
                .collect(),
            overdue: round.overdue.iter().map(|job| number(*job)).collect(),
            withdrawn: round.withdrawn.iter().map(|job| number(*job)).collect(),
            amended: round
                .amended
                .iter()
                .map(|amended| AmendedLine::of(amended, number(amended.job)))
                .collect(),
            away: round.fault == Some(Fault::Away),
            capacity,
            submitted: round.submitted.iter().map(|one| SavedRequest::of(&one.request)).collect(),
            effects: vec![],
        }
    }
}

impl AmendedLine {
    fn of(amendment: &Amendment, job: i64) -> AmendedLine {
        match amendment.change {
            Change::Estimate(estimate) => AmendedLine { job, estimate: Some(estimate.ticks()), begin: None },
            Change::Begin(begin) => AmendedLine { job, estimate: None, begin: begin.map(Time::ticks) },
        }
    }
}

impl HowLine {
    const fn of(how: EndHow) -> HowLine {
        match how {
            EndHow::Done => HowLine::Done,
            EndHow::KilledAtEstimate => HowLine::Estimate,
            EndHow::Cancelled => HowLine::Cancelled,
        }
    }

    /// The core's word.
    pub const fn how(self) -> EndHow {
        match self {
            HowLine::Done => EndHow::Done,
            HowLine::Estimate => EndHow::KilledAtEstimate,
            HowLine::Cancelled => EndHow::Cancelled,
        }
    }
}

impl EffectLine {
    /// The effect on the job of that number.
    pub fn of(effect: &Effect, job: i64) -> EffectLine {
        match *effect {
            Effect::Started { reason, planned, .. } => {
                EffectLine::Started { job, reason: ReasonLine::of(reason), planned: planned.ticks() }
            }
            Effect::Promised { latest, .. } => EffectLine::Promised { job, latest: latest.ticks() },
            Effect::PromiseBroken { latest, why, .. } => {
                EffectLine::Broken { job, latest: latest.ticks(), why: SavedBroken::of(why) }
            }
            Effect::Planned { start, .. } => EffectLine::Planned { job, start: start.ticks() },
            Effect::Suspended { .. } => EffectLine::Suspended { job },
            Effect::Vacated { .. } => EffectLine::Vacated { job },
            Effect::Resumed { .. } => EffectLine::Resumed { job },
            Effect::Resized { procs, .. } => EffectLine::Resized { job, procs: procs.get() },
            Effect::Moved { .. } => EffectLine::Moved { job },
            Effect::Paced { .. } => EffectLine::Paced { job },
            Effect::Requeued { .. } => EffectLine::Requeued { job },
            Effect::Filled { procs, .. } => EffectLine::Filled { job, procs: procs.get() },
            Effect::Refused { why, .. } => EffectLine::Refused { job, why: RefusalLine::of(why) },
        }
    }
}

impl ReasonLine {
    const fn of(reason: Reason) -> ReasonLine {
        match reason {
            Reason::AtOnce => ReasonLine::AtOnce,
            Reason::Reserved => ReasonLine::Reserved,
            Reason::Backfilled => ReasonLine::Backfilled,
            Reason::Promised => ReasonLine::Promised,
            Reason::Quantum => ReasonLine::Quantum,
        }
    }
}

impl RefusalLine {
    const fn of(why: Refusal) -> RefusalLine {
        match why {
            Refusal::BeyondClasses => RefusalLine::BeyondClasses,
            Refusal::TooLarge => RefusalLine::TooLarge,
            Refusal::NoWindow => RefusalLine::NoWindow,
            Refusal::Deadline => RefusalLine::Deadline,
        }
    }
}
