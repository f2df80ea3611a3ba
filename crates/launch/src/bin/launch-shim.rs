//! The shim of this crate's tests. Users get the same program as `miserly-shim`.

use std::process::ExitCode;

fn main() -> ExitCode {
    miserly_launch::shim::main()
}
