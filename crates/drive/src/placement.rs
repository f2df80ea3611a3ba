//! The nodes for a job of a certain form.
//!
//! The policy plans a job in the form of [`planned`](crate::site::Site::planned). A job may ask for more: some of its
//! nodes by name, an uneven spread. The placement of the policy is taken if it has all this. Otherwise other nodes are sought.

use miserly_core::{HostId, Kind, Pes, Placement, Resources, Share, SlotId, Time};
use miserly_slurm::{Amount, Detail, Job, gpus};

use crate::site::Site;

/// The needs of a job on each of its nodes.
pub(crate) struct NodeNeeds {
    /// The least processors, in whole units.
    pub(crate) cpus: u64,
    /// The most processors; no limit if the number is free.
    most: u64,
    /// Processors come in multiples of this: whole cores and whole tasks.
    pub(crate) unit: u64,
    /// Memory on each node, kB.
    pub(crate) memory: u64,
    /// Memory for each processor, kB.
    pub(crate) memory_per_cpu: u64,
    pub(crate) gpus: u64,
}

impl NodeNeeds {
    pub(crate) fn new(site: &Site, job: &Job, form: &Detail) -> NodeNeeds {
        let least = form.least_cpus.max(1);
        let unit = site.unit(form);
        let accounted = site.hosts_account(Kind::Memory);
        let [memory, memory_per_cpu] = match form.memory_of(job) {
            _ if !accounted => [0, 0],
            Some(Amount::PerNode(memory)) => [memory.saturating_mul(1024), 0],
            Some(Amount::PerCpu(memory)) => [0, memory.saturating_mul(1024)],
            // It has its nodes to itself.
            None => [0, 0],
        };
        NodeNeeds {
            cpus: least.next_multiple_of(unit),
            most: if form.tasks_per_node > 0 { least.next_multiple_of(unit) } else { u64::MAX },
            unit,
            memory,
            memory_per_cpu,
            gpus: form.gres_per_node.as_deref().map_or(0, gpus),
        }
    }

    /// Returns the most processors of the job that fit on a host with this room; none if the least do not.
    fn room(&self, free: &Resources) -> Option<u64> {
        let left = free.get(Kind::Memory).checked_sub(self.memory)?;
        let by_memory = left.checked_div(self.memory_per_cpu).unwrap_or(u64::MAX);
        let cpus = free.cpus_count().get().min(by_memory).min(self.most);
        let cpus = cpus - cpus % self.unit;
        (cpus >= self.cpus && free.get(Kind::Gpus) >= self.gpus).then_some(cpus)
    }

    /// Returns the amount on a node with this number of processors.
    pub(crate) fn amount(&self, cpus: u64) -> Resources {
        let memory = self.memory.saturating_add(self.memory_per_cpu.saturating_mul(cpus));
        Resources::cpus(cpus).with(Kind::Memory, memory).with(Kind::Gpus, self.gpus)
    }

    /// Returns the share of a host with this number of processors.
    fn share(&self, host: HostId, cpus: u64) -> Share {
        Share { host, amount: self.amount(cpus), pes: Pes::Count }
    }
}

/// Returns a placement of the form of the job, on hosts with these free resources. That of the policy is preferred.
pub(crate) fn find_placement(
    site: &Site,
    now: Time,
    job: &Job,
    form: &Detail,
    free: &[Resources],
    wanted: &Placement,
) -> Option<Placement> {
    let needs = NodeNeeds::new(site, job, form);
    let alone = site.is_alone(job, form);
    let room = |host: HostId| {
        let room = &free[host.index()];
        if alone && *room != site.equipment(host) { None } else { needs.room(room) }
    };
    let is_wanted = |host: HostId| wanted.shares().iter().any(|share| share.host == host);
    let is_required = |host: HostId| form.nodes.iter().any(|name| name == site.name(host));
    let mut hosts: Vec<(HostId, u64)> =
        site.allowed(job, form, now).into_iter().filter_map(|host| Some((host, room(host)?))).collect();
    let required = hosts.iter().filter(|(host, _)| is_required(*host)).count();
    if required < form.nodes.len() {
        return None;
    }
    // The nodes that the job must have come first, and then those of the policy.
    hosts.sort_by_cached_key(|(host, room)| {
        (!is_required(*host), !is_wanted(*host), std::cmp::Reverse(*room), *host)
    });
    let (least, most) = node_counts(site, form, hosts.len(), required)?;
    let need = job.cpus.max(1).next_multiple_of(needs.unit);
    // As many as the policy chose, if that is of the form; else as few as possible.
    let wanted = Some(wanted.shares().len()).filter(|count| (least..=most).contains(count));
    let chosen =
        wanted.into_iter().chain(least..=most).find_map(|count| choose(&hosts, required, count, need))?;
    Some(placement(site, &needs, chosen, need, alone))
}

