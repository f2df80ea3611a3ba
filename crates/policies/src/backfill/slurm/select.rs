//! The hosts of a job, by best fit among runs of consecutive hosts.

use std::ops::Range;

use miserly_core::{
    Demand, HostId, Kind, Machine, PartCounter, Pes, Placement, Resources, Share, Sharing, SlotId,
};

/// Returns the hosts of a job, as Slurm's `select/cons_tres` chooses them without a topology.
///
/// `free` are the free resources of each host, and `open` are the hosts that the job may use.
///
/// Hosts with room for a part of the job are in runs of consecutive ones. The job gets the smallest run that has enough for
/// it, or else the largest one and then the next best for the rest. Of a run it gets the host with the fewest processors
/// that has enough, or else its first hosts. The size of a run is the number of its processors; ties go to the first.
///
/// The processors of a host are the free ones for which it has enough of all that each processor of the job needs, such as
/// memory. Where the job has a number of parts, they are all free ones: its memory may be by node.
///
/// O(h + r^2) for h hosts in r runs.
///
/// # Example
/// ```
/// use miserly_core::{Demand, Host, Machine, Resources, Spread};
/// use miserly_policies::backfill::select_hosts;
///
/// let host = |cpus: u64| Host { name: String::new(), capacity: Resources::cpus(cpus) };
/// let machine = Machine::new([8, 8, 8, 8].map(host).into()).with_spread(Spread::Any);
/// let free = [8, 8, 0, 5].map(|cpus: u64| Resources::cpus(cpus));
/// let placement = select_hosts(&machine, &free, &[true; 4], &Demand::from(Resources::cpus(4_u64)));
/// assert_eq!(placement.map(|placement| placement.shares()[0].host.0), Some(3));
/// ```
///
/// # Panics
/// If there are fewer free resources or open hosts than hosts of the machine.
pub fn select_hosts(
    machine: &Machine,
    free: &[Resources],
    open: &[bool],
    demand: &Demand,
) -> Option<Placement> {
    let whole = machine.sharing() == Sharing::Whole;
    let counter = PartCounter::new(demand);
    let parts = |host: usize| {
        let (room, capacity) = (&free[host], &machine.hosts()[host].capacity);
        let permitted = machine.permits(demand.group(), HostId(u32::try_from(host).unwrap_or(u32::MAX)));
        let usable = open[host] && permitted && !room.cpus_count().is_zero() && (!whole || room == capacity);
        if usable { counter.parts_in(room, capacity) } else { 0 }
    };
    let parts: Vec<u64> = (0..free.len()).map(parts).collect();
    let mut left = demand.parts();
    if parts.iter().fold(0, |sum: u64, parts| sum.saturating_add(*parts)) < left {
        return None;
    }
    let has_one_each = !demand.is_apart() && demand.parts() == demand.amount().cpus_count().get();
    let each = has_one_each.then(|| demand.each());
    let cpus = |host: usize| usable_cpus(&free[host], each.as_ref());
    let mut runs: Vec<Run> = runs(&parts)
        .map(|hosts| Run {
            parts: parts[hosts.clone()].iter().fold(0, |sum, parts| sum.saturating_add(*parts)),
            cpus: hosts.clone().map(cpus).sum(),
            hosts,
        })
        .collect();
    let mut shares: Vec<Share> = vec![];
    let mut take = |host: usize, from: u64, to: u64| {
        let capacity = machine.hosts()[host].capacity;
        let amount = if whole || demand.is_alone() { capacity } else { demand.part(from, to) };
        shares.push(Share { host: HostId(u32::try_from(host).unwrap_or(u32::MAX)), amount, pes: Pes::Count });
    };
    while left > 0 {
        let best = best_run(&runs, left)?;
        let run = runs.remove(best);
        let done = demand.parts() - left;
        let enough = run.hosts.clone().filter(|host| parts[*host] >= left);
        if let Some(host) = enough.min_by_key(|host| (cpus(*host), *host)) {
            take(host, done, demand.parts());
            break;
        }
        for host in run.hosts {
            let from = demand.parts() - left;
            let taken = parts[host].min(left);
            take(host, from, from + taken);
            left -= taken;
            if left == 0 {
                break;
            }
        }
    }
    Some(Placement::across(SlotId(0), shares))
}

/// Returns the free processors of a host that a job can use, if each of them needs so much of the other resources.
fn usable_cpus(room: &Resources, each: Option<&Resources>) -> u64 {
    let others = each
        .into_iter()
        .flat_map(|each| Kind::ALL.into_iter().filter_map(|kind| room.get(kind).checked_div(each.get(kind))));
    others.fold(room.cpus_count().get(), u64::min)
}

