//! Jobs that wait, compared with the ledger.

use miserly_core::{Amendment, Change, Constraints, Form, JobId, Request, Time};
use miserly_slurm::{Cluster, Job};

use super::job::{DrivenJob, LAST_PAUSE, Unplanned};
use super::opportunistic::Opportunistic;
use super::running::LEAVING;
use super::{DrivenState, Events, MOST_COMMANDS, RebuildCause, Scheduler, Step};
use crate::form::Planned;
use crate::instant::instant;
use crate::notes::Note;
use crate::obstacle::{Obstacle, obstacle};

impl Scheduler {
    /// Takes in that a job waits.
    pub(super) fn compare_waiting(
        &mut self,
        at: Time,
        cluster: &Cluster,
        job: &Job,
        events: &mut Events,
        step: &mut Step,
    ) {
        // It is put back at the end.
        let Some(mut known) = self.jobs.remove(&job.id) else { return };
        let unplanned = self.why_unplanned(at, cluster, job, &known);
        let is_hindered = unplanned.as_ref().is_some_and(|unplanned| unplanned.until.is_none())
            || known.opportunistic().is_some_and(|early| self.has_drained(early.nodes()));
        known.waits_opportunistically(self.now, job, &self.settings.reservation, is_hindered, step);
        if self.follow_placement(at, cluster, (job, &mut known), unplanned.as_ref(), events, step) {
            self.plan(at, (job, &mut known), unplanned, events, step);
        }
        let has_arrived = events.arrived.last().is_some_and(|(id, _)| *id == job.id);
        self.arrays.set_place(job, known.has_place() || has_arrived);
        self.jobs.insert(job.id.clone(), known);
    }

    /// Takes in that a job waits in Slurm which ran, or was to start. Returns whether it is to be planned.
    fn follow_placement(
        &mut self,
        at: Time,
        cluster: &Cluster,
        (job, known): (&Job, &mut DrivenJob),
        unplanned: Option<&Unplanned>,
        events: &mut Events,
        step: &mut Step,
    ) -> bool {
        let is_inside = job.reservation.as_ref() == Some(&self.settings.reservation);
        let is_arrived = is_inside && matches!(known.state(), DrivenState::Placed { .. });
        match known.state() {
            DrivenState::Waiting(_) => {}
            DrivenState::Running(_) => {
                self.leave(known, true, events);
                known.requeue();
                step.changed = true;
                step.notes.push((job.id.clone(), Note::Requeued));
            }
            DrivenState::Assigned { assignment, .. } | DrivenState::Placed { assignment, .. }
                if !is_arrived && self.has_drained(assignment.nodes.iter()) =>
            {
                if assignment.quantum.is_some() {
                    // It waits in the ledger that is made again.
                    events.require_rebuild(RebuildCause::Quantum);
                } else {
                    self.leave(known, true, events);
                }
                known.wait_again();
            }
            DrivenState::Assigned { .. } | DrivenState::Placed { .. } => {
                if let Some(why) = self.why_not_started(at, cluster, job, known, unplanned) {
                    self.end_placement(at, (job, known), why, events, step);
                }
                return false;
            }
        }
        true
    }

