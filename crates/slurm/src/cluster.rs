//! The state of a cluster at one instant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::time::Duration;

use miserly_core::{Span, Time};
use miserly_policies::shared::Computations;
use serde::{Deserialize, Serialize};

use crate::command::Answer;
use crate::fields::Fields;
use crate::{Slurm, SlurmError, gpus, hosts};

/// The separator of the columns of `squeue`. The name of a job may contain it, and is last.
const SEPARATOR: char = '|';

/// The columns of `squeue`, as [`Job::parse`] reads them.
const COLUMNS: &str = "%i|%A|%F|%K|%P|%T|%U|%C|%D|%m|%l|%V|%S|%e|%Q|%r|%a|%q|%v|%b|%N|%E|%j";

/// A cluster, as its controller showed it.
///
/// It is read by several commands, one after the other, jobs last. So a job may be on a node that was idle a moment before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// The configuration.
    pub configuration: Configuration,
    /// The nodes, by name.
    pub nodes: BTreeMap<String, Node>,
    /// The partitions, by name.
    pub partitions: BTreeMap<String, Partition>,
    /// The reservations, by name.
    pub reservations: BTreeMap<String, Reservation>,
    /// The jobs that have not ended, by name ([`Job::id`]). Each task of an array is one.
    pub jobs: BTreeMap<String, Job>,
}

/// The configuration of a cluster, as far as it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Configuration {
    /// The name of the cluster.
    pub cluster: String,
    /// The version of the controller.
    pub version: String,
    /// The time of the controller, seconds since 1970.
    pub now: i64,
    /// The scheduler: `sched/backfill` or `sched/builtin`.
    pub scheduler: String,
    /// The parameters of the scheduler.
    pub scheduler_parameters: Option<String>,
    /// The kind of priorities: `priority/basic` or `priority/multifactor`.
    pub priority: String,
    /// The weights of the priorities, by name, as Slurm writes them.
    pub weights: BTreeMap<String, String>,
    /// The age, in seconds, from which on the priority grows no more.
    pub oldest: Option<u64>,
    /// The seconds between two computations of the priorities, and an instant of one: the start of the controller, in seconds since
    /// 1970.
    pub computations: Option<(u64, i64)>,
    /// The age at which usage counts half, seconds; 0: it counts for ever.
    pub half_life: u64,
    /// How often all usage is forgotten, if it is.
    pub usage_reset: Option<String>,
    /// Whether the limits of associations are enforced (`AccountingStorageEnforce`). Only then usage counts to the end of a job.
    pub enforces_limits: bool,
    /// Whether small jobs have the higher priority.
    pub favours_small: bool,
    /// The flags of the priorities, if any.
    pub priority_flags: Option<String>,
    /// How jobs are preempted, if they are.
    pub preemption: Option<String>,
    /// The unit of allocation: whole nodes, or parts of them.
    pub select: String,
    /// The accounted resources of a node, such as `CR_CORE_MEMORY`.
    pub select_parameters: Option<String>,
    /// The number above all numbers of tasks of an array.
    pub array_size: u64,
    /// The time that jobs get beyond their limits before they are ended, in seconds; none without a limit.
    pub over_limit: Option<u64>,
    /// The time between that and their being killed, in seconds.
    pub kill_wait: u64,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The states, in lower case: the base state, and then flags such as `drain`.
    pub states: Vec<String>,
    /// Processors for jobs.
    pub cpus: u64,
    /// Processors of jobs.
    pub cpus_used: u64,
    /// Memory, MiB.
    pub memory: u64,
    /// Memory of jobs, MiB.
    pub memory_used: u64,
    /// Processors of a core.
    pub threads: u64,
    /// Generic resources, such as GPUs, as Slurm writes them.
    pub gres: Option<String>,
    /// The features.
    pub features: Vec<String>,
    /// The partitions.
    pub partitions: Vec<String>,
}

