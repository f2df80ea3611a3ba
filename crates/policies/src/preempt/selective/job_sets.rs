//! The sets of running and of idle jobs.

use miserly_core::{Entry, JobId, Ledger, Resources, Time};

use super::pe_allocator;
use super::rank::{Criterion, Facts, Rank};
use super::transfer::Transfer;
use super::victim::Victim;

/// The jobs in the system, as in the ledger. Cached so that a pass need not list them all.
#[derive(Debug)]
pub(super) struct JobSets {
    transfer: Transfer,
    /// Jobs that wait or are suspended.
    pub(super) idle: Vec<Known>,
    /// Almost by increasing rank, after [`JobSets::victims`].
    pub(super) running: Vec<Known>,
}

/// A job, and what a pass needs of its entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) job: JobId,
    pub(super) admitted: u64,
    /// Whether it had processors when it was suspended.
    pub(super) suspended: bool,
    /// The resources that it frees when it is suspended, if it runs.
    gives: Resources,
    facts: Facts,
}

impl Known {
    fn new(transfer: Transfer, job: JobId, entry: &Entry) -> Known {
        Known {
            job,
            admitted: entry.admitted,
            suspended: pe_allocator::own(entry).is_some(),
            gives: transfer.frees(entry),
            facts: Facts::new(entry),
        }
    }

    pub(super) fn rank(&self, criterion: Criterion, now: Time) -> Rank {
        self.facts.rank(criterion, now)
    }
}

impl JobSets {
    /// Returns no jobs, with this cost of their suspension.
    pub(super) fn empty(transfer: Transfer) -> JobSets {
        JobSets { transfer, idle: vec![], running: vec![] }
    }

    pub(super) fn rebuild(&mut self, ledger: &Ledger) {
        let known = |job| Known::new(self.transfer, job, ledger.entry(job));
        self.idle = ledger.waiting().chain(ledger.suspended()).map(known).collect();
        self.running = ledger.running().map(known).collect();
    }

    pub(super) fn insert_idle(&mut self, ledger: &Ledger, job: JobId) {
        self.idle.push(Known::new(self.transfer, job, ledger.entry(job)));
    }

    pub(super) fn remove(&mut self, job: JobId) {
        take(&mut self.idle, job);
        if let Some(at) = self.running.iter().position(|known| known.job == job) {
            // The others stay sorted.
            self.running.remove(at);
        }
    }

    pub(super) fn set_running(&mut self, ledger: &Ledger, job: JobId) {
        take(&mut self.idle, job);
        self.running.push(Known::new(self.transfer, job, ledger.entry(job)));
    }

    pub(super) fn set_suspended(&mut self, ledger: &Ledger, jobs: &[JobId]) {
        self.running.retain(|running| !jobs.contains(&running.job));
        self.idle.extend(jobs.iter().map(|job| Known::new(self.transfer, *job, ledger.entry(*job))));
    }

    /// Returns the running jobs that may be suspended, by increasing rank, then by admission number.
    ///
    /// The running jobs are kept in this order. O(r) while no two of them overtake each other.
    pub(super) fn victims(
        &mut self,
        (ledger, now): (&Ledger, Time),
        criterion: Criterion,
        is_protected: impl Fn(&Entry, Rank) -> bool,
    ) -> Vec<Victim> {
        let mut ranked: Vec<(Rank, Known)> =
            self.running.iter().map(|known| (known.rank(criterion, now), *known)).collect();
        let in_order = |one: &(Rank, Known), other: &(Rank, Known)| {
            one.0.cmp(&other.0).then(one.1.admitted.cmp(&other.1.admitted))
        };
        if !ranked.is_sorted_by(|one, other| in_order(one, other).is_lt()) {
            // This sort is the fastest one where few jobs are out of place.
            ranked.sort_by(in_order);
            self.running.clear();
            self.running.extend(ranked.iter().map(|(_, known)| *known));
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

/// Removes a job from a list without an order.
fn take(jobs: &mut Vec<Known>, job: JobId) {
    if let Some(at) = jobs.iter().position(|known| known.job == job) {
        jobs.swap_remove(at);
    }
}
