//! The numbers of the processors of each job, on request. The schedule does not depend on them.

use miserly_core::{Driver, HostId, Machine, PeSet, Pes, Placement, Procs};

/// The free processors of each host. A host's numbers follow those of the one before it.
///
/// If queues share a host, each queue with a policy that names processors has its own block, as in
/// the daemon. The first such queue has the highest block. Blocks come after the hosts.
#[derive(Clone, Debug)]
pub(crate) struct Numbering {
    free: Vec<PeSet>,
    /// The first number of each host, or block.
    lows: Vec<u32>,
    /// The index of the first host of each queue.
    queues: Vec<usize>,
}

impl Numbering {
    /// Returns all processors of an idle machine.
    pub(crate) fn new(machine: &Machine) -> Numbering {
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
        Numbering { free, lows, queues: vec![0] }
    }

    /// Returns all processors of an idle host with pools.
    pub(crate) fn from_pools(procs: Procs, pools: &[Driver]) -> Numbering {
        let count = |number: Procs| u32::try_from(number).unwrap_or(u32::MAX);
        let mut shared = count(procs);
        let (mut lows, mut blocks, mut queues) = (vec![0], vec![], vec![]);
        for ledger in pools.iter().map(Driver::ledger) {
            if ledger.free_pes(HostId(0)).is_none() {
                queues.push(0);
                continue;
            }
            let own = count(ledger.machine().capacity().cpus_count()).min(shared);
            shared -= own;
            queues.push(lows.len());
            lows.push(shared);
            blocks.push(PeSet::block(shared, own));
        }
        let free = std::iter::once(PeSet::block(0, shared)).chain(blocks).collect();
        Numbering { free, lows, queues }
    }

    fn first(&self, queue: usize) -> usize {
        self.queues.get(queue).copied().unwrap_or(0)
    }

    /// Takes the processors that the placement names, or else the lowest free ones on its hosts.
    ///
    /// Takes fewer if the ledger already counts processors as free (of a job with a certain end).
    pub(crate) fn take(&mut self, queue: usize, placement: &Placement) -> PeSet {
        let first = self.first(queue);
        let mut taken = PeSet::empty();
        for share in placement.shares() {
            let place = first + share.host.index();
            let host = self.free.get_mut(place);
            if let Pes::Set(named) = &share.pes {
                let named = named.offset(self.lows.get(place).copied().unwrap_or(0));
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

    /// Returns the processors of a job of that queue with that placement to the free ones.
    pub(crate) fn give(&mut self, queue: usize, placement: &Placement, pes: &PeSet) {
        let first = self.first(queue);
        let mut pes = pes.clone();
        // The shares of a placement may have any order. Processor numbers ascend with the hosts.
        let mut hosts: Vec<_> =
            placement.shares().iter().map(|s| (s.host.index(), s.amount.cpus_count())).collect();
        hosts.sort_unstable();
        for (host, count) in hosts {
            if let (Some(free), Some(part)) = (self.free.get_mut(first + host), pes.take_lowest(count)) {
                free.insert_all(&part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{EventOrder, Ledger, Resources};
    use miserly_policies::PolicySpec;

    use super::*;

    #[test]
    fn queues_that_name_processors_have_blocks_of_their_own() {
        let pool = |(procs, policy): (u64, &str)| {
            let machine = Machine::plain(procs);
            let policy = policy.parse::<PolicySpec>().unwrap().build(&machine, 0).unwrap();
            Driver::new(Ledger::new(machine), policy, EventOrder::Batched)
        };
        let pools = [(2, "ss"), (3, "easy"), (2, "is")].map(pool);
        let mut numbering = Numbering::from_pools(Procs::new(8), &pools);
        let counted = Placement::on_plain(Resources::cpus(3));
        let named = Placement::on_pes(HostId(0), Resources::cpus(2), PeSet::first(2));
        let had = [(0, &named), (1, &counted), (2, &named)].map(|(queue, on)| numbering.take(queue, on));
        assert_eq!(had.each_ref().map(ToString::to_string), ["6-7", "0-2", "4-5"]);
        numbering.give(0, &named, &had[0]);
        assert_eq!(numbering.take(0, &named), had[0]);
    }
}
