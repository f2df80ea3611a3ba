//! Reservations of operators: parts of a pool for some users, at some times.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A reservation: a queue with a part of the pool of another queue, at some times.
///
/// Jobs are submitted to it by its name, as to any queue. The other queue plans its jobs around these times.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    /// The name: 1 to 64 letters, digits, `-` and `_`. No queue has it.
    pub name: String,
    /// The queue from whose pool the resources come; the first one, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The processors, at least 1.
    pub cpus: u64,
    /// The memory, in bytes; if absent, as much for each processor as the pool has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The GPUs.
    #[serde(default)]
    pub gpus: u64,
    /// The queue whose pool has the resources at these times. There is no queue of this name then, and there are no users,
    /// groups and policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub give_to: Option<String>,
    /// The users, by name or number. Operators may use it, too.
    #[serde(default)]
    pub users: Vec<String>,
    /// The groups whose members may use it, by name or number.
    #[serde(default)]
    pub groups: Vec<String>,
    /// The policy; `conservative`, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The times: at least one, at most 400, in order, and apart from each other.
    pub times: Vec<ReservedTime>,
    /// The operator who made it. Ignored in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The number of its unfinished jobs. Ignored in a request.
    #[serde(default)]
    pub jobs: u64,
}

/// A time of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
pub struct ReservedTime {
    /// The beginning.
    pub from: Timestamp,
    /// The end, after the beginning.
    pub to: Timestamp,
}

impl Reservation {
    /// The most times of a reservation.
    pub const TIMES_MOST: usize = 400;
    /// The most reservations at once.
    pub const MOST: usize = 100;
}

/// The body of a request that removes a reservation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RemoveReservation {
    /// The name.
    pub name: String,
}
