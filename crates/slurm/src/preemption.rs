//! Preemption, as the configuration of a cluster has it, for the policy `slurm`.

use std::collections::{BTreeMap, BTreeSet};

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
    /// The seconds after which a job preempts further jobs (`KillWait` and `MessageTimeout`).
    pub retry: u64,
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
        let modes = [("requeue", Mode::Requeue), ("cancel", Mode::Cancel), ("suspend", Mode::Suspend)];
        modes.into_iter().find(|(word, _)| has_word(text, word)).map(|(_, mode)| mode)
    }
}

/// The parts of a rule that jobs of several kinds may share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Victims {
    by: Vec<u32>,
    by_priority: Vec<u32>,
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
        let time = |name: &str, default| {
            value(name).and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(default)
        };
        let on_preemption = of_scheduler.iter().filter_map(|word| word.strip_prefix("preempt_"));
        Some(PreemptionSettings {
            kind,
            mode,
            exempt: value("PreemptExemptTime").map_or(0, |text| seconds(&text).unwrap_or(0)),
            parameters: on_preemption.map(str::to_owned).chain(own).collect(),
            requeue_delay: delay + 1,
            retry: time("KillWait", 30) + time("MessageTimeout", 10),
        })
    }

    fn has(&self, name: &str) -> bool {
        self.parameters.iter().any(|word| word == name)
    }

    fn is_by_quality(&self) -> bool {
        self.kind == "preempt/qos"
    }

    /// Returns the parameters of the policy `slurm` on the order of preemption, and the delay.
    fn order(&self) -> Vec<String> {
        let count = self.parameters.iter().find_map(|word| word.strip_prefix("reorder_count=")?.parse().ok());
        let count = count.filter(|count: &u64| *count != 1 && *count <= 1_000);
        let flags = ["youngest_first", "strict_order"].into_iter().filter(|name| self.has(name));
        let flags = flags.map(|name| format!("preempt_{name}=true"));
        let count = count.map(|count| format!("preempt_reorder_count={count}"));
        let times = [("requeue_delay", self.requeue_delay), ("preempt_retry", self.retry)];
        let times = times.into_iter().map(|(name, seconds)| format!("{name}={seconds}s"));
        flags.chain(count).chain(times).collect()
    }

    /// Returns the settings that are not simulated, in words. Only jobs of one quality preempt each other by the flag `WITHIN`.
    fn left_out(&self, modes: &[(Option<String>, &str)]) -> Vec<String> {
        let kinds = if self.is_by_quality() { ["PRIORITY", "SUSPEND"] } else { ["PRIORITY", "WITHIN"] };
        let flags = kinds.into_iter().filter_map(|flag| {
            let names = modes.iter().filter(|(_, mode)| has_word(mode, flag)).map(|(name, _)| name);
            let names = names.map(|name| name.clone().unwrap_or_else(|| "the cluster".to_owned()));
            let names = names.collect::<Vec<_>>().join(", ");
            (!names.is_empty()).then(|| format!("preemption by PreemptMode={flag} of {names}"))
        });
        let other = ["min_exempt_priority", "reclaim_licenses", "send_user_signal"];
        let is_other = |word: &&String| other.iter().any(|name| word.starts_with(name));
        let words = self.parameters.iter().filter(is_other);
        let words = words.map(|word| format!("preemption with PreemptParameters={word}"));
        let known = ["preempt/partition_prio", "preempt/qos"].contains(&self.kind.as_str());
        let unknown = (!known).then(|| format!("preemption ({})", self.kind));
        unknown.into_iter().chain(flags).chain(words).collect()
    }

    fn is_enabled(&self) -> bool {
        Mode::parse(&self.mode).is_some()
    }
}

