//! Which processors a job has, by number, for those who ask: the schedule does not depend on it.

use miserly_core::{Machine, PeSet, Pes, Placement};

/// The free processors of each host. A host's numbers follow those of the one before it.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    free: Vec<PeSet>,
    /// The first number of each host.
    lows: Vec<u32>,
}

impl Numbering {
    /// All processors of an idle machine.
    pub(crate) fn of(machine: &Machine) -> Numbering {
        let mut low = 0;
        let mut lows = Vec::new();
        let block = |host: &miserly_core::Host| {
            let count = u32::try_from(host.capacity.cpus_count()).unwrap_or(u32::MAX);
            let block = PeSet::block(low, count);
            lows.push(low);
            low = low.saturating_add(count);
            block
        };
        let free = machine.hosts().iter().map(block).collect();
        Numbering { free, lows }
    }

    /// All processors of an idle host that pools share: each takes the lowest that are free.
    pub(crate) fn of_pools(procs: u64) -> Numbering {
        Numbering { free: vec![PeSet::block(0, u32::try_from(procs).unwrap_or(u32::MAX))], lows: vec![0] }
    }

    /// Those that the placement names, or else the lowest that are free where the job lies; fewer, if the ledger knows better
    /// (a job whose end is certain).
    pub(crate) fn take(&mut self, placement: &Placement) -> PeSet {
        let mut taken = PeSet::empty();
        for share in placement.shares() {
            let host = self.free.get_mut(share.host.index());
            if let Pes::Set(named) = &share.pes {
                let named = named.moved_up(self.lows.get(share.host.index()).copied().unwrap_or(0));
                if let Some(free) = host {
                    free.remove_all(&named);
                }
                taken.insert_all(&named);
                continue;
            }
            if let Some(pes) = host.and_then(|free| free.take_lowest(share.amount.cpus_count())) {
                taken.insert_all(&pes);
            }
        }
        taken
    }

    /// Gives those back that a job had while it lay so.
    pub(crate) fn give(&mut self, placement: &Placement, pes: &PeSet) {
        let mut pes = pes.clone();
        // The shares of a placement may come in any order; its numbers ascend with the hosts.
        let mut hosts: Vec<_> =
            placement.shares().iter().map(|s| (s.host.index(), s.amount.cpus_count())).collect();
        hosts.sort_unstable();
        for (host, count) in hosts {
            if let (Some(free), Some(part)) = (self.free.get_mut(host), pes.take_lowest(count)) {
                free.insert_all(&part);
            }
        }
    }
}
