//! The changes of the ledger. Each is checked first.

use super::{Entry, Expected, Ledger, Pace, Part, Promise, State};
use crate::violation::Rule;
use crate::{
    BreachCause, Change, Demand, FreeHosts, HostId, JobId, PartCounter, Persistent, Pes, Placement,
    PolicyState, Prediction, Procs, Request, Resources, Share, Sharing, Span, Spread, Time,
};

/// The resources of which a placement may have less than the request, with at least one processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartialAllocation {
    /// None.
    Nothing,
    /// Processors.
    Cpus,
    /// All.
    All,
}

impl Ledger {
    pub(crate) fn admit(&mut self, job: JobId, request: Request) -> Result<(), Rule> {
        self.insert(job, Entry::waiting(request, self.admissions))?;
        self.touch(job);
        self.admissions += 1;
        self.waiting += 1;
        Ok(())
    }

    /// Restores a job of an earlier ledger.
    pub(super) fn take_back(&mut self, job: JobId, entry: Entry) -> Result<(), Rule> {
        match &entry.state {
            State::Waiting => self.waiting += 1,
            State::Running { placement, released, expected, .. } => {
                if *released {
                    self.released += 1;
                } else {
                    self.take(placement, Part::All)?;
                }
                self.overdue_seen |= matches!(expected, Expected::Overdue { .. });
                self.running.insert(job);
            }
            State::Suspended { placement, holds, .. } => {
                self.take(placement, holds.part())?;
                self.suspended.insert(job);
            }
        }
        self.overdue_seen |=
            entry.promise.is_some_and(|promise| promise.breach == Some(BreachCause::Overdue));
        self.admissions = self.admissions.max(entry.admitted + 1);
        self.decisions = self.decisions.max(entry.decided);
        self.insert(job, entry)
    }

    fn insert(&mut self, job: JobId, entry: Entry) -> Result<(), Rule> {
        if self.get(job).is_some() {
            return Err(Rule::HandleInUse);
        }
        if self.jobs.len() <= job.index() {
            self.jobs.resize_with(job.index() + 1, || None);
        }
        self.jobs[job.index()] = Some(entry);
        Ok(())
    }

    /// Starts a job, for a quantum if one is given. Returns the span for which it may hold its
    /// resources.
    pub(crate) fn start(
        &mut self,
        job: JobId,
        now: Time,
        placement: Placement,
        short: PartialAllocation,
        quantum: Option<Time>,
    ) -> Result<Span, Rule> {
        let entry = self.get(job).ok_or(Rule::UnknownJob)?;
        if entry.state != State::Waiting {
            return Err(Rule::NotWaiting);
        }
        if now < entry.request.submit {
            return Err(Rule::StartBeforeSubmit);
        }
        if entry.has_missed_promise(now) {
            return Err(Rule::PromiseMissed);
        }
        if quantum.is_some_and(|until| until <= now) {
            return Err(Rule::NoQuantum);
        }
        let procs = self.working_with(&entry.request, &placement, short)?;
        let placement = self.named(placement);
        self.take(&placement, Part::All)?;
        let charge = self.charge(job);
        let pace = self.matrix.as_ref().map_or(Pace::WHOLE, |matrix| matrix.pace(1));
        let entry = self.entry_mut(job);
        entry.opportunistic.go_on(now, Procs::ZERO);
        entry.progress.go_on(now, procs);
        entry.progress.go_on_at(now, pace);
        let until_quantum = |left: Span| quantum.map_or(left, |until| left.min(until - now));
        let allowed = until_quantum(entry.left(now, procs));
        let expected = Expected::At(now + until_quantum(entry.planned_left(now, procs)));
        entry.state =
            State::Running { start: now, since: now, expected, placement, released: false, quantum };
        self.waiting -= 1;
        self.running.insert(job);
        self.recharge(job, now, charge);
        Ok(allowed)
    }