/// Returns whether a list of a mode has a word.
fn has_word(mode: &str, word: &str) -> bool {
    mode.split(',').any(|other| other.trim().eq_ignore_ascii_case(word))
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
        // With this flag, fewer jobs are preempted than the rules say.
        if self.preempt_modes(settings, qualities).iter().any(|(_, mode)| has_word(mode, "priority")) {
            return None;
        }
        let mut rules: BTreeMap<Victims, Vec<u32>> = BTreeMap::new();
        for (number, kind) in kinds {
            let (mut by, mut by_priority) = (vec![], vec![]);
            for (number, other) in kinds.iter().filter(|(_, other)| self.may_preempt(other, kind, qualities))
            {
                let is_within = settings.is_by_quality() && other.quality == kind.quality;
                if is_within { &mut by_priority } else { &mut by }.push(*number);
            }
            if by.is_empty() && by_priority.is_empty() {
                continue;
            }
            if let Some(victims) = self.victims(kind, qualities, [by, by_priority]) {
                rules.entry(victims).or_default().push(*number);
            }
        }
        rules.retain(|victims, _| victims.mode != Mode::Suspend || !settings.is_by_quality());
        let list = |queues: &[u32]| queues.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
        let rule = |(victims, queues): (&Victims, &Vec<u32>)| {
            let mode = match victims.mode {
                Mode::Requeue => "requeue",
                Mode::Cancel => "cancel",
                Mode::Suspend => "suspend",
            };
            let by = [("by", &victims.by), ("by_priority", &victims.by_priority)].into_iter();
            let by = by.filter(|(_, queues)| !queues.is_empty());
            let by: Vec<String> = by.map(|(name, queues)| format!("{name}={}", list(queues))).collect();
            let mut text = format!("{}: {}, mode={mode}", list(queues), by.join(", "));
            for (name, value, unit) in
                [("rank", victims.rank, ""), ("exempt", victims.exempt, "s"), ("grace", victims.grace, "s")]
            {
                // A suspended job is there at once, and comes back.
                if value > 0 && (victims.mode != Mode::Suspend || name == "rank") {
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
        let Some(settings) = &self.configuration.preemption else { return false };
        let partition = |kind: &PreemptionKind| self.partitions.get(&kind.partition);
        let Some((of_by, of_kind)) = partition(by).zip(partition(kind)) else { return false };
        let is_above = if settings.is_by_quality() {
            let names = |quality: &&Quality| Some(&quality.name) == by.quality.as_ref();
            let preempts = |quality: &Quality| {
                let modes = [Some(&settings.mode), quality.preempt_mode.as_ref()];
                if by.quality == kind.quality {
                    return modes.into_iter().flatten().any(|mode| has_word(mode, "within"));
                }
                kind.quality.as_ref().is_some_and(|victim| quality.preempts.contains(victim))
            };
            qualities.iter().find(names).is_some_and(preempts)
        } else {
            of_by.tier > of_kind.tier
        };
        let share_a_node = || {
            let nodes: BTreeSet<&String> = of_kind.nodes.iter().collect();
            of_by.nodes.iter().any(|node| nodes.contains(node))
        };
        is_above && share_a_node()
    }

    /// Returns how jobs of a kind are preempted by jobs of these queues, if they may be.
    fn victims(
        &self,
        kind: &PreemptionKind,
        qualities: &[Quality],
        [by, by_priority]: [Vec<u32>; 2],
    ) -> Option<Victims> {
        let settings = self.configuration.preemption.as_ref()?;
        let partition = self.partitions.get(&kind.partition)?;
        let named = |name: Option<&String>| qualities.iter().find(|quality| Some(&quality.name) == name);
        let quality = named(kind.quality.as_ref());
        let (mode, rank, grace) = if settings.is_by_quality() {
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
        Some(Victims { by, by_priority, mode, rank, exempt: exempt.unwrap_or(settings.exempt), grace })
    }

    /// Returns the parts of preemption that are not simulated, in words.
    pub fn preemption_left_out(&self, qualities: &[Quality]) -> Vec<String> {
        let Some(settings) = self.configuration.preemption.as_ref().filter(|settings| settings.is_enabled())
        else {
            return vec![];
        };
        settings.left_out(&self.preempt_modes(settings, qualities))
    }

    /// Returns the modes that the cluster, its partitions or its qualities of service have, with the names of these.
    fn preempt_modes<'a>(
        &'a self,
        settings: &'a PreemptionSettings,
        qualities: &'a [Quality],
    ) -> Vec<(Option<String>, &'a str)> {
        let partition = |(name, one): (&String, &'a crate::Partition)| {
            Some((Some(format!("the partition {name}")), one.preempt_mode.as_deref()?))
        };
        let quality = |one: &'a Quality| {
            Some((Some(format!("the quality of service {}", one.name)), one.preempt_mode.as_deref()?))
        };
        let mut modes = vec![(None, settings.mode.as_str())];
        if settings.is_by_quality() {
            modes.extend(qualities.iter().filter_map(quality));
        } else {
            modes.extend(self.partitions.iter().filter_map(partition));
        }
        modes
    }

    /// Returns the kind of a job for preemption.
    pub(crate) fn preemption_kind(&self, job: &Job, is_bound: bool) -> PreemptionKind {
        let partition = self.partition_of(job).unwrap_or_default().to_owned();
        PreemptionKind { partition, quality: job.qos.clone(), is_bound }
    }

    /// Returns whether jobs are suspended for others.
    pub(crate) fn suspends(&self, qualities: &[Quality]) -> bool {
        let settings = self.configuration.preemption.as_ref().filter(|_| self.preempts());
        let modes = settings.map(|settings| self.preempt_modes(settings, qualities));
        modes.into_iter().flatten().any(|(_, mode)| has_word(mode, "suspend"))
    }

    /// Returns why a waiting job that may preempt others has no forecast, if it may suspend running jobs.
    pub(crate) fn may_suspend(&self, job: &Job, qualities: &[Quality]) -> Option<String> {
        if !self.suspends(qualities) {
            return None;
        }
        let kind = self.preemption_kind(job, false);
        let is_victim = |other: &&Job| {
            let victim = self.preemption_kind(other, false);
            let is_there = matches!(other.state, JobState::Running | JobState::Suspended);
            let is_suspended = || self.victims(&victim, qualities, [vec![], vec![]]);
            is_there
                && self.may_preempt(&kind, &victim, qualities)
                && is_suspended().is_some_and(|victims| victims.mode == Mode::Suspend)
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
                 preempt_youngest_first=true, preempt_reorder_count=3, requeue_delay=10s, preempt_retry=40s"
            )
        );
        let signal = "preemption with PreemptParameters=send_user_signal";
        assert_eq!(preempting.preemption_left_out(&[]), [signal]);
        for (mode, left_out) in
            [("OFF", vec![]), ("PRIORITY,REQUEUE", vec!["preemption by PreemptMode=PRIORITY of the cluster"])]
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
    fn partitions_may_suspend_jobs_and_qualities_preempt_within_themselves() {
        let mut suspending = cluster(&[
            ("PreemptType", "preempt/partition_prio"),
            ("PreemptMode", "GANG,SUSPEND"),
            ("KillWait", "2 sec"),
            ("MessageTimeout", "10 sec"),
        ]);
        suspending.partitions.values_mut().for_each(|partition| partition.preempt_mode = None);
        let text = suspending.preemption_parameters(&kinds(&[("low", None), ("high", None)]), &[]).unwrap();
        assert_eq!(text, "preempt='1: by=2, mode=suspend, rank=1', requeue_delay=121s, preempt_retry=12s");
        format!("slurm({text})").parse::<miserly_policies::PolicySpec>().expect("a policy");
        assert_eq!(suspending.preemption_left_out(&[]), Vec::<String>::new());
        let within = cluster(&[("PreemptType", "preempt/qos"), ("PreemptMode", "REQUEUE,WITHIN")]);
        let all = kinds(&[("low", Some("a")), ("high", Some("a")), ("low", Some("b"))]);
        let quality = |name: &str, preempts: &[&str]| Quality {
            name: name.to_owned(),
            preempts: preempts.iter().map(|&name| name.to_owned()).collect(),
            ..Quality::default()
        };
        let text = within.preemption_parameters(&all, &[quality("a", &["b"]), quality("b", &[])]).unwrap();
        let rules = "1+2: by_priority=1+2, mode=requeue; 3: by=1+2, by_priority=3, mode=requeue";
        assert_eq!(text, format!("preempt='{rules}', requeue_delay=121s, preempt_retry=40s"));
        format!("slurm({text})").parse::<miserly_policies::PolicySpec>().expect("a policy");
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
            Some(
                "preempt='2: by=1, mode=cancel, rank=65535, grace=7s', requeue_delay=121s, preempt_retry=40s"
            )
        );
        let left_out = "preemption by PreemptMode=SUSPEND of the quality of service night";
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
