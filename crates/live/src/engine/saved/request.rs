//! What was asked for.

use miserly_core::{Kind, Request, Resources, Span, Terms, Time};
use serde::{Deserialize, Serialize};

/// What was asked for, in ticks and counts.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedRequest {
    /// The job's number.
    pub number: i64,
    /// When it was submitted.
    pub submit: i64,
    /// For how long its resources are planned.
    pub estimate: i64,
    /// Its processors.
    pub cpus: u64,
    /// Its memory, kilobytes.
    pub memory: u64,
    /// Its GPUs.
    #[serde(default)]
    pub gpus: u64,
    /// The site's own count.
    #[serde(default)]
    pub other: u64,
    /// Its user.
    pub user: Option<u32>,
    /// Its queue, by position.
    pub queue: Option<u32>,
    /// Not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<i64>,
    /// Over by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// Not to run early.
    #[serde(default)]
    pub in_window_only: bool,
    /// Its work may be done again.
    #[serde(default)]
    pub restartable: bool,
}

impl SavedRequest {
    /// The request as it is written down.
    pub fn of(request: &Request) -> SavedRequest {
        let Terms { begin, deadline, in_window_only, restartable } = request.terms;
        SavedRequest {
            number: request.number,
            submit: request.submit.ticks(),
            estimate: request.estimate.ticks(),
            cpus: request.demand.cpus_count().get(),
            memory: request.demand.get(Kind::Memory),
            gpus: request.demand.get(Kind::Gpus),
            other: request.demand.get(Kind::Other),
            user: request.user,
            queue: request.queue,
            begin: begin.map(Time::ticks),
            deadline: deadline.map(Time::ticks),
            in_window_only,
            restartable,
        }
    }

    /// The request that was written down.
    pub fn request(&self) -> Request {
        let demand = Resources::cpus(self.cpus)
            .with(Kind::Memory, self.memory)
            .with(Kind::Gpus, self.gpus)
            .with(Kind::Other, self.other);
        let (submit, estimate) = (Time::from_ticks(self.submit), Span::from_ticks(self.estimate));
        let terms = Terms {
            begin: self.begin.map(Time::from_ticks),
            deadline: self.deadline.map(Time::from_ticks),
            in_window_only: self.in_window_only,
            restartable: self.restartable,
        };
        Request {
            user: self.user,
            queue: self.queue,
            terms,
            ..Request::new(self.number, submit, estimate, demand)
        }
    }
}
