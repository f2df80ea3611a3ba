//! Requests, as they are stored.

use miserly_core::{Constraints, Kind, Request, Resources, Span, Time};
use serde::{Deserialize, Serialize};

/// A stored request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SavedRequest {
    /// The job number.
    pub number: i64,
    /// The instant of the submission, in ticks.
    pub submit: i64,
    /// The time for which its resources are planned, in ticks.
    pub estimate: i64,
    /// The processors.
    pub cpus: u64,
    /// The memory, in kilobytes.
    pub memory: u64,
    /// The GPUs.
    #[serde(default)]
    pub gpus: u64,
    /// The resource that the site defines.
    #[serde(default)]
    pub other: u64,
    /// The user, by number.
    pub user: Option<u32>,
    /// The group of the user, by number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<u32>,
    /// The position of the queue.
    pub queue: Option<u32>,
    /// The earliest start, in ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begin: Option<i64>,
    /// The deadline, in ticks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// Whether it must not run opportunistically.
    #[serde(default)]
    pub in_window_only: bool,
    /// Whether its work may be repeated.
    #[serde(default)]
    pub restartable: bool,
}

impl SavedRequest {
    /// Returns the stored form of a request.
    pub fn new(request: &Request) -> SavedRequest {
        let Constraints { begin, deadline, in_window_only, restartable } = request.constraints;
        SavedRequest {
            number: request.number,
            submit: request.submit.ticks(),
            estimate: request.estimate.ticks(),
            cpus: request.demand.cpus_count().get(),
            memory: request.demand.get(Kind::Memory),
            gpus: request.demand.get(Kind::Gpus),
            other: request.demand.get(Kind::Other),
            user: request.user,
            group: request.group,
            queue: request.queue,
            begin: begin.map(Time::ticks),
            deadline: deadline.map(Time::ticks),
            in_window_only,
            restartable,
        }
    }

    /// Returns the request.
    pub fn request(&self) -> Request {
        let demand = Resources::cpus(self.cpus)
            .with(Kind::Memory, self.memory)
            .with(Kind::Gpus, self.gpus)
            .with(Kind::Other, self.other);
        let (submit, estimate) = (Time::from_ticks(self.submit), Span::from_ticks(self.estimate));
        let constraints = Constraints {
            begin: self.begin.map(Time::from_ticks),
            deadline: self.deadline.map(Time::from_ticks),
            in_window_only: self.in_window_only,
            restartable: self.restartable,
        };
        Request {
            user: self.user,
            group: self.group,
            queue: self.queue,
            constraints,
            ..Request::new(self.number, submit, estimate, demand)
        }
    }
}