/// A partition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// Whether jobs without a partition go there.
    pub is_default: bool,
    /// Whether it takes jobs and starts them.
    pub state: String,
    /// The nodes.
    pub nodes: Vec<String>,
    /// The longest time limit.
    pub longest: Limit,
    /// Jobs of a higher tier go first.
    pub tier: u64,
    /// Its part in the priorities of its jobs, in proportion to those of other partitions.
    pub job_factor: u64,
    /// Whether jobs share processors.
    pub shares: String,
}

/// A time limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// None.
    #[default]
    Unlimited,
    /// A number of seconds.
    Seconds(u64),
}

impl Limit {
    /// Returns the longest runtime in seconds: at most a year, also without a limit.
    pub fn seconds(self) -> i64 {
        const LONGEST: i64 = 365 * 86_400;
        match self {
            Limit::Unlimited => LONGEST,
            Limit::Seconds(seconds) => i64::try_from(seconds).unwrap_or(LONGEST).min(LONGEST),
        }
    }
}

/// An amount of memory, MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Amount {
    /// On each node.
    PerNode(u64),
    /// For each processor.
    PerCpu(u64),
}

/// A reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reservation {
    /// The begin, seconds since 1970.
    pub begin: i64,
    /// The end, seconds since 1970.
    pub end: i64,
    /// The nodes.
    pub nodes: Vec<String>,
    /// The flags.
    pub flags: Vec<String>,
    /// The users of it, as Slurm writes them.
    pub users: Option<String>,
    /// The accounts that may use it.
    pub accounts: Option<String>,
}

/// The state of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// It waits.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It was stopped, and holds its nodes but not its processors.
    Suspended,
    /// It starts or ends: another state of Slurm, in lower case. It holds its nodes.
    Other(String),
}

/// A job that has not ended. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Job {
    /// The name that it keeps: its number, or those of its array and its task, such as `17_3`.
    pub id: String,
    /// The number. Waiting tasks of an array share one.
    pub number: u64,
    /// The number of its array, and its place there.
    pub array: Option<(u64, String)>,
    /// The name.
    pub name: String,
    /// The partitions in which it may run.
    pub partitions: Vec<String>,
    /// The state.
    pub state: JobState,
    /// The user, by number.
    pub user: u32,
    /// The account.
    pub account: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// The processors.
    pub cpus: u64,
    /// The number of nodes.
    pub nodes: u64,
    /// The memory that it needs.
    pub memory: Option<Amount>,
    /// Generic resources for each node, as Slurm writes them.
    pub gres: Option<String>,
    /// The time limit.
    pub limit: Limit,
    /// The submission.
    pub submitted: i64,
    /// The start; of a waiting job, the one that Slurm expects.
    pub start: Option<i64>,
    /// The end by its time limit.
    pub end: Option<i64>,
    /// The priority. 0: it is held.
    pub priority: u64,
    /// Why it waits, in Slurm's word.
    pub reason: Option<String>,
    /// The reservation that it uses.
    pub reservation: Option<String>,
    /// The nodes that it has.
    pub on: Vec<String>,
    /// The jobs for which it waits, as Slurm writes it.
    pub after: Option<String>,
}

impl Configuration {
    /// Returns the instants at which Slurm counts usage and computes the priorities, with times since 1970.
    pub fn priority_computations(&self) -> Option<Computations> {
        let (period, boot) = self.computations?;
        let period = Span::from_secs(i64::try_from(period).ok()?)?;
        Some(Computations { period, first: Time::from_secs(boot)? })
    }

    /// Returns whether jobs have a part of the memory of their nodes (`SelectTypeParameters`).
    pub fn counts_memory(&self) -> bool {
        self.select_parameters.as_deref().is_some_and(|parameters| parameters.contains("MEMORY"))
    }
}

impl Cluster {
    /// Reads the state of a cluster.
    ///
    /// # Errors
    /// If a command cannot be run, fails, or prints something unknown.
    pub fn read(slurm: &Slurm) -> Result<Cluster, SlurmError> {
        Cluster::timed(slurm).map(|(cluster, _)| cluster)
    }

