//! The lines of the journal: events and their effects. Decisions that can be derived again are not stored.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use miserly_core::{
    Amendment, Calendar, Change, Charge, Effect, EndHow, Exception, Fault, JobClasses, JobId, Machine,
    OpportunisticConfig, Refusal, Round, Sizes, Span, StartReason, Time,
};
use miserly_machine_file::ClassesDoc;
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

use super::CheckpointLine;
use crate::{
    Amounts, ChargeTerms, Queue, QueueGpus, SavedBreachCause, SavedRequest, Setup, amounts, resources,
};

/// A line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "line", rename_all = "snake_case")]
pub enum JournalLine {
    /// A daemon began, or was reconfigured.
    Began {
        /// The instant.
        #[serde(with = "ticks")]
        at: Time,
        /// The wall time.
        #[serde(with = "microsecond::required")]
        wall: Timestamp,
        /// The version of the daemon.
        version: String,
        /// The queues from now on.
        queues: Vec<QueueLine>,
        /// The resources for opportunistic jobs, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        opportunistic: Option<OpportunisticLine>,
    },
    /// A round was played.
    Round(Box<RoundLine>),
    /// A replay can begin here.
    Checkpoint(Box<CheckpointLine>),
    /// The policy of a queue made a mistake, and the queue was stopped. The batch of that instant was dropped.
    Stopped {
        /// The instant of the last round before.
        #[serde(with = "ticks")]
        at: Time,
        /// The queue.
        queue: String,
        /// The mistake.
        mistake: String,
    },
    /// A job could not be placed, and left its ledger without an event. The batch of that instant may be dropped.
    SetAside {
        /// The instant of the last round before.
        #[serde(with = "ticks")]
        at: Time,
        /// The queue.
        queue: String,
        /// The job.
        job: i64,
        /// The reason.
        reason: String,
    },
    /// The state was recovered after damage. The rounds before may be incomplete, and those after until the next
    /// checkpoint do not follow from them.
    Recovered {
        /// The wall time; the last one that the recovered journal has.
        #[serde(with = "microsecond::required")]
        wall: Timestamp,
    },
    /// A daemon ended in order.
    Ended {
        /// The instant.
        #[serde(with = "ticks")]
        at: Time,
    },
}

/// A queue, as far as decisions depend on it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct QueueLine {
    /// The name.
    pub name: String,
    /// The policy with its parameters.
    pub policy: String,
    /// The capacity of the pool over time. The last step holds until `again`.
    pub pool: Vec<PoolStep>,
    /// The instant at which the pool repeats; none for a constant pool.
    #[serde(default, with = "ticks::optional")]
    pub again: Option<Time>,
    /// Other amounts, each of them once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<PoolException>,
    /// The job classes of policy `lsf`, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<ClassesDoc>,
    /// What jobs cost in the usage, if it is not their processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<ChargeTerms>,
    /// The GPUs of the queue, if more is known than their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpus: Option<QueueGpus>,
}

/// The amounts of a pool from an instant on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PoolStep(#[serde(with = "ticks")] pub Time, pub Amounts);

/// The amounts of a pool from an instant until before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct PoolException(#[serde(with = "ticks")] pub Time, #[serde(with = "ticks")] pub Time, pub Amounts);

/// The resources for opportunistic jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct OpportunisticLine {
    /// The preemption lead time.
    #[serde(with = "ticks")]
    pub lead: Span,
    /// The resources of the machine.
    pub machine: Amounts,
}

/// A round: its events and their effects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct RoundLine {
    /// The instant.
    #[serde(with = "ticks")]
    pub at: Time,
    /// The wall time at which the round was played.
    #[serde(with = "microsecond::required")]
    pub wall: Timestamp,
    /// Jobs that ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended: Vec<EndedLine>,
    /// Jobs found overdue.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overdue: Vec<i64>,
    /// Jobs withdrawn.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub withdrawn: Vec<i64>,
    /// Requests amended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub amended: Vec<AmendedLine>,
    /// No daemon ran before, or the machine slept.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub away: bool,
    /// A pool has this capacity from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capacity: Option<(u32, Amounts)>,
    /// These devices of a cell of a queue are lost from now on: queue, cell, and the positions, one bit each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<(u32, u32, u64)>,
    /// Jobs submitted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub submitted: Vec<SavedRequest>,
    /// The effects.
    #[serde(with = "super::effects", skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectLine>,
}

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct EndedLine {
    /// The job.
    pub job: i64,
    /// The cause of the end.
    #[serde(with = "HowLine")]
    pub how: EndHow,
}

/// The stored form of [`EndHow`].
#[derive(Deserialize, Serialize)]
#[serde(remote = "EndHow", rename_all = "snake_case")]
enum HowLine {
    Done,
    #[serde(rename = "estimate")]
    KilledAtEstimate,
    Cancelled,
}

