//! Errors in the written form of a policy, and the names that are most like the written ones.

use miserly_formula::FormulaError;

use super::SyntaxError;
use crate::backfill::{BillingWeightsError, PreemptionRulesError, RunningLimitsError};
use crate::shared::{Profile, ShareTreeError};

/// A policy that cannot be built as requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// Not written as a policy.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// No such policy.
    #[error("no policy {name:?}{}; `miserly policies` lists them", suggestion(*.nearest))]
    Unknown {
        /// The requested name.
        name: String,
        /// The most similar name.
        nearest: Option<&'static str>,
    },
    /// An order of the queue in place of a policy.
    #[error("no policy {name:?}; it is an order of the queue: write easy(order={name})")]
    IsOrder {
        /// The requested name.
        name: String,
    },
    /// No such parameter.
    #[error("policy {policy} has no parameter {name:?}{}; it has {}", suggestion(*.nearest), .has)]
    UnknownParam {
        /// The policy.
        policy: &'static str,
        /// The requested name.
        name: String,
        /// The most similar name.
        nearest: Option<&'static str>,
        /// Its parameters.
        has: String,
    },
    /// A parameter given twice.
    #[error("policy {policy}: parameter {name} is given twice")]
    Twice {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: String,
    },
    /// A value that the parameter cannot have.
    #[error("policy {policy}: {name} cannot be {value:?}{}; it must be {}", suggestion(*.nearest), .allowed)]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The requested value.
        value: String,
        /// The most similar value.
        nearest: Option<&'static str>,
        /// The allowed values.
        allowed: String,
    },
    /// A formula without quotes.
    #[error("policy {policy}: put the formula in quotes: {name}='{value}'")]
    Unquoted {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The formula.
        value: String,
    },
    /// An order in quotes that is no formula.
    #[error("policy {policy}, {name}: {problem}")]
    BadFormula {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The problem, and its position.
        problem: Box<FormulaError>,
    },
    /// A half-life without an order that uses usage.
    #[error(
        "policy {policy}: {name} has no effect, because no order uses usage_share or usage; remove it, or write \
         order=fair-share"
    )]
    NoUsage {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// Text in quotes that is no tree of shares.
    #[error("policy {policy}, {name}: {problem}")]
    BadShares {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The problem, and its position.
        problem: ShareTreeError,
    },
    /// Text in quotes that is no list of limits.
    #[error("policy {policy}, {name}: {problem}")]
    BadLimits {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The problem.
        problem: RunningLimitsError,
    },
    /// Text in quotes that has no weights.
    #[error("policy {policy}, {name}: {problem}")]
    BadBilling {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The problem.
        problem: BillingWeightsError,
    },
    /// Text in quotes that is no list of rules of preemption.
    #[error("policy {policy}, {name}: {problem}")]
    BadPreemption {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The problem.
        problem: PreemptionRulesError,
    },
    /// A tree of shares without an order that uses it, or such an order without a tree.
    #[error(
        "policy {policy}: fair_tree in an order and the parameter {name} need each other; write both, such as order='fair_tree' with {name}='2*u1, 1*u2'"
    )]
    SharesAlone {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// A policy within this one that is none.
    #[error("policy {policy}, {name}: {problem}")]
    Within {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// The problem.
        problem: Box<PolicyError>,
    },
    /// A machine that the policy cannot use.
    #[error("policy {policy} runs on {wanted}; choose another policy or machine")]
    Machine {
        /// The policy.
        policy: String,
        /// The machine that it runs on.
        wanted: &'static str,
    },
    /// A machine without a table of job classes.
    #[error(
        "policy {policy}: no table of job classes has a host {host:?}; write [classes] with it into the machine file, \
         as docs/machines.md shows, or choose another policy"
    )]
    NoClasses {
        /// The policy.
        policy: String,
        /// The first host.
        host: String,
    },
    /// A host that the table of job classes does not have.
    #[error(
        "policy {policy}: the job classes of {table} have no host {host:?}; add it to a [[classes.host]], \
         or choose another policy"
    )]
    HostWithoutClasses {
        /// The policy.
        policy: String,
        /// The name of the table.
        table: String,
        /// The host.
        host: String,
    },
    /// A machine that is too large.
    #[error("policy {policy} runs on at most {} processors", Profile::MOST)]
    TooLarge {
        /// The policy.
        policy: String,
    },
}

fn suggestion(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean {name:?}"))
}

/// Usual names that no policy here has, with the policy that they mean.
const USUAL: [(&str, &str); 5] = [
    ("fifo", "fcfs"),
    ("backfill", "easy"),
    ("backfilling", "easy"),
    ("easy-backfill", "easy"),
    ("easy-backfilling", "easy"),
];

/// Returns the policy that a usual name means, or the candidate that is most similar to `wanted`.
pub(super) fn nearest_policy<'a>(wanted: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let usual = USUAL.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    usual.map(|(_, policy)| *policy).or_else(|| nearest(wanted, among))
}

/// Returns the candidate that is most similar to `wanted`, if one is similar at all.
pub(super) fn nearest<'a>(wanted: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.7;
    among
        .map(|name| (strsim::jaro_winkler(&wanted.to_lowercase(), name), name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}
