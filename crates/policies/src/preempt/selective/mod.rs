//! Selective suspension (Kettimuthu et al.): waiting jobs take the processors of running ones that can better wait.

mod blockers;

mod crowd;

mod floor;

mod limits;

mod place;

mod policy;

mod rank;

mod slices;

mod transfer;

mod view;

use miserly_core::{Context, Event, JobId, Ledger, Policy, Span, StartReason, Time, Violation};

use self::blockers::Blockers;
use self::crowd::JobSets;
use self::floor::PeAllocator;
pub use self::limits::Limits;
use self::limits::SlowdownStats;
pub use self::place::Place;
pub use self::policy::{IS, SS, TSS};
pub use self::rank::Criterion;
use self::rank::Rank;
pub use self::slices::Slices;
pub use self::transfer::Transfer;
use self::view::{View, most_urgent_first};

/// How jobs are suspended for others.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspension {
    /// Who may suspend whom.
    pub criterion: Criterion,
    /// A job may suspend one of up to twice its width only.
    pub half_width: bool,
    /// Who cannot be suspended any more, if anybody.
    pub limits: Option<Limits>,
    /// There is a pass at the multiples of this, if anything could come of it; if there is such a time.
    pub period: Option<Span>,
    /// Where jobs go, and what it costs to take them from there.
    pub moving: Moving,
}

/// How jobs leave processors, and which they have then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moving {
    /// What it costs to leave.
    pub transfer: Transfer,
    /// A suspended job may run on elsewhere than where it was.
    pub migrates: bool,
    /// Where a job goes that may be anywhere.
    pub place: Place,
}

/// Starts whoever fits, the most urgent first, and suspends running jobs for more urgent ones that do not.
///
/// # A pass
/// Jobs that do not run, by decreasing rank ([`Criterion`]). One that fits in what is free runs: a waiting job anywhere, a suspended
/// one where it was, unless jobs migrate. Else it may take running jobs from their processors, by increasing rank, of whom its rank
/// entitles it to each; of twice its width at most, unless it comes back to processors of its own; and none, if it would not fit
/// even then. Those with the largest ranks are spared that turn out not to be needed. Nobody has a reservation: ranks grow with the
/// wait, so everybody's turn comes.
///
/// A job that is being written out, or read back, cannot be suspended; there is a pass when that is over. Who is to have its processors has a claim on them.
///
/// # Passes without events
/// As time goes on, ranks of waiting jobs reach what entitles them to somebody's processors. When that is first follows from the ranks: there
/// is a pass at the next multiple of the period then, and none before.
///
/// A pass looks at everybody once, and once more after each suspension: O((w + r) log (w + r) + w q) each time, for w jobs that do not run, of q
/// widths, and r that do. A suspended job whose blocker has moved looks at each running job; and for each start somewhere the processors of all
/// suspended jobs are gone through ([`Place::Spare`]).
pub struct Selective {
    name: &'static str,
    rules: Suspension,
    floor: PeAllocator,
    crowd: JobSets,
    /// Of those that have to come back to their processors.
    blockers: Blockers,
    lessons: SlowdownStats,
}

impl Selective {
    /// A policy by these rules.
    pub fn new(name: &'static str, rules: Suspension) -> Selective {
        let floor = PeAllocator::new(rules.moving);
        let (blockers, lessons) = (Blockers::default(), SlowdownStats::default());
        Selective { name, rules, floor, crowd: JobSets::default(), blockers, lessons }
    }

