#![doc = include_str!("../README.md")]

mod named;

mod time;

mod procs;

mod resources;

mod demand;

mod pes;

mod calendar;

mod charge;

mod job_classes;

pub mod devices;

mod machine;

mod job;

mod placement;

mod event;

mod violation;

mod free_hosts;

mod ledger;

mod context;

mod policy;

mod policy_state;

mod driver;

mod opportunistic;

mod system;

mod draw;

pub use calendar::{Calendar, Exception};
pub use charge::Charge;
pub use context::Context;
pub use demand::{Demand, Form, HostGroup, PartCounter};
pub use draw::draw;
pub use driver::{Driver, EventOrder};

pub use event::{
    Amendment, BreachCause, Change, Effect, EndHow, Ended, Event, Fault, Refusal, Round, StartReason,
    Submission,
};
pub use free_hosts::FreeHosts;
pub use job::{ActualRuntime, Constraints, JobId, JobNumber, Prediction, Request, Sizes};
pub use job_classes::{JobClass, JobClasses, LengthClass, SizeClass, SizeTurn};
pub use ledger::{
    Entry, Expected, Holds, Ledger, Matrix, Pace, Progress, Promise, ResourceWeights, Slicing, Slot, State,
    Usage, UsageWeights, span_of_work, work,
};
pub use machine::{ClosedHosts, Host, HostId, Machine, Sharing, Spread};
pub use opportunistic::OpportunisticConfig;
pub use pes::PeSet;
pub use placement::{Pes, Placement, Share, SlotId};
pub use policy::Policy;
pub use policy_state::{LedgerState, Persistent, PolicyState, StateRecord, join_words, split_words};
pub use procs::Procs;
pub use resources::{Kind, Resources};
pub use system::{System, WakeUps, queue_position};
pub use time::{Span, Time};
pub use violation::{Culprit, Rule, Violation};
