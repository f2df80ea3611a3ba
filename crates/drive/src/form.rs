//! The form in which a job is planned.
//!
//! A job with a number of nodes is planned as equal parts on nodes of their own. Any other job is planned as whole tasks and
//! cores on any nodes. Where Slurm spreads a job unevenly, each part is as large as the largest of an even spread.

use miserly_core::{Form, HostId, Kind, Resources};
use miserly_slurm::{Detail, Job};

use crate::placement::NodeNeeds;
use crate::site::Site;

/// The resources of a job and their form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Planned {
    /// The amount on all of its nodes together.
    pub(crate) amount: Resources,
    pub(crate) form: Form,
}

impl Site {
    /// Returns the resources of a job to be planned, and their form.
    ///
    /// A form that even the idle nodes together do not have is not planned. Then the job is planned on any number of nodes. `group`
    /// has the only hosts on which it may be planned, if it may not be planned on all.
    pub(crate) fn planned(&self, job: &Job, detail: &Detail, group: Option<&[HostId]>) -> Planned {
        let needs = JobNeeds::new(self, job, detail);
        let even = needs.counts().find_map(|nodes| needs.evenly(self, group, nodes));
        let planned = even.unwrap_or_else(|| needs.anywhere());
        match self.sizes() {
            // A form applies to several hosts only.
            [(node, 1)] if needs.alone => Planned { amount: node.most(&planned.amount), form: Form::ANY },
            _ => planned,
        }
    }

    /// Returns the number of processors that a job gets at a time: whole cores and whole tasks.
    pub(crate) fn unit(&self, detail: &Detail) -> u64 {
        detail.cpus_per_task.max(1).next_multiple_of(self.granule())
    }
}

/// The needs of a job for its nodes.
struct JobNeeds {
    /// Those on each of them.
    node: NodeNeeds,
    /// All processors, a multiple of the unit.
    cpus: u64,
    /// Whether each node has the least processors and no more.
    is_exact: bool,
    /// The nodes of the site.
    most_nodes: u64,
    /// The least and the most nodes, if the number of nodes is not free.
    nodes: Option<(u64, u64)>,
    /// The number of nodes for amounts by node.
    least_nodes: u64,
    alone: bool,
}

impl JobNeeds {
    fn new(site: &Site, job: &Job, detail: &Detail) -> JobNeeds {
        let node = NodeNeeds::new(site, job, detail);
        let cpus = job.cpus.max(1).next_multiple_of(node.unit);
        let least_nodes = detail.least_nodes.max(1);
        let is_exact = detail.tasks_per_node > 0;
        let by_tasks = cpus.div_ceil(node.cpus).max(least_nodes);
        // GPUs are by node, so the nodes are parts of their own whatever their number.
        let any_number = (node.gpus > 0).then_some(site.len() as u64);
        let most = site.most_nodes(detail).or(is_exact.then_some(by_tasks)).or(any_number);
        JobNeeds {
            cpus,
            is_exact,
            most_nodes: site.len() as u64,
            nodes: most.map(|most| (if is_exact { by_tasks } else { least_nodes }, most)),
            least_nodes,
            alone: site.is_alone(job, detail),
            node,
        }
    }

    /// Returns the numbers of nodes that the job may have, least first; none if that is free.
    fn counts(&self) -> impl Iterator<Item = u64> + use<> {
        let (least, most) = self.nodes.unwrap_or((1, 0));
        least..=most.min(self.most_nodes)
    }

    /// Returns the job as this number of equal parts on nodes of their own, if the site or the group has such nodes.
    fn evenly(&self, site: &Site, group: Option<&[HostId]>, nodes: u64) -> Option<Planned> {
        let even = if self.is_exact { 0 } else { self.cpus.div_ceil(nodes).next_multiple_of(self.node.unit) };
        let cpus = even.max(self.node.cpus);
        let part = self.node.amount(cpus);
        let fitting: u64 = match group {
            Some(group) => group.iter().filter(|host| part.fits_in(&site.equipment(**host))).count() as u64,
            None => site.sizes().iter().filter(|(size, _)| part.fits_in(size)).map(|(_, count)| count).sum(),
        };
        if fitting < nodes {
            return None;
        }
        let times = |kind| part.get(kind).saturating_mul(nodes);
        let amount = Kind::ALL.into_iter().fold(Resources::NONE, |all, kind| all.with(kind, times(kind)));
        let parts = Form::parts(u32::try_from(nodes).ok()?);
        Some(Planned { amount, form: Form { apart: true, alone: self.alone, ..parts } })
    }

