//! The policy that schedules as a cluster does.

mod audit;

mod billing;

mod order;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use miserly_core::Span;
use miserly_policies::PolicySpec;
use serde::Serialize;

pub use audit::{ControllerDelays, TwinAudit, TwinCauses};
pub use order::{Machinery, QueueWeights};

use order::{TIER, by_queue};

use crate::cluster::SCHEDULING;
use crate::{Associations, BackfillCycles, Cluster, Configuration, Limits, TwinQueue, TwinQueues};

/// Weights of a priority that the twin has no value for, with their quantities.
const NOT_MODELLED: [(&str, &str); 2] =
    [("PriorityWeightAssoc", "the association"), ("PriorityWeightTRES", "trackable resources")];

/// The least time between two main loops after submissions, 3 s by default.
const SUBMISSION_DELAY: &str = "batch_sched_delay";

/// The policy that schedules as a cluster does, as far as its configuration can be expressed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Twin {
    /// The policy, in its written form.
    pub policy: String,
    /// The parts of the configuration that the twin lacks.
    pub left_out: Vec<String>,
}

impl Twin {
    /// Returns the twin with the cycles of a cluster. `begin`: the wall time of the instant 0.
    #[must_use]
    pub fn with_cycles(
        self,
        configuration: &Configuration,
        cycles: BackfillCycles,
        begin: Timestamp,
    ) -> Twin {
        let interval = configuration.cycle() + cycles.mean;
        let first = cycles.last.duration_since(begin).as_micros().rem_euclid(interval.ticks().into());
        self.with_interval(configuration, &format!("bf_interval={}us, bf_first={first}us", interval.ticks()))
    }

    /// Returns the twin with cycles that are this many times as far apart as those of the cluster.
    pub(crate) fn with_fewer_cycles(self, configuration: &Configuration, apart: u64) -> Twin {
        let interval = configuration.cycle().secs().unsigned_abs().saturating_mul(apart);
        self.with_interval(configuration, &format!("bf_interval={interval}s"))
    }

    /// Returns the twin with these parameters of its cycles in place of the interval of the cluster.
    pub(crate) fn with_interval(self, configuration: &Configuration, written: &str) -> Twin {
        let before = format!("bf_interval={}s", configuration.cycle().secs());
        if !configuration.has_backfilling() {
            self
        } else if self.policy.contains(&before) {
            Twin { policy: self.policy.replace(&before, written), ..self }
        } else {
            self.with(written)
        }
    }

    /// Returns the twin with further parameters.
    pub(crate) fn with(self, parameters: &str) -> Twin {
        let policy = match self.policy.strip_suffix(')') {
            Some(others) => format!("{others}, {parameters})"),
            None => format!("{}({parameters})", self.policy),
        };
        Twin { policy, ..self }
    }
}

impl Configuration {
    /// Returns the policy that schedules by this configuration.
    ///
    /// The order has the age and the size of jobs, with the weights of `priority/multifactor`, rounded down to a whole number as
    /// Slurm's priorities are, and at least 1: 0 is that of held jobs. The size is the mean of the shares of the processors and of
    /// the nodes; a job counts as one that asks for one node. The parts of partitions and of qualities of service depend on the
    /// queue of a job; those that are all alike are left out. The part of the fair share is that of the group of a job. Jobs of a
    /// higher tier are before all others. `ordered`: the jobs come in the order of their priorities already.
    ///
    /// The parts of more queues than a formula may have are left out.
    pub fn twin(&self, machinery: Machinery<'_>, ordered: bool) -> Twin {
        let twin = self.whole_twin(machinery, ordered);
        if twin.policy.parse::<PolicySpec>().is_ok() {
            return twin;
        }
        let mut twin = self.whole_twin(Machinery { queues: &[], ..machinery }, ordered);
        twin.left_out.push(format!("the parts of {} queues in the priorities", machinery.queues.len()));
        twin
    }

