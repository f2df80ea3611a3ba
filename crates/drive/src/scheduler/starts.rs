//! The decisions of a pass, carried out.

use miserly_core::{
    Effect, EndHow, Ended, HostId, JobId, Placement, Refusal, Resources, StartReason, State, Time,
};
use miserly_slurm::{Cluster, Job};

use super::cause::RebuildCause;
use super::job::{Assignment, FIRST_PAUSE, LAST_PAUSE, Run, Unplanned};
use super::promises::{PromiseChanges, breach_cause};
use super::trial::Trials;
use super::{DrivenJob, Events, Scheduler, Step};
use crate::instant::instant;
use crate::notes::Note;
use crate::placement::{Spread, find_placement, spreads_within};

/// The placement of the jobs that start in a pass.
struct Placing<'a> {
    at: Time,
    cluster: &'a Cluster,
    /// The resources on each host beside the jobs that are placed.
    free: Vec<Resources>,
    trials: Trials,
}

impl Placing<'_> {
    fn take(&mut self, place: &Placement) {
        for share in place.shares() {
            self.free[share.host.index()] = self.free[share.host.index()].less(&share.amount);
        }
    }
}

/// A job that starts.
#[derive(Clone, Copy)]
struct Start<'a> {
    id: &'a String,
    handle: JobId,
    reason: StartReason,
    /// The place that the policy wants.
    wanted: &'a Placement,
}