    /// Checks that a partition is there.
    ///
    /// # Errors
    /// [`SlurmError::NoPartition`].
    pub fn check_partition(&self, partition: &str) -> Result<(), SlurmError> {
        if self.partitions.contains_key(partition) {
            return Ok(());
        }
        let known = self.partitions.keys().cloned().collect();
        Err(SlurmError::NoPartition { partition: partition.to_owned(), known })
    }

    /// Returns the starts of jobs that have ended lately, as far as the controller remembers them.
    pub fn starts(slurm: &Slurm, jobs: &[String]) -> BTreeMap<String, i64> {
        let arguments = ["-a", "-h", "-r", "-t", "all", "-o", "%i|%S|%N", "-j", &jobs.join(",")];
        let Ok(answer) = slurm.ask("squeue", &arguments) else {
            // It refuses a list with a job that it has forgotten.
            let each = |job: &String| Cluster::starts(slurm, std::slice::from_ref(job));
            return if jobs.len() > 1 { jobs.iter().flat_map(each).collect() } else { BTreeMap::new() };
        };
        let start = |line: &str| {
            let mut values = line.split(SEPARATOR).map(str::trim);
            let (id, start, on) = (values.next()?, values.next()?, values.next()?);
            // A job that was cancelled in the queue has had no node.
            present(on)?;
            Some((id.to_owned(), start.parse().ok()?))
        };
        answer.text.lines().filter_map(start).collect()
    }

    /// Reads the state, and returns the time that it took.
    pub(crate) fn timed(slurm: &Slurm) -> Result<(Cluster, Duration), SlurmError> {
        let asked = slurm.ask("scontrol", &["show", "config"])?;
        let configuration = Configuration::parse(&asked.text)?;
        configuration.check_version()?;
        let nodes = slurm.ask("scontrol", &["-a", "-o", "show", "node"])?;
        let partitions = slurm.ask("scontrol", &["-a", "-o", "show", "partition"])?;
        let reservations = slurm.ask("scontrol", &["-a", "-o", "show", "reservation"])?;
        let (jobs, took_for_jobs) = Cluster::timed_jobs(slurm)?;
        let answers = [&asked, &nodes, &partitions, &reservations];
        let took = took_for_jobs + answers.iter().map(|answer| answer.took).sum::<Duration>();
        let cluster = Cluster {
            configuration,
            nodes: named(&nodes, Node::parse)?,
            partitions: named(&partitions, Partition::parse)?,
            reservations: named(&reservations, Reservation::parse)?,
            jobs,
        };
        Ok((cluster, took))
    }

    /// Reads the jobs that have not ended, with their comments, in the order of their numbers.
    ///
    /// # Errors
    /// As [`read`](Cluster::read).
    pub fn jobs_with_comments(slurm: &Slurm) -> Result<Vec<(Job, Option<String>)>, SlurmError> {
        let (jobs, _) = Cluster::timed_jobs(slurm)?;
        let mark = mark()?;
        let answer = slurm.ask("squeue", &["-a", "-h", "-r", "-o", &format!("{mark}%i|%k")])?;
        let mut comments: BTreeMap<String, String> = BTreeMap::new();
        for line in answer.text.lines().filter_map(|line| line.strip_prefix(&mark)) {
            if let Some((id, comment)) = line.split_once(SEPARATOR)
                && let Some(comment) = present(comment)
            {
                comments.insert(id.trim().to_owned(), comment.to_owned());
            }
        }
        let mut all: Vec<_> = jobs
            .into_values()
            .map(|job| (comments.remove(&job.id), job))
            .map(|(comment, job)| (job, comment))
            .collect();
        all.sort_by_key(|(job, _)| job.order());
        Ok(all)
    }

