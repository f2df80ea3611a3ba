//! The engine under a clock that comes with the calls, with a journal in memory and a launcher that records its actions.

#![allow(clippy::unwrap_used)] // A helper of a test fails as the test does.

mod support;

mod life;

mod chains;
mod clock;

mod reboots;

mod rollback;
mod shares;

mod capacity;

mod cores;

mod unrecorded;

mod ahead;

mod waiting;
mod written_out;

mod suspended;

mod places;

mod turns;

mod after;

mod conditions;

mod selections;

mod arrays;

mod idle;
mod latest_starts;
mod overruns;
mod retries;

mod gpus;

mod reservations;

mod modify;

mod signals;

mod starts;
mod steps;

mod pipelines;

mod due;

mod overdue;

mod queues;

mod refusals;

mod rights;

mod limits;

mod listings;

mod request_ids;

mod again;

mod pools;

mod pruning;

mod configuration;

mod promises;

mod judgements;

mod snapshots;

mod shutdown;

mod stopped;

mod fixture;
