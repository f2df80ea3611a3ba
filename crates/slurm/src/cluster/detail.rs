//! The part of a job that only `scontrol show job` prints.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Kind, Resources};
use serde::{Deserialize, Serialize};

use super::values::amount;
use super::{Amount, Columns, Job};
use crate::fields::Fields;
use crate::{Cluster, Slurm, SlurmError, gpus, hosts};

/// The most jobs that are asked for one by one; for more, all are read.
const FEW: usize = 50;

/// The form of a job: its wishes for nodes, and its allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Detail {
    /// The least number of nodes.
    pub least_nodes: u64,
    /// The most nodes, if there is a limit.
    pub most_nodes: Option<u64>,
    /// Whether Slurm's description of it cannot be read: the rest is not known.
    #[serde(default)]
    pub is_unreadable: bool,
    /// The processors of a task.
    #[serde(default)]
    pub cpus_per_task: u64,
    /// The memory that it needs. `squeue` shows memory by processor as memory by node.
    #[serde(default)]
    pub memory: Option<Amount>,
    /// The number of tasks.
    #[serde(default)]
    pub tasks: u64,
    /// Its GPUs on all nodes together, if Slurm accounts them (`AccountingStorageTRES`) or they are by task.
    #[serde(default)]
    pub gpus: u64,
    /// The least processors on each node.
    pub least_cpus: u64,
    /// The tasks on each node; 0 if that is free.
    pub tasks_per_node: u64,
    /// Generic resources on each node, as Slurm writes them.
    pub gres_per_node: Option<String>,
    /// Generic resources by job, task or socket, as Slurm writes them. Processors by task are not among them.
    pub gres_otherwise: Option<String>,
    /// The features that its nodes must have, as Slurm writes them.
    pub features: Option<String>,
    /// The nodes that it must have.
    pub nodes: Vec<String>,
    /// The nodes that it must not have.
    pub not_nodes: Vec<String>,
    /// Whether it has its nodes to itself.
    pub exclusive: bool,
    /// The licences, as Slurm writes them.
    pub licences: Option<String>,
    /// The first instant at which it may start, seconds since 1970, if it is known.
    pub eligible: Option<i64>,
    /// The instant by which it has to end, seconds since 1970, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<i64>,
    /// Whether it may be stopped and begun anew: a batch job that its user lets Slurm requeue.
    #[serde(default)]
    pub is_requeueable: bool,
    /// The most tasks of its array that may run at the same time; 0 without a limit. Slurm shows it with the waiting tasks together,
    /// and not with a task by itself.
    #[serde(default)]
    pub array_limit: Option<u64>,
    /// The comment of its user.
    pub comment: Option<String>,
    /// The comment of an administrator.
    #[serde(default)]
    pub admin_comment: Option<String>,
    /// Its allocation on each node, if it runs.
    pub on: BTreeMap<String, Allocated>,
}

/// The allocation of a job on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Allocated {
    /// Processors.
    pub cpus: u64,
    /// Memory, MiB.
    pub memory: u64,
}

impl Detail {
    /// Returns the memory that the job of this description needs.
    pub fn memory_of(&self, job: &Job) -> Option<Amount> {
        self.memory.or(job.memory)
    }

    /// Returns the processors and the memory (kB) that the job of this description has on a node that it holds. Where they are
    /// unknown, it has as many there as on its other nodes.
    pub fn part_on(&self, job: &Job, node: &str) -> Resources {
        let evenly = || {
            let cpus = job.cpus.div_ceil((job.on.len() as u64).max(1));
            (cpus, self.memory_of(job).map_or(0, |memory| memory.kilobytes(cpus, 1)))
        };
        let (cpus, memory) =
            self.on.get(node).map_or_else(evenly, |on| (on.cpus, on.memory.saturating_mul(1024)));
        Resources::cpus(cpus).with(Kind::Memory, memory)
    }

    /// Returns the details of these jobs of a cluster, by name. Jobs that are gone have none.
    ///
    /// # Errors
    /// If `scontrol` or `squeue` cannot be run or fails.
    pub fn read(
        slurm: &Slurm,
        cluster: &Cluster,
        jobs: &[String],
    ) -> Result<BTreeMap<String, Detail>, SlurmError> {
        let known = || jobs.iter().filter_map(|id| cluster.jobs.get(id));
        let numbers: BTreeSet<u64> = known().map(|job| job.number).collect();
        if numbers.is_empty() {
            return Ok(BTreeMap::new());
        }
        let numbers: Vec<u64> = if numbers.len() > FEW { vec![] } else { numbers.into_iter().collect() };
        let answer = slurm.descriptions(&numbers)?;
        Detail::of_answer(slurm, known(), &answer.text, &Cluster::columns(slurm)?)
    }