/// Returns the least and the most nodes of a job that must have some of these hosts.
fn node_counts(site: &Site, form: &Detail, hosts: usize, required: usize) -> Option<(usize, usize)> {
    let least = usize::try_from(form.least_nodes.max(1)).ok()?.max(required);
    let most = site.most_nodes(form).and_then(|most| usize::try_from(most).ok());
    Some((least, most.unwrap_or(hosts).min(hosts)))
}

/// Returns the placement of a job on the hosts of this one, as Slurm fills them if so much is free.
pub(crate) fn fill(
    site: &Site,
    job: &Job,
    form: &Detail,
    free: &[Resources],
    place: &Placement,
) -> Option<Placement> {
    let needs = NodeNeeds::new(site, job, form);
    let alone = site.is_alone(job, form);
    let need = job.cpus.max(1).next_multiple_of(needs.unit);
    let room = |share: &Share| {
        let free = &free[share.host.index()];
        let room = if alone { needs.room(&site.equipment(share.host)) } else { needs.room(free) };
        Some((share.host, room?))
    };
    let hosts: Option<Vec<(HostId, u64)>> = place.shares().iter().map(room).collect();
    Some(placement(site, &needs, hosts?, need, alone))
}

/// Returns `count` hosts with enough room, the first ones if they have it. The hosts are in the order of preference.
fn choose(hosts: &[(HostId, u64)], required: usize, count: usize, need: u64) -> Option<Vec<(HostId, u64)>> {
    let enough =
        |chosen: &[(HostId, u64)]| chosen.iter().map(|(_, room)| *room).fold(0, u64::saturating_add) >= need;
    let first = hosts.get(..count)?;
    if enough(first) {
        return Some(first.to_vec());
    }
    // Those with the most room, beside the required ones.
    let (must, rest) = hosts.split_at(required);
    let mut rest = rest.to_vec();
    rest.sort_by_key(|(host, room)| (std::cmp::Reverse(*room), *host));
    let chosen: Vec<_> = must.iter().copied().chain(rest).take(count).collect();
    enough(&chosen).then_some(chosen)
}

