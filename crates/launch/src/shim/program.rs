//! The shim as a program of its own, which uses less memory than the program of a daemon.

use miserly_attempt::{PROTOCOL_VERSION, SHIM_SOURCES};
use std::env::args_os;
use std::path::Path;
use std::process::ExitCode;

use super::run;

/// The sources of this crate that define what a daemon and its shim have in common.
const SOURCES: [&str; 2] = [include_str!("../folder.rs"), include_str!("job_cgroup.rs")];

/// Implements the program `miserly-shim`: `shim DIR`, as [`run`] does, and `--identity`.
pub fn main() -> ExitCode {
    let arguments: Vec<_> = args_os().skip(1).collect();
    match arguments.as_slice() {
        [command, dir] if command == "shim" => run(Path::new(dir)),
        [option] if option == "--identity" => {
            println!("{}", identity());
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!("usage: miserly-shim shim DIR | --identity; only miserly calls this program");
            ExitCode::from(2)
        }
    }
}

/// Returns the identity of this build: its version, that of the protocol, and a hash of the sources
/// that a daemon and its shim have in common.
///
/// A daemon uses the program `miserly-shim` only if both have the same identity.
pub fn identity() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "miserly {version}, protocol {PROTOCOL_VERSION}, {:016x}",
        hash(SHIM_SOURCES.iter().chain(&SOURCES))
    )
}

/// Returns the 64-bit FNV-1a hash of texts. It finds different builds, not attacks.
pub fn hash<'t>(texts: impl IntoIterator<Item = &'t &'t str>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    texts
        .into_iter()
        .flat_map(|text| text.bytes())
        .fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_that_of_the_definition() {
        assert_eq!(hash(&["foo", "bar"]), 0x8594_4171_f739_67e8);
        assert_ne!(hash(&["a"]), hash(&["b"]));
    }
}
