//! The order of the jobs of a twin: priorities as a formula.

use crate::Configuration;

/// The weight of the fair share.
const FAIR_SHARE: &str = "PriorityWeightFairShare";

/// More than any priority: the step from a tier to the next one.
pub(super) const TIER: u64 = 1 << 32;

/// The parts of a cluster that the order of its twin depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Machinery<'a> {
    /// Its processors.
    pub processors: u64,
    /// Its nodes.
    pub nodes: u64,
    /// The queues of its jobs.
    pub queues: &'a [QueueWeights],
    /// The largest factor of a partition.
    pub most_factor: u64,
    /// The largest priority of a quality of service.
    pub most_quality: u64,
    /// The tree of the shares of its associations, if it is known. Their numbers are the groups of the jobs.
    pub shares: Option<&'a str>,
    /// The limits of running jobs, for the parameter `limits`, if there are any.
    pub limits: Option<&'a str>,
}

/// The parts of the jobs of a queue in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueWeights {
    /// The number of the queue in a log.
    pub number: u32,
    /// The tier of its partition: jobs of a higher one are before those of a lower one.
    pub tier: u64,
    /// The factor of its partition (`PriorityJobFactor`).
    pub factor: u64,
    /// The priority of its quality of service.
    pub quality: u64,
}

impl Configuration {
    pub(super) fn weight(&self, key: &str) -> Option<f64> {
        self.weights.get(key)?.parse().ok()
    }

    /// Returns whether Slurm's Fair Tree is a part of the priorities.
    pub fn has_fair_tree(&self) -> bool {
        let flags = self.priority_flags.as_deref().unwrap_or_default();
        self.priority == "priority/multifactor"
            && self.weight(FAIR_SHARE).is_some_and(|weight| weight > 0.0)
            && !flags.contains("NO_FAIR_TREE")
    }

    /// Returns the weight of the fair share, if the twin has it, and notes what it lacks of it.
    pub(super) fn fair_share(&self, machinery: Machinery<'_>, left_out: &mut Vec<String>) -> Option<f64> {
        let weight = self.weight(FAIR_SHARE).filter(|weight| *weight > 0.0)?;
        if machinery.shares.is_none() || !self.has_fair_tree() {
            left_out.push(format!("fair share ({FAIR_SHARE} = {weight})"));
            return None;
        }
        let reset = self.usage_reset.iter();
        left_out
            .extend(reset.map(|period| format!("the end of usage (PriorityUsageResetPeriod = {period})")));
        Some(weight)
    }

    /// Returns the parameters of the order by priorities, if it is another one than that of arrival.
    pub(super) fn ordered_by(&self, machinery: Machinery<'_>, fair_share: Option<f64>) -> Vec<String> {
        let Some(order) = self.order(machinery, fair_share) else { return vec![] };
        let mut parameters = vec![format!("order={order}")];
        if let Some((shares, _)) = machinery.shares.zip(fair_share) {
            let half_life =
                if self.half_life == 0 { "none".to_owned() } else { format!("{}s", self.half_life) };
            parameters.push(format!("half_life={half_life}, shares='{shares}'"));
        }
        // The zero of the log is an hour of the clock, so that a period that divides it has the same rest there.
        if let Some((period, boot)) = self.computations.filter(|(period, _)| 3_600 % period == 0) {
            let first = boot.rem_euclid(i64::try_from(period).unwrap_or(i64::MAX));
            parameters.push(format!("priority_calc_period={period}s, priority_calc_first={first}s"));
        }
        parameters
    }

    /// Returns the order by priorities, if it is another one than that of arrival.
    pub(super) fn order(&self, machinery: Machinery<'_>, fair_share: Option<f64>) -> Option<String> {
        let Machinery { processors, nodes, queues, most_factor, most_quality, .. } = machinery;
        let weight = |key| self.weight(key).filter(|weight| *weight > 0.0);
        let size = weight("PriorityWeightJobSize").map(|weight| {
            let shares = format!("procs / {} + 1 / {}", processors.max(1), nodes.max(1));
            if self.favours_small {
                format!("{weight} * (1 - ({shares}) / 2)")
            } else {
                format!("{weight} * ({shares}) / 2")
            }
        });
        let part = |key, of: fn(&QueueWeights) -> u64, most| {
            weight(key).zip(by_queue(queues, of, most)).map(|(weight, parts)| format!("{weight} * {parts}"))
        };
        let partition = part("PriorityWeightPartition", |queue| queue.factor, most_factor);
        let quality = part("PriorityWeightQOS", |queue| queue.quality, most_quality);
        let fair_share = fair_share.map(|weight| format!("{weight} * fair_tree"));
        // By age alone, jobs are in the order of arrival.
        let others: Vec<String> =
            size.into_iter().chain(partition).chain(quality).chain(fair_share).collect();
        let tiers = by_queue(queues, |queue| queue.tier, 1);
        if others.is_empty() {
            return tiers.map(|tiers| format!("'{tiers} * {TIER} + wait'"));
        }
        let oldest = self.oldest.unwrap_or(7 * 86_400).max(1);
        let age = weight("PriorityWeightAge").map(|weight| format!("{weight} * min(wait / {oldest}, 1)"));
        let parts = age.into_iter().chain(others).collect::<Vec<_>>().join(" + ");
        let tiers = tiers.map(|tiers| format!("{tiers} * {TIER} + ")).unwrap_or_default();
        Some(format!("'{tiers}max(floor({parts}), 1)'"))
    }
}

/// Returns the value of the queue of a job in parts of `most`, as a formula; none if it is the same for all queues. A sum may have more
/// queues than nested conditions may.
pub(super) fn by_queue(queues: &[QueueWeights], of: fn(&QueueWeights) -> u64, most: u64) -> Option<String> {
    if !queues.windows(2).any(|pair| of(&pair[0]) != of(&pair[1])) {
        return None;
    }
    let part = |queue: &QueueWeights| {
        let value = of(queue);
        let value = if most > 1 { format!("{value} / {most}") } else { value.to_string() };
        format!("if(queue == {}, {value}, 0)", queue.number)
    };
    let parts: Vec<String> = queues.iter().filter(|queue| of(queue) > 0).map(part).collect();
    Some(format!("({})", parts.join(" + ")))
}
