//! NCSA-LSF*: twelve static job classes, and hosts that each have their own order and limits for them.

use miserly_classes::lsf::Size;
use miserly_core::{
    Context, Ended, Event, HostId, JobId, Ledger, Machine, Persistent, Placement, Policy, Refusal, Resources,
    Sharing, StartReason, Time, Violation,
};

use super::executing::{Executing, Limits};
use super::queues::{Queues, Waiting, class};
use super::table::{Turn, Turns, turns};

/// The scheduler of the NCSA Origin 2000 as it was tuned there (Chiang and Vernon §2.1).
///
/// A job is of the class of what it asks for ([`miserly_classes::lsf`], Table 1). It runs on one host. A host that Table 2
/// names runs the sizes that the table says, in that order, and so many of them at a time; any other host runs `lj`
/// before `mj` before `sj`, without limits. In each size `vst` comes first, then `st`, `mt` and `lt` together, in
/// order of arrival.
///
/// # Who waits for a host
/// A job waits for a host that could hold it if it were idle, that runs its size, and that has not reached its limit
/// of that size; unless a limit of the whole machine bars the job (`mt`, `lt`, its user's), or another host is kept
/// for it. Only who waits for a host is in anybody's way there: a size of which nobody waits blocks nobody.
///
/// # Who starts
/// The job whose *turn* it is on a host: of the first size of which somebody waits, the first job that fits. It may
/// pass jobs of its size that are too big for what is free; a job of a lower size may not pass them, until the
/// limit of theirs is reached.
///
/// # Special reservations
/// When a job ends on a host, the first of those who wait for that host, in its order, and have waited for the time
/// of their class or longer is looked at: one job for each that ended. It starts there if there is room, whoever
/// else waits; if not, the host is kept for it. A job waits for the host that is kept for it and for no other. A
/// host is kept for one job at a time, and runs nothing new until that job starts: as soon as there is room, and
/// all limits admit it.
///
/// # A pass
/// 1. Jobs beyond the classes are refused, and those of a size that no host runs which could hold them.
/// 2. In the order of the hosts, the jobs for which one is kept start if they can.
/// 3. For each job that ended, in the order in which that was told: special reservations, as above. A job for which
///    the host was kept and that has just started was the one for this end.
/// 4. The first host, in the order of the machine (which for the Origin 2000 is that of Table 2), on which it is
///    somebody's turn: that job starts. If it is its turn on several hosts, then on the one that has the fewest
///    processors free, or on the first of these. This is repeated until it is nobody's turn.
///
/// # What the paper leaves open
/// Table 1 has "≥ 12 hrs" where the text says "longer than": here it is at least. Whether who is barred by a limit of
/// the whole machine still blocks lower sizes: here it does not, since it can start nowhere. That a job with a
/// special reservation is under all limits too. How many jobs are looked at when one ends: here one.
///
/// A pass is O(hosts) times the waiting jobs of a size for each start. It promises nothing. All that it cannot derive
/// is the host that is kept for a job, and that is in the ledger (`KeptHost`).
#[derive(Debug)]
pub struct Lsf {
    /// What each host runs.
    turns: Vec<Turns>,
    reserve: bool,
    /// The waiting jobs, but for those for which a host is kept.
    queues: Queues,
    /// The hosts that are kept, each with its waiting job.
    kept: Vec<(HostId, JobId)>,
    executing: Executing,
    /// Jobs that came since the last pass and will never run.
    beyond: Vec<JobId>,
    /// The hosts of the jobs that ended since the last pass.
    ended: Vec<HostId>,
}

/// A job whose turn it is on a host.
#[derive(Clone, Copy, Debug)]
struct Next {
    host: HostId,
    job: Waiting,
    /// It passes a job that is too big.
    passes: bool,
}

impl Lsf {
    /// LSF on this machine, with special reservations or without.
    pub fn new(machine: &Machine, limits: Limits, reserve: bool) -> Lsf {
        Lsf {
            turns: machine.hosts().iter().map(|host| turns(&host.name)).collect(),
            reserve,
            queues: Queues::default(),
            kept: Vec::new(),
            executing: Executing::nobody(limits, machine.hosts().len()),
            beyond: Vec::new(),
            ended: Vec::new(),
        }
    }

    fn enqueue(&mut self, job: JobId, ledger: &Ledger) {
        let entry = ledger.entry(job);
        if let KeptHost(Some(host)) = entry.policy_state.get() {
            self.kept.push((host, job));
            return;
        }
        match Waiting::of(job, entry, ledger.machine()) {
            Some(waiting) if self.could_run(ledger.machine(), &waiting) => self.queues.insert(waiting),
            _ => self.beyond.push(job),
        }
    }

