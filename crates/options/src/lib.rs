//! The options of reading and running a log, as words of a command line.
//!
//! The program and the Python package have the same options, parsed by the same rules.

// The rustdoc comments of options are help texts. Backticks would be shown, and brackets are not links.
#![allow(clippy::doc_markdown, rustdoc::broken_intra_doc_links)]

mod by;
mod model;
mod prepare;
pub mod read;
pub mod run;
pub mod values;

pub use by::{By, GroupingParser, groupings};
pub use model::ModelArgs;
pub use prepare::{machine_named, open, read as read_log};
pub use read::{ConversionArgs, ReadArgs, RewriteArgs};
pub use run::{FilterArgs, RunArgs};
