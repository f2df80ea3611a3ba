//! The nodes that the policy schedules, as a machine.

use std::collections::BTreeSet;

use miserly_core::{Host, HostId, Kind, Machine, Resources, Sharing, Spread};
use miserly_slurm::{Amount, Cluster, Detail, Job, Node, Reservation};

/// The nodes of the driven partitions. Its hosts are in the order of the names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Site {
    hosts: Vec<SiteHost>,
    /// Whether a job has its nodes to itself.
    whole: bool,
    /// Whether jobs have memory of their own.
    memory: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SiteHost {
    name: String,
    /// What a job may use.
    capacity: Resources,
    usable: bool,
    features: Vec<String>,
    partitions: Vec<String>,
}

impl Site {
    /// Returns the nodes of these partitions. Nodes in reservations other than `own` are out of service.
    pub(crate) fn new(cluster: &Cluster, partitions: &BTreeSet<String>, own: &str) -> Site {
        let driven: Vec<_> =
            cluster.partitions.iter().filter(|(name, _)| partitions.contains(*name)).collect();
        let names: BTreeSet<&String> = driven.iter().flat_map(|(_, partition)| &partition.nodes).collect();
        let now = cluster.configuration.now;
        let is_active = |(name, reservation): &(&String, &Reservation)| {
            *name != own && reservation.begin <= now && now < reservation.end
        };
        let elsewhere: BTreeSet<&String> = cluster
            .reservations
            .iter()
            .filter(is_active)
            .flat_map(|(_, reservation)| &reservation.nodes)
            .collect();
        let parameters = cluster.configuration.select_parameters.as_deref().unwrap_or_default();
        let host = |(name, node): (&String, &Node)| SiteHost {
            name: name.clone(),
            capacity: Resources::cpus(node.cpus)
                .with(Kind::Memory, node.memory.saturating_mul(1024))
                .with(Kind::Gpus, gpus(node.gres.as_deref())),
            usable: node.is_usable() && !elsewhere.contains(name),
            features: node.features.clone(),
            partitions: driven
                .iter()
                .filter(|(_, partition)| partition.nodes.contains(name))
                .map(|(name, _)| (*name).clone())
                .collect(),
        };
        let nodes = cluster.nodes.iter().filter(|(name, _)| names.contains(name));
        let memory = parameters.contains("MEMORY");
        let mut hosts: Vec<SiteHost> = nodes.map(host).collect();
        if !memory {
            hosts.iter_mut().for_each(|host| host.capacity = host.capacity.with(Kind::Memory, 0));
        }
        Site {
            hosts,
            whole: cluster.configuration.select.ends_with("linear")
                || driven.iter().any(|(_, partition)| partition.shares.starts_with("exclusive")),
            memory,
        }
    }

    /// Returns whether jobs have an amount of their own of this kind.
    pub(crate) fn hosts_account(&self, kind: Kind) -> bool {
        kind != Kind::Memory || self.memory
    }

    /// Returns the names of the nodes, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| host.name.as_str())
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Returns the name of a host.
    pub(crate) fn name(&self, host: HostId) -> &str {
        &self.hosts[host.index()].name
    }

    /// Returns the host of that name.
    pub(crate) fn find(&self, name: &str) -> Option<HostId> {
        let at = self.hosts.binary_search_by(|host| host.name.as_str().cmp(name)).ok()?;
        u32::try_from(at).ok().map(HostId)
    }

    /// Returns whether jobs can start on the node of that name.
    pub(crate) fn is_usable(&self, name: &str) -> bool {
        self.find(name).is_some_and(|host| self.hosts[host.index()].usable)
    }

    /// Returns whether a job has its nodes to itself.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Returns what a host in service has.
    pub(crate) fn capacity(&self, host: HostId) -> Resources {
        let host = &self.hosts[host.index()];
        if host.usable { host.capacity } else { Resources::NONE }
    }

    /// Returns what a host has, in service or not.
    pub(crate) fn equipment(&self, host: HostId) -> Resources {
        self.hosts[host.index()].capacity
    }

    /// Returns the machine, whose hosts have at least what jobs hold there.
    pub(crate) fn machine(&self, held: &[Resources]) -> Machine {
        let host = |(at, host): (u32, &SiteHost)| Host {
            name: host.name.clone(),
            capacity: self.capacity(HostId(at)).most(&held[at as usize]),
        };
        let sharing = if self.whole { Sharing::Whole } else { Sharing::Shared };
        let hosts = (0..).zip(&self.hosts).map(host).collect();
        Machine::new(hosts).with_spread(Spread::Any).with_sharing(sharing)
    }

    /// Returns what a job requests of the machine, all of its nodes together.
    pub(crate) fn demand(&self, job: &Job, form: &Detail) -> Resources {
        let largest = self.hosts.iter().map(|host| host.capacity.cpus_count().get()).max().unwrap_or(1);
        let nodes = form.least_nodes.max(1);
        // A job that has nodes to itself has all of their processors.
        let alone = if self.whole || form.exclusive { nodes.saturating_mul(largest) } else { 0 };
        let cpus = job.cpus.max(alone).max(1);
        let memory = match job.memory {
            Some(Amount::PerNode(memory)) => memory.saturating_mul(nodes),
            Some(Amount::PerCpu(memory)) => memory.saturating_mul(job.cpus.max(1)),
            // Without a request, it has all memory of its nodes.
            None => {
                let most = self.hosts.iter().map(|host| host.capacity.get(Kind::Memory) / 1024).max();
                most.unwrap_or(0).saturating_mul(nodes)
            }
        };
        let memory = if self.memory { memory.saturating_mul(1024) } else { 0 };
        let gpus = gpus(form.gres_per_node.as_deref()).saturating_mul(nodes);
        Resources::cpus(cpus).with(Kind::Memory, memory).with(Kind::Gpus, gpus)
    }

    /// Returns the hosts on which a job may run, whatever runs there now.
    pub(crate) fn allowed(&self, job: &Job, form: &Detail) -> Vec<HostId> {
        let features: Vec<&str> =
            form.features.as_deref().into_iter().flat_map(|list| list.split('&')).collect();
        let is_allowed = |host: &SiteHost| {
            host.usable
                && host.partitions.iter().any(|partition| job.partitions.contains(partition))
                && !form.not_nodes.contains(&host.name)
                && features
                    .iter()
                    .all(|feature| host.features.iter().any(|has| has == &feature.to_lowercase()))
        };
        (0..).zip(&self.hosts).filter(|(_, host)| is_allowed(host)).map(|(at, _)| HostId(at)).collect()
    }
}

/// Returns the number of GPUs in a list such as `gpu:a100:4(S:0),nvme:1` or `gres:gpu:2`.
pub(crate) fn gpus(list: Option<&str>) -> u64 {
    let count = |item: &str| {
        let item = item.split('(').next().unwrap_or_default();
        let item = item.strip_prefix("gres:").or_else(|| item.strip_prefix("gres/")).unwrap_or(item);
        let rest = item.strip_prefix("gpu")?;
        let last = rest.rsplit([':', '=']).next().unwrap_or_default();
        Some(last.parse::<u64>().unwrap_or(1))
    };
    list.unwrap_or_default().split(',').filter_map(|item| count(item.trim())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted() {
        let counts = ["gpu:a100:4(S:0-1),nvme:1", "gres:gpu:2", "gres/gpu=3", "gpu", "nvme:7", ""];
        assert_eq!(counts.map(|list| gpus(Some(list))), [4, 2, 3, 1, 0, 0]);
        assert_eq!(gpus(None), 0);
    }
}
