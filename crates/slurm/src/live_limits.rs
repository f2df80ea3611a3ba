//! The limits of running jobs that hold for the jobs of a cluster at an instant.

use std::collections::{BTreeMap, BTreeSet};

use crate::preemption::PreemptionKind;
use crate::twin_queues::limits as parsed_limits;
use crate::{
    Amount, Association, Associations, Cluster, Detail, Job, JobState, Quality, QualityLimits, Slurm,
    SlurmError, gpu_types, gpus, qualities,
};

/// The limits of qualities of service and of associations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// The qualities of service.
    pub qualities: Vec<Quality>,
    /// The associations that have limits of running jobs.
    pub associations: Vec<AssociationLimits>,
    /// The account above each one.
    pub parents: BTreeMap<String, String>,
    /// The associations of a user with a partition: account, user and partition. The jobs there count for no other one of the user.
    pub of_partitions: BTreeSet<[String; 3]>,
    /// The numbers of the users who have jobs, by name.
    pub users: BTreeMap<String, u32>,
    /// The minutes that are used of limits of a sum over time, by the owner and the limit without its value. There are none if the
    /// controller does not show them.
    pub used: BTreeMap<(String, String), u64>,
}

/// The limits of the running jobs of an account with those below it, or of a user there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AssociationLimits {
    /// The account.
    pub account: String,
    /// The user; `None`: the whole account.
    pub user: Option<String>,
    /// The partition, if it is for one.
    pub partition: Option<String>,
    /// Those of all of its running jobs together (`GrpJobs`, `GrpTRES`).
    pub all: QualityLimits,
    /// The most running jobs of the user (`MaxJobs`).
    pub jobs: Option<u64>,
}

/// The columns of associations.
const COLUMNS: &str = "format=Account,User,Partition,ParentName,GrpJobs,GrpTRES,MaxJobs,GrpTRESMins,GrpTRESRunMins,GrpWall,MaxTRESMins";

/// The limits of a sum over time: what was used counts for them.
const OF_TIME: [&str; 2] = ["GrpTRESMins", "GrpWall"];

impl AssociationLimits {
    /// Returns the association, in words.
    pub(crate) fn owner(&self) -> String {
        words_of_association(&self.account, self.user.as_deref())
    }
}

impl Limits {
    /// Reads the limits of a cluster that enforces them.
    ///
    /// # Errors
    /// If `sacctmgr` or `squeue` gives no answer.
    pub fn read(slurm: &Slurm, cluster: &Cluster) -> Result<Limits, SlurmError> {
        if !cluster.configuration.enforces_limits {
            // Without limits, they may preempt one another.
            let mut qualities = if cluster.preempts() { qualities(slurm)? } else { vec![] };
            for quality in &mut qualities {
                quality.limits = QualityLimits::default();
            }
            return Ok(Limits { qualities, ..Limits::default() });
        }
        let mut limits = Limits::of_owners(slurm, cluster)?;
        let users = slurm.ask("squeue", &["-a", "-h", "-o", "%U|%u"])?;
        let user = |line: &str| {
            let (number, name) = line.split_once('|')?;
            Some((name.trim().to_owned(), number.trim().parse().ok()?))
        };
        limits.users = users.text.lines().filter_map(user).collect();
        let of_qualities = limits.qualities.iter().map(|quality| &quality.limits.others);
        let mut others = of_qualities.chain(limits.associations.iter().map(|one| &one.all.others)).flatten();
        if others.any(|limit| OF_TIME.iter().any(|column| limit.starts_with(column))) {
            // A user may not see it, and then it is not known.
            let shown = slurm.ask("scontrol", &["show", "assoc_mgr", "flags=assoc,qos"]);
            limits.used = shown.map_or_else(|_| BTreeMap::new(), |shown| used_minutes(&shown.text));
        }
        Ok(limits)
    }

    /// Reads the qualities of service, and the limits of associations if the cluster enforces any.
    ///
    /// # Errors
    /// If `sacctmgr` gives no answer.
    pub fn of_owners(slurm: &Slurm, cluster: &Cluster) -> Result<Limits, SlurmError> {
        let mut limits = Limits { qualities: qualities(slurm)?, ..Limits::default() };
        if cluster.configuration.enforces_limits {
            let of_cluster = format!("cluster={}", cluster.configuration.cluster);
            let answer = slurm.ask("sacctmgr", &["-n", "-P", "show", "assoc", &of_cluster, COLUMNS])?;
            limits.add_associations(&answer.text);
        }
        Ok(limits)
    }

