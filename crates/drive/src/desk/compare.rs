//! The differences between the state of Slurm and the ledger.

use std::collections::BTreeSet;

use miserly_core::{
    Amendment, Change, Constraints, EndHow, Ended, Form, JobId, Placement, Request, Span, Time,
};
use miserly_slurm::{Cluster, Detail, Job, JobState};

use super::case::{Aside, Case, Facts, LAST_PAUSE, Stage};
use super::opportunistic::{Opportunistic, is_completing};
use super::rebuild::{holds_nodes, on_hosts};
use super::{Desk, Events, MOST_ASKED, Seen, Step};
use crate::comment::{has_driver_comment, with_own_comments};
use crate::form::Planned;
use crate::notes::Note;
use crate::obstacle::{Obstacle, obstacle};
use crate::site::Site;

/// An opportunistic job that needs this much more than the preemption lead time does not leave its nodes.
const LEAVING: Span = Span::from_ticks(60 * 1_000_000);

impl Desk {
    /// Finds the events since the last step.
    pub(super) fn compare(&mut self, at: Time, seen: Seen<'_>, step: &mut Step) -> Events {
        let Seen { cluster, details, starts, .. } = seen;
        let mut events = Events::default();
        let partitions = self.settings.partitions(cluster);
        self.forget_groups();
        let awaited: BTreeSet<String> = self.nodes_of_suspended(cluster).cloned().collect();
        let mut ids: Vec<String> = self.cases.keys().cloned().collect();
        // The first tasks of an array are the first ones to get a place.
        ids.sort_by_cached_key(|id| cluster.jobs.get(id).map(Job::order));
        self.arrays.count(&self.cases, cluster);
        for (id, form) in details {
            self.arrays.set_limit(id, form.array_limit);
        }
        for id in ids {
            let job = cluster.jobs.get(&id);
            if let Some(form) = details.get(&id) {
                self.learn(&id, job, form);
            }
            match job {
                None => self.gone(&id, starts.get(&id).copied(), &mut events, step),
                Some(job) if holds_nodes(job) => self.runs(at, job, &awaited, &mut events, step),
                Some(job) => self.waits(at, cluster, job, &mut events, step),
            }
        }
        let mut new: Vec<&Job> = cluster
            .jobs
            .values()
            .filter(|job| !self.cases.contains_key(&job.id) && is_ours(job, &partitions, &self.site))
            .collect();
        new.sort_by_key(|job| (job.submitted, job.order()));
        for job in new {
            // A job that came and went between two readings has no form.
            let Some(form) = details.get(&job.id) else { continue };
            self.numbers += 1;
            let facts = Facts { form: with_own_comments(form), submitted: job.submitted, ..Facts::default() };
            self.cases.insert(job.id.clone(), Case { number: self.numbers, handle: None, facts });
            step.changed = true;
            if holds_nodes(job) {
                self.runs(at, job, &awaited, &mut events, step);
            } else {
                self.waits(at, cluster, job, &mut events, step);
            }
        }
        events
    }

    /// Takes in the form of a job. That of a placed job has the nodes that it was given.
    fn learn(&mut self, id: &str, job: Option<&Job>, form: &Detail) {
        let Some(case) = self.cases.get_mut(id) else { return };
        let comment = self.comments.and_then(|field| field.of(form));
        if !comment.is_some_and(has_driver_comment) {
            // Another one was written, or that of the driver is on its way.
            case.facts.told = None;
        }
        let form = with_own_comments(form);
        let known = &mut case.facts.form;
        (known.comment, known.admin_comment) = (form.comment.clone(), form.admin_comment.clone());
        if job.is_some_and(holds_nodes) {
            known.on = form.on.clone();
        } else {
            let (least_nodes, most_nodes, nodes) = if case.facts.was_placed {
                (known.least_nodes, known.most_nodes, std::mem::take(&mut known.nodes))
            } else {
                (form.least_nodes, form.most_nodes, form.nodes.clone())
            };
            let array_limit = form.array_limit.or(known.array_limit);
            let mut eligible = form.eligible;
            if let Some(job) = &mut case.facts.opportunistic {
                // Slurm keeps a requeued job for two minutes. Its user did not ask for that.
                job.set_eligible(eligible);
                eligible = known.eligible;
            }
            *known = Detail { least_nodes, most_nodes, nodes, eligible, array_limit, ..form };
        }
    }

