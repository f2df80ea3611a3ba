//! Opportunistic jobs: waiting jobs that run on idle resources ahead of their windows (Miser §3.2).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::{Driver, Effect, JobId, Procs, Resources, Round, Span, State, Time};

/// The resources that opportunistic jobs may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpportunisticConfig {
    /// The preemption lead time. A job is parked, and resources are kept free, this long before a
    /// promised start.
    pub lead: Span,
    /// The capacity of the machine for batch and interactive work. Memory counts only if there is
    /// any.
    pub machine: Resources,
}

/// The second layer over the queues of a system. Its jobs hold memory and no processors of any
/// pool. They run on processors that are otherwise idle.
///
/// Jobs with a promised start get the idle processors in the order of these starts. Each gets the
/// requested number or the remainder, if its memory is free. No job runs before its earliest start
/// ([`Constraints::begin`](crate::Constraints)).
///
/// A round costs O(log n) for each job whose promise changes. It costs O(log n) for each job
/// visited until no processor is left.
pub(crate) struct OpportunisticLayer {
    config: OpportunisticConfig,
    /// Processors that interactive work uses now.
    interactive: Procs,
    /// The waiting jobs with a promise, by their promised starts.
    promised: BTreeSet<Candidate>,
    /// The same, by job.
    candidates: BTreeMap<JobId, Candidate>,
    /// The earliest starts of jobs that may begin here later, and the jobs.
    begins: BTreeSet<(Time, JobId)>,
    /// Jobs whose requests were amended in this round.
    amended: Vec<JobId>,
    /// The jobs that run here now.
    running: BTreeSet<JobId>,
    wake: Option<Time>,
}

/// The position of a job among those that may use idle resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    start: Time,
    submit: Time,
    queue: usize,
    admitted: u64,
    job: JobId,
    /// The earliest start in this layer; `None` if it may start at once.
    begin: Option<Time>,
}

impl OpportunisticLayer {
    /// Returns the layer over these queues, derived from their ledgers.
    pub(crate) fn new(config: OpportunisticConfig, queues: &[Driver]) -> OpportunisticLayer {
        let mut layer = OpportunisticLayer {
            config,
            interactive: Procs::ZERO,
            promised: BTreeSet::new(),
            candidates: BTreeMap::new(),
            begins: BTreeSet::new(),
            amended: vec![],
            running: BTreeSet::new(),
            wake: None,
        };
        for ledger in queues.iter().map(Driver::ledger) {
            for job in ledger.waiting() {
                layer.track(queues, job);
                layer.running.extend((ledger.entry(job).opportunistic.procs > Procs::ZERO).then_some(job));
            }
        }
        layer
    }

    /// Returns the next instant at which a job is parked or may begin, if nothing happens before.
    pub(crate) fn wake(&self) -> Option<Time> {
        self.wake
    }

    /// Sets the next wake-up, as it was before the layer was derived again.
    pub(crate) fn resume(&mut self, wake: Option<Time>) {
        self.wake = wake;
    }

    /// Reads the part of a round that concerns this layer.
    pub(crate) fn observe(&mut self, round: &mut Round) {
        self.interactive = round.interactive.take().unwrap_or(self.interactive);
        self.amended.extend(round.amended.iter().map(|amendment| amendment.job));
        let gone = round.ended.iter().map(|ended| ended.job).chain(round.withdrawn.iter().copied());
        for job in gone {
            self.untrack(job);
            self.running.remove(&job);
        }
    }

    /// Assigns idle resources after the queues have decided. `effects` lists their decisions.
    pub(crate) fn assign(
        &mut self,
        now: Time,
        queues: &mut [Driver],
        effects: &mut Vec<Effect>,
        first: usize,
    ) {
        let amended = std::mem::take(&mut self.amended);
        for job in effects[first..].iter().map(Effect::job).chain(amended) {
            self.track(queues, job);
        }
        let wanted = self.shares(now, queues);
        let parked =
            self.running.iter().filter(|job| !wanted.contains_key(job)).map(|job| (*job, Procs::ZERO));
        let mut shares: Vec<(JobId, Procs)> =
            parked.chain(wanted.iter().map(|(job, procs)| (*job, *procs))).collect();
        // Processors are released before other jobs get them. Handles must not decide the order.
        shares.sort_by_key(|(job, procs)| {
            (*procs > opportunistic_procs(queues, *job), admission(queues, *job))
        });
        for (job, procs) in shares {
            let changed =
                queues.iter_mut().any(|queue| queue.ledger_mut().set_opportunistic_procs(job, now, procs));
            effects.extend(changed.then_some(Effect::OpportunisticProcs { job, procs }));
        }
        self.running = wanted.into_keys().collect();
        self.wake = self.next_parking(now).into_iter().chain(self.next_begin(now)).min();
    }