    /// Sees to everybody, the most urgent first, until somebody was suspended: then others may fit. Whether that was so.
    fn sweep(&mut self, context: &mut Context<'_>) -> Result<bool, Violation> {
        let mut view = View::of(&self.rules, &self.floor, &self.crowd.running, context);
        for (rank, _, job) in most_urgent_first(self.able(context, &mut view)) {
            if let Some(pes) = view.place(&self.floor, context, job) {
                let reason = self.reason(context, job, rank);
                self.floor.go_on(context, job, pes.clone(), reason)?;
                view.take(&self.floor, context.ledger(), &pes);
                self.now_runs(job);
            } else if let Some((victims, pes)) = view.victims(&self.floor, context, job, rank) {
                let reason = self.reason(context, job, rank);
                self.floor.take_over(context, job, &victims, pes, reason)?;
                self.crowd.are_suspended(victims);
                if !self.floor.claims(job) {
                    self.now_runs(job);
                }
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The jobs for whom something can be done, by the look of it, with their ranks and admissions.
    fn able(&mut self, context: &Context<'_>, view: &mut View) -> Vec<(Rank, u64, JobId)> {
        let (ledger, now) = (context.ledger(), context.now());
        let Selective { rules, floor, crowd: JobSets { idle, running }, blockers, .. } = self;
        let settled = floor.settled(ledger);
        let mut able = vec![];
        for job in idle.iter().copied().filter(|job| floor.is_free_to_go(ledger, *job)) {
            let entry = ledger.entry(job);
            let rank = || rules.criterion.rank(entry, now);
            let can = if floor.must_return(ledger, entry) {
                !floor::own(entry).is_some_and(|own| own.intersects(&settled))
                    && blockers.find((ledger, now), rules, job, running).is_none()
            } else {
                view.may_help(ledger, job, rank())
            };
            if can {
                able.push((rank(), entry.admitted, job));
            }
        }
        able
    }

    fn now_runs(&mut self, job: JobId) {
        self.blockers.forget(job);
        self.crowd.runs(job);
    }

    /// Why a job starts: ahead of its turn, if a more urgent one still waits.
    fn reason(&self, context: &Context<'_>, job: JobId, rank: Rank) -> StartReason {
        let (ledger, now) = (context.ledger(), context.now());
        let ahead = |other: &JobId| {
            *other != job
                && self.floor.is_free_to_go(ledger, *other)
                && self.rules.criterion.rank(ledger.entry(*other), now) > rank
        };
        if self.crowd.idle.iter().any(ahead) {
            StartReason::Backfilled
        } else if ledger.request(job).submit == now {
            StartReason::Immediate
        } else {
            StartReason::Reserved
        }
    }

    /// Asks for the pass at which something can be done next, if nothing happens before.
    fn ask_to_wake(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        let period = self.rules.period;
        let by_waiting = period.and_then(|period| Some(multiple(self.entitled_next(context)?, period)));
        let transfers = self.floor.next_written().into_iter().chain(self.floor.next_read());
        by_waiting.into_iter().chain(transfers).try_for_each(|at| context.wake_at(at))
    }

    /// When somebody will be entitled to enough processors, at the earliest.
    fn entitled_next(&mut self, context: &Context<'_>) -> Option<Time> {
        let (ledger, now) = (context.ledger(), context.now());
        let Selective { rules, floor, crowd: JobSets { idle, running }, blockers, .. } = self;
        let settled = floor.settled(ledger);
        let mut view = None;
        let idle = idle.iter().copied().filter(|job| floor.is_free_to_go(ledger, *job));
        let at = |job: JobId| {
            let entry = ledger.entry(job);
            if floor.must_return(ledger, entry) {
                if floor::own(entry).is_some_and(|own| own.intersects(&settled)) {
                    // There is a pass when that is over.
                    return None;
                }
                let until = blockers.find((ledger, now), rules, job, running);
                return until.filter(|at| *at < Time::MAX);
            }
            let view = view.get_or_insert_with(|| View::of(rules, floor, running, context));
            let bar = view.bar(ledger, job)?;
            rules.criterion.entitled_at(entry, now, bar).filter(|at| *at > now)
        };
        idle.filter_map(at).min()
    }
}

/// The first multiple of a period that is not before then.
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
        self.floor.rebuild(now, ledger);
        self.blockers = Blockers::default();
        self.crowd = JobSets::of(ledger);
        if let Some(limits) = &mut self.rules.limits {
            limits.learn_from(ledger);
        }
    }

    fn event(&mut self, now: Time, event: Event, ledger: &Ledger) {
        match event {
            Event::Submitted(job) => self.crowd.comes(job),
            Event::Ended(ended) => {
                if self.rules.limits.as_ref().is_some_and(|limits| limits.means.is_none()) {
                    self.lessons.note(ledger.entry(ended.job), now);
                }
                self.floor.forget(ended.job);
                self.blockers.forget(ended.job);
                self.crowd.is_gone(ended.job);
            }
            _ => {}
        }
    }

    fn pass(&mut self, context: &mut Context<'_>) -> Result<(), Violation> {
        if let Some(limits) = &mut self.rules.limits {
            self.lessons.write(limits, context);
        }
        self.floor.vacate(context)?;
        for job in self.floor.serve_claims(context)? {
            self.now_runs(job);
        }
        while self.sweep(context)? {}
        self.ask_to_wake(context)
    }
}
