//! The NCSA Origin 2000 and its workload of October 1999 to March 2000, as the paper tells of them.
//!
//! The logs themselves are not public. What is published of them is here; [`generate::O2k`](crate::generate::O2k) makes
//! logs like it, and [`describe`](crate::describe()) sets a log of that model beside it.
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

pub use calendar::{Period, Slot};
pub use month::{Month, NoSuchMonth};
pub use table::{Cell, Demands};

/// The name of the model that generates such logs, as their headers have it.
pub(crate) const MODEL: &str = "o2k";

/// The processors of all hosts together (Table 2).
pub const PROCS: u32 = 960;

/// How many hosts there are (Table 2).
pub const HOSTS: u32 = 8;

/// The memory of all hosts together, kB: three hosts of 64 GB, four of 32, one of 16, so 336 GB (Table 2).
pub const MEMORY: u64 = (3 * 64 + 4 * 32 + 16) << 20;

/// How long a log goes on before its month begins, in seconds: seven days (section 4).
pub const WARM_UP: u64 = 7 * 86_400;

/// Where the machine stands, as `TimeZoneString` has it.
pub const TIME_ZONE: &str = "US/Central";
