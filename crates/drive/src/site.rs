//! The nodes that the policy schedules, as a machine.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Host, HostId, Kind, Machine, Resources, Sharing, Span, Spread, Time};
use miserly_slurm::{Cluster, Detail, Job, Limit, Node, NodeNeeds, Partition, Reservation};

use crate::instant::instant;

/// The nodes of the driven partitions. Its hosts are in the order of the names, with numbers in them as numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Site {
    hosts: Vec<SiteHost>,
    by_name: BTreeMap<String, HostId>,
    /// The hosts of each partition, in service or not.
    by_partition: BTreeMap<String, Vec<HostId>>,
    /// The resources of the nodes, in service or not, without repetitions, each with its number.
    sizes: Vec<(Resources, u64)>,
    /// Whether each job has its nodes to itself.
    whole: bool,
    /// The partitions with jobs that have their nodes to themselves.
    whole_partitions: BTreeSet<String>,
    /// Whether jobs have memory of their own.
    memory: bool,
    /// The processors of a core, where jobs have whole cores.
    granule: u64,
    /// The processors of a core.
    threads: u64,
    /// Whether each job runs on one node, as its policy demands.
    one_node: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct SiteHost {
    name: String,
    /// The resources for jobs.
    capacity: Resources,
    usable: bool,
    /// Its features and generic resources.
    kind: Node,
    /// The next begin of a reservation of others.
    taken_from: Option<Time>,
}

impl Site {
    /// Returns the nodes of these partitions. Nodes in reservations other than `own` are out of service.
    pub(crate) fn new(cluster: &Cluster, partitions: &BTreeSet<String>, own: &str) -> Site {
        let driven: Vec<(&String, &Partition)> =
            cluster.partitions.iter().filter(|(name, _)| partitions.contains(*name)).collect();
        let names: BTreeSet<&String> = driven.iter().flat_map(|(_, partition)| &partition.nodes).collect();
        let nodes: Vec<(&String, &Node)> =
            cluster.nodes.iter().filter(|(name, _)| names.contains(name)).collect();
        let memory = cluster.configuration.counts_memory();
        let hosts = hosts(cluster, &nodes, own);
        let by_name: BTreeMap<String, HostId> =
            (0..).map(HostId).zip(&hosts).map(|(at, host)| (host.name.clone(), at)).collect();
        let of_partition = |(name, partition): &(&String, &Partition)| {
            let mut on: Vec<HostId> =
                partition.nodes.iter().filter_map(|node| by_name.get(node).copied()).collect();
            on.sort_unstable();
            ((*name).clone(), on)
        };
        let is_whole = |(_, partition): &&(&String, &Partition)| partition.shares.starts_with("exclusive");
        Site {
            by_partition: driven.iter().map(of_partition).collect(),
            by_name,
            sizes: sizes(&hosts),
            hosts,
            whole: cluster.configuration.select.ends_with("linear"),
            whole_partitions: driven.iter().filter(is_whole).map(|(name, _)| (*name).clone()).collect(),
            memory,
            granule: granule(cluster, &nodes),
            threads: threads(&nodes),
            one_node: false,
        }
    }

    /// Returns the same nodes, with at most one for each job or with any number.
    pub(crate) fn of_one_node(self, one_node: bool) -> Site {
        Site { one_node, ..self }
    }