    /// Returns the groups of the jobs that count for a limit, as words of the parameter `limits` of the policy `slurm`.
    pub(crate) fn groups_of(&self, limit: &AssociationLimits, associations: &Associations) -> Vec<String> {
        let counts = |(_, one): &(u32, &Association)| match &limit.user {
            Some(user) => {
                one.account == limit.account && one.user == *user && one.partition == limit.partition
            }
            None => self.is_within(&one.account, &limit.account),
        };
        associations.iter().filter(counts).map(|(number, _)| format!("g{number}")).collect()
    }

    pub(crate) fn add_associations(&mut self, lines: &str) {
        for line in lines.lines() {
            let [account, user, partition, parent, all_jobs, all, jobs, ref times @ ..] =
                line.split('|').map(str::trim).collect::<Vec<_>>()[..]
            else {
                continue;
            };
            let times = ["GrpTRESMins", "GrpTRESRunMins", "GrpWall", "MaxTRESMins"]
                .into_iter()
                .zip(times.iter().copied());
            let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            if let Some(parent) = named(parent) {
                self.parents.insert(account.to_owned(), parent);
            }
            let (user, partition) = (named(user), named(partition));
            if let Some((user, partition)) = user.clone().zip(partition.clone()) {
                self.of_partitions.insert([account.to_owned(), user, partition]);
            }
            let limits = AssociationLimits {
                account: account.to_owned(),
                partition,
                all: parsed_limits([("GrpJobs", all_jobs), ("GrpTRES", all)].into_iter().chain(times)),
                // Users without a limit of their own have that of their account, in lines of their own.
                jobs: jobs.parse().ok().filter(|_| user.is_some()),
                user,
            };
            if limits.all != QualityLimits::default() || limits.jobs.is_some() {
                self.associations.push(limits);
            }
        }
    }

    /// Returns whether an account is another one, or below it.
    fn is_within(&self, account: &str, other: &str) -> bool {
        let mut at = account;
        // A tree of accounts is not as deep as it has accounts.
        for _ in 0..=self.parents.len() {
            if at == other {
                return true;
            }
            let Some(parent) = self.parents.get(at) else { return false };
            at = parent;
        }
        false
    }

    fn holds_for(&self, association: &AssociationLimits, job: &Job, partition: Option<&str>) -> bool {
        let account = job.account.as_deref().unwrap_or_default();
        let Some(user) = &association.user else { return self.is_within(account, &association.account) };
        let has_own = |name: &str| {
            let names = [account, user, name].map(str::to_owned);
            self.of_partitions.contains(&names)
        };
        let is_of_partition = match association.partition.as_deref() {
            Some(name) => partition == Some(name),
            // Slurm looks for the association with the partition of the job first.
            None => !partition.is_some_and(has_own),
        };
        account == association.account && self.users.get(user) == Some(&job.user) && is_of_partition
    }

    fn quality(&self, name: Option<&String>) -> Option<&Quality> {
        self.qualities.iter().find(|quality| Some(&quality.name) == name)
    }
}

/// The kind of the owner of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Quality,
    Association,
    Array,
}

/// A limit of running jobs, with the jobs that count for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LiveLimit<'a> {
    pub(crate) owner: Owner,
    /// The owner, in words.
    pub(crate) whose: String,
    /// The name in the parameter `limits` of the policy `slurm`.
    pub(crate) name: &'static str,
    pub(crate) most: u64,
    pub(crate) jobs: BTreeSet<&'a str>,
}

impl LiveLimit<'_> {
    /// Returns whether a job exceeds it by itself.
    pub(crate) fn excludes(&self, job: &Job, detail: Option<&Detail>) -> bool {
        amount(self.name, job, detail) > self.most && self.jobs.contains(job.id.as_str())
    }

    /// Returns what it counts: `jobs`, `procs`, `gpus` or `memory`.
    pub(crate) fn resource(&self) -> &'static str {
        self.name.trim_start_matches("user_")
    }

    /// Returns the limit, in words.
    pub(crate) fn words(&self) -> String {
        let what = match self.resource() {
            "procs" => "processors",
            "gpus" => "GPUs",
            "memory" => "MiB of memory",
            _ => "jobs",
        };
        format!("{} may have {} {what} at a time", self.whose, self.most)
    }
}

