//! The possible starts and suspensions of one pass.

use miserly_core::{Context, JobId, Ledger, PeSet, Procs, Resources, State, Time};

use super::Suspension;
use super::pe_allocator::{self, PeAllocator};
use super::rank::Rank;

/// A job that may be suspended by jobs of sufficient rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    pub(super) rank: Rank,
    pub(super) admitted: u64,
    pub(super) job: JobId,
    /// The resources that it frees.
    pub(super) gives: Resources,
}

/// The free processors and the running jobs at one pass.
pub(super) struct View {
    rules: Suspension,
    available: PeSet,
    /// The number of these processors, and the free resources other than processors.
    free: Resources,
    /// The running jobs that may be suspended, by increasing rank.
    victims: Vec<Victim>,
    /// The highest rank among the victims of a job that needs this number of processors and nothing
    /// else.
    ///
    /// The key also records whether victims may have any width.
    bars: Vec<((bool, Procs), Option<Rank>)>,
    /// The suspended jobs that return to processors that were free at the first use, the most urgent
    /// first.
    suspended: Option<Vec<JobId>>,
}

impl View {
    pub(super) fn new(
        rules: &Suspension,
        allocator: &PeAllocator,
        running: &[JobId],
        context: &Context<'_>,
    ) -> View {
        let (ledger, now) = (context.ledger(), context.now());
        let victims = by_rank(running.iter().filter_map(|job| victim(rules, ledger, now, *job)).collect());
        let available = allocator.available(ledger);
        let free = room(allocator, ledger, &available);
        View { rules: rules.clone(), available, free, victims, bars: vec![], suspended: None }
    }

    /// Returns processors on which a job could run now.
    pub(super) fn place(
        &mut self,
        allocator: &PeAllocator,
        context: &Context<'_>,
        job: JobId,
    ) -> Option<PeSet> {
        let View { rules, available, suspended, .. } = self;
        allocator.place(context.ledger(), job, available, || {
            suspended
                .get_or_insert_with(|| by_urgency(rules, context, available, context.ledger().suspended()))
        })
    }

    /// Removes these processors from the free ones.
    pub(super) fn take(&mut self, allocator: &PeAllocator, ledger: &Ledger, pes: &PeSet) {
        self.available.remove_all(pes);
        self.free = room(allocator, ledger, &self.available);
        self.bars.clear();
    }

    /// Returns whether a job without fixed processors fits, or is entitled to enough at this rank.
    pub(super) fn may_help(&mut self, ledger: &Ledger, job: JobId, rank: Rank) -> bool {
        need(ledger, job).fits_in(&self.free)
            || self.bar(ledger, job).is_some_and(|bar| self.rules.criterion.entitles(rank, bar))
    }

    /// Returns the highest rank among the victims for this job, which has no fixed processors.
    ///
    /// Returns `None` if all victims together are not enough.
    pub(super) fn bar(&mut self, ledger: &Ledger, job: JobId) -> Option<Rank> {
        let any_width = pe_allocator::own(ledger.entry(job)).is_some();
        let need = need_of_leavers(ledger, job);
        let key = (any_width, need.cpus_count());
        let procs = ledger.request(job).procs();
        if need != Resources::cpus(need.cpus_count()) {
            return self.bar_for(&need, procs, any_width);
        }
        let at = match self.bars.binary_search_by_key(&key, |(entry, _)| *entry) {
            Ok(at) => at,
            Err(at) => {
                self.bars.insert(at, (key, self.bar_for(&need, procs, any_width)));
                at
            }
        };
        self.bars[at].1
    }

    fn bar_for(&self, need: &Resources, procs: Procs, any_width: bool) -> Option<Rank> {
        let mut had = self.free;
        let may = |victim: &&Victim| any_width || self.narrow_enough(procs, victim);
        self.victims.iter().filter(may).find_map(|victim| {
            had = had.plus(&victim.gives);
            need.fits_in(&had).then_some(victim.rank)
        })
    }

    fn narrow_enough(&self, procs: Procs, victim: &Victim) -> bool {
        !self.rules.half_width || procs.saturating_add(procs) >= victim.gives.cpus_count()
    }

    /// Returns the victims on these processors, if suspending them frees all of these processors.
    fn on(&self, ledger: &Ledger, own: &PeSet) -> Option<Vec<Victim>> {
        let has = |victim: &&Victim| {
            pe_allocator::pes(ledger.entry(victim.job)).is_some_and(|pes| pes.intersects(own))
        };
        let there: Vec<Victim> = self.victims.iter().filter(has).copied().collect();
        let mut missing = own.clone();
        missing.remove_all(&self.available);
        for pes in there.iter().filter_map(|victim| pe_allocator::pes(ledger.entry(victim.job))) {
            missing.remove_all(pes);
        }
        missing.is_empty().then_some(there)
    }

