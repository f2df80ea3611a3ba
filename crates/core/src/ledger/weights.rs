//! The weights of resources in the usage of users and groups.

use std::collections::BTreeMap;

use crate::{Kind, Placement, Request};

/// What the resources of the jobs of each queue cost in the [usage](crate::Usage) of their users and groups.
///
/// A job of a queue without weights costs as much as it has processors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UsageWeights(BTreeMap<u32, ResourceWeights>);

/// The most that a job costs, so that a million jobs can be added.
const MOST: u64 = 1 << 43;

/// The weights of the resources of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ResourceWeights {
    /// That of a processor.
    pub cpus: f64,
    /// That of a MiB of memory.
    pub memory: f64,
    /// That of a GPU.
    pub gpus: f64,
    /// That of a host.
    pub hosts: f64,
    /// Whether the largest of these products counts, and not their sum.
    pub largest: bool,
}

impl UsageWeights {
    /// Returns the weights of these queues.
    pub fn new(queues: BTreeMap<u32, ResourceWeights>) -> UsageWeights {
        UsageWeights(queues)
    }

    /// Returns the weights by queue.
    pub fn queues(&self) -> &BTreeMap<u32, ResourceWeights> {
        &self.0
    }

    /// Returns what a job costs in this place, rounded down. Resources that the hosts do not have are those of the request.
    pub(super) fn charge(&self, request: &Request, placement: &Placement) -> u64 {
        let total = placement.total();
        let Some(weights) = request.queue.and_then(|queue| self.0.get(&queue)) else {
            return total.cpus_count().get();
        };
        let amount = |kind| match total.get(kind) {
            0 => request.demand.get(kind),
            amount => amount,
        };
        let products = [
            weights.cpus * amount(Kind::Cpus) as f64,
            weights.memory * (amount(Kind::Memory) as f64 / 1024.0),
            weights.gpus * amount(Kind::Gpus) as f64,
            weights.hosts * placement.shares().len() as f64,
        ];
        let cost =
            if weights.largest { products.into_iter().fold(0.0, f64::max) } else { products.iter().sum() };
        whole(cost)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
fn whole(cost: f64) -> u64 {
    (cost.floor() as u64).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostId, Pes, Resources, Share, SlotId, Span, Time};

    #[test]
    fn a_job_costs_the_sum_or_the_largest_product() {
        let weights = ResourceWeights { cpus: 1.0, memory: 0.25, gpus: 4.0, hosts: 0.5, largest: false };
        let largest = ResourceWeights { largest: true, ..weights };
        let all = UsageWeights::new([(1, weights), (2, largest)].into());
        let cost = |queue: Option<u32>, amount: Resources| {
            let demand = Resources::cpus(6_u64).with(Kind::Memory, 8 * 1024).with(Kind::Gpus, 2);
            let request = Request { queue, ..Request::new(1, Time::ZERO, Span::TICK, demand) };
            let share = |host| Share { host: HostId(host), amount, pes: Pes::Count };
            all.charge(&request, &Placement::across(SlotId(0), vec![share(0), share(1)]))
        };
        // 6 + 2 + 8 + 1, of which the hosts have the processors only.
        let cpus = Resources::cpus(3_u64);
        assert_eq!([Some(1), Some(2), Some(3), None].map(|queue| cost(queue, cpus)), [17, 8, 6, 6]);
        // What it has counts more than what it asked for: all memory of its hosts.
        assert_eq!(cost(Some(1), cpus.with(Kind::Memory, 401 * 1024)), 6 + 200 + 8 + 1);
    }
}
