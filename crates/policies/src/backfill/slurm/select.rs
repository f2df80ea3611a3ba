//! The hosts of a job, by best fit among runs of consecutive hosts.

use std::cmp::Reverse;
use std::ops::Range;

use fixedbitset::FixedBitSet;
use miserly_core::{
    Demand, HostId, Kind, Machine, PartCounter, Pes, Placement, Resources, Share, Sharing, SlotId,
};

/// Returns the hosts of a job, as Slurm's `select/cons_tres` chooses them without a topology.
///
/// `free` are the free resources of each host, and `open` are the hosts that the job may use.
///
/// Hosts with room for a part of the job are in runs of consecutive ones of one [weight](Machine::with_weights). The job gets the
/// smallest run of the lowest weight that has enough for it, or else the largest one and then the next best for the rest. Runs of a
/// higher weight are for what is left then. Of a run it gets the host with the fewest processors that has enough, or else its first
/// hosts. The size of a run is the number of its processors; ties go to the first.
///
/// The processors of a host are the free ones for which it has enough of all that each processor of the job needs, such as
/// memory. Where the job has a number of parts, they are all free ones: its memory may be by node.
///
/// O(h + r log r) for h hosts in r runs.
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
    let fit = Fit::new(machine, demand);
    let permitted = |host: &usize| machine.permits(demand.group(), id(*host));
    let mut hosts = FixedBitSet::with_capacity(free.len());
    hosts.extend((0..free.len()).filter(|host| open[*host]).filter(permitted));
    fit.place(&hosts, &Sizes::ByHost(&|host| fit.size(&free[host], host)))
}

/// Returns the host with an index.
pub(super) fn id(host: usize) -> HostId {
    HostId(u32::try_from(host).unwrap_or(u32::MAX))
}

/// A job and the machine on which it looks for hosts.
#[derive(Debug)]
pub(super) struct Fit<'a> {
    machine: &'a Machine,
    pub(super) demand: &'a Demand,
    counter: PartCounter,
    /// The amount of a processor, if each part has one.
    each: Option<Resources>,
    /// Whether the job has its hosts to itself.
    pub(super) is_alone: bool,
}

/// The room of a host for a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    /// The parts of the job that it could hold.
    pub(super) parts: u64,
    /// The free processors that the job could use.
    pub(super) cpus: u64,
}

/// The sizes of the hosts of a set.
pub(super) enum Sizes<'a> {
    /// Each host has this size, which holds a part.
    Equal(Size),
    /// Each host has a size of its own.
    ByHost(&'a dyn Fn(usize) -> Size),
}

impl Sizes<'_> {
    fn of(&self, host: usize) -> Size {
        match self {
            Sizes::Equal(size) => *size,
            Sizes::ByHost(size) => size(host),
        }
    }
}