/// An amendment of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct AmendedLine {
    /// The job.
    pub job: i64,
    /// The new estimate, if it changed.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub estimate: Option<Span>,
    /// The new earliest start, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "ticks::optional")]
    pub begin: Option<Time>,
    /// The whole new request, if more than that changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<SavedRequest>>,
    /// The new least and most processors between which it may be resized.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sizes: Option<[u64; 2]>,
    /// Whether the job keeps its promise with the new request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_promise: bool,
}

/// An effect of a round on one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "effect", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the fields are those of the core's effects")]
pub enum EffectLine {
    Started {
        job: i64,
        #[serde(with = "ReasonLine")]
        reason: StartReason,
        #[serde(with = "ticks")]
        planned: Span,
    },
    Promised {
        job: i64,
        #[serde(with = "ticks")]
        latest: Time,
    },
    Broken {
        job: i64,
        #[serde(with = "ticks")]
        latest: Time,
        why: SavedBreachCause,
    },
    Planned {
        job: i64,
        #[serde(with = "ticks")]
        start: Time,
    },
    Suspended {
        job: i64,
    },
    Vacated {
        job: i64,
    },
    Resumed {
        job: i64,
    },
    Resized {
        job: i64,
        procs: u64,
    },
    Moved {
        job: i64,
    },
    Paced {
        job: i64,
    },
    EndMoved {
        job: i64,
        #[serde(with = "ticks")]
        end: Time,
    },
    Requeued {
        job: i64,
    },
    Opportunistic {
        job: i64,
        procs: u64,
    },
    Refused {
        job: i64,
        #[serde(with = "RefusalLine")]
        why: Refusal,
    },
}

/// The stored form of [`StartReason`].
#[derive(Deserialize, Serialize)]
#[serde(remote = "StartReason", rename_all = "snake_case")]
enum ReasonLine {
    Immediate,
    Reserved,
    Backfilled,
    Promised,
    Quantum,
}

/// The stored form of [`Refusal`].
#[derive(Deserialize, Serialize)]
#[serde(remote = "Refusal", rename_all = "snake_case")]
enum RefusalLine {
    BeyondClasses,
    TooLarge,
    NoWindow,
    Deadline,
    Preempted,
}

impl JournalLine {
    /// Returns the wall time of the line, if it has one.
    pub fn wall(&self) -> Option<Timestamp> {
        match self {
            JournalLine::Began { wall, .. } | JournalLine::Recovered { wall } => Some(*wall),
            JournalLine::Round(round) => Some(round.wall),
            JournalLine::Checkpoint(checkpoint) => Some(checkpoint.wall),
            JournalLine::Stopped { .. } | JournalLine::SetAside { .. } | JournalLine::Ended { .. } => None,
        }
    }

    /// Returns the line of a daemon that begins with a setup.
    pub fn began(at: Time, wall: Timestamp, setup: &Setup) -> JournalLine {
        let queues = setup.queues.iter().map(QueueLine::new).collect();
        JournalLine::Began {
            opportunistic: setup.opportunistic.map(OpportunisticLine::new),
            at,
            wall,
            version: env!("CARGO_PKG_VERSION").into(),
            queues,
        }
    }
}

impl QueueLine {
    /// Returns the line of a queue.
    pub fn new(queue: &Queue) -> QueueLine {
        let pool = queue.steps();
        let first = pool.first().map_or(Time::ZERO, |step| step.0);
        let again = queue.pool.repeats().then(|| first + queue.pool.period());
        let once = queue.pool.exceptions().iter();
        let once = once.map(|once| PoolException(once.from, once.to, amounts(&once.amount))).collect();
        let classes = queue.classes.as_ref().map(|classes| ClassesDoc::new(classes));
        let (name, policy, charge) = (queue.name.clone(), queue.policy.to_string(), queue.charge);
        QueueLine { name, policy, pool, again, once, classes, charge, gpus: queue.gpus.as_deref().cloned() }
    }

    /// Returns the capacity of the pool over time. Returns `None` if it is not a valid calendar.
    pub fn calendar(&self) -> Option<Calendar> {
        let [PoolStep(first, constant), ..] = self.pool[..] else { return None };
        let step = |step: &PoolStep| (step.0 - first, resources(step.1));
        let steps = || self.pool.iter().map(step).collect();
        let regular = match self.again {
            Some(again) => Calendar::repeating(first, again - first, steps())?,
            None => Calendar::constant(resources(constant)),
        };
        let once = |&PoolException(from, to, amount): &PoolException| Exception {
            from,
            to,
            amount: resources(amount),
        };
        regular.with_exceptions(self.once.iter().map(once).collect())
    }

    /// Returns the job classes. The inner `None`: there are none; the outer one: they are invalid.
    #[expect(clippy::option_option, reason = "the outer one is an error")]
    pub(crate) fn job_classes(&self) -> Option<Option<Arc<JobClasses>>> {
        self.classes.as_ref().map(ClassesDoc::classes).transpose().ok().map(|classes| classes.map(Arc::new))
    }

