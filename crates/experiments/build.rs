//! Takes the checksum of the sources that a run goes through, so that a run which is kept is known to be that of
//! this very program.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest, Sha256};

/// The crates whose code decides what a run comes to.
const CRATES: [&str; 12] = [
    "core",
    "classes",
    "units",
    "formula",
    "workload",
    "import",
    "policies",
    "machine-file",
    "sim",
    "report",
    "run",
    "experiments",
];

fn main() -> io::Result<()> {
    let crates = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let mut sources = Vec::new();
    for name in CRATES {
        let folder = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", folder.display());
        collect(&folder, &mut sources)?;
    }
    // The versions of the libraries.
    let lock = crates.join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    sources.extend(lock.exists().then_some(lock));
    sources.sort();
    let mut hash = Sha256::new();
    for path in &sources {
        let bytes = fs::read(path)?;
        hash.update(path.strip_prefix(&crates).unwrap_or(path).to_string_lossy().as_bytes());
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    let start = hash.finalize().iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    println!("cargo::rustc-env=MISERLY_SOURCES={start:016x}");
    Ok(())
}

/// Every source file below a folder; none where there is no such folder, as in a package of this crate alone.
fn collect(folder: &Path, into: &mut Vec<PathBuf>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, into)?;
        } else {
            into.push(path);
        }
    }
    Ok(())
}
