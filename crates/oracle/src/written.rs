//! Parsing of the written form of a policy, so that tests use one text for both implementations.

use std::str::FromStr;

use libm::{log2, log10};
use miserly_core::Span;

use crate::{
    ExactFacts, NaiveBook, NaiveCorrector, NaiveCycles, NaiveDecay, NaiveDraws, NaiveFacts, NaiveLimits,
    NaiveOnHosts, NaiveOrder, NaivePolicy, NaivePrediction, NaivePredictor, NaivePreemption, NaiveVictims,
    Ratio,
};

/// The given parameters.
struct Given<'a> {
    args: Vec<(&'a str, &'a str)>,
    /// The default seed of draws.
    seed: u64,
}

impl NaivePolicy {
    /// Returns the policy with this written form, if it has a reference implementation. `seed` is
    /// that of the run.
    pub fn written(text: &str, seed: u64) -> Option<NaivePolicy> {
        let (name, given) = read(text, seed);
        let order = given.order(given.word("order").unwrap_or(usual_order(name)))?;
        match name {
            "fcfs" => Some(NaivePolicy::Fcfs { order }),
            "easy" => {
                let backfill = given.word("backfill").map_or(Some(order), |word| given.order(word))?;
                let hold = given.word("hold_head") == Some("true");
                Some(NaivePolicy::Easy { order, backfill, hold })
            }
            "conservative" if given.word("keep_reservations") == Some("false") => {
                Some(NaivePolicy::NoGuarantee { order })
            }
            "sorted" => {
                let guarantee = given.number("guarantee", 1)?;
                Some(match given.word("late") {
                    Some("head") => NaivePolicy::LateAtHead { order, guarantee },
                    _ => NaivePolicy::Sorted { order, guarantee },
                })
            }
            "slurm" => {
                let cycles = given.cycles()?;
                Some(NaivePolicy::Slurm { order, cycles })
            }
            "conservative" => Some(NaivePolicy::Conservative { order }),
            "selective-backfill" => Some(NaivePolicy::Selective { order, threshold: given.threshold()? }),
            _ => None,
        }
    }
}

impl NaivePrediction {
    /// Returns the predictions of the policy with this written form, if it has any.
    pub fn written(text: &str) -> Option<NaivePrediction> {
        let (_, given) = read(text, 0);
        let predictor = match given.word("predict")? {
            "request" => NaivePredictor::Request,
            "last2" => NaivePredictor::LastTwo,
            "similar" => NaivePredictor::Similar,
            "exact" => NaivePredictor::Exact,
            number => NaivePredictor::Scale(number.parse().ok()?),
        };
        let corrector = match given.word("correct") {
            Some("increment") => NaiveCorrector::Increment,
            Some("double") => NaiveCorrector::Double,
            _ => NaiveCorrector::Request,
        };
        let book = match given.word("book") {
            Some("requested") => NaiveBook::Requested,
            Some("both") => NaiveBook::Both,
            Some("guarded") => NaiveBook::Guarded,
            _ => NaiveBook::Predicted,
        };
        Some(NaivePrediction { predictor, corrector, book })
    }
}

impl NaiveOnHosts {
    /// Returns the policy on hosts with this written form, if it has a reference implementation.
    /// `seed` is that of the run.
    pub fn written(text: &str, seed: u64) -> Option<NaiveOnHosts> {
        let (name, given) = read(text, seed);
        let order = match preset_on_hosts(name, &given) {
            Some(order) => order,
            None => given.order(given.word("order").unwrap_or(usual_order(name)))?,
        };
        let backfill = given.word("backfill").map_or(Some(order), |word| given.order(word))?;
        let hold = name == "sjf-backfill" || given.word("hold_head") == Some("true");
        let depth = match (name, given.word("depth"), given.word("keep_reservations")) {
            ("fcfs", ..) => return Some(NaiveOnHosts::Fcfs { order }),
            ("slurm", ..) => return Some(NaiveOnHosts::Slurm { order, cycles: given.cycles()? }),
            ("sorted", ..) => {
                let guarantee = given.number("guarantee", 1)?;
                return Some(match given.word("late") {
                    Some("head") => NaiveOnHosts::LateAtHead { order, guarantee },
                    _ => NaiveOnHosts::Sorted { order, guarantee },
                });
            }
            ("selective-backfill", ..) => {
                return Some(NaiveOnHosts::Selective { order, threshold: given.threshold()? });
            }
            // Without a horizon, no window is refused.
            ("miser", ..) if given.word("horizon") != Some("none") => return None,
            (_, Some("kept"), _) | ("miser", ..) | ("conservative", _, None | Some("true")) => {
                return Some(NaiveOnHosts::Kept { order });
            }
            (_, Some("all"), _) | ("conservative", ..) => None,
            _ => Some(given.number("depth", 1)?),
        };
        Some(NaiveOnHosts::Anew { order, backfill, depth, hold })
    }
}

