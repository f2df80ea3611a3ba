//! Limits on the jobs of users.
//!
//! | file | content |
//! |---|---|
//! | `settings` | the limits as they are configured, and which of them apply to a job |
//! | `checks` | the checks of requests, with the refusals |
//! | `places` | the jobs that may be in ledgers at the same time |
//! | `lines` | the jobs that wait for a place |
//! | `used_time` | the processor time of windows that have ended |
//! | `view` | the limits and the use of one user |

mod checks;
pub(crate) mod lines;
pub(crate) mod places;
mod settings;
pub(crate) mod used_time;
mod view;

pub(crate) use settings::Scope;
pub use settings::{CpuHours, LimitTable, Limits, UserLimits};
