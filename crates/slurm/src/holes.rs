//! What can start now, and for how long.

use std::collections::BTreeSet;

use miserly_core::{Driver, EventOrder, HostId, Kind, Ledger, Round, Span, Time};
use miserly_policies::PolicySpec;
use serde::Serialize;

use crate::{Cluster, Job, Observed, Queue};

/// Free nodes of a partition until a time.
///
/// A job with at most these processors starts now, if its time limit ends before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hole {
    /// The partition.
    pub partition: String,
    /// The nodes with free processors until then.
    pub nodes: u64,
    /// Those of them that are idle.
    pub idle: u64,
    /// Their free processors.
    pub cpus: u64,
    /// The most free processors of one node.
    pub most_cpus: u64,
    /// The most free memory of one node, MiB, where Slurm counts memory.
    pub most_memory: Option<u64>,
    /// Their free GPUs.
    pub gpus: u64,
    /// The end, in seconds since 1970; `None`: no reservation is known there.
    pub until: Option<i64>,
    /// The longest time limit of a job that starts at the next cycle of backfilling, seconds, also by that of the partition; `None`:
    /// any.
    pub longest: Option<i64>,
}

/// A node with free processors.
struct FreeNode {
    idle: bool,
    cpus: u64,
    memory: u64,
    gpus: u64,
    until: Option<i64>,
}

impl Cluster {
    /// Returns the holes of each partition that is up, the longest first. Each one contains those before it.
    ///
    /// A cycle of backfilling is simulated in which running jobs end by their time limits. A node is free until the first
    /// reservation on it: of a waiting job in that cycle, or a reservation of the cluster. Jobs that fit now are taken to start.
    pub fn holes(&self, observed: &Observed) -> Vec<Hole> {
        let mut holes = vec![];
        for queue in self.queues(None, observed) {
            let Some(ledger) = self.after_cycle(&queue) else { continue };
            for name in &queue.partitions {
                if self.partitions.get(name).is_some_and(|partition| partition.state == "up") {
                    holes.extend(self.holes_of(name, &queue, &ledger));
                }
            }
        }
        holes.sort_by(|one, other| one.partition.cmp(&other.partition));
        holes
    }

    /// Returns the jobs of a queue after a cycle of backfilling, with the plans that were made there.
    fn after_cycle(&self, queue: &Queue) -> Option<Ledger> {
        let now = queue.live.copy.now + Span::TICK;
        let interval = self.configuration.cycle();
        let first = now.ticks().rem_euclid(interval.ticks().max(1));
        let written = format!("bf_interval={}us, bf_first={first}us", interval.ticks());
        let twin = self.ordered_twin(queue.limits.as_deref()).with_interval(&self.configuration, &written);
        let policy: PolicySpec = twin.policy.parse().ok()?;
        let ledger = queue.live.copy.ledger.clone();
        let policy = policy.build(ledger.machine(), 0).ok()?;
        let mut driver = Driver::new(ledger, policy, EventOrder::Batched);
        driver.resume(queue.live.copy.now, Some(now));
        driver.round(now, &mut Round::default(), &mut vec![]).ok()?;
        Some(driver.ledger().clone())
    }

    fn holes_of(&self, name: &str, queue: &Queue, ledger: &Ledger) -> Vec<Hole> {
        // Without backfilling a job starts after all that wait.
        let waits = |job: &miserly_core::JobId| {
            let id = queue.ids.get(&ledger.request(*job).number);
            let job = id.and_then(|id| self.jobs.get(id));
            job.is_some_and(|job: &Job| self.partition_of(job) == Some(name))
        };
        if !self.configuration.has_backfilling() && ledger.waiting().any(|job| waits(&job)) {
            return vec![];
        }
        let partition = &self.partitions[name];
        let free = self.free_nodes(&partition.nodes, ledger);
        let mut ends: Vec<Option<i64>> = free.iter().map(|node| node.until).collect();
        ends.sort_by_key(|end| std::cmp::Reverse(end.unwrap_or(i64::MAX)));
        ends.dedup();
        let limit = match partition.longest {
            crate::Limit::Unlimited => None,
            crate::Limit::Seconds(seconds) => i64::try_from(seconds).ok(),
        };
        let counts_memory = self.configuration.counts_memory();
        let hole = |until: Option<i64>| {
            let inside = || {
                let is_inside =
                    move |node: &&FreeNode| node.until.unwrap_or(i64::MAX) >= until.unwrap_or(i64::MAX);
                free.iter().filter(is_inside)
            };
            // Slurm has whole minutes, and the job waits for the next cycle.
            let left = until.map(|until| {
                (until - self.configuration.now - self.configuration.cycle().secs()).div_euclid(60) * 60
            });
            let longest = left.into_iter().chain(limit).min();
            Hole {
                partition: name.to_owned(),
                nodes: inside().count() as u64,
                idle: inside().filter(|node| node.idle).count() as u64,
                cpus: inside().map(|node| node.cpus).sum(),
                most_cpus: inside().map(|node| node.cpus).max().unwrap_or(0),
                most_memory: counts_memory.then(|| inside().map(|node| node.memory).max().unwrap_or(0)),
                gpus: inside().map(|node| node.gpus).sum(),
                until,
                longest,
            }
        };
        ends.into_iter().map(hole).filter(|hole| hole.longest.is_none_or(|longest| longest > 0)).collect()
    }

    /// Returns the nodes of these with free processors.
    fn free_nodes(&self, names: &[String], ledger: &Ledger) -> Vec<FreeNode> {
        let machine = ledger.machine();
        let now = Time::from_secs(self.configuration.now).unwrap_or(Time::ZERO);
        let names: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let counts_memory = self.configuration.counts_memory();
        let rooms = ledger.free_hosts();
        let taken = self.taken_from(ledger, now);
        let mut free = vec![];
        for (nth, (host, room)) in machine.hosts().iter().zip(rooms.each()).enumerate() {
            let memory = room.get(Kind::Memory) / 1024;
            let is_full = room.cpus_count().is_zero() || counts_memory && memory == 0;
            if !names.contains(host.name.as_str()) || is_full {
                continue;
            }
            let until = taken[nth];
            if until.is_some_and(|until| until <= now) {
                continue;
            }
            free.push(FreeNode {
                idle: *room == host.capacity,
                cpus: room.cpus_count().get(),
                memory,
                gpus: room.get(Kind::Gpus),
                until: until.map(Time::secs),
            });
        }
        free
    }

    /// Returns the first instant at which each host is taken: by a reservation of a waiting job, or one of the cluster that has not ended.
    fn taken_from(&self, ledger: &Ledger, now: Time) -> Vec<Option<Time>> {
        let unit = self.configuration.resolution().ticks();
        let mut taken: Vec<Option<Time>> = vec![None; ledger.machine().hosts().len()];
        let mut take = |host: HostId, from: Time| {
            let first = &mut taken[host.index()];
            *first = Some(first.map_or(from, |known| known.min(from)));
        };
        for entry in ledger.waiting().map(|job| ledger.entry(job)) {
            let Some((start, on)) = entry.planned.zip(entry.planned_on.as_ref()) else { continue };
            // A reservation begins at a multiple of the unit.
            let begin = Time::from_ticks(start.ticks() - start.ticks().rem_euclid(unit));
            on.shares().iter().for_each(|share| take(share.host, begin));
        }
        for closed in ledger.machine().closed_hosts().iter().filter(|closed| closed.to > now) {
            closed.hosts.iter().for_each(|host| take(*host, closed.from));
        }
        taken
    }
}