/// Returns the order of a policy whose order is not written.
fn usual_order(name: &str) -> &'static str {
    if name == "sorted" { "shortest" } else { "arrival" }
}

/// Returns the queue order of a policy with a fixed one, or `None` for other policies.
fn preset_on_hosts(name: &str, given: &Given<'_>) -> Option<NaiveOrder> {
    let value: fn(&ExactFacts) -> Ratio = match (name, given.word("w_bypass")) {
        ("fcfs-backfill", _) => return Some(NaiveOrder::ARRIVAL),
        ("sjf-backfill", _) => return Some(NaiveOrder::SHORTEST),
        ("lxf-backfill", _) => xfactor,
        ("lxf&w-bf", _) => |job| ratio(167, 10_000) * job.wait / 3600.into() + xfactor(job),
        ("priority-bf", _) | ("priority-backfill", None) => table_3,
        ("priority-backfill", Some("2")) => |job| table_3(job) + ratio(2, 1) * job.bypassed,
        _ => return None,
    };
    Some(NaiveOrder::Exact { value, weight: 0.into(), usage: None })
}

fn xfactor(job: &ExactFacts) -> Ratio {
    (job.wait + job.estimate) / job.estimate
}

/// Returns the value of Priority-bf of Chiang and Vernon, as a sum of products.
fn table_3(job: &ExactFacts) -> Ratio {
    job.wait / 3600.into() + ratio(5, 1) * xfactor(job) + ratio(1, 5) * job.procs
}

fn ratio(numerator: i128, denominator: i128) -> Ratio {
    Ratio::new(numerator, denominator)
}

/// Returns the name and the parameters.
fn read(text: &str, seed: u64) -> (&str, Given<'_>) {
    let (name, args) = text.trim_end_matches(')').split_once('(').unwrap_or((text, ""));
    let args = arguments(args).into_iter().filter_map(|arg| arg.split_once('=')).collect();
    (name, Given { args, seed })
}

/// Splits the parameters at commas outside of quotes.
fn arguments(text: &str) -> Vec<&str> {
    let mut quoted = false;
    let split = |c: char| {
        quoted ^= c == '\'';
        c == ',' && !quoted
    };
    text.split(split).map(str::trim).collect()
}

