//! What a job could bring about at this pass.

use miserly_core::{Desk, Entry, JobId, Ledger, PeSet, State, Time};

use super::floor::{self, Floor};
use super::rank::Rank;
use super::{Suspension, Transfer};

/// A job that may be suspended by whoever is entitled to that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    pub(super) rank: Rank,
    pub(super) admitted: u64,
    pub(super) job: JobId,
    pub(super) procs: u64,
}

/// The processors that are free, and the running jobs, as they are at one pass.
pub(super) struct View {
    rules: Suspension,
    available: PeSet,
    free: u64,
    /// The running jobs that may be suspended, by increasing rank.
    victims: Vec<Victim>,
    must_return: bool,
    /// The smallest rank at which enough could be had, for each width that was asked for; at least, of those that give it.
    bars: Vec<(u64, Option<Rank>)>,
}

impl View {
    pub(super) fn of(rules: &Suspension, floor: &Floor, running: &[JobId], desk: &Desk<'_>) -> View {
        let (ledger, now) = (desk.ledger(), desk.now());
        let mut victims: Vec<Victim> =
            running.iter().filter_map(|job| victim(rules, ledger, now, *job)).collect();
        victims
            .sort_unstable_by(|one, other| one.rank.cmp(&other.rank).then(one.admitted.cmp(&other.admitted)));
        let available = floor.available(ledger);
        let free = available.count();
        View { rules: rules.clone(), available, free, victims, must_return: !floor.migrates(), bars: vec![] }
    }

    pub(super) fn available(&self) -> &PeSet {
        &self.available
    }

    /// These are not free any more.
    pub(super) fn take(&mut self, pes: &PeSet) {
        self.available.remove_all(pes);
        self.free = self.available.count();
        self.bars.clear();
    }

    /// Whether a job of that rank fits, or is entitled to enough processors, as far as processors go. It may be that it cannot run all the same.
    pub(super) fn may_help(&mut self, ledger: &Ledger, job: JobId, rank: Rank) -> bool {
        let entry = ledger.entry(job);
        let fits = match self.own(entry) {
            Some(own) => self.available.contains_all(own),
            None => entry.request.procs() <= self.free,
        };
        fits || self.bar(ledger, job).is_some_and(|bar| self.rules.criterion.entitles(rank, bar))
    }

    /// The rank of the most urgent job that has to be suspended for this one; `None` if that would not do, or nobody has to.
    pub(super) fn bar(&mut self, ledger: &Ledger, job: JobId) -> Option<Rank> {
        let entry = ledger.entry(job);
        if let Some(own) = self.own(entry) {
            return self
                .on(ledger, own)
                .map(|victims| victims.into_iter().map(|victim| victim.rank).max())?;
        }
        let procs = entry.request.procs();
        let any_width = floor::own(entry).is_some();
        let known = self.bars.iter().find(|(width, _)| *width == procs && !any_width);
        if let Some((_, bar)) = known {
            return *bar;
        }
        let bar = self.bar_for(procs, any_width);
        if !any_width {
            self.bars.push((procs, bar));
        }
        bar
    }

    fn bar_for(&self, procs: u64, any_width: bool) -> Option<Rank> {
        let mut had = self.free;
        self.victims.iter().filter(|victim| any_width || self.narrow_enough(procs, victim)).find_map(
            |victim| {
                had += victim.procs;
                (had >= procs).then_some(victim.rank)
            },
        )
    }

    fn narrow_enough(&self, procs: u64, victim: &Victim) -> bool {
        !self.rules.half_width || procs.saturating_mul(2) >= victim.procs
    }

    /// The processors that a job has to come back to.
    fn own<'e>(&self, entry: &'e Entry) -> Option<&'e PeSet> {
        floor::own(entry).filter(|_| self.must_return)
    }

    /// Who is on these processors, if all of them can be had by suspending jobs.
    fn on(&self, ledger: &Ledger, own: &PeSet) -> Option<Vec<Victim>> {
        let has = |victim: &&Victim| floor::pes(ledger.entry(victim.job)).is_some_and(|pes| pes.meets(own));
        let there: Vec<Victim> = self.victims.iter().filter(has).copied().collect();
        let mut missing = own.clone();
        missing.remove_all(&self.available);
        for pes in there.iter().filter_map(|victim| floor::pes(ledger.entry(victim.job))) {
            missing.remove_all(pes);
        }
        missing.is_empty().then_some(there)
    }

    /// Whom a job of that rank suspends, and what it has then; `None` if it is not entitled to enough.
    pub(super) fn victims(&self, ledger: &Ledger, job: JobId, rank: Rank) -> Option<(Vec<JobId>, PeSet)> {
        let entry = ledger.entry(job);
        let entitled = |victim: &Victim| self.rules.criterion.entitles(rank, victim.rank);
        let (victims, pes) = if let Some(own) = self.own(entry) {
            let there = self.on(ledger, own)?;
            if !there.iter().all(entitled) {
                return None;
            }
            (there, own.clone())
        } else {
            let any_width = floor::own(entry).is_some();
            let procs = entry.request.procs();
            let may = |victim: &&Victim| entitled(victim) && (any_width || self.narrow_enough(procs, victim));
            let chosen = enough(self.free, procs, self.victims.iter().filter(may))?;
            let mut pes = self.available.clone();
            for had in chosen.iter().filter_map(|victim| floor::pes(ledger.entry(victim.job))) {
                pes.insert_all(had);
            }
            (chosen, pes.take_lowest(procs)?)
        };
        let victims: Vec<JobId> = victims.into_iter().map(|victim| victim.job).collect();
        rest_fits(ledger, job, &victims, self.rules.transfer).then_some((victims, pes))
    }
}

/// Whether a job has all but processors once these are suspended.
pub(super) fn rest_fits(ledger: &Ledger, job: JobId, victims: &[JobId], transfer: Transfer) -> bool {
    let mut free = ledger.free();
    if transfer != Transfer::None {
        let placements = victims.iter().filter_map(|victim| ledger.entry(*victim).placement());
        free = placements.fold(free, |sum, placement| sum.plus(&placement.total()));
    }
    floor::rest(ledger, job).fits_in(&free)
}

/// The first of these until there are processors enough with the free ones, without those at their end that are not needed then.
pub(super) fn enough<'v>(
    free: u64,
    procs: u64,
    from: impl Iterator<Item = &'v Victim>,
) -> Option<Vec<Victim>> {
    let mut had = free;
    let mut chosen = vec![];
    for victim in from {
        had += victim.procs;
        chosen.push(*victim);
        if had >= procs {
            break;
        }
    }
    if had < procs {
        return None;
    }
    let mut needed: Vec<Victim> = vec![];
    for victim in chosen.into_iter().rev() {
        if had - victim.procs >= procs {
            had -= victim.procs;
        } else {
            needed.push(victim);
        }
    }
    Some(needed)
}

/// A running job, if it may be suspended at all.
fn victim(rules: &Suspension, ledger: &Ledger, now: Time, job: JobId) -> Option<Victim> {
    let entry = ledger.entry(job);
    let State::Running { released: false, .. } = entry.state else { return None };
    if entry.progress.at > now {
        return None;
    }
    let rank = rules.criterion.rank(entry, now);
    let protected = rules.limits.as_ref().is_some_and(|limits| limits.protect(ledger, entry, rank));
    let procs = floor::pes(entry)?.count();
    (!protected).then_some(Victim { rank, admitted: entry.admitted, job, procs })
}
