//! Jobs that hold nodes, compared with the ledger.

use std::collections::BTreeSet;

use miserly_core::{Amendment, Change, Entry, HostId, JobId, Placement, Resources, Span, Time};
use miserly_slurm::Job;

use super::job::DrivenJob;
use super::opportunistic::is_completing;
use super::rebuild::on_hosts;
use super::{DrivenState, Events, RebuildCause, Scheduler, Step};
use crate::instant::{instant, whole_second};
use crate::notes::Note;

/// An opportunistic job that needs this much more than the preemption lead time does not leave its nodes.
pub(super) const LEAVING: Span = Span::from_ticks(60 * 1_000_000);

impl Scheduler {
    /// Takes in that a job holds nodes. `awaited` are the nodes of suspended jobs.
    pub(super) fn compare_running(
        &mut self,
        at: Time,
        job: &Job,
        awaited: &BTreeSet<String>,
        events: &mut Events,
        step: &mut Step,
    ) {
        let handle = self.jobs.get(&job.id).and_then(|known| known.handle);
        let is_suspended = handle.is_some_and(|handle| self.has_suspended(handle));
        let Some(known) = self.jobs.get_mut(&job.id) else { return };
        if !known.has_nodes_of(job) {
            // It was begun anew elsewhere.
            known.form.on.clear();
        }
        let on = on_hosts(&self.site, job, &known.form);
        if let Some(opportunistic) = known.opportunistic_mut()
            && !is_completing(job)
        {
            // Slurm may spread it over its nodes in another way than planned.
            step.changed |= opportunistic.set_resources(&self.site, &on);
        }
        let is_awaited = job.on.iter().any(|node| awaited.contains(node));
        let timeout = if is_awaited { Span::MAX } else { self.settings.delay() + LEAVING };
        if known.runs_opportunistically(at, job, timeout, step) {
            return;
        }
        if !known.is_running() {
            let is_inside = job.reservation.as_ref() == Some(&self.settings.reservation);
            begin_run(at, known, job, is_inside, events, step);
        }
        if known.follow_suspension(self.now, job, is_suspended, step) {
            events.require_rebuild(RebuildCause::Suspension);
        }
        self.compare_entry(job, &on, events, step);
    }

    /// Compares the nodes and the limit of a job that runs with its entry in the ledger. `on` is what it has on nodes in service.
    fn compare_entry(&self, job: &Job, on: &[(HostId, Resources)], events: &mut Events, step: &mut Step) {
        let handle = self.jobs.get(&job.id).and_then(|known| known.handle);
        let entry = handle.and_then(|handle| self.entry(handle).map(|entry| (handle, entry)));
        let is_here = job.on.iter().any(|node| self.site.is_usable(node));
        match entry {
            Some(_) if !is_here => events.require_rebuild(RebuildCause::OtherNodes),
            Some((handle, entry)) => {
                if !on.is_empty() && !has_placement(entry, on) {
                    events.require_rebuild(RebuildCause::OtherNodes);
                }
                let estimate = self.settings.estimate(job.limit);
                if entry.request.estimate != estimate {
                    let change = Change::Estimate(estimate);
                    events.round.amended.push(Amendment { job: handle, change });
                    step.changed = true;
                }
            }
            None if is_here => events.require_rebuild(RebuildCause::UnplannedStart),
            None => {}
        }
    }

    /// Returns the entry of a job in the ledger of the driver.
    fn entry(&self, handle: JobId) -> Option<&Entry> {
        self.driver.as_ref()?.ledger().get(handle)
    }
}

/// Takes in that a job runs, and not ahead of its start.
fn begin_run(
    at: Time,
    known: &mut DrivenJob,
    job: &Job,
    is_inside: bool,
    events: &mut Events,
    step: &mut Step,
) {
    step.changed = true;
    let start = job.start.map_or(whole_second(at), instant);
    let note = if known.quantum().is_some() {
        Note::StartedForQuantum { start }
    } else if is_inside && known.handle.is_some() || !matches!(known.state(), DrivenState::Waiting(_)) {
        // Slurm may start a placed job just when another place is sought for it.
        let record = known.record(&job.id, start);
        let promised = record.last;
        step.starts.push(record);
        Note::Started { start, promised }
    } else {
        Note::StartedBySlurm
    };
    step.notes.push((job.id.clone(), note));
    if known.is_waiting() {
        events.require_rebuild(RebuildCause::UnplannedStart);
    }
    known.run(start);
}

/// Returns whether an entry has these resources.
fn has_placement(entry: &Entry, on: &[(HostId, Resources)]) -> bool {
    let shares = entry.placement().map(Placement::shares).unwrap_or_default();
    shares.len() == on.len() && shares.iter().all(|share| on.contains(&(share.host, share.amount)))
}
