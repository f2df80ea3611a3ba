//! The input of a job that clients send.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::{Errno, write};

use crate::frame::WINDOW;

/// Input on its way to a job: at most [`WINDOW`] bytes.
#[derive(Debug)]
pub(super) struct JobInput {
    /// The terminal, or the pipe until its end.
    writer: Option<OwnedFd>,
    queue: VecDeque<u8>,
    /// Whether the input ends after the queue.
    ends: bool,
    /// Bytes that a job without input has not got.
    discarded: usize,
}

impl JobInput {
    /// Returns the input of a job. `None` discards it.
    pub(super) fn new(writer: Option<OwnedFd>) -> JobInput {
        JobInput { writer, queue: VecDeque::new(), ends: false, discarded: 0 }
    }

    pub(super) fn is_open(&self) -> bool {
        self.writer.is_some() && !self.ends
    }

    pub(super) fn queued(&self) -> u32 {
        u32::try_from(self.queue.len()).unwrap_or(u32::MAX)
    }

    /// Returns the file for which input waits.
    pub(super) fn waits_for(&self) -> Option<BorrowedFd<'_>> {
        self.writer.as_ref().filter(|_| !self.queue.is_empty()).map(AsFd::as_fd)
    }

    /// Adds input.
    ///
    /// # Errors
    /// The client sends more than it may.
    pub(super) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_open() {
            self.discarded += bytes.len();
            return Ok(());
        }
        if self.queue.len() + bytes.len() > WINDOW {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.queue.extend(bytes);
        Ok(())
    }

    /// Ends the input after what is queued.
    pub(super) fn end(&mut self) {
        self.ends = true;
    }

    /// Writes as much as the job takes now. Returns the number of bytes that left the queue.
    pub(super) fn write(&mut self) -> usize {
        let mut taken = std::mem::take(&mut self.discarded);
        while let Some(writer) = self.writer.as_ref().filter(|_| !self.queue.is_empty()) {
            match write(writer, self.queue.as_slices().0) {
                Ok(written) => {
                    self.queue.drain(..written);
                    taken += written;
                }
                Err(Errno::INTR) => {}
                // The second one is that of a terminal that no process has open now.
                Err(Errno::AGAIN | Errno::IO) => return taken,
                // The job has closed its input.
                Err(_) => {
                    taken += self.queue.len();
                    self.queue.clear();
                    self.writer = None;
                }
            }
        }
        if self.ends {
            self.writer = None;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;

    use rustix::pipe::{PipeFlags, pipe_with};

    use super::*;

    #[test]
    fn input_reaches_the_job_up_to_its_end() {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = JobInput::new(Some(writer));
        let (mut reader, mut read) = (File::from(reader), vec![]);
        let text = vec![7; WINDOW];
        for _ in 0..3 {
            input.push(&text).unwrap();
            input.push(b"more").unwrap_err();
            while input.queued() > 0 {
                input.write();
                let _ = reader.read_to_end(&mut read);
            }
        }
        input.end();
        assert!(input.write() == 0 && !input.is_open());
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read.len(), 3 * WINDOW);
    }

    #[test]
    fn a_job_that_does_not_read_gets_nothing_and_the_client_goes_on() {
        let (reader, writer) = pipe_with(PipeFlags::NONBLOCK).unwrap();
        let mut input = JobInput::new(Some(writer));
        drop(reader);
        input.push(b"text").unwrap();
        assert_eq!(input.write(), 4);
        input.push(b"more").unwrap();
        assert_eq!((input.write(), input.waits_for().is_none()), (4, true));
    }
}
