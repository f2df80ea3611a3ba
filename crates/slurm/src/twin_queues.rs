//! The queues of a twin: the partitions of a cluster, each with the qualities of service of its jobs.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{HostGroup, HostId, Machine};
use miserly_import::ImportedLog;
use miserly_workload::swf::Field;

use crate::cluster::{amount, limit};
use crate::preemption::PreemptionKind;
use crate::{Amount, Cluster, Job, Limit, NodeNeeds, Slurm, SlurmError};

/// The jobs of a partition with a quality of service: the same tier, the same part of a priority, the same nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TwinQueue {
    /// The partition.
    pub partition: String,
    /// The quality of service, if it is known.
    pub quality: Option<String>,
}

/// A quality of service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Its name.
    pub name: String,
    /// Its number, which the accounting may have instead.
    pub id: String,
    /// Its priority.
    pub priority: u64,
    /// The limits of its running jobs.
    pub limits: QualityLimits,
    /// The qualities whose jobs its own preempt.
    pub preempts: Vec<String>,
    /// What becomes of its jobs that are preempted, if it is another thing than in the cluster.
    pub preempt_mode: Option<String>,
    /// The seconds that they have then.
    pub grace: u64,
    /// The seconds after a start in which they are not preempted, if it is another time than in the cluster.
    pub exempt: Option<u64>,
}

/// The limits of the running jobs of a quality of service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QualityLimits {
    /// The most jobs, processors, GPUs and MiB of memory, and these for each user, by the names of the parameter `limits` of the policy `slurm`.
    pub known: Vec<(&'static str, u64)>,
    /// The limits that the twin lacks, as Slurm writes them.
    pub others: Vec<String>,
}

/// The queues of a twin, by their numbers in a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TwinQueues(BTreeMap<u32, TwinQueue>);

impl TwinQueues {
    /// Returns the queues of the jobs of a log, and writes their numbers into it. Those of the jobs of the cluster are there too.
    ///
    /// The log has the partitions as queues, and the qualities of service as partitions of the format.
    pub fn number(log: &mut ImportedLog, cluster: &Cluster, known: &[Quality]) -> TwinQueues {
        let [partitions, qualities] = ["; Queue: ", "; Partition: "].map(|start| names(log, start));
        let name = |said: &String| {
            let said = said.strip_prefix("QOS ").unwrap_or(said);
            known.iter().find(|quality| quality.id == said).map_or(said, |quality| &quality.name).to_owned()
        };
        let mut numbers: BTreeMap<TwinQueue, u32> = BTreeMap::new();
        let mut number_of = |queue: TwinQueue| {
            let next = u32::try_from(numbers.len() + 1).unwrap_or(u32::MAX);
            *numbers.entry(queue).or_insert(next)
        };
        for record in &mut log.records {
            let Some(partition) = partitions.get(&record.get(Field::Queue)).cloned() else { continue };
            let quality = qualities.get(&record.get(Field::Partition)).map(name);
            record.set(Field::Queue, number_of(TwinQueue { partition, quality }).into());
        }
        for queue in cluster.jobs.values().filter_map(queue_of) {
            number_of(queue);
        }
        log.comments.retain(|line| !line.starts_with("; Queue: "));
        TwinQueues(numbers.into_iter().map(|(queue, number)| (number, queue)).collect())
    }

    #[cfg(test)]
    pub(crate) fn with_numbers(queues: impl IntoIterator<Item = (u32, TwinQueue)>) -> TwinQueues {
        TwinQueues(queues.into_iter().collect())
    }

    /// Returns the number of the queue of a job.
    pub fn number_of(&self, job: &Job) -> Option<u32> {
        let queue = queue_of(job)?;
        self.iter().find(|(_, known)| **known == queue).map(|(number, _)| number)
    }

    /// Returns the queues with their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &TwinQueue)> {
        self.0.iter().map(|(number, queue)| (*number, queue))
    }

    /// Returns the kinds of their jobs for preemption.
    pub(crate) fn preemption_kinds(&self) -> BTreeMap<u32, PreemptionKind> {
        let kind = |(number, queue): (u32, &TwinQueue)| {
            let TwinQueue { partition, quality } = queue.clone();
            (number, PreemptionKind { partition, quality, is_bound: false })
        };
        self.iter().map(kind).collect()
    }

    /// Returns the machine with a group of hosts for each kind of nodes that is not the whole machine, and the group of each queue with
    /// each of these needs.
    pub fn groups(
        &self,
        cluster: &Cluster,
        machine: Machine,
        needs: &BTreeSet<(u32, NodeNeeds)>,
    ) -> (Machine, BTreeMap<(u32, NodeNeeds), HostGroup>) {
        let plain = self.iter().map(|(number, _)| (number, NodeNeeds::default()));
        let all: BTreeSet<(u32, NodeNeeds)> = plain.chain(needs.iter().cloned()).collect();
        let known = all.into_iter().filter_map(|(number, needs)| {
            let partition = self.0.get(&number)?.partition.as_str();
            Some(((number, needs.clone()), partition, needs))
        });
        groups_of(cluster, machine, known)
    }
}