    /// Reads the jobs, and returns the time that it took.
    pub(crate) fn timed_jobs(slurm: &Slurm) -> Result<(BTreeMap<String, Job>, Duration), SlurmError> {
        let mark = mark()?;
        let answer = slurm.ask("squeue", &["-a", "-h", "-r", "-o", &format!("{mark}{COLUMNS}")])?;
        let lines = marked(&answer.text, &mark);
        let jobs =
            lines.map(|line| Job::parse(line).map(|job| (job.id.clone(), job))).collect::<Result<_, _>>()?;
        Ok((jobs, answer.took))
    }
}

/// Returns a mark that cannot be foreseen.
fn mark() -> Result<String, SlurmError> {
    let mut bytes = [0; 8];
    let read = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| SlurmError::Program { program: "/dev/urandom".to_owned(), error })?;
    Ok(format!("{:016x}{SEPARATOR}", u64::from_le_bytes(bytes)))
}

/// Returns the records of an answer, each of which begins with a mark.
///
/// The name at the end of a record may have line breaks, and lines that look like a job.
fn marked<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(mark).skip(1).map(|record| record.strip_suffix('\n').unwrap_or(record))
}

/// Returns the things of the lines that begin with their names.
fn named<T>(
    answer: &Answer,
    parse: impl Fn(Fields<'_>) -> Result<(String, T), SlurmError>,
) -> Result<BTreeMap<String, T>, SlurmError> {
    let lines = answer.text.lines().map(str::trim).filter(|line| line.contains('='));
    lines.map(|line| parse(Fields::new("scontrol", line))).collect()
}

impl Configuration {
    fn parse(text: &str) -> Result<Configuration, SlurmError> {
        let fields = Fields::new("scontrol", text);
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('='));
            line.map(str::trim).filter(|value| *value != "(null)").map(str::to_owned)
        };
        let required = |key: &str| value(key).ok_or_else(|| fields.unreadable(format!("no {key}")));
        let seconds = |key: &str| match value(key).as_deref().and_then(limit)? {
            Limit::Seconds(seconds) => Some(seconds),
            Limit::Unlimited => None,
        };
        let now = text.lines().next().and_then(|line| line.rsplit(' ').next()?.parse().ok());
        Ok(Configuration {
            cluster: required("ClusterName")?,
            version: required("SLURM_VERSION")?,
            now: now.ok_or_else(|| fields.unreadable("no time".to_owned()))?,
            scheduler: required("SchedulerType")?,
            scheduler_parameters: value("SchedulerParameters"),
            priority: required("PriorityType")?,
            weights: text.lines().filter_map(weight).collect(),
            oldest: seconds("PriorityMaxAge"),
            computations: seconds("PriorityCalcPeriod")
                .filter(|period| *period > 0)
                .zip(value("BOOT_TIME").and_then(|boot| boot.parse().ok())),
            half_life: seconds("PriorityDecayHalfLife").unwrap_or(0),
            usage_reset: value("PriorityUsageResetPeriod")
                .filter(|period| !period.eq_ignore_ascii_case("none")),
            enforces_limits: value("AccountingStorageEnforce")
                .is_some_and(|what| what.contains("limits") || what.contains("safe")),
            favours_small: value("PriorityFavorSmall").is_some_and(|value| value.eq_ignore_ascii_case("yes")),
            priority_flags: value("PriorityFlags").filter(|flags| !flags.is_empty()),
            preemption: value("PreemptType").filter(|kind| !kind.is_empty() && !kind.ends_with("none")),
            select: required("SelectType")?,
            select_parameters: value("SelectTypeParameters").map(|text| text.to_uppercase()),
            array_size: value("MaxArraySize").as_deref().and_then(first_number).unwrap_or(1001),
            over_limit: match value("OverTimeLimit").as_deref().and_then(first_number) {
                Some(minutes) => Some(minutes * 60),
                None if value("OverTimeLimit").as_deref() == Some("UNLIMITED") => None,
                None => Some(0),
            },
            kill_wait: value("KillWait").as_deref().and_then(first_number).unwrap_or(30),
        })
    }
}

