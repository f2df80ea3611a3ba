//! The ledger, made again from the state of Slurm.
//!
//! That is necessary when nodes change, and when a job has other nodes or processors than the policy gave it: Slurm spreads
//! a job over the processors of its nodes that are free at its start. A placed job without room waits again.

use std::collections::BTreeMap;

use miserly_core::{
    Amendment, Change, Driver, Entry, EventOrder, Expected, Fault, HostId, JobId, JobNumber, Kind, Ledger,
    Machine, Pes, Placement, PolicyState, Procs, Progress, Request, Resources, Round, Share, Sharing, SlotId,
    Span, State, Time, work,
};
use miserly_slurm::{Cluster, Detail, Job, JobState};

use super::Desk;
use super::case::{Case, Stage};
use super::quanta::{Quantum, is_suspended};
use crate::DriveError;
use crate::site::Site;

impl Desk {
    /// Moves the stored placements to the hosts of another site.
    pub(super) fn renumber(&mut self, site: &Site) {
        let names: Vec<String> = site.names().map(str::to_owned).collect();
        let before = std::mem::replace(&mut self.nodes, names);
        let entries = self.take_entries();
        let moved = |placement: Placement| -> Option<Placement> {
            let share = |share: &Share| {
                let host = site.find(before.get(share.host.index())?)?;
                Some(Share { host, ..share.clone() })
            };
            let shares: Option<Vec<Share>> = placement.shares().iter().map(share).collect();
            shares.map(|shares| Placement::across(SlotId(0), shares))
        };
        // The policy may know hosts by their numbers.
        let forgets = self.settings.policy.needs().one_host_per_job && before != self.nodes;
        let entry = |(job, mut entry): (JobId, Entry)| {
            if forgets {
                entry.policy_state = PolicyState::EMPTY;
            }
            let had = entry.planned_on.is_some();
            entry.planned_on = entry.planned_on.take().and_then(moved);
            if had && entry.planned_on.is_none() {
                entry.planned = None;
            }
            if let State::Running { placement, .. } | State::Suspended { placement, .. } = &mut entry.state {
                *placement = moved(placement.clone())?;
            }
            Some((job, entry))
        };
        self.restored = entries.into_iter().filter_map(entry).collect();
    }

    /// Takes the entries out of the ledger, or those of the stored state before there is one.
    fn take_entries(&mut self) -> Vec<(JobId, Entry)> {
        let Some(driver) = self.driver.take() else { return std::mem::take(&mut self.restored) };
        let ledger = driver.ledger();
        self.state = ledger.state();
        let jobs = ledger.running().chain(ledger.suspended()).chain(ledger.waiting());
        jobs.map(|job| (job, ledger.entry(job).clone())).collect()
    }