/// Returns a machine with a group of hosts for the nodes of each of these partitions that meet the needs, and the groups by key. All hosts
/// are no group.
pub(crate) fn groups_of<'a, K: Ord>(
    cluster: &Cluster,
    machine: Machine,
    kinds: impl Iterator<Item = (K, &'a str, NodeNeeds)>,
) -> (Machine, BTreeMap<K, HostGroup>) {
    let mut members: Vec<Vec<HostId>> = vec![];
    let mut groups = BTreeMap::new();
    let mut partitions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, name, needs) in kinds {
        let Some(partition) = cluster.partitions.get(name) else { continue };
        let nodes =
            partitions.entry(name).or_insert_with(|| partition.nodes.iter().map(String::as_str).collect());
        let has = |(_, host): &(HostId, &miserly_core::Host)| {
            let is_admitted =
                || cluster.nodes.get(&host.name).is_none_or(|node| needs.admit(&host.name, node));
            nodes.contains(host.name.as_str()) && is_admitted()
        };
        let hosts: Vec<HostId> =
            (0..).map(HostId).zip(machine.hosts()).filter(has).map(|(host, _)| host).collect();
        if hosts.len() == machine.hosts().len() {
            continue;
        }
        let place = members.iter().position(|group| *group == hosts).unwrap_or_else(|| {
            members.push(hosts);
            members.len() - 1
        });
        groups.extend(u16::try_from(place).ok().map(|place| (key, HostGroup(place))));
    }
    (machine.with_groups(&members), groups)
}

fn queue_of(job: &Job) -> Option<TwinQueue> {
    Some(TwinQueue { partition: job.partitions.first()?.clone(), quality: job.qos.clone() })
}

/// Returns the names that the comments of a log give to numbers.
fn names(log: &ImportedLog, start: &str) -> BTreeMap<i64, String> {
    let lines = log.comments.iter().filter_map(|line| line.strip_prefix(start)?.split_once(' '));
    lines.filter_map(|(number, name)| Some((number.parse().ok()?, name.to_owned()))).collect()
}

/// The columns of limits.
const LIMITS: [&str; 12] = [
    "GrpJobs",
    "GrpTRES",
    "MaxJobsPU",
    "MaxTRESPU",
    "MaxJobsPA",
    "MaxTRESPA",
    "GrpTRESMins",
    "GrpTRESRunMins",
    "MaxTRESRunMinsPU",
    "MaxTRESRunMinsPA",
    "MaxTRESMins",
    "GrpWall",
];

/// Returns the qualities of service.
///
/// # Errors
/// If `sacctmgr` gives no answer.
pub fn qualities(cluster: &Slurm) -> Result<Vec<Quality>, SlurmError> {
    let format = format!(
        "format=Name,ID,Priority,Preempt,PreemptMode,GraceTime,PreemptExemptTime,{}",
        LIMITS.join(",")
    );
    let answer = cluster.ask("sacctmgr", &["-n", "-P", "show", "qos", &format])?;
    Ok(parse_qualities(&answer.text))
}

fn parse_qualities(lines: &str) -> Vec<Quality> {
    let quality = |line: &str| {
        let mut fields = line.split('|').map(str::trim);
        let (name, id) = (fields.next()?.to_owned(), fields.next()?.to_owned());
        let priority = fields.next()?.parse().unwrap_or(0);
        let preempts = fields.next()?.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let preempt_mode = Some(fields.next()?).filter(|mode| !mode.is_empty() && *mode != "cluster");
        let preempt_mode = preempt_mode.map(str::to_owned);
        let mut seconds = || match limit(fields.next()?)? {
            Limit::Seconds(seconds) => Some(seconds),
            Limit::Unlimited => None,
        };
        let (grace, exempt) = (seconds().unwrap_or(0), seconds());
        let limits = limits(LIMITS.into_iter().zip(fields));
        Some(Quality { name, id, priority, limits, preempts, preempt_mode, grace, exempt })
    };
    lines.lines().filter_map(quality).collect()
}

