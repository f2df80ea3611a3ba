//! Context switches of gang scheduling: one thread for each time-sliced queue.
//!
//! The thread stops the attempts of one slot, then resumes those of the next. A context switch
//! writes nothing to disk and calls no policy. All shims get their messages at once. The next slot
//! continues when the last process of the previous one has stopped. A single slot wakes no thread.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use miserly_engine::{Attempt, SlotSchedule};
use miserly_launch::BootTime;
use miserly_launcher::{AttemptMessage, Rotation, Switch};

use super::message::AttemptHandle;

/// The longest wait for processes that do not stop. After it the next slot runs beside them.
const PATIENCE: Duration = Duration::from_secs(1);

/// A new slot schedule.
#[derive(Debug)]
pub(super) struct RotationUpdate {
    pub(super) schedule: SlotSchedule,
    /// The handles of the attempts.
    pub(super) handles: BTreeMap<Attempt, AttemptHandle>,
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
    pub(super) fn begin(queue: &str) -> io::Result<Rotator> {
        let (sender, updates) = mpsc::channel();
        let name = format!("turns {queue}");
        thread::Builder::new().name(name).stack_size(256 * 1024).spawn(move || rotate(&updates))?;
        Ok(Rotator(sender))
    }

    pub(super) fn send(&self, update: RotationUpdate) {
        // It ends when this is dropped, and not before.
        let _ = self.0.send(update);
    }
}

/// Lets all attempts continue, because there is no thread to rotate them.
pub(super) fn resume_all(update: &RotationUpdate) {
    update.handles.values().for_each(|handle| handle.send(AttemptMessage::SetTurn { runs: true, ack: None }));
}

fn rotate(updates: &Receiver<RotationUpdate>) {
    let mut rotation = Rotation::default();
    let mut members = SlotMembers::default();
    loop {
        let switch = match wait(updates, rotation.ends()) {
            Ok(update) => {
                members.take(update.handles);
                rotation.replace(update.schedule, &update.fresh)
            }
            Err(RecvTimeoutError::Timeout) => rotation.advance(),
            Err(RecvTimeoutError::Disconnected) => return,
        };
        members.apply(&switch);
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

/// The attempts of the queue.
#[derive(Debug, Default)]
struct SlotMembers {
    handles: BTreeMap<Attempt, AttemptHandle>,
    /// Pending stop acknowledgements, by attempt.
    stops: BTreeMap<Attempt, Weak<Sender<()>>>,
}

impl SlotMembers {
    fn take(&mut self, handles: BTreeMap<Attempt, AttemptHandle>) {
        self.stops.retain(|attempt, _| handles.contains_key(attempt));
        self.handles = handles;
    }

    /// Carries out a context switch. It does not wait for an attempt with an unacknowledged earlier
    /// stop: its launch is being repeated, or its processes do not stop.
    fn apply(&mut self, switch: &Switch) {
        let (ack, all) = mpsc::channel::<()>();
        for attempt in &switch.stop {
            let ack = self.has_stopped(*attempt).then(|| Arc::new(ack.clone()));
            if let Some(ack) = &ack {
                self.stops.insert(*attempt, Arc::downgrade(ack));
            }
            self.set_turn(attempt, false, ack);
        }
        drop(ack);
        // An acknowledgement is the drop of the sender.
        if all.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            tracing::warn!("not all processes of {:?} stop; the next slot runs beside them", switch.stop);
        }
        for attempt in &switch.resume {
            self.set_turn(attempt, true, None);
        }
    }

    /// Returns whether the last stop of an attempt is acknowledged.
    fn has_stopped(&self, attempt: Attempt) -> bool {
        self.stops.get(&attempt).is_none_or(|held| held.strong_count() == 0)
    }

    fn set_turn(&self, attempt: &Attempt, runs: bool, ack: Option<Arc<Sender<()>>>) {
        if let Some(handle) = self.handles.get(attempt) {
            handle.send(AttemptMessage::SetTurn { runs, ack });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::LoopHandle;
    use super::*;

    #[test]
    fn an_attempt_without_an_acknowledgement_is_waited_for_once() {
        let attempt = Attempt { job: 1, nth: 1 };
        let (shims, messages, _) = LoopHandle::new().unwrap();
        let mut members = SlotMembers::default();
        members.take([(attempt, AttemptHandle::new(attempt, shims))].into());
        let mut waits = || {
            let began = BootTime::now();
            members.apply(&Switch { stop: vec![attempt], resume: vec![] });
            BootTime::now().since(began) >= PATIENCE
        };
        assert!(waits());
        assert!(!waits() && !waits());
        assert_eq!(messages.try_iter().count(), 3, "it gets a message each time");
        assert!(waits());
    }
}
