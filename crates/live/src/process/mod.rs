//! The `process` launcher: it runs jobs with the rights of the user, and needs no others.
//!
//! Each attempt has a supervising thread here. It carries out messages in order and waits for the
//! end of the attempt in the kernel. Nothing is polled. The shims do not need these threads, so all
//! of them can vanish at any time.

mod attempt;

mod supervise;

mod desired;

mod force;

mod take_up;

mod message;

mod slots;

mod convert;

mod files;

mod retire;

mod sweep;

mod check;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use miserly_api::model::{Failure, LostBy, Problem, Submission, Unenforced};
use miserly_engine::{self as engine, Action, Attempt, AttemptOutcome, Input, SlotSchedule};
use miserly_launch::{FindError, FoundAttempt, LossCause, RecordError, find};
use tokio::sync::mpsc::UnboundedSender;

use self::attempt::{Begin, Worker};
use self::message::{WorkerHandle, WorkerMessage};
use self::slots::{RotationUpdate, Rotator};
use crate::clock::BootClock;

/// The launcher of processes. Each attempt has a folder of its own.
pub struct Processes {
    home: Home,
    reports: UnboundedSender<Input>,
    workers: BTreeMap<Attempt, WorkerHandle>,
    /// The attempts that were launched stopped, until the turn of their slot.
    fresh: BTreeSet<Attempt>,
    /// The rotator of each queue with a slot schedule.
    rotators: BTreeMap<String, Rotator>,
}

/// The settings that all threads of attempts share.
#[derive(Clone, Debug)]
pub(super) struct Home {
    /// The folder of the attempts.
    folder: PathBuf,
    /// The program that acts as the shim when it is called as such.
    exe: PathBuf,
    clock: BootClock,
    /// The path of the daemon's socket, for the environment of jobs.
    socket: PathBuf,
}

impl Home {
    /// Returns the outcome of an attempt that cannot be run or found.
    fn failed(&self, message: String) -> AttemptOutcome {
        AttemptOutcome::Failed { at: self.clock.now(), why: Failure::System, message }
    }
}

impl Processes {
    /// Returns a launcher that keeps the attempts in `folder`, runs `exe` as their shims, and
    /// reports to `reports`.
    pub fn new(
        folder: PathBuf,
        exe: PathBuf,
        socket: PathBuf,
        clock: BootClock,
        reports: UnboundedSender<Input>,
    ) -> Processes {
        files::raise();
        let home = Home { folder, exe, clock, socket };
        let (workers, fresh, rotators) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Processes { home, reports, workers, fresh, rotators }
    }

    fn supervise(&mut self, attempt: Attempt, begin: Begin) {
        let (home, reports) = (self.home.clone(), self.reports.clone());
        match Worker::spawn(home, attempt, begin, reports) {
            Ok(worker) => drop(self.workers.insert(attempt, worker)),
            Err(error) => {
                let outcome = self.home.failed(format!("no thread for it: {error}"));
                // The receiver is gone only when the daemon ends.
                let _ = self.reports.send(Input::AttemptEnded(attempt, outcome));
            }
        }
    }
}

impl engine::Launcher for Processes {
    fn check(&self, submission: &Submission, name: &str) -> Result<(), Problem> {
        check::check(submission, name)
    }

    fn act(&mut self, attempt: Attempt, action: Action) {
        let last = matches!(action, Action::Forget);
        if last && !self.workers.contains_key(&attempt) {
            // An earlier daemon did not get to it.
            return retire::retire(&folder(&self.home.folder, attempt));
        }
        if let Action::Launch(launch) = action {
            if launch.limit.is_some() {
                self.fresh.insert(attempt);
            }
            self.supervise(attempt, Begin::Launch(launch));
        } else if let Some(worker) = self.workers.get(&attempt) {
            worker.send(WorkerMessage::Do(action));
        }
        if last {
            self.workers.remove(&attempt);
            self.fresh.remove(&attempt);
        }
    }