/// Returns what a job counts for a limit.
pub(crate) fn amount(limit: &str, job: &Job, detail: Option<&Detail>) -> u64 {
    match limit.trim_start_matches("user_") {
        "procs" => job.cpus,
        "gpus" => {
            let otherwise = detail.and_then(|detail| detail.gres_otherwise.as_deref()).map_or(0, gpus);
            job.gpus_on(job.nodes.max(1)).max(otherwise).max(detail.map_or(0, |detail| detail.gpus))
        }
        "memory" => {
            let memory = detail.map_or(job.memory, |detail| detail.memory_of(job));
            memory.map_or(0, |memory| memory.kilobytes(job.cpus, job.nodes).div_ceil(1024))
        }
        _ => 1,
    }
}

/// Returns the limit that a reason of Slurm means.
pub(crate) fn limit_of_reason(reason: &str) -> Option<(Owner, &'static str)> {
    Some(match reason {
        "QOSGrpJobsLimit" => (Owner::Quality, "jobs"),
        "QOSGrpCpuLimit" => (Owner::Quality, "procs"),
        "QOSMaxJobsPerUserLimit" => (Owner::Quality, "user_jobs"),
        "QOSMaxCpuPerUserLimit" => (Owner::Quality, "user_procs"),
        "AssocGrpJobsLimit" | "AssocMaxJobsLimit" => (Owner::Association, "jobs"),
        "AssocGrpCpuLimit" => (Owner::Association, "procs"),
        "QOSGrpGRES" => (Owner::Quality, "gpus"),
        "QOSMaxGRESPerUser" => (Owner::Quality, "user_gpus"),
        "AssocGrpGRES" => (Owner::Association, "gpus"),
        "QOSGrpMemLimit" => (Owner::Quality, "memory"),
        "QOSMaxMemoryPerUser" => (Owner::Quality, "user_memory"),
        "AssocGrpMemLimit" => (Owner::Association, "memory"),
        "JobArrayTaskLimit" => (Owner::Array, "jobs"),
        _ => return None,
    })
}