    /// Returns the job as whole tasks and cores on any nodes.
    fn anywhere(&self) -> Planned {
        let NodeNeeds { unit, memory, memory_per_cpu, gpus, .. } = self.node;
        let by_node = memory.saturating_mul(self.least_nodes);
        let memory = by_node.saturating_add(memory_per_cpu.saturating_mul(self.cpus));
        let gpus = gpus.saturating_mul(self.least_nodes);
        let amount = Resources::cpus(self.cpus).with(Kind::Memory, memory).with(Kind::Gpus, gpus);
        // As many parts as processors is the default.
        let parts = if unit > 1 { u32::try_from(self.cpus / unit).unwrap_or(0) } else { 0 };
        Planned { amount, form: Form { alone: self.alone, ..Form::parts(parts) } }
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Request, Span, Time};
    use miserly_slurm::{Amount, Partition};

    use super::*;
    use crate::site::tests::{cluster, site};

    const NODES: [(&str, u64, u64); 4] = [("n1", 8, 100), ("n2", 8, 100), ("n3", 8, 100), ("big", 16, 400)];

    /// Returns the parts of a job of this number of processors and their form: `parts x processors` with the memory of a
    /// part in MiB.
    fn planned(cpus: u64, memory: Option<Amount>, detail: &Detail) -> String {
        let cluster = cluster(&NODES, "CR_CPU_MEMORY");
        let Planned { amount, form } =
            site(&cluster).planned(&Job { cpus, memory, ..Job::default() }, detail, None);
        let parts = form.parts.map_or(amount.cpus_count().get(), |parts| parts.get().into());
        let each = [amount.cpus_count().get() / parts, amount.get(Kind::Memory) / 1024 / parts];
        let words =
            [(form.apart, " apart"), (form.alone, " alone")].map(|(is, word)| if is { word } else { "" });
        format!("{parts} x {} with {}{}", each[0], each[1], words.concat())
    }

    fn nodes(least: u64, most: Option<u64>) -> Detail {
        Detail { least_nodes: least, most_nodes: most, least_cpus: 1, ..Detail::default() }
    }

    const SOME: Option<Amount> = Some(Amount::PerCpu(5));

    #[test]
    fn a_job_is_planned_on_the_nodes_of_its_kind() {
        let mut cluster = cluster(&NODES, "CR_CPU");
        cluster.nodes.get_mut("n1").unwrap().features = vec!["fast".to_owned()];
        for (name, gpus) in [("n2", "gpu:a100:2"), ("big", "gpu:t4:2")] {
            cluster.nodes.get_mut(name).unwrap().gres = Some(gpus.to_owned());
        }
        let small = Partition { nodes: vec!["n3".into(), "n1".into()], ..Partition::default() };
        cluster.partitions.insert("small".into(), small);
        let site = Site::new(&cluster, &["batch".to_owned(), "small".to_owned()].into(), "miserly");
        let group = |partitions: &[&str], detail: &Detail| {
            let partitions = partitions.iter().map(|&name| name.to_owned()).collect();
            let group = site.group(&Job { partitions, ..Job::default() }, detail)?;
            Some(group.iter().map(|host| site.name(*host)).collect::<Vec<_>>().join(" "))
        };
        let one = nodes(1, Some(1));
        assert_eq!(group(&["batch"], &one), None);
        assert_eq!(group(&["small"], &one).as_deref(), Some("n1 n3"));
        assert_eq!(group(&["small", "batch"], &one), None);
        assert_eq!(
            group(&["batch"], &Detail { features: Some("Fast".into()), ..one.clone() }).as_deref(),
            Some("n1")
        );
        assert_eq!(
            group(&["small"], &Detail { not_nodes: vec!["n1".into()], ..one.clone() }).as_deref(),
            Some("n3")
        );
        // Any of the GPUs is of no type.
        for (gpus, on) in [("gres/gpu:a100:1", Some("n2")), ("gres/gpu:1", None)] {
            let of_type = Detail { gres_per_node: Some(gpus.to_owned()), ..one.clone() };
            assert_eq!(group(&["batch"], &of_type).as_deref(), on, "{gpus}");
        }
        let named = Detail { nodes: vec!["n2".into()], ..one.clone() };
        assert_eq!(group(&["batch"], &named).as_deref(), Some("n2"));
        // A second node is free.
        assert_eq!(group(&["batch"], &Detail { most_nodes: Some(2), ..named }), None);
        // Two nodes of 16 are not in the group, so the form is not sought there.
        let planned = |group: &[HostId]| {
            site.planned(&Job { cpus: 16, ..Job::default() }, &nodes(1, Some(2)), Some(group)).form
        };
        let hosts = ["n1", "n3", "big"].map(|name| site.find(name).unwrap());
        assert_eq!(planned(&hosts[..2]), Form { apart: true, ..Form::parts(2) });
        assert_eq!(planned(&hosts), Form { apart: true, ..Form::parts(1) });
    }

