//! The possible starts and suspensions of one pass.

use miserly_core::{Context, JobId, Ledger, PeSet, Procs, Resources, Time};

use super::Suspension;
use super::job_sets::{JobSets, Known};
use super::pe_allocator::{self, PeAllocator};
use super::rank::{Criterion, Rank};
use super::victim::{Victim, enough};

/// The free processors and the running jobs at one pass.
pub(super) struct View {
    criterion: Criterion,
    /// Whether a job may suspend only jobs of up to twice its width.
    half_width: bool,
    now: Time,
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
}

/// A job with its rank and its admission number.
pub(super) type Ranked = (Rank, u64, JobId);

impl View {
    pub(super) fn new(
        rules: &Suspension,
        allocator: &PeAllocator,
        sets: &mut JobSets,
        context: &Context<'_>,
    ) -> View {
        let (ledger, now) = (context.ledger(), context.now());
        let Suspension { criterion, half_width, ref limits, .. } = *rules;
        let victims = sets.victims((ledger, now), criterion, |entry, rank| {
            limits.as_ref().is_some_and(|limits| limits.protect(entry, rank))
        });
        let available = allocator.available(ledger);
        let free = room(allocator, ledger, &available);
        View { criterion, half_width, now, available, free, victims, bars: vec![] }
    }

    /// Returns processors on which a job could run now.
    pub(super) fn place(
        &self,
        allocator: &PeAllocator,
        ledger: &Ledger,
        job: JobId,
        idle: &[Known],
    ) -> Option<PeSet> {
        allocator.place(ledger, job, &self.available, || {
            let procs = ledger.request(job).procs();
            choose(allocator, ledger, procs, &self.available, self.suspended(idle))
        })
    }

    /// Returns the suspended ones of the idle jobs.
    fn suspended<'k>(&self, idle: &'k [Known]) -> impl Iterator<Item = Ranked> + Clone + use<'k> {
        let (criterion, now) = (self.criterion, self.now);
        let suspended = idle.iter().filter(|known| known.suspended);
        suspended.map(move |known| (known.rank(criterion, now), known.admitted, known.job))
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
            || self.bar(ledger, job).is_some_and(|bar| self.criterion.entitles(rank, bar))
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
        let may = |victim: &&Victim| any_width || self.narrow_enough(procs, victim);
        if *need == Resources::cpus(need.cpus_count()) {
            let mut had = self.free.cpus_count();
            return self.victims.iter().filter(may).find_map(|victim| {
                had = had.saturating_add(victim.gives.cpus_count());
                (need.cpus_count() <= had).then_some(victim.rank)
            });
        }
        let mut had = self.free;
        self.victims.iter().filter(may).find_map(|victim| {
            had = had.plus(&victim.gives);
            need.fits_in(&had).then_some(victim.rank)
        })
    }

    fn narrow_enough(&self, procs: Procs, victim: &Victim) -> bool {
        !self.half_width || procs.saturating_add(procs) >= victim.gives.cpus_count()
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
        ledger: &Ledger,
        (job, rank): (JobId, Rank),
        idle: &[Known],
    ) -> Option<(Vec<JobId>, PeSet)> {
        let entry = ledger.entry(job);
        let entitled = |victim: &Victim| self.criterion.entitles(rank, victim.rank);
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
        let leave = victims.iter().map(|victim| (victim.rank, victim.admitted, victim.job));
        let jobs: Vec<JobId> = victims.iter().map(|victim| victim.job).collect();
        let pes = allocator.available_without(ledger, &jobs);
        let pes = if let Some(own) = own {
            pes.contains_all(own).then(|| own.clone())?
        } else {
            let returning = self.suspended(idle).chain(leave);
            choose(allocator, ledger, entry.request.procs(), &pes, returning)?
        };
        Some((jobs, pes))
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

/// Returns the jobs that return to some of these processors, the most urgent first.
fn by_urgency(ledger: &Ledger, among: &PeSet, jobs: impl Iterator<Item = Ranked>) -> Vec<JobId> {
    let there = jobs
        .filter(|(.., job)| pe_allocator::pes(ledger.entry(*job)).is_some_and(|pes| pes.intersects(among)));
    most_urgent_first(there.collect()).into_iter().map(|(.., job)| job).collect()
}

/// Returns ranked jobs by decreasing rank, then by admission number.
pub(super) fn most_urgent_first(mut ranked: Vec<Ranked>) -> Vec<Ranked> {
    ranked.sort_unstable_by(|one, other| other.0.cmp(&one.0).then(one.1.cmp(&other.1)));
    ranked
}

/// Returns `procs` of these processors for a job without fixed processors, beside these jobs
/// that return to their own.
fn choose(
    allocator: &PeAllocator,
    ledger: &Ledger,
    procs: Procs,
    of: &PeSet,
    returning: impl Iterator<Item = Ranked> + Clone,
) -> Option<PeSet> {
    let jobs = returning.clone().map(|(.., job)| job);
    allocator.choose(ledger, procs, of, jobs, || by_urgency(ledger, of, returning))
}