impl Cluster {
    /// Returns the limits that hold for some of these jobs.
    ///
    /// The quality of a partition comes before that of a job, and both before an association: a limit of the same kind there does
    /// not hold.
    pub(crate) fn live_limits<'a>(&self, limits: &Limits, jobs: &[&'a Job]) -> Vec<LiveLimit<'a>> {
        let of_partition = |job: &Job| {
            let partition = self.partition_of(job).and_then(|name| self.partitions.get(name));
            limits.quality(partition.and_then(|partition| partition.quality.as_ref()))
        };
        let has = |quality: Option<&Quality>, name: &str| {
            quality.is_some_and(|quality| quality.limits.known.iter().any(|(other, _)| *other == name))
        };
        let named = |quality: &Quality, other: Option<&Quality>| {
            other.is_some_and(|other| other.name == quality.name)
        };
        let mut all = vec![];
        let mut add = |owner, whose: &str, name, most, holds: &dyn Fn(&Job) -> bool| {
            let jobs: BTreeSet<&str> =
                jobs.iter().filter(|job| holds(job)).map(|job| job.id.as_str()).collect();
            if !jobs.is_empty() {
                all.push(LiveLimit { owner, whose: whose.to_owned(), name, most, jobs });
            }
        };
        for quality in &limits.qualities {
            for (name, most) in &quality.limits.known {
                let holds = |job: &Job| {
                    let first = of_partition(job);
                    let own = job.qos.as_ref() == Some(&quality.name) && !has(first, name);
                    own || named(quality, first)
                };
                let whose = words_of_quality(&quality.name);
                add(Owner::Quality, &whose, name, *most, &holds);
            }
        }
        for association in &limits.associations {
            let whose = association.owner();
            let all = association.all.known.iter().map(|(name, most)| (*name, *most, *name));
            for (name, most, of_quality) in
                all.chain(association.jobs.map(|most| ("jobs", most, "user_jobs")))
            {
                let holds = |job: &Job| {
                    let own = limits.quality(job.qos.as_ref());
                    limits.holds_for(association, job, self.partition_of(job))
                        && !has(own, of_quality)
                        && !has(of_partition(job), of_quality)
                };
                add(Owner::Association, &whose, name, most, &holds);
            }
        }
        all
    }

    /// Returns the limits that are not simulated and may hold up some of these jobs: all of the jobs for which such a limit holds have more
    /// than it together, with what was used. The names of the waiting ones among them come with the limit, in words.
    pub(crate) fn unknown_limits<'a>(
        &self,
        limits: &Limits,
        details: &BTreeMap<String, Detail>,
        jobs: &[&'a Job],
    ) -> BTreeMap<&'a str, String> {
        let mut found = BTreeMap::new();
        let mut add = |whose: String, others: &[String], holds: &dyn Fn(&Job) -> bool| {
            for (limit, column, resource, most) in others.iter().filter_map(|limit| parse_unknown(limit)) {
                // Each user, account or job has its own.
                let part = |job: &Job| match column {
                    "MaxTRESPU" | "MaxJobsPU" | "MaxTRESRunMinsPU" => Some(job.user.to_string()),
                    "MaxTRESPA" | "MaxJobsPA" | "MaxTRESRunMinsPA" => job.account.clone(),
                    "MaxTRESMins" => Some(job.id.clone()),
                    _ => None,
                };
                let name = limit.rsplit_once('=').map_or(limit, |(name, _)| name).to_owned();
                let used = if OF_TIME.contains(&column) {
                    limits.used.get(&(whose.clone(), name)).copied().unwrap_or(u64::MAX)
                } else {
                    0
                };
                let mut parts: BTreeMap<Option<String>, (u64, Vec<&'a str>)> = BTreeMap::new();
                for job in jobs.iter().filter(|job| holds(job)) {
                    let amount = unknown_amount(resource, job, details.get(&job.id));
                    let minutes = if is_of_minutes(column) {
                        job.limit.seconds().unsigned_abs().div_ceil(60)
                    } else {
                        1
                    };
                    let amount = amount.saturating_mul(minutes);
                    let (sum, waiting) = parts.entry(part(job)).or_insert((used, vec![]));
                    *sum = sum.saturating_add(amount);
                    waiting.extend((amount > 0 && job.state == JobState::Pending).then_some(job.id.as_str()));
                }
                for (_, waiting) in parts.into_values().filter(|(sum, _)| *sum > most) {
                    let words = format!("it may wait for a limit of {whose} that is not simulated ({limit})");
                    found.extend(waiting.into_iter().map(|id| (id, words.clone())));
                }
            }
        };
        for quality in &limits.qualities {
            let holds = |job: &Job| {
                let partition = self.partition_of(job).and_then(|name| self.partitions.get(name));
                let of_partition = partition.and_then(|partition| partition.quality.as_ref());
                [job.qos.as_ref(), of_partition].contains(&Some(&quality.name))
            };
            add(words_of_quality(&quality.name), &quality.limits.others, &holds);
        }
        for association in &limits.associations {
            let whose = association.owner();
            add(whose, &association.all.others, &|job| {
                limits.holds_for(association, job, self.partition_of(job))
            });
        }
        found
    }
}

/// Returns the limits of arrays: the most tasks of each one that may run at a time.
pub(crate) fn array_limits<'a>(details: &BTreeMap<String, Detail>, jobs: &[&'a Job]) -> Vec<LiveLimit<'a>> {
    let mut arrays: BTreeMap<u64, (u64, BTreeSet<&str>)> = BTreeMap::new();
    for job in jobs {
        let Some((array, _)) = job.array else { continue };
        let (most, tasks) = arrays.entry(array).or_default();
        // A task by itself does not show it.
        *most = details.get(&job.id).and_then(|detail| detail.array_limit).unwrap_or(0).max(*most);
        tasks.insert(&job.id);
    }
    let limited = arrays.into_iter().filter(|(_, (most, _))| *most > 0);
    limited
        .map(|(array, (most, jobs))| LiveLimit {
            owner: Owner::Array,
            whose: format!("the array {array}"),
            name: "jobs",
            most,
            jobs,
        })
        .collect()
}

/// Returns whether a limit is one of minutes, or of minutes of a resource.
fn is_of_minutes(column: &str) -> bool {
    column.contains("Mins") || column == "GrpWall"
}

