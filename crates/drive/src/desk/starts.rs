//! The decisions of a pass, carried out.

use miserly_core::{Effect, EndHow, Ended, JobId, Placement, Refusal, Resources, StartReason, State, Time};
use miserly_slurm::Cluster;

use super::case::{Aside, FIRST_PAUSE, LAST_PAUSE, Stage};
use super::promises::PromiseChanges;
use super::quanta::Quantum;
use super::trial::Trials;
use super::{Desk, Events, Step};
use crate::notes::Note;
use crate::seats::{filled, seats};

impl Desk {
    /// Carries out the decisions of a pass. Returns their consequences at the same instant.
    pub(super) fn carry_out(
        &mut self,
        at: Time,
        cluster: &Cluster,
        effects: Vec<Effect>,
        changes: &mut PromiseChanges,
        step: &mut Step,
    ) -> Events {
        let mut events = Events::default();
        let mut started: Vec<(JobId, StartReason)> = vec![];
        let mut victims: Vec<(JobId, String)> = vec![];
        step.changed |= !effects.is_empty();
        for effect in effects {
            let Some(id) = self.by_handle.get(&effect.job()).cloned() else { continue };
            match effect {
                Effect::Suspended { job } => {
                    victims.push((job, id));
                    continue;
                }
                Effect::Requeued { .. } => {
                    self.end_quantum(at, &id, cluster, step);
                    continue;
                }
                _ => {}
            }
            let Some(case) = self.cases.get_mut(&id) else { continue };
            match effect {
                Effect::Started { job, reason, .. } => started.push((job, reason)),
                Effect::Promised { latest, .. } => {
                    changes.set(&id, case, self.settings.promise_for_user(latest), None);
                }
                Effect::PromiseBroken { latest, why, .. } => {
                    changes.set(&id, case, self.settings.promise_for_user(latest), Some(why));
                }
                Effect::Refused { why, .. } => {
                    case.handle = None;
                    self.by_handle.remove(&effect.job());
                    let why = match why {
                        Refusal::NoWindow => "it has no window within the horizon of the policy",
                        Refusal::Deadline => "it has no window before its deadline",
                        Refusal::TooLarge => "it is too large for the nodes in service",
                        Refusal::BeyondClasses => {
                            "it is in no class of the policy, or too large for the nodes of its class"
                        }
                    };
                    let why = why.to_owned();
                    case.set_aside(&id, Aside { until: Some((at + LAST_PAUSE).ticks()), why }, step);
                }
                // A plan is no promise. The orders for a resumed job follow from the ledger. No policy that does the others is
                // accepted.
                _ => {}
            }
        }
        self.seat(at, cluster, &started, &mut events, step);
        for (job, id) in victims {
            // A ledger that is made again has it running.
            events.disturbed |= !self.is_needed(job) || !self.suspend(&id, cluster, step);
        }
        events
    }

