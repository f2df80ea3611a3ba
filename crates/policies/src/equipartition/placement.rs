//! On which host a job goes.

use std::cmp::Reverse;

use miserly_core::{Ledger, Procs, Resources, Time};

use super::Rules;
use super::host::Host;

/// The host for a job that needs so much, by its position; `None` if none has room.
///
/// Among the hosts with enough unallocated processors the one with the fewest, then with the least free memory, then
/// the first; else the one with the most processors for each that its jobs ask for, with the new one, then the first.
/// Processors given to jobs that catch up do not count there. A host has at most a job for each processor.
/// O(hosts).
pub(super) fn best(
    hosts: &[Host],
    now: Time,
    ledger: &Ledger,
    rules: &Rules,
    need: &Resources,
) -> Option<usize> {
    let procs = need.cpus_count();
    let open = || (0..).zip(hosts).filter(|(_, host)| host.has_room(ledger, need) && has_place(host));
    let enough = open()
        .map(|(at, host)| (unallocated(host, now, ledger, rules), host.free_memory(ledger), at))
        .filter(|(free, ..)| *free >= procs)
        .min();
    // A ratio is compared by cross-multiplication; of equal ones the first counts.
    let widest = || {
        open().max_by(|(a, one), (b, other)| {
            let product = |host: &Host, by: &Host| u128::from(host_size(host)) * asked(by, procs);
            product(one, other).cmp(&product(other, one)).then(Reverse(a).cmp(&Reverse(b)))
        })
    };
    enough.map(|(.., at)| at).or_else(|| widest().map(|(at, _)| at))
}

/// The processors of a host, but for those given to jobs that catch up.
fn host_size(host: &Host) -> Procs {
    host.procs.saturating_sub(host.extra)
}

/// Whether there is a processor for one more job.
fn has_place(host: &Host) -> bool {
    Procs::new(host.jobs.len() as u64) < host_size(host)
}

/// The processors that the jobs of a host ask for, with the new one.
fn asked(host: &Host, procs: Procs) -> u128 {
    u128::from(host.asked) + u128::from(procs)
}

/// The processors of a host that nobody has; as they would be after the repartitioning, where one is due.
fn unallocated(host: &Host, now: Time, ledger: &Ledger, rules: &Rules) -> Procs {
    if host.is_due(now, ledger, rules) {
        host.procs.saturating_sub(host.asked)
    } else {
        ledger.free_hosts().on(host.id).cpus_count()
    }
}
