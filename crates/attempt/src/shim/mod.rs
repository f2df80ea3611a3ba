//! The shim: from its claim of an attempt to the record of the end.
//!
//! A [`Shim`] decides what a shim does, and a [`Host`] does it.

mod host;

mod claim;

mod life;

mod daemon_link;

mod waiting;

mod supervisor;

mod timeline;

mod commands;

mod resume;

mod stop;

mod user_signals;

mod idle;

mod limits;

mod main_process;

mod queue_programs;

mod pending_end;

pub use host::{CpuTime, CpuTimes, Events, Host, Reaped, Recipients, Signal, StopScan, ThreadClass};
pub use life::Shim;
pub use main_process::{Permission, SetupFailure, SetupMessage};
pub use stop::STOP_TIMEOUT;
pub use supervisor::CRITICAL_NICE;
pub use timeline::BEGIN_DELAY;
