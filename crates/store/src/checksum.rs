//! Checksums of rows.

use crc32fast::Hasher;

/// A CRC-32 over numbers and texts.
///
/// Each text is preceded by its length, so two different rows never feed the same bytes.
#[derive(Default)]
pub(super) struct Checksum(Hasher);

impl Checksum {
    /// Starts the checksum of a row of this table.
    pub(super) fn new(table: &str) -> Checksum {
        Checksum::default().text(table)
    }

    /// Adds a number.
    pub(super) fn number(mut self, number: i64) -> Checksum {
        self.0.update(&number.to_le_bytes());
        self
    }

    /// Adds a number that may be absent.
    pub(super) fn optional(self, number: Option<i64>) -> Checksum {
        match number {
            Some(number) => self.number(1).number(number),
            None => self.number(0),
        }
    }

    /// Adds a text.
    pub(super) fn text(mut self, text: &str) -> Checksum {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
        self
    }

    /// Returns the checksum of everything added.
    pub(super) fn finish(self) -> u32 {
        self.0.finalize()
    }
}
