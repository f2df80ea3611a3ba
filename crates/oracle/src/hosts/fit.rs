//! The placement of a job, given the free resources of each host.

use std::cmp::Reverse;

use miserly_core::{Kind, Machine, Resources, Sharing, Spread};

/// The holdings of a job on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) host: usize,
    pub(super) amount: Resources,
}

/// Returns the placement of a job with this demand, or `None` if it does not fit.
///
/// The job goes to one host if it fits there completely. Otherwise, where a job may span several
/// hosts, it takes the emptiest hosts in turn. Each takes the part that fits, until the remainder
/// fits on one.
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
        // The largest number of its processors that fit, each with its part of all other resources.
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

/// Returns the best fit among the hosts that are not taken: fewest free processors, then least free
/// memory, then first.
fn best(machine: &Machine, free: &[Resources], taken: &[Part], need: &Resources) -> Option<Part> {
    let others = (0..free.len()).filter(|host| taken.iter().all(|part| part.host != *host));
    let parts =
        others.filter_map(|host| Some(Part { host, amount: held(machine, host, &free[host], need)? }));
    parts.min_by_key(|part| fullness(part.host, &free[part.host]))
}

/// Returns the sort key of a host: the fullest host first.
pub(super) fn fullness(host: usize, free: &Resources) -> (u64, u64, usize) {
    (free.cpus_count().get(), free.get(Kind::Memory), host)
}

/// Returns the holdings of a job on the host, or `None` if the host has too little free.
pub(super) fn held(machine: &Machine, host: usize, free: &Resources, need: &Resources) -> Option<Resources> {
    let capacity = machine.hosts()[host].capacity;
    let possible = need.fits_in(free);
    match machine.sharing() {
        Sharing::Shared => possible.then_some(*need),
        Sharing::Whole => (possible && *free == capacity).then_some(capacity),
    }
}

/// Returns the demand of `procs` processors of the job, each with an equal part of all other
/// resources.
fn times(demand: &Resources, procs: u64) -> Resources {
    let of = |kind: Kind| demand.get(kind) / demand.cpus_count().get() * procs;
    Kind::ALL.into_iter().fold(Resources::NONE, |sum, kind| sum.with(kind, of(kind)))
}
