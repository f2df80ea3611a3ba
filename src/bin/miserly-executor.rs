//! The part of a daemon for all users that has the rights of root. Only `miserly daemon` runs it, from its own folder.

use std::process::ExitCode;

fn main() -> ExitCode {
    miserly_executor::main()
}