/// Returns the minutes that are used of limits, from what the controller shows of its associations and qualities.
fn used_minutes(text: &str) -> BTreeMap<(String, String), u64> {
    let mut owner = String::new();
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let value = |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        if let Some(quality) = line.strip_prefix("QOS=") {
            owner = words_of_quality(quality.rsplit_once('(').map_or(quality, |(name, _)| name));
        } else if let Some(account) = value("Account").filter(|_| line.starts_with("ClusterName=")) {
            let user = value("UserName").and_then(|user| user.rsplit_once('('));
            owner = words_of_association(account, user.map(|(name, _)| name));
        }
        for (column, list) in OF_TIME.iter().filter_map(|column| Some((column, value(column)?))) {
            for part in list.split(',') {
                let (resource, amount) = part.split_once('=').unwrap_or(("", part));
                let used = amount.split_once('(').and_then(|(_, used)| rounded_up(used.strip_suffix(')')?));
                let name =
                    if resource.is_empty() { (*column).to_owned() } else { format!("{column}={resource}") };
                all.extend(used.map(|used| ((owner.clone(), name), used)));
            }
        }
    }
    all
}

/// Returns the least whole number that is not below a number with decimals, such as `12.5`.
fn rounded_up(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = decimals.bytes().all(|byte| byte.is_ascii_digit());
    let more = u64::from(decimals.bytes().any(|byte| byte != b'0'));
    whole.parse::<u64>().ok().filter(|_| is_number)?.checked_add(more)
}

fn words_of_quality(name: &str) -> String {
    format!("the quality of service {name}")
}

fn words_of_association(account: &str, user: Option<&str>) -> String {
    match user {
        Some(user) => format!("the user {user} in the account {account}"),
        None => format!("the account {account}"),
    }
}

/// Returns a limit that is not simulated, with its column, its resource and its value, if it bounds what runs at a time or over time.
fn parse_unknown(limit: &str) -> Option<(&str, &str, &str, u64)> {
    let (column, rest) = limit.split_once('=')?;
    let (resource, most) = rest.split_once('=').unwrap_or(("", rest));
    let bounds_running =
        matches!(column, "GrpTRES" | "MaxTRESPU" | "MaxTRESPA" | "MaxJobsPA") || is_of_minutes(column);
    // Accounting prints memory with a unit.
    let of_memory = crate::cluster::amount(most).map(Amount::mebi).filter(|_| resource == "mem");
    // A time has days and hours.
    let of_time = || match crate::cluster::limit(most).filter(|_| column == "GrpWall")? {
        crate::Limit::Seconds(seconds) => Some(seconds / 60),
        crate::Limit::Unlimited => None,
    };
    let most = of_memory.or_else(of_time).or_else(|| most.parse().ok());
    Some((limit, column, resource, most.filter(|_| bounds_running)?))
}

/// Returns what a job counts for a limit that is not simulated. Of a resource that is not known, it may have any amount.
fn unknown_amount(resource: &str, job: &Job, detail: Option<&Detail>) -> u64 {
    let lists = || {
        let otherwise = detail.and_then(|detail| detail.gres_otherwise.as_deref());
        [job.gres.as_deref(), otherwise].into_iter().flatten()
    };
    if resource == "cpu" {
        job.cpus
    } else if resource == "node" {
        job.nodes.max(1)
    } else if resource.is_empty() {
        1
    } else if let Some(kind) = resource.strip_prefix("gres/gpu:") {
        let of = |list: &str| gpu_types(list).remove(kind).unwrap_or(0);
        // The list of the job is that of each node.
        let of_nodes = job.gres.as_deref().map_or(0, of).saturating_mul(job.nodes.max(1));
        detail.and_then(|detail| detail.gres_otherwise.as_deref()).map_or(0, of).max(of_nodes)
    } else if resource == "gres/gpu" {
        amount("gpus", job, detail)
    } else if resource == "mem" {
        amount("memory", job, detail)
    } else {
        let name = resource.trim_start_matches("gres/");
        let may_have = resource == "billing" || lists().any(|list| list.contains(name));
        u64::from(may_have) * u64::from(u32::MAX)
    }
}

