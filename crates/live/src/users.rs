//! Names of users.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{LazyLock, Mutex};

/// The names that were looked up. A machine has few users, and they keep their names.
static KNOWN: LazyLock<Mutex<BTreeMap<u32, String>>> = LazyLock::new(Mutex::default);

/// The user's name, or the number, where it has none.
pub(crate) fn name(uid: u32) -> String {
    let Ok(mut known) = KNOWN.lock() else { return uid.to_string() };
    known.entry(uid).or_insert_with(|| look_up(uid).unwrap_or_else(|| uid.to_string())).clone()
}

fn look_up(uid: u32) -> Option<String> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line =
        users.lines().find(|line| line.split(':').nth(2).and_then(|of| of.parse().ok()) == Some(uid))?;
    line.split(':').next().map(str::to_owned)
}
