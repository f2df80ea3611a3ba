//! The output of a terminal: in the output file, and the last part of it in memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use crate::frame::LONGEST;

/// Bytes in memory.
const KEPT: usize = 256 << 10;

/// Bytes that a client gets which asks for the last part.
const LAST_PART: u64 = 16 << 10;

/// The output since the start of the attempt.
#[derive(Debug)]
pub(super) struct History {
    file: File,
    /// Whether each byte of the output is in the file, and the file is one that can be read.
    in_file: bool,
    /// The length of the file at the start.
    base: u64,
    kept: VecDeque<u8>,
    end: u64,
}

impl History {
    pub(super) fn new(file: File, base: u64) -> History {
        let in_file = file.metadata().is_ok_and(|found| found.is_file());
        History { file, in_file, base, kept: VecDeque::new(), end: 0 }
    }

    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// Returns the place after the last byte.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds output. Without room in the file, clients still get it.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        self.in_file &= self.file.write_all(bytes).is_ok();
        self.end += bytes.len() as u64;
        self.kept.extend(bytes);
        self.kept.drain(..self.kept.len().saturating_sub(KEPT));
    }

    /// Returns the place at which the output for a client begins.
    pub(super) fn place(&self, from: Option<u64>) -> u64 {
        from.unwrap_or(self.end.saturating_sub(LAST_PART)).min(self.end)
    }

    /// Returns output from a place on, and the place after it. Output that is neither in memory nor in the file is skipped.
    pub(super) fn piece(&self, from: u64) -> (Vec<u8>, u64) {
        let first_kept = self.end - self.kept.len() as u64;
        if from < first_kept && self.in_file {
            let length = (first_kept - from).min(LONGEST as u64);
            let mut bytes = vec![0; usize::try_from(length).unwrap_or(LONGEST)];
            // The job may have shortened the file.
            if self.file.read_exact_at(&mut bytes, self.base + from).is_ok() {
                return (bytes, from + length);
            }
        }
        let from = from.max(first_kept);
        let skipped = usize::try_from(from - first_kept).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = self.kept.iter().skip(skipped).take(LONGEST).copied().collect();
        let end = from + bytes.len() as u64;
        (bytes, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns all output from a place on.
    fn all(history: &History, mut from: u64) -> Vec<u8> {
        let mut all = Vec::new();
        while from < history.end() {
            let (bytes, next) = history.piece(from);
            assert!(next > from, "it goes on");
            all.extend(bytes);
            from = next;
        }
        all
    }

    fn output(bytes: usize) -> Vec<u8> {
        (0_u8..=250).cycle().take(bytes).collect()
    }

    #[test]
    fn a_client_that_falls_behind_reads_from_the_file() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"before").unwrap();
        let mut history = History::new(file, 6);
        let output = output(3 * KEPT + 5);
        for piece in output.chunks(5000) {
            history.append(piece);
        }
        assert_eq!(history.kept.len(), KEPT);
        assert_eq!(all(&history, 0), output);
        assert_eq!(all(&history, 1000), output[1000..]);
        assert_eq!(history.place(None), output.len() as u64 - LAST_PART);
        assert_eq!(history.place(Some(u64::MAX)), history.end());
    }

    #[test]
    fn output_that_is_in_no_file_is_skipped() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut history = History::new(full, 0);
        let output = output(KEPT + 100);
        history.append(&output);
        assert_eq!(all(&history, 0), output[100..]);
    }

    #[test]
    fn a_file_that_the_job_has_emptied_is_no_obstacle() {
        let file = tempfile::tempfile().unwrap();
        let mut history = History::new(file.try_clone().unwrap(), 0);
        let output = output(KEPT + 100);
        history.append(&output);
        file.set_len(0).unwrap();
        assert_eq!(all(&history, 0), output[100..]);
    }
}
