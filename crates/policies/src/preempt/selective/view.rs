//! The possible starts and suspensions of one pass.

use std::cmp::Ordering;

use miserly_core::{Context, JobId, Ledger, PeSet, Procs, Resources, Time};

use super::Suspension;
use super::merged::merged;
use super::pe_allocator::{self, PeAllocator};
use super::rank::{Criterion, Rank};
use super::running::Running;
use super::urgency::{Ranked, Urgency};
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

impl View {
    pub(super) fn new(
        rules: &Suspension,
        allocator: &PeAllocator,
        running: &mut Running,
        context: &Context<'_>,
    ) -> View {
        let (ledger, now) = (context.ledger(), context.now());
        let Suspension { criterion, half_width, ref limits, .. } = *rules;
        let victims = running.victims((ledger, now), criterion, |entry, rank| {
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
        idle: &mut Urgency,
    ) -> Option<PeSet> {
        allocator.place(ledger, job, &self.available, || {
            idle.sort(self.now);
            let by_urgency = idle.suspended().map(|(.., job)| job);
            allocator.choose(ledger, ledger.request(job).procs(), &self.available, &[], by_urgency)
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
    fn on(&self, ledger: &Ledger, running: &Running, own: &PeSet) -> Option<Vec<Victim>> {
        let mut there: Vec<JobId> = running.on(ledger, own).collect();
        there.sort_unstable();
        there.dedup();
        // Nothing frees the processors of a job that is no victim.
        let at = there.into_iter().map(|job| self.position(ledger, running, job));
        let mut at: Vec<usize> = at.collect::<Option<_>>()?;
        at.sort_unstable();
        let there: Vec<Victim> = at.into_iter().map(|at| self.victims[at]).collect();
        let mut missing = own.clone();
        missing.remove_all(&self.available);
        for pes in there.iter().filter_map(|victim| pe_allocator::pes(ledger.entry(victim.job))) {
            missing.remove_all(pes);
        }
        missing.is_empty().then_some(there)
    }

    /// Returns the position of a running job among the victims.
    fn position(&self, ledger: &Ledger, running: &Running, job: JobId) -> Option<usize> {
        let (rank, admitted) = (running.rank(self.criterion, self.now, job)?, ledger.entry(job).admitted);
        let key = (rank, admitted);
        self.victims.binary_search_by(|victim| (victim.rank, victim.admitted).cmp(&key)).ok()
    }

    /// Returns the victims of a job of that rank, and its processors then.
    ///
    /// Returns `None` if it is not entitled to enough.
    pub(super) fn victims(
        &self,
        allocator: &PeAllocator,
        ledger: &Ledger,
        (job, rank): (JobId, Rank),
        (running, idle): (&Running, &mut Urgency),
    ) -> Option<(Vec<JobId>, PeSet)> {
        let entry = ledger.entry(job);
        let entitled = |victim: &Victim| self.criterion.entitles(rank, victim.rank);
        let own = pe_allocator::own(entry).filter(|_| allocator.must_return(ledger, entry));
        let victims = if let Some(own) = own {
            let there = self.on(ledger, running, own)?;
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
        let jobs: Vec<JobId> = victims.iter().map(|victim| victim.job).collect();
        let pes = allocator.available_without(ledger, &jobs);
        let pes = if let Some(own) = own {
            pes.contains_all(own).then(|| own.clone())?
        } else {
            idle.sort(self.now);
            let leave = victims.iter().map(|victim| (victim.rank, victim.admitted, victim.job));
            let leave = most_urgent_first(leave.collect());
            let by_urgency = merged(idle.suspended(), leave.into_iter(), urgent_first).map(|(.., job)| job);
            allocator.choose(ledger, entry.request.procs(), &pes, &jobs, by_urgency)?
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

/// Returns ranked jobs by decreasing rank, then by admission number.
pub(super) fn most_urgent_first(mut ranked: Vec<Ranked>) -> Vec<Ranked> {
    ranked.sort_unstable_by(urgent_first);
    ranked
}

fn urgent_first(one: &Ranked, other: &Ranked) -> Ordering {
    other.0.cmp(&one.0).then(one.1.cmp(&other.1))
}