impl Scheduler {
    /// Carries out the decisions of a pass. `cause`: why the ledger was made again before it, if it was. Returns their consequences at
    /// the same instant.
    pub(super) fn carry_out(
        &mut self,
        at: Time,
        cluster: &Cluster,
        (effects, cause): (Vec<Effect>, Option<RebuildCause>),
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
                Effect::Suspended { job } => victims.push((job, id)),
                Effect::Requeued { .. } => self.end_quantum(at, &id, cluster, step),
                Effect::Started { job, reason, .. } => started.push((job, reason)),
                Effect::Promised { latest, .. } => self.promise(&id, latest, None, changes),
                Effect::PromiseBroken { latest, why, .. } => {
                    self.promise(&id, latest, Some(breach_cause(why, cause)), changes);
                }
                Effect::Refused { job, why } => self.refuse(at, (job, &id), why, step),
                // A plan is no promise. The orders for a resumed job follow from the ledger. No policy that does the others is
                // accepted.
                _ => {}
            }
        }
        self.place_started(at, cluster, &started, &mut events, step);
        for (job, id) in victims {
            if !self.is_needed(job) || !self.suspend(&id, cluster, step) {
                // A ledger that is made again has it running.
                events.require_rebuild(RebuildCause::Suspension);
            }
        }
        events
    }

    fn promise(&mut self, id: &str, latest: Time, why: Option<&'static str>, changes: &mut PromiseChanges) {
        let latest = self.settings.promise_for_user(latest);
        if let Some(job) = self.jobs.get_mut(id) {
            changes.set(id, job, latest, why);
        }
    }

    fn refuse(&mut self, at: Time, (handle, id): (JobId, &str), why: Refusal, step: &mut Step) {
        let why = match why {
            Refusal::NoWindow => "it has no window within the horizon of the policy",
            Refusal::Deadline => "it has no window before its deadline",
            Refusal::TooLarge => "it is too large for the nodes in service",
            Refusal::Preempted => "it was preempted, and the policy does not run it again",
            Refusal::BeyondClasses => {
                "it is in no class of the policy, or too large for the nodes of its class"
            }
        };
        self.by_handle.remove(&handle);
        if let Some(job) = self.jobs.get_mut(id) {
            job.handle = None;
            job.unplan(id, Unplanned { until: Some(at + LAST_PAUSE), why: why.to_owned() }, step);
        }
    }

    /// Finds the nodes of the jobs that start.
    fn place_started(
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
        let mut placing = Placing { at, cluster, free, trials: Trials::default() };
        for ((handle, reason), wanted) in started.iter().zip(&placements) {
            let Some(id) = self.by_handle.get(handle).cloned() else { continue };
            let start = Start { id: &id, handle: *handle, reason: *reason, wanted };
            if !self.keep_early_run(start, &mut placing, events, step) {
                self.place_start(start, &mut placing, events, step);
            }
        }
    }

    /// Has a job that runs ahead of its start keep its nodes, if it may. Returns whether it does.
    fn keep_early_run(
        &mut self,
        start: Start<'_>,
        placing: &mut Placing<'_>,
        events: &mut Events,
        step: &mut Step,
    ) -> bool {
        let Start { id, handle, wanted, .. } = start;
        let early = self.jobs.get(id).and_then(DrivenJob::opportunistic);
        let kept = early.and_then(|early| {
            let Placing { at, free, trials, .. } = &mut *placing;
            self.keeps_nodes(*at, handle, early, (wanted, free), trials)
        });
        let Some((began, place)) = kept else { return false };
        let Some(job) = self.jobs.get_mut(id) else { return false };
        job.run_on(Run::ORDINARY);
        let record = job.record(id, began);
        step.notes.push((id.clone(), Note::Started { start: began, promised: record.last }));
        step.starts.push(record);
        placing.take(&place);
        if place != *wanted {
            // The ledger is made again with its nodes.
            events.require_rebuild(RebuildCause::EarlyRunStays);
            placing.trials.moved(handle, place);
        }
        true
    }

    /// Places a job that starts.
    fn place_start(
        &mut self,
        start: Start<'_>,
        placing: &mut Placing<'_>,
        events: &mut Events,
        step: &mut Step,
    ) {
        let (Start { id, handle, reason, wanted }, at) = (start, placing.at);
        let Some(job) = placing.cluster.jobs.get(id) else { return };
        let quantum = self.quantum_of(handle);
        let found = self.find_start(start, job, quantum.is_some(), placing);
        let Some(known) = self.jobs.get_mut(id) else { return };
        known.had_quantum |= quantum.is_some();
        let Some(found) = found else {
            if quantum.is_some() {
                // It must not be requeued, had a quantum, or has more memory than one. It waits in the ledger that is made again.
                events.require_rebuild(RebuildCause::Quantum);
                return;
            }
            known.handle = None;
            let why = "no nodes of the form that it asks for are free".to_owned();
            known.unplan(id, Unplanned { until: Some(at + FIRST_PAUSE), why }, step);
            self.by_handle.remove(&handle);
            events.round.ended.push(Ended { job: handle, how: EndHow::Done });
            return;
        };
        let Spread { place, last } = found;
        let name = |host: HostId| self.site.name(host).to_owned();
        let nodes = place.shares().iter().map(|share| name(share.host)).collect();
        let reason = reason.name().to_owned();
        known.assign(Assignment { since: at, nodes, last: last.map(name), reason, quantum });
        placing.take(&place);
        if place != *wanted {
            // The ledger is made again with it.
            events.require_rebuild(RebuildCause::MovedStart);
            placing.trials.moved(handle, place.clone());
            self.moved.insert(handle, place);
        }
    }

    /// Returns the end of the quantum of a job in the ledger, if it runs for one.
    fn quantum_of(&self, handle: JobId) -> Option<Time> {
        match self.driver.as_ref()?.ledger().get(handle)?.state {
            State::Running { quantum, .. } => quantum,
            _ => None,
        }
    }

    /// Returns the place of a job that starts. One for a quantum has the hosts that the policy wants: jobs were suspended for it there,
    /// and nowhere else.
    fn find_start(
        &self,
        start: Start<'_>,
        job: &Job,
        is_for_quantum: bool,
        placing: &mut Placing<'_>,
    ) -> Option<Spread> {
        let known = self.jobs.get(start.id)?;
        let found =
            self.place_beside(start, job, placing).or_else(|| self.place_by_plans(start, job, placing))?;
        let hosts =
            |place: &Placement| place.shares().iter().map(|share| share.host).collect::<Vec<HostId>>();
        // The request in the ledger forbids it, unless the job has changed since.
        let may_have_quantum = known.form.is_requeueable && !known.had_quantum;
        let fits = !is_for_quantum || may_have_quantum && hosts(&found.place) == hosts(start.wanted);
        fits.then_some(found)
    }

    /// Returns the nodes for a job among these resources, those that the policy wants if they are of its form.
    fn find(&self, start: Start<'_>, job: &Job, free: &[Resources], placing: &Placing<'_>) -> Option<Spread> {
        let form = &self.jobs.get(start.id)?.form;
        let now = instant(placing.cluster.configuration.now);
        find_placement(&self.site, now, job, form, free, start.wanted)
    }

    /// Returns a place on one node beside the opportunistic jobs, if some are in the way of the job, and all promises hold then.
    fn place_beside(&self, start: Start<'_>, job: &Job, placing: &mut Placing<'_>) -> Option<Spread> {
        let Start { handle, wanted, .. } = start;
        let beside = self.beside_opportunistic(placing.at, handle, wanted, &placing.free)?;
        // On several nodes Slurm would spread it in another way, should an opportunistic job end before it starts.
        let found =
            self.find(start, job, &beside, placing).filter(|found| found.place.shares().len() == 1)?;
        let is_kept = found.place == *wanted
            || self.keeps_promises(placing.at, handle, &found.place, &mut placing.trials);
        is_kept.then_some(found)
    }

    /// Returns a place where all promises hold, or else the first one. Slurm does not spread each job as the policy wants. There may be
    /// nodes where no plan is in the way of that.
    fn place_by_plans(&self, start: Start<'_>, job: &Job, placing: &mut Placing<'_>) -> Option<Spread> {
        let Start { handle, wanted, .. } = start;
        let first = self.find(start, job, &placing.free, placing)?;
        if first.place == *wanted {
            return Some(first);
        }
        let beside = self.beside_plans(placing.at, handle, wanted, &placing.free);
        let mut places = self.spreads(start, job, &beside, placing);
        places.push(first.clone());
        places.append(&mut self.spreads(start, job, &placing.free, placing));
        let mut tried: Vec<&Placement> = vec![];
        for spread in &places {
            if tried.contains(&&spread.place) {
                continue;
            }
            if self.keeps_promises(placing.at, handle, &spread.place, &mut placing.trials) {
                return Some(spread.clone());
            }
            tried.push(&spread.place);
        }
        Some(first)
    }

    /// Returns the places of a job that need no more than these resources, as Slurm spreads it.
    fn spreads(&self, start: Start<'_>, job: &Job, room: &[Resources], placing: &Placing<'_>) -> Vec<Spread> {
        let Some(known) = self.jobs.get(start.id) else { return vec![] };
        let now = instant(placing.cluster.configuration.now);
        spreads_within(&self.site, now, job, &known.form, (&placing.free, room), start.wanted)
    }
}