impl<'a> Fit<'a> {
    pub(super) fn new(machine: &'a Machine, demand: &'a Demand) -> Fit<'a> {
        let has_one_each = !demand.is_apart() && demand.parts() == demand.amount().cpus_count().get();
        Fit {
            machine,
            demand,
            counter: PartCounter::new(demand),
            each: has_one_each.then(|| demand.each()),
            is_alone: machine.sharing() == Sharing::Whole || demand.is_alone(),
        }
    }

    fn capacity(&self, host: usize) -> &'a Resources {
        &self.machine.hosts()[host].capacity
    }

    /// Returns the number of parts that a host with this room could hold.
    pub(super) fn parts_in(&self, room: &Resources, host: usize) -> u64 {
        let is_usable = !room.cpus_count().is_zero() && (!self.is_alone || room == self.capacity(host));
        if is_usable { self.counter.parts_in(room, room) } else { 0 }
    }

    /// Returns the size of a host with this room.
    pub(super) fn size(&self, room: &Resources, host: usize) -> Size {
        match self.parts_in(room, host) {
            0 => Size::default(),
            parts => Size { parts, cpus: usable_cpus(room, self.each.as_ref()) },
        }
    }

    /// Returns the size of an idle host of this capacity.
    pub(super) fn size_of_idle(&self, capacity: &Resources) -> Size {
        let parts =
            if capacity.cpus_count().is_zero() { 0 } else { self.counter.parts_in(capacity, capacity) };
        Size { parts, cpus: usable_cpus(capacity, self.each.as_ref()) }
    }

    /// Returns a placement on some of these hosts, or `None` if they do not have enough room.
    pub(super) fn place(&self, hosts: &FixedBitSet, sizes: &Sizes<'_>) -> Option<Placement> {
        let mut left = self.demand.parts();
        let weights = self.machine.weights();
        let mut runs = runs(hosts, sizes, weights);
        if runs.iter().fold(0, |sum: u64, run| sum.saturating_add(run.parts)) < left {
            return None;
        }
        let mut shares: Vec<Share> = vec![];
        let weight = |run: &Run| weights.get(run.hosts.start);
        if !weights.is_empty() {
            runs.sort_by_key(|run| weight(run).copied());
        }
        for runs in runs.chunk_by_mut(|one, other| weight(one) == weight(other)) {
            self.take_best(runs, sizes, &mut left, &mut shares);
            if left == 0 {
                break;
            }
        }
        Some(Placement::across(SlotId(0), shares))
    }

    /// Takes the best runs of one weight for the parts that are left.
    fn take_best(&self, mut runs: &mut [Run], sizes: &Sizes<'_>, left: &mut u64, shares: &mut Vec<Share>) {
        if runs.iter().all(|run| run.parts < *left) {
            // The largest ones come first, until one of the others has enough for the rest.
            runs.sort_unstable_by_key(|run| (Reverse(run.cpus), run.hosts.start));
            for most in most_behind(runs) {
                if most >= *left {
                    break;
                }
                let Some((run, behind)) = std::mem::take(&mut runs).split_first_mut() else { return };
                self.take(run, sizes, left, shares);
                runs = behind;
            }
        }
        let enough = runs.iter().filter(|run| run.parts >= *left);
        if let Some(best) = enough.min_by_key(|run| (run.cpus, run.hosts.start)) {
            self.take(best, sizes, left, shares);
        }
    }

    /// Takes the host of a run that is the best fit for the parts that are left, or else its first hosts.
    fn take(&self, run: &Run, sizes: &Sizes<'_>, left: &mut u64, shares: &mut Vec<Share>) {
        let enough = match sizes {
            Sizes::Equal(size) => (size.parts >= *left).then_some(run.hosts.start),
            Sizes::ByHost(size) => {
                let enough = run.hosts.clone().filter(|host| size(*host).parts >= *left);
                enough.min_by_key(|host| (size(*host).cpus, *host))
            }
        };
        let from = enough.unwrap_or(run.hosts.start);
        for host in from..run.hosts.end {
            if *left == 0 {
                return;
            }
            let done = self.demand.parts() - *left;
            let parts = sizes.of(host).parts.min(*left);
            let amount =
                if self.is_alone { *self.capacity(host) } else { self.demand.part(done, done + parts) };
            shares.push(Share { host: id(host), amount, pes: Pes::Count });
            *left -= parts;
        }
    }
}

/// Returns the free processors of a host that a job can use, if each of them needs so much of the other resources.
fn usable_cpus(room: &Resources, each: Option<&Resources>) -> u64 {
    let Some(each) = each else { return room.cpus_count().get() };
    let others = Kind::ALL.into_iter().filter_map(|kind| match each.get(kind) {
        0 => None,
        // A division takes many times as long.
        1 => Some(room.get(kind)),
        each => Some(room.get(kind) / each),
    });
    others.fold(room.cpus_count().get(), u64::min)
}

/// Consecutive hosts with room.
struct Run {
    hosts: Range<usize>,
    parts: u64,
    cpus: u64,
}