    fn gone(&mut self, id: &str, start: Option<i64>, events: &mut Events, step: &mut Step) {
        let Some(mut case) = self.cases.remove(id) else { return };
        let held = case.facts.stage != Stage::Waiting;
        let mut ran = held;
        let early = case.facts.opportunistic.take().and_then(|job| job.start_of(start));
        if let Some(early) = early {
            ran = true;
            step.starts.push(case.facts.record(id, early));
        } else if let Some(start) = case.facts.quantum.and_then(|quantum| quantum.start) {
            step.starts.push(case.facts.record(id, start));
        } else if matches!(case.facts.stage, Stage::Placed { .. }) {
            // It was cancelled before its start, if there is none.
            ran = start.is_some();
            step.starts.extend(start.map(|start| case.facts.record(id, start)));
        }
        self.leave(&mut case, held, events);
        step.changed = true;
        step.notes.push((id.to_owned(), Note::Gone { ran }));
    }

    /// A job holds nodes.
    ///
    /// `awaited` are the nodes of suspended jobs.
    fn runs(
        &mut self,
        at: Time,
        job: &Job,
        awaited: &BTreeSet<String>,
        events: &mut Events,
        step: &mut Step,
    ) {
        let in_ledger = self.cases.get(&job.id).and_then(|case| case.handle);
        let is_suspended = in_ledger.is_some_and(|handle| self.has_suspended(handle));
        let is_awaited = job.on.iter().any(|node| awaited.contains(node));
        let (site, driver) = (&self.site, &self.driver);
        let Some(case) = self.cases.get_mut(&job.id) else { return };
        let here = job.on.iter().any(|node| site.is_usable(node));
        if let Some(known) = &mut case.facts.opportunistic
            && !is_completing(job)
        {
            // Slurm may spread it over its nodes in another way than planned.
            step.changed |= known.has_on(site, &on_hosts(site, job, &case.facts.form));
        }
        let patience = if is_awaited { Span::MAX } else { self.settings.delay() + LEAVING };
        if case.runs_opportunistically(at, job, patience, step) {
            return;
        }
        let started = case.facts.stage != Stage::Running;
        if started {
            step.changed = true;
            let start = job.start.unwrap_or(at.secs());
            // Slurm may start a placed job just when another place is sought for it.
            let is_inside = job.reservation.as_ref() == Some(&self.settings.reservation);
            if let Some(quantum) = &mut case.facts.quantum {
                quantum.start = Some(start);
                step.notes.push((job.id.clone(), Note::StartedForQuantum { start }));
            } else if is_inside && case.handle.is_some() || matches!(case.facts.stage, Stage::Placed { .. }) {
                let record = case.facts.record(&job.id, start);
                step.notes.push((job.id.clone(), Note::Started { start, promised: record.last }));
                step.starts.push(record);
            } else {
                step.notes.push((job.id.clone(), Note::StartedBySlurm));
            }
            events.disturbed |= case.facts.stage == Stage::Waiting;
            case.facts.stage = Stage::Running;
            case.facts.aside = None;
        }
        events.disturbed |= case.follow_suspension(self.now, job, is_suspended, step);
        let entry = case.handle.and_then(|handle| driver.as_ref()?.ledger().get(handle));
        match entry {
            Some(_) if !here => events.disturbed = true,
            Some(entry) => {
                // It has other nodes or processors there than in the ledger.
                let has = on_hosts(site, job, &case.facts.form);
                let held = entry.placement().map(Placement::shares).unwrap_or_default();
                let same = held.len() == has.len()
                    && held.iter().all(|share| has.contains(&(share.host, share.amount)));
                events.disturbed |= !same && !has.is_empty();
                let estimate = self.settings.estimate(job.limit);
                if entry.request.estimate != estimate
                    && let Some(job) = case.handle
                {
                    events.round.amended.push(Amendment { job, change: Change::Estimate(estimate) });
                    step.changed = true;
                }
            }
            None => events.disturbed |= here,
        }
    }

    /// A job waits.
    fn waits(&mut self, at: Time, cluster: &Cluster, job: &Job, events: &mut Events, step: &mut Step) {
        // It is put back at the end.
        let Some(mut case) = self.cases.remove(&job.id) else { return };
        self.waits_as(at, cluster, job, &mut case, events, step);
        let has_arrived = events.arrived.last().is_some_and(|(id, _)| *id == job.id);
        self.arrays.set_place(job, case.has_place() || has_arrived);
        self.cases.insert(job.id.clone(), case);
    }

