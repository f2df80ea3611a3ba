//! The scheduling policies and their registry: pure, deterministic state machines.
//!
//! Rooms by mechanism: [`backfill`], [`window`], [`preempt`], [`classes`], [`equipartition`], [`gang`]; over
//! shared structures: [`shared`]. Every policy is registered once
//! ([`POLICIES`]), with its parameters and its paper, and every front end reads that one registry.
//!
//! ```
//! use miserly_core::Machine;
//! use miserly_policies::Chosen;
//!
//! let chosen: Chosen = "easy(backfill=shortest)".parse()?;
//! let policy = chosen.build(&Machine::plain(100), 1)?;
//! assert_eq!(policy.name(), "easy");
//! # Ok::<(), miserly_policies::PolicyError>(())
//! ```

pub mod backfill;

pub mod window;

pub mod preempt;

pub mod classes;

pub mod equipartition;

pub mod gang;

pub mod shared;

mod registry;

mod spec;

pub use registry::{Chosen, DefaultValue, Domain, POLICIES, Param, PolicyError, Promises, Registered, find};
pub use spec::{Spec, SyntaxError, Written};
