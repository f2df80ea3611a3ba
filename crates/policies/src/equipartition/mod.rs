//! Spatial equipartitioning (Chiang, Vernon 2001, §2.5).

mod rules;

mod division;

mod host;

mod catch_up;

mod placement;

mod repartition;

mod policy;

mod state;

pub use policy::EQSPATIAL;
pub use rules::Rules;
pub use state::{MissedWork, Repartitioned};

use miserly_core::{
    Context, Entry, Event, HostId, JobId, Ledger, Placement, Policy, Procs, Resources, Span, State, Time,
    Violation,
};

use self::catch_up::missed;
use self::host::{Assigned, Host};
use self::state::AssignedHost;

/// Spatial equipartitioning: the jobs of a host share its processors as equally as their requests
/// allow (Chiang and Vernon §2.5).
///
/// A job is placed once, on a host with sufficient memory. That is the host with the fewest
/// unallocated processors that are enough. Otherwise it is the one with the most processors per
/// requested processor. A host has at most one job for each processor. Jobs wait in the order of
/// arrival, and jobs that fit on no host are skipped. Hosts are shared, and a job runs on one of
/// them.
///
/// A request may bound the sizes of its job ([`Sizes`](miserly_core::Sizes)); the paper has no such
/// bounds. The least number takes the place of the one processor that each job has at least. A host
/// that has lost too many processors for that resizes no job.
///
/// The paper leaves these cases open:
/// - **Leftover processors** go to the jobs that were admitted first, one each.
/// - **A job that requests more processors than a host has** may be placed there: its request is a
///   maximum.
/// - **A repartitioning** is a change of a running job's processors. A start beside the others is
///   none.
/// - **A job that arrives while a host waits for its minimum interval** takes its request from the
///   unallocated processors, or all that are available. If there is none it stays assigned to the
///   host, memory included. It starts on the first released processor, or at the repartitioning.
/// - **The quantum** uses the same placement with little memory. The job has its requested
///   processors at once, like a job that catches up. The host is repartitioned without waiting,
///   both when the quantum begins and when it ends. Only arriving jobs get it, and only if they
///   have no placement otherwise.
/// - **The work that a waiting job misses** is counted as its equal share of the host on which it
///   would be placed if memory did not matter, as of each event. **It catches up** with its
///   processors beyond its equal share of its host.
/// - **Jobs with priority** (in a quantum, catching up, or long) get their full requests. They
///   divide the host equally if they request too much, so that each other job has one processor.
///
/// With n jobs on a host, h hosts and w jobs in the queue, each affected host costs O(n log n).
/// Each placement costs O(h). The missed work costs O(w (h + n log n)) in a pass.
///
/// # Source
/// Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, IPDPS 2001.
#[derive(Debug)]
pub struct Equipartition {
    rules: Rules,
    hosts: Vec<Host>,
    /// The jobs without a host, in the order of their admission.
    queue: Vec<Queued>,
    /// Whether the requested wake-up has arrived, or may have before the policy was rebuilt.
    ///
    /// Quanta are ended only then, so that a job that ends at the same instant is already known to
    /// have ended.
    timer: bool,
}

/// A job without a host.
#[derive(Clone, Copy, Debug)]
struct Queued {
    admitted: u64,
    job: JobId,
    /// The processors that it would have now.
    share: Procs,
    /// Whether it arrived since the last pass.
    fresh: bool,
}

impl Equipartition {
    /// Returns equipartitioning by these rules.
    pub const fn new(rules: Rules) -> Equipartition {
        Equipartition { rules, hosts: Vec::new(), queue: Vec::new(), timer: false }
    }

    /// Requeues the jobs whose quantum is over.
    fn end_quanta(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        for host in self.hosts.iter_mut().filter(|host| host.needs_look(now)) {
            host.count(context, &self.rules)?;
            for Assigned { job, admitted, .. } in host.jobs.clone() {
                if is_over(context.ledger().entry(job), now) {
                    context.requeue(job, self.rules.keep_work)?;
                    host.leave(job);
                    host.is_immediate = true;
                    let place = self.queue.partition_point(|other| other.admitted < admitted);
                    self.queue.insert(place, Queued { admitted, job, share: Procs::ZERO, fresh: false });
                }
            }
        }
        Ok(())
    }

    /// Records the work that waiting jobs have missed since the last pass.
    fn count_missed(&self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        for queued in self.queue.iter().filter(|queued| !queued.fresh) {
            let missed = missed(context.ledger().entry(queued.job), queued.share, now);
            context.set_job_state(queued.job, &missed)?;
        }
        Ok(())
    }

    /// Updates the hosts that were affected by events to this instant.
    fn look(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let (now, first) = (context.now(), self.first());
        for host in self.hosts.iter_mut().filter(|host| host.needs_look(now)) {
            host.touched = true;
            host.count(context, &self.rules)?;
            host.survey(now, context.ledger(), &self.rules);
            if !host.is_due(now, context.ledger(), &self.rules) {
                host.start_on_unallocated(context, &self.rules, first)?;
            }
        }
        Ok(())
    }

    /// Assigns hosts to the jobs in the queue, or at least a quantum to new arrivals.
    fn place(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        for queued in std::mem::take(&mut self.queue) {
            let quantum = queued.fresh && self.rules.quantum > Span::ZERO;
            let assigned = self.assign(context, queued.job, false)?
                || (quantum && self.assign(context, queued.job, true)?);
            if !assigned {
                self.queue.push(Queued { fresh: false, ..queued });
                let missed = missed(context.ledger().entry(queued.job), Procs::ZERO, context.now());
                context.set_job_state(queued.job, &missed)?;
            }
        }
        Ok(())
    }

