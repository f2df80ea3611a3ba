//! The history of a job, for programs.

use std::collections::BTreeMap;

use miserly_core::{BreachCause, JobNumber, Time};
use serde::Serialize;

use super::story::{End, Event, MoveKind, Passer, SlotShare, Story, What, processor_seconds};
use super::why::{EndedJob, Holder, WaitReason};

/// The history of a job. Times are in seconds of the log.
#[derive(Serialize)]
pub(super) struct Document {
    version: &'static str,
    policy: String,
    job: JobNumber,
    procs: u64,
    estimate: f64,
    submit: f64,
    /// The extra fields of its line, and the names of its user, group, queue and partition.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extras: BTreeMap<&'static str, String>,
    free_at_submit: u64,
    waiting_at_submit: usize,
    /// The reason why it did not start at its submission.
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_reason: Option<WaitReasonDoc>,
    /// The jobs that ended at the instant of its first start, if it waited.
    made_room: Vec<EndedJob>,
    reservations: Vec<Reservation>,
    start: Option<f64>,
    start_reason: Option<&'static str>,
    end: Option<f64>,
    killed_at_estimate: bool,
    refused: Option<&'static str>,
    /// The opportunistic execution before its start, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    opportunistic: Option<BeforeStartDoc>,
    /// The changes besides its first start.
    changes: Vec<Change>,
    passed_by: Vec<PassedBy>,
}

/// The opportunistic execution of a job before its start.
#[derive(Serialize)]
struct BeforeStartDoc {
    since: f64,
    time: f64,
    /// Processor-seconds.
    work: f64,
}

/// The reason for a wait. The fields depend on its kind.
#[derive(Default, Serialize)]
struct WaitReasonDoc {
    /// The kind: `too_few_free`, `reservation`, `queue_order` or `policy`.
    kind: &'static str,
    /// Free processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    free: Option<u64>,
    /// The running jobs that hold the most processors.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    holders: Vec<HolderDoc>,
    /// The time at which enough processors are free, if every job runs to its time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    enough_at: Option<f64>,
    /// The other job: that with the reservation, or that ahead in the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<JobNumber>,
    /// The reserved start of the other job.
    #[serde(skip_serializing_if = "Option::is_none")]
    start: Option<f64>,
}

#[derive(Serialize)]
struct HolderDoc {
    job: JobNumber,
    procs: u64,
    /// The end at the time limit; null if that is past.
    until: Option<f64>,
}

impl WaitReasonDoc {
    fn new(reason: &WaitReason) -> WaitReasonDoc {
        match reason {
            WaitReason::TooFewFree { free, holders, enough_at } => {
                let holder = |holder: &Holder| HolderDoc {
                    job: holder.job,
                    procs: holder.procs.get(),
                    until: holder.until.map(secs),
                };
                WaitReasonDoc {
                    kind: "too_few_free",
                    free: Some(free.get()),
                    holders: holders.iter().map(holder).collect(),
                    enough_at: enough_at.map(secs),
                    ..WaitReasonDoc::default()
                }
            }
            WaitReason::Reservation { job, start, .. } => WaitReasonDoc {
                kind: "reservation",
                job: Some(*job),
                start: Some(secs(*start)),
                ..WaitReasonDoc::default()
            },
            WaitReason::Order { job, .. } => {
                WaitReasonDoc { kind: "queue_order", job: Some(*job), ..WaitReasonDoc::default() }
            }
            WaitReason::Policy => WaitReasonDoc { kind: "policy", ..WaitReasonDoc::default() },
        }
    }
}

#[derive(Serialize)]
struct Reservation {
    at: f64,
    start: f64,
    kind: &'static str,
}

/// A change of a job that had started.
#[derive(Default, Serialize)]
struct Change {
    at: f64,
    /// The kind: `suspended`, `swapped_out`, `resumed`, `resized`, `moved`, `slots` (a changed share of
    /// the slots), `requeued`, `opportunistic` (runs on this number of idle processors) or `started`
    /// (again).
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_reason: Option<&'static str>,
    /// The number of processors from then on.
    #[serde(skip_serializing_if = "Option::is_none")]
    procs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<SlotsDoc>,
    /// Processor-seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_work: Option<f64>,
}

