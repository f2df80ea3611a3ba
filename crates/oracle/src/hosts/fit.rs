//! On which hosts a job goes, given what each has free.

use std::cmp::Reverse;

use miserly_core::{Kind, Machine, Resources, Sharing, Spread};

/// What a job holds of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) host: usize,
    pub(super) amount: Resources,
}

/// Where a job that asks for so much goes, with so much free on each host; `None` if there is no room.
///
/// One host, if there is room for all of the job on one. Else, where a job may lie on several, as much of it as there is
/// room for on each of the emptiest, until the rest fits on one.
pub(super) fn fit(machine: &Machine, free: &[Resources], demand: &Resources) -> Option<Vec<Part>> {
    if let Some(part) = best(machine, free, &[], demand) {
        return Some(vec![part]);
    }
    if machine.spread() == Spread::One {
        return None;
    }
    let mut hosts: Vec<usize> = (0..free.len()).collect();
    hosts.sort_by_key(|&host| Reverse(fullness(host, &free[host])));
    let (mut taken, mut left) = (Vec::new(), demand.cpus_count());
    for host in hosts {
        if let Some(rest) = best(machine, free, &taken, &times(demand, left.get())) {
            taken.push(rest);
            return Some(taken);
        }
        // The most of its processors, each with its part of all else, for which there is room.
        let fitting = (1..=left.get()).rev().find_map(|procs| {
            let amount = held(machine, host, &free[host], &times(demand, procs))?;
            Some((procs, amount))
        });
        if let Some((procs, amount)) = fitting {
            taken.push(Part { host, amount });
            left -= procs.into();
        }
    }
    None
}

/// Of the hosts with room enough that are not taken yet the one with the fewest free processors, then with the least
/// free memory, then the first.
fn best(machine: &Machine, free: &[Resources], taken: &[Part], need: &Resources) -> Option<Part> {
    let others = (0..free.len()).filter(|host| taken.iter().all(|part| part.host != *host));
    let parts =
        others.filter_map(|host| Some(Part { host, amount: held(machine, host, &free[host], need)? }));
    parts.min_by_key(|part| fullness(part.host, &free[part.host]))
}

/// Sorts the fullest host first.
pub(super) fn fullness(host: usize, free: &Resources) -> (u64, u64, usize) {
    (free.cpus_count().get(), free.get(Kind::Memory), host)
}

/// What a job that needs so much of the host holds of it; `None` if the host has no room for it.
pub(super) fn held(machine: &Machine, host: usize, free: &Resources, need: &Resources) -> Option<Resources> {
    let capacity = machine.hosts()[host].capacity;
    let possible = need.fits_in(free);
    match machine.sharing() {
        Sharing::Shared => possible.then_some(*need),
        Sharing::Whole => (possible && *free == capacity).then_some(capacity),
    }
}

/// So many processors of the job, each with an equal part of all else.
fn times(demand: &Resources, procs: u64) -> Resources {
    let of = |kind: Kind| demand.get(kind) / demand.cpus_count().get() * procs;
    Kind::ALL.into_iter().fold(Resources::NONE, |sum, kind| sum.with(kind, of(kind)))
}
