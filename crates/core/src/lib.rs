//! The contract of Miserly: time, jobs, machines, decisions and the components that may change
//! them.
//!
//! A [`Driver`] takes the events of an instant and passes them to a [`Policy`]. It applies the
//! decisions of the policy to the [`Ledger`], which checks them. Simulation and real time differ
//! only in the source of the events and in the use of the [`Effect`]s.
//!
//! ```
//! use miserly_core::{Context, Event, Placement, Policy, Resources, Span, StartReason, Violation};
//! use miserly_core::{Driver, EventOrder, JobId, Ledger, Machine, Request, Round, Submission};
//! use miserly_core::Time;
//!
//! /// A policy that starts every job at its submission. It is correct only on a wide machine.
//! struct Eager(Vec<JobId>);
//!
//! impl Policy for Eager {
//!     fn name(&self) -> &str { "eager" }
//!     fn rebuild(&mut self, _now: Time, ledger: &Ledger) { self.0 = ledger.waiting().collect(); }
//!     fn event(&mut self, _now: Time, event: Event, _ledger: &Ledger) {
//!         if let Event::Submitted(job) = event { self.0.push(job); }
//!     }
//!     fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
//!         for job in self.0.drain(..) {
//!             let demand = context.ledger().request(job).demand;
//!             context.start(job, Placement::on_plain(demand), StartReason::Immediate)?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let ledger = Ledger::new(Machine::plain(8));
//! let mut driver = Driver::new(ledger, Box::new(Eager(vec![])), EventOrder::Batched);
//! let request = Request::new(1, Time::ZERO, Span::from_secs(60).unwrap(), Resources::cpus(3));
//! let mut round = Round::default();
//! round.submitted.push(Submission { job: JobId(0), request });
//! let mut effects = Vec::new();
//! driver.round(Time::ZERO, &mut round, &mut effects)?;
//! assert_eq!(driver.ledger().free().cpus_count(), 5.into());
//! # Ok::<(), Violation>(())
//! ```

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
