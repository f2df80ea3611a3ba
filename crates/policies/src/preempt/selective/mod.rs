//! Selective suspension (Kettimuthu et al.): waiting jobs suspend less urgent running jobs.

mod blockers;

mod job_sets;

mod pe_allocator;

mod limits;

mod pe_choice;

mod policy;

mod rank;

mod slices;

mod transfer;

mod view;

use miserly_core::{Context, Event, JobId, Ledger, Policy, Span, StartReason, Time, Violation};

use self::blockers::Blockers;
use self::job_sets::JobSets;
pub use self::limits::Limits;
use self::limits::SlowdownStats;
use self::pe_allocator::PeAllocator;
pub use self::pe_choice::PeChoice;
pub use self::policy::{IS, SS, TSS};
pub use self::rank::Criterion;
use self::rank::Rank;
pub use self::slices::Slices;
pub use self::transfer::Transfer;
use self::view::{View, most_urgent_first};

/// The rules of suspension.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspension {
    /// The condition under which a job may suspend another one.
    pub criterion: Criterion,
    /// Whether a job may suspend only jobs of up to twice its width.
    pub half_width: bool,
    /// The limits beyond which jobs are not suspended.
    pub limits: Option<Limits>,
    /// The period of passes between events. A pass that cannot have an effect is omitted.
    pub period: Option<Span>,
    /// The placement of jobs, and the cost of suspension.
    pub moving: Moving,
}

/// The rules by which jobs leave and get processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moving {
    /// The cost of suspension.
    pub transfer: Transfer,
    /// Whether a suspended job may resume on other processors.
    pub migrates: bool,
    /// The processors of a job without fixed processors.
    pub place: PeChoice,
}

/// Selective suspension: starts jobs that fit, the most urgent first, and suspends running jobs for
/// more urgent ones.
///
/// # A pass
/// A pass examines the idle jobs by decreasing rank ([`Criterion`]). A job that fits on the free
/// resources starts. A waiting job may run on any processors. A suspended one needs its own, unless
/// jobs migrate.
///
/// A job that does not fit may suspend running jobs, by increasing rank, if its rank entitles it to
/// each. A victim may have at most twice its width, unless the job returns to its own processors.
/// No job is suspended if that would not suffice. Victims that turn out to be unnecessary are
/// spared, those with the largest ranks first. There are no reservations: ranks grow with the wait,
/// so every job runs eventually.
///
/// A job that is being swapped out or in cannot be suspended. There is a pass when the transfer
/// ends. The job for which it is swapped out has a claim on its processors.
///
/// # Passes without events
/// Ranks of waiting jobs grow until they entitle the jobs to suspend others. The ranks determine
/// the earliest such time. There is a pass at the next multiple of the period, and none before.
///
/// A pass examines all jobs once, and once more after each suspension. Each time is O((w + r) log
/// (w + r) + w q) for w idle jobs of q widths, and r running jobs. A suspended job whose blocker
/// has moved examines each running job. Each start on free choice of processors examines those of
/// all suspended jobs ([`PeChoice::Spare`]).
pub struct Selective {
    name: &'static str,
    rules: Suspension,
    allocator: PeAllocator,
    sets: JobSets,
    /// For the jobs that have to return to their own processors.
    blockers: Blockers,
    stats: SlowdownStats,
}

impl Selective {
    /// Returns a policy by these rules.
    pub fn new(name: &'static str, rules: Suspension) -> Selective {
        let allocator = PeAllocator::new(rules.moving);
        let (blockers, stats) = (Blockers::default(), SlowdownStats::default());
        Selective { name, rules, allocator, sets: JobSets::default(), blockers, stats }
    }

