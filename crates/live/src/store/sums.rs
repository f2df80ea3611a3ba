//! Checksums over what rows say.

use crc32fast::Hasher;

/// A CRC-32 over numbers and texts. Each text goes in with its length, so that no two rows feed it the same bytes.
#[derive(Default)]
pub(super) struct Sum(Hasher);

impl Sum {
    /// The sum of a row of this table.
    pub(super) fn of(table: &str) -> Sum {
        Sum::default().text(table)
    }

    pub(super) fn number(mut self, number: i64) -> Sum {
        self.0.update(&number.to_le_bytes());
        self
    }

    pub(super) fn optional(self, number: Option<i64>) -> Sum {
        match number {
            Some(number) => self.number(1).number(number),
            None => self.number(0),
        }
    }

    pub(super) fn text(mut self, text: &str) -> Sum {
        self.0.update(&(text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
        self
    }

    pub(super) fn finish(self) -> u32 {
        self.0.finalize()
    }
}