    /// Returns the number of processors that work for a job on this placement, or the rule that
    /// forbids it. A job of a form gets all of its request.
    pub(super) fn working_with(
        &self,
        request: &Request,
        placement: &Placement,
        short: PartialAllocation,
    ) -> Result<Procs, Rule> {
        let demand = self.machine.demand(request);
        self.check_demanded_devices(&demand, placement)?;
        if self.machine.spread() == Spread::One && placement.shares().len() != 1 {
            return Err(Rule::TooManyHosts);
        }
        if !demand.has_any_form() {
            let has = self.has_form(placement, &demand);
            return if has { Ok(request.procs()) } else { Err(Rule::WrongForm) };
        }
        // Rounding up adds processors that do no work.
        let (total, amount) = (placement.total(), demand.amount());
        let enough = match short {
            PartialAllocation::Nothing => total == amount,
            PartialAllocation::Cpus => {
                !total.cpus_count().is_zero() && total.without_cpus() == amount.without_cpus()
            }
            PartialAllocation::All => !total.cpus_count().is_zero(),
        };
        match self.machine.sharing() {
            Sharing::Shared if enough && total.fits_in(&amount) => {
                Ok(total.cpus_count().min(request.procs()))
            }
            Sharing::Whole if self.holds_whole(placement, &demand) => {
                Ok(demand.cpus_count().min(request.procs()))
            }
            _ => Err(Rule::WrongAmount),
        }
    }

    /// Returns whether these are whole hosts with enough resources for the job.
    fn holds_whole(&self, placement: &Placement, demand: &Demand) -> bool {
        let hosts = self.machine.hosts();
        let whole = |share: &Share| hosts.get(share.host.index()).is_some_and(|h| h.capacity == share.amount);
        placement.shares().iter().all(whole) && room(placement, demand) >= demand.parts()
    }

    /// Returns whether a placement is of the form that is demanded: whole numbers of parts, each share on another host, and all
    /// on permitted hosts.
    fn has_form(&self, placement: &Placement, demand: &Demand) -> bool {
        let (shares, machine) = (placement.shares(), &self.machine);
        let alone = demand.is_alone() || machine.sharing() == Sharing::Whole;
        let counter = PartCounter::new(demand);
        // The number of parts on the host of a share, if its amount is right.
        let parts_of = |share: &Share| {
            let capacity = machine.hosts().get(share.host.index())?.capacity;
            if !machine.permits(demand.group(), share.host) {
                return None;
            }
            let parts = counter.parts_in(&share.amount, if alone { &capacity } else { &share.amount });
            let amount = if alone { capacity } else { demand.part(0, parts) };
            (parts > 0 && share.amount == amount).then_some(parts)
        };
        let parts = shares.iter().map(parts_of).try_fold(0, |sum: u64, parts| sum.checked_add(parts?));
        let enough = match parts {
            // More may fit on the last of whole hosts.
            Some(parts) if alone && !demand.is_apart() => parts >= demand.parts(),
            parts => parts == Some(demand.parts()),
        };
        let mut hosts: Vec<HostId> = shares.iter().map(|share| share.host).collect();
        hosts.sort_unstable();
        enough && hosts.windows(2).all(|pair| pair[0] < pair[1])
    }

    /// Takes a part of each share: all of it, or nothing where too little is free.
    pub(super) fn take(&mut self, placement: &Placement, part: Part) -> Result<(), Rule> {
        if part.has_cpus() {
            self.check_slot(placement)?;
            self.check_pes(placement)?;
        }
        self.take_devices(placement, part)?;
        let by_host = self.by_host(part);
        let Ledger { free, machine, .. } = self;
        for (done, share) in placement.shares().iter().enumerate() {
            let left = match free.each().get(share.host.index()) {
                Some(room) => room.minus(&by_host.select(share.amount)).ok_or(Rule::OverCommitted),
                None => Err(Rule::NoSuchHost),
            };
            match left {
                Ok(left) => free.set(machine, share.host, left),
                Err(rule) => {
                    for share in &placement.shares()[..done] {
                        free.set(
                            machine,
                            share.host,
                            free.on(share.host).plus(&by_host.select(share.amount)),
                        );
                    }
                    self.give_devices(placement, part);
                    return Err(rule);
                }
            }
        }
        if part.has_cpus() {
            self.take_pes(placement);
            self.take_in_slot(placement);
        }
        Ok(())
    }

    /// Returns the part that is counted by host. Where time is sliced, the slots count the
    /// processors.
    pub(super) fn by_host(&self, part: Part) -> Part {
        if self.matrix.is_some() { part.without_cpus() } else { part }
    }