    /// Returns the pool as a machine.
    pub fn machine(&self) -> Option<Machine> {
        let devices = self.gpus.as_ref().filter(|gpus| gpus.by_class);
        let devices = devices.and_then(|gpus| gpus.table().ok()).map(Arc::new);
        let machine = crate::queue::setup::pool_machine(&self.name, &self.calendar()?);
        let machine = machine.with_classes(self.job_classes()?).with_charge(self.charge.map(Charge::from));
        Some(machine.with_devices(devices))
    }
}

impl OpportunisticLine {
    pub(crate) fn new(config: OpportunisticConfig) -> OpportunisticLine {
        OpportunisticLine { lead: config.lead, machine: amounts(&config.machine) }
    }
}

impl From<OpportunisticLine> for OpportunisticConfig {
    fn from(line: OpportunisticLine) -> OpportunisticConfig {
        OpportunisticConfig { lead: line.lead, machine: resources(line.machine) }
    }
}

impl RoundLine {
    /// Returns the line of a round before it is played. `number` maps handles to job numbers.
    pub fn new(at: Time, wall: Timestamp, round: &Round, number: impl Fn(JobId) -> i64) -> RoundLine {
        let capacity = match &round.fault {
            Some(Fault::Capacity { queue, capacity }) => Some((*queue, amounts(capacity))),
            _ => None,
        };
        let lost = match round.fault {
            Some(Fault::Devices { queue, cell, lost }) => Some((queue, cell.0, lost)),
            _ => None,
        };
        RoundLine {
            at,
            wall,
            ended: round
                .ended
                .iter()
                .map(|ended| EndedLine { job: number(ended.job), how: ended.how })
                .collect(),
            overdue: round.overdue.iter().map(|job| number(*job)).collect(),
            withdrawn: round.withdrawn.iter().map(|job| number(*job)).collect(),
            amended: round
                .amended
                .iter()
                .map(|amended| AmendedLine::new(amended, number(amended.job)))
                .collect(),
            away: round.fault == Some(Fault::Away),
            capacity,
            lost,
            submitted: round.submitted.iter().map(|one| SavedRequest::new(&one.request)).collect(),
            effects: vec![],
        }
    }
}

impl AmendedLine {
    /// Returns the change of the request.
    pub fn change(&self) -> Change {
        if let Some([least, most]) = self.sizes {
            return Change::Sizes(Sizes { least: least.into(), most: most.into() });
        }
        match (&self.request, self.estimate) {
            (Some(request), _) => {
                Change::Request { request: Box::new(request.request()), keeps_promise: self.keeps_promise }
            }
            (None, Some(estimate)) => Change::Estimate(estimate),
            (None, None) => Change::Begin(self.begin),
        }
    }

    fn new(amendment: &Amendment, job: i64) -> AmendedLine {
        let line = AmendedLine { job, ..AmendedLine::default() };
        match &amendment.change {
            Change::Estimate(estimate) => AmendedLine { estimate: Some(*estimate), ..line },
            Change::Begin(begin) => AmendedLine { begin: *begin, ..line },
            Change::Sizes(Sizes { least, most }) => {
                AmendedLine { sizes: Some([least.get(), most.get()]), ..line }
            }
            Change::Request { request, keeps_promise } => {
                let request = Some(Box::new(SavedRequest::new(request)));
                AmendedLine { request, keeps_promise: *keeps_promise, ..line }
            }
        }
    }
}

impl EffectLine {
    /// Returns the line of an effect on a job.
    pub fn new(effect: &Effect, job: i64) -> EffectLine {
        match *effect {
            Effect::Started { reason, planned, .. } => EffectLine::Started { job, reason, planned },
            Effect::Promised { latest, .. } => EffectLine::Promised { job, latest },
            Effect::PromiseBroken { latest, why, .. } => {
                EffectLine::Broken { job, latest, why: SavedBreachCause(why) }
            }
            Effect::Planned { start, .. } => EffectLine::Planned { job, start },
            Effect::Suspended { .. } => EffectLine::Suspended { job },
            Effect::SwappedOut { .. } => EffectLine::Vacated { job },
            Effect::Resumed { .. } => EffectLine::Resumed { job },
            Effect::Resized { procs, .. } => EffectLine::Resized { job, procs: procs.get() },
            Effect::Moved { .. } => EffectLine::Moved { job },
            Effect::PaceChanged { .. } => EffectLine::Paced { job },
            Effect::EndMoved { end, .. } => EffectLine::EndMoved { job, end },
            Effect::Requeued { .. } => EffectLine::Requeued { job },
            Effect::OpportunisticProcs { procs, .. } => EffectLine::Opportunistic { job, procs: procs.get() },
            Effect::Refused { why, .. } => EffectLine::Refused { job, why },
        }
    }
}
