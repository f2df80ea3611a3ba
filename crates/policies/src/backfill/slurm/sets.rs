//! The hosts of a machine as sets: by capacity, and by group.

use fixedbitset::FixedBitSet;
use miserly_core::{HostGroup, HostId, Machine, Resources};

use super::select::{Fit, Size};

/// The hosts of a machine with the same capacity, and those of each group.
#[derive(Clone, Debug, Default)]
pub(super) struct HostSets {
    number: usize,
    capacities: Vec<(Resources, FixedBitSet)>,
    groups: Vec<FixedBitSet>,
}

impl HostSets {
    /// O(h (c + g)) for h hosts with c capacities in g groups.
    pub(super) fn new(machine: &Machine) -> HostSets {
        let hosts = machine.hosts();
        let mut capacities: Vec<(Resources, FixedBitSet)> = vec![];
        for (index, host) in hosts.iter().enumerate() {
            // Equal hosts follow each other.
            let known = capacities.iter().rposition(|(capacity, _)| *capacity == host.capacity);
            let known = known.unwrap_or_else(|| {
                capacities.push((host.capacity, FixedBitSet::with_capacity(hosts.len())));
                capacities.len() - 1
            });
            capacities[known].1.insert(index);
        }
        let number_of_groups = hosts.first().map_or(0, |_| machine.groups_of(HostId(0)).len());
        let mut groups = vec![FixedBitSet::with_capacity(hosts.len()); number_of_groups];
        for (index, host) in (0..hosts.len()).zip((0..).map(HostId)) {
            for (group, is_in) in groups.iter_mut().zip(machine.groups_of(host)) {
                group.set(index, is_in);
            }
        }
        HostSets { number: hosts.len(), capacities, groups }
    }

    /// Returns the number of hosts.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// Returns all hosts.
    pub(super) fn all(&self) -> FixedBitSet {
        let mut all = FixedBitSet::with_capacity(self.number);
        all.insert_range(..);
        all
    }

    /// Keeps only the hosts of a group. A group that the machine does not have has none.
    pub(super) fn keep(&self, group: Option<HostGroup>, hosts: &mut FixedBitSet) {
        let Some(group) = group else { return };
        match self.groups.get(usize::from(group.0)) {
            Some(group) => hosts.intersect_with(group),
            None => hosts.clear(),
        }
    }

    /// Removes the hosts of a group.
    pub(super) fn remove(&self, group: Option<HostGroup>, hosts: &mut FixedBitSet) {
        match group.map(|group| self.groups.get(usize::from(group.0))) {
            None => hosts.clear(),
            Some(Some(group)) => hosts.difference_with(group),
            Some(None) => {}
        }
    }
}

/// A job in a search, with the sizes that idle hosts have for it.
pub(super) struct Wanted<'a> {
    pub(super) fit: Fit<'a>,
    sets: &'a HostSets,
    /// The size of an idle host, by capacity.
    sizes: Vec<Size>,
    /// The size of an idle host that holds a part, if that is the same for all of them.
    pub(super) equal: Option<Size>,
    /// The hosts that could hold a part if they were idle.
    pub(super) usable: FixedBitSet,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(fit: Fit<'a>, sets: &'a HostSets) -> Wanted<'a> {
        let sizes: Vec<Size> =
            sets.capacities.iter().map(|(capacity, _)| fit.size_of_idle(capacity)).collect();
        let mut holding = sizes.iter().filter(|size| size.parts > 0);
        let equal = holding.next().filter(|first| holding.all(|size| size == *first)).copied();
        let mut usable = sets.all();
        sets.keep(fit.demand.group(), &mut usable);
        for ((_, hosts), size) in sets.capacities.iter().zip(&sizes) {
            if size.parts == 0 {
                usable.difference_with(hosts);
            }
        }
        Wanted { fit, sets, sizes, equal, usable }
    }

    /// Returns the number of parts of the job.
    pub(super) fn parts(&self) -> u128 {
        self.fit.demand.parts().into()
    }

    /// Returns the least number of hosts that the job needs, if any host holds a part of it.
    pub(super) fn least_hosts(&self) -> Option<usize> {
        let most = self.sizes.iter().map(|size| size.parts).max().filter(|most| *most > 0)?;
        usize::try_from(self.fit.demand.parts().div_ceil(most)).ok()
    }

    /// Returns the number of parts that these usable hosts would hold if they were idle.
    ///
    /// O(h c) for h hosts with c capacities, in steps of 64 hosts.
    pub(super) fn parts_of_idle(&self, hosts: &FixedBitSet) -> u128 {
        if let Some(size) = self.equal {
            return u128::from(size.parts) * hosts.count_ones(..) as u128;
        }
        let each = self.sets.capacities.iter().zip(&self.sizes).filter(|(_, size)| size.parts > 0);
        each.map(|((_, of_capacity), size)| {
            u128::from(size.parts) * of_capacity.intersection_count(hosts) as u128
        })
        .sum()
    }
}
