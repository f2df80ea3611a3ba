//! The shim of a job: a small program, since each running job has one.
//!
//! The daemon runs it from its own folder if both are of the same build. Otherwise `miserly` itself is the shim.

use std::process::ExitCode;

fn main() -> ExitCode {
    miserly_launch::shim::main()
}
