//! The configuration of a cluster.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use miserly_core::{Span, Time};
use miserly_policies::shared::Computations;
use serde::Serialize;

use super::values::{Amount, Limit, default_memory, limit};
use crate::fields::Fields;
use crate::{PreemptionSettings, Slurm, SlurmError};

/// The longest start of a controller, seconds.
const LONGEST_START: i64 = 60;

/// The configuration of a cluster, as far as it is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Configuration {
    /// The name of the cluster.
    pub cluster: String,
    /// The version of the controller.
    pub version: String,
    /// The time of the controller, seconds since 1970.
    pub now: i64,
    /// The user of the controller (`SlurmUser`), by number.
    pub slurm_user: Option<u32>,
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
    /// Whether the accounting stores the scripts of jobs (`AccountingStoreFlags`).
    pub stores_scripts: bool,
    /// Whether small jobs have the higher priority.
    pub favours_small: bool,
    /// The flags of the priorities, if any.
    pub priority_flags: Option<String>,
    /// How jobs are preempted, if they are.
    pub preemption: Option<PreemptionSettings>,
    /// The unit of allocation: whole nodes, or parts of them.
    pub select: String,
    /// The accounted resources of a node, such as `CR_CORE_MEMORY`.
    pub select_parameters: Option<String>,
    /// The memory of a job that asks for none; `None`: all memory of its nodes.
    pub default_memory: Option<Amount>,
    /// The number above all numbers of tasks of an array.
    pub array_size: u64,
    /// The time that jobs get beyond their limits before they are ended, in seconds; none without a limit.
    pub over_limit: Option<u64>,
    /// The time between that and their being killed, in seconds.
    pub kill_wait: u64,
}

impl Configuration {
    /// Returns the instants at which Slurm counts usage and computes the priorities, with times since 1970.
    pub fn priority_computations(&self) -> Option<Computations> {
        let (period, boot) = self.computations?;
        let period = Span::from_secs(i64::try_from(period).ok()?)?;
        Some(Computations { period, first: Time::from_secs(boot)? })
    }

    /// Takes in the begin of the controller's statistics. It computes priorities just before it, a second or more after its start, if
    /// they have not begun anew since.
    pub fn set_statistics_begin(&mut self, begin: Timestamp) {
        if let Some((_, first)) = &mut self.computations
            && (0..LONGEST_START).contains(&(begin.as_second() - *first))
        {
            *first = begin.as_second();
        }
    }

    /// Returns whether jobs have a part of the memory of their nodes (`SelectTypeParameters`).
    pub fn counts_memory(&self) -> bool {
        self.select_parameters.as_deref().is_some_and(|parameters| parameters.contains("MEMORY"))
    }

    /// Reads the configuration, and returns the time that it took.
    pub(crate) fn timed(slurm: &Slurm) -> Result<(Configuration, Duration), SlurmError> {
        let answer = slurm.ask("scontrol", &["show", "config"])?;
        let configuration = Configuration::parse(&answer.text)?;
        configuration.check_version()?;
        Ok((configuration, answer.took))
    }

    pub(super) fn parse(text: &str) -> Result<Configuration, SlurmError> {
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
            slurm_user: value("SlurmUser").as_deref().and_then(user_number),
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
            stores_scripts: value("AccountingStoreFlags").is_some_and(|what| what.contains("job_script")),
            favours_small: value("PriorityFavorSmall").is_some_and(|value| value.eq_ignore_ascii_case("yes")),
            priority_flags: value("PriorityFlags").filter(|flags| !flags.is_empty()),
            preemption: PreemptionSettings::read(&value),
            select: required("SelectType")?,
            select_parameters: value("SelectTypeParameters").map(|text| text.to_uppercase()),
            default_memory: default_memory(&value),
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

/// Returns the number of a user such as `slurm(64030)`.
fn user_number(text: &str) -> Option<u32> {
    text.split_once('(')?.1.strip_suffix(')')?.parse().ok()
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