    /// Makes the ledger again: the jobs that wait, from the ledger before, and those that hold nodes, from Slurm.
    ///
    /// No node in service has more than its resources in the ledger: plans with the rest could not be kept.
    pub(super) fn rebuild(
        &mut self,
        at: Time,
        cluster: &Cluster,
        round: &mut Round,
    ) -> Result<(), DriveError> {
        let mut entries: BTreeMap<JobId, Entry> = self.take_entries().into_iter().collect();
        for job in round.ended.drain(..).map(|ended| ended.job).chain(round.withdrawn.drain(..)) {
            entries.remove(&job);
        }
        amend(&mut entries, round.amended.drain(..));
        round.overdue.clear();
        // A job that was started in an impossible place has left the ledger.
        entries.retain(|job, _| self.by_handle.contains_key(job));
        self.by_handle.retain(|job, _| entries.contains_key(job));
        self.return_without_quantum(&mut entries);
        let mut admitted = entries.values().map(|entry| entry.admitted + 1).max().unwrap_or(0);
        let mut held = vec![Resources::NONE; self.site.len()];
        let mut returned = vec![];
        for id in self.holders() {
            let case = &self.cases[&id];
            let placed = self.place_of(case, cluster.jobs.get(&id), &entries);
            let (Some(placement), Some(job)) = (placed, cluster.jobs.get(&id)) else {
                // It holds none of the nodes that are in service.
                if let Some(handle) = case.handle {
                    entries.remove(&handle);
                    self.by_handle.remove(&handle);
                }
                if let Some(case) = self.cases.get_mut(&id) {
                    case.handle = None;
                }
                continue;
            };
            let has_room = |share: &Share| {
                share.amount.fits_in(&self.site.capacity(share.host).less(&held[share.host.index()]))
            };
            if case.facts.stage != Stage::Running && !placement.shares().iter().all(has_room) {
                returned.extend(
                    case.handle.filter(|job| entries.get(job).is_some_and(|entry| entry.promise.is_some())),
                );
                self.wait_again(at, job, &mut entries);
                continue;
            }
            let handle = case.handle.unwrap_or_else(|| self.unused());
            let case = &self.cases[&id];
            let before = entries.remove(&handle);
            let start = job.start.filter(|_| case.facts.stage == Stage::Running).and_then(Time::from_secs);
            let estimate = self.settings.estimate(job.limit);
            let stood = Desk::stood(self.now, &case.facts);
            let quantum = case.facts.quantum.map(Quantum::until);
            let run = Run { job, number: case.number, start, stood, quantum, estimate, placement };
            let entry = match before {
                Some(before) if case.facts.suspension.is_some() && is_suspended(&before.state) => {
                    suspended(run, before)
                }
                before => running(at, run, before, &mut admitted),
            };
            for share in entry.placement().map(Placement::shares).unwrap_or_default() {
                let has = if is_suspended(&entry.state) { share.amount.without_cpus() } else { share.amount };
                held[share.host.index()] = held[share.host.index()].plus(&has);
            }
            entries.insert(handle, entry);
            self.by_handle.insert(handle, id.clone());
            if let Some(case) = self.cases.get_mut(&id) {
                case.handle = Some(handle);
            }
        }
        self.withdraw_promises(&returned, &mut entries);
        let machine = self.with_groups(self.site.machine(&held));
        for entry in entries.values_mut().filter(|entry| entry.state == State::Waiting) {
            entry.request.submit = entry.request.submit.min(at);
            forget_other_hosts(&machine, entry);
        }
        if let Some(machine) = self.settings.policy.needs().unmet(&machine) {
            return Err(DriveError::Machine { policy: self.settings.policy.to_string(), machine });
        }
        let policy = self.settings.policy.build(&machine, self.settings.seed)?;
        let ledger = Ledger::restored(machine, entries.into_iter().collect())
            .map_err(|rule| DriveError::Ledger(rule.to_string()))?
            .with_state(std::mem::take(&mut self.state));
        let mut driver = Driver::new(ledger, policy, EventOrder::Batched);
        driver.resume(at, None);
        self.driver = Some(driver);
        self.stale = false;
        self.moved.clear();
        round.fault = Some(round.fault.take().unwrap_or(Fault::Hosts));
        Ok(())
    }
}

