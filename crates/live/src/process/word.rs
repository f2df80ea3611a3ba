//! What the thread of an attempt is told, and how.

use std::io;
use std::sync::{Arc, mpsc};

use miserly_engine::Action;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// What a thread is told.
#[derive(Debug)]
pub(super) enum Word {
    /// What the engine wants.
    Do(Action),
    /// Whether it is its turn.
    Turn(Turn),
}

/// Whether it is a job's turn to run. A later word makes an earlier one void.
#[derive(Debug)]
pub(super) struct Turn {
    /// It runs, or else it is stopped.
    pub(super) runs: bool,
    /// Is dropped when it does, or another word has made this one void.
    pub(super) heard: Option<Arc<mpsc::Sender<()>>>,
}

/// How a thread is told what to do.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    sender: mpsc::Sender<Word>,
    waker: Waker,
}

impl Orders {
    pub(super) fn new(sender: mpsc::Sender<Word>, waker: Waker) -> Orders {
        Orders { sender, waker }
    }

    /// Tells the thread, which sees to it in its turn.
    pub(super) fn give(&self, word: Word) {
        // A thread that is gone has reported the end.
        let _ = self.sender.send(word);
        self.waker.wake();
    }
}

/// Gets the thread to look at what it is told.
#[derive(Clone, Debug)]
pub(super) struct Waker(Arc<OwnedFd>);

impl Waker {
    /// One for a thread that is about to begin.
    ///
    /// # Errors
    /// If no descriptor can be had.
    pub(super) fn new() -> io::Result<Waker> {
        Ok(Waker(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    /// A descriptor that is readable when there is something to look at.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Makes it unreadable until the next time.
    pub(super) fn hush(&self) {
        let _ = rustix::io::read(&*self.0, &mut [0_u8; 8]);
    }

    fn wake(&self) {
        // It is full only if the thread has not looked since very many times, and then it will.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}
