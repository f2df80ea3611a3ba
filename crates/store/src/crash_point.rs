//! Crash points: the steps between which a daemon may die, for tests.
//!
//! With `MISERLY_CRASH_POINT=after-commit:3` a debug build kills itself at the third pass of that point. A release build has
//! no crash points.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

pub use miserly_launcher::CrashPoint;
use rustix::process::{Signal, getpid, kill_process};

/// The variable that selects a crash point and the number of its pass.
pub const VARIABLE: &str = "MISERLY_CRASH_POINT";

/// Kills the daemon if a test selected this pass of this point.
pub fn pass(point: CrashPoint) {
    static SELECTED: OnceLock<Option<(CrashPoint, AtomicU64)>> = OnceLock::new();
    if !cfg!(debug_assertions) {
        return;
    }
    let selected = SELECTED.get_or_init(|| selection(&std::env::var(VARIABLE).ok()?));
    if let Some((selected, left)) = selected
        && *selected == point
        && left.fetch_sub(1, Ordering::Relaxed) == 1
    {
        // Not `abort`: nothing of this process may run on.
        let _ = kill_process(getpid(), Signal::KILL);
    }
}

/// Returns the selected point and its pass, from 1.
fn selection(text: &str) -> Option<(CrashPoint, AtomicU64)> {
    let (name, pass) = text.split_once(':')?;
    let point = CrashPoint::ALL.into_iter().find(|point| point.name() == name)?;
    Some((point, AtomicU64::new(pass.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_selected_by_its_name() {
        for point in CrashPoint::ALL {
            let (selected, pass) = selection(&format!("{}:7", point.name())).unwrap();
            assert_eq!((selected, pass.into_inner()), (point, 7));
        }
        for text in ["", "after-commit", "after-commit:", "nowhere:1"] {
            assert!(selection(text).is_none(), "{text}");
        }
    }
}
