//! Where the last commit left the state: kept in the database, and repeated in a file beside it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{Damage, Place, StoreError};
use super::sums::Sum;

/// How many rows a table has, and what their sums sum up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Tally {
    pub(super) count: u64,
    pub(super) digest: u64,
}

impl Tally {
    pub(super) fn add(&mut self, sum: u32) {
        self.count += 1;
        self.digest = self.digest.wrapping_add(u64::from(sum));
    }

    pub(super) fn remove(&mut self, sum: u32) {
        self.count = self.count.saturating_sub(1);
        self.digest = self.digest.wrapping_sub(u64::from(sum));
    }
}

/// Where the last commit left the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Mark {
    /// The number of the commit.
    pub(super) commit: i64,
    /// The number of the journal's last line.
    pub(super) line: i64,
    /// The sum of the journal's last line.
    pub(super) chain: u32,
    /// The lines of the journal.
    pub(super) lines: u64,
    pub(super) live: Tally,
    pub(super) ended: Tally,
    pub(super) meta: Tally,
}

impl Mark {
    /// The tally of the jobs that have ended, or of those that have not.
    pub(super) fn jobs(&mut self, ended: bool) -> &mut Tally {
        if ended { &mut self.ended } else { &mut self.live }
    }

    /// The text that the database has of it.
    pub(super) fn text(&self) -> String {
        // Plain numbers: they have a JSON form.
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn sum(&self) -> u32 {
        Sum::of("mark").text(&self.text()).finish()
    }

    /// The mark that the text says, if the sum is its own.
    pub(super) fn read(text: &str, sum: i64) -> Option<Mark> {
        let mark: Mark = serde_json::from_str(text).ok()?;
        (i64::from(mark.sum()) == sum).then_some(mark)
    }
}

/// What the file beside the database says of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Repeated {
    pub(super) commit: i64,
    pub(super) line: i64,
    pub(super) sum: u32,
}

/// The length of a slot of the file.
const SLOT: usize = 64;

/// The file beside the database: two slots, written in turn, so that a write that is torn leaves the other.
///
/// It is written after the commit is on disk and not synchronised: after a power failure it may be behind the database, which says nothing;
/// it is never ahead of it.
pub(super) struct MarkFile(File);

impl MarkFile {
    pub(super) const NAME: &str = "mark";

    /// Opens the file of the folder.
    pub(super) fn open(home: &Path) -> Result<MarkFile, StoreError> {
        let path = home.join(MarkFile::NAME);
        match File::options().read(true).write(true).open(&path) {
            Ok(file) => Ok(MarkFile(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(StoreError::Damaged(vec![Damage::new(
                    Place::Mark,
                    "the file beside the database has gone",
                )]))
            }
            Err(error) => Err(StoreError::io(path)(error)),
        }
    }

    /// Repeats a mark.
    pub(super) fn write(&self, mark: &Mark) -> std::io::Result<()> {
        let slot = if mark.commit % 2 == 0 { 0 } else { SLOT as u64 };
        self.0.write_all_at(slot_text(mark).as_bytes(), slot)
    }

    /// The latest mark that it has; none if no slot is whole.
    pub(super) fn read(&self) -> std::io::Result<Option<Repeated>> {
        let slot = |at: u64| {
            let mut bytes = [0; SLOT];
            match self.0.read_exact_at(&mut bytes, at) {
                Ok(()) => Ok(read_slot(&bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
                Err(error) => Err(error),
            }
        };
        Ok(slot(0)?.max(slot(SLOT as u64)?))
    }

    /// Both slots of a new file.
    pub(super) fn fresh(mark: &Mark) -> String {
        slot_text(mark).repeat(2)
    }
}

fn slot_text(mark: &Mark) -> String {
    let text = format!("{} {} {:08x}", mark.commit, mark.line, mark.sum());
    let sum = Sum::of("slot").text(&text).finish();
    let line = format!("{text} {sum:08x}");
    format!("{line:<width$}\n", width = SLOT - 1)
}

fn read_slot(bytes: &[u8]) -> Option<Repeated> {
    let text = std::str::from_utf8(bytes).ok()?.trim_end();
    let (said, own) = text.rsplit_once(' ')?;
    if Sum::of("slot").text(said).finish() != u32::from_str_radix(own, 16).ok()? {
        return None;
    }
    let mut words = said.split(' ');
    let (commit, line) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(Repeated { commit, line, sum: u32::from_str_radix(words.next()?, 16).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_says_what_was_written_or_nothing() {
        let mark = Mark { commit: i64::MAX, line: i64::MAX, ..Mark::default() };
        let slot = slot_text(&mark).into_bytes();
        assert_eq!(slot.len(), SLOT);
        let read = Repeated { commit: mark.commit, line: mark.line, sum: mark.sum() };
        assert_eq!(read_slot(&slot), Some(read));
        for at in 0..SLOT {
            let mut flipped = slot.clone();
            flipped[at] ^= 1;
            assert!(read_slot(&flipped).is_none_or(|other| other == read), "byte {at}");
        }
    }
}
