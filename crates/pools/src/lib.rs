//! Pools, queues and calendars: which share of a machine is batch's, when, and how queues divide it (Miser §3.1).
//!
//! A file that describes a machine, for the simulator or for the daemon, has a `[pool]` and any number of `[[queue]]`. What it
//! says as it is written is in [`PoolFile`] and [`QueueFile`]; [`check()`] makes a [`Pools`] of it, in which at every instant the
//! queues take no more than the pool, and the pool no more than the machine.
//!
//! ```
//! use miserly_core::{Resources, Time};
//! use miserly_pools::{PoolsFile, check};
//!
//! let text = r#"
//!     [pool]
//!     cpus = 24
//!     calendar = [{ days = "mon-fri", from = "08:00", to = "18:00", cpus = 8 }]
//!     [[queue]]
//!     name = "short"
//!     cpus = 8
//! "#;
//! let file: PoolsFile = toml::from_str(text)?;
//! let pools = check(&file, &Resources::cpus(32)).map_err(|problem| problem.text)?;
//! assert_eq!(pools.queues[0].week.calendar(Time::ZERO).at(Time::ZERO).cpus_count(), 8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file;

mod check;

mod rules;

mod week;

mod quantity;

mod read;

#[cfg(test)]
mod tests;

use std::ops::Range;

pub use check::check;
pub use file::{PoolFile, PoolsFile, QueueFile, RuleFile, Who};
pub use quantity::{duration, kilobytes};
pub use read::{line_of, parse};
pub use week::{Week, monday};

/// A pool and the queues that divide it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pools {
    /// Batch's share of the machine.
    pub pool: Week,
    /// Its parts, in the order in which they are written; one, if nothing is written of queues.
    pub queues: Vec<QueueSpec>,
}

/// A queue: a pool of its own, and who decides in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its name; no other queue has it.
    pub name: String,
    /// What it has.
    pub week: Week,
    /// The written form of its policy, and where in the text that is; not checked here.
    pub policy: Option<(String, Range<usize>)>,
}

/// What is wrong with a file, and where in its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The bytes of the text that it is about.
    pub at: Range<usize>,
    /// What is wrong, and what to do.
    pub text: String,
}

impl Problem {
    /// This about that part of the text.
    pub fn new(at: Range<usize>, text: impl Into<String>) -> Problem {
        Problem { at, text: text.into() }
    }
}