/// Returns the placement of `need` processors on these hosts, each with its least.
///
/// The first node has as many as fit, as Slurm does it.
fn placement(
    site: &Site,
    needs: &NodeNeeds,
    mut hosts: Vec<(HostId, u64)>,
    need: u64,
    alone: bool,
) -> Placement {
    hosts.sort_unstable();
    let each = needs.cpus;
    let mut left = need.saturating_sub(each.saturating_mul(hosts.len() as u64));
    let share = |(host, room): &(HostId, u64)| {
        if alone {
            return Share { host: *host, amount: site.equipment(*host), pes: Pes::Count };
        }
        let more = left.min(room - each);
        left -= more;
        needs.share(*host, each + more)
    };
    Placement::across(SlotId(0), hosts.iter().map(share).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::{cluster, site};

    /// Returns the shares of a job with these free processors on each of four nodes, as `node:cpus`.
    fn placed(free: [u64; 4], cpus: u64, form: &Detail, wanted: &[(u32, u64)]) -> Option<String> {
        let cluster = cluster(&[("n1", 8, 800), ("n2", 8, 800), ("n3", 8, 800), ("n4", 8, 800)], "CR_CORE");
        let site = site(&cluster);
        let job = Job { cpus, partitions: vec!["batch".into()], ..Job::default() };
        let share = |(host, cpus): &(u32, u64)| Share {
            host: HostId(*host),
            amount: Resources::cpus(*cpus),
            pes: Pes::Count,
        };
        let wanted = Placement::across(SlotId(0), wanted.iter().map(share).collect());
        let free = free.map(Resources::cpus);
        let found = find_placement(&site, Time::ZERO, &job, form, &free, &wanted)?;
        let text = |share: &Share| format!("{}:{}", site.name(share.host), share.amount.cpus_count());
        Some(found.shares().iter().map(text).collect::<Vec<_>>().join(" "))
    }

    fn form(least: u64, most: Option<u64>) -> Detail {
        Detail { least_nodes: least, most_nodes: most, least_cpus: 1, ..Detail::default() }
    }

    #[test]
    fn the_nodes_of_the_policy_are_taken_if_they_are_of_the_form() {
        let any = form(1, None);
        assert_eq!(placed([8, 8, 3, 8], 5, &any, &[(2, 3), (3, 2)]).unwrap(), "n3:3 n4:2");
        // One node is asked for, and the policy has two.
        assert_eq!(placed([8, 4, 3, 8], 5, &form(1, Some(1)), &[(2, 3), (3, 2)]).unwrap(), "n4:5");
        // Two are asked for, and the policy has one. The first one has all but one of each other.
        assert_eq!(placed([8, 4, 3, 8], 5, &form(2, Some(2)), &[(0, 5)]).unwrap(), "n1:4 n4:1");
        assert_eq!(placed([0, 4, 3, 0], 8, &any, &[(1, 4)]), None);
        assert_eq!(placed([8, 0, 0, 0], 5, &form(2, Some(2)), &[(0, 5)]), None);
    }

    #[test]
    fn nodes_by_name_by_tasks_and_alone() {
        let tasks = Detail { least_cpus: 3, tasks_per_node: 3, ..form(2, Some(2)) };
        assert_eq!(placed([8, 2, 3, 8], 6, &tasks, &[(0, 6)]).unwrap(), "n1:3 n3:3");
        let named = Detail { nodes: vec!["n2".into()], ..form(1, None) };
        assert_eq!(placed([8, 2, 3, 8], 4, &named, &[(0, 4)]).unwrap(), "n1:3 n2:1");
        assert_eq!(placed([8, 0, 3, 8], 4, &named, &[(0, 4)]), None);
        let without = Detail { not_nodes: vec!["n1".into()], ..form(1, Some(1)) };
        assert_eq!(placed([8, 2, 3, 5], 4, &without, &[(0, 4)]).unwrap(), "n4:4");
        let pairs = Detail { cpus_per_task: 4, ..form(1, None) };
        assert_eq!(placed([7, 5, 0, 0], 12, &pairs, &[(0, 7)]), None, "two tasks of three fit");
        assert_eq!(placed([8, 5, 0, 0], 12, &pairs, &[(0, 8)]).unwrap(), "n1:8 n2:4");
        let alone = Detail { exclusive: true, ..form(1, Some(1)) };
        assert_eq!(placed([7, 7, 8, 7], 2, &alone, &[(0, 2)]).unwrap(), "n3:8");
    }

    #[test]
    fn an_odd_number_of_tasks_on_a_node_has_whole_cores() {
        let mut cluster = cluster(&[("n1", 8, 800), ("n2", 8, 800)], "CR_CORE");
        cluster.nodes.values_mut().for_each(|node| node.threads = 2);
        let site = site(&cluster);
        let job = Job { cpus: 6, partitions: vec!["batch".into()], ..Job::default() };
        let tasks = Detail { least_cpus: 3, tasks_per_node: 3, ..form(2, Some(2)) };
        let nowhere = Placement::across(SlotId(0), vec![]);
        let free = [Resources::cpus(8), Resources::cpus(4)];
        let found = find_placement(&site, Time::ZERO, &job, &tasks, &free, &nowhere)
            .expect("two cores of each node are free");
        assert_eq!(found.shares().iter().map(|share| share.amount.cpus_count().get()).sum::<u64>(), 8);
    }

    #[test]
    fn slurm_fills_the_first_node_with_what_is_free() {
        let cluster = cluster(&[("n1", 8, 0), ("n2", 8, 0)], "CR_CPU");
        let site = site(&cluster);
        let job = Job { cpus: 10, partitions: vec!["batch".into()], ..Job::default() };
        let both = Placement::across(
            SlotId(0),
            [0, 1]
                .map(|host| Share { host: HostId(host), amount: Resources::cpus(5), pes: Pes::Count })
                .into(),
        );
        let on = |first: u64, second: u64| {
            let free = [first, second].map(Resources::cpus);
            let found = fill(&site, &job, &form(1, None), &free, &both).unwrap();
            found.shares().iter().map(|share| share.amount.cpus_count().get()).collect::<Vec<_>>()
        };
        assert_eq!([on(8, 8), on(6, 8), on(5, 5)], [[8, 2], [6, 4], [5, 5]]);
    }

    #[test]
    fn a_job_with_all_memory_of_its_node_has_the_node() {
        let cluster = cluster(&[("n1", 8, 800), ("n2", 8, 800)], "CR_CPU_MEMORY");
        let site = site(&cluster);
        let node = site.equipment(HostId(1));
        let job = Job { cpus: 2, partitions: vec!["batch".into()], ..Job::default() };
        let wanted = Placement::on(HostId(0), Resources::cpus(2));
        let found =
            |free: [Resources; 2]| find_placement(&site, Time::ZERO, &job, &form(1, None), &free, &wanted);
        let busy = node.less(&Resources::cpus(1));
        assert_eq!(found([busy, node]), Some(Placement::on(HostId(1), node)));
        assert_eq!(found([busy, busy]), None);
    }
}
