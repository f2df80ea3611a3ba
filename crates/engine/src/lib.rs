//! The daemon's engine: the library's policies under a clock that comes with the calls.
//!
//! The engine applies the events of the machine to a [`System`](miserly_core::System). It commits the outcome to a
//! [`Journal`]. Only then does it dispatch actions to a [`Launcher`] and reply to requesters.
//!
//! The engine has no clock, no process, no socket and no database. Instants come with the calls.

mod now;

mod numbered_cpus;

mod account;

mod request;

mod problems;

mod journal;

mod launcher;

mod saved_setup;

mod set_aside;

mod record;

mod usage;

mod record_map;

mod setup;

mod targets;

mod topology;

mod stopped_queue;

mod unrecorded;

mod adoption;

mod engine;

mod daemon_info;

mod batch;

mod checkpoints;

mod promise;

mod promise_counts;

mod judgements;

mod recorded_promises;

mod retry;

mod waiters;

mod values;

mod jobs;

mod handles;

mod dependencies;

mod conditions;

mod earlier_promises;

mod cpu_allocator;

mod startup;

mod rounds;

mod effects;

mod attempt_end;

mod late_start;

mod shutdown;

mod release;

mod requests;

mod snapshot;

mod expected_ends;

mod quote;

mod what_if;

mod rights;

mod listing;

mod changes;

mod start_observer;

mod state_metrics;

mod submission;

mod submission_check;

mod submission_size;

mod job_memory;

mod limits;

mod request_ids;

mod job_control;

mod job_changes;

mod selection;

mod extension;

mod signals;

mod modify;

mod moves;

mod capacity;

mod reconfiguration;

mod reservation;

mod reservations;

mod compatibility;

mod planned_windows;

mod gang;
mod guarded_policy;

mod resync;

mod pruning;

mod output_path;

mod views;

mod pool_view;

mod unrecorded_views;

pub use miserly_saved::{
    Amounts, SavedBreachCause, SavedEntry, SavedForm, SavedLedgerState, SavedRequest, amounts, resources,
};

pub use account::{Account, AccountName, Caller, Credential, Group, QueueUsers};
pub use changes::JobChanges;
pub use daemon_info::{AccountNames, DaemonInfo};
pub use earlier_promises::jobs_of_promises;
pub use engine::{Engine, EngineError, Input};
pub use job_memory::{JobMemory, MemoryAmount};
pub use journal::{
    AmendedLine, Checkpoint, CheckpointLine, EffectLine, EndedFilter, EndedJobs, EndedLine, JobRow, Journal,
    JournalBatch, JournalError, JournalLine, OpportunisticLine, QueueCheckpoint, QueueLine, RoundLine,
};
pub use launcher::{
    Absence, Action, Attempt, AttemptOutcome, BegunWindow, Launch, Launcher, PlannedWindow, SlotSchedule,
};
pub use limits::{CpuHours, LimitTable, Limits, UserLimits};
pub use now::{ClockMark, Now};
pub use promise::PromiseLog;
pub use promise_counts::unclassified;
pub use quote::QueueCopy;
pub use record::{ArrayMember, Ending, JobState, Record, Run, SentSignal, SentWindow};
pub use request::{DaemonReply, DaemonRequest, Requester};
pub use requests::RequestError;
pub use reservation::Reservation;
pub use setup::{Queue, QueueState, Setup};
pub use snapshot::{Snapshot, Snapshots};
pub use start_observer::{JobStart, StartObserver};
pub use startup::{StoredJobs, highest};
pub use state_metrics::StateMetrics;
pub use topology::Topology;
pub use unrecorded::Adoption;
pub use usage::{Usage, UsageLog};
pub use what_if::WhatIfCopies;