    /// Assigns a job to the best host, for a quantum or permanently. Returns whether there was one.
    fn assign(
        &mut self,
        context: &mut Context<'_>,
        job: JobId,
        for_quantum: bool,
    ) -> Result<bool, Violation> {
        let (now, first) = (context.now(), self.first());
        let need = self.rules.need(context.ledger(), job, for_quantum);
        let least = context.ledger().request(job).sizes().least;
        let best = placement::best(&self.hosts, now, context.ledger(), &self.rules, &need, least);
        let Some(host) = best.and_then(|at| self.hosts.get_mut(at)) else { return Ok(false) };
        host.count(context, &self.rules)?;
        host.join(Assigned::new(job, context.ledger().entry(job), for_quantum), need);
        host.touched = true;
        host.is_immediate |= for_quantum;
        host.survey(now, context.ledger(), &self.rules);
        if !host.is_due(now, context.ledger(), &self.rules) {
            host.start_on_unallocated(context, &self.rules, first)?;
        }
        Ok(true)
    }

    /// Carries out the decisions, host by host.
    fn settle(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let first = self.first();
        for host in self.hosts.iter_mut().filter(|host| host.touched) {
            host.settle(context, &self.rules, first)?;
            host.look_ahead(context.now(), context.ledger(), &self.rules);
        }
        Ok(())
    }

    /// Computes the present share of each job in the queue, if memory did not matter.
    fn share_out(&mut self, now: Time, ledger: &Ledger) {
        for queued in &mut self.queue {
            let sizes = ledger.request(queued.job).sizes();
            let need = Resources::cpus(sizes.most);
            let best = placement::best(&self.hosts, now, ledger, &self.rules, &need, sizes.least);
            let host = best.and_then(|at| self.hosts.get(at));
            queued.share = host.map_or(Procs::ZERO, |host| host.share_of_another(queued.admitted, sizes));
        }
    }

    /// Records that the expected end of a running job has changed.
    fn note_stale(&mut self, entry: &Entry) {
        for share in entry.placement().into_iter().flat_map(Placement::shares) {
            if let Some(host) = self.hosts.get_mut(share.host.index()) {
                host.stale.push(entry.admitted);
            }
        }
    }

    /// Returns the admission number of the first job in the queue.
    fn first(&self) -> Option<u64> {
        self.queue.first().map(|queued| queued.admitted)
    }

    fn enqueue(&mut self, job: JobId, ledger: &Ledger, fresh: bool) {
        self.queue.push(Queued { admitted: ledger.entry(job).admitted, job, share: Procs::ZERO, fresh });
    }
}

/// Returns whether the job's quantum is over.
fn is_over(entry: &Entry, now: Time) -> bool {
    matches!(entry.state, State::Running { quantum: Some(until), released: false, .. } if until <= now)
}

impl Policy for Equipartition {
    fn name(&self) -> &'static str {
        "eqspatial"
    }

    fn kept_hosts(&self, ledger: &Ledger) -> Vec<HostId> {
        let waits = |assigned: &Assigned| {
            assigned.working.is_zero()
                && ledger.get(assigned.job).is_some_and(|entry| entry.state == State::Waiting)
        };
        self.hosts.iter().filter(|host| host.jobs.iter().any(waits)).map(|host| host.id).collect()
    }

    fn gives_quanta(&self) -> bool {
        true
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        let hosts = (0..).map(HostId).zip(ledger.machine().hosts());
        self.hosts = hosts.map(|(id, host)| Host::new(id, host.capacity.cpus_count())).collect();
        self.queue.clear();
        self.timer = false;
        for job in ledger.running() {
            let entry = ledger.entry(job);
            let share = entry.placement().and_then(|placement| placement.shares().first());
            if let Some(host) = share.and_then(|share| self.hosts.get_mut(share.host.index())) {
                host.join(Assigned::new(job, entry, false), Resources::NONE);
            }
        }
        for job in ledger.waiting() {
            let entry = ledger.entry(job);
            let AssignedHost(host) = entry.policy_state.get();
            match host.and_then(|host| self.hosts.get_mut(host.index())) {
                Some(host) => {
                    host.join(Assigned::new(job, entry, false), self.rules.need(ledger, job, false));
                }
                None => self.enqueue(job, ledger, false),
            }
        }
        for host in &mut self.hosts {
            host.survey(now, ledger, &self.rules);
            host.look_ahead(now, ledger, &self.rules);
        }
        self.share_out(now, ledger);
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.enqueue(job, ledger, true),
            Event::Ended(ended) => {
                let entry = ledger.entry(ended.job);
                let State::Running { quantum, placement, .. } = &entry.state else { return };
                let hosts = placement.shares().iter().map(|share| share.host.index());
                for host in hosts {
                    self.hosts[host].leave(ended.job);
                    self.hosts[host].is_immediate |= quantum.is_some();
                }
            }
            // Nobody knows the wake-up of a policy that is rebuilt at the start of a daemon.
            Event::Timer | Event::Rebuilt => self.timer = true,
            Event::Changed(_) => self.rebuild(now, ledger),
            Event::Overdue(job) | Event::EndMoved { job, .. } => self.note_stale(ledger.entry(job)),
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        self.count_missed(context)?;
        if std::mem::take(&mut self.timer) {
            self.end_quanta(context)?;
        }
        self.look(context)?;
        self.place(context)?;
        self.settle(context)?;
        self.share_out(context.now(), context.ledger());
        let wake = self.hosts.iter().map(|host| host.wake).filter(|wake| *wake > context.now()).min();
        wake.filter(|wake| *wake < Time::MAX).map_or(Ok(()), |wake| context.wake_at(wake))
    }
}
