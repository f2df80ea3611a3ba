//! Every policy, once: its name, what it promises, its parameters, its paper, and how it is built.

use std::fmt;
use std::str::FromStr;

use miserly_core::{Machine, Policy};

use crate::backfill::{Conservative, Easy, Fcfs};
use crate::shared::{Order, Profile};
use crate::spec::{Spec, SyntaxError};

/// To whom a policy promises a latest start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promises {
    /// To nobody.
    Nothing,
    /// To the head of the queue.
    Head,
    /// To every job, when it is submitted.
    EveryJob,
}

impl Promises {
    /// The word that tables and files use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Promises::Nothing => "nothing",
            Promises::Head => "the head of the queue",
            Promises::EveryJob => "every job",
        }
    }
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// An order of the queue.
    Order,
}

impl Domain {
    /// Every value, with its meaning.
    pub fn values(self) -> Vec<(&'static str, &'static str)> {
        match self {
            Domain::Order => Order::ALL.iter().map(|&(_, name, meaning)| (name, meaning)).collect(),
        }
    }
}

/// What a parameter is where it is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// This value.
    Is(&'static str),
    /// What the parameter of that name is.
    SameAs(&'static str),
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultValue::Is(value) => f.write_str(value),
            DefaultValue::SameAs(name) => write!(f, "the same as {name}"),
        }
    }
}

/// A parameter of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub domain: Domain,
    /// What it is where it is not given.
    pub default: DefaultValue,
    /// What it does.
    pub doc: &'static str,
}

/// A registered policy.
#[derive(Debug)]
pub struct Registered {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What it promises, in words, with the conditions.
    pub promises: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    build: fn(&Values<'_>) -> Box<dyn Policy>,
    promised: fn(&Values<'_>) -> Promises,
}

const ZOTKIN: &str = "Zotkin, Keleher, Perkovic: Attacking the Bottlenecks of Backfilling Schedulers, 2000";

const QUEUE_ORDER: Param = Param {
    name: "order",
    domain: Domain::Order,
    default: DefaultValue::Is("arrival"),
    doc: "the order of the queue",
};

/// Every policy.
pub const POLICIES: &[Registered] = &[
    Registered {
        name: "fcfs",
        summary: "no backfilling: starts the head of the queue while it fits, stops at the first that does not",
        promises: "nothing",
        source: ZOTKIN,
        params: &[QUEUE_ORDER],
        build: |values| Box::new(Fcfs::new(values.order("order"))),
        promised: |_| Promises::Nothing,
    },
    Registered {
        name: "easy",
        summary: "EASY backfilling: jobs may pass the head of the queue if they do not delay it",
        promises: "the head of the queue its shadow time, with order=arrival; else nothing",
        source: ZOTKIN,
        params: &[
            QUEUE_ORDER,
            Param {
                name: "backfill",
                domain: Domain::Order,
                default: DefaultValue::SameAs("order"),
                doc: "the order of the candidates behind the head; backfill=shortest is EASY-SJBF",
            },
        ],
        build: |values| Box::new(Easy::new(values.order("order"), values.order("backfill"))),
        promised: |values| match values.order("order") {
            Order::Arrival => Promises::Head,
            _ => Promises::Nothing,
        },
    },
    Registered {
        name: "conservative",
        summary: "conservative backfilling: every job has a reservation, which never moves later",
        promises: "every job, when it is submitted",
        source: ZOTKIN,
        params: &[Param {
            doc: "the order in which reservations are compressed; new ones are made in order of submission",
            ..QUEUE_ORDER
        }],
        build: |values| Box::new(Conservative::new(values.order("order"))),
        promised: |_| Promises::EveryJob,
    },
];

/// The policy of that name, if there is one.
pub fn find(name: &str) -> Option<&'static Registered> {
    POLICIES.iter().find(|policy| policy.name == name)
}

/// A policy that cannot be had as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Not written as a policy.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// No such policy.
    #[error("no policy {name:?}{}; `miserly policies` lists them", suggestion(*.nearest))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The name that looks most like it.
        nearest: Option<&'static str>,
    },
    /// No such parameter.
    #[error("policy {policy} has no parameter {name:?}{}; it has {}", suggestion(*.nearest), .has)]
    UnknownParam {
        /// The policy.
        policy: &'static str,
        /// What was asked for.
        name: String,
        /// The name that looks most like it.
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
    #[error("policy {policy}: {name} cannot be {value:?}{}; it is one of {}", suggestion(*.nearest), .allowed)]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        name: &'static str,
        /// What was asked for.
        value: String,
        /// The value that looks most like it.
        nearest: Option<&'static str>,
        /// Every value.
        allowed: String,
    },
    /// A machine that the policy does not know how to use.
    #[error("policy {policy} runs on one host of at most {} processors", Profile::MOST)]
    Machine {
        /// The policy.
        policy: &'static str,
    },
}

fn suggestion(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |name| format!(", did you mean {name:?}"))
}