    /// Returns why a job has no place on the site, if each job has a part of one node.
    pub(crate) fn unfit_for_one_node(&self, job: &Job, form: &Detail) -> Option<&'static str> {
        if !self.one_node || self.len() == 1 {
            return None;
        }
        let tasks = job.cpus.div_ceil(form.cpus_per_task.max(1));
        let has_room = form.tasks_per_node == 0 || tasks <= form.tasks_per_node;
        if form.least_nodes > 1 || !has_room {
            return Some("gives each job one node");
        }
        if !form.nodes.is_empty() || self.group(job, form).is_some() {
            return Some("cannot keep a job to some of the nodes");
        }
        (!self.whole && self.is_alone(job, form))
            .then_some("gives no job a node to itself; is its memory set (--mem)?")
    }

    /// Returns the most nodes of a job, if there is a limit.
    pub(crate) fn most_nodes(&self, form: &Detail) -> Option<u64> {
        if self.one_node { Some(1) } else { form.most_nodes }
    }

    /// Returns the number of processors that jobs get at a time.
    pub(crate) fn granule(&self) -> u64 {
        self.granule.max(1)
    }

    /// Returns the processors of a core.
    pub(crate) fn threads(&self) -> u64 {
        self.threads.max(1)
    }

    /// Returns whether jobs have an amount of their own of this kind.
    pub(crate) fn hosts_account(&self, kind: Kind) -> bool {
        kind != Kind::Memory || self.memory
    }

    /// Returns the names of the nodes, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().map(|host| host.name.as_str())
    }

    /// Returns the different sizes of nodes, in service or not, each with its number.
    pub(crate) fn sizes(&self) -> &[(Resources, u64)] {
        &self.sizes
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
        self.by_name.get(name).copied()
    }

    /// Returns whether jobs can start on the node of that name.
    pub(crate) fn is_usable(&self, name: &str) -> bool {
        self.find(name).is_some_and(|host| self.hosts[host.index()].usable)
    }

    /// Returns whether a job has its nodes to itself: it asks for that, one of its partitions gives whole nodes, or it has all
    /// memory of its nodes. No other job starts beside that one, since every job has some memory.
    pub(crate) fn is_alone(&self, job: &Job, detail: &Detail) -> bool {
        self.whole
            || detail.exclusive
            || self.memory && job.memory.is_none()
            || job.partitions.iter().any(|partition| self.whole_partitions.contains(partition))
    }

    /// Returns the resources of a host; none if it is out of service.
    pub(crate) fn capacity(&self, host: HostId) -> Resources {
        let host = &self.hosts[host.index()];
        if host.usable { host.capacity } else { Resources::NONE }
    }

    /// Returns the resources of a host, in service or not.
    pub(crate) fn equipment(&self, host: HostId) -> Resources {
        self.hosts[host.index()].capacity
    }

    /// Returns the machine. A host has at least the holdings of its jobs.
    pub(crate) fn machine(&self, held: &[Resources]) -> Machine {
        let host = |(at, host): (u32, &SiteHost)| Host {
            name: host.name.clone(),
            capacity: self.capacity(HostId(at)).most(&held[at as usize]),
        };
        let sharing = if self.whole { Sharing::Whole } else { Sharing::Shared };
        let hosts: Vec<Host> = (0..).zip(&self.hosts).map(host).collect();
        // On one host no amount is in parts.
        let spread = if self.one_node || hosts.len() == 1 { Spread::One } else { Spread::Any };
        Machine::new(hosts).with_spread(spread).with_sharing(sharing)
    }

    /// Returns the hosts on which a job may start now, whatever runs there. It ends before a reservation of others.
    pub(crate) fn allowed(&self, job: &Job, form: &Detail, now: Time) -> Vec<HostId> {
        let end = match job.limit {
            Limit::Unlimited => Time::MAX,
            Limit::Seconds(seconds) => {
                let limit = i64::try_from(seconds).ok().and_then(Span::from_secs);
                now + limit.unwrap_or(Span::MAX)
            }
        };
        let mut hosts = self.of_kind(job, form);
        hosts.retain(|host| {
            let host = &self.hosts[host.index()];
            host.usable && host.taken_from.is_none_or(|begin| end <= begin)
        });
        hosts
    }

    /// Returns the hosts of the kind that a job asks for, in service or not: of its partitions, with its features and types of GPUs, and
    /// none of those that it excludes.
    fn of_kind(&self, job: &Job, form: &Detail) -> Vec<HostId> {
        let lists = job.partitions.iter().filter_map(|partition| self.by_partition.get(partition));
        let mut hosts: Vec<HostId> = lists.flatten().copied().collect();
        if job.partitions.len() > 1 {
            hosts.sort_unstable();
            hosts.dedup();
        }
        // The job may have others beside the nodes that it must have.
        let needs = NodeNeeds { nodes: vec![], ..form.needs(job) };
        hosts.retain(|host| {
            let host = &self.hosts[host.index()];
            needs.admit(&host.name, &host.kind)
        });
        hosts
    }

    /// Returns the only hosts on which a job may be planned, in service or not; `None` if it may be planned on all.
    pub(crate) fn group(&self, job: &Job, form: &Detail) -> Option<Vec<HostId>> {
        let is_whole = |name: &String| self.by_partition.get(name).is_some_and(|on| on.len() == self.len());
        let is_plain = form.needs(job) == NodeNeeds::default();
        if is_plain && job.partitions.iter().any(is_whole) {
            return None;
        }
        let names_all = form.most_nodes.is_some_and(|most| most <= form.nodes.len() as u64);
        let mut hosts = self.of_kind(job, form);
        if names_all {
            hosts.retain(|host| form.nodes.iter().any(|name| name == self.name(*host)));
        }
        (hosts.len() < self.len()).then_some(hosts)
    }
}

