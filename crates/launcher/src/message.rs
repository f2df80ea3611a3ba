//! Messages to the loop that supervises all attempts.

use std::time::Duration;

use miserly_engine::{Action, Attempt};

use crate::attempt::Begin;
use crate::desired::Ack;
use crate::tasks::TaskResult;

/// A message to the loop that supervises all attempts. `T` is the handle of a shim.
#[derive(Debug)]
pub enum LoopMessage<T> {
    /// Supervise another attempt.
    Begin(Attempt, Begin<T>),
    /// A message to one attempt. An attempt that is over drops it.
    To(Attempt, AttemptMessage),
    /// A task for an attempt is done.
    Finished(Attempt, TaskResult<T>),
    /// Begin no launch for this time.
    HoldLaunches(Duration),
}

impl<T> LoopMessage<T> {
    /// Returns the message that carries out an action of the engine.
    pub fn act(attempt: Attempt, action: Action) -> LoopMessage<T> {
        match action {
            Action::Launch(launch) => LoopMessage::Begin(attempt, Begin::Launch(launch)),
            action => LoopMessage::To(attempt, AttemptMessage::Do(action)),
        }
    }
}

/// A message to one attempt.
#[derive(Debug)]
pub enum AttemptMessage {
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
