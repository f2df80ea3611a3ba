//! NCSA-LSF*: static job classes, and hosts with individual orders and limits for them.

use std::sync::Arc;

use miserly_core::{
    Context, Ended, Event, Host, HostId, JobClasses, JobId, Ledger, Machine, Persistent, Placement, Policy,
    Refusal, Resources, Sharing, SizeTurn, StartReason, Time, Violation,
};

use super::executing::Executing;
use super::queues::{Queues, Waiting, class};

/// The tuned scheduler of the NCSA Origin 2000 (Chiang and Vernon §2.1).
///
/// The machine has a table of classes ([`JobClasses`]): Tables 1 and 2 of the paper, in the machine
/// file. The request determines the class of a job. A job runs on one host. A host runs the sizes of
/// its order, within their limits. In each size the first lengths (`vst`) come first, then all others
/// together, in order of arrival.
///
/// # Waiting for a host
/// A job waits for a host that could hold it if idle, that runs its size, and that is below its
/// limit of that size. There are two exceptions: a limit of the whole machine bars the job (of its
/// length, of its user), or another host is kept for it. Only jobs that wait for a host block others
/// there. A size without such jobs blocks no other.
///
/// # The next job
/// Each host starts jobs of its first size with a waiting job: the first of them that fits. That
/// job may overtake jobs of its size that are too big for the free resources. A job of a lower size
/// may not overtake them, until the limit of their size is reached.
///
/// # Special reservations
/// When a job ends on a host, the first waiting job in the host's order that has waited for the
/// time of its class is examined. Exactly one job is examined for each end. It starts there if it
/// fits, before all other jobs. Otherwise the host is kept for it. A job waits for the host that is
/// kept for it and for no other. A host is kept for one job at a time, and starts no other job
/// until then. The job starts as soon as it fits and all limits admit it.
///
/// # A pass
/// 1. Jobs beyond the classes are refused, and those whose size no sufficient host runs.
/// 2. In the order of the hosts, the jobs with a kept host start if they can.
/// 3. For each ended job, in the order of the events, a special reservation is made as above. A job
///    that has just started on its kept host is the one for this end.
/// 4. The first host, in the order of the machine, with a next job starts it. For the Origin 2000
///    that is the order of Table 2. If the job is next on several hosts, it starts on the one with
///    the fewest free processors, then on the first. This is repeated until no host has a next job.
///
/// # Open questions of the paper
/// - Table 1 has "≥ 12 hrs" where the text has "longer than". Here it is at least.
/// - A job barred by a limit of the whole machine might block lower sizes. Here it does not, since
///   it can start on no host.
/// - A job with a special reservation might be exempt from limits. Here all limits apply to it.
/// - The number of jobs examined at each end is open. Here it is one.
///
/// A pass is O(hosts) times the waiting jobs of a size for each start. The policy promises nothing.
/// The only state that it cannot derive is the host kept for a job, which is in the ledger
/// (`KeptHost`).
#[derive(Debug)]
pub struct Lsf {
    classes: Arc<JobClasses>,
    /// The sizes of each host, in its order.
    turns: Vec<Vec<SizeTurn>>,
    reserve: bool,
    /// The waiting jobs without a kept host.
    queues: Queues,
    /// The kept hosts, each with its waiting job.
    kept: Vec<(HostId, JobId)>,
    executing: Executing,
    /// Jobs that arrived since the last pass and can never run.
    beyond: Vec<JobId>,
    /// The hosts of the jobs that ended since the last pass.
    ended: Vec<HostId>,
}

/// The next job of a host.
#[derive(Clone, Copy, Debug)]
struct Next {
    host: HostId,
    job: Waiting,
    /// Whether it overtakes a job that is too big.
    passes: bool,
}