/// The limits that are known, with the column and the name of the resource.
const KNOWN: [(&str, &str, &str); 8] = [
    ("GrpJobs", "", "jobs"),
    ("GrpTRES", "cpu", "procs"),
    ("GrpTRES", "gres/gpu", "gpus"),
    ("GrpTRES", "mem", "memory"),
    ("MaxJobsPU", "", "user_jobs"),
    ("MaxTRESPU", "cpu", "user_procs"),
    ("MaxTRESPU", "gres/gpu", "user_gpus"),
    ("MaxTRESPU", "mem", "user_memory"),
];

/// Returns the limits of columns with their values.
pub(crate) fn limits<'a>(columns: impl Iterator<Item = (&'a str, &'a str)>) -> QualityLimits {
    let mut limits = QualityLimits::default();
    for (column, value) in columns.filter(|(_, value)| !value.is_empty()) {
        for one in value.split(',') {
            let (resource, most) = one.split_once('=').unwrap_or(("", one));
            let known = KNOWN.iter().find(|known| (known.0, known.1) == (column, resource));
            let most = if resource == "mem" { amount(most).map(Amount::mebi) } else { most.parse().ok() };
            match known.zip(most) {
                Some(((.., name), most)) => limits.known.push((*name, most)),
                None => limits.others.push(format!("{column}={one}")),
            }
        }
    }
    limits
}

#[cfg(test)]
mod tests {
    use miserly_core::{Host, Resources, Spread};
    use miserly_import::{ImportOptions, slurm};
    use miserly_workload::Trace;

    use super::*;
    use crate::{Limits, Partition};

    #[test]
    fn queues_are_partitions_with_their_qualities() {
        let lines = "JobIDRaw|Submit|Eligible|Start|End|State|ReqCPUS|AllocCPUS|Partition|QOSRAW\n\
            7|100|100|100|160|COMPLETED|1|1|batch|1\n8|101|101|101|160|COMPLETED|1|1|long|1\n\
            9|102|102|102|160|COMPLETED|1|1|batch|2\n";
        let trace = Trace::memory("sacct", lines.as_bytes().to_vec());
        let mut log = slurm(&trace, &ImportOptions::default()).unwrap();
        let qualities = parse_qualities(
            "normal|1|0||cluster|00:00:00|\nurgent|2|50|normal,low|requeue|00:01:30|00:00:10\n",
        );
        let urgent = &qualities[1];
        assert_eq!(
            (urgent.preempts.join(" "), urgent.grace, urgent.exempt),
            ("normal low".to_owned(), 90, Some(10))
        );
        assert_eq!((urgent.preempt_mode.as_deref(), &qualities[0].preempt_mode), (Some("requeue"), &None));
        let nodes = |nodes: &[&str]| Partition {
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            ..Partition::default()
        };
        let partitions = [("batch", nodes(&["n1", "n2"])), ("long", nodes(&["n2"]))];
        let job = |number: u64, partition: &str, quality: &str| Job {
            id: number.to_string(),
            partitions: vec![partition.to_owned()],
            qos: Some(quality.to_owned()),
            ..Job::default()
        };
        let jobs = [job(9, "batch", "urgent"), job(11, "long", "urgent")];
        let cluster = Cluster {
            partitions: partitions.map(|(name, partition)| (name.to_owned(), partition)).into(),
            jobs: jobs.clone().map(|job| (job.id.clone(), job)).into(),
            ..Cluster::default()
        };
        let queues = TwinQueues::number(&mut log, &cluster, &qualities);
        let numbers: Vec<i64> = log.records.iter().map(|record| record.get(Field::Queue)).collect();
        assert_eq!(numbers, [1, 2, 3]);
        assert_eq!(jobs.map(|job| queues.number_of(&job)), [Some(3), Some(4)]);
        let host = |name: &str| Host { name: name.to_owned(), capacity: Resources::cpus(1_u64) };
        let machine = Machine::new(["n1", "n2"].map(host).into()).with_spread(Spread::Any);
        let (machine, groups) = queues.groups(&cluster, machine, &BTreeSet::new());
        assert_eq!(
            groups.keys().map(|(number, _)| *number).collect::<Vec<_>>(),
            [2, 4],
            "the jobs of the partition of one node"
        );
        let of_long = groups.get(&(2, NodeNeeds::default())).copied();
        assert_eq!([0, 1].map(|host| machine.permits(of_long, HostId(host))), [false, true]);
        let weights = [("PriorityWeightQOS".to_owned(), "10".to_owned())];
        let mut cluster = cluster;
        cluster.configuration.weights = weights.into();
        cluster.configuration.priority = "priority/multifactor".to_owned();
        let limits = Limits { qualities, ..Limits::default() };
        let policy = cluster.twin(&queues, &limits, None, false).policy;
        assert!(
            policy.contains("10 * (if(queue == 3, 50 / 50, 0) + if(queue == 4, 50 / 50, 0))"),
            "{policy}"
        );
    }