    fn waits_as(
        &mut self,
        at: Time,
        cluster: &Cluster,
        job: &Job,
        case: &mut Case,
        events: &mut Events,
        step: &mut Step,
    ) {
        let begin = case.begin(at);
        let why = self.hindrance(at, cluster, job, case, begin);
        let is_hindered = why.as_ref().is_some_and(|aside| aside.until.is_none());
        case.waits_opportunistically(self.now, job, &self.settings.reservation, is_hindered, step);
        match &case.facts.stage {
            Stage::Running => {
                // It was requeued.
                self.leave(case, true, events);
                case.facts.form.on.clear();
                let form = case.facts.form.clone();
                let Facts { submitted, was_placed, had_quantum, .. } = case.facts;
                case.facts = Facts { form, submitted, was_placed, had_quantum, ..Facts::default() };
                step.changed = true;
                step.notes.push((job.id.clone(), Note::Requeued));
            }
            Stage::Placed { asked: 0, nodes, .. } if nodes.iter().any(|node| !self.site.is_usable(node)) => {
                // The placement was not passed on yet. After a quantum it waits in the ledger that is made again.
                if case.facts.quantum.take().is_some() {
                    events.disturbed = true;
                } else {
                    self.leave(case, true, events);
                }
                case.facts.stage = Stage::Waiting;
            }
            Stage::Placed { since, asked, .. } => {
                let is_there = job.reservation.as_ref() == Some(&self.settings.reservation);
                let waited = at - Time::from_ticks(*since);
                let patience = self.settings.delay() + LEAVING;
                let is_kept_out =
                    || case.facts.opportunistic.is_some() || case.waits_for(&self.nodes_to_wait_for());
                let why = match why {
                    // Jobs of its user that run ahead of their starts may have used up a limit.
                    Some(Aside { until: Some(_), .. })
                        if waited <= patience && self.has_opportunistic_of(job.user, cluster) =>
                    {
                        self.limited.insert(job.user);
                        return;
                    }
                    Some(aside) => aside.why,
                    // Its nodes are not free yet.
                    None if *asked == 0 && waited > patience && is_kept_out() => {
                        "an opportunistic job did not leave its nodes".to_owned()
                    }
                    None if *asked == 0 => return,
                    None if waited > self.settings.delay() => {
                        let reason = job.reason.as_deref().unwrap_or("Slurm gives no reason");
                        format!("it did not start: {reason}")
                    }
                    None if !is_there && *asked >= MOST_ASKED => "Slurm refuses its placement".to_owned(),
                    None => return,
                };
                if *asked > 0 && case.facts.quantum.is_some() {
                    // Slurm may start it yet. Then it has to leave.
                    let entry = case.handle.and_then(|handle| self.driver.as_ref()?.ledger().get(handle));
                    let place = entry.and_then(|entry| entry.placement()).cloned();
                    case.facts.opportunistic =
                        place.map(|place| Opportunistic::leaves(at, &self.site, &place, None));
                }
                self.leave(case, true, events);
                case.fail(at, &job.id, why, step);
                return;
            }
            Stage::Waiting => {}
        }
        if let Some(aside) = why {
            self.leave(case, false, events);
            case.set_aside(&job.id, aside, step);
            return;
        }
        if let Some(Aside { until: Some(until), .. }) = case.facts.aside
            && until > at.ticks()
        {
            return;
        }
        // It is taken back first.
        if case.handle.is_none() && job.reservation.as_ref() == Some(&self.settings.reservation) {
            return;
        }
        let request = self.request(at, job, case);
        let Some(handle) = case.handle else {
            events.arrived.push((job.id.clone(), request));
            return;
        };
        self.change(at, handle, job, case, request, events);
    }

    /// Returns the request of a job for the policy.
    pub(super) fn request(&mut self, at: Time, job: &Job, case: &Case) -> Request {
        let form = &case.facts.form;
        let deadline = form.deadline.and_then(Time::from_secs);
        let deadline = deadline.filter(|_| self.settings.policy.needs().begin_and_deadline);
        let group = self.site.group(job, form);
        let no_quantum = !form.is_requeueable || case.facts.had_quantum;
        let Planned { amount, form } = self.site.planned(job, form, group.as_deref());
        let form = Form { group: group.and_then(|group| self.number_of(&group)), ..form };
        Request {
            form,
            user: Some(job.user),
            constraints: Constraints { begin: case.begin(at), deadline, no_quantum, ..Constraints::NONE },
            ..Request::new(
                case.number,
                Time::from_secs(job.submitted).unwrap_or(at).min(at),
                self.settings.estimate(job.limit),
                amount,
            )
        }
    }

