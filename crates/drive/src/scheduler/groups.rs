//! Groups of nodes, for jobs that may not run on all.

use miserly_core::{Driver, HostGroup, HostId, Machine};

use super::{RebuildCause, Scheduler};

/// The most groups. Further jobs are planned on any nodes.
const MOST: usize = 1000;

/// From this number on, groups without jobs are forgotten.
const MANY: usize = 64;

impl Scheduler {
    /// Returns the number of a group of hosts. The ledger is made again for a new one.
    pub(super) fn number_of(&mut self, hosts: &[HostId]) -> Option<HostGroup> {
        if hosts.is_empty() {
            return None;
        }
        let is_known = |group: &Vec<String>| {
            group.len() == hosts.len()
                && group.iter().zip(hosts).all(|(name, host)| name == self.site.name(*host))
        };
        let number = |place: usize| u16::try_from(place).ok().map(HostGroup);
        if let Some(place) = self.groups.iter().position(is_known) {
            return number(place);
        }
        let names = hosts.iter().map(|host| self.site.name(*host).to_owned()).collect();
        let place = self.groups.iter().position(Vec::is_empty).unwrap_or(self.groups.len());
        match self.groups.get_mut(place) {
            Some(unused) => *unused = names,
            None if place < MOST => self.groups.push(names),
            None => return None,
        }
        self.rebuild = self.rebuild.max(Some(RebuildCause::Groups));
        number(place)
    }

    /// Forgets groups without jobs, once there are many. The others keep their numbers.
    pub(super) fn forget_groups(&mut self) {
        let Some(ledger) = self.driver.as_ref().map(Driver::ledger).filter(|_| self.groups.len() >= MANY)
        else {
            return;
        };
        let mut is_used = vec![false; self.groups.len()];
        for group in ledger.waiting().filter_map(|job| ledger.request(job).form.group) {
            is_used.get_mut(usize::from(group.0)).into_iter().for_each(|is_used| *is_used = true);
        }
        for (group, _) in self.groups.iter_mut().zip(is_used).filter(|(_, is_used)| !is_used) {
            group.clear();
        }
    }

    /// Returns a machine with the groups.
    pub(super) fn with_groups(&self, machine: Machine) -> Machine {
        let hosts = |group: &Vec<String>| group.iter().filter_map(|name| self.site.find(name)).collect();
        machine.with_groups(&self.groups.iter().map(hosts).collect::<Vec<Vec<HostId>>>())
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Resources, Span};
    use miserly_policies::PolicySpec;

    use super::super::Stored;
    use super::*;
    use crate::Settings;
    use crate::site::tests::{cluster, site};

    #[test]
    fn a_group_keeps_its_number() {
        let settings = Settings {
            policy: "easy".parse::<PolicySpec>().unwrap(),
            seed: 0,
            partitions: vec![],
            reservation: "own".into(),
            owner: 0,
            fallback: Span::TICK,
            margin: Span::TICK,
            comments: false,
            lead: None,
            leaving: Span::ZERO,
        };
        let mut scheduler = Scheduler::new(settings, Stored::default(), None);
        scheduler.site = site(&cluster(&[("n1", 8, 1), ("n2", 8, 1), ("n3", 8, 1)], "CR_CPU"));
        scheduler.rebuild = None;
        let hosts = |hosts: &[u32]| hosts.iter().copied().map(HostId).collect::<Vec<_>>();
        assert_eq!(scheduler.number_of(&hosts(&[0, 1])), Some(HostGroup(0)));
        assert!(scheduler.rebuild.take().is_some());
        assert_eq!(scheduler.number_of(&hosts(&[1, 2])), Some(HostGroup(1)));
        assert!(scheduler.rebuild.take().is_some());
        assert_eq!(scheduler.number_of(&hosts(&[0, 1])), Some(HostGroup(0)));
        assert_eq!(scheduler.rebuild, None, "the ledger has the group");
        assert_eq!(scheduler.number_of(&[]), None);
        // Another node comes before them.
        scheduler.site = site(&cluster(&[("n0", 8, 1), ("n1", 8, 1), ("n2", 8, 1), ("n3", 8, 1)], "CR_CPU"));
        assert_eq!(scheduler.number_of(&hosts(&[1, 2])), Some(HostGroup(0)));
        let machine = scheduler.with_groups(scheduler.site.machine(&[Resources::NONE; 4]));
        let on = |group| [0, 1, 2, 3].map(|host| machine.permits(group, HostId(host)));
        assert_eq!(on(Some(HostGroup(1))), [false, false, true, true]);
        assert_eq!(on(None), [true; 4]);
    }
}