    fn whole_twin(&self, machinery: Machinery<'_>, ordered: bool) -> Twin {
        let mut left_out = vec![];
        let mut parameters = vec![];
        match self.priority.as_str() {
            _ if ordered => {}
            "priority/multifactor" => {
                let fair_share = self.fair_share(machinery, &mut left_out);
                parameters.extend(self.ordered_by(machinery, fair_share));
                let weighs = |(key, _): &&(&str, &str)| self.weight(key).is_none_or(|weight| weight != 0.0);
                let missing =
                    NOT_MODELLED.iter().filter(weighs).filter(|(key, _)| self.weights.contains_key(*key));
                left_out
                    .extend(missing.map(|(key, what)| format!("{what} ({key} = {})", self.weights[*key])));
            }
            "priority/basic" => {
                let tiers = by_queue(machinery.queues, |queue| queue.tier, 1);
                parameters.extend(tiers.map(|tiers| format!("order='{tiers} * {TIER} + wait'")));
            }
            other => left_out.push(format!("the priorities of {other}")),
        }
        left_out.extend(self.priority_flags.iter().map(|flags| format!("PriorityFlags = {flags}")));
        parameters.extend(machinery.limits.map(|limits| format!("limits='{limits}'")));
        let mut scheduling = self.scheduling();
        // Jobs in the order of their priorities are all there already.
        let delay = scheduling.remove(SUBMISSION_DELAY).flatten().and_then(|value| value.parse().ok());
        parameters.extend((!ordered).then(|| format!("{SUBMISSION_DELAY}={}s", delay.unwrap_or(3_u32))));
        if self.has_backfilling() {
            for (key, value) in &scheduling {
                let unit = SCHEDULING.iter().find(|(known, _)| known == key).map(|(_, unit)| *unit);
                let parameter = unit.zip(*value).map(|(unit, value)| format!("{key}={value}{unit}"));
                match parameter
                    .filter(|parameter| format!("slurm({parameter})").parse::<PolicySpec>().is_ok())
                {
                    Some(parameter) => parameters.push(parameter),
                    None => left_out
                        .push(value.map_or_else(|| (*key).to_owned(), |value| format!("{key}={value}"))),
                }
            }
        } else {
            parameters.push("backfill=false".to_owned());
        }
        let policy = if parameters.is_empty() {
            "slurm".to_owned()
        } else {
            format!("slurm({})", parameters.join(", "))
        };
        Twin { policy, left_out }
    }

    /// Returns the time between two cycles of backfilling.
    pub fn cycle(&self) -> Span {
        let written = self.scheduling().get("bf_interval").copied().flatten();
        let seconds = written.and_then(|value| value.parse().ok()).filter(|seconds: &i64| *seconds > 0);
        seconds.and_then(Span::from_secs).unwrap_or(Span::from_ticks(30_000_000))
    }

    /// Returns the unit of the reservations of backfilling.
    pub(crate) fn resolution(&self) -> Span {
        let written = self.scheduling().get("bf_resolution").copied().flatten();
        let seconds = written.and_then(|value| value.parse().ok()).filter(|seconds: &i64| *seconds > 0);
        seconds.and_then(Span::from_secs).unwrap_or(Span::from_ticks(60_000_000))
    }

    pub(crate) fn has_backfilling(&self) -> bool {
        // Slurm switches cycles off by this value.
        self.scheduler == "sched/backfill" && self.scheduling().get("bf_interval") != Some(&Some("-1"))
    }

    /// Returns the scheduler's parameters. Of several values of one, the last counts.
    fn scheduling(&self) -> BTreeMap<&str, Option<&str>> {
        let all = self.scheduler_parameters.as_deref().unwrap_or_default().split(',').map(str::trim);
        all.filter(|word| !word.is_empty())
            .map(|word| word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value))))
            .collect()
    }
}

