//! A policy schedules the nodes of a Slurm cluster.
//!
//! # How
//! Users submit with plain `sbatch`. The driver reserves the nodes (`scontrol create reservation`), so Slurm starts no job there
//! by itself. When the policy starts a job, the driver moves it into the reservation, with its nodes, and Slurm starts it at
//! once. The job stays in its partition, so all of Slurm's own rules hold.
//!
//! # Fail-safe
//! The reservation ends some minutes from now, and the driver keeps renewing it. Without the driver it ends, and Slurm schedules
//! by itself; jobs that run go on. When the driver is back, it reserves the nodes again.
//!
//! # Rights
//! An operator of Slurm's accounting may do all of this.

mod comment;

mod drive;

mod error;

mod forecasts;

mod form;

mod hand_back;

mod instant;

mod notes;

mod obstacle;

mod orders;

mod placement;

mod queue;

mod scheduler;

mod settings;

mod site;

mod store;

pub use crate::comment::{CommentField, DriverComment};
pub use crate::drive::Drive;
pub use crate::error::DriveError;
pub use crate::forecasts::Learn;
pub use crate::hand_back::HandedBack;
pub use crate::notes::{Note, StartRecord};
pub use crate::orders::Order;
pub use crate::queue::{QueuedJob, queue};
pub use crate::scheduler::Step;
pub use crate::settings::Settings;