    /// Returns the victims of a job of that rank, and its processors then.
    ///
    /// Returns `None` if it is not entitled to enough.
    pub(super) fn victims(
        &self,
        allocator: &PeAllocator,
        context: &Context<'_>,
        job: JobId,
        rank: Rank,
    ) -> Option<(Vec<JobId>, PeSet)> {
        let ledger = context.ledger();
        let entry = ledger.entry(job);
        let entitled = |victim: &Victim| self.rules.criterion.entitles(rank, victim.rank);
        let own = pe_allocator::own(entry).filter(|_| allocator.must_return(ledger, entry));
        let victims = if let Some(own) = own {
            let there = self.on(ledger, own)?;
            let had = there.iter().fold(self.free, |had, victim| had.plus(&victim.gives));
            if !there.iter().all(entitled) || !need_of_leavers(ledger, job).without_cpus().fits_in(&had) {
                return None;
            }
            there
        } else {
            let any_width = pe_allocator::own(entry).is_some();
            let need = need_of_leavers(ledger, job);
            let narrow = |victim: &Victim| any_width || self.narrow_enough(entry.request.procs(), victim);
            let may = |victim: &&Victim| entitled(victim) && narrow(victim);
            enough(self.free, &need, self.victims.iter().filter(may))?
        };
        let victims: Vec<JobId> = victims.into_iter().map(|victim| victim.job).collect();
        let pes = allocator.available_without(ledger, &victims);
        let pes = if let Some(own) = own {
            pes.contains_all(own).then(|| own.clone())?
        } else {
            let leave = victims.iter().copied();
            let returning = by_urgency(&self.rules, context, &pes, ledger.suspended().chain(leave));
            allocator.choose(ledger, entry.request.procs(), &pes, &returning)?
        };
        Some((victims, pes))
    }
}

/// Returns the resources that a job without fixed processors needs to run.
pub(super) fn need(ledger: &Ledger, job: JobId) -> Resources {
    pe_allocator::rest(ledger, job).with_cpus(ledger.request(job).procs())
}

/// Returns the resources that a job needs from free resources and from victims.
///
/// Released resources first replace those that the machine has lost, so these are added to the
/// need.
pub(super) fn need_of_leavers(ledger: &Ledger, job: JobId) -> Resources {
    let need = need(ledger, job);
    need.plus(&ledger.missing().masked(&need))
}

/// Returns these processors, and the free resources other than processors.
pub(super) fn room(allocator: &PeAllocator, ledger: &Ledger, available: &PeSet) -> Resources {
    allocator.free_rest(ledger).with_cpus(available.count())
}

/// Returns the first victims until the need is met, without those that turn out to be unnecessary.
///
/// Unnecessary victims are removed from the end.
pub(super) fn enough<'v>(
    free: Resources,
    need: &Resources,
    mut from: impl Iterator<Item = &'v Victim>,
) -> Option<Vec<Victim>> {
    let mut had = free;
    let mut chosen = vec![];
    while !need.fits_in(&had) {
        let victim = *from.next()?;
        had = had.plus(&victim.gives);
        chosen.push(victim);
    }
    let mut needed: Vec<Victim> = vec![];
    for victim in chosen.into_iter().rev() {
        let fewer = had.less(&victim.gives);
        if need.fits_in(&fewer) {
            had = fewer;
        } else {
            needed.push(victim);
        }
    }
    Some(needed)
}

/// Returns the jobs that return to some of these processors, the most urgent first.
fn by_urgency(
    rules: &Suspension,
    context: &Context<'_>,
    among: &PeSet,
    jobs: impl Iterator<Item = JobId>,
) -> Vec<JobId> {
    let (ledger, now) = (context.ledger(), context.now());
    let ranked = jobs
        .map(|job| (job, ledger.entry(job)))
        .filter(|(_, entry)| pe_allocator::pes(entry).is_some_and(|pes| pes.intersects(among)))
        .map(|(job, entry)| (rules.criterion.rank(entry, now), entry.admitted, job))
        .collect();
    most_urgent_first(ranked).into_iter().map(|(.., job)| job).collect()
}

/// Returns ranked jobs by decreasing rank, then by admission number.
pub(super) fn most_urgent_first(mut ranked: Vec<(Rank, u64, JobId)>) -> Vec<(Rank, u64, JobId)> {
    ranked.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    ranked
}

/// Returns victims by increasing rank, then by admission number.
pub(super) fn by_rank(mut victims: Vec<Victim>) -> Vec<Victim> {
    victims.sort_unstable_by(|one, other| one.rank.cmp(&other.rank).then(one.admitted.cmp(&other.admitted)));
    victims
}

/// Returns a running job as a victim, if it may be suspended.
fn victim(rules: &Suspension, ledger: &Ledger, now: Time, job: JobId) -> Option<Victim> {
    let entry = ledger.entry(job);
    let State::Running { released: false, .. } = entry.state else { return None };
    if entry.progress.at > now {
        return None;
    }
    let rank = rules.criterion.rank(entry, now);
    let protected = rules.limits.as_ref().is_some_and(|limits| limits.protect(entry, rank));
    let gives = rules.moving.transfer.frees(entry);
    (!protected).then_some(Victim { rank, admitted: entry.admitted, job, gives })
}
