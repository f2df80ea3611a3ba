//! The summary of the last commit: a row of the database, repeated in a file beside it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::checksum::Checksum;
use super::error::{Damage, DamageSite, StoreError};

/// The number of rows of a table and the sum of their checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct TableSum {
    pub(super) count: u64,
    pub(super) digest: u64,
}

impl TableSum {
    /// Adds a row with this checksum.
    pub(super) fn add(&mut self, sum: u32) {
        self.count += 1;
        self.digest = self.digest.wrapping_add(u64::from(sum));
    }

    /// Returns the sum of the rows of both.
    pub(super) fn plus(self, other: TableSum) -> TableSum {
        TableSum { count: self.count + other.count, digest: self.digest.wrapping_add(other.digest) }
    }

    /// Returns the sum of the rows without those of the other.
    pub(super) fn less(self, other: TableSum) -> TableSum {
        TableSum {
            count: self.count.saturating_sub(other.count),
            digest: self.digest.wrapping_sub(other.digest),
        }
    }

    /// Removes a row with this checksum.
    pub(super) fn remove(&mut self, sum: u32) {
        self.count = self.count.saturating_sub(1);
        self.digest = self.digest.wrapping_sub(u64::from(sum));
    }
}

/// The summary of a commit: its number and the sum of each table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct CommitMark {
    /// The number of the commit.
    pub(super) commit: i64,
    /// The number of the last journal line.
    pub(super) line: i64,
    /// The highest number that a job ever had.
    pub(super) highest: i64,
    pub(super) live: TableSum,
    pub(super) ended: TableSum,
    pub(super) journal: TableSum,
    pub(super) meta: TableSum,
}

impl CommitMark {
    /// Returns the sum of the table that holds such jobs.
    pub(super) fn jobs(&mut self, ended: bool) -> &mut TableSum {
        if ended { &mut self.ended } else { &mut self.live }
    }

    /// Returns the sum of a table, by name.
    pub(super) fn table(&self, name: &str) -> TableSum {
        match name {
            "live" => self.live,
            "ended" => self.ended,
            "journal" => self.journal,
            _ => self.meta,
        }
    }

    /// Returns the JSON text that the database stores.
    pub(super) fn text(&self) -> String {
        // Plain numbers always have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the checksum of the text.
    pub(super) fn sum(&self) -> u32 {
        Checksum::new("mark").text(&self.text()).finish()
    }

    /// Parses a stored mark. Returns `None` if the checksum differs.
    pub(super) fn read(text: &str, sum: i64) -> Option<CommitMark> {
        let mark: CommitMark = serde_json::from_str(text).ok()?;
        (i64::from(mark.sum()) == sum).then_some(mark)
    }
}

/// The part of a mark that the file beside the database repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RepeatedMark {
    pub(super) commit: i64,
    pub(super) highest: i64,
    pub(super) sum: u32,
}

/// The length of the file: within one sector, so that a write is never torn.
const LENGTH: usize = 64;

/// The file beside the database.
///
/// It is written after each commit and not synchronised. After a power failure it may be older than
/// the database, which is harmless. It is never newer.
pub(super) struct MarkFile(File);

impl MarkFile {
    pub(super) const NAME: &str = "mark";

    /// Opens the file of this store folder.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it is missing.
    pub(super) fn open(home: &Path) -> Result<MarkFile, StoreError> {
        let path = home.join(MarkFile::NAME);
        match File::options().read(true).write(true).open(&path) {
            Ok(file) => Ok(MarkFile(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let damage = Damage::new(DamageSite::Mark, "the file beside the database is missing");
                Err(StoreError::Damaged(vec![damage]))
            }
            Err(error) => Err(StoreError::io(path)(error)),
        }
    }

    /// Overwrites the file with this mark.
    pub(super) fn write(&self, mark: &CommitMark) -> std::io::Result<()> {
        self.0.write_all_at(MarkFile::content(mark).as_bytes(), 0)
    }

    /// Reads the file. Returns `None` if it is damaged.
    pub(super) fn read(&self) -> std::io::Result<Option<RepeatedMark>> {
        let mut bytes = [0; LENGTH];
        match self.0.read_exact_at(&mut bytes, 0) {
            Ok(()) => Ok(parse(&bytes)),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the content of the file for this mark.
    pub(super) fn content(mark: &CommitMark) -> String {
        let text = format!("{} {} {:08x}", mark.commit, mark.highest, mark.sum());
        let sum = Checksum::new("mark file").text(&text).finish();
        let line = format!("{text} {sum:08x}");
        format!("{line:<width$}\n", width = LENGTH - 1)
    }
}

fn parse(bytes: &[u8]) -> Option<RepeatedMark> {
    let text = std::str::from_utf8(bytes).ok()?.trim_end();
    let (content, own) = text.rsplit_once(' ')?;
    if Checksum::new("mark file").text(content).finish() != u32::from_str_radix(own, 16).ok()? {
        return None;
    }
    let mut words = content.split(' ');
    let (commit, highest) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(RepeatedMark { commit, highest, sum: u32::from_str_radix(words.next()?, 16).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_mark_file_reads_as_written_or_not_at_all() {
        let mark = CommitMark { commit: i64::MAX, highest: i64::MAX, ..CommitMark::default() };
        let content = MarkFile::content(&mark).into_bytes();
        assert_eq!(content.len(), LENGTH);
        let written = RepeatedMark { commit: mark.commit, highest: mark.highest, sum: mark.sum() };
        assert_eq!(parse(&content), Some(written));
        for at in 0..LENGTH {
            let mut flipped = content.clone();
            flipped[at] ^= 1;
            assert!(parse(&flipped).is_none_or(|other| other == written), "byte {at}");
        }
    }
}
