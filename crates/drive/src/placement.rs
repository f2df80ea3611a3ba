//! The nodes for a job of a certain form.
//!
//! The policy plans a job in the form of [`planned`](crate::site::Site::planned). A job may ask for more: some of its
//! nodes by name, an uneven spread. The placement of the policy is taken if it has all this. Otherwise other nodes are sought.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{HostId, Kind, Pes, Placement, Resources, Share, SlotId, Time};
use miserly_slurm::{Amount, Detail, Job, gpus};

use crate::scheduler::fits;
use crate::site::Site;

/// The most hosts on which a job is tried that may have any number.
const MOST_NODES_TRIED: usize = 4;

/// The most hosts that are tried as the last one of a job.
const MOST_LAST_TRIED: usize = 16;

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
        let has_memory = free.get(Kind::Memory) >= self.memory;
        let cpus = self.free_cpus(free);
        let cpus = cpus - cpus % self.unit;
        (has_memory && cpus >= self.cpus && free.get(Kind::Gpus) >= self.gpus).then_some(cpus)
    }

    /// Returns the processors of a host with this room that the job could use, whole tasks or not.
    fn free_cpus(&self, free: &Resources) -> u64 {
        let left = free.get(Kind::Memory).saturating_sub(self.memory);
        let by_memory = left.checked_div(self.memory_per_cpu).unwrap_or(u64::MAX);
        free.cpus_count().get().min(by_memory).min(self.most)
    }

    /// Returns the processors on each node as Slurm gives whole tasks to nodes with these available processors: one to each node, and
    /// further ones in turn. Where no whole task has room any more, Slurm gives the rest too few processors.
    fn tasks(&self, need: u64, available: &[u64]) -> Vec<u64> {
        let mut given: Vec<u64> = available.iter().map(|cpus| self.cpus.min(*cpus)).collect();
        let mut left = need.saturating_sub(self.cpus.saturating_mul(available.len() as u64));
        let mut is_full = false;
        while left > 0 && !given.is_empty() {
            let before = left;
            for (given, available) in given.iter_mut().zip(available) {
                let more = self.unit.min(available - *given);
                if left > 0 && (is_full || more == self.unit) {
                    *given += more;
                    left = left.saturating_sub(self.unit);
                }
            }
            is_full = left == before;
        }
        given
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

/// The place of a job, as Slurm spreads it.
///
/// Slurm takes no number of processors for a node. It fills the nodes that a job must have in their order, and then the others. So at most
/// one node has more free processors than the job gets there, and the driver chooses that node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) place: Placement,
    /// The host that is filled last, if that is not the last one in their order.
    pub(crate) last: Option<HostId>,
}

/// A job that is to be spread over nodes.
struct Filling<'a> {
    site: &'a Site,
    job: &'a Job,
    form: &'a Detail,
    needs: NodeNeeds,
    /// All processors of the job, in whole units.
    need: u64,
    /// Whether it has its nodes to itself.
    alone: bool,
    free: &'a [Resources],
}

