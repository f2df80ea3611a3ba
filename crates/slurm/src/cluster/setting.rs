//! One setting of a cluster, changed for a twin.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::values::{Limit, limit};
use super::{Cluster, Configuration};

/// The scheduler's parameters that a twin has too, with the unit of their numbers.
pub(crate) const SCHEDULING: [(&str, &str); 5] = [
    ("batch_sched_delay", "s"),
    ("bf_interval", "s"),
    ("bf_resolution", "s"),
    ("bf_window", "min"),
    ("bf_max_job_test", ""),
];

/// The weights that a twin has too.
const WEIGHTS: [&str; 5] = [
    "PriorityWeightAge",
    "PriorityWeightFairShare",
    "PriorityWeightJobSize",
    "PriorityWeightPartition",
    "PriorityWeightQOS",
];

/// A setting of slurm.conf with another value, such as `bf_window=2880`, `PriorityWeightAge=1000` or `debug:PriorityTier=2`, which is
/// of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The partition, if the setting is of one.
    partition: Option<String>,
    key: &'static str,
    value: Value,
    /// As it was written.
    written: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Number(u64),
    /// Seconds.
    Time(u64),
    Switch(bool),
    Word(&'static str),
}

/// How the value of a setting is written.
#[derive(Clone, Copy)]
enum Kind {
    Number,
    Time,
    Switch,
    Words(&'static [&'static str]),
}

/// The settings of slurm.conf that are not in the lists above.
const OTHERS: [(&str, Kind); 4] = [
    ("PriorityDecayHalfLife", Kind::Time),
    ("PriorityFavorSmall", Kind::Switch),
    ("PriorityMaxAge", Kind::Time),
    ("SchedulerType", Kind::Words(&["sched/backfill", "sched/builtin"])),
];

/// The settings of a partition.
const OF_PARTITION: [&str; 2] = ["PriorityJobFactor", "PriorityTier"];

/// Returns the settings that can be changed, with the forms of their values.
fn all() -> impl Iterator<Item = (&'static str, Kind, bool)> {
    let numbers = SCHEDULING.iter().map(|(key, _)| *key).chain(WEIGHTS).map(|key| (key, Kind::Number, false));
    let others = OTHERS.iter().map(|(key, kind)| (*key, *kind, false));
    numbers.chain(others).chain(OF_PARTITION.iter().map(|key| (*key, Kind::Number, true)))
}

impl FromStr for Setting {
    type Err = String;

