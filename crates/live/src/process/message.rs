//! Messages to the thread that supervises all attempts.

use std::io;
use std::sync::{Arc, mpsc};

use miserly_launcher::LoopMessage;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use super::home::ConnectedShim;

/// A message to the thread.
pub(super) type Message = LoopMessage<ConnectedShim>;

/// A handle to the thread that supervises all attempts.
#[derive(Clone, Debug)]
pub(super) struct LoopHandle {
    /// `None` ends the thread.
    sender: mpsc::Sender<Option<Message>>,
    waker: Waker,
}

impl LoopHandle {
    /// Returns a handle, and the ends for the thread.
    ///
    /// # Errors
    /// If no descriptor can be had.
    pub(super) fn new() -> io::Result<(LoopHandle, mpsc::Receiver<Option<Message>>, Waker)> {
        let waker = Waker::new()?;
        let (sender, messages) = mpsc::channel();
        Ok((LoopHandle { sender, waker: waker.clone() }, messages, waker))
    }

    /// Sends a message. The thread handles messages in order.
    pub(super) fn send(&self, message: Message) {
        self.send_or_end(Some(message));
    }

    /// Ends the thread.
    pub(super) fn end(&self) {
        self.send_or_end(None);
    }

    fn send_or_end(&self, message: Option<Message>) {
        // The thread is gone only when the daemon ends.
        let _ = self.sender.send(message);
        self.waker.wake();
    }
}

/// Wakes the thread when there are messages.
#[derive(Clone, Debug)]
pub(super) struct Waker(Arc<OwnedFd>);

impl Waker {
    fn new() -> io::Result<Waker> {
        Ok(Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// Returns a descriptor that is readable when there are messages.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Makes the descriptor unreadable until the next message.
    pub(super) fn clear(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0_u8; 8]);
    }

    fn wake(&self) {
        // The counter is full only if the thread has not read it for very long. The descriptor is
        // readable then.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}
