//! The differences between the state of Slurm and the ledger.

use std::collections::BTreeSet;

use miserly_core::{EndHow, Ended, Time};
use miserly_slurm::{Cluster, Detail, Job, JobState};

use super::job::DrivenJob;
use super::rebuild::holds_nodes;
use super::{DrivenState, Events, Observation, Scheduler, Step};
use crate::comment::{has_driver_comment, with_own_comments};
use crate::instant::instant;
use crate::notes::Note;
use crate::site::Site;

impl Scheduler {
    /// Finds the events since the last step.
    pub(super) fn compare(&mut self, at: Time, observed: Observation<'_>, step: &mut Step) -> Events {
        let Observation { cluster, details, starts, .. } = observed;
        let mut events = Events::default();
        self.forget_groups();
        let awaited: BTreeSet<String> = self.nodes_of_suspended(cluster).cloned().collect();
        let mut ids: Vec<String> = self.jobs.keys().cloned().collect();
        // The first tasks of an array are the first ones to get a place.
        ids.sort_by_cached_key(|id| cluster.jobs.get(id).map(Job::order));
        self.arrays.count(&self.jobs, cluster);
        for (id, form) in details {
            self.arrays.set_limit(id, form.array_limit);
        }
        for id in ids {
            let job = cluster.jobs.get(&id);
            if let Some(form) = details.get(&id) {
                self.update_form(&id, job, form);
            }
            match job {
                None => self.remove(&id, starts.get(&id).copied(), &mut events, step),
                Some(job) => self.compare_job(at, cluster, (job, &awaited), &mut events, step),
            }
        }
        for job in self.new_jobs(cluster) {
            // A job that came and went between two readings has no form.
            let Some(form) = details.get(&job.id) else { continue };
            self.last_number += 1;
            let new = DrivenJob::new(self.last_number, with_own_comments(form), instant(job.submitted));
            self.jobs.insert(job.id.clone(), new);
            step.changed = true;
            self.compare_job(at, cluster, (job, &awaited), &mut events, step);
        }
        events
    }

    /// Compares a job with the ledger. `awaited` are the nodes of suspended jobs.
    fn compare_job(
        &mut self,
        at: Time,
        cluster: &Cluster,
        (job, awaited): (&Job, &BTreeSet<String>),
        events: &mut Events,
        step: &mut Step,
    ) {
        if holds_nodes(job) {
            self.compare_running(at, job, awaited, events, step);
        } else {
            self.compare_waiting(at, cluster, job, events, step);
        }
    }

    /// Returns the jobs that were not seen before, in the order of their submission.
    fn new_jobs<'a>(&self, cluster: &'a Cluster) -> Vec<&'a Job> {
        let partitions = self.settings.partitions(cluster);
        let is_new = |job: &&Job| !self.jobs.contains_key(&job.id) && is_driven(job, &partitions, &self.site);
        let mut new: Vec<&Job> = cluster.jobs.values().filter(is_new).collect();
        new.sort_by_key(|job| (job.submitted, job.order()));
        new
    }

    /// Takes in the form of a job. That of a placed job has the nodes that it was given.
    fn update_form(&mut self, id: &str, job: Option<&Job>, form: &Detail) {
        let Some(known) = self.jobs.get_mut(id) else { return };
        let comment = self.comment_field.and_then(|field| field.text(form));
        if !comment.is_some_and(has_driver_comment) {
            // Another one was written, or that of the driver is on its way.
            known.comment = None;
        }
        let form = with_own_comments(form);
        let was_placed = known.was_placed;
        let before = &mut known.form;
        (before.comment, before.admin_comment) = (form.comment.clone(), form.admin_comment.clone());
        if job.is_some_and(holds_nodes) {
            before.on = form.on.clone();
            return;
        }
        let requested = if was_placed { &*before } else { &form };
        let (least_nodes, most_nodes) = (requested.least_nodes, requested.most_nodes);
        let (nodes, not_nodes) = (requested.nodes.clone(), requested.not_nodes.clone());
        let array_limit = form.array_limit.or(before.array_limit);
        let requested_begin = before.eligible;
        let mut eligible = form.eligible;
        if let Some(job) = known.opportunistic_mut() {
            // Slurm keeps a requeued job for two minutes. Its user did not ask for that.
            job.set_eligible(eligible.map(instant));
            eligible = requested_begin;
        }
        known.form = Detail { least_nodes, most_nodes, nodes, not_nodes, eligible, array_limit, ..form };
    }

    /// Removes a job that is gone. `start` is the start that Slurm remembers.
    fn remove(&mut self, id: &str, start: Option<Time>, events: &mut Events, step: &mut Step) {
        let Some(mut job) = self.jobs.remove(id) else { return };
        let had_nodes = !job.is_waiting();
        let early = job.end_opportunistic().and_then(|early| early.start_of(start));
        let start = match job.state() {
            _ if early.is_some() => early,
            DrivenState::Assigned { .. } | DrivenState::Placed { .. } => start,
            DrivenState::Waiting(_) | DrivenState::Running(_) => job.quantum_start(),
        };
        // A placed job was cancelled before its start, if there is none.
        let ran = start.is_some() || job.is_running();
        step.starts.extend(start.map(|start| job.record(id, start)));
        self.leave(&mut job, had_nodes, events);
        step.changed = true;
        step.notes.push((id.to_owned(), Note::Gone { ran }));
    }

    /// Takes a job out of the ledger: it has ended, or it is withdrawn.
    pub(super) fn leave(&mut self, job: &mut DrivenJob, has_ended: bool, events: &mut Events) {
        let Some(handle) = job.handle.take() else { return };
        self.by_handle.remove(&handle);
        self.moved.remove(&handle);
        if has_ended {
            events.round.ended.push(Ended { job: handle, how: EndHow::Done });
        } else {
            events.round.withdrawn.push(handle);
        }
    }
}

/// Returns whether a job is the driver's business: it waits in a driven partition, or holds one of its nodes.
pub(super) fn is_driven(job: &Job, partitions: &BTreeSet<String>, site: &Site) -> bool {
    if holds_nodes(job) {
        job.on.iter().any(|node| site.find(node).is_some())
    } else {
        job.state == JobState::Pending && job.partitions.iter().any(|name| partitions.contains(name))
    }
}