    /// Parses `KEY=VALUE` or `PARTITION:KEY=VALUE`. Keys are in any case, as in slurm.conf.
    fn from_str(text: &str) -> Result<Setting, String> {
        let (written, value) = text.split_once('=').ok_or("write KEY=VALUE, such as bf_window=2880")?;
        let (partition, key) = match written.split_once(':') {
            Some((partition, key)) => (Some(partition.to_owned()), key),
            None => (None, written),
        };
        let known = |(name, _, of_partition): &(&str, Kind, bool)| {
            name.eq_ignore_ascii_case(key) && *of_partition == partition.is_some()
        };
        let Some((key, kind, _)) = all().find(known) else {
            let names = all().map(
                |(name, _, of_partition)| {
                    if of_partition { format!("PARTITION:{name}") } else { name.to_owned() }
                },
            );
            let names: Vec<String> = names.collect();
            return Err(format!("the twin does not have {written}; it has {}", names.join(", ")));
        };
        let (value, form) = match kind {
            Kind::Number => (value.parse().ok().map(Value::Number), "a whole number"),
            Kind::Time => {
                // In slurm.conf a number by itself is of minutes.
                let minutes = value.parse().ok().and_then(|minutes: u64| minutes.checked_mul(60));
                let seconds = minutes.or_else(|| match limit(value)? {
                    Limit::Seconds(seconds) => Some(seconds),
                    Limit::Unlimited => None,
                });
                (seconds.map(Value::Time), "a time of slurm.conf, such as 7-0")
            }
            Kind::Switch => match value.to_lowercase().as_str() {
                "yes" => (Some(Value::Switch(true)), ""),
                "no" => (Some(Value::Switch(false)), ""),
                _ => (None, "yes or no"),
            },
            Kind::Words(words) => {
                let word = words.iter().find(|word| **word == value);
                (word.map(|word| Value::Word(word)), "sched/backfill or sched/builtin")
            }
        };
        let value = value.ok_or_else(|| format!("{key}: the value must be {form}"))?;
        Ok(Setting { partition, key, value, written: text.to_owned() })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl Cluster {
    /// Changes a setting.
    ///
    /// # Errors
    /// If the cluster has no such partition.
    pub fn set(&mut self, setting: &Setting) -> Result<(), String> {
        let Some(name) = &setting.partition else {
            self.configuration.set(setting);
            return Ok(());
        };
        let names: Vec<&str> = self.partitions.keys().map(String::as_str).collect();
        let names = names.join(", ");
        let partition =
            self.partitions.get_mut(name).ok_or_else(|| format!("no partition {name}; there are {names}"))?;
        if let Value::Number(number) = setting.value {
            match setting.key {
                "PriorityTier" => partition.tier = number,
                _ => partition.job_factor = number,
            }
        }
        Ok(())
    }

    /// Adds nodes that are like one of the cluster, in its partitions; without a name, like one of the commonest kind.
    ///
    /// # Errors
    /// If there is no such node.
    pub fn add_nodes(&mut self, count: u64, like: Option<&str>) -> Result<(), String> {
        let like = match like {
            Some(name) => name.to_owned(),
            None => self.commonest_node().ok_or("the cluster has no nodes")?,
        };
        let mut node = self.nodes.get(&like).ok_or_else(|| format!("no node {like}"))?.clone();
        (node.cpus_used, node.memory_used) = (0, 0);
        let all = (1..).map(|number| format!("added{number}"));
        let names: Vec<String> = all
            .filter(|name| !self.nodes.contains_key(name))
            .take(usize::try_from(count).unwrap_or(usize::MAX))
            .collect();
        for partition in self.partitions.values_mut().filter(|partition| partition.nodes.contains(&like)) {
            partition.nodes.extend(names.iter().cloned());
        }
        self.nodes.extend(names.into_iter().map(|name| (name, node.clone())));
        Ok(())
    }

    /// Returns the first node, by name, of the kind that most nodes have: size, memory, GPUs and partitions.
    fn commonest_node(&self) -> Option<String> {
        let mut kinds: BTreeMap<_, (usize, &String)> = BTreeMap::new();
        for (name, node) in &self.nodes {
            let kind = (node.cpus, node.memory, node.gpus(), &node.partitions);
            kinds.entry(kind).or_insert((0, name)).0 += 1;
        }
        let most = kinds.into_values().min_by_key(|(nodes, name)| (std::cmp::Reverse(*nodes), *name));
        most.map(|(_, name)| name.clone())
    }
}

impl Configuration {
    fn set(&mut self, Setting { key, value, .. }: &Setting) {
        match (*key, value) {
            ("SchedulerType", Value::Word(word)) => (*word).clone_into(&mut self.scheduler),
            ("PriorityFavorSmall", Value::Switch(on)) => self.favours_small = *on,
            ("PriorityMaxAge", Value::Time(seconds)) => self.oldest = Some(*seconds),
            (_, Value::Time(seconds)) => self.half_life = *seconds,
            (key, Value::Number(number)) if key.starts_with("PriorityWeight") => {
                self.weights.insert(key.to_owned(), number.to_string());
            }
            (key, Value::Number(number)) => {
                // Of several values of a parameter, the last counts.
                let before = self.scheduler_parameters.take().map(|all| all + ",").unwrap_or_default();
                self.scheduler_parameters = Some(format!("{before}{key}={number}"));
            }
            // Each key has one form of value.
            (_, Value::Switch(_) | Value::Word(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Node, Partition};

    fn cluster() -> Cluster {
        let node =
            |cpus| Node { cpus, cpus_used: 1, partitions: vec!["batch".to_owned()], ..Node::default() };
        let nodes = [("a1", node(8)), ("n1", node(4)), ("n2", node(4))];
        let batch = Partition {
            nodes: ["a1", "n1", "n2"].map(str::to_owned).into(),
            tier: 1,
            ..Partition::default()
        };
        let debug = Partition { nodes: vec!["a1".to_owned()], ..batch.clone() };
        Cluster {
            nodes: nodes.map(|(name, node)| (name.to_owned(), node)).into(),
            partitions: [("batch", batch), ("debug", debug)]
                .map(|(name, part)| (name.to_owned(), part))
                .into(),
            ..Cluster::default()
        }
    }

    #[test]
    fn settings_are_those_of_the_configuration() {
        let mut changed = cluster();
        changed.configuration.scheduler_parameters = Some("bf_window=60".to_owned());
        for text in [
            "bf_window=2880",
            "priorityweightage=7",
            "PriorityDecayHalfLife=7-0",
            "PriorityMaxAge=60",
            "PriorityFavorSmall=yes",
            "SchedulerType=sched/backfill",
            "debug:PriorityTier=5",
            "debug:PriorityJobFactor=3",
        ] {
            changed.set(&text.parse().expect(text)).expect(text);
        }
        let Configuration { scheduler, weights, oldest, half_life, favours_small, .. } =
            &changed.configuration;
        assert_eq!(
            changed.configuration.scheduler_parameters.as_deref(),
            Some("bf_window=60,bf_window=2880")
        );
        assert_eq!((scheduler.as_str(), weights["PriorityWeightAge"].as_str()), ("sched/backfill", "7"));
        assert_eq!((*half_life, *oldest, *favours_small), (604_800, Some(3_600), true));
        let Partition { tier, job_factor, .. } = changed.partitions["debug"];
        assert_eq!((tier, job_factor, changed.partitions["batch"].tier), (5, 3, 1));
    }

    #[test]
    fn what_the_twin_lacks_is_refused() {
        for (text, problem) in [
            ("bf_continue", "write KEY=VALUE"),
            ("bf_continue=1", "does not have bf_continue; it has batch_sched_delay, "),
            ("debug:bf_window=1", "does not have debug:bf_window"),
            ("PriorityTier=1", "does not have PriorityTier; it has "),
            ("bf_window=-1", "bf_window: the value must be a whole number"),
            ("PriorityFavorSmall=1", "must be yes or no"),
            ("PriorityMaxAge=x", "must be a time of slurm.conf"),
            ("SchedulerType=sched/other", "must be sched/backfill or sched/builtin"),
        ] {
            let error = text.parse::<Setting>().expect_err(text);
            assert!(error.contains(problem), "{text}: {error}");
        }
        let missing = cluster().set(&"long:PriorityTier=1".parse().expect("a setting"));
        assert_eq!(missing, Err("no partition long; there are batch, debug".to_owned()));
    }

    #[test]
    fn added_nodes_are_like_the_commonest_or_a_named_one() {
        let mut more = cluster();
        more.add_nodes(2, None).expect("nodes");
        assert_eq!((more.nodes.len(), more.nodes["added2"].cpus, more.nodes["added2"].cpus_used), (5, 4, 0));
        let nodes = |cluster: &Cluster| ["batch", "debug"].map(|name| cluster.partitions[name].nodes.len());
        assert_eq!(nodes(&more), [5, 1]);
        more.add_nodes(1, Some("a1")).expect("nodes");
        assert_eq!((more.nodes["added3"].cpus, nodes(&more)), (8, [6, 2]));
        assert_eq!(more.add_nodes(1, Some("n9")), Err("no node n9".to_owned()));
        assert_eq!(more.machine().capacity().cpus_count().get(), 8 + 4 + 4 + 4 + 4 + 8);
    }
}