/// Returns the number of a value such as `30 sec`.
fn first_number(text: &str) -> Option<u64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Returns the weight of a priority in a line of the configuration.
fn weight(line: &str) -> Option<(String, String)> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    (key.starts_with("PriorityWeight") && value != "(null)").then(|| (key.to_owned(), value.to_owned()))
}

impl Node {
    fn parse(fields: Fields<'_>) -> Result<(String, Node), SlurmError> {
        let node = Node {
            states: words(fields.required("State")?, ['+', '*']),
            cpus: fields.number("CPUEfctv").or_else(|_| fields.number("CPUTot"))?,
            cpus_used: fields.number("CPUAlloc")?,
            memory: fields.number("RealMemory")?,
            memory_used: fields.number("AllocMem")?,
            threads: fields.number("ThreadsPerCore").unwrap_or(1).max(1),
            gres: fields.get("Gres").map(str::to_owned),
            features: fields.get("ActiveFeatures").map(|list| words(list, [',', ','])).unwrap_or_default(),
            partitions: parts(fields.get("Partitions")),
        };
        Ok((fields.required("NodeName")?.to_owned(), node))
    }

    /// Returns its GPUs.
    pub fn gpus(&self) -> u64 {
        self.gres.as_deref().map_or(0, gpus)
    }

    /// Returns whether jobs can start there.
    pub fn is_usable(&self) -> bool {
        let states: BTreeSet<&str> = self.states.iter().map(String::as_str).collect();
        let out = [
            "down",
            "drain",
            "drained",
            "draining",
            "fail",
            "failing",
            "error",
            "unknown",
            "future",
            "maint",
            "not_responding",
            "powering_down",
            "reboot_issued",
            "no_respond",
            "invalid_reg",
            "blocked",
        ];
        !out.iter().any(|state| states.contains(state))
    }
}

impl Partition {
    fn parse(fields: Fields<'_>) -> Result<(String, Partition), SlurmError> {
        let list = fields.get("Nodes").unwrap_or_default();
        let partition = Partition {
            is_default: fields.get("Default") == Some("YES"),
            state: fields.required("State")?.to_lowercase(),
            nodes: hosts(list).map_err(|error| fields.unreadable(error.to_string()))?,
            longest: limit(fields.required("MaxTime")?)
                .ok_or_else(|| fields.unreadable("MaxTime".to_owned()))?,
            tier: fields.number("PriorityTier")?,
            job_factor: fields.number("PriorityJobFactor").unwrap_or(1),
            shares: fields.get("OverSubscribe").unwrap_or("NO").to_lowercase(),
        };
        Ok((fields.required("PartitionName")?.to_owned(), partition))
    }
}

impl Reservation {
    fn parse(fields: Fields<'_>) -> Result<(String, Reservation), SlurmError> {
        let time = |key: &str| {
            let text = fields.required(key)?;
            text.parse().map_err(|_| fields.unreadable(format!("{key} is no time")))
        };
        let list = fields.get("Nodes").unwrap_or_default();
        let reservation = Reservation {
            begin: time("StartTime")?,
            end: time("EndTime")?,
            nodes: hosts(list).map_err(|error| fields.unreadable(error.to_string()))?,
            flags: fields.get("Flags").map(|list| words(list, [',', ','])).unwrap_or_default(),
            users: fields.get("Users").map(str::to_owned),
            accounts: fields.get("Accounts").map(str::to_owned),
        };
        Ok((fields.required("ReservationName")?.to_owned(), reservation))
    }
}

