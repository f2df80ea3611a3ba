//! The decisions of a pass, carried out.

use miserly_core::{
    Effect, EndHow, Ended, HostId, JobId, Placement, Refusal, Resources, SlotId, StartReason, State, Time,
};
use miserly_slurm::{Cluster, Detail, Job};

use super::cause::RebuildCause;
use super::job::{Assignment, FIRST_PAUSE, LAST_PAUSE, Run, Unplanned};
use super::promises::{PromiseChanges, breach_cause};
use super::trial::Trials;
use super::{DrivenJob, Events, Scheduler, Step};
use crate::instant::instant;
use crate::notes::Note;
use crate::placement::{fill, find_placement};

/// The most nodes on which a job is tried that may have any number.
const MOST_NODES_TRIED: u64 = 4;

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
        let Start { id, handle, reason, wanted } = start;
        let at = placing.at;
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
        let nodes = found.shares().iter().map(|share| self.site.name(share.host).to_owned()).collect();
        known.assign(Assignment { since: at, nodes, reason: reason.name().to_owned(), quantum });
        placing.take(&found);
        if found != *wanted {
            // The ledger is made again with it.
            events.require_rebuild(RebuildCause::MovedStart);
            placing.trials.moved(handle, found.clone());
            self.moved.insert(handle, found);
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
    ) -> Option<Placement> {
        let known = self.jobs.get(start.id)?;
        let found =
            self.place_beside(start, job, placing).or_else(|| self.place_by_plans(start, job, placing))?;
        let hosts =
            |place: &Placement| place.shares().iter().map(|share| share.host).collect::<Vec<HostId>>();
        // The request in the ledger forbids it, unless the job has changed since.
        let may_have_quantum = known.form.is_requeueable && !known.had_quantum;
        let fits = !is_for_quantum || may_have_quantum && hosts(&found) == hosts(start.wanted);
        fits.then_some(found)
    }

    /// Returns the nodes for a job among these resources, those that the policy wants if they are of its form.
    fn find(
        &self,
        start: Start<'_>,
        job: &Job,
        free: &[Resources],
        placing: &Placing<'_>,
    ) -> Option<Placement> {
        let form = &self.jobs.get(start.id)?.form;
        let now = instant(placing.cluster.configuration.now);
        find_placement(&self.site, now, job, form, free, start.wanted)
    }

    /// Returns a place on one node beside the opportunistic jobs, if some are in the way of the job, and all promises hold then.
    fn place_beside(&self, start: Start<'_>, job: &Job, placing: &mut Placing<'_>) -> Option<Placement> {
        let Start { handle, wanted, .. } = start;
        let beside = self.beside_opportunistic(placing.at, handle, wanted, &placing.free)?;
        // On several nodes Slurm would spread it in another way, should an opportunistic job end before it starts.
        let place = self.find(start, job, &beside, placing).filter(|place| place.shares().len() == 1)?;
        let is_kept =
            place == *wanted || self.keeps_promises(placing.at, handle, &place, &mut placing.trials);
        is_kept.then_some(place)
    }

    /// Returns a place where all promises hold, or else the first one. Slurm spreads a job over several nodes in its own way. There may
    /// be nodes where no plan is in the way of that.
    fn place_by_plans(&self, start: Start<'_>, job: &Job, placing: &mut Placing<'_>) -> Option<Placement> {
        let Start { handle, wanted, .. } = start;
        let first = self.find(start, job, &placing.free, placing)?;
        if first == *wanted {
            return Some(first);
        }
        let beside = self.beside_plans(placing.at, handle, wanted, &placing.free);
        let mut tried: Vec<Placement> = vec![];
        let places = [
            self.spread_beside(start, job, &beside, placing),
            vec![first.clone()],
            self.spreads_by_count(start, job, &beside, placing),
            self.spreads_by_count(start, job, &placing.free, placing),
        ];
        for place in places.into_iter().flatten() {
            if tried.contains(&place) {
                continue;
            }
            if self.keeps_promises(placing.at, handle, &place, &mut placing.trials) {
                return Some(place);
            }
            tried.push(place);
        }
        Some(first)
    }

    /// Returns the place of a job where these resources are free, as Slurm spreads it.
    fn spread_beside(
        &self,
        start: Start<'_>,
        job: &Job,
        beside: &[Resources],
        placing: &Placing<'_>,
    ) -> Vec<Placement> {
        let Some(known) = self.jobs.get(start.id) else { return vec![] };
        let spread = |place: Placement| fill(&self.site, job, &known.form, &placing.free, &place);
        self.find(start, job, beside, placing).and_then(spread).into_iter().collect()
    }

    /// Returns the places of a job on each number of nodes, those with the most of these resources, as Slurm spreads it.
    fn spreads_by_count(
        &self,
        start: Start<'_>,
        job: &Job,
        among: &[Resources],
        placing: &Placing<'_>,
    ) -> Vec<Placement> {
        let Some(known) = self.jobs.get(start.id) else { return vec![] };
        let form = &known.form;
        let most = self.site.most_nodes(form).unwrap_or(MOST_NODES_TRIED).min(MOST_NODES_TRIED);
        let now = instant(placing.cluster.configuration.now);
        let nowhere = Placement::across(SlotId(0), vec![]);
        let on = |count: u64| {
            let form = Detail { least_nodes: count, most_nodes: Some(count), ..form.clone() };
            let place = find_placement(&self.site, now, job, &form, among, &nowhere)?;
            fill(&self.site, job, &form, &placing.free, &place)
        };
        (form.least_nodes.max(1)..=most).filter_map(on).collect()
    }
}