    /// Returns the details of jobs from an answer of `scontrol` and the columns of `squeue`, by name. A job whose line is not certain
    /// is asked for again.
    pub(crate) fn of_answer<'a>(
        slurm: &Slurm,
        jobs: impl Iterator<Item = &'a Job>,
        text: &str,
        columns: &BTreeMap<String, Columns>,
    ) -> Result<BTreeMap<String, Detail>, SlurmError> {
        // The tasks of an array that wait share one record.
        let mut wanted: BTreeMap<u64, Vec<&Job>> = BTreeMap::new();
        for job in jobs {
            wanted.entry(job.number).or_default().push(job);
        }
        let mut lines = by_number(text);
        let mut details = BTreeMap::new();
        for (number, jobs) in wanted {
            let broken = jobs.iter().any(|job| job.name.contains('\n'));
            let line = match lines.remove(&number).as_deref() {
                None | Some([]) => continue,
                Some([line]) if !broken => (*line).to_owned(),
                // A free text of some job pretends to be a line, or the own name has several. The first line of an answer on
                // one job is its own.
                Some(_) => {
                    let answer = slurm.descriptions(&[number])?;
                    first_description(&answer.text, jobs.first().map_or("", |job| &job.name))
                }
            };
            for job in jobs {
                // A line that cannot be read costs this job only.
                let unreadable = Detail { is_unreadable: true, ..Detail::default() };
                let detail = Detail::parse(&line, &job.name).unwrap_or(unreadable);
                // A job without columns has ended meanwhile.
                let of_job = columns.get(&job.id).map(|columns| detail.with_columns(job, columns));
                details.extend(of_job.map(|detail| (job.id.clone(), detail)));
            }
        }
        Ok(details)
    }

    /// Returns the details with the values of columns, which no text of a user looks like.
    fn with_columns(self, job: &Job, columns: &Columns) -> Detail {
        let Columns { comments, of_job, of_socket, of_task, memory } = columns;
        let by_gpu = memory.as_deref().map(gpus).filter(|each| *each > 0).map(|each| {
            let count = job.gres.as_deref().or(of_job.as_deref()).map_or(1, gpus);
            Amount::PerNode(each.saturating_mul(count))
        });
        let by_tasks = of_task.as_deref().map_or(0, gpus).saturating_mul(self.tasks);
        Detail {
            gpus: self.gpus.max(by_tasks),
            memory: by_gpu.or(self.memory),
            gres_per_node: job.gres.clone(),
            gres_otherwise: [of_job, of_task, of_socket]
                .into_iter()
                .flatten()
                .find_map(|list| without_processors(list)),
            comment: comments.user.clone(),
            admin_comment: comments.admin.clone(),
            ..self
        }
    }

    /// Returns the details in a line. Its first free text, the name of the job, is left out: it may look like fields.
    fn parse(line: &str, name: &str) -> Result<Detail, SlurmError> {
        let line = line.replacen(&format!(" JobName={name} "), " ", 1);
        let fields = Fields::new("scontrol", &line);
        // Free texts follow after these fields, and may look like fields that are not there.
        let resources = Fields::new("scontrol", line.find(" Features=").map_or(&*line, |at| &line[..at]));
        let nodes = fields.required("NumNodes")?;
        let (least, most) = nodes.split_once('-').map_or((nodes, None), |(least, most)| (least, Some(most)));
        let natural = |text: &str| {
            text.parse::<u64>().map_err(|_| fields.unreadable("NumNodes is no number".to_owned()))
        };
        let list = |key| {
            hosts(fields.get(key).unwrap_or_default()).map_err(|error| fields.unreadable(error.to_string()))
        };
        let text = |key| fields.get(key).map(str::to_owned);
        Ok(Detail {
            is_unreadable: false,
            cpus_per_task: fields.number("CPUs/Task").unwrap_or(1).max(1),
            tasks: fields.number("NumTasks").unwrap_or(1).max(1),
            least_nodes: natural(least)?.max(1),
            most_nodes: most.map(natural).transpose()?.filter(|most| *most > 0),
            memory: memory(&resources),
            gpus: ["ReqTRES", "TRES"].into_iter().find_map(|key| resources.get(key)).map_or(0, gpus),
            least_cpus: fields.number("MinCPUsNode").unwrap_or(1),
            tasks_per_node: fields
                .get("NtasksPerN:B:S:C")
                .and_then(|text| text.split(':').next()?.parse().ok())
                .unwrap_or(0),
            gres_per_node: None,
            gres_otherwise: None,
            features: text("Features"),
            nodes: list("ReqNodeList")?,
            not_nodes: list("ExcNodeList")?,
            exclusive: is_exclusive(&line),
            licences: text("Licenses"),
            eligible: fields.get("EligibleTime").and_then(|text| text.parse().ok()),
            deadline: fields.get("Deadline").and_then(|text| text.parse().ok()),
            is_requeueable: ["Requeue", "BatchFlag"].iter().all(|key| fields.get(key) == Some("1")),
            array_limit: array_limit(&fields),
            comment: None,
            admin_comment: None,
            on: allocated(&line),
        })
    }
}