    /// Returns why a job is not planned now, and until when.
    fn hindrance(
        &self,
        at: Time,
        cluster: &Cluster,
        job: &Job,
        case: &Case,
        begin: Option<Time>,
    ) -> Option<Aside> {
        let why = match obstacle(&self.settings, &self.site, cluster, job, &case.facts.form) {
            Some(Obstacle { why, is_fixed: true }) => Some(Aside { until: None, why }),
            // Slurm looks at a job again when it likes: after a while it is tried, whatever the reason was.
            // It was tried on idle nodes, and may be no obstacle at its own start.
            Some(Obstacle { is_fixed: false, .. }) if case.is_tried(at) => None,
            Some(Obstacle { why, is_fixed: false }) => match &case.facts.aside {
                Some(Aside { until: Some(until), .. }) if *until <= at.ticks() => None,
                Some(before) if before.why == why && before.until.is_some() => Some(before.clone()),
                None if case.facts.failures > 0 && case.facts.stage == Stage::Waiting => None,
                _ => Some(Aside { until: Some((at + LAST_PAUSE).ticks()), why }),
            },
            None => None,
        };
        // The pause after a start that failed goes on.
        let pauses = case.handle.is_none()
            && case
                .facts
                .aside
                .as_ref()
                .and_then(|aside| aside.until)
                .is_some_and(|until| until > at.ticks());
        let crowded = || {
            let most = self.arrays.lacks_place(job, case).filter(|_| !pauses)?;
            let why = format!("its array runs at most {most} at the same time");
            Some(Aside { until: None, why })
        };
        why.or_else(crowded).or_else(|| {
            let later = begin.filter(|_| !self.settings.policy.needs().begin_and_deadline)?;
            Some(Aside { until: Some(later.ticks()), why: "it may not start yet".to_owned() })
        })
    }

    /// Takes in that the request of a job in the ledger is now this one.
    fn change(
        &mut self,
        at: Time,
        handle: JobId,
        job: &Job,
        case: &mut Case,
        request: Request,
        events: &mut Events,
    ) {
        let before = match &self.driver {
            Some(driver) => driver.ledger().get(handle).map(|entry| &entry.request),
            None => self.restored.iter().find(|(other, _)| *other == handle).map(|(_, entry)| &entry.request),
        };
        match before {
            Some(before)
                if (before.demand, before.form) == (request.demand, request.form)
                    && before.constraints.deadline == request.constraints.deadline =>
            {
                let begin = request.constraints.begin;
                let mut amend = |change| events.round.amended.push(Amendment { job: handle, change });
                if before.estimate != request.estimate {
                    amend(Change::Estimate(request.estimate));
                }
                if before.constraints.begin.filter(|begin| *begin > at) != begin {
                    amend(Change::Begin(begin));
                }
            }
            Some(before)
                if self.stale
                    && (before.demand, Form { group: None, ..before.form })
                        == (request.demand, Form { group: None, ..request.form })
                    && Constraints { no_quantum: request.constraints.no_quantum, ..before.constraints }
                        == request.constraints
                    && before.estimate == request.estimate =>
            {
                // Its nodes have changed, not its request. The ledger is made again, and its plan with it.
                let change = Change::Request { request: Box::new(request), keeps_promise: true };
                events.round.amended.push(Amendment { job: handle, change });
            }
            known => {
                if known.is_some() {
                    self.leave(case, false, events);
                }
                case.handle = None;
                events.arrived.push((job.id.clone(), request));
            }
        }
    }

    /// Takes a job out of the ledger: it ended, or it was withdrawn.
    fn leave(&mut self, case: &mut Case, ended: bool, events: &mut Events) {
        let Some(handle) = case.handle.take() else { return };
        self.by_handle.remove(&handle);
        self.moved.remove(&handle);
        if !ended {
            events.round.withdrawn.push(handle);
            return;
        }
        events.round.ended.push(Ended { job: handle, how: EndHow::Done });
    }
}

/// Returns whether a job is the driver's business: it waits in a driven partition, or holds one of its nodes.
pub(super) fn is_ours(job: &Job, partitions: &BTreeSet<String>, site: &Site) -> bool {
    if holds_nodes(job) {
        job.on.iter().any(|node| site.find(node).is_some())
    } else {
        job.state == JobState::Pending && job.partitions.iter().any(|name| partitions.contains(name))
    }
}
