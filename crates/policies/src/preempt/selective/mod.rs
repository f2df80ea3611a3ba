//! Selective suspension (Kettimuthu et al.): waiting jobs suspend less urgent running jobs.

mod blockers;

mod pe_allocator;

mod limits;

mod merged;

mod occupants;

mod pe_choice;

mod policy;

mod rank;

mod running;

mod slices;

mod transfer;

mod urgency;

mod victim;

mod view;

mod wanted;

use miserly_core::{Context, Event, JobId, Ledger, PeSet, Policy, Span, StartReason, Time, Violation};

use self::blockers::Blockers;
pub use self::limits::Limits;
use self::limits::SlowdownStats;
use self::pe_allocator::PeAllocator;
pub use self::pe_choice::PeChoice;
pub use self::policy::{IS, SS, TSS};
pub use self::rank::Criterion;
use self::rank::Rank;
use self::running::Running;
pub use self::slices::Slices;
pub use self::transfer::Transfer;
use self::urgency::{Ranked, Urgency};
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
/// Two identical jobs that need all processors suspend each other at most n times with the factor
/// 2^(1/(n+1)). Later passes make suspensions fewer, never more. With the default period of a minute,
/// jobs of an hour suspend each other n times for n up to 10, and less often for larger n. A factor
/// just below such a power loses the suspension that would come less than a period before the end.
/// With a factor of one they alternate, every two periods.
///
/// A pass examines the idle jobs that no running job blocks once, and once more after each
/// suspension. Each time is O(c log c + r + r q) for c of these jobs of q widths, and r running jobs,
/// which are kept in order. A suspended job whose blocker has moved examines its own processors.
///
/// A start on free choice of processors sorts the idle jobs by their present ranks. It examines the
/// suspended ones, the most urgent first, until the choice is known ([`PeChoice::Spare`]).
pub struct Selective {
    name: &'static str,
    rules: Suspension,
    allocator: PeAllocator,
    running: Running,
    idle: Urgency,
    /// What blocks idle jobs that have to return to their own processors.
    blockers: Blockers,
    stats: SlowdownStats,
}

impl Selective {
    /// Returns a policy by these rules.
    pub fn new(name: &'static str, rules: Suspension) -> Selective {
        let allocator = PeAllocator::new(rules.moving);
        let (blockers, stats) = (Blockers::default(), SlowdownStats::default());
        let (running, idle) = (Running::none(rules.moving.transfer), Urgency::empty(rules.criterion));
        Selective { name, rules, allocator, running, idle, blockers, stats }
    }

    /// Serves the jobs, the most urgent first, until one of them suspends others.
    fn sweep(&mut self, context: &mut Context<'_>) -> Result<Sweep, Violation> {
        self.blockers.refresh((context.ledger(), context.now()), &self.rules);
        let mut view = View::new(&self.rules, &self.allocator, &mut self.running, context);
        let mut settled = self.allocator.unpreemptable(context.ledger());
        let mut moved = false;
        for (rank, _, job) in self.candidates(context, &mut view, &settled) {
            let (ledger, now) = (context.ledger(), context.now());
            if self.is_blocked((ledger, now), job, &settled)
                || moved && !self.may_help(ledger, &mut view, (job, rank))
            {
                continue;
            }
            if let Some(pes) = view.place(&self.allocator, ledger, job, &mut self.idle) {
                let reason = self.reason(context, job, rank);
                self.allocator.start_or_resume(context, job, pes.clone(), reason)?;
                view.take(&self.allocator, context.ledger(), &pes);
                self.now_runs(context.ledger(), job);
                settled = self.allocator.unpreemptable(context.ledger());
                moved = true;
            } else if let Some((victims, pes)) =
                view.victims(&self.allocator, ledger, (job, rank), (&self.running, &mut self.idle))
            {
                let reason = self.reason(context, job, rank);
                self.allocator.start_over_victims(context, job, &victims, pes, reason)?;
                for victim in victims {
                    self.now_idles(context.ledger(), victim);
                }
                if !self.allocator.claims(job) {
                    self.now_runs(context.ledger(), job);
                }
                return Ok(Sweep::Suspended);
            }
        }
        Ok(if moved { Sweep::Started } else { Sweep::Quiet(view) })
    }

    /// Returns the jobs that can possibly run, the most urgent first.
    ///
    /// A job that has to return may be blocked by a running job.
    fn candidates(&self, context: &Context<'_>, view: &mut View, settled: &PeSet) -> Vec<Ranked> {
        let (ledger, now) = (context.ledger(), context.now());
        let mut able = vec![];
        for &job in self.blockers.open() {
            let kept = !settled.is_empty()
                && self.allocator.must_return(ledger, ledger.entry(job))
                && pe_allocator::returns_to(ledger, job, settled);
            let Some(rank) = self.idle.rank_of(job, now).filter(|_| !kept) else { continue };
            if self.allocator.is_schedulable(ledger, job) && self.may_help(ledger, view, (job, rank)) {
                able.push((rank, ledger.entry(job).admitted, job));
            }
        }
        most_urgent_first(able)
    }