impl Given<'_> {
    fn word(&self, name: &str) -> Option<&str> {
        self.args.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }

    /// Returns the given number or the default, or `None` if the text is not a number.
    fn number<T: FromStr>(&self, name: &str, default: T) -> Option<T> {
        self.word(name).map_or(Some(default), |text| text.parse().ok())
    }

    /// The threshold of the expansion factor, exactly as it is written.
    fn threshold(&self) -> Option<Ratio> {
        match self.word("threshold") {
            Some("inf") => Some(ratio(1, 0)),
            text => decimal(text.unwrap_or("2")),
        }
    }

    fn order(&self, word: &str) -> Option<NaiveOrder> {
        let weight = self.number("weight", 0.0)?;
        if weight == 0.0
            && let Some(rank) = rank(word)
        {
            return Some(rank);
        }
        if word == "arrival" {
            return Some(NaiveOrder::ARRIVAL);
        }
        if let Some(value) = exact_value(word) {
            let weight = decimal(self.word("weight").unwrap_or("0"))?;
            let usage =
                if word.contains("usage") || word == "fair-share" { Some(self.decay()?) } else { None };
            return Some(NaiveOrder::Exact { value, weight, usage });
        }
        Some(NaiveOrder::Value { value: value(word)?, weight, draws: self.draws()? })
    }

    /// Returns the cycles of Slurm. The tests write times in seconds.
    fn cycles(&self) -> Option<NaiveCycles> {
        let span = |name, default| {
            let text = self.word(name).map_or(Some(default), |text| text.strip_suffix('s')?.parse().ok());
            text.and_then(Span::from_secs)
        };
        Some(NaiveCycles {
            interval: span("bf_interval", 30)?,
            first: span("bf_first", 0)?,
            resolution: span("bf_resolution", 60)?,
            window: span("bf_window", 86_400)?,
            most: self.number("bf_max_job_test", 500)?,
            delay: span("batch_sched_delay", 0)?,
            limits: self.limits()?,
            // A test reads few policies.
            preemption: Box::leak(Box::new(NaivePreemption {
                rules: self.victims()?,
                youngest: self.word("preempt_youngest_first") == Some("true"),
                reorder: self.number("preempt_reorder_count", 1)?,
                strict: self.word("preempt_strict_order") == Some("true"),
                delay: span("requeue_delay", 120)?,
                completing: span("preempt_completing", 1)?,
                retry: span("preempt_retry", 40)?,
            })),
        })
    }

    /// Returns the rules of preemption. The tests write each for one queue, with times in seconds.
    fn victims(&self) -> Option<[Option<NaiveVictims>; 3]> {
        let seconds = |text: &str| Span::from_secs(text.strip_suffix('s')?.parse().ok()?);
        let mut rules = [None; 3];
        let text = self.word("preempt").unwrap_or_default().trim_matches('\'');
        for (nth, rule) in text.split(';').filter(|rule| !rule.is_empty()).enumerate() {
            let (queue, values) = rule.split_once(':')?;
            let queue = queue.trim().parse().ok()?;
            let mut victims = NaiveVictims {
                queue,
                by: [None; 3],
                by_priority: [None; 3],
                suspended: false,
                rank: 0,
                exempt: Span::ZERO,
                grace: Span::ZERO,
            };
            for (name, value) in values.split(',').filter_map(|value| value.trim().split_once('=')) {
                match name {
                    "by" | "by_priority" => {
                        let list = if name == "by" { &mut victims.by } else { &mut victims.by_priority };
                        for (place, queue) in list.iter_mut().zip(value.split('+')) {
                            *place = queue.parse().ok();
                        }
                    }
                    "mode" => victims.suspended = value == "suspend",
                    "rank" => victims.rank = value.parse().ok()?,
                    "exempt" => victims.exempt = seconds(value)?,
                    "grace" => victims.grace = seconds(value)?,
                    _ => return None,
                }
            }
            *rules.get_mut(nth)? = Some(victims);
        }
        Some(rules)
    }

    /// Returns the limits of running jobs. The tests write each by itself, for all jobs.
    fn limits(&self) -> Option<NaiveLimits> {
        let mut limits = NaiveLimits::default();
        let text = self.word("limits").unwrap_or_default().trim_matches('\'');
        for limit in text.split(';').filter(|limit| !limit.is_empty()) {
            let (name, most) = limit.trim().strip_prefix("all: ")?.split_once('=')?;
            *match name {
                "jobs" => &mut limits.jobs,
                "procs" => &mut limits.procs,
                "gpus" => &mut limits.gpus,
                "memory" => &mut limits.memory,
                "user_jobs" => &mut limits.user_jobs,
                "user_procs" => &mut limits.user_procs,
                "user_gpus" => &mut limits.user_gpus,
                "user_memory" => &mut limits.user_memory,
                _ => return None,
            } = Some(most.parse().ok()?);
        }
        Some(limits)
    }

    /// Returns the decay of usage. The tests write half-lives in seconds.
    fn decay(&self) -> Option<NaiveDecay> {
        const WEEK: i64 = 7 * 86_400;
        let secs = match self.word("half_life") {
            Some("none") => return Some(NaiveDecay::Never),
            Some(text) => text.strip_suffix('s')?.parse().ok()?,
            None => WEEK,
        };
        Span::from_secs(secs).map(NaiveDecay::HalfLife)
    }

    fn draws(&self) -> Option<NaiveDraws> {
        let seed = self.number("seed", self.seed)?;
        Some(match self.word("draw") {
            Some("pass") => NaiveDraws::Pass { seed },
            _ => NaiveDraws::Once { seed },
        })
    }
}

/// The number with these decimal digits, exactly.
fn decimal(text: &str) -> Option<Ratio> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{whole}{part}").parse().ok()?;
    Some(Ratio::new(digits, 10i128.pow(u32::try_from(part.len()).ok()?)))
}

fn rank(word: &str) -> Option<NaiveOrder> {
    Some(match word {
        "arrival" => NaiveOrder::ARRIVAL,
        "shortest" => NaiveOrder::SHORTEST,
        "longest" => NaiveOrder::LONGEST,
        "narrowest" => NaiveOrder::NARROWEST,
        "widest" => NaiveOrder::WIDEST,
        "smallest" => NaiveOrder::SMALLEST,
        "largest" => NaiveOrder::LARGEST,
        _ => return None,
    })
}

