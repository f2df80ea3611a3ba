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

mod victim;

mod view;

use miserly_core::{Context, Event, JobId, Ledger, Policy, Span, StartReason, Time, Violation};

use self::blockers::Blockers;
use self::job_sets::{JobSets, Known};
pub use self::limits::Limits;
use self::limits::SlowdownStats;
use self::pe_allocator::PeAllocator;
pub use self::pe_choice::PeChoice;
pub use self::policy::{IS, SS, TSS};
pub use self::rank::Criterion;
use self::rank::Rank;
pub use self::slices::Slices;
pub use self::transfer::Transfer;
use self::view::{Ranked, View, most_urgent_first};

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
/// A pass examines all jobs once, and once more after each suspension. Each time is O(w log w + r +
/// r q) for w idle jobs of q widths, and r running jobs, which are kept in order. A suspended job
/// whose blocker has moved examines each running job. Each start on free choice of processors
/// examines those of all suspended jobs ([`PeChoice::Spare`]), and sorts these jobs only if too few
/// processors are left beside theirs.
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
        let sets = JobSets::empty(rules.moving.transfer);
        Selective { name, rules, allocator, sets, blockers, stats }
    }

    /// Serves the jobs, the most urgent first, until one of them suspends others.
    fn sweep(&mut self, context: &mut Context<'_>) -> Result<Sweep, Violation> {
        let unblocked = self.unblocked((context.ledger(), context.now()));
        let mut view = View::new(&self.rules, &self.allocator, &mut self.sets, context);
        let mut moved = false;
        for (rank, _, job) in most_urgent_first(self.runnable(context, &mut view, &unblocked)) {
            let ledger = context.ledger();
            if let Some(pes) = view.place(&self.allocator, ledger, job, &self.sets.idle) {
                let reason = self.reason(context, job, rank);
                self.allocator.start_or_resume(context, job, pes.clone(), reason)?;
                view.take(&self.allocator, context.ledger(), &pes);
                self.now_runs(context.ledger(), job);
                moved = true;
            } else if let Some((victims, pes)) =
                view.victims(&self.allocator, ledger, (job, rank), &self.sets.idle)
            {
                let reason = self.reason(context, job, rank);
                self.allocator.start_over_victims(context, job, &victims, pes, reason)?;
                self.sets.set_suspended(context.ledger(), &victims);
                if !self.allocator.claims(job) {
                    self.now_runs(context.ledger(), job);
                }
                return Ok(Sweep::Suspended);
            }
        }
        Ok(if moved { Sweep::Started } else { Sweep::Quiet(Look { unblocked, view }) })
    }

    /// Returns the jobs that can possibly run, with their ranks and admission numbers.
    fn runnable(&self, context: &Context<'_>, view: &mut View, unblocked: &[Unblocked]) -> Vec<Ranked> {
        let (ledger, now) = (context.ledger(), context.now());
        let mut able = vec![];
        for &Unblocked { idle, returns } in unblocked {
            let known = &self.sets.idle[idle];
            let rank = known.rank(self.rules.criterion, now);
            if returns || view.may_help(ledger, known.job, rank) {
                able.push((rank, known.admitted, known.job));
            }
        }
        able
    }

    /// Returns the idle jobs that no running job blocks.
    fn unblocked(&mut self, (ledger, now): (&Ledger, Time)) -> Vec<Unblocked> {
        let Selective { rules, allocator, sets: JobSets { idle, running, .. }, blockers, .. } = self;
        let settled = allocator.unpreemptable(ledger);
        blockers.refresh((ledger, now), rules);
        let mut unblocked = vec![];
        for (at, &Known { job, suspended, .. }) in idle.iter().enumerate() {
            if blockers.holds(job) || !allocator.is_schedulable(ledger, job) {
                continue;
            }
            let returns = suspended && allocator.must_return(ledger, ledger.entry(job));
            let kept = || pe_allocator::returns_to(ledger, job, &settled);
            if !returns || (!kept() && !blockers.find((ledger, now), rules, job, running)) {
                unblocked.push(Unblocked { idle: at, returns });
            }
        }
        unblocked
    }

    fn now_runs(&mut self, ledger: &Ledger, job: JobId) {
        self.blockers.forget(job);
        self.sets.set_running(ledger, job);
    }

    /// Returns the start reason of a job: backfilled if a more urgent one still waits.
    fn reason(&self, context: &Context<'_>, job: JobId, rank: Rank) -> StartReason {
        let (ledger, now) = (context.ledger(), context.now());
        let ahead = |other: &Known| {
            other.job != job
                && other.rank(self.rules.criterion, now) > rank
                && self.allocator.is_schedulable(ledger, other.job)
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
    ///
    /// `look` has the present jobs that are not blocked, if they are known.
    fn request_wake(&mut self, context: &mut Context<'_>, look: Option<Look>) -> Result<(), Violation> {
        let period = self.rules.period;
        let by_waiting =
            period.and_then(|period| Some(multiple(self.next_entitlement(context, look)?, period)));
        let transfers = self.allocator.next_swap_out().into_iter().chain(self.allocator.next_swap_in());
        by_waiting.into_iter().chain(transfers).try_for_each(|at| context.wake_at(at))
    }

    /// Returns the earliest time at which a job will be entitled to enough processors.
    fn next_entitlement(&mut self, context: &Context<'_>, look: Option<Look>) -> Option<Time> {
        let (ledger, now) = (context.ledger(), context.now());
        let (unblocked, mut view) = match look {
            Some(Look { unblocked, view }) => (unblocked, Some(view)),
            None => (self.unblocked((ledger, now)), None),
        };
        let Selective { rules, allocator, sets, blockers, .. } = self;
        let mut next = Time::MAX;
        // A job that returns and that no job blocks does not become able by waiting.
        for Unblocked { idle, .. } in unblocked.into_iter().filter(|job| !job.returns) {
            let view = view.get_or_insert_with(|| View::new(rules, allocator, sets, context));
            let job = sets.idle[idle].job;
            let Some(bar) = view.bar(ledger, job) else { continue };
            let entitled = rules.criterion.entitled_at(ledger.entry(job), now, bar);
            next = entitled.filter(|at| *at > now).map_or(next, |at| at.min(next));
        }
        let settled = allocator.unpreemptable(ledger);
        // A pass follows when the processors are no longer settled.
        let mut due = blockers.due().filter(|(_, job)| !pe_allocator::returns_to(ledger, *job, &settled));
        let due = due.next().map_or(Time::MAX, |(at, _)| at);
        Some(due.min(next)).filter(|at| *at < Time::MAX)
    }
}

/// An idle job that no running job blocks.
#[derive(Clone, Copy, Debug)]
struct Unblocked {
    /// Its position among the idle jobs.
    idle: usize,
    /// Whether it must return to its own processors.
    returns: bool,
}

/// What a sweep saw that changed nothing.
struct Look {
    unblocked: Vec<Unblocked>,
    view: View,
}

/// The effect of a sweep.
enum Sweep {
    /// A job suspended others, so other jobs may fit.
    Suspended,
    /// Jobs started or resumed, and none was suspended.
    Started,
    /// None.
    Quiet(Look),
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
        self.sets.rebuild(ledger);
        if let Some(limits) = &mut self.rules.limits {
            limits.learn_from(ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.sets.insert_idle(ledger, job),
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
            self.now_runs(context.ledger(), job);
        }
        loop {
            match self.sweep(context)? {
                Sweep::Suspended => {}
                Sweep::Started => return self.request_wake(context, None),
                Sweep::Quiet(look) => return self.request_wake(context, Some(look)),
            }
        }
    }
}