    /// Serves the jobs, the most urgent first, until one of them suspends others.
    ///
    /// Returns whether that happened: then other jobs may fit.
    fn sweep(&mut self, context: &mut Context<'_>) -> Result<bool, Violation> {
        let mut view = View::new(&self.rules, &self.allocator, &self.sets.running, context);
        for (rank, _, job) in most_urgent_first(self.runnable(context, &mut view)) {
            if let Some(pes) = view.place(&self.allocator, context, job) {
                let reason = self.reason(context, job, rank);
                self.allocator.start_or_resume(context, job, pes.clone(), reason)?;
                view.take(&self.allocator, context.ledger(), &pes);
                self.now_runs(job);
            } else if let Some((victims, pes)) = view.victims(&self.allocator, context, job, rank) {
                let reason = self.reason(context, job, rank);
                self.allocator.start_over_victims(context, job, &victims, pes, reason)?;
                self.sets.set_suspended(victims);
                if !self.allocator.claims(job) {
                    self.now_runs(job);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the jobs that can possibly run, with their ranks and admission numbers.
    fn runnable(&mut self, context: &Context<'_>, view: &mut View) -> Vec<(Rank, u64, JobId)> {
        let (ledger, now) = (context.ledger(), context.now());
        let mut able = vec![];
        for (job, returns) in self.unblocked((ledger, now)) {
            let entry = ledger.entry(job);
            let rank = self.rules.criterion.rank(entry, now);
            if returns || view.may_help(ledger, job, rank) {
                able.push((rank, entry.admitted, job));
            }
        }
        able
    }

    /// Returns the idle jobs that no running job blocks, each with whether it must return to its own
    /// processors.
    fn unblocked(&mut self, (ledger, now): (&Ledger, Time)) -> Vec<(JobId, bool)> {
        let Selective { rules, allocator, sets: JobSets { idle, running }, blockers, .. } = self;
        let settled = allocator.unpreemptable(ledger);
        blockers.refresh((ledger, now), rules);
        let mut unblocked = vec![];
        for job in idle.iter().copied() {
            if blockers.holds(job) || !allocator.is_schedulable(ledger, job) {
                continue;
            }
            let returns = allocator.must_return(ledger, ledger.entry(job));
            let kept = || pe_allocator::returns_to(ledger, job, &settled);
            if !returns || (!kept() && !blockers.find((ledger, now), rules, job, running)) {
                unblocked.push((job, returns));
            }
        }
        unblocked
    }

    fn now_runs(&mut self, job: JobId) {
        self.blockers.forget(job);
        self.sets.set_running(job);
    }

    /// Returns the start reason of a job: backfilled if a more urgent one still waits.
    fn reason(&self, context: &Context<'_>, job: JobId, rank: Rank) -> StartReason {
        let (ledger, now) = (context.ledger(), context.now());
        let ahead = |other: &JobId| {
            *other != job
                && self.allocator.is_schedulable(ledger, *other)
                && self.rules.criterion.rank(ledger.entry(*other), now) > rank
        };
        if self.sets.idle.iter().any(ahead) {
            StartReason::Backfilled
        } else if ledger.request(job).submit == now {
            StartReason::Immediate
        } else {
            StartReason::Reserved
        }
    }

    /// Requests a wake-up at the next time at which a pass can have an effect without an event.
    fn request_wake(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let period = self.rules.period;
        let by_waiting = period.and_then(|period| Some(multiple(self.next_entitlement(context)?, period)));
        let transfers = self.allocator.next_swap_out().into_iter().chain(self.allocator.next_swap_in());
        by_waiting.into_iter().chain(transfers).try_for_each(|at| context.wake_at(at))
    }

    /// Returns the earliest time at which a job will be entitled to enough processors.
    fn next_entitlement(&mut self, context: &Context<'_>) -> Option<Time> {
        let (ledger, now) = (context.ledger(), context.now());
        let unblocked = self.unblocked((ledger, now));
        let Selective { rules, allocator, sets, blockers, .. } = self;
        let mut view = None;
        // A job that returns and that no job blocks does not become able by waiting.
        let without_own = unblocked.into_iter().filter(|(_, returns)| !returns);
        let entitled = without_own.filter_map(|(job, _)| {
            let view = view.get_or_insert_with(|| View::new(rules, allocator, &sets.running, context));
            let bar = view.bar(ledger, job)?;
            rules.criterion.entitled_at(ledger.entry(job), now, bar).filter(|at| *at > now)
        });
        let settled = allocator.unpreemptable(ledger);
        // A pass follows when the processors are no longer settled.
        let mut due = blockers.due().filter(|(_, job)| !pe_allocator::returns_to(ledger, *job, &settled));
        entitled.chain(due.next().map(|(at, _)| at)).min()
    }
}

/// Returns the first multiple of a period that is not before `at`.
fn multiple(at: Time, period: Span) -> Time {
    let (at, period) = (at.ticks(), period.ticks().max(1));
    let over = at.rem_euclid(period);
    Time::from_ticks(if over == 0 { at } else { at.saturating_add(period - over) })
}

impl Policy for Selective {
    fn name(&self) -> &str {
        self.name
    }

    fn names_pes(&self) -> bool {
        true
    }

    fn rebuild(&mut self, now: Time, ledger: &Ledger) {
        self.allocator.rebuild(now, ledger);
        self.blockers = Blockers::default();
        self.sets = JobSets::new(ledger);
        if let Some(limits) = &mut self.rules.limits {
            limits.learn_from(ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.sets.insert_idle(job),
            Event::Ended(ended) => {
                if self.rules.limits.as_ref().is_some_and(|limits| limits.means.is_none()) {
                    self.stats.note(ledger.entry(ended.job), now);
                }
                self.allocator.forget(ended.job);
                self.blockers.forget(ended.job);
                self.sets.remove(ended.job);
            }
            _ => {}
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        if let Some(limits) = &mut self.rules.limits {
            self.stats.write(limits, context);
        }
        self.allocator.finish_swap_outs(context)?;
        for job in self.allocator.serve_claims(context)? {
            self.now_runs(job);
        }
        while self.sweep(context)? {}
        self.request_wake(context)
    }
}
