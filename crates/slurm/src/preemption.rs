//! Preemption, as the configuration of a cluster has it, for the policy `slurm`.

use std::collections::BTreeMap;

use crate::cluster::{Limit, limit};
use crate::{Cluster, Job, JobState, Quality};

/// The settings of preemption of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct PreemptionSettings {
    /// Who preempts whom (`PreemptType`).
    pub kind: String,
    /// What becomes of preempted jobs (`PreemptMode`).
    pub mode: String,
    /// The seconds after a start in which no job is preempted (`PreemptExemptTime`).
    pub exempt: u64,
    /// Further parameters (`PreemptParameters`), and those of the scheduler on preemption.
    pub parameters: Vec<String>,
    /// The seconds after which a requeued job may start again.
    pub requeue_delay: u64,
}

/// Jobs that preempt alike and are preempted alike: those of a partition with a quality of service.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PreemptionKind {
    pub(crate) partition: String,
    pub(crate) quality: Option<String>,
    /// Whether its jobs can only be ended, not requeued.
    pub(crate) is_bound: bool,
}

/// What becomes of a preempted job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Mode {
    Requeue,
    Cancel,
    Suspend,
}

impl Mode {
    /// Reads a value of `PreemptMode`; none: no job is preempted.
    fn parse(text: &str) -> Option<Mode> {
        let has = |word: &str| text.split(',').any(|other| other.trim().eq_ignore_ascii_case(word));
        let modes = [("requeue", Mode::Requeue), ("cancel", Mode::Cancel), ("suspend", Mode::Suspend)];
        modes.into_iter().find(|(word, _)| has(word)).map(|(_, mode)| mode)
    }
}

/// The parts of a rule that jobs of several kinds may share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Victims {
    by: Vec<u32>,
    mode: Mode,
    rank: u64,
    exempt: u64,
    grace: u64,
}

impl PreemptionSettings {
    /// Reads them from the values of a configuration, if jobs are preempted at all.
    pub(crate) fn read(value: &impl Fn(&str) -> Option<String>) -> Option<PreemptionSettings> {
        let kind = value("PreemptType").filter(|kind| !kind.is_empty() && !kind.ends_with("none"))?;
        let mode = value("PreemptMode").unwrap_or_default();
        let scheduler = value("SchedulerParameters").unwrap_or_default();
        let words = |text: &str| -> Vec<String> {
            text.split(',').map(|word| word.trim().to_lowercase()).filter(|word| !word.is_empty()).collect()
        };
        let of_scheduler = words(&scheduler);
        let own = words(&value("PreemptParameters").unwrap_or_default());
        let number = |words: &[String], name: &str| {
            words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
        };
        // Slurm waits as long as the credential of the last run may be valid.
        let expiry = number(&words(&value("AuthInfo").unwrap_or_default()), "cred_expire").unwrap_or(120);
        let delay: u64 = number(&of_scheduler, "requeue_delay").unwrap_or(expiry);
        let on_preemption = of_scheduler.iter().filter_map(|word| word.strip_prefix("preempt_"));
        Some(PreemptionSettings {
            kind,
            mode,
            exempt: value("PreemptExemptTime").map_or(0, |text| seconds(&text).unwrap_or(0)),
            parameters: on_preemption.map(str::to_owned).chain(own).collect(),
            requeue_delay: delay + 1,
        })
    }

    fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|word| word == name)
    }

    /// Returns whether a flag of the mode is set, such as `PRIORITY`.
    fn has_flag(&self, flag: &str) -> bool {
        self.mode.split(',').any(|word| word.trim().eq_ignore_ascii_case(flag))
    }

    /// Returns the parameters of the policy `slurm` on the order of preemption, and the delay.
    fn order(&self) -> Vec<String> {
        let count = self.parameters.iter().find_map(|word| word.strip_prefix("reorder_count=")?.parse().ok());
        let count = count.filter(|count: &u64| *count != 1 && *count <= 1_000);
        let flags = ["youngest_first", "strict_order"].into_iter().filter(|name| self.has(name));
        let flags = flags.map(|name| format!("preempt_{name}=true"));
        let count = count.map(|count| format!("preempt_reorder_count={count}"));
        flags.chain(count).chain([format!("requeue_delay={}s", self.requeue_delay)]).collect()
    }

    /// Returns the settings that are not simulated, in words.
    fn left_out(&self) -> Vec<String> {
        let flags = ["PRIORITY", "WITHIN"].into_iter().filter(|flag| self.has_flag(flag));
        let flags = flags.map(|flag| format!("preemption by PreemptMode={flag}"));
        let least = self.parameters.iter().filter(|word| word.starts_with("min_exempt_priority"));
        let least = least.map(|word| format!("preemption with PreemptParameters={word}"));
        let known = ["preempt/partition_prio", "preempt/qos"].contains(&self.kind.as_str());
        let unknown = (!known).then(|| format!("preemption ({})", self.kind));
        unknown.into_iter().chain(flags).chain(least).collect()
    }

    fn is_enabled(&self) -> bool {
        Mode::parse(&self.mode).is_some()
    }
}

