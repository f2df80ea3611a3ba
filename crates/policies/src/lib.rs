#![doc = include_str!("../README.md")]

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