/// Returns the runs of hosts of one weight that hold a part. `weights`: those of the hosts; none if all are alike.
fn runs(hosts: &FixedBitSet, sizes: &Sizes<'_>, weights: &[u64]) -> Vec<Run> {
    match sizes {
        Sizes::Equal(size) => {
            let run = |hosts: Range<usize>| {
                let times = |number: u64| number.saturating_mul(hosts.len() as u64);
                Run { parts: times(size.parts), cpus: times(size.cpus), hosts }
            };
            if weights.is_empty() {
                return ranges(hosts).map(run).collect();
            }
            let of_one_weight = |hosts: Range<usize>| {
                let lengths = weights[hosts.clone()].chunk_by(|one, other| one == other).map(<[u64]>::len);
                lengths.scan(hosts.start, |from, length| {
                    *from += length;
                    Some(*from - length..*from)
                })
            };
            ranges(hosts).flat_map(of_one_weight).map(run).collect()
        }
        Sizes::ByHost(size) => {
            let mut runs: Vec<Run> = vec![];
            for host in hosts.ones() {
                let Size { parts, cpus } = size(host);
                match runs.last_mut() {
                    _ if parts == 0 => {}
                    Some(run)
                        if run.hosts.end == host && weights.get(host) == weights.get(run.hosts.start) =>
                    {
                        run.hosts.end += 1;
                        run.parts = run.parts.saturating_add(parts);
                        run.cpus = run.cpus.saturating_add(cpus);
                    }
                    _ => runs.push(Run { hosts: host..host + 1, parts, cpus }),
                }
            }
            runs
        }
    }
}

/// Returns the ranges of consecutive members of a set.
pub(super) fn ranges(set: &FixedBitSet) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut behind = 0;
    std::iter::from_fn(move || {
        let start = next_from(set, behind, true)?;
        behind = next_from(set, start, false).unwrap_or(set.len());
        Some(start..behind)
    })
}

/// Returns the first index from this one on that is a member of a set, or is none.
fn next_from(set: &FixedBitSet, from: usize, member: bool) -> Option<usize> {
    const BITS: usize = usize::BITS as usize;
    let words = set.as_slice();
    let word = |at: usize| words.get(at).map(|word| if member { *word } else { !*word });
    let mut at = from / BITS;
    let mut bits = word(at)? & (usize::MAX << (from % BITS));
    while bits == 0 {
        at += 1;
        bits = word(at)?;
    }
    Some(at * BITS + bits.trailing_zeros() as usize).filter(|index| *index < set.len())
}

