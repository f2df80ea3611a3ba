//! The weights of the resources of partitions in the usage.

use std::collections::BTreeMap;

use crate::{Cluster, TwinQueues};

/// The weights of a partition, for the parameter `billing` of the policy `slurm`, and those that the policy lacks.
fn weights(text: &str) -> (Vec<(&'static str, f64)>, Vec<String>) {
    let (mut known, mut others) = (vec![], vec![]);
    for one in text.split(',').map(str::trim).filter(|one| !one.is_empty()) {
        let read = || {
            let (name, value) = one.split_once('=')?;
            let name = match name.trim().to_lowercase().as_str() {
                "cpu" => "cpus",
                "mem" => "memory",
                "gres/gpu" => "gpus",
                "node" => "hosts",
                _ => return None,
            };
            // A weight of memory is for a MiB, or for its unit.
            let units = [('K', 1.0 / 1024.0), ('M', 1.0), ('G', 1024.0), ('T', 1024.0 * 1024.0)];
            let value = value.trim().to_uppercase();
            let unit = units.iter().find(|(unit, _)| name == "memory" && value.ends_with(*unit));
            let number: f64 =
                value.trim_end_matches(|end| unit.is_some_and(|(unit, _)| end == *unit)).parse().ok()?;
            let weight = number / unit.map_or(1.0, |(_, mebibytes)| *mebibytes);
            (weight.is_finite() && weight >= 0.0).then_some((name, weight))
        };
        match read() {
            Some(weight) => known.push(weight),
            None => others.push(one.to_owned()),
        }
    }
    (known, others)
}

impl Cluster {
    /// Returns the parameter `billing` of the policy `slurm`, if some partitions have weights, and the weights that it lacks.
    pub(super) fn billing(&self, queues: &TwinQueues) -> (Option<String>, Vec<String>) {
        let flags = self.configuration.priority_flags.as_deref().unwrap_or_default().to_uppercase();
        let is_largest = flags.split(',').any(|flag| flag.trim() == "MAX_TRES");
        let (mut by_weights, mut lacks): (BTreeMap<String, Vec<String>>, Vec<String>) =
            (BTreeMap::new(), vec![]);
        for (number, queue) in queues.iter() {
            let partition = self.partitions.get(&queue.partition);
            let Some(text) = partition.and_then(|partition| partition.billing_weights.as_deref()) else {
                continue;
            };
            let (mut known, others) = weights(text);
            if known.is_empty() {
                known.push(("cpus", 0.0));
            }
            let mut written: Vec<String> =
                known.iter().map(|(name, weight)| format!("{name}={weight}")).collect();
            written.extend(is_largest.then(|| "sum=largest".to_owned()));
            by_weights.entry(written.join(", ")).or_default().push(number.to_string());
            let lack =
                format!("TRESBillingWeights={} of the partition {}", others.join(","), queue.partition);
            if !others.is_empty() && !lacks.contains(&lack) {
                lacks.push(lack);
            }
        }
        let rules = by_weights.iter().map(|(weights, numbers)| format!("{}: {weights}", numbers.join("+")));
        let rules: Vec<String> = rules.collect();
        ((!rules.is_empty()).then(|| format!("billing='{}'", rules.join("; "))), lacks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_slurm() {
        let read = |text: &str| {
            let (known, others) = weights(text);
            let known: Vec<String> = known.iter().map(|(name, weight)| format!("{name}={weight}")).collect();
            (known.join(" "), others.join(" "))
        };
        let pair = |known: &str, others: &str| (known.to_owned(), others.to_owned());
        assert_eq!(read("CPU=1.0,Mem=0.25G,GRES/gpu=2.0"), pair("cpus=1 memory=0.000244140625 gpus=2", ""));
        assert_eq!(read("cpu=3, mem=2,node=1"), pair("cpus=3 memory=2 hosts=1", ""));
        assert_eq!(
            read("CPU=1,GRES/gpu:a100=8,license/x=1,mem=-1"),
            pair("cpus=1", "GRES/gpu:a100=8 license/x=1 mem=-1")
        );
    }
}