    #[test]
    fn a_kind_of_nodes_is_a_group_of_its_own() {
        let node = |gres: &str| crate::Node { gres: Some(gres.to_owned()), ..crate::Node::default() };
        let nodes = [("n1", "gpu:t4:1"), ("n2", "gpu:a100:1"), ("n3", "gpu:a100:1")];
        let partition =
            Partition { nodes: ["n1", "n2", "n3"].map(str::to_owned).into(), ..Partition::default() };
        let cluster = Cluster {
            nodes: nodes.map(|(name, gres)| (name.to_owned(), node(gres))).into(),
            partitions: [("batch".to_owned(), partition)].into(),
            ..Cluster::default()
        };
        let queues = TwinQueues([(1, TwinQueue { partition: "batch".to_owned(), quality: None })].into());
        let host = |name: &str| Host { name: name.to_owned(), capacity: Resources::cpus(1_u64) };
        let machine = Machine::new(["n1", "n2", "n3"].map(host).into()).with_spread(Spread::Any);
        let needs =
            |kind: &str| NodeNeeds { gpu_types: [(kind.to_owned(), 1)].into(), ..NodeNeeds::default() };
        let wanted = ["a100", "h100"].map(|kind| (1, needs(kind))).into();
        let (machine, groups) = queues.groups(&cluster, machine, &wanted);
        let on = |needs: NodeNeeds| {
            groups
                .get(&(1, needs))
                .map(|group| [0, 1, 2].map(|host| machine.permits(Some(*group), HostId(host))))
        };
        assert_eq!(on(NodeNeeds::default()), None, "all nodes");
        assert_eq!(on(needs("a100")), Some([false, true, true]));
        assert_eq!(on(needs("h100")), Some([false; 3]));
    }

    #[test]
    fn limits_of_qualities_are_those_of_their_queues() {
        let lines =
            "normal|1|0||||||||||||||\nsmall|2|0|||||3|cpu=8,gres/gpu=2,node=4|1|cpu=4,mem=2G|||cpu=100|||\n";
        let qualities = parse_qualities(lines);
        assert_eq!(qualities[0].limits, QualityLimits::default());
        let known = [
            ("jobs", 3),
            ("procs", 8),
            ("gpus", 2),
            ("user_jobs", 1),
            ("user_procs", 4),
            ("user_memory", 2048),
        ];
        assert_eq!(qualities[1].limits.known, known);
        assert_eq!(qualities[1].limits.others, ["GrpTRES=node=4", "GrpTRESMins=cpu=100"]);
        let queue = |partition: &str, quality: &str| TwinQueue {
            partition: partition.to_owned(),
            quality: Some(quality.to_owned()),
        };
        let queues = [(1, queue("a", "small")), (2, queue("a", "normal")), (5, queue("b", "small"))];
        let queues = TwinQueues(queues.into());
        let mut cluster = Cluster::default();
        cluster.configuration.priority = "priority/basic".to_owned();
        cluster.configuration.scheduler = "sched/backfill".to_owned();
        let limits = Limits { qualities, ..Limits::default() };
        assert_eq!(cluster.twin(&queues, &limits, None, false).policy, "slurm(batch_sched_delay=3s)");
        cluster.configuration.enforces_limits = true;
        let twin = cluster.twin(&queues, &limits, None, false);
        assert_eq!(
            twin.policy,
            "slurm(limits='1+5: jobs=3, procs=8, gpus=2, user_jobs=1, user_procs=4, user_memory=2048', batch_sched_delay=3s)"
        );
        assert_eq!(twin.left_out, ["limits of the quality small (GrpTRES=node=4, GrpTRESMins=cpu=100)"]);
        twin.policy.parse::<miserly_policies::PolicySpec>().expect("a policy");
    }
}
