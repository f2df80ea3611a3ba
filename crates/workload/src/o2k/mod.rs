//! The NCSA Origin 2000 and its workload of October 1999 to March 2000, as published in the paper.
//!
//! The logs are not public. This module contains the published facts.
//! [`generate::O2k`](crate::generate::O2k) generates such logs, and [`describe`](crate::describe()) compares them.
//!
//! ```
//! use miserly_workload::o2k::Month;
//!
//! let month: Month = "2000-01".parse()?;
//! assert_eq!(month.demands().jobs(), 7046);
//! # Ok::<(), miserly_workload::o2k::NoSuchMonth>(())
//! ```
//!
//! # Source
//! Chiang and Vernon, Production job scheduling for parallel shared memory systems, IPPS 2001.

mod month;

mod table;

mod calendar;

pub use calendar::{Period, WeekSlot};
pub use month::{Month, NoSuchMonth};
pub use table::{DemandCell, Demands};

/// Name of the model that generates such logs, as in their headers.
pub(crate) const MODEL: &str = "o2k";

/// Processors of all hosts (Table 2).
pub const PROCS: u32 = 960;

/// Number of hosts (Table 2).
pub const HOSTS: u32 = 8;

/// Memory of all hosts in kB: three hosts of 64 GB, four of 32, one of 16, so 336 GB (Table 2).
pub const MEMORY: u64 = (3 * 64 + 4 * 32 + 16) << 20;

/// Length of a log before its month begins, in seconds: seven days (section 4).
pub const WARM_UP: u64 = 7 * 86_400;

/// Time zone of the machine, as in `TimeZoneString`.
pub const TIME_ZONE: &str = "US/Central";