impl Cluster {
    /// Returns the policy that schedules as this cluster does.
    ///
    /// `queues`: the queues of the jobs. `limits`: all qualities of service, and the limits of associations. `associations`: those whose
    /// numbers are the groups of the jobs, if they are known. `ordered`: the jobs come in the order of their priorities already.
    pub fn twin(
        &self,
        queues: &TwinQueues,
        limits: &Limits,
        associations: Option<&Associations>,
        ordered: bool,
    ) -> Twin {
        let qualities = &limits.qualities;
        let weights = |(number, queue): (u32, &TwinQueue)| {
            let partition = self.partitions.get(&queue.partition)?;
            let quality = qualities.iter().find(|quality| Some(&quality.name) == queue.quality.as_ref());
            let quality = quality.map_or(0, |quality| quality.priority);
            Some(QueueWeights { number, tier: partition.tier, factor: partition.job_factor, quality })
        };
        let weights: Vec<QueueWeights> = queues.iter().filter_map(weights).collect();
        let (written, lacks) = self.running_limits(queues, limits, associations);
        let machinery = Machinery {
            processors: self.nodes.values().map(|node| node.cpus).sum(),
            nodes: self.nodes.len() as u64,
            queues: &weights,
            most_factor: self.partitions.values().map(|partition| partition.job_factor).max().unwrap_or(1),
            most_quality: qualities.iter().map(|quality| quality.priority).max().unwrap_or(1),
            shares: associations.map(Associations::shares),
            limits: written.as_deref(),
        };
        let mut twin = self.configuration.twin(machinery, ordered);
        if let Some(preemption) = self.preemption_parameters(&queues.preemption_kinds(), qualities) {
            twin = twin.with(&preemption);
        }
        twin.left_out.extend(self.preemption_left_out(qualities));
        if twin.policy.contains("fair_tree") {
            let (billing, lacks) = self.billing(queues);
            twin = billing.map_or(twin.clone(), |billing| twin.with(&billing));
            twin.left_out.extend(lacks);
        }
        twin.left_out.extend(lacks);
        twin
    }

