//! Parts of the output of a job.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// The most bytes that are read.
const TAIL_MOST: u64 = 64 << 10;

/// A part of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The text; bytes that are no text are replaced. It may have control characters.
    pub text: String,
    /// The size of the whole output, bytes.
    pub size: u64,
    /// Whether something before it is left out.
    pub cut: bool,
    /// The first byte behind the text.
    pub end: u64,
}

/// Returns the last 64 KiB of an output, with the rights of this process. Returns `None` if it is no regular file.
///
/// # Errors
/// If it cannot be opened or read.
pub fn tail(path: &Path) -> io::Result<Option<Tail>> {
    part(path, None)
}

/// Returns what follows a byte of an output, at most the last 64 KiB, as [`tail`]. A letter that is not complete yet comes with the next
/// part. An output that has become shorter is read from its begin.
///
/// # Errors
/// As [`tail`].
pub fn part(path: &Path, from: Option<u64>) -> io::Result<Option<Tail>> {
    // A FIFO without a writer would block, and a user may put one there at any time.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let known = file.metadata()?;
    if !known.is_file() {
        return Ok(None);
    }
    let size = known.len();
    let known = from.map(|from| if from > size { 0 } else { from });
    let begin = known.unwrap_or(0).max(size.saturating_sub(TAIL_MOST));
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = vec![];
    file.take(TAIL_MOST).read_to_end(&mut bytes)?;
    bytes.truncate(complete(&bytes));
    let (text, end) = (String::from_utf8_lossy(&bytes).into_owned(), begin + bytes.len() as u64);
    Ok(Some(Tail {
        text,
        size,
        cut: known.map_or(begin > 0, |known| begin > known || Some(known) != from),
        end,
    }))
}

/// Returns the length without a letter at the end of which bytes may follow.
fn complete(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last().map_or(&[][..], |chunk| chunk.invalid());
    let is_begun = !last.is_empty()
        && bytes.ends_with(last)
        && std::str::from_utf8(last).is_err_and(|error| error.error_len().is_none());
    bytes.len() - if is_begun { last.len() } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_output_follow_each_other() {
        let path = std::env::temp_dir().join(format!("miserly-follow-part-{}", std::process::id()));
        let read = |from| part(&path, from).unwrap().unwrap();
        let whole = "one\nzwölf";
        std::fs::write(&path, &whole.as_bytes()[..7]).unwrap();
        let first = read(None);
        assert_eq!((&*first.text, first.end, first.cut), ("one\nzw", 6, false), "half a letter waits");
        std::fs::write(&path, whole).unwrap();
        let second = read(Some(first.end));
        assert_eq!((&*second.text, second.end, second.cut), ("ölf", 10, false));
        assert_eq!(read(Some(10)).text, "");
        std::fs::write(&path, "new").unwrap();
        let third = read(Some(10));
        assert_eq!((&*third.text, third.cut), ("new", true), "it was written anew");
        std::fs::write(&path, "x".repeat(100_000)).unwrap();
        let last = read(Some(3));
        assert_eq!((last.text.len() as u64, last.end, last.cut), (TAIL_MOST, 100_000, true));
        std::fs::remove_file(&path).unwrap();
    }
}
