//! The placement of a job, given the free resources of each host.

use std::cmp::Reverse;

use super::devices::Cells;
use miserly_core::{Demand, HostId, Kind, Machine, Resources, Sharing, Spread};

/// The holdings of a job on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) host: usize,
    pub(super) amount: Resources,
    pub(super) devices: Cells,
}

/// Returns the placement of a job with this demand, or `None` if it does not fit.
///
/// The job goes to one host if it fits there completely. Otherwise, where a job may span several
/// hosts, it takes the emptiest hosts in turn. Each takes as many equal parts of it as fit, until the
/// remainder fits on one. If each equal part needs a host of its own, they take the best fits.
pub(super) fn fit(machine: &Machine, free: &[Resources], demand: &Demand) -> Option<Vec<Part>> {
    let alone = demand.is_alone();
    // A host where it may not run is one where nothing is free.
    let permitted = |(host, free): (usize, &Resources)| {
        let host = HostId(u32::try_from(host).unwrap_or(u32::MAX));
        if machine.permits(demand.group(), host) { *free } else { Resources::NONE }
    };
    let free = &free.iter().enumerate().map(permitted).collect::<Vec<Resources>>()[..];
    if demand.is_apart() {
        let mut taken = Vec::new();
        for _ in 0..demand.parts() {
            taken.push(best(machine, free, &taken, &times(demand, 1), alone)?);
        }
        return Some(taken);
    }
    if let Some(part) = best(machine, free, &[], &demand.amount(), alone) {
        return Some(vec![part]);
    }
    if machine.spread() == Spread::One {
        return None;
    }
    let mut hosts: Vec<usize> = (0..free.len()).collect();
    hosts.sort_by_key(|&host| Reverse(fullness(host, &free[host])));
    let (mut taken, mut left) = (Vec::new(), demand.parts());
    for host in hosts {
        if let Some(rest) = best(machine, free, &taken, &times(demand, left), alone) {
            taken.push(rest);
            return Some(taken);
        }
        // The largest number of its equal parts that fit.
        let fitting = (1..=left).rev().find_map(|parts| {
            let amount = held(machine, host, &free[host], &times(demand, parts), alone)?;
            Some((parts, amount))
        });
        if let Some((parts, amount)) = fitting {
            taken.push(Part { host, amount, devices: vec![] });
            left -= parts;
        }
    }
    None
}

/// Returns the best fit among the hosts that are not taken: fewest free processors, then least free
/// memory, then first.
fn best(
    machine: &Machine,
    free: &[Resources],
    taken: &[Part],
    need: &Resources,
    alone: bool,
) -> Option<Part> {
    let others = (0..free.len()).filter(|host| taken.iter().all(|part| part.host != *host));
    let parts = others.filter_map(|host| {
        Some(Part { host, amount: held(machine, host, &free[host], need, alone)?, devices: vec![] })
    });
    parts.min_by_key(|part| fullness(part.host, &free[part.host]))
}

/// Returns the sort key of a host: the fullest host first.
pub(super) fn fullness(host: usize, free: &Resources) -> (u64, u64, usize) {
    (free.cpus_count().get(), free.get(Kind::Memory), host)
}

/// Returns the holdings of a job on the host, or `None` if the host has too little free. A job `alone` needs all of it.
pub(super) fn held(
    machine: &Machine,
    host: usize,
    free: &Resources,
    need: &Resources,
    alone: bool,
) -> Option<Resources> {
    let capacity = machine.hosts()[host].capacity;
    let possible = need.fits_in(free);
    if alone || machine.sharing() == Sharing::Whole {
        (possible && *free == capacity).then_some(capacity)
    } else {
        possible.then_some(*need)
    }
}

/// Returns the demand of this number of equal parts of the job.
pub(super) fn times(demand: &Demand, parts: u64) -> Resources {
    let of = |kind: Kind| demand.amount().get(kind) / demand.parts() * parts;
    Kind::ALL.into_iter().fold(Resources::NONE, |sum, kind| sum.with(kind, of(kind)))
}
