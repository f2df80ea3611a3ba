//! The environment and the benchmark of learned schedulers.
//!
//! Zhang et al. (`RLScheduler`, SC 2020) judge a scheduler by ten windows of four logs, and later papers do as they did.
//! [`Episode`] is the loop of their simulator, [`Order`] the orders of their tables, and [`published`] the tables.

mod env;
mod episode;
pub mod gate;
mod log;
mod orders;
pub mod published;
pub mod score;
mod simulated;
pub mod study;

pub use env::{EnvOptions, Envs, FEATURES, Reward, Row, SHOWN, Shown, Step};
pub use episode::{Episode, bounded_slowdown};
pub use log::{Job, JobLog, JobLogError};
pub use orders::Order;
pub use simulated::{Scheduled, schedule_with};
