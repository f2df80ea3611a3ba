//! The running jobs of the daemon compared with the processes that their shims control.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::Discriminant;
use std::rc::Rc;

use miserly_api::model::{JobView, Phase, Status};
use miserly_engine::Attempt;

use crate::site::Placed;
use crate::step::SECOND;
use crate::world::{Checked, World};

/// The longest time for which an attempt differs from what the daemon says: commands take time, and a refused one is sent again.
const TOLERANCE: i64 = 2 * SECOND;

/// What the daemon says of an attempt that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    phase: Discriminant<Phase>,
    cpus: Vec<u32>,
    is_parked: bool,
    is_paused: bool,
}

/// What the daemon says of each attempt that differs from it, and the instant since which it differs.
#[derive(Clone, Debug, Default)]
pub(crate) struct SaidOf(BTreeMap<Attempt, (Said, i64)>);

impl World {
    /// Checks that a job in its window has its processors and is in no idle class, that a suspended job is stopped, and that an
    /// early job is in the idle class.
    pub(super) fn check_shims(&mut self, views: &[Rc<JobView>], status: &Status) -> Checked {
        let quiet_since = self.quiet_since();
        let mut before = std::mem::take(&mut self.watch.said).0;
        // The ledger has another plan for an adopted window.
        let is_adopted =
            |view: &&Rc<JobView>| status.adopted.iter().any(|adopted| adopted.job == view.number);
        for view in views.iter().filter(|view| !is_adopted(view)) {
            let attempt = Attempt { job: view.number, nth: view.attempts };
            let Some(placed) = self.machine.placed(attempt) else { continue };
            let Some(differs) = difference(view, &placed) else { continue };
            let said = Said {
                phase: std::mem::discriminant(&view.phase),
                cpus: if let Phase::Running(has) = &view.phase { has.cpus.clone() } else { vec![] },
                is_parked: matches!(view.phase, Phase::Opportunistic { parked: true, .. }),
                is_paused: view.paused,
            };
            let since = before.remove(&attempt).filter(|(before, _)| *before == said);
            let since = since.map_or(self.now, |(_, since)| since);
            if since.max(quiet_since) + TOLERANCE < self.now {
                return Err(format!("job {}: {differs} since {since}", view.number));
            }
            self.watch.said.0.insert(attempt, (said, since));
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
        // A job that took turns, and that a restored state has in its queue, stands still until it has a slot.
        Phase::Opportunistic { .. } if placed.takes_turns && placed.is_stopped == Some(true) => None,
        Phase::Opportunistic { .. } if !placed.is_idle => Some("it runs early, and in no idle class".into()),
        Phase::Opportunistic { parked: true, .. } if placed.is_stopped == Some(false) => {
            Some("it is parked, and runs".into())
        }
        _ => None,
    }
}
