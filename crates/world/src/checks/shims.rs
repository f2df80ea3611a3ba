//! The running jobs of the daemon compared with the processes that their shims control.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use miserly_api::model::{JobView, Phase, Status};
use miserly_engine::Attempt;

use crate::site::Placed;
use crate::step::SECOND;
use crate::world::{Checked, World};

/// The longest difference between the two. Commands take time, and a refused one is sent again.
const TOLERANCE: i64 = 2 * SECOND;

/// The attempts whose processes differ from the state: the difference and its first instant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Differences(BTreeMap<Attempt, (String, i64)>);

impl World {
    /// Checks that a job in its window has its processors and is in no idle class, that a suspended job is stopped, and that an
    /// early job is in the idle class.
    pub(super) fn check_shims(&mut self, views: &[Rc<JobView>], status: &Status) -> Checked {
        let quiet_since = self.quiet_since();
        let mut before = std::mem::take(&mut self.watch.differences).0;
        // The ledger has another plan for an adopted window.
        let is_adopted =
            |view: &&Rc<JobView>| status.adopted.iter().any(|adopted| adopted.job == view.number);
        for view in views.iter().filter(|view| !is_adopted(view)) {
            let attempt = Attempt { job: view.number, nth: view.attempts };
            let Some(differs) = self.machine.placed(attempt).and_then(|placed| difference(view, &placed))
            else {
                continue;
            };
            let since = before.remove(&attempt).filter(|(what, _)| *what == differs).map(|(_, since)| since);
            let since = since.unwrap_or(self.now);
            if since.max(quiet_since) + TOLERANCE < self.now {
                return Err(format!("job {}: {differs} since {since}", view.number));
            }
            self.watch.differences.0.insert(attempt, (differs, since));
        }
        Ok(())
    }
}

/// Returns what differs between the state of a job and the processes of its attempt.
fn difference(view: &JobView, placed: &Placed) -> Option<String> {
    match &view.phase {
        Phase::Running(_) if placed.is_idle => Some("it is in its window, and runs in the idle class".into()),
        Phase::Running(has) if has.cpus.iter().copied().collect::<BTreeSet<_>>() != placed.cpus => {
            Some(format!("it has the processors {:?}, and runs on {:?}", has.cpus, placed.cpus))
        }
        Phase::Running(_) if placed.is_stopped == Some(true) && !placed.takes_turns && !view.paused => {
            Some("it is in its window, and stopped".into())
        }
        Phase::Suspended(_) if placed.is_stopped == Some(false) => Some("it is suspended, and runs".into()),
        Phase::Opportunistic { .. } if !placed.is_idle => Some("it runs early, and in no idle class".into()),
        Phase::Opportunistic { parked: true, .. } if placed.is_stopped == Some(false) => {
            Some("it is parked, and runs".into())
        }
        _ => None,
    }
}
