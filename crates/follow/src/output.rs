//! The end of the output of a job.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// The most bytes that are read.
const TAIL_MOST: u64 = 64 << 10;

/// The end of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// The text; bytes that are no text are replaced. It may have control characters.
    pub text: String,
    /// The size of the whole output, bytes.
    pub size: u64,
    /// Whether the begin is left out.
    pub cut: bool,
}

/// Returns the last 64 KiB of an output, with the rights of this process. Returns `None` if it is no regular file.
///
/// # Errors
/// If it cannot be opened or read.
pub fn tail(path: &Path) -> io::Result<Option<Tail>> {
    // A FIFO without a writer would block, and a user may put one there at any time.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let known = file.metadata()?;
    if !known.is_file() {
        return Ok(None);
    }
    let size = known.len();
    let from = size.saturating_sub(TAIL_MOST);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = vec![];
    file.take(TAIL_MOST).read_to_end(&mut bytes)?;
    Ok(Some(Tail { text: String::from_utf8_lossy(&bytes).into_owned(), size, cut: from > 0 }))
}