/// Consecutive hosts with room.
struct Run {
    hosts: Range<usize>,
    parts: u64,
    cpus: u64,
}

/// Returns the runs of hosts that hold a part.
fn runs(parts: &[u64]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut begin = 0;
    parts.chunk_by(|one, other| (*one > 0) == (*other > 0)).filter_map(move |run| {
        let hosts = begin..begin + run.len();
        begin = hosts.end;
        (run[0] > 0).then_some(hosts)
    })
}

/// Returns the run that is the best fit for so many parts.
fn best_run(runs: &[Run], parts: u64) -> Option<usize> {
    let rank = |run: &Run| if run.parts >= parts { (0, run.cpus) } else { (1, u64::MAX - run.cpus) };
    (0..runs.len()).min_by_key(|run| (rank(&runs[*run]), *run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use miserly_core::{Form, Host, Spread};

    /// Chooses hosts of 8 processors with so many free ones; a host in brackets is closed. Returns the processors of each host.
    #[track_caller]
    fn check(free: &str, procs: u64, form: Form, expected: Option<&[(u32, u64)]>) {
        let words: Vec<&str> = free.split_whitespace().collect();
        let open: Vec<bool> = words.iter().map(|word| !word.starts_with('(')).collect();
        let count = |word: &&str| word.trim_matches(['(', ')']).parse::<u64>().unwrap();
        let rooms: Vec<Resources> = words.iter().map(|word| Resources::cpus(count(word))).collect();
        let host = |name: &&str| Host { name: (*name).to_owned(), capacity: Resources::cpus(8) };
        let machine = Machine::new(words.iter().map(host).collect()).with_spread(Spread::Any);
        let chosen = select_hosts(&machine, &rooms, &open, &Demand::new(Resources::cpus(procs), form));
        let shares = |placement: Placement| -> Vec<(u32, u64)> {
            placement.shares().iter().map(|share| (share.host.0, share.amount.cpus_count().get())).collect()
        };
        assert_eq!(chosen.map(shares).as_deref(), expected, "{free}: {procs}");
    }

    #[test]
    fn the_smallest_run_with_enough() {
        check("8 8 0 4 8 0 8", 12, Form::ANY, Some(&[(3, 4), (4, 8)]));
        // The first one of equal size.
        check("8 0 8 0 4 4", 3, Form::ANY, Some(&[(0, 3)]));
        // The host of the run that is the best fit.
        check("8 5 3 0 8 8 8", 4, Form::ANY, Some(&[(1, 4)]));
    }

    #[test]
    fn without_one_the_largest_runs() {
        check("8 0 8 8 0 4", 20, Form::ANY, Some(&[(2, 8), (3, 8), (5, 4)]));
        check("8 0 (8) 8 0 4", 20, Form::ANY, Some(&[(0, 8), (3, 8), (5, 4)]));
        check("8 0 (8) 8 0 4", 21, Form::ANY, None);
    }

    #[test]
    fn memory_limits_the_processors_of_a_host() {
        let host = |cpus: u64, memory: u64| Host {
            name: String::new(),
            capacity: Resources::cpus(cpus).with(Kind::Memory, memory),
        };
        // For a job with two units of memory for each processor, the second host has two processors, and the fourth three.
        let hosts = vec![host(4, 8), host(8, 5), host(0, 9), host(8, 7)];
        let free: Vec<Resources> = hosts.iter().map(|host| host.capacity).collect();
        let machine = Machine::new(hosts).with_spread(Spread::Any);
        let chosen = |cpus: u64| {
            let demand = Demand::from(Resources::cpus(cpus).with(Kind::Memory, 2 * cpus));
            let placement = select_hosts(&machine, &free, &[true; 4], &demand)?;
            Some(placement.shares().iter().map(|share| share.host.0).collect::<Vec<_>>())
        };
        assert_eq!([chosen(1), chosen(3), chosen(4)], [Some(vec![3]), Some(vec![3]), Some(vec![0])]);
        assert_eq!([chosen(6), chosen(9), chosen(10)], [Some(vec![0, 1]), Some(vec![0, 1, 3]), None]);
    }

    #[test]
    fn a_form_counts_parts() {
        // Two parts of four: one host with five free processors holds one of them.
        check("5 3 0 5", 8, Form::parts(2), Some(&[(0, 4), (3, 4)]));
        check("8 0 4 4", 8, Form { apart: true, ..Form::parts(2) }, Some(&[(2, 4), (3, 4)]));
        // A host to itself is an idle one, and all of it.
        check("5 8 0 8", 6, Form { alone: true, ..Form::parts(1) }, Some(&[(1, 8)]));
    }
}
