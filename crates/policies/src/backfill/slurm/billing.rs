//! The weights of resources in the usage, as Slurm's `TRESBillingWeights` has them for each partition.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use miserly_core::{ResourceWeights, UsageWeights};
use thiserror::Error;

/// What the resources of jobs cost, by queue. A job of another queue costs as much as it has processors.
///
/// The weights are of a processor (`cpus`), a MiB of memory (`memory`), a GPU (`gpus`) and a host (`hosts`). `sum=largest`: the largest
/// of the products counts, and not their sum. A weight is at most 1e9.
///
/// # Example
/// ```
/// use miserly_policies::backfill::BillingWeights;
///
/// let weights: BillingWeights = "1+3: cpus=1, gpus=4; 2: memory=0.5, sum=largest".parse()?;
/// assert_eq!(weights.to_string(), "1: cpus=1, gpus=4; 2: memory=0.5, sum=largest; 3: cpus=1, gpus=4");
/// # Ok::<(), miserly_policies::backfill::BillingWeightsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BillingWeights(Option<Arc<UsageWeights>>);

/// The largest weight.
const MOST_WEIGHT: f64 = 1e9;

/// The reason why a text is no list of weights.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{text}\" has no weights; write such as '1+3: cpus=1, memory=0.25, gpus=4, hosts=0, sum=largest', each queue once"
)]
pub struct BillingWeightsError {
    text: String,
}

impl BillingWeights {
    /// Returns the weights, if there are any.
    pub(super) fn weights(&self) -> Option<Arc<UsageWeights>> {
        self.0.clone()
    }
}

impl FromStr for BillingWeights {
    type Err = BillingWeightsError;

    fn from_str(text: &str) -> Result<BillingWeights, BillingWeightsError> {
        let mut all = BTreeMap::new();
        for text in text.split(';') {
            let error = || BillingWeightsError { text: text.trim().to_owned() };
            let (queues, weights) = read(text).ok_or_else(error)?;
            for queue in queues {
                if all.insert(queue, weights).is_some() {
                    return Err(error());
                }
            }
        }
        Ok(BillingWeights(Some(Arc::new(UsageWeights::new(all)))))
    }
}

fn read(text: &str) -> Option<(Vec<u32>, ResourceWeights)> {
    let (queues, values) = text.split_once(':')?;
    let queues = queues.split('+').map(|queue| queue.trim().parse().ok()).collect::<Option<_>>()?;
    let mut weights = ResourceWeights::default();
    let mut seen = vec![];
    for value in values.split(',') {
        let (name, value) = value.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if seen.contains(&name) {
            return None;
        }
        seen.push(name);
        if name == "sum" {
            weights.largest = value == "largest";
            weights.largest.then_some(())?;
            continue;
        }
        let weight = value.parse().ok().filter(|weight: &f64| (0.0..=MOST_WEIGHT).contains(weight))?;
        *match name {
            "cpus" => &mut weights.cpus,
            "memory" => &mut weights.memory,
            "gpus" => &mut weights.gpus,
            "hosts" => &mut weights.hosts,
            _ => return None,
        } = weight;
    }
    Some((queues, weights))
}

/// Formats the weights in their written form, queue by queue.
impl fmt::Display for BillingWeights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_queue = |(queue, weights): (&u32, &ResourceWeights)| {
            let ResourceWeights { cpus, memory, gpus, hosts, largest } = *weights;
            let named = [("cpus", cpus), ("memory", memory), ("gpus", gpus), ("hosts", hosts)];
            let named = named.into_iter().filter(|(_, weight)| *weight > 0.0);
            let mut values: Vec<String> = named.map(|(name, weight)| format!("{name}={weight}")).collect();
            if values.is_empty() {
                values.push("cpus=0".to_owned());
            }
            values.extend(largest.then(|| "sum=largest".to_owned()));
            format!("{queue}: {}", values.join(", "))
        };
        let queues = self.0.iter().flat_map(|weights| weights.queues());
        f.write_str(&queues.map(of_queue).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_read_back() {
        for (text, canonical) in [
            ("1: cpus=1", "1: cpus=1"),
            ("2+1:gpus=0.5,sum=largest", "1: gpus=0.5, sum=largest; 2: gpus=0.5, sum=largest"),
            ("7: cpus=0", "7: cpus=0"),
        ] {
            let weights: BillingWeights = text.parse().unwrap();
            assert_eq!(weights.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(weights));
        }
        for wrong in [
            "",
            "1",
            "1:",
            "1: cpu=1",
            "1: cpus=-1",
            "1: cpus=inf",
            "1: cpus=1, cpus=2",
            "1: sum=all",
            "1: cpus=1; 1: cpus=1",
            "all: cpus=1",
        ] {
            assert!(wrong.parse::<BillingWeights>().is_err(), "{wrong}");
        }
    }
}
