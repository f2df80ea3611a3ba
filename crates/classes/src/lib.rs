//! The job classes of the papers: those of an LSF configuration, and the categories of Kettimuthu et al.
//!
//! Policies, workload models and metrics use them, so this crate is below all three.

pub mod lsf;

mod categories;

pub use categories::Category;