    pub(super) fn give(&mut self, placement: &Placement, part: Part) {
        self.give_devices(placement, part);
        let by_host = self.by_host(part);
        let Ledger { free, machine, missing, .. } = self;
        for share in placement.shares() {
            // Resources that the machine has lost are not free when they are released.
            let amount = by_host.select(share.amount);
            let owed = amount.least(missing);
            *missing = missing.less(&owed);
            free.set(machine, share.host, free.on(share.host).plus(&amount.less(&owed)));
        }
        if part.has_cpus() {
            self.give_pes(placement);
            self.give_in_slot(placement);
        }
    }

    /// Sets the capacity of the machine, which is one host. Jobs keep their holdings, even if these
    /// are larger.
    pub(crate) fn set_capacity(&mut self, capacity: Resources) -> Result<(), Rule> {
        let [host] = self.machine.hosts() else { return Err(Rule::NoSuchHost) };
        let held = host.capacity.plus(&self.missing).less(&self.free.on(HostId(0)));
        self.machine = self.machine.clone().with_capacity(capacity);
        self.free = FreeHosts::new(&self.machine, vec![capacity.less(&held)]);
        self.missing = held.less(&capacity);
        if self.matrix.is_some() {
            self.missing = self.missing.without_cpus();
        }
        self.count_pes();
        self.rebuild_slots();
        Ok(())
    }

    /// Frees the resources of a job ahead of its end, which is certain for this instant.
    pub(crate) fn release(&mut self, job: JobId, now: Time) -> Result<(), Rule> {
        let charge = self.charge(job);
        let State::Running { placement, released, .. } = &mut self.checked_mut(job)?.state else {
            return Err(Rule::NotRunning);
        };
        if !std::mem::replace(released, true) {
            let placement = placement.clone();
            self.released += 1;
            self.leave_alternate_slots(job);
            self.give(&placement, Part::All);
            self.recharge(job, now, charge);
        }
        Ok(())
    }

    /// Removes a job that ended from the ledger. It may have been suspended or requeued at the
    /// instant of its end.
    pub(crate) fn end(&mut self, job: JobId, now: Time) -> Result<(), Rule> {
        match &self.get(job).ok_or(Rule::UnknownJob)?.state {
            State::Running { placement, .. } => {
                let slot = placement.slot;
                self.release(job, now)?;
                self.released -= 1;
                self.note_vacated_slot(slot);
                self.running.remove(job);
            }
            State::Suspended { placement, holds, .. } => {
                let (placement, held) = (placement.clone(), holds.part());
                self.give(&placement, held);
                self.suspended.remove(job);
            }
            State::Waiting => self.waiting -= 1,
        }
        self.touch(job);
        // A job that was being swapped out held its processors until now.
        let charge = self.charge(job);
        self.jobs[job.index()] = None;
        self.recharge(job, now, charge);
        Ok(())
    }

    /// Removes a job that will never start from the ledger.
    pub(crate) fn refuse(&mut self, job: JobId) -> Result<(), Rule> {
        if self.checked_mut(job)?.state != State::Waiting {
            return Err(Rule::NotWaiting);
        }
        self.waiting -= 1;
        self.jobs[job.index()] = None;
        Ok(())
    }

    /// Gives a running job another number of processors of its host and updates its expected end.
    pub(crate) fn resize(&mut self, job: JobId, now: Time, procs: Procs) -> Result<(), Rule> {
        let entry = self.get(job).ok_or(Rule::UnknownJob)?;
        let State::Running { start, since, ref placement, expected, released: false, quantum } = entry.state
        else {
            return Err(Rule::NotRunning);
        };
        let [share] = placement.shares() else { return Err(Rule::OtherHost) };
        if share.pes != Pes::Count {
            return Err(Rule::WrongPes);
        }
        let (host, amount, held) = (share.host, share.amount, share.amount.cpus_count());
        let new = Placement::on(host, amount.with_cpus(procs)).with_devices(placement.devices().to_vec());
        let charge = self.charge(job);
        let working = self.working_with(&entry.request, &new, PartialAllocation::All)?;
        let expected = match expected {
            Expected::At(_) => {
                let end = now + entry.planned_left(now, working);
                Expected::At(quantum.map_or(end, |until| end.min(until)))
            }
            overdue @ Expected::Overdue { .. } => overdue,
        };
        // Only the difference: processors that are given back replace lost ones first.
        let part = |procs: Procs| Placement::on(host, amount.with_cpus(procs));
        match procs.checked_sub(held) {
            Some(more) => self.take(&part(more), Part::Cpus)?,
            None => self.give(&part(held - procs), Part::Cpus),
        }
        let entry = self.entry_mut(job);
        entry.progress.go_on(now, working);
        entry.state = State::Running { start, since, expected, placement: new, released: false, quantum };
        self.recharge(job, now, charge);
        Ok(())
    }

