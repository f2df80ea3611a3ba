//! Which processors are whose, by number, where a policy decides that.

use super::{Holds, Ledger, State};
use crate::violation::Rule;
use crate::{Entry, Machine, PeSet, Pes, Placement, Share};

impl Ledger {
    /// Names the processors from now on, in each host from 0: jobs that were placed on any of them are on certain ones now.
    pub fn name_pes(&mut self) {
        self.pes.get_or_insert_with(|| idle(&self.machine));
        let mut jobs = std::mem::take(&mut self.jobs);
        for entry in jobs.iter_mut().flatten() {
            self.name(entry);
        }
        self.jobs = jobs;
    }

    /// The processors of a host that nobody holds, if they are named; local to the host.
    pub fn free_pes(&self, host: crate::HostId) -> Option<&PeSet> {
        self.pes.as_ref()?.get(host.index())
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
        let all = idle(&self.machine);
        let from = if holds { self.pes.as_deref().unwrap_or(&all) } else { &all };
        if let Some(named) = named(placement, from) {
            *placement = named;
        }
        if holds {
            let placement = placement.clone();
            self.take_pes(&placement);
        }
    }

    /// The placement with the lowest free processors where it names none; as it is, where nobody names any.
    pub(super) fn named(&self, placement: Placement) -> Placement {
        // Where too few are free, the counts say so better.
        self.pes.as_ref().and_then(|free| named(&placement, free)).unwrap_or(placement)
    }

    /// Whether the processors that are named are as many as they should be, and free.
    pub(super) fn check_pes(&self, placement: &Placement) -> Result<(), Rule> {
        let right = |share: &Share| match (&share.pes, &self.pes) {
            // The rows have the names then.
            _ if self.matrix.is_some() => true,
            (Pes::Count, None) => true,
            (Pes::Count, Some(_)) | (Pes::Set(_), None) => false,
            (Pes::Set(set), Some(free)) => {
                let free = free.get(share.host.index());
                set.count() == share.amount.cpus_count() && free.is_some_and(|free| free.contains_all(set))
            }
        };
        // Too much is asked for of what there is: the counts say so better.
        let fits = |share: &Share| {
            let free = self.free.each().get(share.host.index());
            free.is_some_and(|free| share.amount.cpus_count() <= free.cpus_count())
        };
        let wrong = placement.shares().iter().any(|share| fits(share) && !right(share));
        if wrong { Err(Rule::WrongPes) } else { Ok(()) }
    }

    pub(super) fn take_pes(&mut self, placement: &Placement) {
        let Some(free) = &mut self.pes else { return };
        for share in placement.shares() {
            if let (Pes::Set(set), Some(free)) = (&share.pes, free.get_mut(share.host.index())) {
                free.remove_all(set);
            }
        }
    }

    pub(super) fn give_pes(&mut self, placement: &Placement) {
        let Some(free) = &mut self.pes else { return };
        let all = idle(&self.machine);
        for share in placement.shares() {
            let host = share.host.index();
            if let (Pes::Set(set), Some(free), Some(there)) = (&share.pes, free.get_mut(host), all.get(host))
            {
                // What the machine does not have any more is not free when it is given back.
                free.insert_all(&set.common(there));
            }
        }
    }

    /// Counts again what is free by number, since the machine has more or less than before.
    pub(super) fn count_pes(&mut self) {
        if self.pes.is_none() {
            return;
        }
        let mut free = idle(&self.machine);
        for share in self.jobs.iter().flatten().filter_map(occupied).flat_map(Placement::shares) {
            if let (Pes::Set(set), Some(free)) = (&share.pes, free.get_mut(share.host.index())) {
                free.remove_all(set);
            }
        }
        self.pes = Some(free);
    }

    /// That nobody has a processor that another one has or that is free. O(jobs in the system).
    ///
    /// # Panics
    /// If somebody has.
    pub(super) fn check_names(&self) {
        let Some(free) = &self.pes else { return };
        let mut seen = free.clone();
        for share in self.jobs.iter().flatten().filter_map(occupied).flat_map(Placement::shares) {
            let Pes::Set(set) = &share.pes else { panic!("a job is on processors without names") };
            let seen = &mut seen[share.host.index()];
            assert!(!seen.meets(set), "processors {set} are somebody else's, or free");
            assert_eq!(set.count(), share.amount.cpus_count(), "as many names as processors");
            seen.insert_all(set);
        }
        let counted = |(named, free): (&PeSet, &crate::Resources)| named.count() >= free.cpus_count();
        assert!(free.iter().zip(self.free.each()).all(counted), "what is free has names");
    }
}

/// What a job holds with its processors.
fn occupied(entry: &Entry) -> Option<&Placement> {
    match &entry.state {
        State::Running { placement, released: false, .. }
        | State::Suspended { placement, holds: Holds::All { .. }, .. } => Some(placement),
        _ => None,
    }
}

/// All processors of each host.
fn idle(machine: &Machine) -> Vec<PeSet> {
    let count = |host: &crate::Host| u32::try_from(host.capacity.cpus_count()).unwrap_or(u32::MAX);
    machine.hosts().iter().map(|host| PeSet::first(count(host))).collect()
}

/// The placement with the lowest of these in the place of any.
fn named(placement: &Placement, from: &[PeSet]) -> Option<Placement> {
    let share = |share: &Share| {
        let pes = match &share.pes {
            Pes::Set(set) => set.clone(),
            Pes::Count => from.get(share.host.index())?.clone().take_lowest(share.amount.cpus_count())?,
        };
        Some(Share { pes: Pes::Set(pes), ..share.clone() })
    };
    let shares: Option<Vec<Share>> = placement.shares().iter().map(share).collect();
    Some(match <[Share; 1]>::try_from(shares?) {
        Ok([one]) => Placement::of(one),
        Err(many) => Placement::across(placement.slot, many),
    })
}