    #[test]
    fn a_number_of_nodes_is_that_of_equal_parts() {
        let two = nodes(2, Some(2));
        assert_eq!(planned(12, SOME, &two), "2 x 6 with 30 apart");
        assert_eq!(planned(11, SOME, &two), "2 x 6 with 30 apart");
        assert_eq!(planned(12, Some(Amount::PerNode(40)), &two), "2 x 6 with 40 apart");
        // With all memory of its nodes it is alone there.
        assert_eq!(planned(12, None, &two), "2 x 6 with 0 apart alone");
        let tasks = Detail { least_cpus: 6, tasks_per_node: 6, ..nodes(2, None) };
        assert_eq!(planned(12, SOME, &tasks), "2 x 6 with 30 apart");
        // A range begins with its least number; with the next one where there are no such nodes.
        assert_eq!(planned(12, SOME, &nodes(2, Some(3))), "2 x 6 with 30 apart");
        assert_eq!(planned(24, SOME, &nodes(2, Some(3))), "3 x 8 with 40 apart");
        // Two nodes of different sizes: no equal parts.
        assert_eq!(planned(24, SOME, &two), "24 x 1 with 5");
    }

    #[test]
    fn whole_tasks_and_whole_nodes() {
        let any = nodes(1, None);
        assert_eq!(planned(12, SOME, &any), "12 x 1 with 5");
        assert_eq!(planned(12, SOME, &Detail { cpus_per_task: 4, ..any.clone() }), "3 x 4 with 20");
        let alone = Detail { exclusive: true, ..nodes(2, Some(2)) };
        assert_eq!(planned(2, SOME, &alone), "2 x 1 with 5 apart alone");
        assert_eq!(planned(12, SOME, &Detail { exclusive: true, ..any }), "12 x 1 with 5 alone");
        let gpus = Detail { gres_per_node: Some("gres:gpu:1".into()), ..nodes(2, Some(2)) };
        // No node has a GPU.
        assert_eq!(planned(2, SOME, &gpus), "2 x 1 with 5");
    }

    /// Returns the demand of a job on the machine of its site.
    fn demand(site: &Site, job: &Job, detail: &Detail) -> miserly_core::Demand {
        let Planned { amount, form } = site.planned(job, detail, None);
        let nothing = vec![Resources::NONE; site.len()];
        let request = Request { form, ..Request::new(1, Time::ZERO, Span::TICK, amount) };
        let machine = site.machine(&nothing);
        assert!(machine.could_hold(&request), "{request:?}");
        machine.demand(&request)
    }

    #[test]
    fn gpus_are_by_node_whatever_the_number_of_nodes() {
        let mut cluster = cluster(&NODES, "CR_CPU");
        for node in cluster.nodes.values_mut() {
            node.gres = Some("gpu:1".into());
        }
        let site = site(&cluster);
        let detail = Detail { gres_per_node: Some("gres:gpu:1".into()), ..nodes(1, None) };
        let gpus = |cpus| demand(&site, &Job { cpus, ..Job::default() }, &detail).amount().get(Kind::Gpus);
        assert_eq!([gpus(8), gpus(20)], [1, 3], "a node of 8 processors has 20 as three parts");
    }

    #[test]
    fn a_job_has_the_only_node_whatever_its_amounts() {
        // The memory is no multiple of the processors.
        let mut cluster = cluster(&[("n1", 96, 515_003)], "CR_CPU_MEMORY");
        cluster.nodes.get_mut("n1").unwrap().gres = Some("gpu:1".into());
        let amount = demand(&site(&cluster), &Job { cpus: 2, ..Job::default() }, &nodes(1, None)).amount();
        assert_eq!((amount.cpus_count().get(), amount.get(Kind::Gpus)), (96, 1));
    }

    #[test]
    fn jobs_are_alone_in_their_partition_only() {
        let mut mixed = cluster(&NODES, "CR_CPU");
        let whole = Partition { shares: "exclusive".into(), ..mixed.partitions["batch"].clone() };
        mixed.partitions.insert("whole".into(), whole);
        let site = Site::new(&mixed, &["batch", "whole"].map(str::to_owned).into(), "miserly");
        let is_alone = |partitions: &[&str]| {
            let partitions = partitions.iter().map(|&name| name.to_owned()).collect();
            site.planned(&Job { cpus: 2, partitions, ..Job::default() }, &nodes(2, Some(2)), None).form.alone
        };
        assert_eq!(
            [is_alone(&["batch"]), is_alone(&["whole"]), is_alone(&["batch", "whole"])],
            [false, true, true]
        );
    }

    #[test]
    fn whole_cores_and_a_site_of_one_node() {
        let mut one = cluster(&NODES[..1], "CR_CORE");
        one.nodes.get_mut("n1").unwrap().threads = 2;
        let planned = |detail| site(&one).planned(&Job { cpus: 3, ..Job::default() }, &detail, None);
        assert_eq!(planned(nodes(1, None)), Planned { amount: Resources::cpus(4), form: Form::parts(2) });
        let alone = Detail { exclusive: true, ..nodes(1, Some(1)) };
        assert_eq!(planned(alone), Planned { amount: Resources::cpus(8), form: Form::ANY });
    }
}
