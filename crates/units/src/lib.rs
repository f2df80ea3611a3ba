//! Reads and prints durations and amounts of memory: one grammar and one way to print, for every interface.
//!
//! The command line, policy parameters, machine files, configurations, experiments and job scripts all use it.
//! `docs/units.md` is the same table for users. The notation of Slurm, for its own lines and files, is in [`slurm`].
//!
//! | written | meaning |
//! |---|---|
//! | `90`, `0.5` | seconds |
//! | `250ms`, `90s`, `15min`, `2h`, `1d`, `2w` | a number and a unit; also `us`, `m`, and long names such as `hours` |
//! | `1d12h`, `1h 30min`, `1.5h` | units from large to small; the last one may have decimals |
//! | `1:30:00`, `2-12`, `2-12:30`, `2-12:30:15` | hours, minutes and seconds; days, hours, minutes and seconds |
//! | `512MiB`, `512MB`, `512M`, `1.5G` | memory: a number and K, M, G or T; each unit is 1024 of the one before |
//!
//! ```
//! use miserly_units::{duration, memory, parse_duration, parse_memory};
//!
//! let span = parse_duration("1h 30min")?;
//! assert_eq!(duration(span), "1h30m");
//! assert_eq!(parse_duration("1:30:00")?, span);
//! assert_eq!(memory(parse_memory("1536MB")?), "1.5GiB");
//! # Ok::<(), miserly_units::UnitError>(())
//! ```

mod duration;
mod error;
mod memory;
mod print;
pub mod slurm;

pub use duration::{LONGEST, parse_duration, parse_duration_from, parse_seconds};
pub use error::UnitError;
pub use memory::{memory, parse_memory};
pub use print::{duration, duration_rounded, span_of_seconds};