    /// Takes a running job off the machine and returns it to the queue. Returns the lost work.
    pub(crate) fn requeue(&mut self, job: JobId, now: Time, keep_work: bool) -> Result<u128, Rule> {
        let charge = self.charge(job);
        let entry = self.checked_mut(job)?;
        let State::Running { ref placement, released: false, .. } = entry.state else {
            return Err(Rule::NotRunning);
        };
        let placement = placement.clone();
        entry.progress.go_on(now, Procs::ZERO);
        entry.progress.go_on_at(now, Pace::WHOLE);
        let lost = if keep_work { 0 } else { entry.progress.lose() };
        entry.state = State::Waiting;
        self.leave_alternate_slots(job);
        self.give(&placement, Part::All);
        self.running.remove(job);
        self.waiting += 1;
        self.recharge(job, now, charge);
        Ok(lost)
    }

    /// Marks a running job whose expected end has passed.
    pub(crate) fn overdue(&mut self, job: JobId) -> Result<(), Rule> {
        match &mut self.checked_mut(job)?.state {
            State::Running { expected, .. } => {
                if let Expected::At(since) = *expected {
                    *expected = Expected::Overdue { since };
                }
            }
            State::Waiting | State::Suspended { .. } => return Err(Rule::NotRunning),
        }
        self.overdue_seen = true;
        Ok(())
    }

    /// Records a promise. Returns whether it is the first one or an earlier one.
    pub(crate) fn promise(&mut self, job: JobId, latest: Time) -> Result<bool, Rule> {
        let entry = self.waiting_mut(job)?;
        match &mut entry.promise {
            None => entry.promise = Some(Promise { first: latest, best: latest, breach: None }),
            Some(promise) if latest < promise.best => promise.best = latest,
            Some(promise) if latest == promise.best => return Ok(false),
            Some(_) => return Err(Rule::PromiseMovedLater),
        }
        self.rank_decision(job);
        Ok(true)
    }

    /// Gives the decision on the start of this job the highest rank.
    fn rank_decision(&mut self, job: JobId) {
        self.decisions += 1;
        if let Some(Some(entry)) = self.jobs.get_mut(job.index()) {
            entry.decided = self.decisions;
        }
    }

    pub(crate) fn break_promise(&mut self, job: JobId, latest: Time) -> Result<BreachCause, Rule> {
        let why = self
            .breach_cause
            .or(self.overdue_seen.then_some(BreachCause::Overdue))
            .ok_or(Rule::BrokenWithoutCause)?;
        let entry = self.checked_mut(job)?;
        let Some(promise) = &mut entry.promise else { return Err(Rule::BrokenWithoutCause) };
        if latest <= promise.best {
            return Err(Rule::BrokenWithoutCause);
        }
        promise.best = latest;
        promise.breach.get_or_insert(why);
        self.rank_decision(job);
        Ok(why)
    }

    /// Changes the request of a waiting or running job.
    pub(crate) fn amend(&mut self, job: JobId, now: Time, change: Change) -> Result<(), Rule> {
        let entry = self.checked_mut(job)?;
        match change {
            Change::Begin(begin) => entry.request.constraints.begin = begin,
            Change::Estimate(estimate) => entry.request.estimate = estimate,
            Change::Request { request, keeps_promise } => entry.replace_request(*request, keeps_promise)?,
            Change::Sizes(sizes) => {
                entry.request.sizes = Some(sizes);
                return Ok(());
            }
        }
        let end = now + entry.planned_left(now, entry.working());
        if let State::Running { expected, quantum, .. } = &mut entry.state {
            *expected = Expected::At(quantum.map_or(end, |until| until.min(end)));
        }
        Ok(())
    }