    /// Whether some host that runs jobs of its size could hold it.
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
        if let Some(class) = class(&entry.request) {
            self.executing.ended(placement, class, entry.request.user);
        }
    }

    /// The sizes whose limits on the host are not reached, the one that comes first first.
    fn open(&self, host: HostId) -> impl Iterator<Item = &'static Turn> {
        self.turns[host.index()].iter().filter(move |turn| self.executing.on(host, turn.size) < turn.most)
    }

    /// The jobs of an open size that wait for the host, in its order.
    fn waiting(&self, ledger: &Ledger, host: HostId, size: Size) -> impl Iterator<Item = &Waiting> {
        let capacity = ledger.machine().host(host).capacity;
        let queued = self.queues.of(size, |length| self.executing.admits_length(length));
        queued.filter(move |job| self.executing.admits_user(job.user) && job.demand.fits_in(&capacity))
    }

    /// Starts the jobs for which a host is kept, where there is room now and no limit bars them.
    fn start_kept(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let mut kept = self.kept.clone();
        kept.sort_unstable();
        for (host, job) in kept {
            let ledger = context.ledger();
            let Some(job) = Waiting::of(job, ledger.entry(job), ledger.machine()) else { continue };
            if self.admits(host, &job) && fits(ledger, host, &job) {
                self.start(context, host, &job, StartReason::Reserved)?;
                if let Some(at) = self.ended.iter().position(|ended| *ended == host) {
                    self.ended.remove(at);
                }
            }
        }
        Ok(())
    }

    /// Whether no limit bars the job on the host.
    fn admits(&self, host: HostId, job: &Waiting) -> bool {
        self.open(host).any(|turn| turn.size == job.class.size)
            && self.executing.admits_length(job.class.length)
            && self.executing.admits_user(job.user)
    }

    /// A job has ended on this host: starts the first that has waited for too long, or keeps the host for it.
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

    /// The first in the host's order of those who have waited for the time of their class.
    fn impatient(&self, now: Time, ledger: &Ledger, host: HostId) -> Option<Waiting> {
        let mut waiting = self.open(host).flat_map(|turn| self.waiting(ledger, host, turn.size));
        let waited = |job: &Waiting| now - ledger.request(job.job).submit;
        waiting.find(|job| waited(job) >= job.class.reserve_wait()).copied()
    }

    /// The next start by turn, if there is one.
    fn next(&self, ledger: &Ledger) -> Option<Next> {
        let hosts = (0..).map(HostId).take(self.turns.len());
        let mut turns = hosts.filter_map(|host| self.turn(ledger, host));
        let first = turns.next()?;
        let elsewhere = turns.filter(|next| next.job.job == first.job.job);
        std::iter::once(first)
            .chain(elsewhere)
            .min_by_key(|next| (ledger.free_hosts().on(next.host).cpus_count(), next.host))
    }

    /// Whose turn it is on the host.
    fn turn(&self, ledger: &Ledger, host: HostId) -> Option<Next> {
        if ledger.free_hosts().on(host).cpus_count().is_zero() || self.is_kept(host) {
            return None;
        }
        // The first size of which somebody waits: if all are too big for what is free, they are in the way of the rest.
        let mut sizes = self.open(host).map(|turn| self.waiting(ledger, host, turn.size).peekable());
        let waiting = sizes.find_map(|mut jobs| jobs.peek().is_some().then_some(jobs))?;
        let (before, job) = waiting.enumerate().find(|(_, job)| fits(ledger, host, job))?;
        Some(Next { host, job: *job, passes: before > 0 })
    }

    /// Starts whose turn it is, until it is nobody's.
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
        self.queues = Queues::default();
        self.kept.clear();
        self.executing.clear();
        self.beyond.clear();
        self.ended.clear();
        for job in ledger.waiting() {
            self.enqueue(job, ledger);
        }
        for entry in ledger.running().chain(ledger.suspended()).map(|job| ledger.entry(job)) {
            if let (Some(placement), Some(class)) = (entry.placement(), class(&entry.request)) {
                self.executing.started(placement, class, entry.request.user);
            }
        }
    }

    fn event(&mut self, _now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.enqueue(job, ledger),
            Event::Ended(ended) => self.leave(ended, ledger),
            // It plans nothing, so it does not matter how long a job stays; and no other policy is around it.
            Event::Overdue(_) | Event::Timer | Event::Changed(_) | Event::Rebuilt => {}
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

/// Whether there is room for the job on the host now.
fn fits(ledger: &Ledger, host: HostId, job: &Waiting) -> bool {
    held(ledger.machine(), host, &job.demand).fits_in(&ledger.free_hosts().on(host))
}

/// What a job would hold of a host that could hold it: all, where hosts are not shared.
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
