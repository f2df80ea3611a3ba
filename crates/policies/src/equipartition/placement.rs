//! The choice of a host for a job.

use std::cmp::Reverse;

use miserly_core::{Ledger, Procs, Resources, Time};

use super::Rules;
use super::host::Host;

/// Returns the index of the best host for this need, or `None` if no host is suitable.
///
/// Hosts with enough unallocated processors are preferred: the one with the fewest, then with the
/// least free memory, then the first. Otherwise the result is the one with the most processors per
/// requested processor, with the new job, then the first. Processors given to jobs that catch up do
/// not count there. A host has the least number of processors of each of its jobs, which is one unless a
/// request states another. O(hosts).
pub(super) fn best(
    hosts: &[Host],
    now: Time,
    ledger: &Ledger,
    rules: &Rules,
    need: &Resources,
    least: Procs,
) -> Option<usize> {
    let procs = need.cpus_count();
    let open = || (0..).zip(hosts).filter(|(_, host)| host.has_room(ledger, need) && has_place(host, least));
    let enough = open()
        .map(|(at, host)| (unallocated(host, now, ledger, rules), host.free_memory(ledger), at))
        .filter(|(free, ..)| *free >= procs)
        .min();
    // Ratios are compared by cross-multiplication. Of equal ones the first counts.
    let widest = || {
        open().max_by(|(a, one), (b, other)| {
            let product = |host: &Host, by: &Host| u128::from(host_size(host)) * requested_with(by, procs);
            product(one, other).cmp(&product(other, one)).then(Reverse(a).cmp(&Reverse(b)))
        })
    };
    enough.map(|(.., at)| at).or_else(|| widest().map(|(at, _)| at))
}

/// Returns the processors of a host without those given to jobs that catch up.
fn host_size(host: &Host) -> Procs {
    host.procs.saturating_sub(host.extra)
}

/// Returns whether there is the least number of processors for one more job.
fn has_place(host: &Host, least: Procs) -> bool {
    host.least.saturating_add(least) <= host_size(host)
}

/// Returns the processors that the jobs of a host request, with the new one.
fn requested_with(host: &Host, procs: Procs) -> u128 {
    u128::from(host.requested) + u128::from(procs)
}

/// Returns the unallocated processors of a host, after the repartitioning if one is due.
fn unallocated(host: &Host, now: Time, ledger: &Ledger, rules: &Rules) -> Procs {
    if host.is_due(now, ledger, rules) {
        host.procs.saturating_sub(host.requested)
    } else {
        ledger.free_hosts().on(host.id).cpus_count()
    }
}
