//! The map of a machine: the hosts, and the use of their processors.

mod by_number;

mod groups;

mod parts;

mod reserved;

use std::collections::BTreeMap;

use serde::Serialize;

use self::by_number::Numbers;
use self::groups::{groups_of_cpus, groups_of_hosts};
use self::parts::{Share, parts};
use self::reserved::reserved;
use crate::{Facts, HostFacts, Job, PoolFacts, State};

/// A host at an instant, or a whole pool whose hosts are not known. On a large machine it is a group of hosts, or of processors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HostNow {
    /// The name of the host or of the pool, the names of the first host and the last one, or the numbers of the processors.
    pub name: String,
    /// Why no job can start there, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// All processors, offline ones too.
    pub cpus: u64,
    /// The processors of jobs in their windows.
    pub held: u64,
    /// The idle processors that are reserved for a job within an hour.
    pub reserved: u64,
    /// The other idle processors.
    pub free: u64,
    /// The processors that no job can use now.
    pub offline: u64,
    /// The memory, bytes; 0 if it is not accounted.
    pub memory: u64,
    /// The memory of jobs in their windows, bytes.
    pub memory_held: u64,
    /// The processors in the order of their numbers. Without numbers: held, opportunistic, idle, reserved and offline ones.
    pub parts: Vec<HostPart>,
}

/// Processors of a host side by side with the same use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostPart {
    /// The use.
    #[serde(rename = "use")]
    pub cpu_use: CpuUse,
    /// The number of processors.
    pub cpus: u64,
    /// The processors by number, as ranges with both ends, if the numbers are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub numbers: Vec<(u32, u32)>,
    /// The number of the job, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<i64>,
    /// The number of the job, with the index in an array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether the job is known to be there, and its processors are not: they are taken as divided evenly among its hosts, or as the
    /// last ones that no other job has.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

/// The use of processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CpuUse {
    /// A job in its window holds them.
    Held,
    /// An opportunistic job runs on them. They are idle for the policy.
    Opportunistic,
    /// They are idle.
    Idle,
    /// They are idle, and reserved for a job within an hour.
    Reserved,
    /// No job can use them now.
    Offline,
}

/// The jobs that run, by pool and by host.
#[derive(Debug)]
pub(crate) struct Placed<'a> {
    facts: &'a Facts,
    /// The jobs of each pool.
    pools: Vec<Vec<&'a Job>>,
    /// The jobs of each host.
    hosts: BTreeMap<&'a str, Vec<&'a Job>>,
    /// The jobs of each host of a pool whose processors are numbered host by host, in the order of the hosts.
    numbered: Vec<Vec<Vec<&'a Job>>>,
}

