//! From the written form of a policy to the policy.

use std::fmt;
use std::str::FromStr;

use miserly_core::{Machine, Policy, Procs, Span};

use super::domain::{NoValue, Value};
use super::error::{PolicyError, nearest};
use super::values::Values;
use super::{POLICIES, Param, Promises, Registered, find};
use crate::backfill::Backfilling;
use crate::shared::Profile;
use crate::spec::{Spec, Written};

/// A policy of the registry with its parameters, checked: ready to be built any number of times.
///
/// Shown in its written form, with the parameters that were given; formulas as they read best.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    policy: &'static Registered,
    /// The parameters that were given, in the registry's order.
    args: Vec<Arg>,
}

/// A parameter that was given.
#[derive(Clone, Debug, PartialEq)]
struct Arg {
    param: &'static Param,
    /// As it is written.
    text: String,
    value: Value,
}

impl Chosen {
    /// The registry's entry.
    pub fn policy(&self) -> &'static Registered {
        self.policy
    }

    /// What the policy promises with these parameters.
    pub fn promises(&self) -> Promises {
        (self.policy.promised)(&self.values(0))
    }

    /// Whether the policy draws at random by the seed of the run; one that has a seed of its own does not.
    pub fn draws(&self) -> bool {
        let own_seed = self.args.iter().any(|arg| arg.param.name == "seed");
        let random = |arg: &Arg| match &arg.value {
            Value::Order(order) => order.is_random(),
            Value::Policy(within) => within.draws(),
            _ => false,
        };
        !own_seed && self.args.iter().any(random)
    }

    /// How far ahead a window may lie when it is made, with its end, if the policy has such a bound.
    pub fn horizon(&self) -> Option<Span> {
        let bounded = self.policy.params.iter().any(|param| param.name == "horizon");
        bounded.then(|| self.values(0).span("horizon")).filter(|horizon| *horizon < Span::MAX)
    }

    /// Makes the policy, ready for a driver. `seed` is for its random draws, if it has no seed of its own.
    ///
    /// # Errors
    /// If the policy does not run on such a machine.
    pub fn build(&self, machine: &Machine, seed: u64) -> Result<Box<dyn Policy>, PolicyError> {
        let fits = machine.capacity().cpus_count() <= Procs::new(Profile::MOST.into());
        if !fits {
            return Err(PolicyError::TooLarge { policy: self.policy.name });
        }
        if let Some(wanted) = self.policy.runs_on.refuses(machine) {
            return Err(PolicyError::Machine { policy: self.policy.name, wanted });
        }
        Ok((self.policy.build)(&self.values(seed), machine))
    }

    /// The same for a policy that runs within another one; `None` if it cannot.
    pub(super) fn build_within(&self, machine: &Machine, seed: u64) -> Option<Box<dyn Backfilling>> {
        Some((self.policy.within?)(&self.values(seed), machine))
    }

    fn values(&self, seed: u64) -> Values {
        let given = |param: &Param| {
            self.args.iter().find(|arg| arg.param.name == param.name).map(|arg| arg.value.clone())
        };
        Values::new(self.policy.params, given, seed)
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
        let mut args: Vec<(usize, Arg)> = Vec::new();
        for (name, written) in spec.args {
            let (position, arg) = check(policy, &name, &written)?;
            if args.iter().any(|(other, _)| *other == position) {
                return Err(PolicyError::Twice { policy: policy.name, name });
            }
            args.push((position, arg));
        }
        args.sort_by_key(|(position, _)| *position);
        Ok(Chosen { policy, args: args.into_iter().map(|(_, arg)| arg).collect() })
    }
}

/// The parameter of that name with its value, and its place in the registry.
fn check(policy: &'static Registered, name: &str, written: &Written) -> Result<(usize, Arg), PolicyError> {
    let names = || policy.params.iter().map(|param| param.name);
    let position = names().position(|known| known == name).ok_or_else(|| PolicyError::UnknownParam {
        policy: policy.name,
        name: name.to_owned(),
        nearest: nearest(name, names()),
        has: names().collect::<Vec<_>>().join(", "),
    })?;
    let param = &policy.params[position];
    let value =
        param.domain.read(written).map_err(|problem| refused(policy, param, written.text(), problem))?;
    Ok((position, Arg { param, text: shown(&value, written), value }))
}

