//! The daemon's engine: the library's policies under a clock that comes with the calls.
//!
//! The engine applies the events of the machine to a [`System`](miserly_core::System). It commits the outcome to a
//! [`Journal`]. Only then does it dispatch actions to a [`Launcher`] and reply to requesters.
//!
//! The engine has no clock, no process, no socket and no database. Instants come with the calls.

mod now;

mod engine;

mod startup;

mod rounds;

mod effects;

mod batch;

mod shutdown;

mod values;

mod daemon_info;

mod request;

mod submission;

mod job;

mod promise;

mod dependency;

mod attempt;

mod limits;

mod queue;

mod cpus;

mod journal;

mod view;

pub use miserly_saved::{
    Amounts, SavedBreachCause, SavedEntry, SavedForm, SavedLedgerState, SavedRequest, amounts, resources,
};

pub use attempt::launcher::{
    Absence, Action, Attempt, AttemptOutcome, BEGIN_DELAY, BegunWindow, HeldWindow, Launch, Launcher,
    PlannedWindow, SlotSchedule,
};
pub use attempt::start_observer::{JobStart, StartObserver};
pub use attempt::waiting_shims::WaitingShimLimits;
pub use cpus::topology::Topology;
pub use daemon_info::{AccountNames, DaemonInfo};
pub use engine::{Engine, EngineError, Input};
pub use job::memory::{JobMemory, MemoryAmount};
pub use job::record::{ArrayMember, Ending, JobState, Record, Run, SentSignal, WaitingShim};
pub use job::steps::StepLog;
pub use job::unrecorded::Adoption;
pub use job::usage::{Usage, UsageLog};
pub use journal::{
    AmendedLine, Checkpoint, CheckpointLine, EffectLine, EndedFilter, EndedJobs, EndedLine, JobRow, Journal,
    JournalBatch, JournalContents, JournalError, JournalLine, MemoryJournal, OpportunisticLine,
    PoolException, PoolStep, QueueCheckpoint, QueueLine, RoundLine,
};
pub use limits::{CpuHours, LimitTable, Limits, UserLimits};
pub use now::{ClockMark, Now, wall_after, wall_span};
pub use promise::counts::unclassified;
pub use promise::earlier::jobs_of_promises;
pub use promise::log::PromiseLog;
pub use queue::gpus::{GpuGroup, QueueGpus};
pub use queue::reservation::Reservation;
pub use queue::setup::{ChargeTerms, IdleTerms, Queue, QueueState, QueueTerms, Setup};
pub use request::account::{Account, AccountName, Caller, Credential, Group, QueueUsers};
pub use request::handler::RequestError;
pub use request::message::{DaemonReply, DaemonRequest, Requester};
pub use startup::{StoredJobs, highest};
pub use submission::quote::QueueCopy;
pub use submission::what_if::WhatIfCopies;
pub use view::changes::JobChanges;
pub use view::snapshot::{Snapshot, Snapshots};
pub use view::state_metrics::StateMetrics;