    /// Returns whether a job possibly fits or is entitled to enough, or must return to its own
    /// processors.
    fn may_help(&self, ledger: &Ledger, view: &mut View, (job, rank): (JobId, Rank)) -> bool {
        self.allocator.must_return(ledger, ledger.entry(job)) || view.may_help(ledger, job, rank)
    }

    /// Returns whether a job must return to its own processors, and cannot: some of them are among the
    /// `settled` ones, or a running job blocks it there.
    fn is_blocked(&mut self, (ledger, now): (&Ledger, Time), job: JobId, settled: &PeSet) -> bool {
        self.allocator.must_return(ledger, ledger.entry(job))
            && (pe_allocator::returns_to(ledger, job, settled)
                || self.blockers.find((ledger, now), &self.rules, job, &self.running))
    }

    fn now_runs(&mut self, ledger: &Ledger, job: JobId) {
        self.blockers.forget(job);
        self.idle.remove(job);
        self.running.insert(ledger, job);
    }

    fn now_idles(&mut self, ledger: &Ledger, job: JobId) {
        self.running.remove(ledger, job);
        self.idle.insert(job, ledger.entry(job));
        self.blockers.insert(job);
    }

    /// Returns the start reason of a job: backfilled if a more urgent one still waits.
    fn reason(&mut self, context: &Context<'_>, job: JobId, rank: Rank) -> StartReason {
        let (ledger, now) = (context.ledger(), context.now());
        self.idle.sort(now);
        let mut ahead = self.idle.ranked().map_while(|(its, _, other)| (its > rank).then_some(other));
        if ahead.any(|other| other != job && self.allocator.is_schedulable(ledger, other)) {
            StartReason::Backfilled
        } else if ledger.request(job).submit == now {
            StartReason::Immediate
        } else {
            StartReason::Reserved
        }
    }

    /// Requests a wake-up at the next time at which a pass can have an effect without an event.
    ///
    /// `view` shows the present, if it is known. No open job is blocked then.
    fn request_wake(&mut self, context: &mut Context<'_>, view: Option<View>) -> Result<(), Violation> {
        let period = self.rules.period;
        let by_waiting =
            period.and_then(|period| Some(multiple(self.next_entitlement(context, view)?, period)));
        let transfers = self.allocator.next_swap_out().into_iter().chain(self.allocator.next_swap_in());
        by_waiting.into_iter().chain(transfers).try_for_each(|at| context.wake_at(at))
    }

    /// Returns the earliest time at which a job will be entitled to enough processors.
    fn next_entitlement(&mut self, context: &Context<'_>, mut view: Option<View>) -> Option<Time> {
        let (ledger, now) = (context.ledger(), context.now());
        let settled = self.allocator.unpreemptable(ledger);
        if view.is_none() {
            self.blockers.refresh((ledger, now), &self.rules);
        }
        let looks = view.is_none();
        let mut next = Time::MAX;
        for job in self.blockers.open().to_vec() {
            if !self.allocator.is_schedulable(ledger, job) {
                continue;
            }
            // A job that returns and that no job blocks does not become able by waiting.
            if self.allocator.must_return(ledger, ledger.entry(job)) {
                let _ = looks && self.is_blocked((ledger, now), job, &settled);
                continue;
            }
            let Selective { rules, allocator, running, .. } = self;
            let view = view.get_or_insert_with(|| View::new(rules, allocator, running, context));
            let Some(bar) = view.bar(ledger, job) else { continue };
            let entitled = rules.criterion.entitled_at(ledger.entry(job), now, bar);
            next = entitled.filter(|at| *at > now).map_or(next, |at| at.min(next));
        }
        // A pass follows when the processors are no longer settled.
        let mut due =
            self.blockers.due().filter(|(_, job)| !pe_allocator::returns_to(ledger, *job, &settled));
        let due = due.next().map_or(Time::MAX, |(at, _)| at);
        Some(due.min(next)).filter(|at| *at < Time::MAX)
    }
}

/// The effect of a sweep.
enum Sweep {
    /// A job suspended others, so other jobs may fit.
    Suspended,
    /// Jobs started or resumed, and none was suspended.
    Started,
    /// None. This is what it saw.
    Quiet(View),
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
        self.running.rebuild(ledger);
        self.idle.rebuild(now, ledger);
        self.blockers = Blockers::default();
        ledger.waiting().chain(ledger.suspended()).for_each(|job| self.blockers.insert(job));
        if let Some(limits) = &mut self.rules.limits {
            limits.learn_from(ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => {
                self.idle.insert(job, ledger.entry(job));
                self.blockers.insert(job);
            }
            Event::Ended(ended) => {
                if self.rules.limits.as_ref().is_some_and(|limits| limits.means.is_none()) {
                    self.stats.note(ledger.entry(ended.job), now);
                }
                self.allocator.forget(ended.job);
                self.blockers.forget(ended.job);
                self.idle.remove(ended.job);
                self.running.remove(ledger, ended.job);
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
                Sweep::Quiet(view) => return self.request_wake(context, Some(view)),
            }
        }
    }
}
