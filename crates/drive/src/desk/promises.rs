//! The promises that a step changes.

use std::collections::BTreeMap;

use miserly_core::{BreachCause, Span, Time};

use super::case::Case;
use super::{Desk, PATIENCE, Step};
use crate::notes::Note;

/// Slurm starts a placed job in less than this, as a rule.
const USUAL_START: Span = Span::from_ticks(5 * 1_000_000);

/// The promises that the passes of a step change, by job. A pass that follows a place which Slurm chose may give back what the pass
/// before took: only the difference between the begin and the end of the step counts.
pub(super) struct PromiseChanges {
    changes: BTreeMap<String, PromiseChange>,
    /// Whether other nodes are in service than at the step before.
    nodes_changed: bool,
}

struct PromiseChange {
    /// The first and the last promise before the step, ticks.
    before: Option<(i64, i64)>,
    /// The cause, should it be later now.
    why: Option<&'static str>,
}

impl PromiseChanges {
    pub(super) fn new(nodes_changed: bool) -> PromiseChanges {
        PromiseChanges { changes: BTreeMap::new(), nodes_changed }
    }

    /// Takes in the latest start that a pass promises to a user. `why`: the cause, if it breaks a promise.
    pub(super) fn set(&mut self, id: &str, case: &mut Case, latest: Time, why: Option<BreachCause>) {
        let before = case.facts.promised;
        let change = self.changes.entry(id.to_owned()).or_insert(PromiseChange { before, why: None });
        change.why = why.map(|why| cause(why, self.nodes_changed)).or(change.why);
        let first = change.before.map_or(latest.ticks(), |(first, _)| first);
        case.facts.promised = Some((first, latest.ticks()));
    }
}

impl Desk {
    /// Finds what a step has changed, and says it.
    pub(super) fn settle_promises(&mut self, at: Time, changes: PromiseChanges, step: &mut Step) {
        let delay = self.settings.delay();
        for (id, PromiseChange { before, why }) in changes.changes {
            let Some(case) = self.cases.get_mut(&id).filter(|case| case.handle.is_some()) else { continue };
            let Some((_, latest)) = case.facts.promised else { continue };
            let (soon, known) = (at + PATIENCE, Some(latest).filter(|latest| *latest < Time::MAX.ticks()));
            let seconds = |ticks: i64| Time::from_ticks(ticks).secs();
            let why = why.unwrap_or("it was planned anew for a changed request").to_owned();
            match before {
                Some((_, before)) if latest > before => {
                    // The time for its start makes up for it.
                    let usual = Time::from_ticks(latest) - delay + USUAL_START;
                    if known.is_some() && usual.ticks() <= before {
                        case.facts.promised = case.facts.promised.map(|(first, _)| (first, before));
                        case.facts.delayed = Some(why);
                        continue;
                    }
                    case.facts.broken = Some(why.clone());
                    step.notes.push((id, Note::PromiseBroken { latest: known.map(seconds), why }));
                }
                // One that starts at once needs no note.
                Some((_, before)) if latest == before => {}
                _ if latest > soon.ticks() => {
                    step.notes.push((id, Note::Promised { latest: seconds(latest) }));
                }
                _ => {}
            }
        }
    }
}

fn cause(why: BreachCause, nodes_changed: bool) -> &'static str {
    match why {
        BreachCause::Overdue => "a job runs past its limit",
        BreachCause::Away => "the driver was away",
        BreachCause::Capacity if nodes_changed => "other nodes are in service than before",
        BreachCause::Capacity => "Slurm gave a job other nodes or processors than planned",
        BreachCause::Amended => "the limit of a job was changed",
    }
}
