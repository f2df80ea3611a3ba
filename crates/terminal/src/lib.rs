//! A view of a daemon on a terminal: its pools, a chart of its jobs over time, and a table of them.
//!
//! [`App`] is the state of the view. Keys, facts of the daemon and answers to requests change it. It reads neither a clock nor a
//! file. [`App::draw`] draws it. [`run()`] connects it with a terminal and a daemon; [`once()`] prints one frame.

mod app;

mod draw;

mod look;

mod once;

mod request;

mod detail;

mod desk;

mod screen;

mod run;

/// A minute, milliseconds.
pub(crate) const MINUTE: i64 = 60_000;

pub use app::{Action, App};
pub use desk::Answer;
pub use detail::Detail;
pub use look::Look;
pub use once::once;
pub use request::{Request, What};
pub use run::run;
pub use screen::leave;
