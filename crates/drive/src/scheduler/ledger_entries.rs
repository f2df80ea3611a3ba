//! Entries of a ledger that is made again.

use std::collections::BTreeMap;

use miserly_core::{
    Amendment, Change, Entry, Expected, Holds, JobId, JobNumber, Machine, Placement, Procs, Progress,
    Request, Share, Sharing, Span, State, Time, work,
};
use miserly_slurm::Job;

use crate::instant::instant;

/// Takes changes of jobs into their requests.
pub(super) fn amend(entries: &mut BTreeMap<JobId, Entry>, amended: impl Iterator<Item = Amendment>) {
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
pub(super) fn forget_other_hosts(machine: &Machine, entry: &mut Entry) {
    let alone = entry.request.form.alone || machine.sharing() == Sharing::Whole;
    let is_other = |share: &Share| machine.host(share.host).capacity != share.amount;
    let group = entry.request.form.group;
    let shares = entry.planned_on.as_ref().map(Placement::shares).unwrap_or_default();
    let is_forbidden = |share: &Share| !machine.permits(group, share.host);
    if alone && shares.iter().any(is_other) || shares.iter().any(is_forbidden) {
        (entry.planned, entry.planned_on) = (None, None);
    }
}

/// A job that holds nodes.
pub(super) struct Running<'a> {
    pub(super) job: &'a Job,
    pub(super) number: JobNumber,
    /// Its start, if Slurm has it.
    pub(super) start: Option<Time>,
    /// The time for which it was suspended.
    pub(super) suspended_for: Span,
    /// The end of its quantum, if it runs for one.
    pub(super) quantum: Option<Time>,
    pub(super) estimate: Span,
    pub(super) placement: Placement,
}

impl Running<'_> {
    /// Returns the request of what it holds.
    fn request(&self, start: Time) -> Request {
        let submit = instant(self.job.submitted).min(start);
        let demand = self.placement.total();
        Request { user: Some(self.job.user), ..Request::new(self.number, submit, self.estimate, demand) }
    }
}

/// Returns the entry of a job that waits again after a quantum that Slurm did not begin. It has its plan, and no second quantum.
pub(super) fn without_quantum(entry: Entry) -> Entry {
    Entry { state: State::Waiting, progress: Progress::default(), ..entry }
}

/// Returns the entry of a placed job that waits again, with its promise.
pub(super) fn waiting(before: &Entry, request: Request) -> Entry {
    let place = before.placement().cloned();
    let mut entry = Entry { promise: before.promise, ..Entry::waiting(request, before.admitted) };
    if let Some(promise) = &entry.promise {
        (entry.planned, entry.planned_on) = (Some(promise.best), place);
    }
    entry
}

/// Returns the entry of a suspended job: the one before, with what the job holds now.
pub(super) fn suspended(run: Running<'_>, mut entry: Entry) -> Entry {
    if let State::Suspended { start, placement, .. } = &mut entry.state {
        entry.request = run.request(*start);
        *placement = run.placement;
    }
    entry
}

/// Returns the entry of a job that runs as that of one that the policy may resume from this instant on. Its node was out of service, and
/// may have other jobs on its processors.
pub(super) fn suspended_until(until: Time, entry: Entry) -> Entry {
    match entry.state {
        State::Running { start, placement, .. } => {
            let state = State::Suspended { start, until, by: u64::MAX, placement, holds: Holds::AllButCpus };
            let progress = Progress { procs: Procs::ZERO, ..entry.progress };
            Entry { state, progress, ..entry }
        }
        _ => entry,
    }
}

/// Returns the entry of a job that holds nodes.
pub(super) fn running(at: Time, run: Running<'_>, before: Option<Entry>, admitted: &mut u64) -> Entry {
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
    let end = start + run.suspended_for + entry.planned_span();
    let end = run.quantum.map_or(end, |until| end.min(until));
    let expected = if end > at { Expected::At(end) } else { Expected::Overdue { since: end } };
    let done = work((at - start - run.suspended_for).max(Span::ZERO), procs);
    entry.progress = Progress { done, at, procs, ..Progress::default() };
    let Running { placement, quantum, .. } = run;
    entry.state = State::Running { start, since, expected, placement, released: false, quantum };
    entry
}

#[cfg(test)]
mod tests {
    use miserly_core::{Form, Host, HostId, Pes, Resources, SlotId, Spread};

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