/// The candidate that looks most like `wanted`, if one looks like it at all.
fn nearest<'a>(wanted: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.7;
    among
        .map(|name| (strsim::jaro_winkler(&wanted.to_lowercase(), name), name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// A policy of the registry with its parameters, checked: ready to be built any number of times.
///
/// Shown in its written form, with the parameters that were given.
#[derive(Clone, Debug)]
pub struct Chosen {
    policy: &'static Registered,
    /// The parameters that were given, in the registry's order.
    args: Vec<(&'static str, &'static str)>,
}

/// The values of a chosen policy's parameters.
struct Values<'a>(&'a Chosen);

impl Values<'_> {
    fn get(&self, name: &str) -> &'static str {
        let Values(chosen) = self;
        if let Some((_, value)) = chosen.args.iter().find(|(given, _)| *given == name) {
            return value;
        }
        match chosen.policy.params.iter().find(|param| param.name == name).map(|param| param.default) {
            Some(DefaultValue::Is(value)) => value,
            Some(DefaultValue::SameAs(other)) => self.get(other),
            None => "",
        }
    }

    fn order(&self, name: &str) -> Order {
        let value = self.get(name);
        // Every value was checked against this table when the policy was chosen.
        Order::ALL.iter().find(|(_, name, _)| *name == value).map_or(Order::Arrival, |(order, ..)| *order)
    }
}

impl Chosen {
    /// The registry's entry.
    pub fn policy(&self) -> &'static Registered {
        self.policy
    }

    /// What the policy promises with these parameters.
    pub fn promises(&self) -> Promises {
        (self.policy.promised)(&Values(self))
    }

    /// Makes the policy, ready for a driver.
    ///
    /// # Errors
    /// If the policy does not run on such a machine.
    pub fn build(&self, machine: &Machine) -> Result<Box<dyn Policy>, PolicyError> {
        let fits = machine.capacity().cpus_count() <= u64::from(Profile::MOST);
        if machine.hosts().len() != 1 || !fits {
            return Err(PolicyError::Machine { policy: self.policy.name });
        }
        Ok((self.policy.build)(&Values(self)))
    }
}

impl FromStr for Chosen {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Chosen, PolicyError> {
        let spec = Spec::parse(text)?;
        let policy = find(&spec.name).ok_or_else(|| PolicyError::Unknown {
            nearest: nearest(&spec.name, POLICIES.iter().map(|policy| policy.name)),
            name: spec.name.clone(),
        })?;
        let mut args = Vec::new();
        for (name, value) in spec.args {
            let (position, checked) = check(policy, &name, &value)?;
            if args.iter().any(|(other, _)| *other == position) {
                return Err(PolicyError::Twice { policy: policy.name, name });
            }
            args.push((position, checked));
        }
        args.sort_by_key(|(position, _)| *position);
        let args = args.into_iter().map(|(position, value)| (policy.params[position].name, value)).collect();
        Ok(Chosen { policy, args })
    }
}

/// The position of the parameter, and its value as the registry writes it.
fn check(policy: &'static Registered, name: &str, value: &str) -> Result<(usize, &'static str), PolicyError> {
    let names = || policy.params.iter().map(|param| param.name);
    let position = names().position(|known| known == name).ok_or_else(|| PolicyError::UnknownParam {
        policy: policy.name,
        name: name.to_owned(),
        nearest: nearest(name, names()),
        has: names().collect::<Vec<_>>().join(", "),
    })?;
    let allowed: Vec<&str> =
        policy.params[position].domain.values().into_iter().map(|(name, _)| name).collect();
    let found = allowed.iter().find(|allowed| **allowed == value);
    let value = found.ok_or_else(|| PolicyError::BadValue {
        policy: policy.name,
        name: policy.params[position].name,
        value: value.to_owned(),
        nearest: nearest(value, allowed.iter().copied()),
        allowed: allowed.join(", "),
    })?;
    Ok((position, value))
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy.name)?;
        if self.args.is_empty() {
            return Ok(());
        }
        let args: Vec<String> = self.args.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "({})", args.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: Result<(&str, Promises), &str>) {
        match (text.parse::<Chosen>(), expect) {
            (Ok(chosen), Ok((shown, promises))) => {
                assert_eq!((chosen.to_string().as_str(), chosen.promises()), (shown, promises));
                assert!(chosen.build(&Machine::plain(8)).is_ok());
            }
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, _) => panic!("{got:?}"),
        }
    }

    #[test]
    fn chosen_as_written() {
        check("fcfs", Ok(("fcfs", Promises::Nothing)));
        check("easy", Ok(("easy", Promises::Head)));
        check("easy(backfill=shortest)", Ok(("easy(backfill=shortest)", Promises::Head)));
        check(
            "easy(backfill=widest,order=shortest)",
            Ok(("easy(order=shortest, backfill=widest)", Promises::Nothing)),
        );
        check("conservative(order=longest)", Ok(("conservative(order=longest)", Promises::EveryJob)));
    }

    #[test]
    fn mistakes_are_told_with_the_nearest_name() {
        check("eazy", Err("did you mean \"easy\""));
        check("conservatve", Err("did you mean \"conservative\""));
        check("qqq", Err("no policy \"qqq\"; `miserly policies` lists them"));
        check("fcfs(backfill=shortest)", Err("policy fcfs has no parameter \"backfill\"; it has order"));
        check("easy(oder=shortest)", Err("did you mean \"order\""));
        check("easy(order=short)", Err("did you mean \"shortest\""));
        check("easy(order=arrival, order=arrival)", Err("given twice"));
    }
}
