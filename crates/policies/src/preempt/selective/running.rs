//! The running jobs.

use miserly_core::{Entry, JobId, Ledger, PeSet, Resources, Time};

use super::occupants::Occupants;
use super::pe_allocator;
use super::rank::{Criterion, Facts, Rank};
use super::transfer::Transfer;
use super::victim::Victim;

/// The running jobs, as in the ledger. Cached so that a pass need not list them all.
#[derive(Debug)]
pub(super) struct Running {
    transfer: Transfer,
    /// Almost by increasing rank, after [`Running::victims`].
    jobs: Vec<Known>,
    /// By the job.
    facts: Vec<Option<Facts>>,
    occupants: Occupants,
}

/// A running job, and what a pass needs of its entry.
#[derive(Clone, Copy, Debug)]
struct Known {
    job: JobId,
    admitted: u64,
    /// The resources that it frees when it is suspended.
    gives: Resources,
    facts: Facts,
}

impl Running {
    /// Returns no jobs, with this cost of their suspension.
    pub(super) fn none(transfer: Transfer) -> Running {
        Running { transfer, jobs: vec![], facts: vec![], occupants: Occupants::default() }
    }

    pub(super) fn rebuild(&mut self, ledger: &Ledger) {
        *self = Running::none(self.transfer);
        ledger.running().for_each(|job| self.insert(ledger, job));
    }

    pub(super) fn insert(&mut self, ledger: &Ledger, job: JobId) {
        let entry = ledger.entry(job);
        let facts = Facts::new(entry);
        self.jobs.push(Known { job, admitted: entry.admitted, gives: self.transfer.frees(entry), facts });
        if self.facts.len() <= job.index() {
            self.facts.resize(job.index() + 1, None);
        }
        self.facts[job.index()] = Some(facts);
        if let Some(pes) = pe_allocator::pes(entry).filter(|_| pe_allocator::keeps(entry)) {
            self.occupants.insert(job, pes);
        }
    }

    /// Removes a job, if it is there. It has still the processors on which it ran.
    pub(super) fn remove(&mut self, ledger: &Ledger, job: JobId) {
        if self.facts.get_mut(job.index()).and_then(Option::take).is_none() {
            return;
        }
        if let Some(at) = self.jobs.iter().position(|known| known.job == job) {
            // The others stay sorted.
            self.jobs.remove(at);
        }
        if let Some(pes) = pe_allocator::pes(ledger.entry(job)) {
            self.occupants.remove(job, pes);
        }
    }

    pub(super) fn jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().map(|known| known.job)
    }

    /// Returns the jobs that keep processors of a job.
    pub(super) fn on<'r>(&'r self, ledger: &'r Ledger, pes: &'r PeSet) -> impl Iterator<Item = JobId> + 'r {
        self.occupants.on(pes, |job| pe_allocator::keeps(ledger.entry(job)))
    }

    /// Returns the rank of a running job.
    pub(super) fn rank(&self, criterion: Criterion, now: Time, job: JobId) -> Option<Rank> {
        self.facts.get(job.index())?.as_ref().map(|facts| facts.rank(criterion, now))
    }

    /// Returns the jobs that may be suspended, by increasing rank, then by admission number.
    ///
    /// The jobs are kept in this order. O(r) while no two of them overtake each other.
    pub(super) fn victims(
        &mut self,
        (ledger, now): (&Ledger, Time),
        criterion: Criterion,
        is_protected: impl Fn(&Entry, Rank) -> bool,
    ) -> Vec<Victim> {
        let mut ranked: Vec<(Rank, Known)> =
            self.jobs.iter().map(|known| (known.facts.rank(criterion, now), *known)).collect();
        let in_order = |one: &(Rank, Known), other: &(Rank, Known)| {
            one.0.cmp(&other.0).then(one.1.admitted.cmp(&other.1.admitted))
        };
        if !ranked.is_sorted_by(|one, other| in_order(one, other).is_lt()) {
            // This sort is the fastest one where few jobs are out of place.
            ranked.sort_by(in_order);
            self.jobs.clear();
            self.jobs.extend(ranked.iter().map(|(_, known)| *known));
        }
        let victim = |(rank, known): (Rank, Known)| {
            let entry = ledger.entry(known.job);
            let may = pe_allocator::works(entry, now) && !is_protected(entry, rank);
            let Known { job, admitted, gives, .. } = known;
            may.then_some(Victim { rank, admitted, job, gives })
        };
        ranked.into_iter().filter_map(victim).collect()
    }
}