fn value(word: &str) -> Option<fn(NaiveFacts) -> f64> {
    Some(match word {
        "shortest" => |job| 1.0 / job.estimate,
        "longest" => |job| job.estimate,
        "narrowest" => |job| 1.0 / job.procs,
        "widest" => |job| job.procs,
        "smallest" => |job| 1.0 / (job.estimate * job.procs),
        "largest" => |job| job.estimate * job.procs,
        "random" => |job| job.random,
        "random/length" => |job| job.random / job.estimate,
        _ => return preset(word).or_else(|| formula(word)),
    })
}

/// Returns the exact value for the orders of the literature and for a few formulas with rational
/// values.
fn exact_value(word: &str) -> Option<fn(&ExactFacts) -> Ratio> {
    Some(match word {
        "sjf" => |job| -job.estimate,
        "sqf" => |job| -job.procs,
        "saf" => |job| -(job.estimate * job.procs),
        "lxf" => xfactor,
        "wfp3" => |job| {
            let ratio = job.wait / job.estimate;
            ratio * ratio * ratio * job.procs
        },
        "'wait / estimate'" => |job| job.wait / job.estimate,
        "'wait / 180 + 5 * (wait + estimate) / estimate + 0.2 * procs'" => {
            |job| job.wait / 180.into() + ratio(5, 1) * xfactor(job) + ratio(1, 5) * job.procs
        }
        "'1 / estimate'" => |job| ratio(1, 1) / job.estimate,
        "'procs - wait'" => |job| job.procs - job.wait,
        "'memory / (user + 1) - procs'" => |job| job.memory / (job.user + 1.into()) - job.procs,
        "'2 * bypassed - procs'" => |job| ratio(2, 1) * job.bypassed - job.procs,
        "fair-share" => |job| job.wait / 604_800.into() - job.usage_share,
        "'-group_usage_share - usage / 9'" => |job| -job.group_usage_share - job.usage * ratio(1, 9),
        "'wait / 3 - 9 * group_usage'" => |job| job.wait / 3.into() - ratio(9, 1) * job.group_usage,
        "'-usage_share'" => |job| -job.usage_share,
        "'wait / 3 - 2 * usage_share'" => |job| job.wait / 3.into() - ratio(2, 1) * job.usage_share,
        "'procs * (1 - usage_share)'" => |job| job.procs * (ratio(1, 1) - job.usage_share),
        "'-usage'" => |job| -job.usage,
        _ => return None,
    })
}

/// Returns the value for an order of the literature. It is negated where the smallest comes first.
fn preset(word: &str) -> Option<fn(NaiveFacts) -> f64> {
    Some(match word {
        "sjf" => |job| -job.estimate,
        "sqf" => |job| -job.procs,
        "saf" => |job| -(job.estimate * job.procs),
        "lxf" => |job| (job.wait + job.estimate) / job.estimate,
        "wfp3" => |job| {
            let ratio = job.wait / job.estimate;
            ratio * ratio * ratio * job.procs
        },
        "unicep" => |job| job.wait / (log2(job.procs) * job.estimate),
        "f1" => |job| -(log10(job.estimate) * job.procs + 870.0 * log10(job.submit)),
        "f2" => |job| -(job.estimate.sqrt() * job.procs + 25600.0 * log10(job.submit)),
        "f3" => |job| -(job.estimate * job.procs + 6_860_000.0 * log10(job.submit)),
        "f4" => |job| -(job.estimate * job.procs.sqrt() + 530_000.0 * log10(job.submit)),
        _ => return None,
    })
}

/// Returns the value for a few formulas, by their text.
fn formula(word: &str) -> Option<fn(NaiveFacts) -> f64> {
    Some(match word {
        "'wait / estimate'" => |job| job.wait / job.estimate,
        "'1 / estimate'" => |job| 1.0 / job.estimate,
        "'procs - wait'" => |job| job.procs - job.wait,
        "'if(wait > 5, wait, -estimate)'" => |job| if job.wait > 5.0 { job.wait } else { -job.estimate },
        "'memory / (user + 1) - procs'" => |job| job.memory / (job.user + 1.0) - job.procs,
        "'bypassed'" => |job| job.bypassed,
        "'2 * bypassed - procs'" => |job| 2.0 * job.bypassed - job.procs,
        "'0 / (procs - 2)'" => |job| 0.0 / (job.procs - 2.0),
        _ => return None,
    })
}