impl Job {
    /// Returns the job of a line of `squeue` with [`COLUMNS`].
    fn parse(line: &str) -> Result<Job, SlurmError> {
        let columns = COLUMNS.split(SEPARATOR).count();
        let mut values: Vec<&str> = line.splitn(columns, SEPARATOR).collect();
        // The name is as its user wrote it.
        if let Some((_, others)) = values.split_last_mut() {
            for value in others {
                *value = value.trim();
            }
        }
        let unreadable = |problem: &str| SlurmError::Unreadable {
            program: "squeue".to_owned(),
            problem: problem.to_owned(),
            line: line.chars().take(200).collect(),
        };
        let [
            id,
            number,
            array,
            place,
            partitions,
            state,
            user,
            cpus,
            nodes,
            memory,
            time,
            submitted,
            start,
            end,
            priority,
            reason,
            account,
            qos,
            reservation,
            gres,
            on,
            after,
            name,
        ] = values[..]
        else {
            return Err(unreadable("too few columns"));
        };
        let natural = |text: &str, what: &str| text.parse::<u64>().map_err(|_| unreadable(what));
        let number = natural(number, "no job number")?;
        let array = array.parse().ok().filter(|_| present(place).is_some());
        let instant = |text: &str| text.parse::<i64>().ok();
        Ok(Job {
            id: present(id).ok_or_else(|| unreadable("no job"))?.to_owned(),
            number,
            array: array.map(|array| (array, place.to_owned())),
            name: name.to_owned(),
            partitions: parts(Some(partitions)),
            state: JobState::parse(state),
            user: user.parse().map_err(|_| unreadable("no user"))?,
            account: present(account).map(str::to_owned),
            qos: present(qos).map(str::to_owned),
            cpus: natural(cpus, "no number of processors")?,
            nodes: natural(nodes, "no number of nodes")?,
            memory: amount(memory),
            gres: present(gres).map(str::to_owned),
            limit: limit(time).ok_or_else(|| unreadable("no time limit"))?,
            submitted: instant(submitted).ok_or_else(|| unreadable("no submission"))?,
            start: instant(start),
            end: instant(end),
            priority: natural(priority, "no priority")?,
            reason: present(reason).map(str::to_owned),
            reservation: present(reservation).map(str::to_owned),
            on: hosts(present(on).unwrap_or_default()).map_err(|_| unreadable("no list of hosts"))?,
            after: present(after).map(str::to_owned),
        })
    }

    /// Returns the place of its name among others.
    pub fn order(&self) -> (u64, u64) {
        let number = |text: &str| text.parse().unwrap_or(0);
        self.id.split_once('_').map_or((number(&self.id), 0), |(array, task)| (number(array), number(task)))
    }

    /// Returns whether it waits, for nothing else than processors.
    pub fn waits_for_processors(&self) -> bool {
        let reason = self.reason.as_deref().unwrap_or_default();
        // Further words follow the reason of nodes: which they are, or that they are reserved.
        let only = matches!(reason, "" | "Priority" | "Resources" | "Cleaning")
            || reason.starts_with("ReqNodeNotAvail");
        self.state == JobState::Pending && !self.is_held() && self.reservation.is_none() && only
    }

    /// Returns whether it waits for its release.
    pub fn is_held(&self) -> bool {
        self.state == JobState::Pending && self.priority == 0
    }
}

impl JobState {
    fn parse(word: &str) -> JobState {
        match word {
            "PENDING" => JobState::Pending,
            "RUNNING" => JobState::Running,
            "SUSPENDED" => JobState::Suspended,
            other => JobState::Other(other.to_lowercase()),
        }
    }

    /// Returns the word for it.
    pub fn as_str(&self) -> &str {
        match self {
            JobState::Pending => "pending",
            JobState::Running => "running",
            JobState::Suspended => "suspended",
            JobState::Other(word) => word,
        }
    }
}

/// Returns a value, unless it stands for none.
fn present(text: &str) -> Option<&str> {
    (!matches!(text, "" | "(null)" | "N/A" | "None" | "NONE")).then_some(text)
}

/// Returns the names of a list with commas.
fn parts(list: Option<&str>) -> Vec<String> {
    list.unwrap_or_default().split(',').filter_map(present).map(str::to_owned).collect()
}