/// Returns the seconds of a time of Slurm, if it is one.
fn seconds(text: &str) -> Option<u64> {
    match limit(text)? {
        Limit::Seconds(seconds) => Some(seconds),
        Limit::Unlimited => None,
    }
}

impl Cluster {
    /// Returns whether some jobs may be preempted.
    pub(crate) fn preempts(&self) -> bool {
        self.configuration.preemption.as_ref().is_some_and(PreemptionSettings::is_enabled)
    }

    /// Returns the parameters of the policy `slurm` for preemption between jobs of these kinds, by the numbers of their queues. There are none
    /// if no job of them preempts one of another queue.
    pub(crate) fn preemption_parameters(
        &self,
        kinds: &BTreeMap<u32, PreemptionKind>,
        qualities: &[Quality],
    ) -> Option<String> {
        let settings = self.configuration.preemption.as_ref().filter(|settings| settings.is_enabled())?;
        // With the first flag, fewer jobs are preempted than the rules say.
        if settings.has_flag("PRIORITY") {
            return None;
        }
        let mut rules: BTreeMap<Victims, Vec<u32>> = BTreeMap::new();
        for (number, kind) in kinds {
            let by = kinds.iter().filter(|(_, other)| self.may_preempt(other, kind, qualities));
            let by: Vec<u32> = by.map(|(number, _)| *number).collect();
            let victims = self.victims(kind, qualities, by);
            if let Some(victims) = victims.filter(|victims| !victims.by.is_empty()) {
                rules.entry(victims).or_default().push(*number);
            }
        }
        rules.retain(|victims, _| victims.mode != Mode::Suspend);
        let list = |queues: &[u32]| queues.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
        let rule = |(victims, queues): (&Victims, &Vec<u32>)| {
            let mode = if victims.mode == Mode::Cancel { "cancel" } else { "requeue" };
            let mut text = format!("{}: by={}, mode={mode}", list(queues), list(&victims.by));
            for (name, value, unit) in
                [("rank", victims.rank, ""), ("exempt", victims.exempt, "s"), ("grace", victims.grace, "s")]
            {
                if value > 0 {
                    text += &format!(", {name}={value}{unit}");
                }
            }
            text
        };
        let rules: Vec<String> = rules.iter().map(rule).collect();
        let parameters = std::iter::once(format!("preempt='{}'", rules.join("; "))).chain(settings.order());
        (!rules.is_empty()).then(|| parameters.collect::<Vec<_>>().join(", "))
    }

    /// Returns whether waiting jobs of a kind may preempt running jobs of another one.
    fn may_preempt(&self, by: &PreemptionKind, kind: &PreemptionKind, qualities: &[Quality]) -> bool {
        let is_by_quality =
            self.configuration.preemption.as_ref().is_some_and(|settings| settings.kind == "preempt/qos");
        let partition = |kind: &PreemptionKind| self.partitions.get(&kind.partition);
        let Some((of_by, of_kind)) = partition(by).zip(partition(kind)) else { return false };
        if !of_by.nodes.iter().any(|node| of_kind.nodes.contains(node)) {
            return false;
        }
        if is_by_quality {
            let names = |quality: &&Quality| Some(&quality.name) == by.quality.as_ref();
            let preempts = |quality: &Quality| {
                kind.quality.as_ref().is_some_and(|victim| quality.preempts.contains(victim))
            };
            by.quality != kind.quality && qualities.iter().find(names).is_some_and(preempts)
        } else {
            of_by.tier > of_kind.tier
        }
    }

