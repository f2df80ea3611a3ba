//! Opportunistic jobs are parked while memory is short, so that they cost neither jobs in their windows nor other programs
//! theirs.
//!
//! A thread looks at the memory of the machine and of the control groups, only while an opportunistic job runs. The kernel
//! has the state of each job: the group of an opportunistic one is in the idle class. Its memory is bounded by its request
//! in any case. A job goes on when there is room, and in any case when its window begins.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use miserly_cgroup::{Capability, CgroupError, JobGroup, Pressure, Resource};
use miserly_engine::Attempt;
use miserly_launch::{BootTime, MachineClock as _};
use miserly_launcher::{AttemptMessage, MemoryReading, OpportunisticJob};
use miserly_units::memory;

use super::job_groups::JobGroups;
use super::message::{LoopHandle, Message};
use super::notes::LauncherNotes;

/// The time between looks while an opportunistic job runs.
const PERIOD: Duration = Duration::from_millis(500);

/// The time for which the thread looks after an attempt has begun. The shim puts an opportunistic job into the idle class a
/// moment later.
const SETTLING: Duration = Duration::from_mins(1);

/// What the kernel must do for the groups.
pub(super) const NEEDED: [Capability; 3] = [Capability::Freeze, Capability::Idle, Capability::MemoryMax];

/// Wakes the thread.
#[derive(Clone, Debug)]
pub(super) struct GuardWaker(SyncSender<()>);

/// The end of the channel for the thread.
pub(super) struct GuardMessages(Receiver<()>);

/// Returns both ends of the channel to the thread. Without a thread, messages have no effect.
pub(super) fn channel() -> (GuardWaker, GuardMessages) {
    let (sender, messages) = sync_channel(1);
    (GuardWaker(sender), GuardMessages(messages))
}

impl GuardWaker {
    /// Has the thread look for opportunistic jobs: an attempt has begun.
    pub(super) fn wake(&self) {
        match self.0.try_send(()) {
            // One message is enough, and without a thread there is none to look.
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        }
    }
}

/// The state of the thread.
struct Guard {
    groups: JobGroups,
    shims: LoopHandle,
    notes: LauncherNotes,
    parked: BTreeSet<Attempt>,
    changed_at: BootTime,
    /// Whether the last reading failed, which was logged.
    has_failed: bool,
}

/// Starts the thread, if there are control groups that can do what it needs. It ends with the launcher.
///
/// # Errors
/// If the machine has no thread left.
pub(super) fn start(
    groups: JobGroups,
    shims: LoopHandle,
    notes: LauncherNotes,
    messages: GuardMessages,
) -> io::Result<()> {
    if !NEEDED.iter().all(|needed| groups.can().contains(needed)) {
        return Ok(());
    }
    let (parked, changed_at) = (BTreeSet::new(), BootTime::now());
    let mut guard = Guard { groups, shims, notes, parked, changed_at, has_failed: false };
    let guard = move || guard.run(&messages.0);
    thread::Builder::new().name("memory".to_owned()).stack_size(256 * 1024).spawn(guard).map(drop)
}

impl Guard {
    fn run(&mut self, messages: &Receiver<()>) {
        let (mut looks, mut until) = (false, BootTime(0));
        loop {
            let waited = if looks {
                messages.recv_timeout(PERIOD)
            } else {
                messages.recv().map_err(|_| RecvTimeoutError::Disconnected)
            };
            let now = BootTime::now();
            match waited {
                Ok(()) => until = now.after(SETTLING),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            looks = self.look(now) || now < until;
        }
    }

    /// Looks at the memory once. Returns whether there are opportunistic jobs.
    fn look(&mut self, now: BootTime) -> bool {
        match self.read(now) {
            Ok(reading) => {
                self.has_failed = false;
                self.apply(now, &reading);
                !reading.jobs.is_empty()
            }
            Err(error) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    tracing::error!("opportunistic jobs are not parked while memory is short: {error}");
                }
                true
            }
        }
    }

    fn apply(&mut self, now: BootTime, reading: &MemoryReading) {
        let there: BTreeSet<Attempt> = reading.jobs.iter().map(|job| job.attempt).collect();
        self.parked.retain(|attempt| there.contains(attempt));
        let decision = reading.decide();
        if !decision.park.is_empty() {
            tracing::info!(
                "memory is short ({} available, {} reserved, {} promised): jobs {:?} are parked",
                memory(reading.available),
                memory(reading.reserve),
                memory(reading.promised),
                decision.park.iter().map(|attempt| attempt.job).collect::<Vec<_>>()
            );
        }
        let changes = decision.park.iter().map(|attempt| (*attempt, true));
        for (attempt, short) in changes.chain(decision.resume.iter().map(|attempt| (*attempt, false))) {
            if short {
                self.parked.insert(attempt);
            } else {
                self.parked.remove(&attempt);
            }
            self.changed_at = now;
            self.shims.send(Message::To(attempt, AttemptMessage::SetShort(short)));
        }
        self.notes.set_parked(&self.parked);
    }

    /// Reads the memory of the machine and of all groups.
    fn read(&self, now: BootTime) -> io::Result<MemoryReading> {
        let meminfo = fs::read_to_string("/proc/meminfo")?;
        let available =
            available(&meminfo).ok_or_else(|| io::Error::other("/proc/meminfo has no MemAvailable"))?;
        let pressure = Pressure::of_machine(Resource::Memory).and_then(|pressure| pressure.full);
        let mut reading = MemoryReading {
            available,
            reserve: self.groups.reserve(),
            pressure: pressure.map_or(0, |stall| stall.avg10),
            quiet: now.since(self.changed_at),
            ..MemoryReading::default()
        };
        for (attempt, group) in self.groups.attempts()? {
            match self.read_group(attempt, &group) {
                Ok(Found::Opportunistic(job)) => reading.jobs.push(job),
                Ok(Found::InWindow { unused }) => {
                    reading.promised = reading.promised.saturating_add(unused);
                }
                // Its job has just ended.
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        }
        reading.jobs.sort_by_key(|job| job.attempt);
        Ok(reading)
    }

    fn read_group(&self, attempt: Attempt, group: &JobGroup) -> Result<Found, CgroupError> {
        if group.is_idle()? {
            let (parked, frozen) = (self.parked.contains(&attempt), group.events()?.frozen);
            return Ok(Found::Opportunistic(OpportunisticJob { attempt, parked, frozen }));
        }
        let memory = group.memory()?;
        Ok(Found::InWindow { unused: memory.max.map_or(0, |max| max.saturating_sub(memory.held)) })
    }
}

/// The group of an attempt.
enum Found {
    /// The job is opportunistic.
    Opportunistic(OpportunisticJob),
    /// The job is in its window.
    InWindow {
        /// The part of its request that it has not taken, in bytes.
        unused: u64,
    },
}

/// Returns the memory that can be allocated without swapping, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_available_memory_in_bytes() {
        assert_eq!(available("MemFree: 1 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(available("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn a_waker_without_a_thread_waits_for_nothing() {
        let (waker, messages) = channel();
        waker.wake();
        waker.wake();
        drop(messages);
        waker.wake();
    }
}