    /// Sets the prediction of a job that waits or runs. Returns the new expected end of a running job,
    /// if it changed.
    pub(crate) fn predict(
        &mut self,
        job: JobId,
        now: Time,
        prediction: Prediction,
    ) -> Result<Option<Time>, Rule> {
        let entry = self.checked_mut(job)?;
        entry.prediction = Some(prediction);
        let left = entry.planned_left(now, entry.working());
        match &mut entry.state {
            State::Running { expected, quantum, released: false, .. } => {
                let end = quantum.map_or(now + left, |until| until.min(now + left));
                let changed = *expected != Expected::At(end);
                *expected = Expected::At(end);
                Ok(changed.then_some(end))
            }
            State::Waiting => Ok(None),
            State::Running { .. } | State::Suspended { .. } => Err(Rule::NotRunning),
        }
    }

    /// Drops all predictions, for a policy that makes none. A running job whose prediction was too
    /// short is no longer overdue.
    pub(crate) fn drop_predictions(&mut self) {
        let predicted = |entry: &&Entry| entry.prediction.is_some();
        let all = self.running().chain(self.suspended()).chain(self.waiting());
        let all: Vec<JobId> = all.filter(|job| predicted(&self.entry(*job))).collect();
        for job in all {
            let entry = self.entry_mut(job);
            entry.prediction = None;
            let at = entry.progress.at;
            let end = at + entry.progress.left(at, entry.allowed(), entry.working());
            if let State::Running { expected, quantum: None, .. } = &mut entry.state {
                expected.set(end);
            }
        }
    }

    /// Sets the idle processors of a waiting job, ahead of its start. Returns whether their number
    /// changed.
    pub(crate) fn set_opportunistic_procs(&mut self, job: JobId, now: Time, procs: Procs) -> bool {
        let waits = self.get(job).is_some_and(|entry| entry.state == State::Waiting);
        if !waits || self.entry(job).opportunistic.procs == procs {
            return false;
        }
        self.entry_mut(job).opportunistic.go_on(now, procs);
        true
    }

    /// Lets jobs that run for a quantum run for their whole time, for a policy that gives no quanta. One that is overdue at the end
    /// of its quantum no longer is.
    pub(crate) fn drop_quanta(&mut self) {
        let in_quantum =
            |job: &JobId| matches!(self.entry(*job).state, State::Running { quantum: Some(_), .. });
        for job in self.running().filter(in_quantum).collect::<Vec<_>>() {
            let entry = self.entry_mut(job);
            let at = entry.progress.at;
            let end = at + entry.planned_left(at, entry.working());
            if let State::Running { expected, quantum, .. } = &mut entry.state {
                *quantum = None;
                expected.set(end);
            }
        }
    }

    /// Sets the cause for which promises may be broken from now on. Overdue jobs are a cause in any
    /// case.
    pub(crate) fn set_breach_cause(&mut self, why: Option<BreachCause>) {
        self.breach_cause = why;
    }

    /// Records the intended start of a job. Returns whether it is another one than before.
    pub(crate) fn plan(&mut self, job: JobId, start: Time, on: Option<Placement>) -> Result<bool, Rule> {
        let entry = self.checked_mut(job)?;
        if matches!(entry.state, State::Running { .. }) {
            return Err(Rule::NotWaiting);
        }
        if entry.planned == Some(start) && entry.planned_on == on {
            return Ok(false);
        }
        entry.planned = Some(start);
        entry.planned_on = on;
        self.rank_decision(job);
        Ok(true)
    }

    pub(crate) fn set_job_state<T: Persistent>(&mut self, job: JobId, value: &T) -> Result<(), Rule> {
        self.checked_mut(job)?.policy_state.set(value);
        Ok(())
    }

    pub(crate) fn set_policy_state<T: Persistent>(&mut self, value: &T) {
        self.policy_state.set(value);
    }