/// Returns the most tasks of an array that may run at the same time, if the description is that of several tasks.
fn array_limit(fields: &Fields<'_>) -> Option<u64> {
    let has_several = fields.get("ArrayTaskId").is_some_and(|tasks| tasks.contains(['-', ',', '%']));
    fields.number("ArrayTaskThrottle").ok().or(has_several.then_some(0))
}

/// Returns the requested memory, unless it is by GPU.
fn memory(fields: &Fields<'_>) -> Option<Amount> {
    match fields.get("MinMemoryCPU").and_then(amount) {
        Some(Amount::PerNode(memory) | Amount::PerCpu(memory)) => Some(Amount::PerCpu(memory)),
        None => fields.get("MinMemoryNode").and_then(amount),
    }
}

/// Returns the lines that describe jobs, by their numbers.
fn by_number(text: &str) -> BTreeMap<u64, Vec<&str>> {
    let mut lines: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for (number, line) in text.lines().filter_map(described) {
        lines.entry(number).or_default().push(line);
    }
    lines
}

/// Returns the description of a job in an answer on this job alone, as one line without its name.
fn first_description(text: &str, name: &str) -> String {
    let mut rest = text;
    while let Some((line, tail)) = rest.split_once('\n') {
        if described(line).is_some() {
            break;
        }
        rest = tail;
    }
    let whole = rest.replacen(&format!(" JobName={name} "), " ", 1);
    whole.lines().next().and_then(described).map(|(_, line)| line.to_owned()).unwrap_or_default()
}

/// Returns a list of resources without the processors: since 23.11 `--cpus-per-task` is in `TresPerTask` too.
fn without_processors(list: &str) -> Option<String> {
    let others = list.split(',').filter(|item| !item.starts_with("cpu=") && !item.starts_with("cpu:"));
    let others: Vec<&str> = others.collect();
    (!others.is_empty()).then(|| others.join(","))
}

/// Returns the number of a job and its description, if a line is one. The line may begin with the prompt.
pub(crate) fn described(line: &str) -> Option<(u64, &str)> {
    let line = line.strip_prefix("scontrol: ").unwrap_or(line);
    let number = line.strip_prefix("JobId=")?.split(' ').next()?;
    Some((number.parse().ok()?, line))
}

/// Returns whether a job has its nodes to itself.
///
/// Until 25.11 `OverSubscribe=NO` says so. Since 26.05 it stands with most jobs, and the next field says so: `Exclusive=NODE`, or
/// `TOPO`. Free texts of users follow later.
fn is_exclusive(line: &str) -> bool {
    let Some((_, rest)) = line.split_once(" OverSubscribe=") else { return false };
    let mut words = rest.split(' ');
    let shares = words.next();
    match words.next().and_then(|next| next.strip_prefix("Exclusive=")) {
        Some(of) => matches!(of, "NODE" | "TOPO"),
        None => matches!(shares, Some("NO" | "EXCLUSIVE")),
    }
}