    /// Returns the number of processors for each job that runs from now on.
    fn shares(&self, now: Time, queues: &[Driver]) -> BTreeMap<JobId, Procs> {
        let mut idle = self.idle(queues);
        let mut wanted = BTreeMap::new();
        for candidate in &self.promised {
            if idle.cpus_count().is_zero() {
                break;
            }
            let Some(entry) = queues[candidate.queue].ledger().get(candidate.job) else { continue };
            let machine = queues[candidate.queue].ledger().machine();
            let demand = machine.amount(&entry.request).masked(&self.config.machine);
            if candidate.start <= now + self.config.lead {
                idle = idle.less(&demand);
                continue;
            }
            if candidate.begin.is_some_and(|begin| begin > now) {
                continue;
            }
            let procs = demand.cpus_count().min(idle.cpus_count());
            let taken = demand.with_cpus(procs);
            if !procs.is_zero() && !entry.request.constraints.in_window_only && taken.fits_in(&idle) {
                idle = idle.less(&taken);
                wanted.insert(candidate.job, procs);
            }
        }
        wanted
    }

    /// Returns the resources that neither the queues nor interactive work use.
    fn idle(&self, queues: &[Driver]) -> Resources {
        let held = queues.iter().fold(Resources::cpus(self.interactive), |sum, queue| {
            sum.plus(&queue.ledger().held().masked(&self.config.machine))
        });
        self.config.machine.less(&held)
    }

    /// Returns the next instant at which resources must be kept free, if a job runs here.
    fn next_parking(&self, now: Time) -> Option<Time> {
        let lead = self.config.lead;
        let later = self.promised.iter().map(|candidate| candidate.start).find(|start| *start > now + lead);
        let parking = later.filter(|start| *start < Time::MAX && !self.running.is_empty());
        parking.map(|start| start + (Span::ZERO - lead))
    }

    /// Returns the next instant at which a job may begin to run here.
    fn next_begin(&self, now: Time) -> Option<Time> {
        let later = (Bound::Excluded((now, JobId(u32::MAX))), Bound::Unbounded);
        self.begins.range(later).next().map(|(begin, _)| *begin)
    }

    /// Updates the position of a job after a change of its promise. Only waiting jobs with a
    /// promise have one.
    fn track(&mut self, queues: &[Driver], job: JobId) {
        self.untrack(job);
        let found =
            queues.iter().enumerate().find_map(|(queue, driver)| Some((queue, driver.ledger().get(job)?)));
        let Some((queue, entry)) = found else { return };
        let Some(promise) = entry.promise.filter(|_| entry.state == State::Waiting) else {
            self.running.remove(&job);
            return;
        };
        let (submit, admitted) = (entry.request.submit, entry.admitted);
        let begin = entry.request.constraints.begin;
        let candidate = Candidate { start: promise.best, submit, queue, admitted, job, begin };
        self.promised.insert(candidate);
        self.candidates.insert(job, candidate);
        // A job that runs only in its window, or is parked by then, needs no wake-up.
        let needs_wakeup = |begin: &Time| {
            !entry.request.constraints.in_window_only && *begin + self.config.lead < candidate.start
        };
        self.begins.extend(begin.filter(needs_wakeup).map(|begin| (begin, job)));
    }

    fn untrack(&mut self, job: JobId) {
        if let Some(candidate) = self.candidates.remove(&job) {
            self.promised.remove(&candidate);
            self.begins.remove(&(candidate.begin.unwrap_or(Time::MAX), job));
        }
    }
}

/// Returns the queue of the job, and its admission number there.
fn admission(queues: &[Driver], job: JobId) -> Option<(usize, u64)> {
    let admitted = |queue: &Driver| queue.ledger().get(job).map(|entry| entry.admitted);
    queues.iter().enumerate().find_map(|(at, queue)| Some((at, admitted(queue)?)))
}

/// Returns the number of idle processors on which the job runs now.
fn opportunistic_procs(queues: &[Driver], job: JobId) -> Procs {
    let entry = queues.iter().find_map(|queue| queue.ledger().get(job));
    entry.map_or(Procs::ZERO, |entry| entry.opportunistic.procs)
}
