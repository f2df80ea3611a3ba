//! What people write when they submit: options, on the command line or as directives of a script.
//!
//! [`directives`] reads the lines `#MISERLY` and `#SBATCH` at the head of a script. What they say and what the command line says
//! are both [`SubmitOptions`], so that one can fill up the other. Nothing here looks at the clock or at the disk.

mod submit_options;

mod script;

mod options;

mod set;

mod words;

mod instant;

mod quantity;

pub use instant::instant;
pub use options::own_options;
pub use quantity::{array, job_numbers, length_of_time, memory};
pub use script::{Directives, Remark, directives};
pub use submit_options::{Export, Memory, SubmitOptions};