    fn rotate_slots(&mut self, queue: &str, schedule: Option<&SlotSchedule>) {
        let Some(schedule) = schedule else {
            // The thread ends with its sender.
            self.rotators.remove(queue);
            return;
        };
        let all: BTreeSet<Attempt> = schedule.slots.values().flatten().copied().collect();
        let workers = all.iter().filter_map(|attempt| Some((*attempt, self.workers.get(attempt)?.clone())));
        let fresh = self.fresh.intersection(&all).copied().collect();
        let update = RotationUpdate { schedule: schedule.clone(), workers: workers.collect(), fresh };
        if !self.rotators.contains_key(queue) {
            match Rotator::begin(queue) {
                Ok(rotator) => drop(self.rotators.insert(queue.to_owned(), rotator)),
                Err(error) => {
                    tracing::error!("queue {queue}: no thread for its turns, so all its jobs run: {error}");
                    return slots::resume_all(&update);
                }
            }
        }
        if let Some(rotator) = self.rotators.get(queue) {
            rotator.send(update);
        }
    }
}

/// Returns the limits that processes alone cannot enforce on this machine.
pub fn unenforced() -> Vec<Unenforced> {
    let shown = |what: miserly_launch::Unenforced| Unenforced {
        what: what.as_str().to_owned(),
        sentence: what.to_string(),
    };
    miserly_launch::unenforced().into_iter().map(shown).collect()
}

/// Removes the folder of an attempt that is over.
fn remove(folder: &Path) {
    if let Err(error) = std::fs::remove_dir_all(folder)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!("cannot remove {}: {error}", folder.display());
    }
}

/// Returns the folder of an attempt.
fn folder(home: &Path, attempt: Attempt) -> PathBuf {
    home.join(format!("{}.{}", attempt.job, attempt.nth))
}

fn found(home: &Home, attempt: Attempt) -> Result<FoundAttempt, FindError> {
    find(&folder(&home.folder, attempt))
}

/// Returns whether the outcome of an attempt can never be determined.
fn is_final(error: &FindError) -> bool {
    matches!(error, FindError::Record(RecordError::Damaged { .. }))
}

/// Returns the outcome of an attempt that is not alive.
fn outcome(home: &Home, found: FoundAttempt) -> AttemptOutcome {
    match found {
        FoundAttempt::Ended(end) => convert::outcome(home.clock, &end),
        FoundAttempt::Lost(lost) if lost.cause == LossCause::Reboot => AttemptOutcome::Lost(LostBy::Reboot),
        FoundAttempt::Lost(_) => AttemptOutcome::Lost(LostBy::Shim),
        FoundAttempt::NeverRan | FoundAttempt::Alive(_) => AttemptOutcome::NeverRan,
    }
}

#[cfg(test)]
mod tests {
    use miserly_engine::Launcher as _;

    use super::*;

    #[test]
    fn a_queue_whose_jobs_take_turns_no_more_has_no_thread_for_them() {
        let (reports, _) = tokio::sync::mpsc::unbounded_channel();
        let [folder, exe, socket] = ["attempts", "exe", "socket"].map(PathBuf::from);
        let clock = BootClock::start(jiff::Timestamp::now);
        let mut processes = Processes::new(folder, exe, socket, clock, reports);
        for queue in ["batch", "more", "batch"] {
            processes.rotate_slots(queue, Some(&SlotSchedule::default()));
        }
        assert_eq!(processes.rotators.len(), 2);
        processes.rotate_slots("batch", None);
        processes.rotate_slots("never", None);
        assert_eq!(processes.rotators.into_keys().collect::<Vec<_>>(), ["more"]);
    }

    #[test]
    fn what_is_not_enforced_is_in_the_documentation_by_its_name() {
        let text = include_str!("../../../../docs/daemon.md");
        for what in miserly_launch::Unenforced::ALL {
            assert!(text.contains(&format!("\n| `{}` |", what.as_str())), "{}", what.as_str());
        }
    }
}
