//! What a job could bring about at this pass.

use miserly_core::{Context, JobId, Ledger, PeSet, Procs, Resources, State, Time};

use super::Suspension;
use super::floor::{self, PeAllocator};
use super::rank::Rank;

/// A job that may be suspended by whoever is entitled to that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    pub(super) rank: Rank,
    pub(super) admitted: u64,
    pub(super) job: JobId,
    /// What it leaves.
    pub(super) gives: Resources,
}

/// The processors that are free, and the running jobs, as they are at one pass.
pub(super) struct View {
    rules: Suspension,
    available: PeSet,
    /// How many these are, and what is free besides processors.
    free: Resources,
    /// The running jobs that may be suspended, by increasing rank.
    victims: Vec<Victim>,
    /// The rank of the last job that has to be suspended for somebody who needs so many processors and nothing else; whether victims may
    /// be of any width.
    bars: Vec<((bool, Procs), Option<Rank>)>,
    /// The suspended jobs, the most urgent first, once somebody had to know.
    suspended: Option<Vec<JobId>>,
}

impl View {
    pub(super) fn of(
        rules: &Suspension,
        floor: &PeAllocator,
        running: &[JobId],
        context: &Context<'_>,
    ) -> View {
        let (ledger, now) = (context.ledger(), context.now());
        let victims = by_rank(running.iter().filter_map(|job| victim(rules, ledger, now, *job)).collect());
        let available = floor.available(ledger);
        let free = room(floor, ledger, &available);
        View { rules: rules.clone(), available, free, victims, bars: vec![], suspended: None }
    }

    /// Where a job could be now.
    pub(super) fn place(&mut self, floor: &PeAllocator, context: &Context<'_>, job: JobId) -> Option<PeSet> {
        let View { rules, available, suspended, .. } = self;
        floor.place(context.ledger(), job, available, || {
            suspended.get_or_insert_with(|| by_urgency(rules, context, context.ledger().suspended()))
        })
    }

    /// These are not free any more.
    pub(super) fn take(&mut self, floor: &PeAllocator, ledger: &Ledger, pes: &PeSet) {
        self.available.remove_all(pes);
        self.free = room(floor, ledger, &self.available);
        self.bars.clear();
    }

    /// Whether a job of that rank that may be anywhere fits, or is entitled to enough.
    pub(super) fn may_help(&mut self, ledger: &Ledger, job: JobId, rank: Rank) -> bool {
        need(ledger, job).fits_in(&self.free)
            || self.bar(ledger, job).is_some_and(|bar| self.rules.criterion.entitles(rank, bar))
    }

    /// The rank of the most urgent job that has to be suspended for this one, which may be anywhere; `None` if that would not do.
    pub(super) fn bar(&mut self, ledger: &Ledger, job: JobId) -> Option<Rank> {
        let any_width = floor::own(ledger.entry(job)).is_some();
        let need = need_of_leavers(ledger, job);
        let key = (any_width, need.cpus_count());
        let procs = ledger.request(job).procs();
        if need != Resources::cpus(need.cpus_count()) {
            return self.bar_for(&need, procs, any_width);
        }
        let at = match self.bars.binary_search_by_key(&key, |(asked, _)| *asked) {
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

    /// Who is on these processors, if all of them can be had by suspending jobs.
    fn on(&self, ledger: &Ledger, own: &PeSet) -> Option<Vec<Victim>> {
        let has =
            |victim: &&Victim| floor::pes(ledger.entry(victim.job)).is_some_and(|pes| pes.intersects(own));
        let there: Vec<Victim> = self.victims.iter().filter(has).copied().collect();
        let mut missing = own.clone();
        missing.remove_all(&self.available);
        for pes in there.iter().filter_map(|victim| floor::pes(ledger.entry(victim.job))) {
            missing.remove_all(pes);
        }
        missing.is_empty().then_some(there)
    }

    /// Whom a job of that rank suspends, and what it has then; `None` if it is not entitled to enough.
    pub(super) fn victims(
        &self,
        floor: &PeAllocator,
        context: &Context<'_>,
        job: JobId,
        rank: Rank,
    ) -> Option<(Vec<JobId>, PeSet)> {
        let ledger = context.ledger();
        let entry = ledger.entry(job);
        let entitled = |victim: &Victim| self.rules.criterion.entitles(rank, victim.rank);
        let own = floor::own(entry).filter(|_| floor.must_return(ledger, entry));
        let victims = if let Some(own) = own {
            let there = self.on(ledger, own)?;
            let had = there.iter().fold(self.free, |had, victim| had.plus(&victim.gives));
            if !there.iter().all(entitled) || !need_of_leavers(ledger, job).without_cpus().fits_in(&had) {
                return None;
            }
            there
        } else {
            let any_width = floor::own(entry).is_some();
            let need = need_of_leavers(ledger, job);
            let narrow = |victim: &Victim| any_width || self.narrow_enough(entry.request.procs(), victim);
            let may = |victim: &&Victim| entitled(victim) && narrow(victim);
            enough(self.free, &need, self.victims.iter().filter(may))?
        };
        let victims: Vec<JobId> = victims.into_iter().map(|victim| victim.job).collect();
        let pes = floor.available_without(ledger, &victims);
        let pes = if let Some(own) = own {
            pes.contains_all(own).then(|| own.clone())?
        } else {
            let leave = victims.iter().copied();
            let returning = by_urgency(&self.rules, context, ledger.suspended().chain(leave));
            floor.choose(ledger, entry.request.procs(), &pes, &returning)?
        };
        Some((victims, pes))
    }
}

/// What a job has to be given to run where it may be anywhere.
pub(super) fn need(ledger: &Ledger, job: JobId) -> Resources {
    floor::rest(ledger, job).with_cpus(ledger.request(job).procs())
}

/// What a job has to be given by jobs that leave, with what is free: of what it needs, the first makes up for
/// what the machine has lost.
pub(super) fn need_of_leavers(ledger: &Ledger, job: JobId) -> Resources {
    let need = need(ledger, job);
    need.plus(&ledger.missing().masked(&need))
}

/// These processors, and what is free besides processors.
pub(super) fn room(floor: &PeAllocator, ledger: &Ledger, available: &PeSet) -> Resources {
    floor.free_rest(ledger).with_cpus(available.count())
}

/// The first of these until there is enough with what is free, without those at their end that are not needed then.
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

/// These jobs, the most urgent first.
fn by_urgency(rules: &Suspension, context: &Context<'_>, jobs: impl Iterator<Item = JobId>) -> Vec<JobId> {
    let (ledger, now) = (context.ledger(), context.now());
    let ranked = jobs
        .map(|job| (job, ledger.entry(job)))
        .map(|(job, entry)| (rules.criterion.rank(entry, now), entry.admitted, job))
        .collect();
    most_urgent_first(ranked).into_iter().map(|(.., job)| job).collect()
}

/// Jobs with their ranks and admissions by decreasing rank; of one rank, those that came first.
pub(super) fn most_urgent_first(mut ranked: Vec<(Rank, u64, JobId)>) -> Vec<(Rank, u64, JobId)> {
    ranked.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    ranked
}

/// Victims by increasing rank; of one rank, those that came first.
pub(super) fn by_rank(mut victims: Vec<Victim>) -> Vec<Victim> {
    victims.sort_unstable_by(|one, other| one.rank.cmp(&other.rank).then(one.admitted.cmp(&other.admitted)));
    victims
}

/// A running job, if it may be suspended at all.
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
