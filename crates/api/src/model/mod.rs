//! The JSON model that the daemon and its clients share.
//!
//! Wall time is in UTC. Memory is in bytes. Durations are in seconds, with a fraction if they have
//! one.

mod submission;

mod job;

mod answer;

mod request;

pub use answer::{
    Accepted, JobIds, Pool, Pools, Problem, ProblemCode, QueueStatus, Quote, SharedCpus, Slice, Status,
    Submitted, Unenforced,
};
pub use job::{
    Exit, Failure, JobAllocation, JobView, KilledBy, LateStart, LostBy, Overdue, OverdueCause, Phase,
    PromiseChange, PromiseChangeReason, PromiseView, Slots, WaitReason, Window,
};
pub use request::{CancelRequest, DrainRequest, ExtendRequest, Filter, TakeBackRequest, listing};
pub use submission::{Array, Submission};
