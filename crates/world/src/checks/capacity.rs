//! The processors of the machine: who uses them at the same time, and who gets his turn.

use std::collections::BTreeMap;
use std::rc::Rc;

use miserly_api::model::{JobView, Phase, Status};
use miserly_engine::Attempt;

use super::LONGEST_GRACE;
use crate::site::Window;
use crate::step::SECOND;
use crate::world::{Checked, SHARED_MEMORY, World};

/// The time for which two jobs may share a processor.
///
/// The end of one and the start of the other are two messages.
const TOLERANCE: i64 = SECOND;

/// The time within which each job that takes turns gets one: twice a round of the longest schedule that is drawn.
const ROUND: i64 = 60 * SECOND;

impl World {
    /// No two jobs have the same whole GPU for long, nor shares of more than its memory.
    pub(super) fn check_gpus(&self) -> Checked {
        let mut owners: BTreeMap<u32, Vec<Window>> = BTreeMap::new();
        for window in self.machine.windows() {
            for gpu in &window.gpus {
                owners.entry(*gpu).or_default().push(window.clone());
            }
        }
        for (gpu, windows) in owners {
            let memory = |window: &Window| window.gpu_share.map_or(SHARED_MEMORY, |bytes| bytes >> 10);
            if windows.len() < 2 || windows.iter().map(memory).sum::<u64>() <= SHARED_MEMORY {
                continue;
            }
            let since = windows.iter().map(|window| window.since).max().max(Some(self.quiet_since()));
            if since.is_some_and(|since| since + TOLERANCE < self.now) {
                let jobs: Vec<i64> = windows.iter().map(|window| window.attempt.job).collect();
                return Err(format!("GPU {gpu} is of the jobs {jobs:?}, beyond its memory"));
            }
        }
        Ok(())
    }

    /// No two jobs that run in their windows share a processor for long. Jobs that take turns may do so, but for those of one
    /// instant.
    pub(super) fn check_capacity(&self, status: &Status) -> Checked {
        let quiet_since = self.quiet_since();
        let mut owner: BTreeMap<u32, Window> = BTreeMap::new();
        // The grace of a job that takes turns is beside the turns of others. An adopted one that took turns has no slot: the state
        // does not know which, and to stop it for good would lose its work. So it runs beside those with a slot.
        let is_adopted = |attempt: Attempt| status.adopted.iter().any(|adopted| adopted.job == attempt.job);
        let shares = |window: &Window| window.is_ending || is_adopted(window.attempt);
        let windows = self.machine.windows().into_iter();
        let windows = windows.filter(|window| !(window.is_of_user || window.takes_turns && shares(window)));
        for window in windows {
            for cpu in &window.cpus {
                let Some(other) = owner.insert(*cpu, window.clone()) else { continue };
                // One of them was suspended for the other, which the state does not have. It does not know that, and lets it continue.
                if self.suspends && (is_adopted(other.attempt) || is_adopted(window.attempt)) {
                    continue;
                }
                let since = window.since.max(other.since).max(quiet_since);
                // A job that was asked to end is not suspended any more.
                let grace = if other.is_ending || window.is_ending { LONGEST_GRACE } else { 0 };
                if since + TOLERANCE + grace < self.now {
                    let [one, two] = [&other, &window]
                        .map(|window| format!("{}.{}", window.attempt.job, window.attempt.nth));
                    return Err(format!(
                        "processor {cpu} is in the windows of {one} and {two} since {since}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Each job that takes turns gets its turn. One that a restored state has in its queue waits for a slot.
    pub(super) fn check_turns(&self, views: &[Rc<JobView>]) -> Checked {
        let has_slot = |attempt: &Attempt| {
            let of_job = |view: &&Rc<JobView>| view.number == attempt.job;
            views.iter().find(of_job).is_some_and(|view| matches!(view.phase, Phase::Running(_)))
        };
        for (attempt, since) in self.machine.waiting_for_turns() {
            if !has_slot(&attempt) {
                continue;
            }
            let since = since.max(self.quiet_since());
            if since + ROUND < self.now {
                return Err(format!("job {} has had no turn since {since}", attempt.job));
            }
        }
        Ok(())
    }
}