    /// Returns how jobs of a kind are preempted by jobs of these queues, if they may be.
    fn victims(&self, kind: &PreemptionKind, qualities: &[Quality], by: Vec<u32>) -> Option<Victims> {
        let settings = self.configuration.preemption.as_ref()?;
        let partition = self.partitions.get(&kind.partition)?;
        let named = |name: Option<&String>| qualities.iter().find(|quality| Some(&quality.name) == name);
        let quality = named(kind.quality.as_ref());
        let (mode, rank, grace) = if settings.kind == "preempt/qos" {
            let own = quality.and_then(|quality| quality.preempt_mode.as_deref());
            let mode = Mode::parse(own.unwrap_or(&settings.mode))?;
            let priority = quality.map_or(0, |quality| quality.priority.min(0xffff));
            (mode, priority, quality.map_or(0, |quality| quality.grace))
        } else {
            let mode = Mode::parse(partition.preempt_mode.as_deref().unwrap_or(&settings.mode))?;
            (mode, partition.tier, partition.grace)
        };
        let exempt = [named(partition.quality.as_ref()), quality];
        let exempt = exempt.into_iter().flatten().find_map(|quality| quality.exempt);
        let mode = if kind.is_bound && mode == Mode::Requeue { Mode::Cancel } else { mode };
        Some(Victims { by, mode, rank, exempt: exempt.unwrap_or(settings.exempt), grace })
    }

    /// Returns the parts of preemption that are not simulated, in words.
    pub fn preemption_left_out(&self, qualities: &[Quality]) -> Vec<String> {
        let Some(settings) = self.configuration.preemption.as_ref().filter(|settings| settings.is_enabled())
        else {
            return vec![];
        };
        let suspends = |text: Option<&str>| text.and_then(Mode::parse) == Some(Mode::Suspend);
        let named: Vec<String> = if settings.kind == "preempt/qos" {
            let by_name = qualities.iter().filter(|quality| suspends(quality.preempt_mode.as_deref()));
            by_name.map(|quality| format!("the quality of service {}", quality.name)).collect()
        } else {
            let by_name = self.partitions.iter().filter(|(_, one)| suspends(one.preempt_mode.as_deref()));
            by_name.map(|(name, _)| format!("the partition {name}")).collect()
        };
        let suspension = if named.is_empty() {
            suspends(Some(&settings.mode))
                .then(|| format!("preemption by suspension (PreemptMode={})", settings.mode))
        } else {
            Some(format!("preemption by suspension (PreemptMode of {})", named.join(", ")))
        };
        settings.left_out().into_iter().chain(suspension).collect()
    }

    /// Returns whether a mode of the cluster, of a partition or of a quality of service suspends jobs.
    fn suspends(&self, qualities: &[Quality]) -> bool {
        let cluster = self.configuration.preemption.iter().map(|settings| settings.mode.as_str());
        let partitions = self.partitions.values().filter_map(|one| one.preempt_mode.as_deref());
        let qualities = qualities.iter().filter_map(|quality| quality.preempt_mode.as_deref());
        cluster.chain(partitions).chain(qualities).any(|mode| Mode::parse(mode) == Some(Mode::Suspend))
    }

    /// Returns the kind of a job for preemption.
    pub(crate) fn preemption_kind(&self, job: &Job, is_bound: bool) -> PreemptionKind {
        let partition = self.partition_of(job).unwrap_or_default().to_owned();
        PreemptionKind { partition, quality: job.qos.clone(), is_bound }
    }