/// Returns the most parts of a run from each one on.
fn most_behind(runs: &[Run]) -> Vec<u64> {
    let mut most: Vec<u64> = runs.iter().map(|run| run.parts).collect();
    for nth in (1..most.len()).rev() {
        most[nth - 1] = most[nth - 1].max(most[nth]);
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use miserly_core::{Form, Host, Spread, draw};

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

    /// Returns the hosts of a job, and the processors that each run takes there, as the rule is written.
    fn select_slowly(
        machine: &Machine,
        free: &[Resources],
        open: &[bool],
        demand: &Demand,
    ) -> Option<Placement> {
        let fit = Fit::new(machine, demand);
        let is_open = |host: &usize| open[*host] && machine.permits(demand.group(), id(*host));
        let size = |host: usize| fit.size(&free[host], host);
        let mut hosts: Vec<usize> =
            (0..free.len()).filter(is_open).filter(|host| size(*host).parts > 0).collect();
        let (mut left, mut shares) = (demand.parts(), vec![]);
        while left > 0 {
            let weight = |host: usize| machine.weights().get(host);
            let runs = hosts.chunk_by(|one, next| next - one == 1 && weight(*one) == weight(*next));
            let sum =
                |run: &[usize], of: fn(Size) -> u64| run.iter().map(|host| of(size(*host))).sum::<u64>();
            let rank = |run: &&[usize]| {
                let (parts, cpus) = (sum(run, |size| size.parts), sum(run, |size| size.cpus));
                (weight(run[0]), parts < left, if parts < left { u64::MAX - cpus } else { cpus }, run[0])
            };
            let run = runs.min_by_key(rank)?.to_vec();
            let enough = run.iter().filter(|host| size(**host).parts >= left);
            let best = enough.min_by_key(|host| (size(**host).cpus, **host)).map(|host| vec![*host]);
            for host in best.unwrap_or_else(|| run.clone()) {
                let (done, parts) = (demand.parts() - left, size(host).parts.min(left));
                if parts > 0 {
                    let capacity = machine.hosts()[host].capacity;
                    let amount = if fit.is_alone { capacity } else { demand.part(done, done + parts) };
                    shares.push(Share { host: id(host), amount, pes: Pes::Count });
                    left -= parts;
                }
            }
            hosts.retain(|host| !run.contains(host));
        }
        Some(Placement::across(SlotId(0), shares))
    }

    #[test]
    fn hosts_are_those_of_the_rule() {
        let (mut over_runs, mut equal) = (0, 0);
        for seed in 0..8_000 {
            let random = |nth: u64, most: u64| draw(seed, 0, nth) % most;
            // Runs over the words of a set too.
            let hosts = if random(0, 4) == 0 { 60 + random(1, 80) } else { 1 + random(1, 12) };
            let is_whole = random(2, 3) == 0;
            let capacity =
                |nth: u64| Resources::cpus(if random(3, 2) == 0 { 4 } else { 3 + random(500 + nth, 3) });
            let host = |nth| Host { name: format!("h{nth}"), capacity: capacity(nth) };
            let machine = Machine::new((0..hosts).map(host).collect()).with_spread(Spread::Any);
            let machine = if is_whole { machine.with_sharing(Sharing::Whole) } else { machine };
            let weight = |nth: u64| 1 + random(4_000 + nth, 2);
            let machine = if random(10, 3) == 0 {
                machine.with_weights((0..hosts).map(weight).collect())
            } else {
                machine
            };
            let room = |nth: u64| match random(1_000 + nth, 3) {
                0 => Resources::cpus(random(2_000 + nth, 4)),
                _ => capacity(nth),
            };
            let free: Vec<Resources> = (0..hosts).map(room).collect();
            let open: Vec<bool> = (0..hosts).map(|nth| random(3_000 + nth, 8) > 0).collect();
            let form = Form {
                apart: random(4, 5) == 0,
                alone: random(5, 5) == 0,
                ..Form::parts(u32::try_from(random(6, 9)).unwrap())
            };
            let demand = Demand::new(Resources::cpus(1 + random(7, 4 * hosts)), form);
            let slow = select_slowly(&machine, &free, &open, &demand);
            assert_eq!(select_hosts(&machine, &free, &open, &demand), slow, "seed {seed}");
            let fit = Fit::new(&machine, &demand);
            let sizes: Vec<Size> = (0..free.len()).map(|host| fit.size(&free[host], host)).collect();
            let mut usable = FixedBitSet::with_capacity(free.len());
            usable.extend((0..free.len()).filter(|host| open[*host] && sizes[*host].parts > 0));
            let first = usable.minimum().map(|host| sizes[host]);
            if let Some(size) = first.filter(|size| usable.ones().all(|host| sizes[host] == *size)) {
                assert_eq!(fit.place(&usable, &Sizes::Equal(size)), slow, "seed {seed}");
                equal += u32::from(slow.is_some());
            }
            let hosts = slow.iter().flat_map(Placement::shares).map(|share| share.host.0);
            over_runs += u32::from(hosts.clone().zip(hosts.skip(1)).any(|(one, next)| next != one + 1));
        }
        assert!(over_runs > 500 && equal > 500, "{over_runs}, {equal}");
    }
}
