//! From the written form of a policy to the policy.

use std::fmt;
use std::str::FromStr;

use miserly_core::{Machine, Policy};

use super::error::{PolicyError, nearest};
use super::{DefaultValue, POLICIES, Promises, Registered, find};
use crate::shared::{Order, Profile};
use crate::spec::Spec;

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
pub(super) struct Values<'a>(&'a Chosen);

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

    pub(super) fn order(&self, name: &str) -> Order {
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
