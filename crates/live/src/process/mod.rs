//! The `process` launcher: it runs jobs with the rights of the daemon's user, or through the executor with those of their
//! users.
//!
//! The decisions are those of [`miserly_launcher`]. One thread supervises all attempts in an event loop (`shim_loop`). A few
//! other threads do what waits: launches, looks at attempts, kills (`pool`). Nothing is polled. The shims do not need
//! these threads, so all of them can vanish at any time.

mod shim_loop;

mod partition_watch;

mod job_groups;

mod confiner;

mod memory_guard;

mod pool;

mod poller;

mod message;

mod notes;

mod slots;

mod executor;

mod home;

mod files;

mod retire;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use miserly_api::model::{Problem, Submission};
use miserly_cgroup::systemd::{Confinement, Scopes, SystemdError};
use miserly_core::Span;
use miserly_engine::{self as engine, Action, Attempt, Input, SlotSchedule};
pub(crate) use miserly_launcher::check;
use miserly_launcher::{Begin, Supervisor, duration};
use tokio::sync::mpsc::UnboundedSender;

use self::confiner::Confiner;
pub use self::executor::Executor;
use self::home::{ConnectedShim, Home};
pub use self::job_groups::JobGroups;
use self::message::{LoopHandle, Message};
pub use self::notes::LauncherNotes;
use self::slots::{RotationUpdate, Rotator};
use crate::clock::BootClock;

/// The launcher of processes. Each attempt has a folder of its own.
pub struct Processes {
    home: Home,
    shims: LoopHandle,
    /// The attempts that were launched stopped, until the turn of their slot.
    fresh: BTreeSet<Attempt>,
    /// The rotator of each queue with a slot schedule.
    rotators: BTreeMap<String, Rotator>,
    /// Keeps other programs off the processors of jobs, if it is configured.
    confiner: Option<Arc<Mutex<Confiner>>>,
}

/// Lets the confinement of other programs begin, once the windows of all jobs are known.
#[derive(Clone, Debug)]
pub struct ConfinementStart(Option<Arc<Mutex<Confiner>>>);

impl ConfinementStart {
    /// Brings the confinement up to date.
    pub fn begin(self) {
        if let Some(confiner) = self.0 {
            lock(&confiner).begin();
        }
    }
}

fn lock(confiner: &Mutex<Confiner>) -> MutexGuard<'_, Confiner> {
    confiner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Processes {
    /// Returns a launcher that works on attempts by `executor` and reports to `reports`.
    ///
    /// # Errors
    /// If the machine has no thread or descriptor left.
    pub fn new(
        executor: Executor,
        clock: BootClock,
        reports: UnboundedSender<Input>,
        notes: LauncherNotes,
        groups: JobGroups,
    ) -> io::Result<Processes> {
        files::raise();
        let confiner = if groups.confines() {
            Some(Arc::new(Mutex::new(Confiner::start(executor.clone(), notes.clone())?)))
        } else {
            None
        };
        let (guard, messages) = memory_guard::channel();
        let home = Home { executor, clock, groups, notes: notes.clone() };
        let shims = shim_loop::start(home.clone(), guard, reports)?;
        memory_guard::start(home.groups.clone(), shims.clone(), notes, messages)?;
        Ok(Processes { home, shims, fresh: BTreeSet::new(), rotators: BTreeMap::new(), confiner })
    }

    /// Returns the start of the confinement, for the time when the windows of all jobs are known.
    pub fn confinement_start(&self) -> ConfinementStart {
        ConfinementStart(self.confiner.clone())
    }

    /// Returns the machine under the launcher.
    pub(crate) fn home(&self) -> &Home {
        &self.home
    }
}

impl Supervisor<ConnectedShim> for Processes {
    fn supervise(&self, attempt: Attempt, begin: Begin<ConnectedShim>) {
        self.shims.send(Message::Begin(attempt, begin));
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.shims.end();
    }
}

impl engine::Launcher for Processes {
    fn check(&self, submission: &Submission, name: &str) -> Result<(), Problem> {
        check(submission, name)
    }

    fn act(&mut self, attempt: Attempt, action: Action) {
        match &action {
            Action::Launch(launch) if launch.limit.is_some() => drop(self.fresh.insert(attempt)),
            Action::Forget => drop(self.fresh.remove(&attempt)),
            _ => {}
        }
        if let Some(confiner) = &self.confiner {
            lock(confiner).note(attempt, &action);
        }
        self.shims.send(Message::act(attempt, action));
    }

    fn hold_launches(&mut self, time: Span) {
        self.shims.send(Message::HoldLaunches(duration(time)));
    }

    fn rotate_slots(&mut self, queue: &str, schedule: Option<&SlotSchedule>) {
        let Some(schedule) = schedule else {
            // The thread ends with its sender.
            self.rotators.remove(queue);
            return;
        };
        let all: BTreeSet<Attempt> = schedule.slots.values().flatten().copied().collect();
        if !self.rotators.contains_key(queue) {
            match Rotator::begin(queue, self.shims.clone()) {
                Ok(rotator) => drop(self.rotators.insert(queue.to_owned(), rotator)),
                Err(error) => {
                    tracing::error!("queue {queue}: no thread for its turns, so all its jobs run: {error}");
                    return slots::resume(&self.shims, &all);
                }
            }
        }
        if let Some(rotator) = self.rotators.get(queue) {
            let fresh = self.fresh.intersection(&all).copied().collect();
            rotator.send(RotationUpdate { schedule: schedule.clone(), fresh });
        }
    }
}

/// Lets other programs run on all processors again, and ends the scopes of jobs if no job is left. Returns whether none is.
///
/// # Errors
/// systemd refuses it or does not answer.
pub fn release() -> Result<bool, SystemdError> {
    Confinement.release()?;
    Scopes::release()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use miserly_engine::Launcher as _;
    use miserly_executor::{Attempts, Program, Rules};

    use super::*;
    use crate::clock::MachineClocks;

    #[test]
    fn a_queue_whose_jobs_take_turns_no_more_has_no_thread_for_them() {
        let (reports, _) = tokio::sync::mpsc::unbounded_channel();
        let [folder, exe, socket] = ["attempts", "exe", "socket"].map(PathBuf::from);
        let (shim, groups) = (Program::own(&exe), miserly_executor::JobGroups::none());
        let executor = Executor::Own(Attempts { folder, shim, socket, groups, rules: Rules::default() });
        let clock = BootClock::start("one".into(), MachineClocks(jiff::Timestamp::now));
        let groups = JobGroups::default();
        let mut processes =
            Processes::new(executor, clock, reports, LauncherNotes::default(), groups).unwrap();
        for queue in ["batch", "more", "batch"] {
            processes.rotate_slots(queue, Some(&SlotSchedule::default()));
        }
        assert_eq!(processes.rotators.len(), 2);
        processes.rotate_slots("batch", None);
        processes.rotate_slots("never", None);
        assert_eq!(processes.rotators.keys().collect::<Vec<_>>(), ["more"]);
    }

    #[test]
    fn what_is_not_enforced_and_what_is_preferred_is_in_the_documentation_by_its_name() {
        let text = include_str!("../../../../docs/daemon/enforcement.md");
        for what in miserly_launch::Unenforced::ALL {
            assert!(text.contains(&format!("\n| `{}` |", what.name())), "{}", what.name());
        }
        for means in miserly_launch::CriticalMeans::ALL {
            assert!(text.contains(&format!("\n| `{}` |", means.name())), "{}", means.name());
        }
    }
}
