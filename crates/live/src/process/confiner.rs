//! The thread that keeps other programs off the processors of jobs in their windows.
//!
//! A job starts without waiting for it: systemd needs some milliseconds for a change. Changes that come
//! meanwhile are made together. The windows come from the actions of the engine, and nothing is changed
//! before those of all living attempts are known.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use miserly_cgroup::format_cpus;
use miserly_cgroup::systemd::Confinement;
use miserly_engine::{Action, Attempt};
use miserly_launch::{BootTime, MachineClock as _};

use super::executor::Executor;
use super::notes::LauncherNotes;

/// The pause before a failed change is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// The processors of the attempts in their windows, and the thread that confines others.
#[derive(Debug)]
pub(super) struct Confiner {
    windows: BTreeMap<Attempt, Vec<u32>>,
    sent: BTreeSet<u32>,
    changes: Sender<BTreeSet<u32>>,
    /// Whether the windows of an earlier daemon are still to be learned.
    waits: bool,
}

impl Confiner {
    /// Starts the thread. Nothing is changed before [`begin`](Confiner::begin).
    ///
    /// # Errors
    /// The machine has no thread left.
    pub(super) fn start(executor: Executor, notes: LauncherNotes) -> io::Result<Confiner> {
        let (changes, all) = mpsc::channel();
        let thread = thread::Builder::new().name("confiner".to_owned()).stack_size(256 * 1024);
        thread.spawn(move || {
            // `status` names these, and jobs have them in their records.
            let known = Confinement.unconfined();
            let set = |busy: &BTreeSet<u32>| {
                let busy: Vec<u32> = busy.iter().copied().collect();
                let set = executor.confine(&busy);
                let mut unmanaged = Confinement.unconfined();
                unmanaged.retain(|group| !known.contains(group));
                notes.set_unmanaged(unmanaged);
                set
            };
            run(&all, set, &notes, AGAIN);
        })?;
        Ok(Confiner { windows: BTreeMap::new(), sent: BTreeSet::new(), changes, waits: true })
    }

    /// Brings the confinement up to date: all windows are known.
    pub(super) fn begin(&mut self) {
        self.waits = false;
        self.send();
    }

    /// Takes note of an action for an attempt.
    pub(super) fn note(&mut self, attempt: Attempt, action: &Action) {
        match action {
            Action::Launch(launch) if launch.end.is_some() => {
                self.windows.insert(attempt, launch.cpus.clone());
            }
            Action::BeginWindow { cpus, .. } | Action::Move(cpus) => {
                self.windows.insert(attempt, cpus.clone());
            }
            // Its policy suspends it: its processors are free.
            Action::Stop | Action::Forget => drop(self.windows.remove(&attempt)),
            _ => return,
        }
        if !self.waits && self.busy() != self.sent {
            self.send();
        }
    }

    fn busy(&self) -> BTreeSet<u32> {
        self.windows.values().flatten().copied().collect()
    }

    fn send(&mut self) {
        self.sent = self.busy();
        // The thread ends with this value only.
        let _ = self.changes.send(self.sent.clone());
    }
}

/// Applies changes until their sender is gone. The latest one counts.
fn run(
    changes: &Receiver<BTreeSet<u32>>,
    set: impl Fn(&BTreeSet<u32>) -> io::Result<()>,
    notes: &LauncherNotes,
    again: Duration,
) {
    let mut failed: Option<BTreeSet<u32>> = None;
    loop {
        let change = match &failed {
            None => changes.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(_) => changes.recv_timeout(again),
        };
        let ((Ok(mut busy), _) | (Err(RecvTimeoutError::Timeout), Some(mut busy))) = (change, failed.take())
        else {
            return;
        };
        while let Ok(later) = changes.try_recv() {
            busy = later;
        }
        let began = BootTime::now();
        let cpus = format_cpus(&busy.iter().copied().collect::<Vec<_>>());
        let set = set(&busy);
        notes.set_confinement(set.as_ref().err().map(ToString::to_string));
        match set {
            Ok(()) => {
                tracing::debug!(
                    "no other program is on the cpus [{cpus}]; it took {:?}",
                    BootTime::now().since(began)
                );
            }
            Err(error) => {
                tracing::debug!("other programs are not kept off the cpus [{cpus}]: {error}");
                failed = Some(busy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn set(cpus: &[u32]) -> BTreeSet<u32> {
        cpus.iter().copied().collect()
    }

    /// Sends the changes at once, and returns those that were applied.
    fn applied(changes: &[&[u32]], failures: usize) -> Vec<BTreeSet<u32>> {
        let (sender, receiver) = mpsc::channel();
        for change in changes {
            sender.send(set(change)).unwrap();
        }
        let sender = Mutex::new(Some(sender));
        let all = Mutex::new(vec![]);
        let note = |busy: &BTreeSet<u32>| {
            let mut all = all.lock().unwrap();
            all.push(busy.clone());
            if all.len() <= failures {
                return Err(io::ErrorKind::TimedOut.into());
            }
            sender.lock().unwrap().take();
            Ok(())
        };
        run(&receiver, note, &LauncherNotes::default(), Duration::ZERO);
        all.into_inner().unwrap()
    }

    #[test]
    fn changes_that_wait_are_made_together() {
        assert_eq!(applied(&[&[1], &[1, 2], &[2]], 0), [set(&[2])]);
    }

    #[test]
    fn a_failed_change_is_tried_again() {
        assert_eq!(applied(&[&[1]], 2), [set(&[1]), set(&[1]), set(&[1])]);
    }

    #[test]
    fn windows_of_an_earlier_daemon_come_first() {
        let (changes, all) = mpsc::channel();
        let mut confiner = Confiner { windows: BTreeMap::new(), sent: BTreeSet::new(), changes, waits: true };
        let attempt = |job| Attempt { job, nth: 1 };
        let begin = |cpus: &[u32]| Action::BeginWindow { cpus: cpus.to_vec(), end: miserly_core::Time::ZERO };
        confiner.note(attempt(1), &begin(&[1]));
        confiner.note(attempt(2), &begin(&[2, 3]));
        assert!(all.try_recv().is_err());
        confiner.begin();
        assert_eq!(all.try_recv(), Ok(set(&[1, 2, 3])));
        confiner.note(attempt(2), &Action::Continue);
        confiner.note(attempt(2), &begin(&[2, 3]));
        assert!(all.try_recv().is_err());
        confiner.note(attempt(2), &Action::Stop);
        assert_eq!(all.try_recv(), Ok(set(&[1])));
        confiner.note(attempt(1), &Action::Forget);
        assert_eq!(all.try_recv(), Ok(set(&[])));
    }
}