impl Lsf {
    /// Returns LSF on this machine, with special reservations or without. `user_limit` is the number of
    /// jobs of a user that may execute at a time.
    ///
    /// A host that the classes of the machine do not have runs no job.
    pub fn new(machine: &Machine, user_limit: Option<u32>, reserve: bool) -> Lsf {
        let classes = machine.classes().cloned().unwrap_or_default();
        let turns = |host: &Host| classes.hosts.get(&host.name).cloned().unwrap_or_default();
        Lsf {
            turns: machine.hosts().iter().map(turns).collect(),
            reserve,
            queues: Queues::empty(&classes),
            kept: Vec::new(),
            executing: Executing::nobody(user_limit, &classes, machine.hosts().len()),
            classes,
            beyond: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn enqueue(&mut self, job: JobId, ledger: &Ledger) {
        let entry = ledger.entry(job);
        let waiting = Waiting::new(job, entry, ledger.machine(), &self.classes);
        // The machine or the request may be another one since then.
        if let (KeptHost(Some(host)), Some(waiting)) = (entry.policy_state.get(), &waiting) {
            let kept = ledger.machine().hosts().get(host.index());
            let holds = kept.is_some_and(|host| waiting.demand.fits_in(&host.capacity));
            if holds && !self.is_kept(host) {
                self.kept.push((host, job));
                return;
            }
        }
        match waiting {
            Some(waiting) if self.could_run(ledger.machine(), &waiting) => self.queues.insert(waiting),
            _ => self.beyond.push(job),
        }
    }

    /// Returns whether a host that runs jobs of its size could hold the job.
    fn could_run(&self, machine: &Machine, job: &Waiting) -> bool {
        let mut hosts = machine.hosts().iter().zip(&self.turns);
        hosts.any(|(host, turns)| {
            turns.iter().any(|turn| turn.size == job.class.size) && job.demand.fits_in(&host.capacity)
        })
    }

    fn leave(&mut self, ended: Ended, ledger: &Ledger) {
        let entry = ledger.entry(ended.job);
        let Some(placement) = entry.placement() else { return };
        self.ended.extend(placement.shares().iter().map(|share| share.host));
        if let Some(class) = class(&self.classes, &entry.request) {
            self.executing.ended(placement, class, entry.request.user);
        }
    }

    /// Returns the sizes below their limits on the host, in its order.
    fn open(&self, host: HostId) -> impl Iterator<Item = &SizeTurn> {
        let below =
            move |turn: &&SizeTurn| turn.most.is_none_or(|most| self.executing.on(host, turn.size) < most);
        self.turns[host.index()].iter().filter(below)
    }

    /// Returns the jobs of an open size that wait for the host, in its order.
    fn waiting(&self, ledger: &Ledger, host: HostId, size: usize) -> impl Iterator<Item = &Waiting> {
        let capacity = ledger.machine().host(host).capacity;
        let open = |length| self.executing.admits_length(&self.classes, length);
        let queued = self.queues.jobs_of_size(size, &self.classes, open);
        queued.filter(move |job| self.executing.admits_user(job.user) && job.demand.fits_in(&capacity))
    }

    /// Starts the jobs with a kept host that fit there now and that no limit bars.
    fn start_kept(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut kept = self.kept.clone();
        kept.sort_unstable();
        for (host, job) in kept {
            let ledger = context.ledger();
            let waiting = Waiting::new(job, ledger.entry(job), ledger.machine(), &self.classes);
            let Some(job) = waiting else { continue };
            if self.admits(host, &job) && fits(ledger, host, &job) {
                self.start(context, host, &job, StartReason::Reserved)?;
                if let Some(at) = self.ended.iter().position(|ended| *ended == host) {
                    self.ended.remove(at);
                }
            }
        }
        Ok(())
    }

    /// Returns whether no limit bars the job on the host.
    fn admits(&self, host: HostId, job: &Waiting) -> bool {
        self.open(host).any(|turn| turn.size == job.class.size)
            && self.executing.admits_length(&self.classes, job.class.length)
            && self.executing.admits_user(job.user)
    }

    /// Handles the end of a job on this host: starts the first overdue waiting job, or keeps the
    /// host for it.
    fn reserve(&mut self, context: &mut Context<'_>, host: HostId) -> Result<(), Violation> {
        let ledger = context.ledger();
        if !self.reserve || self.is_kept(host) {
            return Ok(());
        }
        let Some(job) = self.impatient(context.now(), ledger, host) else { return Ok(()) };
        if fits(ledger, host, &job) {
            return self.start(context, host, &job, StartReason::Reserved);
        }
        self.queues.remove(&job);
        self.kept.push((host, job.job));
        context.set_job_state(job.job, &KeptHost(Some(host)))
    }

    /// Returns the first job in the host's order that has waited for the time of its class.
    fn impatient(&self, now: Time, ledger: &Ledger, host: HostId) -> Option<Waiting> {
        let mut waiting = self.open(host).flat_map(|turn| self.waiting(ledger, host, turn.size));
        let waited = |job: &Waiting| now - ledger.request(job.job).submit;
        let patience = |job: &Waiting| self.classes.lengths[job.class.length].reserve_wait;
        waiting.find(|job| patience(job).is_some_and(|patience| waited(job) >= patience)).copied()
    }

    /// Returns the next start in the order of the hosts, if there is one.
    fn next(&self, ledger: &Ledger) -> Option<Next> {
        let hosts = (0..).map(HostId).take(self.turns.len());
        let mut turns = hosts.filter_map(|host| self.turn(ledger, host));
        let first = turns.next()?;
        let elsewhere = turns.filter(|next| next.job.job == first.job.job);
        std::iter::once(first)
            .chain(elsewhere)
            .min_by_key(|next| (ledger.free_hosts().on(next.host).cpus_count(), next.host))
    }

    /// Returns the next job of the host.
    fn turn(&self, ledger: &Ledger, host: HostId) -> Option<Next> {
        if ledger.free_hosts().on(host).cpus_count().is_zero() || self.is_kept(host) {
            return None;
        }
        // The first size with a waiting job: if all of its jobs are too big, they block the other
        // sizes.
        let mut sizes = self.open(host).map(|turn| self.waiting(ledger, host, turn.size).peekable());
        let waiting = sizes.find_map(|mut jobs| jobs.peek().is_some().then_some(jobs))?;
        let (before, job) = waiting.enumerate().find(|(_, job)| fits(ledger, host, job))?;
        Some(Next { host, job: *job, passes: before > 0 })
    }

    /// Starts the next jobs of the hosts until there are none.
    fn start_by_turn(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        while let Some(Next { host, job, passes }) = self.next(context.ledger()) {
            let has_just_come = context.ledger().request(job.job).submit == context.now();
            let reason = match (passes, has_just_come) {
                (true, _) => StartReason::Backfilled,
                (false, true) => StartReason::Immediate,
                (false, false) => StartReason::Reserved,
            };
            self.start(context, host, &job, reason)?;
        }
        Ok(())
    }

    fn start(
        &mut self,
        context: &mut Context<'_>,
        host: HostId,
        job: &Waiting,
        reason: StartReason,
    ) -> Result<(), Violation> {
        let placement = Placement::on(host, held(context.ledger().machine(), host, &job.demand));
        self.queues.remove(job);
        self.executing.started(&placement, job.class, job.user);
        context.start(job.job, placement, reason)?;
        self.kept.retain(|(_, kept)| *kept != job.job);
        context.set_job_state(job.job, &KeptHost(None))
    }

    /// Returns whether the host is kept for a waiting job.
    fn is_kept(&self, host: HostId) -> bool {
        self.kept.iter().any(|(kept, _)| *kept == host)
    }
}

impl Policy for Lsf {
    fn name(&self) -> &'static str {
        "lsf"
    }

    fn kept_hosts(&self, _ledger: &Ledger) -> Vec<HostId> {
        self.kept.iter().map(|(host, _)| *host).collect()
    }

    fn rebuild(&mut self, _now: Time, ledger: &Ledger) {
        self.queues = Queues::empty(&self.classes);
        self.kept.clear();
        self.executing.clear();
        self.beyond.clear();
        self.ended.retain(|host| host.index() < ledger.machine().hosts().len());
        for job in ledger.waiting() {
            self.enqueue(job, ledger);
        }
        for entry in ledger.running().chain(ledger.suspended()).map(|job| ledger.entry(job)) {
            if let (Some(placement), Some(class)) = (entry.placement(), class(&self.classes, &entry.request))
            {
                self.executing.started(placement, class, entry.request.user);
            }
        }
    }

    fn event(&mut self, _now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.enqueue(job, ledger),
            Event::Ended(ended) => self.leave(ended, ledger),
            // The policy makes no plans, so overdue jobs have no effect. No other policy contains
            // it.
            Event::Overdue(_)
            | Event::EndMoved { .. }
            | Event::Timer
            | Event::Changed(_)
            | Event::Rebuilt => {}
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        for job in self.beyond.drain(..) {
            context.refuse(job, Refusal::BeyondClasses)?;
        }
        self.start_kept(context)?;
        for host in std::mem::take(&mut self.ended) {
            self.reserve(context, host)?;
        }
        self.start_by_turn(context)
    }
}

/// Returns whether the job fits on the host now.
fn fits(ledger: &Ledger, host: HostId, job: &Waiting) -> bool {
    held(ledger.machine(), host, &job.demand).fits_in(&ledger.free_hosts().on(host))
}

/// Returns the resources that a job would hold on a host: all of it, if hosts are not shared.
fn held(machine: &Machine, host: HostId, demand: &Resources) -> Resources {
    match machine.sharing() {
        Sharing::Shared => *demand,
        Sharing::Whole => machine.host(host).capacity,
    }
}

/// The host that is kept for a waiting job: a special reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct KeptHost(Option<HostId>);

impl Persistent for KeptHost {
    const NAME: &'static str = "lsf/kept-host";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.map(|host| u64::from(host.0)));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<KeptHost> {
        let [host] = *words else { return None };
        Some(KeptHost(Some(HostId(u32::try_from(host).ok()?))))
    }
}
