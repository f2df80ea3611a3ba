//! The processors of jobs by number, where a policy decides about them.

use super::{Holds, Ledger, State};
use crate::violation::Rule;
use crate::{Entry, Host, HostId, JobId, Machine, PeSet, Pes, Placement, Procs, Resources, Share};

/// The numbers of the unallocated processors of each host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// The lowest ones, as many as the counts show as free.
    free: Vec<PeSet>,
    /// The others. While jobs hold lost processors, as many existing ones are kept back.
    kept_back: Vec<PeSet>,
}

impl Names {
    /// Divides the unallocated numbers of a host: as many as the counts show as free, and the rest.
    fn split(&mut self, host: usize, mut unallocated: PeSet, free: Procs) {
        let (Some(low), Some(high)) = (self.free.get_mut(host), self.kept_back.get_mut(host)) else { return };
        // The counts may show fewer than the names, and never more.
        *low = unallocated.take_lowest(free).unwrap_or_default();
        *high = unallocated;
    }

    /// Returns the unallocated numbers of a host.
    fn unallocated(&self, host: usize) -> PeSet {
        let mut all = self.free.get(host).cloned().unwrap_or_default();
        if let Some(kept_back) = self.kept_back.get(host) {
            all.insert_all(kept_back);
        }
        all
    }
}

impl Ledger {
    /// Names the processors from now on, in each host from 0. A job that was placed on any
    /// processors now has certain ones.
    pub fn name_pes(&mut self) {
        if self.pes.is_none() {
            self.pes = Some(Names { free: self.idle_with_missing(), kept_back: vec![] });
        }
        let mut jobs = std::mem::take(&mut self.jobs);
        for entry in jobs.iter_mut().flatten() {
            self.name(entry);
        }
        self.jobs = jobs;
        self.count_pes();
    }

    /// Returns the free processors of a host by local number, if they are named.
    ///
    /// Their number equals the count of free processors. While jobs hold lost processors, the
    /// highest unallocated ones are kept back.
    pub fn free_pes(&self, host: HostId) -> Option<&PeSet> {
        self.pes.as_ref()?.free.get(host.index())
    }

    /// Returns the processors of a host that would be free if these jobs released theirs. The jobs
    /// must hold them. Returns an empty set where processors are not named.
    pub fn free_pes_without(&self, host: HostId, leaving: &[JobId]) -> PeSet {
        let Some(names) = &self.pes else { return PeSet::empty() };
        let shares = leaving.iter().filter_map(|job| self.get(*job)?.placement()).flat_map(Placement::shares);
        let (mut unallocated, mut count) = (names.unallocated(host.index()), Procs::ZERO);
        for share in shares.filter(|share| share.host == host) {
            if let Pes::Set(set) = &share.pes {
                unallocated.insert_all(&set.intersection(&self.there(host)));
                count += set.count();
            }
        }
        let free = self.free.each().get(host.index()).map_or(Procs::ZERO, Resources::cpus_count);
        let free = free + count.saturating_sub(self.missing.cpus_count());
        unallocated.take_lowest(free).unwrap_or_default()
    }

    fn name(&mut self, entry: &mut Entry) {
        let (placement, holds) = match &mut entry.state {
            State::Running { placement, released: false, .. } => (placement, true),
            State::Suspended { placement, holds, .. } => (placement, matches!(holds, Holds::All { .. })),
            _ => return,
        };
        if placement.shares().iter().all(|share| share.pes != Pes::Count) {
            return;
        }
        let all = self.idle_with_missing();
        let from = if holds { self.pes.as_ref().map_or(&all, |names| &names.free) } else { &all };
        if let Some(named) = named(placement, from) {
            *placement = named;
        }
        if holds {
            let placement = placement.clone();
            self.take_pes(&placement);
        }
    }

    /// Returns the placement with the lowest free processors in place of unnamed ones. Returns it
    /// unchanged where processors are not named.
    pub(super) fn named(&self, placement: Placement) -> Placement {
        // If too few are free, the check of the counts gives the better error.
        let placement = self.with_named_devices(placement);
        self.pes.as_ref().and_then(|names| named(&placement, &names.free)).unwrap_or(placement)
    }

    /// Checks that the named processors have the right number and are free.
    pub(super) fn check_pes(&self, placement: &Placement) -> Result<(), Rule> {
        let right = |share: &Share| match (&share.pes, &self.pes) {
            // The slots have the names then.
            _ if self.matrix.is_some() => true,
            (Pes::Count, None) => true,
            (Pes::Count, Some(_)) | (Pes::Set(_), None) => false,
            (Pes::Set(set), Some(names)) => {
                let free = names.free.get(share.host.index());
                set.count() == share.amount.cpus_count() && free.is_some_and(|free| free.contains_all(set))
            }
        };
        // If the request exceeds the free count, the check of the counts gives the better error.
        let fits = |share: &Share| {
            let free = self.free.each().get(share.host.index());
            free.is_some_and(|free| share.amount.cpus_count() <= free.cpus_count())
        };
        let wrong = placement.shares().iter().any(|share| fits(share) && !right(share));
        if wrong { Err(Rule::WrongPes) } else { Ok(()) }
    }