impl Desk {
    /// Returns the jobs that hold nodes or are about to: those that run, and those that were placed, in the order in which Slurm was
    /// asked.
    fn holders(&self) -> Vec<String> {
        let since = |case: &Case| match case.facts.stage {
            Stage::Waiting => None,
            Stage::Placed { since, .. } => Some(since),
            Stage::Running => Some(i64::MIN),
        };
        let mut holders: Vec<((i64, JobNumber), &String)> =
            self.cases.iter().filter_map(|(id, case)| Some(((since(case)?, case.number), id))).collect();
        holders.sort_unstable();
        holders.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// Returns the place of a job that holds nodes or is about to, if it is in service.
    fn place_of(
        &self,
        case: &Case,
        job: Option<&Job>,
        entries: &BTreeMap<JobId, Entry>,
    ) -> Option<Placement> {
        match &case.facts.stage {
            Stage::Waiting => None,
            Stage::Placed { nodes, .. } => {
                let moved = case.handle.and_then(|handle| self.moved.get(&handle));
                let known = moved.or_else(|| entries.get(&case.handle?)?.placement())?;
                let has = known.shares().iter().map(|share| self.site.name(share.host));
                has.eq(nodes).then(|| known.clone())
            }
            Stage::Running => {
                let on = on_hosts(&self.site, job?, &case.facts.form);
                (!on.is_empty()).then(|| placement(on))
            }
        }
    }

    /// Has jobs wait again that were to run for a quantum and found no node for it.
    fn return_without_quantum(&self, entries: &mut BTreeMap<JobId, Entry>) {
        for (job, entry) in entries {
            let Some(case) = self.by_handle.get(job).and_then(|id| self.cases.get(id)) else { continue };
            let for_quantum = matches!(entry.state, State::Running { quantum: Some(_), .. });
            if for_quantum && case.facts.stage == Stage::Waiting {
                *entry = without_quantum(entry.clone());
            }
        }
    }

    /// Takes the promises back that a policy has given after jobs with promises were placed that wait again. A policy that promises a
    /// start to the first waiting job only would neither plan nor break them: its first one is another one now.
    fn withdraw_promises(&mut self, returned: &[JobId], entries: &mut BTreeMap<JobId, Entry>) {
        let is_waiting = |entry: &Entry| entry.state == State::Waiting;
        let promises_all = entries.values().all(|entry| !is_waiting(entry) || entry.promise.is_some());
        if returned.is_empty() || promises_all {
            return;
        }
        let promised = |(job, entry): &(&JobId, &mut Entry)| {
            is_waiting(entry) && entry.promise.is_some() && !returned.contains(job)
        };
        for (job, entry) in entries.iter_mut().filter(promised) {
            (entry.promise, entry.planned, entry.planned_on) = (None, None, None);
            let Some(id) = self.by_handle.get(job) else { continue };
            let Some(case) = self.cases.get_mut(id) else { continue };
            let broken = case.facts.withdraw_promise("a job before it did not start, and waits again");
            self.found.notes.extend(broken.map(|note| (id.clone(), note)));
        }
    }

    /// Has a placed job wait again in the ledger, with its promise. Another one has more of its nodes than planned, because Slurm
    /// spread it in its own way over the processors that were free at its start.
    fn wait_again(&mut self, at: Time, job: &Job, entries: &mut BTreeMap<JobId, Entry>) {
        // It is put back at the end.
        let Some(mut case) = self.cases.remove(&job.id) else { return };
        case.facts.stage = Stage::Waiting;
        let request = self.request(at, job, &case);
        let before = case.handle.and_then(|handle| entries.remove(&handle));
        if case.facts.quantum.take().is_some() {
            entries.extend(case.handle.zip(before.map(without_quantum)));
        } else if let Some((handle, before)) = case.handle.zip(before) {
            let place = before.placement().cloned();
            let mut entry = Entry { promise: before.promise, ..Entry::waiting(request, before.admitted) };
            if let Some(promise) = &entry.promise {
                (entry.planned, entry.planned_on) = (Some(promise.best), place);
            }
            entries.insert(handle, entry);
        }
        self.cases.insert(job.id.clone(), case);
    }
}

/// Takes changes of jobs into their requests.
fn amend(entries: &mut BTreeMap<JobId, Entry>, amended: impl Iterator<Item = Amendment>) {
    for Amendment { job, change } in amended {
        if let Some(entry) = entries.get_mut(&job) {
            match change {
                Change::Estimate(estimate) => entry.request.estimate = estimate,
                Change::Begin(begin) => entry.request.constraints.begin = begin,
                Change::Sizes(sizes) => entry.request.sizes = Some(sizes),
                Change::Request { request, .. } => entry.request = *request,
            }
        }
    }
}

/// Forgets the planned place of a job that has its hosts to itself, if they have another capacity now.
///
/// So is a place that its form does not permit any more.
fn forget_other_hosts(machine: &Machine, entry: &mut Entry) {
    let alone = entry.request.form.alone || machine.sharing() == Sharing::Whole;
    let is_other = |share: &Share| machine.host(share.host).capacity != share.amount;
    let group = entry.request.form.group;
    let shares = entry.planned_on.as_ref().map(Placement::shares).unwrap_or_default();
    let is_forbidden = |share: &Share| !machine.permits(group, share.host);
    if alone && shares.iter().any(is_other) || shares.iter().any(is_forbidden) {
        (entry.planned, entry.planned_on) = (None, None);
    }
}

/// Returns whether a job has nodes: it starts, runs, is stopped or ends.
pub(super) fn holds_nodes(job: &Job) -> bool {
    job.state != JobState::Pending && !job.on.is_empty()
}

/// Returns the amounts of a job on the hosts in service: on others no job follows it. Without an answer from Slurm, each of its
/// nodes has the same.
pub(super) fn on_hosts(site: &Site, job: &Job, form: &Detail) -> Vec<(HostId, Resources)> {
    let mut on = on_all_hosts(site, job, form);
    on.retain(|(host, _)| site.is_usable(site.name(*host)));
    on
}

/// Returns the placement with these amounts on hosts.
pub(super) fn placement(on: impl IntoIterator<Item = (HostId, Resources)>) -> Placement {
    let share = |(host, amount)| Share { host, amount, pes: Pes::Count };
    let mut shares: Vec<Share> = on.into_iter().map(share).collect();
    shares.sort_by_key(|share| share.host);
    Placement::across(SlotId(0), shares)
}

/// Returns the amounts of a job on the hosts in service and out of service.
pub(super) fn on_all_hosts(site: &Site, job: &Job, form: &Detail) -> Vec<(HostId, Resources)> {
    let each = |node: &String| {
        let host = site.find(node)?;
        if site.is_alone(job, form) {
            return Some((host, site.equipment(host)));
        }
        let held = form.part_on(job, node);
        let memory = if site.hosts_account(Kind::Memory) { held.get(Kind::Memory) } else { 0 };
        let gpus = form.gres_per_node.as_deref().map_or(0, miserly_slurm::gpus);
        let cpus = held.get(Kind::Cpus).max(1);
        let amount = Resources::cpus(cpus).with(Kind::Memory, memory).with(Kind::Gpus, gpus);
        Some((host, amount))
    };
    let mut on: Vec<_> = job.on.iter().filter_map(each).collect();
    on.sort_by_key(|(host, _)| *host);
    on
}

/// A job that holds nodes.
struct Run<'a> {
    job: &'a Job,
    number: JobNumber,
    /// Its start, if Slurm has it.
    start: Option<Time>,
    /// The time for which it was suspended.
    stood: Span,
    /// The end of its quantum, if it runs for one.
    quantum: Option<Time>,
    estimate: Span,
    placement: Placement,
}

