//! The facts of a machine, kept up to date for pages and terminals.
//!
//! A [`Board`] has the latest facts. [`follow`] keeps those of a daemon there until it is stopped.

mod board;

mod daemon;

mod mirror;

mod output;

pub use board::{Board, Posted};
pub use daemon::{Following, follow};
pub use output::{Tail, tail};
