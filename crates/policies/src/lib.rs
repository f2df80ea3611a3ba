//! The scheduling policies and their registry: pure, deterministic state machines.
//!
//! Modules by mechanism: [`backfill`], [`predict`], [`window`], [`preempt`], [`classes`], [`equipartition`],
//! [`gang`]. Each policy has a [`PolicyDescriptor`] with
//! its parameters, its needs, its promises and its paper. A [`Registry`] is a list of descriptors,
//! and every front end reads it.
//!
//! ```
//! use miserly_core::Machine;
//! use miserly_policies::PolicySpec;
//!
//! let spec: PolicySpec = "easy(backfill=shortest)".parse()?;
//! let policy = spec.build(&Machine::plain(100), 1)?;
//! assert_eq!(policy.name(), "easy");
//! # Ok::<(), miserly_policies::PolicyError>(())
//! ```

pub mod backfill;

pub mod predict;

pub mod window;

pub mod preempt;

pub mod classes;

pub mod equipartition;

pub mod gang;

#[doc(hidden)]
pub mod shared;

mod registry;

pub use registry::{
    DefaultValue, Domain, Example, InnerPolicy, Needs, OrderSettings, Param, ParamReader, Params,
    PolicyDescriptor, PolicyError, PolicySpec, Promises, Registry, Spelling, SyntaxError,
};
pub use shared::{Criterion, Draw, Order, Priority, ShareTree, ShareTreeError, Weight};