impl<'a> Filling<'a> {
    fn new(site: &'a Site, job: &'a Job, form: &'a Detail, free: &'a [Resources]) -> Filling<'a> {
        let needs = NodeNeeds::new(site, job, form);
        let need = job.cpus.max(1).next_multiple_of(needs.unit);
        Filling { site, job, form, needs, need, alone: site.is_alone(job, form), free }
    }

    /// Returns the hosts on which a part of the job has room, each with the processors there, and the number of those that the job must
    /// have, if all of them are there. These come first, and then those of the policy.
    fn hosts(
        &self,
        now: Time,
        room: &[Resources],
        wanted: &Placement,
    ) -> Option<(Vec<(HostId, u64)>, usize)> {
        let room = |host: HostId| {
            let room = &room[host.index()];
            if self.alone && *room != self.site.equipment(host) { None } else { self.needs.room(room) }
        };
        let of_policy: BTreeSet<HostId> = wanted.shares().iter().map(|share| share.host).collect();
        let named: BTreeSet<&str> = self.form.nodes.iter().map(String::as_str).collect();
        let is_wanted = |host: HostId| of_policy.contains(&host);
        let is_required = |host: HostId| named.contains(self.site.name(host));
        let allowed = self.site.allowed(self.job, self.form, now).into_iter();
        let mut hosts: Vec<(HostId, u64)> = allowed.filter_map(|host| Some((host, room(host)?))).collect();
        hosts.sort_by_cached_key(|(host, room)| {
            (!is_required(*host), !is_wanted(*host), std::cmp::Reverse(*room), *host)
        });
        let required = hosts.iter().filter(|(host, _)| is_required(*host)).count();
        (required >= self.form.nodes.len()).then_some((hosts, required))
    }

    /// Returns whether the job has all of its processors.
    fn is_whole(&self, spread: &Spread) -> bool {
        spread.place.total().cpus_count().get() >= self.need
    }

    /// Returns places that the job may have on these hosts: first without a choice of the last one, and then with some hosts of which it
    /// has not all free processors in the wanted place.
    fn spreads(&self, mut hosts: Vec<HostId>, wanted: &Placement) -> impl Iterator<Item = Spread> {
        hosts.sort_unstable();
        let of_policy: BTreeMap<HostId, u64> =
            wanted.shares().iter().map(|share| (share.host, share.amount.cpus_count().get())).collect();
        let is_full = |host: &HostId| {
            of_policy.get(host).is_some_and(|cpus| *cpus >= self.needs.free_cpus(&self.free[host.index()]))
        };
        let mut lasts: Vec<HostId> = hosts.iter().rev().skip(1).copied().collect();
        lasts.sort_by_key(is_full);
        lasts.truncate(MOST_LAST_TRIED);
        [None].into_iter().chain(lasts.into_iter().map(Some)).map(move |last| self.spread(&hosts, last))
    }

    /// Returns the place of the job on these hosts, which are in their order. `last` is filled last.
    fn spread(&self, hosts: &[HostId], last: Option<HostId>) -> Spread {
        let last = last.filter(|last| hosts.last() != Some(last));
        let share = |(host, cpus): (&HostId, u64)| {
            if self.alone {
                return Share { host: *host, amount: self.site.equipment(*host), pes: Pes::Count };
            }
            self.needs.share(*host, cpus)
        };
        let each = if self.alone {
            vec![0; hosts.len()]
        } else {
            self.needs.tasks(self.need, &self.available(hosts, last))
        };
        Spread { place: Placement::across(SlotId(0), hosts.iter().zip(each).map(share).collect()), last }
    }

    /// Returns the processors on each of these hosts that Slurm makes available to the job: all that are free, except for one core of each
    /// node that follows.
    fn available(&self, hosts: &[HostId], last: Option<HostId>) -> Vec<u64> {
        let mut order: Vec<usize> = (0..hosts.len()).collect();
        order.sort_by_key(|at| Some(hosts[*at]) == last);
        let mut available = vec![0; hosts.len()];
        let mut left = self.need;
        for (after, at) in (0..hosts.len() as u64).rev().zip(order) {
            let most = left.saturating_sub(after * self.site.threads()).max(self.needs.cpus);
            available[at] = self.needs.free_cpus(&self.free[hosts[at].index()]).min(most);
            left = left.saturating_sub(available[at]);
        }
        available
    }
}

/// Returns a place of the form of the job, on hosts with these free resources, as Slurm spreads the job there. That of the policy is
/// preferred.
///
/// O(c h log h + p) for h hosts, c numbers of hosts that are tried, and p processors of the job. c is 1 where the place of the policy is of
/// the form, and h at most.
pub(crate) fn find_placement(
    site: &Site,
    now: Time,
    job: &Job,
    form: &Detail,
    free: &[Resources],
    wanted: &Placement,
) -> Option<Spread> {
    let filling = Filling::new(site, job, form, free);
    let (hosts, required) = filling.hosts(now, free, wanted)?;
    let (least, most) = node_counts(site, form, hosts.len(), required)?;
    // As many as the policy chose, if that is of the form; else as few as possible.
    let count = Some(wanted.shares().len()).filter(|count| (least..=most).contains(count));
    let chosen = count
        .into_iter()
        .chain(least..=most)
        .find_map(|count| choose(&hosts, required, count, filling.need))?;
    let chosen: Vec<HostId> = chosen.into_iter().map(|(host, _)| host).collect();
    let spreads: Vec<Spread> = filling.spreads(chosen, wanted).collect();
    let as_wanted = spreads.iter().position(|spread| spread.place == *wanted);
    let whole = spreads.iter().position(|spread| filling.is_whole(spread));
    spreads.into_iter().nth(as_wanted.or(whole).unwrap_or(0))
}

/// Returns the places of the form of the job as Slurm spreads it over the `free` resources of hosts, which need no more than `room` on any
/// host. The first ones are on the fewest hosts, and on those of the policy.
pub(crate) fn spreads_within(
    site: &Site,
    now: Time,
    job: &Job,
    form: &Detail,
    (free, room): (&[Resources], &[Resources]),
    wanted: &Placement,
) -> Vec<Spread> {
    let filling = Filling::new(site, job, form, free);
    let Some((mut hosts, required)) = filling.hosts(now, room, wanted) else { return vec![] };
    let Some((least, most)) = node_counts(site, form, hosts.len(), required) else { return vec![] };
    // Slurm fills each node but the last one. A node of which the job may have all that is free is in the way of nothing.
    let is_tight = |host: &HostId| room[host.index()] == free[host.index()];
    hosts[required..].sort_by_key(|(host, _)| !is_tight(host));
    let hosts: Vec<HostId> = hosts.into_iter().map(|(host, _)| host).collect();
    let on = |(count, last): (usize, HostId)| {
        let others = hosts.iter().copied().filter(|host| *host != last);
        let mut chosen: Vec<HostId> = others.take(count - 1).chain([last]).collect();
        chosen.sort_unstable();
        filling.spread(&chosen, Some(last))
    };
    let lasts = || hosts.iter().copied().take(MOST_LAST_TRIED);
    let has_room = |spread: &Spread| filling.is_whole(spread) && fits(&spread.place, room);
    let few = least..=most.min(MOST_NODES_TRIED.max(least));
    let count = wanted.shares().len();
    let of_policy = Some(count).filter(|count| !few.contains(count) && (least..=most).contains(count));
    few.chain(of_policy)
        .flat_map(|count| lasts().map(move |last| (count, last)))
        .filter(|(count, last)| *count > required || hosts[..required].contains(last))
        .map(on)
        .filter(has_room)
        .collect()
}

