//! The ledger, made again from the state of Slurm.
//!
//! That is necessary when nodes change, and when a job has other nodes or processors than the policy gave it: Slurm spreads
//! a job over the processors of its nodes that are free at its start. A placed job without room waits again.

use std::collections::BTreeMap;

use miserly_core::{
    Driver, Entry, EventOrder, Fault, HostId, JobId, JobNumber, Kind, Ledger, Pes, Placement, PolicyState,
    Resources, Round, Share, SlotId, State, Time,
};
use miserly_slurm::{Cluster, Detail, Job, JobState};

use super::Scheduler;
use super::job::{DrivenJob, DrivenState};
use super::ledger_entries::{
    Running, amend, forget_other_hosts, running, suspended, suspended_until, waiting, without_quantum,
};
use super::quanta::is_suspended;
use crate::DriveError;
use crate::instant::instant;
use crate::site::Site;

impl Scheduler {
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
        self.ledger_state = ledger.state();
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
        let mut holdings = Holdings {
            admitted: entries.values().map(|entry| entry.admitted + 1).max().unwrap_or(0),
            entries,
            held: vec![Resources::NONE; self.site.len()],
            returned: vec![],
        };
        for id in self.holders() {
            self.enter_holder(at, &id, cluster.jobs.get(&id), &mut holdings);
        }
        let Holdings { mut entries, held, returned, .. } = holdings;
        self.withdraw_promises(&returned, &mut entries);
        self.make_driver(at, entries, &held)?;
        self.moved.clear();
        round.fault = Some(round.fault.take().unwrap_or(Fault::Hosts));
        Ok(())
    }

    /// Makes the driver of a ledger. `held` are the resources in use on each host.
    fn make_driver(
        &mut self,
        at: Time,
        mut entries: BTreeMap<JobId, Entry>,
        held: &[Resources],
    ) -> Result<(), DriveError> {
        let machine = self.with_groups(self.site.machine(held));
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
            .with_state(std::mem::take(&mut self.ledger_state));
        let mut driver = Driver::new(ledger, policy, EventOrder::Batched);
        driver.resume(at, None);
        self.driver = Some(driver);
        self.rebuild = None;
        Ok(())
    }

    /// Enters a job that holds nodes or is about to. A placed one without room waits again.
    fn enter_holder(&mut self, at: Time, id: &str, job: Option<&Job>, holdings: &mut Holdings) {
        let known = &self.jobs[id];
        let place = self.place_of(known, job, &holdings.entries);
        let (Some(placement), Some(job)) = (place, job) else {
            self.leave_ledger(id, &mut holdings.entries);
            return;
        };
        let has_room = |share: &Share| {
            let used = &holdings.held[share.host.index()];
            share.amount.fits_in(&self.site.capacity(share.host).less(used))
        };
        if !known.is_running() && !placement.shares().iter().all(has_room) {
            let has_promise =
                |handle: &JobId| holdings.entries.get(handle).is_some_and(|entry| entry.promise.is_some());
            let returned = known.handle.filter(has_promise);
            holdings.returned.extend(returned);
            self.return_to_queue(at, job, &mut holdings.entries);
            return;
        }
        let handle = known.handle.unwrap_or_else(|| self.unused_handle());
        let known = &self.jobs[id];
        let before = holdings.entries.remove(&handle);
        let run = self.running(known, job, placement);
        let entry = match before {
            Some(before) if known.is_suspended() && is_suspended(&before.state) => suspended(run, before),
            None if known.is_suspended() && self.settings.policy.needs().requeue => {
                suspended_until(at, running(at, run, None, &mut holdings.admitted))
            }
            before => running(at, run, before, &mut holdings.admitted),
        };
        holdings.hold(&entry);
        holdings.entries.insert(handle, entry);
        self.by_handle.insert(handle, id.to_owned());
        if let Some(known) = self.jobs.get_mut(id) {
            known.handle = Some(handle);
        }
    }

    /// Returns a job that holds nodes or is about to, as it is entered.
    fn running<'a>(&self, known: &DrivenJob, job: &'a Job, placement: Placement) -> Running<'a> {
        Running {
            job,
            number: known.number,
            start: job.start.filter(|_| known.is_running()).map(instant),
            suspended_for: known.suspended_for(self.now),
            quantum: known.quantum(),
            estimate: self.settings.estimate(job.limit),
            placement,
        }
    }

    /// Takes a job out of the ledger that holds none of the nodes in service.
    fn leave_ledger(&mut self, id: &str, entries: &mut BTreeMap<JobId, Entry>) {
        let Some(handle) = self.jobs.get_mut(id).and_then(|known| known.handle.take()) else { return };
        entries.remove(&handle);
        self.by_handle.remove(&handle);
    }

    /// Returns the jobs that hold nodes or are about to: those that run, and those that were placed, in the order of the decisions.
    fn holders(&self) -> Vec<String> {
        // Those that run come first.
        let since = |job: &DrivenJob| match job.state() {
            DrivenState::Waiting(_) => None,
            DrivenState::Running(_) => Some(None),
            DrivenState::Assigned { assignment, .. } | DrivenState::Placed { assignment, .. } => {
                Some(Some(assignment.since))
            }
        };
        let mut holders: Vec<((Option<Time>, JobNumber), &String)> =
            self.jobs.iter().filter_map(|(id, job)| Some(((since(job)?, job.number), id))).collect();
        holders.sort_unstable();
        holders.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// Returns the place of a job that holds nodes or is about to, if it is in service.
    fn place_of(
        &self,
        known: &DrivenJob,
        job: Option<&Job>,
        entries: &BTreeMap<JobId, Entry>,
    ) -> Option<Placement> {
        if known.is_running() {
            let on = on_hosts(&self.site, job?, &known.form);
            return (!on.is_empty()).then(|| placement(on));
        }
        let nodes = &known.assignment()?.nodes;
        let moved = known.handle.and_then(|handle| self.moved.get(&handle));
        let place = moved.or_else(|| entries.get(&known.handle?)?.placement())?;
        let has = place.shares().iter().map(|share| self.site.name(share.host));
        has.eq(nodes).then(|| place.clone())
    }

    /// Has jobs wait again that were to run for a quantum and found no node for it.
    fn return_without_quantum(&self, entries: &mut BTreeMap<JobId, Entry>) {
        for (job, entry) in entries {
            let Some(known) = self.by_handle.get(job).and_then(|id| self.jobs.get(id)) else { continue };
            let is_for_quantum = matches!(entry.state, State::Running { quantum: Some(_), .. });
            if is_for_quantum && known.is_waiting() {
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
            let promise = self.jobs.get_mut(id).and_then(|known| known.promise.as_mut());
            let why = "a job before it did not start, and waits again";
            let broken = promise.and_then(|promise| promise.withdraw(why));
            self.found.notes.extend(broken.map(|note| (id.clone(), note)));
        }
    }

    /// Has a placed job wait again in the ledger, with its promise. Another one has more of its nodes than planned, because Slurm
    /// spread it in its own way over the processors that were free at its start.
    fn return_to_queue(&mut self, at: Time, job: &Job, entries: &mut BTreeMap<JobId, Entry>) {
        // It is put back at the end.
        let Some(mut known) = self.jobs.remove(&job.id) else { return };
        let is_for_quantum = known.quantum().is_some();
        known.wait_again();
        let request = self.request(at, job, &known);
        if let Some((handle, before)) =
            known.handle.and_then(|handle| Some((handle, entries.remove(&handle)?)))
        {
            let entry = if is_for_quantum { without_quantum(before) } else { waiting(&before, request) };
            entries.insert(handle, entry);
        }
        self.jobs.insert(job.id.clone(), known);
    }
}

/// The jobs that hold nodes in a ledger that is made.
struct Holdings {
    entries: BTreeMap<JobId, Entry>,
    /// The resources in use on each host.
    held: Vec<Resources>,
    /// The number of the next admission.
    admitted: u64,
    /// The jobs with promises that wait again.
    returned: Vec<JobId>,
}

impl Holdings {
    fn hold(&mut self, entry: &Entry) {
        for share in entry.placement().map(Placement::shares).unwrap_or_default() {
            let has = if is_suspended(&entry.state) { share.amount.without_cpus() } else { share.amount };
            self.held[share.host.index()] = self.held[share.host.index()].plus(&has);
        }
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