    /// Returns the limits of the running jobs of qualities of service and of associations, if Slurm enforces any, and those that the
    /// policy lacks.
    fn running_limits(
        &self,
        queues: &TwinQueues,
        limits: &Limits,
        associations: Option<&Associations>,
    ) -> (Option<String>, Vec<String>) {
        if !self.configuration.enforces_limits {
            return (None, vec![]);
        }
        let (mut written, mut lacks) = (vec![], vec![]);
        let mut of_qualities = BTreeSet::new();
        for quality in &limits.qualities {
            let of_quality = |(_, queue): &(u32, &TwinQueue)| queue.quality.as_ref() == Some(&quality.name);
            let numbers = queues.iter().filter(of_quality).map(|(number, _)| number.to_string());
            let numbers: Vec<String> = numbers.collect();
            if !numbers.is_empty() {
                of_qualities.extend(quality.limits.known.iter().map(|(name, _)| *name));
                written.extend(written_limit(&numbers.join("+"), &quality.limits.known));
            }
            let others = &quality.limits.others;
            if !others.is_empty() {
                lacks.push(format!("limits of the quality {} ({})", quality.name, others.join(", ")));
            }
        }
        for limit in &limits.associations {
            let owner = limit.owner();
            let of_jobs = limit.jobs.map(|most| ("jobs", most, "user_jobs"));
            let of_all = limit.all.known.iter().map(|(name, most)| (*name, *most, *name));
            // Slurm passes over the limit of an association where a quality has one of the same kind.
            let (hidden, known): (Vec<_>, Vec<_>) =
                of_all.chain(of_jobs).partition(|(.., kind)| of_qualities.contains(kind));
            let mut others: Vec<String> =
                hidden.iter().map(|(name, most, _)| format!("{name}={most}")).collect();
            others.extend(limit.all.others.iter().cloned());
            let known: Vec<(&'static str, u64)> =
                known.iter().map(|(name, most, _)| (*name, *most)).collect();
            match associations.map(|all| limits.groups_of(limit, all)) {
                Some(groups) if groups.is_empty() => {}
                Some(groups) => written.extend(written_limit(&groups.join("+"), &known)),
                None => others.extend(known.iter().map(|(name, most)| format!("{name}={most}"))),
            }
            if !others.is_empty() {
                lacks.push(format!("limits of {owner} ({})", others.join(", ")));
            }
        }
        ((!written.is_empty()).then(|| written.join("; ")), lacks)
    }
}

/// Returns limits of running jobs as a part of the parameter `limits`, if there are any.
fn written_limit(whose: &str, known: &[(&'static str, u64)]) -> Option<String> {
    let known: Vec<String> = known.iter().map(|(name, most)| format!("{name}={most}")).collect();
    (!known.is_empty()).then(|| format!("{whose}: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(scheduler: &str, parameters: &str, weights: &[(&str, &str)]) -> Configuration {
        Configuration {
            scheduler: scheduler.to_owned(),
            scheduler_parameters: Some(parameters.to_owned()),
            priority: if weights.is_empty() { "priority/basic" } else { "priority/multifactor" }.to_owned(),
            weights: weights.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            ..Configuration::default()
        }
    }

    /// The partition of the second queue has a quarter of the factor of the first one.
    const QUEUES: [QueueWeights; 2] = [
        QueueWeights { number: 1, tier: 1, factor: 40, quality: 0 },
        QueueWeights { number: 2, tier: 1, factor: 10, quality: 5 },
    ];
    const MACHINERY: Machinery<'_> = Machinery {
        processors: 64,
        nodes: 4,
        queues: &QUEUES,
        most_factor: 40,
        most_quality: 10,
        shares: None,
        limits: None,
    };

    #[track_caller]
    fn check(configuration: &Configuration, policy: &str, left_out: &[&str]) {
        let twin = configuration.twin(MACHINERY, false);
        assert_eq!(
            (twin.policy.as_str(), twin.left_out),
            (policy, left_out.iter().map(|&word| word.to_owned()).collect())
        );
        twin.policy.parse::<PolicySpec>().expect("a policy");
    }

    #[test]
    fn a_configuration_becomes_a_policy() {
        check(&configuration("sched/backfill", "", &[]), "slurm(batch_sched_delay=3s)", &[]);
        check(
            &configuration("sched/builtin", "bf_interval=5", &[]),
            "slurm(batch_sched_delay=3s, backfill=false)",
            &[],
        );
        check(
            &configuration("sched/backfill", "bf_interval=5, bf_window=2880,bf_continue,max_rpc_cnt=8", &[]),
            "slurm(batch_sched_delay=3s, bf_interval=5s, bf_window=2880min)",
            &["bf_continue", "max_rpc_cnt=8"],
        );
        check(
            &configuration("sched/backfill", "bf_interval=-1", &[]),
            "slurm(batch_sched_delay=3s, backfill=false)",
            &[],
        );
        check(
            &configuration("sched/backfill", "bf_window=0,bf_interval=9,bf_interval=7,bf_resolution", &[]),
            "slurm(batch_sched_delay=3s, bf_interval=7s)",
            &["bf_resolution", "bf_window=0"],
        );
        let weights = [
            ("PriorityWeightAge", "1000"),
            ("PriorityWeightJobSize", "100"),
            ("PriorityWeightFairShare", "9"),
        ];
        check(
            &configuration("sched/backfill", "", &weights),
            "slurm(order='max(floor(1000 * min(wait / 604800, 1) + 100 * (procs / 64 + 1 / 4) / 2), 1)', batch_sched_delay=3s)",
            &["fair share (PriorityWeightFairShare = 9)"],
        );
        check(&configuration("sched/backfill", "", &weights[..1]), "slurm(batch_sched_delay=3s)", &[]);
        let computed = Configuration {
            computations: Some((300, 1_795_746_772)),
            ..configuration("sched/backfill", "", &weights[..2])
        };
        check(
            &computed,
            "slurm(order='max(floor(1000 * min(wait / 604800, 1) + 100 * (procs / 64 + 1 / 4) / 2), 1)', \
             priority_calc_period=300s, priority_calc_first=172s, batch_sched_delay=3s)",
            &[],
        );
        let weights = [("PriorityWeightAge", "10"), ("PriorityWeightPartition", "1000")];
        check(
            &configuration("sched/backfill", "", &weights),
            "slurm(order='max(floor(10 * min(wait / 604800, 1) + 1000 * (if(queue == 1, 40 / 40, 0) + if(queue == 2, 10 / 40, 0))), 1)', batch_sched_delay=3s)",
            &[],
        );
        check(
            &configuration("sched/backfill", "", &[("PriorityWeightQOS", "7")]),
            "slurm(order='max(floor(7 * (if(queue == 2, 5 / 10, 0))), 1)', batch_sched_delay=3s)",
            &[],
        );
    }

    #[test]
    fn priorities_are_computed_when_the_statistics_begin() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let first = |begin| {
            let mut started = Configuration { computations: Some((60, 1_000)), ..Configuration::default() };
            started.set_statistics_begin(at(begin));
            started.computations.map(|(_, first)| first)
        };
        assert_eq!([first(1_002), first(1_000)], [Some(1_002), Some(1_000)]);
        // They began anew at midnight, or the clock was set.
        assert_eq!([first(1_060), first(999)], [Some(1_000); 2]);
    }

    #[test]
    fn the_cycles_are_those_of_the_cluster() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mean = Span::from_ticks(150_000);
        let cycles =
            BackfillCycles { since: None, last: at(1_007), mean, longest: mean, main: [Span::ZERO; 2] };
        let written = |scheduler, parameters| {
            let configuration = configuration(scheduler, parameters, &[]);
            configuration.twin(MACHINERY, false).with_cycles(&configuration, cycles, at(1_000)).policy
        };
        let first = "bf_interval=30150000us, bf_first=7000000us";
        for (parameters, policy) in [
            ("", format!("slurm(batch_sched_delay=3s, {first})")),
            ("bf_interval=30", format!("slurm(batch_sched_delay=3s, {first})")),
            ("bf_resolution=1", format!("slurm(batch_sched_delay=3s, bf_resolution=1s, {first})")),
            ("bf_interval=30,bf_window=60", format!("slurm(batch_sched_delay=3s, {first}, bf_window=60min)")),
        ] {
            assert_eq!(written("sched/backfill", parameters), policy);
            policy.parse::<PolicySpec>().expect("a policy");
        }
        assert_eq!(written("sched/builtin", ""), "slurm(batch_sched_delay=3s, backfill=false)");
    }

    #[test]
    fn the_fair_share_is_a_tree_of_shares() {
        let machinery = Machinery { shares: Some("1*g1, 2*(1*g2)"), ..MACHINERY };
        let weights = [("PriorityWeightFairShare", "500"), ("PriorityWeightAge", "10")];
        let configuration =
            Configuration { half_life: 604_800, ..configuration("sched/backfill", "", &weights) };
        let order = "max(floor(10 * min(wait / 604800, 1) + 500 * fair_tree), 1)";
        let policy = format!(
            "slurm(order='{order}', half_life=604800s, shares='1*g1, 2*(1*g2)', batch_sched_delay=3s)"
        );
        let twin = configuration.twin(machinery, false);
        assert_eq!((&twin.policy, twin.left_out.len()), (&policy, 0));
        twin.policy.parse::<PolicySpec>().expect("a policy");
        let flat = Configuration {
            priority_flags: Some("NO_FAIR_TREE".to_owned()),
            usage_reset: Some("WEEKLY".to_owned()),
            ..configuration.clone()
        };
        assert_eq!(flat.twin(machinery, false).policy, "slurm(batch_sched_delay=3s)");
        let reset = Configuration { priority_flags: None, half_life: 0, ..flat };
        let twin = reset.twin(machinery, false);
        assert!(twin.policy.contains("half_life=none"), "{}", twin.policy);
        assert_eq!(twin.left_out, ["the end of usage (PriorityUsageResetPeriod = WEEKLY)"]);
    }

    #[test]
    fn jobs_of_a_higher_tier_are_first() {
        let [first, second] = QUEUES;
        let machinery =
            Machinery { queues: &[first, QueueWeights { tier: 2, factor: 40, ..second }], ..MACHINERY };
        let tiers = "(if(queue == 1, 1, 0) + if(queue == 2, 2, 0)) * 4294967296";
        for (weights, order) in [
            (&[][..], format!("{tiers} + wait")),
            (&[("PriorityWeightAge", "10")], format!("{tiers} + wait")),
            (
                &[("PriorityWeightJobSize", "8")],
                format!("{tiers} + max(floor(8 * (procs / 64 + 1 / 4) / 2), 1)"),
            ),
        ] {
            let twin = configuration("sched/backfill", "", weights).twin(machinery, false);
            assert_eq!(twin.policy, format!("slurm(order='{order}', batch_sched_delay=3s)"));
            twin.policy.parse::<PolicySpec>().expect("a policy");
        }
    }

    #[test]
    fn many_queues_are_in_the_order_and_too_many_are_left_out() {
        let configuration = configuration("sched/backfill", "", &[("PriorityWeightQOS", "7")]);
        let twin = |count: u32| {
            let queue = |number| QueueWeights { number, quality: u64::from(number), ..QUEUES[0] };
            let queues: Vec<QueueWeights> = (1..=count).map(queue).collect();
            let twin = configuration.twin(Machinery { queues: &queues, ..MACHINERY }, false);
            twin.policy.parse::<PolicySpec>().expect("a policy");
            twin
        };
        let many = twin(60);
        assert!(many.policy.contains("queue == 60"), "{}", many.policy);
        assert_eq!(many.left_out, [""; 0]);
        assert_eq!(twin(900).left_out, ["the parts of 900 queues in the priorities"]);
    }

    #[test]
    fn limits_of_associations_are_those_of_groups() {
        let tree = "root||||0\n chem|||1|0\n  chem|ann||1|0\n  chem|bob||1|0\n physics|||1|0\n  lab|||1|0\n   lab|ann||1|0\n";
        let associations = Associations::parse(tree).unwrap();
        let quality = |known: &[(&'static str, u64)]| crate::Quality {
            name: "normal".to_owned(),
            limits: crate::QualityLimits { known: known.to_vec(), others: vec![] },
            ..crate::Quality::default()
        };
        let mut limits = Limits { qualities: vec![quality(&[])], ..Limits::default() };
        limits.add_associations(
            "chem|||root|5||||||\nchem|ann|||||2||||\nphysics|||root||cpu=64,node=3|||||\nlab|||physics|||||||\n",
        );
        let queue = TwinQueue { partition: "batch".to_owned(), quality: Some("normal".to_owned()) };
        let queues = TwinQueues::with_numbers([(1, queue)]);
        let mut cluster = Cluster::default();
        let written = |cluster: &Cluster, limits: &Limits, associations| {
            cluster.running_limits(&queues, limits, associations)
        };
        assert_eq!(written(&cluster, &limits, Some(&associations)), (None, vec![]), "none is enforced");
        cluster.configuration.enforces_limits = true;
        let (policy, lacks) = written(&cluster, &limits, Some(&associations));
        assert_eq!(policy.as_deref(), Some("g1+g2: jobs=5; g1: jobs=2; g3: procs=64"));
        assert_eq!(lacks, ["limits of the account physics (GrpTRES=node=3)"]);
        let (policy, lacks) = written(&cluster, &limits, None);
        assert_eq!((policy, lacks.len()), (None, 3), "{lacks:?}");
        // The quality's limit of all jobs together is in the place of those of accounts.
        limits.qualities = vec![quality(&[("jobs", 9)])];
        let (policy, lacks) = written(&cluster, &limits, Some(&associations));
        assert_eq!(policy.as_deref(), Some("1: jobs=9; g1: jobs=2; g3: procs=64"));
        assert_eq!(lacks[0], "limits of the account chem (jobs=5)");
    }
}
