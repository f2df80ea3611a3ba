//! The key of a run: everything that determines it.

use miserly_run::SettingsDoc;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::file::Record;

/// The version of the layout of a stored result. Raised when it changes.
const FORMAT: u32 = 1;

/// Everything that determines the result of a run.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Determined<'a> {
    format: u32,
    /// The version of the program, and the checksum of the sources that a run goes through.
    version: &'static str,
    sources: &'static str,
    /// The log, and how it was read.
    name: &'a str,
    sha256: &'a str,
    read: &'a str,
    policy: String,
    settings: &'a SettingsDoc,
    record: &'a Record,
}

impl<'a> Determined<'a> {
    pub(super) fn new(
        (name, sha256, read): (&'a str, &'a str, &'a str),
        policy: String,
        settings: &'a SettingsDoc,
        record: &'a Record,
    ) -> Determined<'a> {
        let (version, sources) = (env!("CARGO_PKG_VERSION"), env!("MISERLY_SOURCES"));
        Determined { format: FORMAT, version, sources, name, sha256, read, policy, settings, record }
    }

    /// Returns the key under which the result is stored: the first half of the SHA-256 of all this, in hexadecimal.
    pub(super) fn key(&self) -> String {
        // Plain data: it has a JSON form.
        let text = serde_json::to_vec(self).unwrap_or_default();
        let start =
            Sha256::digest(text).iter().take(16).fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
        format!("{start:032x}")
    }
}
