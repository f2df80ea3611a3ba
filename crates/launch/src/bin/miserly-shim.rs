//! The shim as a program of its own, `miserly-shim shim DIR`, for tests and other daemons without
//! `miserly`.

use std::env::args_os;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = args_os().skip(1).collect();
    match arguments.as_slice() {
        [command, dir] if command == "shim" => miserly_launch::shim::run(Path::new(dir)),
        _ => {
            eprintln!("usage: miserly-shim shim DIR");
            ExitCode::from(2)
        }
    }
}
