//! Nodes, their partitions and their reservations.

use serde::Serialize;

use super::values::{Amount, Limit, default_memory, limit, parts, words};
use crate::fields::Fields;
use crate::{SlurmError, gpus, hosts};

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
    /// The weight: a job has the nodes of the lowest one.
    pub weight: u64,
    /// Generic resources, such as GPUs, as Slurm writes them.
    pub gres: Option<String>,
    /// The features.
    pub features: Vec<String>,
    /// The partitions.
    pub partitions: Vec<String>,
}

impl Node {
    pub(crate) fn parse(fields: Fields<'_>) -> Result<(String, Node), SlurmError> {
        let node = Node {
            states: words(fields.required("State")?, ['+', '*']),
            cpus: fields.number("CPUEfctv").or_else(|_| fields.number("CPUTot"))?,
            cpus_used: fields.number("CPUAlloc")?,
            memory: fields.number("RealMemory")?,
            memory_used: fields.number("AllocMem")?,
            threads: fields.number("ThreadsPerCore").unwrap_or(1).max(1),
            weight: fields.number("Weight").unwrap_or(1),
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
        self.is_usable_after_maintenance() && !self.has_state(MAINTENANCE)
    }

    /// Returns whether jobs can start there, or could if it were not in maintenance.
    pub fn is_usable_after_maintenance(&self) -> bool {
        !OUT.iter().any(|state| self.has_state(state))
    }

    fn has_state(&self, state: &str) -> bool {
        self.states.iter().any(|other| other == state)
    }
}

/// The state of a node in a reservation for maintenance.
const MAINTENANCE: &str = "maint";

/// The other states in which no job can start on a node.
const OUT: [&str; 15] = [
    "down",
    "drain",
    "drained",
    "draining",
    "fail",
    "failing",
    "error",
    "unknown",
    "future",
    "not_responding",
    "powering_down",
    "reboot_issued",
    "no_respond",
    "invalid_reg",
    "blocked",
];

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
    /// The memory of a job that asks for none, if it is another one than that of the cluster.
    pub default_memory: Option<Amount>,
    /// The quality of service whose limits hold for all of its jobs.
    pub quality: Option<String>,
    /// What each resource of its jobs costs (`TRESBillingWeights`), if it is not their processors.
    pub billing_weights: Option<String>,
    /// What becomes of its jobs that are preempted (`PreemptMode`).
    pub preempt_mode: Option<String>,
    /// The seconds that they have then.
    pub grace: u64,
}

impl Partition {
    pub(crate) fn parse(fields: Fields<'_>) -> Result<(String, Partition), SlurmError> {
        let list = fields.get("Nodes").unwrap_or_default();
        let partition = Partition {
            is_default: fields.get("Default") == Some("YES"),
            state: fields.required("State")?.to_lowercase(),
            nodes: hosts(list).map_err(|error| fields.unreadable(error.to_string()))?,
            longest: limit(fields.required("MaxTime")?)
                .ok_or_else(|| fields.unreadable("MaxTime".to_owned()))?,
            tier: fields.number("PriorityTier")?,
            job_factor: fields.number("PriorityJobFactor").unwrap_or(1),
            // Since 26.05 a partition of whole nodes has `OverSubscribe=NO Exclusive=NODE`.
            shares: match fields.get("Exclusive") {
                Some("NODE" | "TOPO") => "exclusive".to_owned(),
                _ => fields.get("OverSubscribe").unwrap_or("NO").to_lowercase(),
            },
            default_memory: default_memory(&|key| fields.get(key).map(str::to_owned)),
            quality: fields.get("QoS").map(str::to_owned),
            billing_weights: fields.get("TRESBillingWeights").map(str::to_owned),
            preempt_mode: fields.get("PreemptMode").map(str::to_owned),
            grace: fields.number("GraceTime").unwrap_or(0),
        };
        Ok((fields.required("PartitionName")?.to_owned(), partition))
    }
}

/// The flags of the reservation of a driver, as Slurm shows them or begins to.
pub const DRIVER_FLAGS: [&str; 4] = ["ignore_jobs", "flex", "no_hold_jobs_after", "overlap"];

/// A reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Reservation {
    /// The begin, seconds since 1970.
    pub begin: i64,
    /// The end, seconds since 1970.
    pub end: i64,
    /// The nodes.
    pub nodes: Vec<String>,
    /// The processors, if they are counted.
    pub cpus: Option<u64>,
    /// The flags.
    pub flags: Vec<String>,
    /// The users of it, as Slurm writes them.
    pub users: Option<String>,
    /// The accounts that may use it.
    pub accounts: Option<String>,
}

impl Reservation {
    /// Returns whether it has not ended at an instant, in seconds since 1970. Slurm shows one that has ended for a while.
    pub fn is_active(&self, now: i64) -> bool {
        self.end > now + 1
    }

    /// Returns whether it has the flags of that of a driver. Slurm shows some of them by longer names.
    pub fn is_of_driver(&self) -> bool {
        let has = |flag: &&str| self.flags.iter().any(|shown| shown.starts_with(flag));
        DRIVER_FLAGS.iter().all(has)
    }

    pub(crate) fn parse(fields: Fields<'_>) -> Result<(String, Reservation), SlurmError> {
        let time = |key: &str| {
            let text = fields.required(key)?;
            text.parse().map_err(|_| fields.unreadable(format!("{key} is no time")))
        };
        let list = fields.get("Nodes").unwrap_or_default();
        let reservation = Reservation {
            begin: time("StartTime")?,
            end: time("EndTime")?,
            nodes: hosts(list).map_err(|error| fields.unreadable(error.to_string()))?,
            cpus: fields
                .get("TRES")
                .and_then(|list| list.split(',').find_map(|one| one.strip_prefix("cpu=")?.parse().ok())),
            flags: fields.get("Flags").map(|list| words(list, [',', ','])).unwrap_or_default(),
            users: fields.get("Users").map(str::to_owned),
            accounts: fields.get("Accounts").map(str::to_owned),
        };
        Ok((fields.required("ReservationName")?.to_owned(), reservation))
    }
}
