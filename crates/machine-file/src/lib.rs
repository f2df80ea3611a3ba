//! Machine files: the hosts of a machine, its pool, the queues and their calendars (Miser §3.1).
//!
//! The simulator and the daemon read the same grammar here, and refuse it with the same messages.
//! [`mod@file`] has the grammar. [`MachineSpec`] is the machine of a run: built in, a number of
//! processors, or a file. [`Pools::new`] checks the pool and the queues alone, as the daemon needs
//! them. At every instant the queues together have at most the pool, and the pool at most the machine.
//!
//! ```
//! use miserly_core::{Procs, Time};
//! use miserly_machine_file::MachineSpec;
//!
//! let text = r#"
//!     [[host]]
//!     name = "big"
//!     cpus = 32
//!     [pool]
//!     cpus = 24
//!     calendar = [{ days = "mon-fri", from = "08:00", to = "18:00", cpus = 8 }]
//!     [[queue]]
//!     name = "short"
//!     cpus = 8
//!     policy = "easy"
//! "#;
//! let machine = MachineSpec::parse("big.toml", text)?;
//! let queue = &machine.pools.expect("the file has a pool").queues[0];
//! assert_eq!(queue.week.calendar(Time::ZERO).at(Time::ZERO).cpus_count(), Procs::new(8));
//! # Ok::<(), miserly_machine_file::MachineError>(())
//! ```

mod machine;

mod builtin;

mod classes;

mod classes_doc;

mod hosts;

pub mod file;

pub mod gpu;

mod pools;

mod rules;

mod week;

mod quantity;

mod words;

mod problem;

#[cfg(test)]
mod tests;

pub use builtin::BUILT_IN;
pub use classes::job_classes;
pub use classes_doc::{ClassesDoc, LengthDoc, SizeDoc, TurnDoc};
pub use hosts::{HOSTS_MOST, Hosts};
pub use machine::{HostsError, MachineError, MachineSpec};
pub use pools::{Pools, Queue};
pub use problem::{Problem, parse};
pub use quantity::{duration, kilobytes};
pub use week::{Week, monday};
pub use words::{value_of, value_or_default};