    /// Returns whether one of these nodes is out of service.
    fn has_drained<'a>(&self, mut nodes: impl Iterator<Item = &'a String>) -> bool {
        nodes.any(|node| !self.site.is_usable(node))
    }

    /// Returns why a job that was given nodes does not start, if it does not.
    fn why_not_started(
        &mut self,
        at: Time,
        cluster: &Cluster,
        job: &Job,
        known: &DrivenJob,
        unplanned: Option<&Unplanned>,
    ) -> Option<String> {
        let waited = at - known.assignment()?.since;
        let delay = self.settings.delay();
        if let Some(unplanned) = unplanned {
            let is_early = unplanned.until.is_some() && waited <= delay + LEAVING;
            if is_early && self.has_opportunistic_of(job.user, cluster) {
                // Jobs of its user that run ahead of their starts may have used up a limit.
                self.limited_users.insert(job.user);
                return None;
            }
            return Some(unplanned.why.clone());
        }
        let DrivenState::Placed { commands, .. } = known.state() else {
            // Its nodes are not free yet.
            let is_kept_out =
                || known.opportunistic().is_some() || known.waits_for(&self.nodes_to_wait_for());
            let is_over = waited > delay + LEAVING && is_kept_out();
            return is_over.then(|| "an opportunistic job did not leave its nodes".to_owned());
        };
        if waited > delay {
            let reason = job.reason.as_deref().unwrap_or("Slurm gives no reason");
            return Some(format!("it did not start: {reason}"));
        }
        let is_inside = job.reservation.as_ref() == Some(&self.settings.reservation);
        let is_refused = !is_inside && commands.get() >= MOST_COMMANDS;
        is_refused.then(|| "Slurm refuses its placement".to_owned())
    }

    /// Takes a placement back that did not lead to a start.
    fn end_placement(
        &mut self,
        at: Time,
        (job, known): (&Job, &mut DrivenJob),
        why: String,
        events: &mut Events,
        step: &mut Step,
    ) {
        let is_placed = matches!(known.state(), DrivenState::Placed { .. });
        // Slurm may start it yet. Then it has to leave.
        let leaves = known.quantum().filter(|_| is_placed).and_then(|_| {
            let entry = self.driver.as_ref()?.ledger().get(known.handle?)?;
            Some(Opportunistic::leaving(at, &self.site, entry.placement()?, None))
        });
        self.leave(known, true, events);
        known.fail(at, &job.id, why, step);
        if let Some(leaves) = leaves {
            known.set_opportunistic(leaves);
        }
    }

    /// Has a waiting job planned, or not.
    fn plan(
        &mut self,
        at: Time,
        (job, known): (&Job, &mut DrivenJob),
        unplanned: Option<Unplanned>,
        events: &mut Events,
        step: &mut Step,
    ) {
        if let Some(unplanned) = unplanned {
            self.leave(known, false, events);
            known.unplan(&job.id, unplanned, step);
            return;
        }
        if known.unplanned().and_then(|unplanned| unplanned.until).is_some_and(|until| until > at) {
            return;
        }
        // It is taken back first.
        if known.handle.is_none() && job.reservation.as_ref() == Some(&self.settings.reservation) {
            return;
        }
        let request = self.request(at, job, known);
        match known.handle {
            Some(handle) => self.change(at, handle, (job, known), request, events),
            None => events.arrived.push((job.id.clone(), request)),
        }
    }

    /// Returns the request of a job for the policy.
    pub(super) fn request(&mut self, at: Time, job: &Job, known: &DrivenJob) -> Request {
        let form = &known.form;
        let deadline = form.deadline.and_then(Time::from_secs);
        let deadline = deadline.filter(|_| self.settings.policy.needs().begin_and_deadline);
        let group = self.site.group(job, form);
        let no_quantum = !form.is_requeueable || known.had_quantum;
        let Planned { amount, form } = self.site.planned(job, form, group.as_deref());
        let form = Form { group: group.and_then(|group| self.number_of(&group)), ..form };
        let estimate = self.settings.estimate(job.limit);
        Request {
            form,
            user: Some(job.user),
            constraints: Constraints { begin: known.begin(at), deadline, no_quantum, ..Constraints::NONE },
            ..Request::new(known.number, instant(job.submitted).min(at), estimate, amount)
        }
    }

    /// Returns why a job is not planned now, and until when, if it is not.
    fn why_unplanned(&self, at: Time, cluster: &Cluster, job: &Job, known: &DrivenJob) -> Option<Unplanned> {
        let lasting = |why| Unplanned { until: None, why };
        match obstacle(&self.settings, &self.site, cluster, job, &known.form) {
            Some(Obstacle { why, is_fixed: true }) => return Some(lasting(why)),
            Some(Obstacle { why, is_fixed: false }) => {
                if let Some(unplanned) = after_reason(at, known, why) {
                    return Some(unplanned);
                }
            }
            None => {}
        }
        // The pause after a start that failed goes on.
        let until = known.unplanned().and_then(|unplanned| unplanned.until);
        let pauses = known.handle.is_none() && until.is_some_and(|until| until > at);
        if let Some(most) = self.arrays.lacks_place(job, known).filter(|_| !pauses) {
            return Some(lasting(format!("its array runs at most {most} at the same time")));
        }
        let begin = known.begin(at).filter(|_| !self.settings.policy.needs().begin_and_deadline)?;
        Some(Unplanned { until: Some(begin), why: "it may not start yet".to_owned() })
    }

    /// Takes in that the request of a job in the ledger is now this one.
    fn change(
        &mut self,
        at: Time,
        handle: JobId,
        (job, known): (&Job, &mut DrivenJob),
        request: Request,
        events: &mut Events,
    ) {
        let before = match &self.driver {
            Some(driver) => driver.ledger().get(handle).map(|entry| &entry.request),
            None => self.restored.iter().find(|(other, _)| *other == handle).map(|(_, entry)| &entry.request),
        };
        let is_in_ledger = before.is_some();
        let changes = before.and_then(|before| changes(at, before, &request, self.rebuild.is_some()));
        if let Some(changes) = changes {
            events.round.amended.extend(changes.into_iter().map(|change| Amendment { job: handle, change }));
            return;
        }
        if is_in_ledger {
            self.leave(known, false, events);
            events.changed_requests.push(job.id.clone());
        }
        known.handle = None;
        events.arrived.push((job.id.clone(), request));
    }
}

