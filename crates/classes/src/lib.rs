//! The job classes of papers: those of an LSF configuration, and the categories of Kettimuthu et al.
//!
//! Policies, workload models and metrics share them, so they are in a crate below all three.

pub mod lsf;

mod categories;

pub use categories::Category;