/// Returns the hosts of these nodes, in order. Nodes in reservations other than `own` are out of service.
fn hosts(cluster: &Cluster, nodes: &[(&String, &Node)], own: &str) -> Vec<SiteHost> {
    let now = instant(cluster.configuration.now);
    let others: Vec<&Reservation> =
        cluster.reservations.iter().filter(|(name, _)| *name != own).map(|(_, other)| other).collect();
    let is_active = |other: &&&Reservation| instant(other.begin) <= now && now < instant(other.end);
    let held: BTreeSet<&String> = others.iter().filter(is_active).flat_map(|other| &other.nodes).collect();
    let begins = |name: &String| {
        let later = others.iter().filter(|other| other.nodes.contains(name));
        later.map(|other| instant(other.begin)).filter(|begin| *begin > now).min()
    };
    let memory = |node: &Node| {
        if cluster.configuration.counts_memory() { node.memory.saturating_mul(1024) } else { 0 }
    };
    let host = |(name, node): &(&String, &Node)| SiteHost {
        name: (*name).clone(),
        capacity: Resources::cpus(node.cpus).with(Kind::Memory, memory(node)).with(Kind::Gpus, node.gpus()),
        usable: node.is_usable() && !held.contains(name),
        kind: Node { features: node.features.clone(), gres: node.gres.clone(), ..Node::default() },
        taken_from: begins(name),
    };
    let mut hosts: Vec<SiteHost> = nodes.iter().map(host).collect();
    // Slurm fills the nodes of a job in this order.
    hosts.sort_by_cached_key(|host| natural(&host.name));
    hosts
}

/// Returns the processors that jobs get at a time.
fn granule(cluster: &Cluster, nodes: &[(&String, &Node)]) -> u64 {
    let parameters = cluster.configuration.select_parameters.as_deref().unwrap_or_default();
    let whole_cores = parameters.contains("CR_CORE") || parameters.contains("CR_SOCKET");
    if whole_cores { threads(nodes) } else { 1 }
}

/// Returns the processors of a core.
fn threads(nodes: &[(&String, &Node)]) -> u64 {
    nodes.iter().map(|(_, node)| node.threads).max().unwrap_or(1).max(1)
}

/// Returns the different sizes of hosts, each with its number.
fn sizes(hosts: &[SiteHost]) -> Vec<(Resources, u64)> {
    let mut sizes: Vec<(Resources, u64)> = vec![];
    for host in hosts {
        match sizes.iter_mut().find(|(size, _)| *size == host.capacity) {
            Some((_, count)) => *count += 1,
            None => sizes.push((host.capacity, 1)),
        }
    }
    sizes
}

/// Returns a name in parts that sort as people sort them: words and numbers.
fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![];
    let mut rest = name;
    while !rest.is_empty() {
        let word = rest.find(|letter: char| letter.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(word);
        let digits = tail.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(digits);
        parts.push((text.to_owned(), number.parse().unwrap_or(u64::MAX)));
        rest = tail;
    }
    parts
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Returns a cluster of nodes with processors and MiB of memory, in one partition.
    pub(crate) fn cluster(nodes: &[(&str, u64, u64)], parameters: &str) -> Cluster {
        let node = |(name, cpus, memory): &(&str, u64, u64)| {
            let states = vec!["idle".to_owned()];
            ((*name).to_owned(), Node { states, cpus: *cpus, memory: *memory, ..Node::default() })
        };
        let names = nodes.iter().map(|(name, ..)| (*name).to_owned()).collect();
        let batch = Partition { nodes: names, state: "up".to_owned(), ..Partition::default() };
        let mut cluster = Cluster {
            nodes: nodes.iter().map(node).collect(),
            partitions: [("batch".to_owned(), batch)].into(),
            ..Cluster::default()
        };
        cluster.configuration.select_parameters = Some(parameters.to_owned());
        cluster
    }

    /// Returns the site of all nodes of a cluster.
    pub(crate) fn site(cluster: &Cluster) -> Site {
        Site::new(cluster, &["batch".to_owned()].into(), "miserly")
    }

    #[test]
    fn nodes_that_take_no_jobs_have_no_capacity() {
        let mut cluster = cluster(&[("n10", 8, 100), ("n9", 4, 50)], "CR_CORE");
        let reservation = |nodes: &str, begin, end| Reservation {
            nodes: vec![nodes.to_owned()],
            begin,
            end,
            ..Reservation::default()
        };
        cluster.configuration.now = 50;
        cluster.reservations.insert("miserly".into(), reservation("n10", 0, 100));
        cluster.reservations.insert("later".into(), reservation("n10", 60, 100));
        let all = site(&cluster);
        assert_eq!(all.names().collect::<Vec<_>>(), ["n9", "n10"]);
        assert_eq!(all.capacity(HostId(1)), Resources::cpus(8), "memory does not count under CR_CORE");
        cluster.reservations.insert("other".into(), reservation("n10", 0, 100));
        cluster.nodes.get_mut("n9").unwrap().states.push("drain".to_owned());
        let none = site(&cluster);
        assert_ne!(none, all);
        assert_eq!(none.capacity(HostId(1)), Resources::NONE, "another reservation has it");
        assert!(!none.is_usable("n9") && !none.is_usable("n8"));
        let held = [Resources::cpus(3), Resources::NONE];
        assert_eq!(none.machine(&held).host(HostId(0)).capacity, Resources::cpus(3));
    }

    #[test]
    fn names_are_sorted_as_people_do() {
        let mut names = ["n10", "n9", "gpu", "n2b1", "n2a7", "n2"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["gpu", "n2", "n2a7", "n2b1", "n9", "n10"]);
    }
}
