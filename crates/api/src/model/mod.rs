//! What the daemon, its store and its clients say to each other.
//!
//! Everything here is JSON on the socket and in the store. Wall time is in UTC; memory is in bytes; lengths of time are in
//! seconds, with decimals where there are any.

mod submission;

mod job;

mod answer;

mod request;

pub use answer::{
    Accepted, Handed, Pool, Pools, Problem, ProblemCode, QueueStatus, Quote, Slice, Status, Submitted,
    Unenforced,
};
pub use job::{
    Exit, Failure, Holding, JobView, KilledBy, LateStart, LostBy, Phase, PromiseView, Slots, Told, ToldWhy,
    Why, Window,
};
pub use request::{CancelRequest, DrainRequest, ExtendRequest, Filter};
pub use submission::{Array, Submission};
