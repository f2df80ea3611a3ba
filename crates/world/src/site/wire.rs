//! Connections between two processes of the machine.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use miserly_attempt::Connection;

use super::earlier::{self, Version};

/// The lines to one end of a connection.
#[derive(Debug, Default)]
struct Lines {
    lines: VecDeque<Vec<u8>>,
    /// Whether the other end is closed.
    is_closed: bool,
}

/// The lines that arrive at one end of a connection. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Inbox(Rc<RefCell<Lines>>);

impl Inbox {
    /// Returns whether a wait for it would end at once.
    pub(super) fn is_ready(&self) -> bool {
        let Lines { lines, is_closed } = &*self.0.borrow();
        *is_closed || !lines.is_empty()
    }
}

/// One end of a connection. Dropping it closes both ends.
#[derive(Debug)]
pub(super) struct End {
    inbox: Inbox,
    outbox: Inbox,
    /// The version of the shim at this end, if it is an earlier one.
    version: Option<Version>,
}

impl End {
    /// Returns both ends of a new connection.
    pub(super) fn pair() -> (End, End) {
        let (one, two) = (Inbox::default(), Inbox::default());
        let end = |inbox, outbox| End { inbox, outbox, version: None };
        (end(one.clone(), two.clone()), end(two, one))
    }

    /// Returns this end for a shim of a version.
    pub(super) fn of_version(mut self, version: Option<Version>) -> End {
        self.version = version;
        self
    }

    pub(super) fn inbox(&self) -> &Inbox {
        &self.inbox
    }
}

impl Drop for End {
    fn drop(&mut self) {
        for side in [&self.inbox, &self.outbox] {
            side.0.borrow_mut().is_closed = true;
        }
    }
}

impl Connection for End {
    fn receive_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Lines { lines, is_closed } = &mut *self.inbox.0.borrow_mut();
        match lines.pop_front() {
            None if *is_closed => Err(io::ErrorKind::UnexpectedEof.into()),
            None => Ok(None),
            Some(line) => match self.version {
                Some(version) => {
                    earlier::command(line, version).map(Some).ok_or_else(|| io::ErrorKind::InvalidData.into())
                }
                None => Ok(Some(line)),
            },
        }
    }

    fn has_line(&self) -> bool {
        !self.inbox.0.borrow().lines.is_empty()
    }

    fn send_line(&mut self, line: &[u8]) -> io::Result<()> {
        let Lines { lines, is_closed } = &mut *self.outbox.0.borrow_mut();
        if *is_closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let line = if self.version == Some(0) { earlier::reply(line) } else { line.to_owned() };
        lines.push_back(line);
        Ok(())
    }
}