/// Returns the words of a list in lower case.
fn words(list: &str, separators: [char; 2]) -> Vec<String> {
    list.split(separators).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

/// Returns a time limit: `UNLIMITED`, or `[DAYS-]HOURS:MINUTES:SECONDS` of which the first parts may lack.
fn limit(text: &str) -> Option<Limit> {
    if matches!(text, "UNLIMITED" | "INFINITE" | "NOT_SET" | "Partition_Limit") {
        return Some(Limit::Unlimited);
    }
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let mut seconds = 0_u64;
    for part in clock.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    // `1-12` is a day and twelve hours.
    if text.contains('-') {
        let missing = 3_u32.checked_sub(u32::try_from(clock.split(':').count()).ok()?)?;
        seconds = seconds.checked_mul(60_u64.checked_pow(missing)?)?;
    }
    let days: u64 = days.parse().ok()?;
    days.checked_mul(86_400)?.checked_add(seconds).map(Limit::Seconds)
}

/// Returns an amount of memory, such as `4000M`, `62.50G` or `2Gc`. 0 is none: the whole node, where memory counts.
fn amount(text: &str) -> Option<Amount> {
    let (text, kind) = match text.strip_suffix('c') {
        Some(text) => (text, Amount::PerCpu as fn(u64) -> Amount),
        None => (text.strip_suffix('n').unwrap_or(text), Amount::PerNode as fn(u64) -> Amount),
    };
    let split = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let kibi = match unit {
        "K" => 1.0,
        "M" | "" => 1024.0,
        "G" => 1024.0 * 1024.0,
        "T" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
    let mebi = (number * kibi / 1024.0).ceil() as u64;
    (mebi > 0).then(|| kind(mebi))
}

/// A difference between two states of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// A job is new.
    Submitted {
        /// The job.
        job: String,
    },
    /// The state of a job changed.
    State {
        /// The job.
        job: String,
        /// The state before.
        from: JobState,
        /// The state now.
        to: JobState,
    },
    /// Something else of a job changed: its limit, its priority, its nodes.
    Updated {
        /// The job.
        job: String,
    },
    /// A job is gone: it ended, or was cancelled.
    Gone {
        /// The job.
        job: String,
        /// Its last state.
        from: JobState,
    },
    /// A node changed whether jobs can start there, or is new or gone.
    Node {
        /// The node.
        node: String,
        /// Whether jobs can start there now.
        usable: bool,
    },
}

/// Returns the changes from one state to the next: jobs by number, then nodes by name.
pub fn changes(before: &Cluster, after: &Cluster) -> Vec<Change> {
    let mut changes = vec![];
    let jobs: BTreeSet<&String> = before.jobs.keys().chain(after.jobs.keys()).collect();
    for number in jobs {
        let job = number.clone();
        // The expected start of a waiting job changes all the time.
        let known = |job: &Job| {
            let waits = job.state == JobState::Pending;
            let (start, end) = if waits { (None, None) } else { (job.start, job.end) };
            Job { start, end, reason: None, ..job.clone() }
        };
        match (before.jobs.get(number), after.jobs.get(number)) {
            (None, Some(_)) => changes.push(Change::Submitted { job }),
            (Some(old), None) => changes.push(Change::Gone { job, from: old.state.clone() }),
            (Some(old), Some(new)) if old.state != new.state => {
                changes.push(Change::State { job, from: old.state.clone(), to: new.state.clone() });
            }
            (Some(old), Some(new)) if known(old) != known(new) => changes.push(Change::Updated { job }),
            _ => {}
        }
    }
    let nodes: BTreeSet<&String> = before.nodes.keys().chain(after.nodes.keys()).collect();
    for node in nodes {
        let usable = |cluster: &Cluster| cluster.nodes.get(node).map(Node::is_usable);
        let (old, new) = (usable(before), usable(after));
        if old != new {
            changes.push(Change::Node { node: node.clone(), usable: new.unwrap_or(false) });
        }
    }
    changes
}

mod detail;

pub(crate) use detail::allocated;
pub use detail::{Allocated, Detail};

#[cfg(test)]
mod tests;