    /// Finds the nodes of the jobs that start.
    fn seat(
        &mut self,
        at: Time,
        cluster: &Cluster,
        started: &[(JobId, StartReason)],
        events: &mut Events,
        step: &mut Step,
    ) {
        let Some(driver) = &self.driver else { return };
        let ledger = driver.ledger();
        let mut free = ledger.free_hosts().each().to_vec();
        let placements: Vec<Placement> =
            started.iter().filter_map(|(job, _)| ledger.get(*job)?.placement().cloned()).collect();
        for share in placements.iter().flat_map(Placement::shares) {
            free[share.host.index()] = free[share.host.index()].plus(&share.amount);
        }
        let mut trials = Trials::default();
        for ((handle, reason), wanted) in started.iter().zip(&placements) {
            let Some(id) = self.by_handle.get(handle).cloned() else { continue };
            let runs = self.cases.get(&id).and_then(|case| case.facts.opportunistic.as_ref());
            if let Some((start, place)) =
                runs.and_then(|job| self.keeps_nodes(at, *handle, job, (wanted, &free), &mut trials))
            {
                let Some(case) = self.cases.get_mut(&id) else { continue };
                for share in place.shares() {
                    free[share.host.index()] = free[share.host.index()].less(&share.amount);
                }
                // The ledger is made again with its nodes.
                if place != *wanted {
                    events.disturbed = true;
                    trials.moved(*handle, place);
                }
                case.facts.opportunistic = None;
                case.facts.stage = Stage::Running;
                let record = case.facts.record(&id, start);
                step.notes.push((id, Note::Started { start, promised: record.last }));
                step.starts.push(record);
                continue;
            }
            let quiet = self.beside_opportunistic(at, *handle, wanted, &free);
            let (Some(case), Some(job)) = (self.cases.get(&id), cluster.jobs.get(&id)) else { continue };
            let find = |free: &[Resources]| {
                seats(&self.site, cluster.configuration.now, job, &case.facts.form, free, wanted)
            };
            // On several nodes Slurm would spread it in another way, should an opportunistic job end before it starts.
            let beside = quiet.and_then(|quiet| find(&quiet)).filter(|place| place.shares().len() == 1);
            let beside = beside
                .filter(|place| place == wanted || self.keeps_promises(at, *handle, place, &mut trials));
            let quantum = match ledger.get(*handle).map(|entry| &entry.state) {
                Some(State::Running { quantum: Some(until), .. }) => Some(Quantum::new(*until)),
                _ => None,
            };
            let is_wanted = |place: &Placement| {
                let hosts =
                    |place: &Placement| place.shares().iter().map(|share| share.host).collect::<Vec<_>>();
                hosts(place) == hosts(wanted)
            };
            // The request in the ledger forbids it, unless the job has changed since.
            let may_have_quantum = case.facts.form.is_requeueable && !case.facts.had_quantum;
            // Jobs were suspended for it there, and nowhere else.
            let fits = |place: &Placement| quantum.is_none() || may_have_quantum && is_wanted(place);
            let found = beside.or_else(|| {
                let first = find(&free)?;
                if first == *wanted {
                    return Some(first);
                }
                // Slurm spreads it over several nodes in its own way. There may be nodes where that is in nobody's way.
                let spared = find(&self.beside_plans(at, *handle, wanted, &free));
                let spread =
                    spared.and_then(|place| filled(&self.site, job, &case.facts.form, &free, &place));
                let mut places = spread.into_iter().chain([first.clone()]);
                let kept = places.find(|place| self.keeps_promises(at, *handle, place, &mut trials));
                kept.or(Some(first))
            });
            let found = found.filter(fits);
            let Some(case) = self.cases.get_mut(&id) else { continue };
            case.facts.had_quantum |= quantum.is_some();
            if found.is_none() && quantum.is_some() {
                // It must not be requeued, had a quantum, or has more memory than one. It waits in the ledger that is made again.
                events.disturbed = true;
                continue;
            }
            let Some(found) = found else {
                events.round.ended.push(Ended { job: *handle, how: EndHow::Done });
                case.handle = None;
                self.by_handle.remove(handle);
                let why = "no nodes of the form that it asks for are free".to_owned();
                case.set_aside(&id, Aside { until: Some((at + FIRST_PAUSE).ticks()), why }, step);
                continue;
            };
            for share in found.shares() {
                free[share.host.index()] = free[share.host.index()].less(&share.amount);
            }
            let nodes: Vec<String> =
                found.shares().iter().map(|share| self.site.name(share.host).to_owned()).collect();
            events.disturbed |= found != *wanted;
            let reason = reason.name().to_owned();
            case.facts.stage = Stage::Placed { since: at.ticks(), asked: 0, nodes, reason };
            case.facts.quantum = quantum;
            case.facts.was_placed = true;
            case.facts.aside = None;
            if found != *wanted {
                // The ledger is made again with it.
                trials.moved(*handle, found.clone());
                self.moved.insert(*handle, found);
            }
        }
    }
}