/// Returns the placement of a job on the hosts of this one, as Slurm fills them in their order if so much is free.
pub(crate) fn fill(
    site: &Site,
    job: &Job,
    form: &Detail,
    free: &[Resources],
    place: &Placement,
) -> Placement {
    let mut hosts: Vec<HostId> = place.shares().iter().map(|share| share.host).collect();
    hosts.sort_unstable();
    Filling::new(site, job, form, free).spread(&hosts, None).place
}

/// Returns the least and the most nodes of a job that must have some of these hosts.
fn node_counts(site: &Site, form: &Detail, hosts: usize, required: usize) -> Option<(usize, usize)> {
    let least = usize::try_from(form.least_nodes.max(1)).ok()?.max(required);
    let most = site.most_nodes(form).and_then(|most| usize::try_from(most).ok());
    Some((least, most.unwrap_or(hosts).min(hosts)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::{cluster, site};

    /// Returns the place of a job with these free processors on each of four nodes, as the policy wants it, as `node:cpus`, and the node that
    /// is filled last.
    fn spread(
        free: [u64; 4],
        cpus: u64,
        form: &Detail,
        wanted: &[(u32, u64)],
    ) -> Option<(String, Option<String>)> {
        let cluster = cluster(&[("n1", 8, 800), ("n2", 8, 800), ("n3", 8, 800), ("n4", 8, 800)], "CR_CORE");
        let site = site(&cluster);
        let job = Job { cpus, partitions: vec!["batch".into()], ..Job::default() };
        let share = |(host, cpus): &(u32, u64)| Share {
            host: HostId(*host),
            amount: Resources::cpus(*cpus),
            pes: Pes::Count,
        };
        let wanted = Placement::across(SlotId(0), wanted.iter().map(share).collect());
        let found = find_placement(&site, Time::ZERO, &job, form, &free.map(Resources::cpus), &wanted)?;
        let text = |share: &Share| format!("{}:{}", site.name(share.host), share.amount.cpus_count());
        let place = found.place.shares().iter().map(text).collect::<Vec<_>>().join(" ");
        Some((place, found.last.map(|host| site.name(host).to_owned())))
    }

    /// Returns that place.
    fn placed(free: [u64; 4], cpus: u64, form: &Detail, wanted: &[(u32, u64)]) -> Option<String> {
        Some(spread(free, cpus, form, wanted)?.0)
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

    /// These are the spreads of Slurm 22.05.8 and 26.05.5.
    #[test]
    fn the_node_that_is_filled_last_is_chosen() {
        let any = form(1, None);
        let check = |free, cpus, form: &Detail, wanted: &[(u32, u64)], place: &str, last: Option<&str>| {
            assert_eq!(
                spread(free, cpus, form, wanted),
                Some((place.to_owned(), last.map(str::to_owned))),
                "{cpus}"
            );
        };
        check([8, 5, 8, 8], 8, &any, &[(0, 3), (1, 5)], "n1:3 n2:5", Some("n1"));
        check([8, 5, 8, 8], 8, &any, &[(0, 7), (1, 1)], "n1:7 n2:1", None);
        check([8, 5, 8, 8], 12, &any, &[(0, 8), (1, 3), (2, 1)], "n1:8 n2:3 n3:1", None);
        check([8, 5, 8, 8], 12, &any, &[(0, 8), (1, 1), (2, 3)], "n1:8 n2:1 n3:3", Some("n2"));
        // Two nodes would have more free than the job wants there.
        check([8, 8, 8, 8], 8, &any, &[(0, 4), (1, 4)], "n1:7 n2:1", None);
        // One task on each node, and the others in turn.
        let pairs = Detail { cpus_per_task: 2, least_cpus: 2, ..form(4, Some(4)) };
        check([8, 5, 8, 7], 14, &pairs, &[], "n1:6 n2:4 n3:2 n4:2", None);
        // In the order of the nodes there would be no room for a third task.
        let triples = Detail { cpus_per_task: 3, least_cpus: 3, ..form(2, Some(2)) };
        check([0, 5, 6, 0], 9, &triples, &[], "n2:3 n3:6", Some("n2"));
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
            .expect("two cores of each node are free")
            .place;
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
            let found = fill(&site, &job, &form(1, None), &free, &both);
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
        let found = |free: [Resources; 2]| {
            Some(find_placement(&site, Time::ZERO, &job, &form(1, None), &free, &wanted)?.place)
        };
        let busy = node.less(&Resources::cpus(1));
        assert_eq!(found([busy, node]), Some(Placement::on(HostId(1), node)));
        assert_eq!(found([busy, busy]), None);
    }
}