/// Returns why a job is not planned after a reason of Slurm that may be an old one, if it is not. Slurm looks at a job again when it
/// likes: after a while it is tried, whatever the reason was.
fn after_reason(at: Time, known: &DrivenJob, why: String) -> Option<Unplanned> {
    // It was tried on idle nodes, and may be no obstacle at its own start.
    if known.is_tried(at) {
        return None;
    }
    match known.unplanned() {
        Some(Unplanned { until: Some(until), .. }) if *until <= at => None,
        Some(before) if before.why == why && before.until.is_some() => Some(before.clone()),
        None if known.failed_starts > 0 && known.is_waiting() => None,
        _ => Some(Unplanned { until: Some(at + LAST_PAUSE), why }),
    }
}

/// Returns the changes that make a request in the ledger another one, if it keeps its place in the queue. `is_rebuilt`: the ledger is
/// made again.
fn changes(at: Time, before: &Request, request: &Request, is_rebuilt: bool) -> Option<Vec<Change>> {
    let is_same_demand = (before.demand, before.form) == (request.demand, request.form);
    if is_same_demand && before.constraints.deadline == request.constraints.deadline {
        let mut changes = vec![];
        if before.estimate != request.estimate {
            changes.push(Change::Estimate(request.estimate));
        }
        let begin = request.constraints.begin;
        if before.constraints.begin.filter(|begin| *begin > at) != begin {
            changes.push(Change::Begin(begin));
        }
        return Some(changes);
    }
    let no_quantum = request.constraints.no_quantum;
    let without_group = |form: Form| Form { group: None, ..form };
    let has_other_nodes = is_rebuilt
        && (before.demand, without_group(before.form)) == (request.demand, without_group(request.form))
        && Constraints { no_quantum, ..before.constraints } == request.constraints
        && before.estimate == request.estimate;
    // Its nodes have changed, not its request. The ledger is made again, and its plan with it.
    has_other_nodes.then(|| vec![Change::Request { request: Box::new(request.clone()), keeps_promise: true }])
}