impl Run<'_> {
    /// Returns the request of what it holds.
    fn request(&self, start: Time) -> Request {
        let submit = Time::from_secs(self.job.submitted).unwrap_or(start).min(start);
        let demand = self.placement.total();
        Request { user: Some(self.job.user), ..Request::new(self.number, submit, self.estimate, demand) }
    }
}

/// Returns the entry of a job that waits again after a quantum that Slurm did not begin. It has its plan, and no second quantum.
fn without_quantum(entry: Entry) -> Entry {
    Entry { state: State::Waiting, progress: Progress::default(), ..entry }
}

/// Returns the entry of a suspended job: the one before, with what the job holds now.
fn suspended(run: Run<'_>, mut entry: Entry) -> Entry {
    if let State::Suspended { start, placement, .. } = &mut entry.state {
        entry.request = run.request(*start);
        *placement = run.placement;
    }
    entry
}

/// Returns the entry of a job that holds nodes.
fn running(at: Time, run: Run<'_>, before: Option<Entry>, admitted: &mut u64) -> Entry {
    let had = before.as_ref().and_then(|entry| match entry.state {
        State::Running { start, since, .. } => Some((start, since)),
        State::Waiting | State::Suspended { .. } => None,
    });
    // The plans of others begin at the decision. The margin of its limit has the time until it starts.
    let start = had.map(|(start, _)| start).or(run.start).unwrap_or(at).min(at);
    let since = had.map_or(start, |(_, since)| since);
    // After its quantum a job waits again, with the request and the plan that it had.
    let request = before.as_ref().filter(|_| run.quantum.is_some()).map(|before| before.request.clone());
    let request = request.unwrap_or_else(|| run.request(start));
    let procs = request.procs().max(Procs::new(1));
    let mut entry = before.unwrap_or_else(|| {
        *admitted += 1;
        Entry::waiting(request.clone(), *admitted - 1)
    });
    entry.request = request;
    if run.quantum.is_none() {
        (entry.planned, entry.planned_on) = (None, None);
    }
    let end = start + run.stood + entry.planned_span();
    let end = run.quantum.map_or(end, |until| end.min(until));
    let expected = if end > at { Expected::At(end) } else { Expected::Overdue { since: end } };
    let done = work((at - start - run.stood).max(Span::ZERO), procs);
    entry.progress = Progress { done, at, procs, ..Progress::default() };
    let Run { placement, quantum, .. } = run;
    entry.state = State::Running { start, since, expected, placement, released: false, quantum };
    entry
}

#[cfg(test)]
mod tests {
    use miserly_core::{Form, Host, Spread};

    use super::*;

    #[test]
    fn a_place_on_a_whole_host_is_forgotten_with_its_capacity() {
        let machine = |cpus: u64| {
            let host = Host { name: "n".into(), capacity: Resources::cpus(cpus) };
            Machine::new(vec![host.clone(), host]).with_spread(Spread::Any)
        };
        let planned = |alone, machine: &Machine| {
            let form = Form { alone, ..Form::ANY };
            let request = Request { form, ..Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(2)) };
            let share = Share { host: HostId(1), amount: Resources::cpus(4), pes: Pes::Count };
            let place = Placement::across(SlotId(0), vec![share]);
            let mut entry =
                Entry { planned: Some(Time::ZERO), planned_on: Some(place), ..Entry::waiting(request, 0) };
            forget_other_hosts(machine, &mut entry);
            (entry.planned.is_some(), entry.planned_on.is_some())
        };
        assert_eq!(planned(true, &machine(4)), (true, true));
        assert_eq!(planned(true, &machine(16)), (false, false), "the node was drained, and is back");
        assert_eq!(planned(false, &machine(16)), (true, true));
        assert_eq!(planned(false, &machine(16).with_sharing(Sharing::Whole)), (false, false));
    }
}
