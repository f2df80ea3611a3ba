//! What is measured of a request: its time, and the bytes that it writes.

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::bench::{Failure, now, size};

/// Does `act` with each item, and prints the times and the bytes.
pub(crate) fn repeat<T>(
    what: &str,
    folder: &Path,
    of: impl Iterator<Item = T>,
    mut act: impl FnMut(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let (mut times, before) = (vec![], Written::now());
    for one in of {
        let began = now();
        act(one)?;
        times.push(began.elapsed());
    }
    print(what, &mut times, before, folder);
    Ok(())
}

/// Prints the times, and the bytes that were written each time.
fn print(what: &str, times: &mut [Duration], before: Written, folder: &Path) {
    times.sort();
    let Some(last) = times.last() else { return };
    let at = |part: usize| times.get(times.len() * part / 100).unwrap_or(last);
    println!(
        "{what}: p50 {:.2?}, p99 {:.2?}; {:.1} kB written each; state {} MB",
        at(50),
        at(99),
        before.kilobytes() / f64::from(u32::try_from(times.len()).unwrap_or(u32::MAX)),
        size(folder) >> 20
    );
}

/// The bytes that this process had written at an instant.
#[derive(Clone, Copy)]
pub(crate) struct Written(u64);

impl Written {
    pub(crate) fn now() -> Written {
        let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
        let bytes = text.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok());
        Written(bytes.unwrap_or(0))
    }

    #[allow(clippy::cast_precision_loss, reason = "a figure to print")]
    pub(crate) fn kilobytes(self) -> f64 {
        (Written::now().0 - self.0) as f64 / 1000.0
    }
}

/// Returns the memory of this process, in kilobytes.
pub(crate) fn resident() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}