    /// Returns why a waiting job that may preempt others has no forecast, if it may suspend running jobs.
    pub(crate) fn may_suspend(&self, job: &Job, qualities: &[Quality]) -> Option<String> {
        if !self.preempts() || !self.suspends(qualities) {
            return None;
        }
        let kind = self.preemption_kind(job, false);
        let is_victim = |other: &&Job| {
            let victim = self.preemption_kind(other, false);
            matches!(other.state, JobState::Running | JobState::Suspended)
                && self.may_preempt(&kind, &victim, qualities)
                && self
                    .victims(&victim, qualities, vec![])
                    .is_some_and(|victims| victims.mode == Mode::Suspend)
        };
        let victim = self.jobs.values().find(is_victim)?;
        Some(format!("it may suspend running jobs such as {}, which is not simulated", victim.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Partition;

    fn cluster(config: &[(&str, &str)]) -> Cluster {
        let value =
            |key: &str| config.iter().find(|(known, _)| *known == key).map(|(_, value)| (*value).to_owned());
        let mut cluster = Cluster::default();
        cluster.configuration.preemption = PreemptionSettings::read(&value);
        let partition = |nodes: &[&str], tier, mode: Option<&str>, grace| Partition {
            nodes: nodes.iter().map(|node| (*node).to_owned()).collect(),
            tier,
            preempt_mode: mode.map(str::to_owned),
            grace,
            ..Partition::default()
        };
        cluster.partitions = [
            ("low", partition(&["a", "b"], 1, Some("REQUEUE"), 30)),
            ("high", partition(&["b", "c"], 5, Some("CANCEL"), 0)),
            ("top", partition(&["c"], 9, Some("OFF"), 0)),
        ]
        .map(|(name, partition)| (name.to_owned(), partition))
        .into();
        cluster
    }

    fn kinds(kinds: &[(&str, Option<&str>)]) -> BTreeMap<u32, PreemptionKind> {
        let kind = |(partition, quality): &(&str, Option<&str>)| PreemptionKind {
            partition: (*partition).to_owned(),
            quality: quality.map(str::to_owned),
            is_bound: false,
        };
        (1..).zip(kinds.iter().map(kind)).collect()
    }

    #[test]
    fn partitions_of_a_higher_tier_preempt_jobs_on_their_nodes() {
        let config = [
            ("PreemptType", "preempt/partition_prio"),
            ("PreemptMode", "REQUEUE"),
            ("PreemptExemptTime", "00:05:00"),
            ("SchedulerParameters", "bf_interval=2,preempt_youngest_first,requeue_delay=9"),
            ("PreemptParameters", "reorder_count=3,send_user_signal"),
        ];
        let all = kinds(&[("low", None), ("high", None), ("top", None), ("low", Some("x"))]);
        let parameters = |cluster: &Cluster| {
            let text = cluster.preemption_parameters(&all, &[]);
            if let Some(text) = &text {
                format!("slurm({text})").parse::<miserly_policies::PolicySpec>().expect("a policy");
            }
            text
        };
        let preempting = cluster(&config);
        assert_eq!(
            parameters(&preempting).as_deref(),
            Some(
                "preempt='1+4: by=2, mode=requeue, rank=1, exempt=300s, grace=30s; 2: by=3, mode=cancel, rank=5, exempt=300s', \
                 preempt_youngest_first=true, preempt_reorder_count=3, requeue_delay=10s"
            )
        );
        assert_eq!(preempting.preemption_left_out(&[]), Vec::<String>::new());
        for (mode, left_out) in
            [("OFF", vec![]), ("PRIORITY,REQUEUE", vec!["preemption by PreemptMode=PRIORITY"])]
        {
            let off = cluster(&[config[0], ("PreemptMode", mode)]);
            assert_eq!(
                (parameters(&off), off.preemption_left_out(&[])),
                (None, left_out.iter().map(|&what| what.to_owned()).collect())
            );
        }
        assert_eq!(cluster(&[("PreemptType", "preempt/none")]).configuration.preemption, None);
    }

    #[test]
    fn qualities_preempt_those_that_they_name() {
        let quality = |name: &str, preempts: &[&str], mode: Option<&str>| Quality {
            name: name.to_owned(),
            priority: 100_000,
            preempts: preempts.iter().map(|&name| name.to_owned()).collect(),
            preempt_mode: mode.map(str::to_owned),
            exempt: mode.map(|_| 60),
            grace: 7,
            ..Quality::default()
        };
        let qualities = [
            quality("urgent", &["free", "night"], None),
            quality("free", &[], None),
            quality("night", &[], Some("suspend")),
        ];
        let cluster = cluster(&[("PreemptType", "preempt/qos"), ("PreemptMode", "CANCEL")]);
        let all = kinds(&[
            ("low", Some("urgent")),
            ("low", Some("free")),
            ("low", Some("night")),
            ("top", Some("free")),
        ]);
        let text = cluster.preemption_parameters(&all, &qualities);
        // Those of the other partition have no node of the first one.
        assert_eq!(
            text.as_deref(),
            Some("preempt='2: by=1, mode=cancel, rank=65535, grace=7s', requeue_delay=121s")
        );
        let left_out = "preemption by suspension (PreemptMode of the quality of service night)";
        assert_eq!(cluster.preemption_left_out(&qualities), [left_out]);
        let job = |id: &str, quality: &str, state| Job {
            id: id.to_owned(),
            partitions: vec!["low".to_owned()],
            qos: Some(quality.to_owned()),
            state,
            ..Job::default()
        };
        let mut cluster = cluster;
        for (name, partition) in &mut cluster.partitions {
            partition.state = if name == "low" { "up" } else { "down" }.to_owned();
        }
        let waiting = job("9", "urgent", JobState::Pending);
        assert_eq!(cluster.may_suspend(&waiting, &qualities), None);
        for (id, name) in [("3", "free"), ("4", "night")] {
            cluster.jobs.insert(id.to_owned(), job(id, name, JobState::Running));
        }
        let why = "it may suspend running jobs such as 4, which is not simulated";
        assert_eq!(cluster.may_suspend(&waiting, &qualities).as_deref(), Some(why));
    }
}