/// The queues of live jobs: those of one queue count for the same limits, and preempt alike.
#[derive(Debug, Default)]
pub(crate) struct NumberedJobs<'a> {
    /// The number of the queue of each job. One without a limit and without a kind of preemption has none.
    pub(crate) numbers: BTreeMap<&'a str, u32>,
    /// The limits as the parameter of the policy `slurm`, if there are any.
    pub(crate) limits: Option<String>,
    /// The kind of preemption of each queue.
    pub(crate) kinds: BTreeMap<u32, PreemptionKind>,
}

/// Returns the queues of jobs with their kinds of preemption.
pub(crate) fn numbered<'a>(
    limits: &[LiveLimit<'a>],
    jobs: impl Iterator<Item = (&'a str, Option<PreemptionKind>)>,
) -> NumberedJobs<'a> {
    let mut kinds: BTreeMap<(Vec<bool>, Option<PreemptionKind>), u32> = BTreeMap::new();
    let mut numbers = BTreeMap::new();
    for (job, preemption) in jobs {
        let kind: Vec<bool> = limits.iter().map(|limit| limit.jobs.contains(job)).collect();
        if kind.contains(&true) || preemption.is_some() {
            let next = u32::try_from(kinds.len() + 1).unwrap_or(u32::MAX);
            numbers.insert(job, *kinds.entry((kind, preemption)).or_insert(next));
        }
    }
    let written = limits.iter().enumerate().filter_map(|(nth, limit)| {
        let mut queues: Vec<u32> =
            kinds.iter().filter(|((kind, _), _)| kind[nth]).map(|(_, number)| *number).collect();
        queues.sort_unstable();
        let queues: Vec<String> = queues.iter().map(u32::to_string).collect();
        (!queues.is_empty()).then(|| format!("{}: {}={}", queues.join("+"), limit.name, limit.most))
    });
    let written: Vec<String> = written.collect();
    let limits = (!written.is_empty()).then(|| written.join("; "));
    let kinds = kinds.into_iter().filter_map(|((_, kind), number)| Some((number, kind?))).collect();
    NumberedJobs { numbers, limits, kinds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QualityLimits;

    const ASSOCIATIONS: &str = "root||||||\nphysics|||root|10|cpu=100,gres/gpu=4|\nlasers|||physics|||2\n\
        lasers|ann|||||2\nlasers|bob|batch||1||\nchemistry|||root|||\nchemistry|ann|||||\n";

    fn job(id: &str, user: u32, account: &str, partition: &str) -> Job {
        Job {
            id: id.to_owned(),
            user,
            account: Some(account.to_owned()),
            partitions: vec![partition.to_owned()],
            cpus: 4,
            limit: crate::Limit::Seconds(60),
            ..Job::default()
        }
    }

    #[test]
    fn associations_have_limits_that_hold_below_them() {
        let mut limits =
            Limits { users: [("ann".to_owned(), 1), ("bob".to_owned(), 2)].into(), ..Limits::default() };
        limits.add_associations(ASSOCIATIONS);
        let jobs = [
            job("1", 1, "lasers", "batch"),
            job("2", 2, "lasers", "batch"),
            job("3", 2, "lasers", "fast"),
            job("4", 1, "chemistry", "batch"),
            job("5", 3, "physics", "batch"),
        ];
        let jobs: Vec<&Job> = jobs.iter().collect();
        let cluster = Cluster::default();
        let all = cluster.live_limits(&limits, &jobs);
        let shown: Vec<(String, &str, u64, String)> = all
            .iter()
            .map(|limit| {
                let jobs: Vec<&str> = limit.jobs.iter().copied().collect();
                (limit.whose.clone(), limit.name, limit.most, jobs.join(" "))
            })
            .collect();
        let expected = [
            ("the account physics", "jobs", 10, "1 2 3 5"),
            ("the account physics", "procs", 100, "1 2 3 5"),
            ("the account physics", "gpus", 4, "1 2 3 5"),
            ("the user ann in the account lasers", "jobs", 2, "1"),
            ("the user bob in the account lasers", "jobs", 1, "2"),
        ];
        assert_eq!(
            shown,
            expected.map(|(whose, name, most, jobs)| (whose.to_owned(), name, most, jobs.to_owned()))
        );
        let NumberedJobs { numbers, limits: written, .. } =
            numbered(&all, jobs.iter().map(|job| (job.id.as_str(), None)));
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), [("1", 1), ("2", 2), ("3", 3), ("5", 3)]);
        assert_eq!(
            written.as_deref(),
            Some("1+2+3: jobs=10; 1+2+3: procs=100; 1+2+3: gpus=4; 1: jobs=2; 2: jobs=1")
        );
    }

    /// A user has an association for each partition of some, and another one for all other partitions.
    #[test]
    fn a_job_counts_for_one_association_of_its_user() {
        let lines = "lab|||root|9||\nlab|ann|||||5\nlab|ann|gpu||||1\nlab|ann|long||||\n";
        let mut limits = Limits { users: [("ann".to_owned(), 1)].into(), ..Limits::default() };
        limits.add_associations(lines);
        let jobs = ["batch", "gpu", "long"].map(|partition| job(partition, 1, "lab", partition));
        let jobs: Vec<&Job> = jobs.iter().collect();
        let all = Cluster::default().live_limits(&limits, &jobs);
        let counted = all.iter().map(|limit| {
            let jobs: Vec<&str> = limit.jobs.iter().copied().collect();
            (limit.most, jobs.join(" "))
        });
        let expected = [(9, "batch gpu long"), (5, "batch"), (1, "gpu")];
        assert_eq!(counted.collect::<Vec<_>>(), expected.map(|(most, jobs)| (most, jobs.to_owned())));
        // The same by the numbers of associations, in the twin.
        let tree = "root||||0\n lab|||1|0\n  lab|ann||1|0\n  lab|ann|gpu|1|0\n  lab|ann|long|1|0\n";
        let associations = Associations::parse(tree).unwrap();
        let groups = limits.associations.iter().map(|one| limits.groups_of(one, &associations).join("+"));
        assert_eq!(groups.collect::<Vec<_>>(), ["g1+g2+g3", "g1", "g2"]);
    }

    #[test]
    fn a_limit_that_is_not_simulated_may_hold_up_jobs() {
        let running = |job: Job| Job { state: JobState::Running, ..job };
        let with = |gres: &str, job: Job| Job { gres: Some(gres.to_owned()), nodes: 2, ..job };
        let jobs = [
            running(with("gres/gpu:a100:1", job("1", 1, "physics", "batch"))),
            with("gres/gpu:a100:1", job("2", 1, "physics", "batch")),
            with("gres/gpu:t4:1", job("3", 1, "physics", "batch")),
            job("4", 2, "physics", "batch"),
        ];
        let jobs: Vec<&Job> = jobs.iter().collect();
        let found = |lines: &str| {
            let mut limits = Limits::default();
            limits.add_associations(lines);
            let found = Cluster::default().unknown_limits(&limits, &BTreeMap::new(), &jobs);
            found.into_iter().map(|(id, why)| format!("{id}: {why}")).collect::<Vec<_>>().join("\n")
        };
        assert_eq!(
            found("physics|||root||gres/gpu:a100=3|\n"),
            "2: it may wait for a limit of the account physics that is not simulated (GrpTRES=gres/gpu:a100=3)"
        );
        // The two jobs have four of them together.
        assert_eq!(found("physics|||root||gres/gpu:a100=4|\n"), "");
        assert_eq!(found("physics|||root||node=5|\n").lines().count(), 3);
        assert_eq!(found("physics|||root||node=9,gres/nic=0|\n"), "");
        assert_eq!(found("physics|||root||gres/t4=1|\n").lines().count(), 1);
        assert_eq!(found("physics|||root||billing=99|\n").lines().count(), 3);
        // Four jobs of four processors for a minute each, and one at a time.
        let run = "GrpTRESRunMins=cpu=15";
        let of_account = |limit: &str| {
            format!("2: it may wait for a limit of the account physics that is not simulated ({limit})")
        };
        assert_eq!(found("physics|||root|||||cpu=15||\n").lines().next(), Some(&*of_account(run)));
        assert_eq!(found("physics|||root|||||cpu=16||\n"), "");
        assert_eq!(found("physics|||root|||||||cpu=3\n").lines().count(), 3);
        assert_eq!(found("physics|||root|||||||cpu=4\n"), "");
        // What was used is not known.
        assert_eq!(found("physics|||root||||cpu=999|||\n").lines().count(), 3);
        assert_eq!(found("physics|||root||||||1-00:00:00|\n").lines().count(), 3);
    }

    #[test]
    fn what_was_used_counts_for_a_limit_of_a_sum() {
        let shown = "Association Records\n\nClusterName=test Account=lab UserName= Partition= Priority=0 ID=1\n    \
            GrpSubmitJobs=N(0) GrpWall=90(51.40)\n    GrpTRESMins=cpu=1000(984),mem=N(7)\n\
            ClusterName=test Account=lab UserName=ann(1) Partition= Priority=0 ID=2\n    GrpTRESMins=cpu=50(3)\n\
            QOS=long(2)\n    GrpTRESMins=cpu=9(8)\n";
        let used = used_minutes(shown);
        let of = |owner: &str, limit: &str| used.get(&(owner.to_owned(), limit.to_owned())).copied();
        assert_eq!(of("the account lab", "GrpTRESMins=cpu"), Some(984));
        assert_eq!(of("the account lab", "GrpWall"), Some(52));
        assert_eq!(of("the user ann in the account lab", "GrpTRESMins=cpu"), Some(3));
        assert_eq!(of("the quality of service long", "GrpTRESMins=cpu"), Some(8));
        let jobs = ["1", "2", "3", "4"].map(|id| job(id, 1, "lab", "batch"));
        let jobs: Vec<&Job> = jobs.iter().collect();
        // They may use 16 more.
        for (most, waiting) in [(999, 4), (1000, 0)] {
            let mut limits = Limits { used: used.clone(), ..Limits::default() };
            limits.add_associations(&format!("lab|||root||||cpu={most}|||\n"));
            let found = Cluster::default().unknown_limits(&limits, &BTreeMap::new(), &jobs);
            assert_eq!(found.len(), waiting, "{most}");
        }
    }

    #[test]
    fn an_array_has_a_limit_of_its_own() {
        let task =
            |id: &str, number: u64| Job { array: Some((number, "1".to_owned())), ..job(id, 1, "x", "batch") };
        let jobs = [task("7_1", 7), task("7_2", 7), task("8_1", 8)];
        let with = |limit| Detail { array_limit: limit, ..Detail::default() };
        let details = [("7_1", with(None)), ("7_2", with(Some(2))), ("8_1", with(Some(0)))];
        let details = details.map(|(id, detail)| (id.to_owned(), detail)).into();
        let jobs: Vec<&Job> = jobs.iter().collect();
        let limits = array_limits(&details, &jobs);
        assert_eq!((limits.len(), limits[0].most, limits[0].jobs.len()), (1, 2, 2));
        assert_eq!(limits[0].words(), "the array 7 may have 2 jobs at a time");
    }

    #[test]
    fn a_quality_comes_before_an_association_and_that_of_a_partition_is_first() {
        let quality = |name: &str, known: &[(&'static str, u64)]| Quality {
            name: name.to_owned(),
            limits: QualityLimits { known: known.to_vec(), others: vec![] },
            ..Quality::default()
        };
        let mut limits = Limits {
            qualities: vec![
                quality("small", &[("jobs", 3), ("user_jobs", 1)]),
                quality("part", &[("jobs", 5)]),
            ],
            ..Limits::default()
        };
        limits.add_associations("physics|||root|10||\n");
        let of_quality = |job: Job| Job { qos: Some("small".to_owned()), ..job };
        let jobs = [
            of_quality(job("1", 1, "physics", "batch")),
            of_quality(job("2", 1, "physics", "fast")),
            job("3", 1, "physics", "batch"),
        ];
        let mut cluster = Cluster::default();
        for (name, quality) in [("batch", None), ("fast", Some("part".to_owned()))] {
            let partition =
                crate::Partition { state: "up".to_owned(), quality, ..crate::Partition::default() };
            cluster.partitions.insert(name.to_owned(), partition);
        }
        let all = cluster.live_limits(&limits, &jobs.iter().collect::<Vec<_>>());
        let shown: Vec<(u64, &str, String)> = all
            .iter()
            .map(|limit| (limit.most, limit.name, limit.jobs.iter().copied().collect::<Vec<_>>().join(" ")))
            .collect();
        let expected = [(3, "jobs", "1"), (1, "user_jobs", "1 2"), (5, "jobs", "2"), (10, "jobs", "3")];
        assert_eq!(shown, expected.map(|(most, name, jobs)| (most, name, jobs.to_owned())));
    }
}