/// Returns the allocation on each node: `Nodes=node[1-2] CPU_IDs=0-3,7 Mem=100 GRES=`, for groups of equal nodes.
pub(crate) fn allocated(line: &str) -> BTreeMap<String, Allocated> {
    let mut on = BTreeMap::new();
    // Free texts follow after these fields.
    let line = line.find(" MinCPUsNode=").map_or(line, |at| &line[..at]);
    let mut words = line.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let Some(nodes) = word.strip_prefix("Nodes=").and_then(|list| hosts(list).ok()) else { continue };
        let Some(cpus) = words.next().and_then(|word| word.strip_prefix("CPU_IDs=")) else { continue };
        let memory = words.next().and_then(|word| word.strip_prefix("Mem=")?.parse().ok()).unwrap_or(0);
        let count = |range: &str| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some(last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?.saturating_add(1))
        };
        let cpus = cpus.split(',').filter_map(count).fold(0, u64::saturating_add);
        on.extend(nodes.into_iter().map(|node| (node, Allocated { cpus, memory })));
    }
    on
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `scontrol` of each version prints of a job (`src/scontrol/info_job.c`, `get_job_oversubscribe_value`).
    #[test]
    fn whole_nodes_are_told_in_each_version() {
        let alone = |fields: &str| {
            let line = format!(
                "JobId=7 JobName=y NumNodes=1 Features=(null) DelayBoot=00:00:00 {fields} Contiguous=0 Command=/tmp/x SubmitLine=sbatch --comment Exclusive=NODE x WorkDir=/tmp Comment=OverSubscribe=NO Exclusive=NODE "
            );
            Detail::parse(&line, "y").unwrap().exclusive
        };
        for (until_25_11, expect) in
            [("OK", false), ("YES", false), ("USER", false), ("NO", true), ("EXCLUSIVE", true)]
        {
            assert_eq!(alone(&format!("OverSubscribe={until_25_11}")), expect, "{until_25_11}");
        }
        for (since_26_05, expect) in
            [("NO", false), ("USER", false), ("MCS", false), ("NODE", true), ("TOPO", true)]
        {
            for shares in ["NO", "OK", "YES"] {
                assert_eq!(
                    alone(&format!("OverSubscribe={shares} Exclusive={since_26_05}")),
                    expect,
                    "{since_26_05}"
                );
            }
        }
    }

    #[test]
    fn the_form_of_a_job_is_read() {
        let line = "JobId=7 JobName=x NumNodes=9 UserId=ann(1001) Dependency=(null) EligibleTime=1795639196 ReqNodeList=(null) ExcNodeList=node[1-2] NodeList= NumNodes=2-3 NumCPUs=6 CPUs/Task=1 NtasksPerN:B:S:C=2:0:*:* MinCPUsNode=2 MinMemoryCPU=1.50G Features=big OverSubscribe=OK Licenses=(null) WorkDir=/tmp Comment=\"a | b\" StdErr=/dev/null ";
        let detail = Detail::parse(line, "x NumNodes=9").unwrap();
        assert_eq!((detail.least_nodes, detail.most_nodes), (2, Some(3)));
        assert_eq!((detail.least_cpus, detail.tasks_per_node, detail.exclusive), (2, 2, false));
        assert_eq!((detail.nodes.len(), detail.not_nodes.join(" ")), (0, "node1 node2".to_owned()));
        assert_eq!((detail.features.as_deref(), detail.licences), (Some("big"), None));
        assert_eq!(detail.eligible, Some(1_795_639_196));
        assert_eq!(detail.memory, Some(Amount::PerCpu(1536)));
        let open = Detail::parse(
            "JobId=7 JobName=y Requeue=1 BatchFlag=1 NumNodes=1 OverSubscribe=NO EligibleTime=Unknown Comment=free text StdErr=x",
            "y",
        )
        .unwrap();
        assert_eq!((detail.is_requeueable, open.is_requeueable), (false, true));
        assert_eq!((open.least_nodes, open.most_nodes, open.exclusive), (1, None, true));
        assert_eq!(open.eligible, None);
        assert!(Detail::parse("JobId=7 JobName=y", "y").is_err());
        let spaces = "JobId=7 JobName= NumNodes=x  UserId=ann(1) NumNodes=1";
        assert_eq!(Detail::parse(spaces, " NumNodes=x ").unwrap().least_nodes, 1);
    }

    /// A text of a user looks like each value that the columns have.
    #[test]
    fn memory_and_generic_resources_are_those_of_the_columns() {
        let forged = "JobId=7 JobName=x NumNodes=1 MinMemoryNode=1000M Features=(null) SubmitLine=sbatch --wrap MemPerTres=gres/gpu:9 \
            TresPerNode=gres/gpu:9 TresPerJob=gres/gpu:9 TresPerTask=gres/gpu:9 WorkDir=/";
        let read = |gres: Option<&str>, columns: &Columns| {
            let job = Job { gres: gres.map(str::to_owned), ..Job::default() };
            let detail = Detail::parse(forged, "x").unwrap().with_columns(&job, columns);
            (detail.memory, detail.gres_per_node, detail.gres_otherwise)
        };
        let list = |text: &str| Some(text.to_owned());
        assert_eq!(read(None, &Columns::default()), (Some(Amount::PerNode(1000)), None, None));
        // Slurm 22.05, and 24.11.
        for (memory, gres) in [("gres:gpu:1500", "gres:gpu:2"), ("gres/gpu:1500", "gres/gpu:2")] {
            let by_gpu = Columns { memory: list(memory), ..Columns::default() };
            assert_eq!(read(Some(gres), &by_gpu), (Some(Amount::PerNode(3000)), list(gres), None));
        }
        let of_job =
            Columns { memory: list("gres/gpu:500"), of_job: list("gres/gpu:3"), ..Columns::default() };
        assert_eq!(read(None, &of_job), (Some(Amount::PerNode(1500)), None, list("gres/gpu:3")));
        let of_task = |text: &str| read(None, &Columns { of_task: list(text), ..Columns::default() }).2;
        // Slurm 24.11, 23.11, and 22.05: processors by task are no generic resources.
        assert_eq!(
            ["cpu=2", "cpu:2", "cpu=2,gres/gpu=1", "gres:gpu:1"].map(of_task),
            [None, None, list("gres/gpu=1"), list("gres:gpu:1")]
        );
    }

    /// The sum is there without an accounting of GPUs.
    #[test]
    fn gpus_by_task_are_as_many_as_the_tasks() {
        let line = "JobId=7 JobName=x NumNodes=2 NumCPUs=8 NumTasks=4 CPUs/Task=2 ReqTRES=cpu=8,node=2 Features=(null)";
        let read = |text: &str, line: &str| {
            let columns = Columns { of_task: Some(text.to_owned()), ..Columns::default() };
            Detail::parse(line, "x").unwrap().with_columns(&Job::default(), &columns).gpus
        };
        // Slurm 22.05, 23.11, and 25.05, also with instances of a divided GPU.
        for list in
            ["gres:gpu:2", "cpu:2,gres:gpu:2", "cpu=2,gres/gpu=2", "gres/gpu:a100:2", "gres/gpu:1g.5gb=2"]
        {
            assert_eq!(read(list, line), 8, "{list}");
        }
        assert_eq!(read("cpu=2", line), 0);
        // What Slurm accounts has the tasks already.
        assert_eq!(read("gres/gpu:2", &line.replace("node=2", "node=2,gres/gpu=8")), 8);
    }

    #[test]
    fn a_name_with_line_breaks_is_left_out() {
        let name = "x NumNodes=7\nJobId=3 JobName=y NumNodes=8\n";
        let text = format!(
            "scontrol: show job 3\nJobId=3 JobName={name} UserId=ann(1) NumNodes=2 Comment=a\nb StdErr=x\n"
        );
        let line = first_description(&text, name);
        assert_eq!(line, "JobId=3 UserId=ann(1) NumNodes=2 Comment=a");
        assert_eq!(Detail::parse(&line, name).unwrap().least_nodes, 2);
        assert_eq!(first_description("slurm_load_jobs error: Invalid job id specified\n", "x"), "");
    }

    #[test]
    fn lines_are_told_apart_by_job() {
        let text = "scontrol: show job 7\nJobId=7 a\nscontrol: JobId=8 b\nJobId=7 forged\nJobId=x\n";
        let lines = by_number(text);
        assert_eq!((lines[&7].len(), lines[&8].as_slice()), (2, ["JobId=8 b"].as_slice()));
    }

    #[test]
    fn the_nodes_of_a_job_are_read() {
        let line = "JobId=1 JOB_GRES=(null)   Nodes=node[3-4] CPU_IDs=0-4,7 Mem=100 GRES=   Nodes=node9 CPU_IDs=0 Mem=0 GRES= MinCPUsNode=1 Comment=Nodes=node3 CPU_IDs=0 Mem=0";
        let on = allocated(line);
        assert_eq!(on.len(), 3);
        assert_eq!(on["node4"], Allocated { cpus: 6, memory: 100 });
        assert_eq!(on["node9"], Allocated { cpus: 1, memory: 0 });
    }
}