/// The own slot, the number of slots in which it runs, its own among them, and the number of used
/// slots.
#[derive(Serialize)]
struct SlotsDoc {
    own: u32,
    running_in: usize,
    used: usize,
}

#[derive(Serialize)]
struct PassedBy {
    job: JobNumber,
    procs: u64,
    estimate: f64,
    submit: f64,
    start: f64,
    start_reason: &'static str,
}

impl Document {
    pub(super) fn new(story: &Story, policy: String, extras: BTreeMap<&'static str, String>) -> Document {
        let request = &story.request;
        Document {
            version: env!("CARGO_PKG_VERSION"),
            policy,
            job: request.number,
            procs: request.procs().get(),
            estimate: request.estimate.as_secs_f64(),
            submit: secs(request.submit),
            extras,
            free_at_submit: story.free.get(),
            waiting_at_submit: story.waiting,
            wait_reason: story.reason.as_ref().map(WaitReasonDoc::new),
            made_room: story.made_room.clone(),
            reservations: story.events.iter().filter_map(Reservation::from_event).collect(),
            start: story.start().map(|(start, _)| secs(start)),
            start_reason: story.start().map(|(_, reason)| reason.name()),
            end: story.end.map(|(end, _)| secs(end)),
            killed_at_estimate: matches!(story.end, Some((_, End::KilledAtEstimate))),
            refused: story.end.and_then(|(_, end)| match end {
                End::Refused(why) => Some(why.name()),
                End::Done | End::KilledAtEstimate => None,
            }),
            opportunistic: story.opportunistic.map(|done| BeforeStartDoc {
                since: secs(done.since),
                time: done.ran.as_secs_f64(),
                work: processor_seconds(done.work),
            }),
            changes: changes(&story.events),
            passed_by: story.passed_by.iter().map(PassedBy::new).collect(),
        }
    }
}

/// Returns all changes but the first start, which has fields of its own.
fn changes(events: &[Event]) -> Vec<Change> {
    let start = events.iter().position(|event| matches!(event.what, What::Started(_)));
    let others = events.iter().enumerate().filter(|(at, _)| Some(*at) != start);
    others.filter_map(|(_, event)| Change::from_event(event)).collect()
}

impl Reservation {
    fn from_event(event: &Event) -> Option<Reservation> {
        let What::Moved(start, kind) = event.what else { return None };
        let kind = match kind {
            MoveKind::Promised => "promised",
            MoveKind::Planned => "planned",
            MoveKind::BreachCause(BreachCause::Overdue) => "broken_overdue",
            MoveKind::BreachCause(BreachCause::Away) => "broken_away",
            MoveKind::BreachCause(BreachCause::Capacity) => "broken_capacity",
            MoveKind::BreachCause(BreachCause::Amended) => "broken_amended",
        };
        Some(Reservation { at: secs(event.at), start: secs(start), kind })
    }
}

impl Change {
    fn from_event(event: &Event) -> Option<Change> {
        let change = |kind| Change { at: secs(event.at), kind, ..Change::default() };
        match event.what {
            What::Moved(..) => None,
            What::Started(reason) => Some(Change { start_reason: Some(reason.name()), ..change("started") }),
            What::Suspended => Some(change("suspended")),
            What::SwappedOut => Some(change("swapped_out")),
            What::Resumed => Some(change("resumed")),
            What::Resized(procs) => Some(Change { procs: Some(procs.get()), ..change("resized") }),
            What::Remapped => Some(change("moved")),
            What::Slots(SlotShare { slot, runs_in, used }) => {
                let slots = SlotsDoc { own: slot.0, running_in: runs_in, used };
                Some(Change { slots: Some(slots), ..change("slots") })
            }
            What::Opportunistic(procs) => {
                Some(Change { procs: Some(procs.get()), ..change("opportunistic") })
            }
            What::Requeued(lost) => {
                Some(Change { lost_work: Some(processor_seconds(lost)), ..change("requeued") })
            }
        }
    }
}

impl PassedBy {
    fn new(passer: &Passer) -> PassedBy {
        PassedBy {
            job: passer.request.number,
            procs: passer.request.procs().get(),
            estimate: passer.request.estimate.as_secs_f64(),
            submit: secs(passer.request.submit),
            start: secs(passer.start),
            start_reason: passer.reason.name(),
        }
    }
}

fn secs(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}
