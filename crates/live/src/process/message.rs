//! Messages to the thread that supervises all attempts.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use miserly_engine::{Action, Attempt};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

use super::attempt::Begin;
use super::desired::Ack;
use super::tasks::TaskResult;

/// A message to the thread that supervises all attempts.
#[derive(Debug)]
pub(super) enum LoopMessage {
    /// Supervise another attempt.
    Begin(Attempt, Begin),
    /// A message to one attempt.
    To(Attempt, AttemptMessage),
    /// A task for an attempt is done.
    Finished(Attempt, TaskResult),
    /// Begin no launch for this time.
    HoldLaunches(Duration),
    /// End the thread.
    End,
}

/// A message to one attempt.
#[derive(Debug)]
pub(super) enum AttemptMessage {
    /// Carry out an action of the engine.
    Do(Action),
    /// Park an opportunistic attempt because memory is short, or end that. A job in its window is not parked.
    SetShort(bool),
    /// Stop or continue the attempt for a context switch. A later message replaces an earlier one.
    SetTurn {
        /// Whether it runs; else it is stopped.
        runs: bool,
        /// An acknowledgement: dropped when the attempt obeys or a later message replaces this one.
        ack: Option<Ack>,
    },
}

/// A handle to the thread that supervises all attempts.
#[derive(Clone, Debug)]
pub(super) struct LoopHandle {
    sender: mpsc::Sender<LoopMessage>,
    waker: Waker,
}

impl LoopHandle {
    /// Returns a handle, and the ends for the thread.
    ///
    /// # Errors
    /// If no descriptor can be had.
    pub(super) fn new() -> io::Result<(LoopHandle, mpsc::Receiver<LoopMessage>, Waker)> {
        let waker = Waker::new()?;
        let (sender, messages) = mpsc::channel();
        Ok((LoopHandle { sender, waker: waker.clone() }, messages, waker))
    }

    /// Sends a message. The thread handles messages in order.
    pub(super) fn send(&self, message: LoopMessage) {
        // The thread is gone only when the daemon ends.
        let _ = self.sender.send(message);
        self.waker.wake();
    }
}

/// A handle to one attempt.
#[derive(Clone, Debug)]
pub(super) struct AttemptHandle {
    attempt: Attempt,
    shims: LoopHandle,
}

impl AttemptHandle {
    pub(super) fn new(attempt: Attempt, shims: LoopHandle) -> AttemptHandle {
        AttemptHandle { attempt, shims }
    }

    /// Sends a message. An attempt that is over drops it.
    pub(super) fn send(&self, message: AttemptMessage) {
        self.shims.send(LoopMessage::To(self.attempt, message));
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