    /// Marks the named processors as taken. The counts change elsewhere.
    pub(super) fn take_pes(&mut self, placement: &Placement) {
        let Some(names) = &mut self.pes else { return };
        for share in placement.shares() {
            if let (Pes::Set(set), Some(free)) = (&share.pes, names.free.get_mut(share.host.index())) {
                free.remove_all(set);
            }
        }
    }

    /// Marks the named processors as unallocated. The counts change elsewhere.
    pub(super) fn give_pes(&mut self, placement: &Placement) {
        let Some(mut names) = self.pes.take() else { return };
        for share in placement.shares() {
            let host = share.host.index();
            if let (Pes::Set(set), Some(free)) = (&share.pes, self.free.each().get(host)) {
                let mut unallocated = names.unallocated(host);
                // Processors that the machine has lost are not free when they are released.
                unallocated.insert_all(&set.intersection(&self.there(share.host)));
                names.split(host, unallocated, free.cpus_count());
            }
        }
        self.pes = Some(names);
    }

    /// Derives the free numbers again after a change of capacity. O(jobs in the system).
    pub(super) fn count_pes(&mut self) {
        if self.pes.is_some() {
            self.pes = Some(self.counted());
        }
    }

    /// Returns the free numbers, derived from the allocations and the free counts.
    fn counted(&self) -> Names {
        let mut unallocated = idle(&self.machine);
        for share in self.jobs.iter().flatten().filter_map(occupied).flat_map(Placement::shares) {
            if let (Pes::Set(set), Some(left)) = (&share.pes, unallocated.get_mut(share.host.index())) {
                left.remove_all(set);
            }
        }
        let none = || vec![PeSet::empty(); unallocated.len()];
        let mut names = Names { free: none(), kept_back: none() };
        for (host, (left, free)) in unallocated.into_iter().zip(self.free.each()).enumerate() {
            names.split(host, left, free.cpus_count());
        }
        names
    }

    /// Returns all processors of a host.
    fn there(&self, host: HostId) -> PeSet {
        self.machine.hosts().get(host.index()).map(all_of).unwrap_or_default()
    }

    /// Returns all processors of each host. On a single host, lost processors that jobs hold are
    /// included.
    fn idle_with_missing(&self) -> Vec<PeSet> {
        let mut all = idle(&self.machine);
        if let ([first], [host]) = (&mut all[..], self.machine.hosts()) {
            *first = PeSet::first(count(host.capacity.cpus_count() + self.missing.cpus_count()));
        }
        all
    }

    /// Asserts that no processor belongs to two jobs or is both allocated and free. Also asserts
    /// that the numbers and the counts of free processors agree.
    ///
    /// O(jobs in the system).
    ///
    /// # Panics
    /// If an assertion fails.
    pub(super) fn check_names(&self) {
        let Some(names) = &self.pes else { return };
        let mut seen: Vec<PeSet> = (0..names.free.len()).map(|host| names.unallocated(host)).collect();
        for share in self.jobs.iter().flatten().filter_map(occupied).flat_map(Placement::shares) {
            let Pes::Set(set) = &share.pes else { panic!("a job is on processors without numbers") };
            let seen = &mut seen[share.host.index()];
            assert!(!seen.intersects(set), "processors {set} are in two jobs, or free");
            assert_eq!(set.count(), share.amount.cpus_count(), "a number for each processor");
            seen.insert_all(set);
        }
        let counted = |(named, free): (&PeSet, &Resources)| named.count() == free.cpus_count();
        assert!(
            names.free.iter().zip(self.free.each()).all(counted),
            "the numbers and the counts of free processors agree"
        );
        assert_eq!(*names, self.counted(), "the free numbers follow from the allocations");
    }
}

/// Returns the placement of a job that holds its processors.
fn occupied(entry: &Entry) -> Option<&Placement> {
    match &entry.state {
        State::Running { placement, released: false, .. }
        | State::Suspended { placement, holds: Holds::All { .. }, .. } => Some(placement),
        _ => None,
    }
}

/// Returns all processors of each host.
fn idle(machine: &Machine) -> Vec<PeSet> {
    machine.hosts().iter().map(all_of).collect()
}

fn all_of(host: &Host) -> PeSet {
    PeSet::first(count(host.capacity.cpus_count()))
}

fn count(cpus: Procs) -> u32 {
    u32::try_from(cpus).unwrap_or(u32::MAX)
}

/// Returns the placement with the lowest of these processors in place of unnamed ones.
fn named(placement: &Placement, from: &[PeSet]) -> Option<Placement> {
    let share = |share: &Share| {
        let pes = match &share.pes {
            Pes::Set(set) => set.clone(),
            Pes::Count => from.get(share.host.index())?.clone().take_lowest(share.amount.cpus_count())?,
        };
        Some(Share { pes: Pes::Set(pes), ..share.clone() })
    };
    let shares: Option<Vec<Share>> = placement.shares().iter().map(share).collect();
    let named = match <[Share; 1]>::try_from(shares?) {
        Ok([one]) => Placement::from_share(one),
        Err(many) => Placement::across(placement.slot, many),
    };
    Some(named.with_devices(placement.devices().to_vec()))
}
