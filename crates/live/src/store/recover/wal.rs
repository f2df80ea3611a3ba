//! The database's log, read past damage.
//!
//! `SQLite` reads its log up to the first frame whose checksum does not fit, and takes the rest for what a crash left. Each frame's checksum
//! begins with that of the frame before, as it is written there, so the frames behind a damaged one can still be told to be whole.
//!
//! # Source
//! The `SQLite` file format, "The Write-Ahead Log".

use super::image::PAGE;

/// The head of the log, bytes.
const HEAD: usize = 32;

/// The head of a frame, bytes; a page follows.
const FRAME_HEAD: usize = 24;

/// A page as some commit left it.
pub(super) struct Frame<'a> {
    /// The number of the page.
    pub(super) page: u32,
    /// A commit ends here.
    pub(super) commit: bool,
    /// It is what was written.
    pub(super) whole: bool,
    pub(super) data: &'a [u8],
}

/// A running checksum: two words, each of which runs through the other.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Running(u32, u32);

impl Running {
    /// As a file has it.
    fn read(bytes: &[u8]) -> Running {
        Running(word(bytes, 0), word(bytes, 4))
    }

    /// Runs on over bytes, eight at a time, in the order of this machine.
    fn over(self, bytes: &[u8]) -> Running {
        bytes.chunks_exact(8).fold(self, |Running(first, second), eight| {
            let native =
                |at: usize| u32::from_ne_bytes([eight[at], eight[at + 1], eight[at + 2], eight[at + 3]]);
            let first = first.wrapping_add(native(0)).wrapping_add(second);
            Running(first, second.wrapping_add(native(4)).wrapping_add(first))
        })
    }
}

/// The frames of a log, in order: up to the last that was written since the log was last begun anew, whole or not.
///
/// A frame whose checksum does not fit may have a damaged page, or a damaged number. With `renumber`, how many pages the database has at
/// most, it has the number that fits, if one does. That proves little: the checksum is weak.
pub(super) fn frames(log: &[u8], renumber: Option<u32>) -> Vec<Frame<'_>> {
    let Some((head, rest)) = log.split_at_checked(HEAD) else { return Vec::new() };
    let chunks: Vec<&[u8]> = rest.chunks_exact(FRAME_HEAD + PAGE).collect();
    let computed = Running(0, 0).over(&head[..24]);
    let stored = Running::read(&head[24..]);
    let salts =
        if computed == stored { Some(&head[16..24]) } else { chunks.first().map(|first| &first[8..16]) };
    // The frames behind those of this time have the salts of an earlier one.
    let last = chunks.iter().rposition(|chunk| Some(&chunk[8..16]) == salts);
    let mut before = vec![stored, computed];
    let mut frames = Vec::new();
    for (at, chunk) in chunks.into_iter().enumerate() {
        let (frame, ends) = read(chunk, &before, renumber);
        if !frame.whole && last.is_none_or(|last| at > last) {
            break;
        }
        before = ends;
        frames.push(frame);
    }
    frames
}

/// A frame, and the checksums that the next one may begin with.
fn read<'a>(chunk: &'a [u8], before: &[Running], renumber: Option<u32>) -> (Frame<'a>, Vec<Running>) {
    let (head, data) = chunk.split_at(FRAME_HEAD);
    let stored = Running::read(&head[16..]);
    let fits = |page: u32, size: u32| {
        let numbers = [page.to_be_bytes(), size.to_be_bytes()].concat();
        before.iter().any(|before| before.over(&numbers).over(data) == stored)
    };
    let (page, size) = (word(head, 0), word(head, 4));
    if fits(page, size) {
        return (Frame { page, commit: size != 0, whole: true, data }, vec![stored]);
    }
    let other_page = |pages| (1..=pages).map(|other| (other, size)).find(|&(page, size)| fits(page, size));
    let other_size = |pages| (0..=pages).map(|other| (page, other)).find(|&(page, size)| fits(page, size));
    if let Some((page, size)) = renumber.and_then(|pages| other_page(pages).or_else(|| other_size(pages))) {
        return (Frame { page, commit: size != 0, whole: true, data }, vec![stored]);
    }
    // Either the page is damaged or the checksum is: the next frame shows which.
    let ends = before.iter().map(|before| before.over(&head[..8]).over(data));
    let ends = std::iter::once(stored).chain(ends).collect();
    (Frame { page, commit: size != 0, whole: false, data }, ends)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
