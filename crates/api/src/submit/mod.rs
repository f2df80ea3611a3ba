//! Submit options, from the command line or from the directives of a script.
//!
//! `directives` reads the lines `#MISERLY` and `#SBATCH` at the head of a script. All sources yield
//! `SubmitOptions`, so that one can complete the other.

#[cfg(feature = "options")]
mod submit_options;

#[cfg(feature = "options")]
mod script;

#[cfg(feature = "options")]
mod slurm;

mod instant;

mod past;

mod quantity;

mod after;

mod signal;

mod mail;

pub use after::after;
pub use instant::{dated_instant, instant};
pub use mail::{mail_address, mail_events};
pub use past::past_instant;
pub use quantity::{GpuRequest, array, gpus, gres_gpus, length_of_time, memory, retry, wait_time};
#[cfg(feature = "options")]
pub use script::{BYTE_ORDER_MARK, Directives, Remark, directive_line, directives};
pub use signal::{early_signal, job_signal, resize_signal};
#[cfg(feature = "options")]
pub use slurm::hint;
#[cfg(feature = "options")]
pub use submit_options::{Cpus, Export, SubmitOptions, count, when};
