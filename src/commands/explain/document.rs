//! The story of a job for programs.

use miserly_core::{Broken, JobNumber, Time};
use serde::Serialize;

use super::story::{Move, MoveKind, Passer, Story};

/// The story for programs. Times in seconds of the log.
#[derive(Serialize)]
pub(super) struct Document {
    version: &'static str,
    policy: String,
    job: JobNumber,
    procs: u64,
    estimate: f64,
    submit: f64,
    free_at_submit: u64,
    waiting_at_submit: usize,
    reservations: Vec<Reservation>,
    start: Option<f64>,
    start_reason: Option<&'static str>,
    end: Option<f64>,
    killed_at_estimate: bool,
    passed_by: Vec<PassedBy>,
}

#[derive(Serialize)]
struct Reservation {
    at: f64,
    start: f64,
    kind: &'static str,
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
    pub(super) fn of(story: &Story, policy: String) -> Document {
        let request = &story.request;
        Document {
            version: env!("CARGO_PKG_VERSION"),
            policy,
            job: request.number,
            procs: request.procs(),
            estimate: request.estimate.as_secs_f64(),
            submit: secs(request.submit),
            free_at_submit: story.free,
            waiting_at_submit: story.waiting,
            reservations: story.moves.iter().map(Reservation::of).collect(),
            start: story.start.map(|(start, _)| secs(start)),
            start_reason: story.start.map(|(_, reason)| reason.as_str()),
            end: story.end.map(|(end, _)| secs(end)),
            killed_at_estimate: story.end.is_some_and(|(_, killed)| killed),
            passed_by: story.passed_by.iter().map(PassedBy::of).collect(),
        }
    }
}

impl Reservation {
    fn of(moved: &Move) -> Reservation {
        let kind = match moved.kind {
            MoveKind::Promised => "promised",
            MoveKind::Planned => "planned",
            MoveKind::Broken(Broken::Overdue) => "broken_overdue",
        };
        Reservation { at: secs(moved.at), start: secs(moved.start), kind }
    }
}

impl PassedBy {
    fn of(passer: &Passer) -> PassedBy {
        PassedBy {
            job: passer.request.number,
            procs: passer.request.procs(),
            estimate: passer.request.estimate.as_secs_f64(),
            submit: secs(passer.request.submit),
            start: secs(passer.start),
            start_reason: passer.reason.as_str(),
        }
    }
}

fn secs(time: Time) -> f64 {
    (time - Time::ZERO).as_secs_f64()
}