impl<'a> Placed<'a> {
    /// Collects the jobs that run. O(n log n) for n jobs and their hosts.
    pub(crate) fn new(facts: &'a Facts) -> Placed<'a> {
        let numbered = facts.pools.iter().map(|pool| vec![vec![]; pool.hosts.len()]).collect();
        let mut placed =
            Placed { facts, pools: vec![vec![]; facts.pools.len()], hosts: BTreeMap::new(), numbered };
        let runs = |job: &&Job| matches!(job.state, State::Running | State::Opportunistic);
        for job in facts.jobs.iter().map(|job| &**job).filter(runs) {
            if let Some(pool) = placed.pools.get_mut(job.pool) {
                pool.push(job);
                place_by_number(&facts.pools[job.pool].hosts, &mut placed.numbered[job.pool], job);
            }
            for host in &job.hosts {
                placed.hosts.entry(host).or_default().push(job);
            }
        }
        placed
    }

    /// Returns the idle processors of a pool that are reserved for a job within an hour.
    pub(crate) fn reserved(&self, place: usize) -> u64 {
        let Some(pool) = self.facts.pools.get(place) else { return 0 };
        if pool.hosts.is_empty() {
            return reserved(self.facts, place, pool);
        }
        let reserved = pool.hosts.iter().enumerate().filter(|(_, host)| host.reserved);
        reserved.map(|(at, host)| idle(host, &self.shares(place, at, host))).sum()
    }

    /// Returns the hosts of a pool, or groups of them if they are more than `most`. If they are not known, returns the pool itself, or groups
    /// of its processors.
    ///
    /// `reserved` is the number of its idle processors that are reserved.
    pub(crate) fn hosts(&self, place: usize, most: usize, reserved: u64) -> Vec<HostNow> {
        let Some(pool) = self.facts.pools.get(place) else { return vec![] };
        if pool.hosts.is_empty() {
            return groups_of_cpus(self.whole(place, pool, reserved));
        }
        let hosts = pool.hosts.iter().enumerate().map(|(at, host)| self.host(place, at, host));
        groups_of_hosts(hosts.collect(), most)
    }

    /// Returns a pool as one host.
    fn whole(&self, place: usize, pool: &PoolFacts, reserved: u64) -> HostNow {
        let shares: Vec<Share<'_>> = self.pools[place].iter().map(|job| Share::whole(job)).collect();
        let idle = pool.cpus.saturating_sub(pool.held);
        let numbers = Numbers { all: pool.numbers.clone(), offline: pool.numbers_offline.clone() };
        // A pool may use fewer processors than it can choose from.
        let cpus = pool.cpus.saturating_add(pool.offline).max(numbers.count());
        let host = HostNow {
            name: pool.name.clone(),
            unusable: None,
            cpus,
            held: pool.held,
            reserved,
            free: idle - reserved,
            offline: cpus - pool.cpus,
            memory: pool.memory,
            memory_held: pool.memory_held,
            parts: vec![],
        };
        HostNow { parts: parts(&host, &shares, &numbers), ..host }
    }

    fn host(&self, place: usize, at: usize, known: &HostFacts) -> HostNow {
        let shares = self.shares(place, at, known);
        let idle = idle(known, &shares);
        let of = |is: bool| if is { idle } else { 0 };
        let unusable = known.unusable.is_some();
        let host = HostNow {
            name: known.name.clone(),
            unusable: known.unusable.clone(),
            cpus: known.cpus,
            held: known.cpus - idle,
            reserved: of(known.reserved && !unusable),
            free: of(!known.reserved && !unusable),
            offline: of(unusable),
            memory: known.memory,
            memory_held: match known.held {
                Some(_) => known.memory_held,
                None => shares.iter().map(Share::memory).sum(),
            },
            parts: vec![],
        };
        let numbers = known.first.map(|first| Numbers::from(first, known.cpus)).unwrap_or_default();
        HostNow { parts: parts(&host, &shares, &numbers), ..host }
    }

    /// Returns the processors that each job has on the host at a place of its pool.
    fn shares(&self, place: usize, at: usize, host: &HostFacts) -> Vec<Share<'a>> {
        if let Some(first) = host.first {
            let shares = self.numbered[place][at].iter().map(|job| Share::numbered(job, first, host.cpus));
            return shares.filter(|share| share.cpus > 0).collect();
        }
        let jobs = self.hosts.get(&*host.name).map_or(&[][..], Vec::as_slice);
        if let ([job], Some(held)) = (jobs, host.held) {
            return vec![Share { cpus: held, estimated: false, job }];
        }
        let mut shares: Vec<Share<'_>> = jobs.iter().map(|job| Share::part(job)).collect();
        let exact: u64 = shares.iter().filter(|share| !share.estimated).map(|share| share.cpus).sum();
        let mut left = host.held.unwrap_or(host.cpus).saturating_sub(exact);
        for share in shares.iter_mut().filter(|share| share.estimated) {
            share.cpus = share.cpus.min(left);
            left -= share.cpus;
        }
        shares
    }
}

/// Adds a job to the hosts that have processors of it by number.
fn place_by_number<'a>(hosts: &[HostFacts], jobs: &mut [Vec<&'a Job>], job: &'a Job) {
    if hosts.first().is_none_or(|host| host.first.is_none()) {
        return;
    }
    for (low, high) in &job.cpus {
        let first = hosts.partition_point(|host| host.first.is_some_and(|first| first <= *low));
        let first = first.saturating_sub(1);
        let on = hosts[first..].iter().take_while(|host| host.first.is_some_and(|first| first <= *high));
        for jobs in &mut jobs[first..first + on.count()] {
            if jobs.last().is_none_or(|last| last.number != job.number) {
                jobs.push(job);
            }
        }
    }
}

/// Returns the processors of a host that no job in its window has.
fn idle(host: &HostFacts, shares: &[Share<'_>]) -> u64 {
    let of_shares = || shares.iter().filter(|share| share.holds()).map(|share| share.cpus).sum();
    host.cpus.saturating_sub(host.held.unwrap_or_else(of_shares))
}

#[cfg(test)]
mod tests;
