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
    Context, Entry, Event, HostId, JobId, Ledger, Policy, Procs, Resources, Span, State, Time, Violation,
};

use self::catch_up::missed;
use self::host::{Assigned, Host};
use self::state::AssignedHost;

/// Spatial equipartitioning: the jobs of a host share its processors as equally as their requests allow (Chiang and
/// Vernon §2.5).
///
/// A job is placed once, where it has room for its memory: on the host with the fewest unallocated processors that are
/// enough for it; else on the one with the most processors for each that its jobs ask for. A host has at most a job for
/// each processor. Jobs wait in the order of their arrival; who fits nowhere is skipped. Hosts are shared, and a job
/// lies on one of them.
///
/// Where the paper is silent:
/// - **Leftover processors** go to the jobs that were admitted first, one each.
/// - **A job that asks for more processors than a host has** may lie there all the same: what it asks for is a maximum.
/// - **A repartitioning** is a change of a running job's processors. A start beside the others is none.
/// - **A job that arrives while a host waits for its minimum interval** takes what it asked for of the unallocated
///   processors, or what there is of them. If there is none it keeps its place on the host, memory included, and starts on
///   the first processor that is vacated, or at the repartitioning.
/// - **The quantum** goes by the same placement with little memory. The job has its requested processors at once, as a job
///   that catches up: both when it begins and when it ends the host is repartitioned without waiting. It is given to
///   arriving jobs only, and to each that finds no place but for this.
/// - **The work that a waiting job misses** is counted as its equal share of the host on which it would be placed if
///   memory did not matter, as of each event. **It catches up** with what it has beyond its equal share of its host.
/// - **Jobs that are to have all they asked for** (in a quantum, catching up, or long) divide the host equally where
///   they ask for too much, so that each other job has one processor.
///
/// With n jobs on a host, h hosts and w jobs in the queue: O(n log n) for each host on which something happens, O(h) for
/// each placement, and O(w (h + n log n)) in a pass, for what they miss.
///
/// # Source
/// Chiang, Vernon: Production Job Scheduling for Parallel Shared Memory Systems, IPDPS 2001.
#[derive(Debug)]
pub struct Equipartition {
    rules: Rules,
    hosts: Vec<Host>,
    /// The jobs that no host has been found for, in the order of their admission.
    queue: Vec<Queued>,
    /// The wake-up that was asked for has come: the one time at which quanta are ended, so that a job which ends at
    /// the same instant has been told of before.
    timer: bool,
}

/// A job that no host has been found for.
#[derive(Clone, Copy, Debug)]
struct Queued {
    admitted: u64,
    job: JobId,
    /// The processors that it would have now.
    share: Procs,
    /// It has come since the last pass.
    fresh: bool,
}

impl Equipartition {
    /// Equipartitioning by these rules.
    pub const fn new(rules: Rules) -> Equipartition {
        Equipartition { rules, hosts: Vec::new(), queue: Vec::new(), timer: false }
    }

    /// Takes the jobs off the machine whose quantum is over.
    fn end_quanta(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        for host in self.hosts.iter_mut().filter(|host| host.needs_look(now)) {
            host.count(context, &self.rules)?;
            for Assigned { job, admitted, .. } in host.jobs.clone() {
                if is_over(context.ledger().entry(job), now) {
                    context.requeue(job, self.rules.keep_work)?;
                    host.leave(job);
                    host.at_once = true;
                    let place = self.queue.partition_point(|other| other.admitted < admitted);
                    self.queue.insert(place, Queued { admitted, job, share: Procs::ZERO, fresh: false });
                }
            }
        }
        Ok(())
    }

    /// Notes what the waiting jobs have missed since the last pass.
    fn count_missed(&self, context: &mut Context<'_>) -> Result<(), Violation> {
        let now = context.now();
        for queued in self.queue.iter().filter(|queued| !queued.fresh) {
            let missed = missed(context.ledger().entry(queued.job), queued.share, now);
            context.set_job_state(queued.job, &missed)?;
        }
        Ok(())
    }

    /// Brings the hosts to this instant on which something has happened.
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

    /// Finds hosts for the jobs in the queue, or at least a quantum for those that have just come.
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

    /// Assigns a job to the best host, for a quantum or for good; says whether there was one.
    fn assign(&mut self, context: &mut Context<'_>, job: JobId, lend: bool) -> Result<bool, Violation> {
        let (now, first) = (context.now(), self.first());
        let need = self.rules.need(context.ledger(), job, lend);
        let best = placement::best(&self.hosts, now, context.ledger(), &self.rules, &need);
        let Some(host) = best.and_then(|at| self.hosts.get_mut(at)) else { return Ok(false) };
        host.count(context, &self.rules)?;
        host.join(Assigned::of(job, context.ledger().entry(job), lend), need);
        host.touched = true;
        host.at_once |= lend;
        host.survey(now, context.ledger(), &self.rules);
        if !host.is_due(now, context.ledger(), &self.rules) {
            host.start_on_unallocated(context, &self.rules, first)?;
        }
        Ok(true)
    }

    /// Carries out what was decided, host by host.
    fn settle(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let first = self.first();
        for host in self.hosts.iter_mut().filter(|host| host.touched) {
            host.settle(context, &self.rules, first)?;
            host.look_ahead(context.now(), context.ledger(), &self.rules);
        }
        Ok(())
    }

    /// Computes what each job in the queue would have now, if memory did not matter.
    fn share_out(&mut self, now: Time, ledger: &Ledger) {
        for queued in &mut self.queue {
            let procs = ledger.request(queued.job).procs();
            let best = placement::best(&self.hosts, now, ledger, &self.rules, &Resources::cpus(procs));
            let host = best.and_then(|at| self.hosts.get(at));
            queued.share = host.map_or(Procs::ZERO, |host| host.share_of_another(queued.admitted, procs));
        }
    }

    /// The first job in the queue, by its admission number.
    fn first(&self) -> Option<u64> {
        self.queue.first().map(|queued| queued.admitted)
    }

    fn enqueue(&mut self, job: JobId, ledger: &Ledger, fresh: bool) {
        self.queue.push(Queued { admitted: ledger.entry(job).admitted, job, share: Procs::ZERO, fresh });
    }
}

/// Whether it was lent its processors, and that is over.
fn is_over(entry: &Entry, now: Time) -> bool {
    matches!(entry.state, State::Running { quantum: Some(until), released: false, .. } if until <= now)
}

impl Policy for Equipartition {
    fn name(&self) -> &'static str {
        "eqspatial"
    }

    fn kept_hosts(&self, ledger: &Ledger) -> Vec<HostId> {
        let waits =
            |assigned: &Assigned| ledger.get(assigned.job).is_some_and(|entry| entry.state == State::Waiting);
        self.hosts.iter().filter(|host| host.jobs.iter().any(waits)).map(|host| host.id).collect()
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
                host.join(Assigned::of(job, entry, false), Resources::NONE);
            }
        }
        for job in ledger.waiting() {
            let entry = ledger.entry(job);
            let AssignedHost(host) = entry.policy_state.get();
            match host.and_then(|host| self.hosts.get_mut(host.index())) {
                Some(host) => {
                    host.join(Assigned::of(job, entry, false), self.rules.need(ledger, job, false));
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
                    self.hosts[host].at_once |= quantum.is_some();
                }
            }
            Event::Timer => self.timer = true,
            Event::Changed(_) => self.rebuild(now, ledger),
            Event::Overdue(_) | Event::Rebuilt => {}
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
