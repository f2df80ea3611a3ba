//! A service without a machine behind it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use miserly_api::model::{JobIds, OutputRequest, Possible, Problem, ProblemCode, Quote, Submitted};
use miserly_engine::{Caller, DaemonReply, DaemonRequest};
use miserly_launch::RelaySocket;
use miserly_live::server::{Client, ConnectionCounts, EventSource, OutputPart, Service, StreamRequest};
use tokio::sync::Notify;

use crate::samples;

/// A service that replies with samples and records the requests and their callers.
#[derive(Clone, Default)]
pub(crate) struct Fake {
    asked: Arc<Mutex<Vec<(Caller, DaemonRequest)>>>,
    /// The folder of the attempt to which clients attach.
    pub(crate) attempt: Arc<Mutex<PathBuf>>,
    /// Lets the clients that wait for job 2 continue.
    pub(crate) ended: Arc<Notify>,
    /// The last events that clients of streams named.
    pub(crate) after: Arc<Mutex<Vec<Option<i64>>>>,
    /// Whether streams go on after their events.
    pub(crate) goes_on: Arc<AtomicBool>,
    /// The bytes of a comment before the events of a stream.
    pub(crate) comment: Arc<AtomicUsize>,
}

/// Three events.
pub(crate) struct FakeEvents {
    events: VecDeque<Bytes>,
    goes_on: bool,
}

impl EventSource for FakeEvents {
    async fn next(&mut self) -> Option<Bytes> {
        match self.events.pop_front() {
            None if self.goes_on => std::future::pending().await,
            event => event,
        }
    }
}

impl Fake {
    /// Returns all requests so far.
    pub(crate) fn asked(&self) -> Vec<(Caller, DaemonRequest)> {
        self.asked.lock().expect("a lock").clone()
    }
}

impl Service for Fake {
    type Events = FakeEvents;

    async fn events(&self, _: Client, request: StreamRequest) -> Result<FakeEvents, Problem> {
        self.after.lock().expect("a lock").push(request.after);
        let comment = vec![b':'; self.comment.load(Ordering::Relaxed)];
        let events = samples::events().into_iter().map(|(_, text)| text.into());
        let first = (!comment.is_empty()).then(|| comment.into());
        let events = first.into_iter().chain(events).collect();
        Ok(FakeEvents { events, goes_on: self.goes_on.load(Ordering::Relaxed) })
    }

    async fn relay(&self, _: Client, job: i64) -> Result<RelaySocket, Problem> {
        RelaySocket::connect(&self.attempt.lock().expect("a lock")).map_err(|_| problem(job))
    }

    async fn output(
        &self,
        _: Client,
        job: i64,
        OutputRequest { from, error }: OutputRequest,
    ) -> Result<OutputPart, Problem> {
        match job {
            400.. => Err(problem(job)),
            _ => Ok(OutputPart { bytes: format!("{job} {error}\0").into(), length: from + 9 }),
        }
    }

    async fn metrics(&self, _: Client, counts: ConnectionCounts) -> Result<String, Problem> {
        Ok(format!("# TYPE connections gauge\nconnections {}\n# EOF\n", counts.open))
    }

    async fn handle(&self, client: Client, question: DaemonRequest) -> Result<DaemonReply, Problem> {
        self.asked.lock().expect("a lock").push((client.caller, question.clone()));
        if question == DaemonRequest::Wait(2) {
            self.ended.notified().await;
        }
        answer(&question)
    }
}

/// Job numbers from 400 on are problems, each with the status of its number.
fn answer(question: &DaemonRequest) -> Result<DaemonReply, Problem> {
    let handed = |job: i64| Ok(DaemonReply::JobIds(JobIds { jobs: vec![job] }));
    match *question {
        DaemonRequest::Submit(_) => Ok(DaemonReply::Submitted(Submitted { jobs: samples::accepted() })),
        DaemonRequest::Quote(_) => {
            Ok(DaemonReply::Quote(Quote { windows: vec![Some(samples::window()), None], forecast: None }))
        }
        DaemonRequest::WhatIf(_) => Ok(DaemonReply::WhatIf(Box::new(samples::what_if()))),
        DaemonRequest::Shadow(_) => Ok(DaemonReply::Shadow(Box::new(samples::shadow()))),
        DaemonRequest::Cancel { job, .. }
        | DaemonRequest::Hold { job, .. }
        | DaemonRequest::Release(job)
        | DaemonRequest::Requeue { job, .. }
        | DaemonRequest::Resize { job, .. }
        | DaemonRequest::Signal { job, .. }
        | DaemonRequest::Pause { job, .. } => handed(job),
        DaemonRequest::BeginStep { .. } | DaemonRequest::EndStep { .. } => {
            Ok(DaemonReply::Step(samples::step()))
        }
        DaemonRequest::Modify { .. } | DaemonRequest::Preview { .. } => {
            Ok(DaemonReply::Moves(Box::new(samples::moves())))
        }
        DaemonRequest::Change(_) => Ok(DaemonReply::Changed(Box::new(samples::changed()))),
        DaemonRequest::Drain(_) | DaemonRequest::HoldStarts(_) => {
            Ok(DaemonReply::JobIds(JobIds { jobs: Vec::new() }))
        }
        DaemonRequest::Jobs(_) => Ok(DaemonReply::Jobs(samples::jobs())),
        DaemonRequest::Job(number @ 400..) => Err(problem(number)),
        DaemonRequest::Job(_) | DaemonRequest::Wait(_) | DaemonRequest::Extend { .. } => {
            Ok(DaemonReply::Job(Box::new(samples::jobs().remove(0))))
        }
        DaemonRequest::Reservations | DaemonRequest::Reserve(_) | DaemonRequest::RemoveReservation(_) => {
            Ok(DaemonReply::Reservations(vec![samples::reservation()]))
        }
        DaemonRequest::Pools => Ok(DaemonReply::Pools(samples::pools())),
        DaemonRequest::Limits => Ok(DaemonReply::Limits(Box::new(samples::limits()))),
        DaemonRequest::Status => Ok(DaemonReply::Status(Box::new(samples::status()))),
    }
}

fn problem(number: i64) -> Problem {
    let code = match number {
        400 => ProblemCode::Malformed,
        403 => ProblemCode::Forbidden,
        404 => ProblemCode::NotFound,
        409 => ProblemCode::Conflict,
        422 => ProblemCode::Refused,
        503 => ProblemCode::Unavailable,
        507 => ProblemCode::Storage,
        _ => ProblemCode::Internal,
    };
    let possible = Some(Possible::Extension(60));
    Problem {
        code,
        message: format!("no job {number}"),
        field: Some("n".to_owned()),
        job: Some(number),
        possible,
    }
}
