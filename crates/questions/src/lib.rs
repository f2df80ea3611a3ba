//! Questions about a log: why a job waited, how long jobs will wait, and what a change makes of the waits.
//!
//! The program and the Python package ask them with the same options, and have the same documents.

// The rustdoc comments of options are help texts. Backticks would be shown, and brackets are not links.
#![allow(clippy::doc_markdown, rustdoc::broken_intra_doc_links)]

mod explain;

mod forecast;

mod what_if;

pub use explain::{Explanation, explain};
pub use forecast::{ForecastAnswer, forecast};
pub use what_if::{ChangeArgs, Question, WhatIfAnswer};