/// The written form: a formula or several numbers between quotes, any other value as it is.
fn shown(value: &Value, written: &Written) -> String {
    match (value, written) {
        (Value::Policy(policy), Written::Quoted(_)) => format!("'{policy}'"),
        (Value::Order(order), Written::Quoted(text)) => {
            order.formula().map_or_else(|| text.clone(), |formula| format!("'{formula}'"))
        }
        (Value::Numbers(_), _) => format!("'{}'", written.text()),
        _ => written.text().to_owned(),
    }
}

fn refused(policy: &Registered, param: &Param, text: &str, problem: NoValue) -> PolicyError {
    let (policy, name) = (policy.name, param.name);
    match problem {
        NoValue::Policy(problem) => PolicyError::Within { policy, name, problem },
        NoValue::Formula(problem) => PolicyError::BadFormula { policy, name, problem },
        NoValue::Unknown { nearest } => {
            let allowed = param.domain.to_string();
            PolicyError::BadValue { policy, name, value: text.to_owned(), nearest, allowed }
        }
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.policy.name)?;
        if self.args.is_empty() {
            return Ok(());
        }
        let args: Vec<String> =
            self.args.iter().map(|arg| format!("{}={}", arg.param.name, arg.text)).collect();
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
                assert!(chosen.build(&Machine::plain(8), 0).is_ok());
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
        check(
            "lsf(reserve=false, user_limit=3)",
            Ok(("lsf(user_limit=3, reserve=false)", Promises::Nothing)),
        );
        check(
            "fcfs(seed=7, weight=1e-6, draw=pass, order=random/length)",
            Ok(("fcfs(order=random/length, weight=1e-6, draw=pass, seed=7)", Promises::Nothing)),
        );
    }

    #[test]
    fn what_is_shown_can_be_given_again() {
        let means = ["1.5"; 16].join(" ");
        let written = format!("tss(sf=2, means='{means}')");
        let shown = written.parse::<Chosen>().unwrap().to_string();
        assert_eq!(shown, written);
        assert_eq!(shown.parse::<Chosen>().unwrap().to_string(), written);
    }

    #[test]
    fn orders_of_the_literature_and_formulas() {
        check("easy(order=lxf)", Ok(("easy(order=lxf)", Promises::Nothing)));
        check("easy(backfill=f1)", Ok(("easy(backfill=f1)", Promises::Head)));
        check(
            "easy( hold='true', order='wait/(log2( procs )*estimate)' )",
            Ok(("easy(order='wait / (log2(procs) * estimate)', hold=true)", Promises::Head)),
        );
        check(
            "conservative(order='max(user, -queue)')",
            Ok(("conservative(order='max(user, -queue)')", Promises::EveryJob)),
        );
        let twice =
            |text: &str| text.parse::<Chosen>().unwrap().to_string().parse::<Chosen>().unwrap().to_string();
        assert_eq!(twice("fcfs(order='memory^2+submit')"), "fcfs(order='memory ^ 2 + submit')");
    }

    #[test]
    fn a_mistake_in_a_formula_is_told_with_its_place() {
        check(
            "easy(backfill='wait / estmate')",
            Err("policy easy, backfill: formula, character 8, at \"estmate\": there is no \"estmate\", \
                did you mean \"estimate\"; there are wait, estimate, procs, submit, memory, user, queue"),
        );
        check("easy(order='')", Err("policy easy, order: formula, at its end: expected a value"));
        // A name is not a formula, nor a formula a name.
        check("easy(order='shortest')", Err("there is no \"shortest\""));
        check("easy(order=wait)", Err("or a formula in quotes"));
        check("easy(weight='wait')", Err("weight cannot be \"wait\"; it is a number"));
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
        check(
            "easy(draw=passs)",
            Err("draw cannot be \"passs\", did you mean \"pass\"; it is one of once, pass"),
        );
        for weight in ["-1", "inf", "nan", "1e999", "much"] {
            check(&format!("easy(weight={weight})"), Err("it is a number, 0 or more"));
        }
        check("easy(seed=-1)", Err("it is a whole number, 0 or more"));
        check("easy(seed=18446744073709551616)", Err("it is a whole number, 0 or more"));
    }
}
