//! Groups of hosts, or of processors, of a machine that is too large for a tile for each.

use std::collections::BTreeMap;

use super::{CpuUse, HostNow, HostPart};

/// The most processors of a host that are one tile.
const TILE_MOST: u64 = 1024;

/// The most tiles into which the processors of a host are divided.
const TILES: u64 = 64;

/// Returns the processors of a large host in groups by number, each with its share of the use. A host whose processors have no numbers is one
/// group.
pub(super) fn groups_of_cpus(host: HostNow) -> Vec<HostNow> {
    let numbered = host.parts.iter().all(|part| part.numbers.len() == 1);
    if host.cpus <= TILE_MOST || !numbered {
        return vec![host];
    }
    let size = host.cpus.div_ceil(TILES).next_power_of_two();
    let mut groups: Vec<HostNow> = vec![];
    let mut room = 0;
    for mut part in host.parts {
        while part.cpus > 0 {
            if room == 0 {
                groups.push(HostNow::default());
                room = size;
            }
            let head = take(&mut part, room);
            room -= head.cpus;
            if let Some(group) = groups.last_mut() {
                group.count(&head);
                group.parts.push(head);
            }
        }
    }
    groups.iter_mut().for_each(HostNow::name_by_number);
    groups
}

/// Takes the first processors of a part that has numbers in one range.
fn take(part: &mut HostPart, most: u64) -> HostPart {
    let cpus = part.cpus.min(most);
    let (low, high) = part.numbers.first().copied().unwrap_or_default();
    let above = low.saturating_add(u32::try_from(cpus).unwrap_or(u32::MAX));
    let head = HostPart { cpus, numbers: vec![(low, above.saturating_sub(1))], ..part.clone() };
    part.cpus -= cpus;
    part.numbers = vec![(above, high)];
    head
}

/// Returns hosts in groups of neighbours, `most` at most.
pub(super) fn groups_of_hosts(hosts: Vec<HostNow>, most: usize) -> Vec<HostNow> {
    if hosts.len() <= most {
        return hosts;
    }
    let size = hosts.len().div_ceil(most.max(1));
    hosts.chunks(size).map(together).collect()
}

/// Returns some hosts as one.
fn together(hosts: &[HostNow]) -> HostNow {
    let sum = |of: fn(&HostNow) -> u64| hosts.iter().map(of).sum();
    let unusable = hosts.iter().filter(|host| host.unusable.is_some()).count();
    let name = match hosts {
        [first, .., last] => format!("{} to {}", first.name, last.name),
        [one] => one.name.clone(),
        [] => String::new(),
    };
    HostNow {
        name,
        unusable: (unusable > 0).then(|| format!("{unusable} of {} hosts", hosts.len())),
        cpus: sum(|host| host.cpus),
        held: sum(|host| host.held),
        reserved: sum(|host| host.reserved),
        free: sum(|host| host.free),
        offline: sum(|host| host.offline),
        memory: sum(|host| host.memory),
        memory_held: sum(|host| host.memory_held),
        parts: merged(hosts),
    }
}

/// Returns the parts of hosts, one for each use and job: by use, in the order of their first hosts.
fn merged(hosts: &[HostNow]) -> Vec<HostPart> {
    let mut places: BTreeMap<(CpuUse, Option<i64>), usize> = BTreeMap::new();
    let mut parts: Vec<HostPart> = vec![];
    for part in hosts.iter().flat_map(|host| &host.parts) {
        let place = *places.entry((part.cpu_use, part.job)).or_insert(parts.len());
        match parts.get_mut(place) {
            Some(known) => {
                known.cpus += part.cpus;
                known.estimated |= part.estimated;
            }
            None => parts.push(HostPart { numbers: vec![], ..part.clone() }),
        }
    }
    parts.sort_by_key(|part| part.cpu_use);
    parts
}

impl HostNow {
    /// Counts the processors of a part.
    fn count(&mut self, part: &HostPart) {
        self.cpus += part.cpus;
        let sum = match part.cpu_use {
            CpuUse::Held => &mut self.held,
            CpuUse::Reserved => &mut self.reserved,
            CpuUse::Idle | CpuUse::Opportunistic => &mut self.free,
            CpuUse::Offline => &mut self.offline,
        };
        *sum += part.cpus;
    }

    /// Names a group by its first and its last processor.
    fn name_by_number(&mut self) {
        let ends = |part: &HostPart| part.numbers.first().copied();
        if let (Some((low, _)), Some((_, high))) =
            (self.parts.first().and_then(ends), self.parts.last().and_then(ends))
        {
            self.name = format!("{low}-{high}");
        }
    }
}
