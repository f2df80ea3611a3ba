//! Messages to the thread of an attempt.

use std::io;
use std::sync::{Arc, mpsc};

use miserly_engine::Action;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use super::desired::Ack;

/// A message to the thread of an attempt.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    /// Carry out an action of the engine.
    Do(Action),
    /// Stop or continue the attempt for a context switch. A later message replaces an earlier one.
    SetTurn {
        /// Whether it runs; else it is stopped.
        runs: bool,
        /// An acknowledgement: dropped when the attempt obeys or a later message replaces this one.
        ack: Option<Ack>,
    },
}

/// A handle to the thread of an attempt.
#[derive(Clone, Debug)]
pub(super) struct WorkerHandle {
    sender: mpsc::Sender<WorkerMessage>,
    waker: Waker,
}

impl WorkerHandle {
    pub(super) fn new(sender: mpsc::Sender<WorkerMessage>, waker: Waker) -> WorkerHandle {
        WorkerHandle { sender, waker }
    }

    /// Sends a message, which the thread handles in order.
    pub(super) fn send(&self, message: WorkerMessage) {
        // A thread that is gone has reported the end.
        let _ = self.sender.send(message);
        self.waker.wake();
    }
}

/// Wakes the thread when there are messages.
#[derive(Clone, Debug)]
pub(super) struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Returns a waker for a new thread.
    ///
    /// # Errors
    /// If no descriptor can be had.
    pub(super) fn new() -> io::Result<Waker> {
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
