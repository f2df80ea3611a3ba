//! Submit options, from the command line or from the directives of a script.
//!
//! [`directives`] reads the lines `#MISERLY` and `#SBATCH` at the head of a script. Both sources
//! yield [`SubmitOptions`], so one can complete the other. This module reads neither the clock nor
//! the disk.

mod submit_options;

mod script;

mod options;

mod set;

mod instant;

mod past;

mod quantity;

mod after;

mod signal;

mod mail;

pub use after::after;
pub use instant::{dated_instant, instant};
pub use mail::{mail_address, mail_events};
pub use options::{hint, own_options};
pub use past::past_instant;
pub use quantity::{array, gpus, length_of_time, memory, retry};
pub use script::{BYTE_ORDER_MARK, Directives, Remark, directive_line, directives};
pub use signal::{early_signal, job_signal};
pub use submit_options::{Export, Memory, SubmitOptions};
