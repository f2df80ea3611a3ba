//! Context switches of gang scheduling: one thread for each time-sliced queue.
//!
//! The thread stops the attempts of one slot, then resumes those of the next. A context switch
//! writes nothing to disk and calls no policy. All shims get their messages at once. The next slot
//! continues when the last process of the previous one has stopped. A single slot wakes no thread.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;

use miserly_engine::{Attempt, SlotSchedule};
use miserly_launch::{BootTime, MachineClock as _};
use miserly_launcher::{AttemptMessage, Rotation, STOP_PATIENCE, Switch};

use super::message::{LoopHandle, Message};

/// A new slot schedule.
#[derive(Debug)]
pub(super) struct RotationUpdate {
    pub(super) schedule: SlotSchedule,
    /// The attempts that began stopped.
    pub(super) fresh: BTreeSet<Attempt>,
}

/// The thread of a queue.
#[derive(Debug)]
pub(super) struct Rotator(Sender<RotationUpdate>);

impl Rotator {
    /// Starts the thread of a queue.
    ///
    /// # Errors
    /// If the machine has no thread left.
    pub(super) fn begin(queue: &str, shims: LoopHandle) -> io::Result<Rotator> {
        let (sender, updates) = mpsc::channel();
        let thread = thread::Builder::new().name(format!("turns {queue}")).stack_size(256 * 1024);
        thread.spawn(move || rotate(&updates, &shims))?;
        Ok(Rotator(sender))
    }

    pub(super) fn send(&self, update: RotationUpdate) {
        // It ends when this is dropped, and not before.
        let _ = self.0.send(update);
    }
}

/// Lets attempts continue.
pub(super) fn resume<'a>(shims: &LoopHandle, attempts: impl IntoIterator<Item = &'a Attempt>) {
    for attempt in attempts {
        shims.send(Message::To(*attempt, AttemptMessage::SetTurn { runs: true, ack: None }));
    }
}

fn rotate(updates: &Receiver<RotationUpdate>, shims: &LoopHandle) {
    let mut rotation = Rotation::default();
    loop {
        let switch = match wait(updates, rotation.ends()) {
            Ok(RotationUpdate { schedule, fresh }) => rotation.replace(schedule, &fresh),
            Err(RecvTimeoutError::Timeout) => rotation.advance(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        apply(&mut rotation, shims, &switch);
        rotation.begun(BootTime::now());
    }
}

/// Returns the next update, if one arrives before an instant.
fn wait(
    updates: &Receiver<RotationUpdate>,
    until: Option<BootTime>,
) -> Result<RotationUpdate, RecvTimeoutError> {
    match until {
        None => Ok(updates.recv()?),
        Some(until) => updates.recv_timeout(until.since(BootTime::now())),
    }
}

/// Carries out a context switch.
fn apply(rotation: &mut Rotation, shims: &LoopHandle, switch: &Switch) {
    let (messages, stopped) = rotation.stop(switch);
    for (attempt, message) in messages {
        shims.send(Message::To(attempt, message));
    }
    if stopped.recv_timeout(STOP_PATIENCE) == Err(RecvTimeoutError::Timeout) {
        tracing::warn!("not all processes of {:?} stop; the next slot runs beside them", switch.stop);
    }
    resume(shims, &switch.resume);
}