    pub(crate) fn set_host_state<T: Persistent>(&mut self, host: HostId, value: &T) -> Result<(), Rule> {
        let hosts = self.machine.hosts().len();
        if host.index() >= hosts {
            return Err(Rule::NoSuchHost);
        }
        self.host_states.resize(hosts, PolicyState::EMPTY);
        self.host_states[host.index()].set(value);
        Ok(())
    }

    pub(crate) fn set_user_state<T: Persistent>(&mut self, user: u32, value: &T) {
        let state = self.user_states.entry(user).or_default();
        state.set(value);
        if state.is_empty() {
            self.user_states.remove(&user);
        }
    }

    fn waiting_mut(&mut self, job: JobId) -> Result<&mut Entry, Rule> {
        let entry = self.checked_mut(job)?;
        if entry.state == State::Waiting { Ok(entry) } else { Err(Rule::NotWaiting) }
    }

    pub(super) fn checked_mut(&mut self, job: JobId) -> Result<&mut Entry, Rule> {
        self.touch(job);
        self.jobs.get_mut(job.index()).and_then(Option::as_mut).ok_or(Rule::UnknownJob)
    }

    pub(super) fn entry_mut(&mut self, job: JobId) -> &mut Entry {
        self.touch(job);
        self.jobs[job.index()].as_mut().expect("the caller has just read the entry")
    }
}

/// Returns the number of parts of the job that fit in the shares, taken in order. O(parts).
fn room(placement: &Placement, demand: &Demand) -> u64 {
    let mut done = 0;
    for share in placement.shares() {
        let from = done;
        while done < demand.parts() && demand.part(from, done + 1).fits_in(&share.amount) {
            done += 1;
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Form, Host, Machine, SlotId};

    /// Returns the rule that forbids a job of this form on these processors of hosts with 8, 8 and 4.
    fn refused(procs: u64, form: Form, on: &[(u32, u64)]) -> Option<Rule> {
        let host = |cpus: u64| Host { name: String::new(), capacity: Resources::cpus(cpus) };
        let mut ledger = Ledger::new(Machine::new([8, 8, 4].map(host).into()).with_spread(Spread::Any));
        let request = Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(procs));
        ledger.admit(JobId(0), Request { form, ..request }).unwrap();
        let share = |&(host, cpus): &(u32, u64)| Share {
            host: HostId(host),
            amount: Resources::cpus(cpus),
            pes: Pes::Count,
        };
        let placement = Placement::across(SlotId(0), on.iter().map(share).collect());
        ledger.start(JobId(0), Time::ZERO, placement, PartialAllocation::Nothing, None).err()
    }

    #[test]
    fn a_placement_has_the_form_of_the_request() {
        let wrong = Some(Rule::WrongForm);
        assert_eq!(refused(6, Form::ANY, &[(0, 4), (1, 2)]), None);
        let apart = Form { apart: true, ..Form::parts(2) };
        assert_eq!(refused(6, apart, &[(0, 3), (1, 3)]), None);
        assert_eq!(refused(5, apart, &[(0, 3), (1, 3)]), None, "rounded up");
        let others: [&[(u32, u64)]; 4] = [&[(0, 6)], &[(0, 4), (1, 2)], &[(0, 3), (0, 3)], &[(0, 3), (7, 3)]];
        assert_eq!(others.map(|on| refused(6, apart, on)), [wrong; 4]);
        let three = Form::parts(3);
        assert_eq!(refused(6, three, &[(0, 4), (2, 2)]), None);
        assert_eq!([refused(6, three, &[(0, 3), (1, 3)]), refused(6, three, &[(0, 4)])], [wrong; 2]);
        let alone = Form { alone: true, ..Form::ANY };
        assert_eq!([refused(6, alone, &[(0, 8)]), refused(12, alone, &[(0, 8), (2, 4)])], [None; 2]);
        assert_eq!([refused(6, alone, &[(0, 6)]), refused(6, alone, &[(2, 4)])], [wrong; 2]);
        let both = Form { alone: true, ..apart };
        assert_eq!(refused(6, both, &[(0, 8), (2, 4)]), None);
        assert_eq!([refused(6, both, &[(0, 8)]), refused(6, both, &[(0, 8), (1, 8), (2, 4)])], [wrong; 2]);
    }
}
