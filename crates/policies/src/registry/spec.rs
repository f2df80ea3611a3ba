//! A policy with its parameters as written.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use miserly_core::{Host, Machine, Policy, Procs, Span};

use super::domain;
use super::error::nearest_policy;
use super::reader::{Facts, HORIZON};
use super::syntax::{Arg, WrittenPolicy, WrittenValue};
use super::{Needs, ParamReader, Params, PolicyDescriptor, PolicyError, Promises, Registry};
use crate::shared::{JobFacts, Profile};

/// A policy of a registry with its parameters, checked: ready to be built any number of times.
///
/// It is displayed in its written form, with the parameters that were given. A
/// [`Spelling`](super::Spelling) is displayed as the policy and the parameters that it stands for.
///
/// # Example
/// ```
/// use miserly_core::Machine;
/// use miserly_policies::PolicySpec;
///
/// let spec: PolicySpec = "soon(quantum=2m)".parse()?;
/// assert_eq!(spec.to_string(), "immediate(quantum=2m, preempt=false)");
/// assert!(spec.needs().one_host_per_job);
/// let policy = spec.build(&Machine::plain(100), 1)?;
/// # Ok::<(), miserly_policies::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PolicySpec {
    descriptor: &'static PolicyDescriptor,
    registry: Registry,
    written: Vec<Arg>,
    facts: Facts,
    promises: Promises,
    needs: Needs,
    function: Option<Arc<Function>>,
}

/// A function that makes a policy.
struct Function {
    name: String,
    make: Box<Make>,
}

type Make = dyn Fn(&Machine, u64) -> Box<dyn Policy> + Send + Sync;

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({})", self.name)
    }
}

/// The descriptor of all policies that functions make. It is in no registry.
static FUNCTION: PolicyDescriptor =
    PolicyDescriptor::new("function", "a policy that a function of a program makes", |_| {
        Err(PolicyError::Unknown { name: "function".to_owned(), nearest: None })
    });

/// Compares the written forms. A function is equal to itself only.
impl PartialEq for PolicySpec {
    fn eq(&self, other: &PolicySpec) -> bool {
        let function = |spec: &PolicySpec| spec.function.as_ref().map(Arc::as_ptr);
        self.descriptor == other.descriptor
            && self.facts.given == other.facts.given
            && function(self) == function(other)
    }
}

impl PolicySpec {
    /// Reads the written form of a policy of this registry.
    ///
    /// # Errors
    /// If there is no such policy, or a parameter or its value is wrong.
    pub fn parse(text: &str, registry: &Registry) -> Result<PolicySpec, PolicyError> {
        let WrittenPolicy { name, args } = WrittenPolicy::parse(text)?;
        if let Some(descriptor) = registry.find(&name) {
            return PolicySpec::new(descriptor, args, registry);
        }
        let (descriptor, spelling) = registry.find_spelling(&name).ok_or_else(|| {
            if domain::order(&name.to_lowercase()).is_some() {
                return PolicyError::IsOrder { name: name.to_lowercase() };
            }
            let names = registry.policies().flat_map(|policy| {
                let spellings = policy.spellings.iter().map(|spelling| spelling.name);
                std::iter::once(policy.name).chain(spellings)
            });
            PolicyError::Unknown { nearest: nearest_policy(&name, names), name: name.clone() }
        })?;
        let mut all = WrittenPolicy::parse(&format!("{}({})", descriptor.name, spelling.means))?.args;
        all.retain(|arg| args.iter().all(|given| given.name != arg.name));
        all.extend(args);
        PolicySpec::new(descriptor, all, registry)
    }

    /// Returns the policy that `make` makes for a machine and the seed of a run.
    ///
    /// `name` is its written form in tables and documents. It has no parameters, and its descriptor is that of all such
    /// policies. The function may capture values, so that a policy can be made at run time.
    ///
    /// # Example
    /// ```
    /// use miserly_core::Machine;
    /// use miserly_policies::backfill::Fcfs;
    /// use miserly_policies::{Criterion, Needs, Order, PolicySpec};
    ///
    /// let order = Order::by(Criterion::Widest);
    /// let spec = PolicySpec::from_fn("mine", Needs::NONE, move |_, _| Box::new(Fcfs::new(order.clone())));
    /// assert_eq!(spec.to_string(), "mine");
    /// let policy = spec.build(&Machine::plain(100), 1)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn from_fn(
        name: impl Into<String>,
        needs: Needs,
        make: impl Fn(&Machine, u64) -> Box<dyn Policy> + Send + Sync + 'static,
    ) -> PolicySpec {
        PolicySpec {
            descriptor: &FUNCTION,
            registry: Registry::built_in(),
            written: Vec::new(),
            facts: Facts { given: Vec::new(), is_random: false, horizon: None, uses: JobFacts::default() },
            promises: Promises::Nothing,
            needs,
            function: Some(Arc::new(Function { name: name.into(), make: Box::new(make) })),
        }
    }

    fn new(
        descriptor: &'static PolicyDescriptor,
        written: Vec<Arg>,
        registry: &Registry,
    ) -> Result<PolicySpec, PolicyError> {
        let mut reader = ParamReader::new(descriptor, registry, &written, 0);
        let params = (descriptor.read)(&mut reader)?;
        let facts = reader.into_facts()?;
        let (promises, needs) = (params.promises(), params.needs(descriptor.needs));
        Ok(PolicySpec {
            descriptor,
            registry: registry.clone(),
            written,
            facts,
            promises,
            needs,
            function: None,
        })
    }

    /// Returns the descriptor of the policy.
    pub fn descriptor(&self) -> &'static PolicyDescriptor {
        self.descriptor
    }

    /// Returns the jobs to which the policy promises a latest start.
    pub fn promises(&self) -> Promises {
        self.promises
    }

    /// Returns whether a parameter was written.
    pub fn is_given(&self, parameter: &str) -> bool {
        self.written.iter().any(|arg| arg.name == parameter)
    }

    /// Returns the needs of the policy with these parameters.
    pub fn needs(&self) -> Needs {
        self.needs
    }

    /// Returns whether the policy draws at random by the seed of the run.
    ///
    /// A policy with its own seed does not.
    pub fn is_random(&self) -> bool {
        self.facts.is_random
    }

    /// Returns the facts of jobs that the orders of the policy use, and that a log may lack.
    pub fn order_uses(&self) -> JobFacts {
        self.facts.uses
    }

    /// Returns whether the policy predicts runtimes from the past jobs of users.
    pub fn learns_from_users(&self) -> bool {
        self.needs.predictions && !self.needs.known_runtimes
    }

    /// Returns the horizon of the policy, if it has one: the bound of promised starts and ends,
    /// from the submission.
    pub fn horizon(&self) -> Option<Span> {
        self.facts.horizon.filter(|horizon| *horizon < Span::MAX)
    }

    /// Returns the name: that of the descriptor, or of the function.
    fn name(&self) -> &str {
        self.function.as_ref().map_or(self.descriptor.name, |function| &function.name)
    }

    /// Returns the same policy with this horizon.
    ///
    /// # Errors
    /// If the policy has no horizon parameter, or was written with one.
    pub fn with_horizon(&self, horizon: Span) -> Result<PolicySpec, PolicyError> {
        let mut written = self.written.clone();
        let value = WrittenValue::Word(miserly_units::duration(horizon));
        written.push(Arg { name: HORIZON.to_owned(), value });
        PolicySpec::new(self.descriptor, written, &self.registry)
    }

    /// Makes the policy, ready for a driver. `seed` is for its random draws, if it has no seed of
    /// its own.
    ///
    /// # Errors
    /// If the policy does not run on such a machine.
    pub fn build(&self, machine: &Machine, seed: u64) -> Result<Box<dyn Policy>, PolicyError> {
        if machine.capacity().cpus_count() > Procs::new(Profile::MOST.into()) {
            return Err(PolicyError::TooLarge { policy: self.name().to_owned() });
        }
        if let Some(wanted) = self.needs.unmet(machine) {
            return Err(PolicyError::Machine { policy: self.name().to_owned(), wanted });
        }
        if self.needs.host_table {
            self.check_classes(machine)?;
        }
        if let Some(function) = &self.function {
            return Ok((function.make)(machine, seed));
        }
        Ok(self.params(seed)?.build(machine))
    }

    /// Checks that the table of job classes has all hosts.
    fn check_classes(&self, machine: &Machine) -> Result<(), PolicyError> {
        let has =
            |host: &Host| machine.classes().is_some_and(|classes| classes.hosts.contains_key(&host.name));
        let Some(Host { name, .. }) = machine.hosts().iter().find(|host| !has(host)) else { return Ok(()) };
        let (policy, host) = (self.name().to_owned(), name.clone());
        Err(match machine.classes() {
            Some(classes) => PolicyError::HostWithoutClasses { policy, table: classes.name.clone(), host },
            None => PolicyError::NoClasses { policy, host },
        })
    }

    /// Returns the typed parameters. `seed` is that of the run.
    pub(super) fn params(&self, seed: u64) -> Result<Box<dyn Params>, PolicyError> {
        (self.descriptor.read)(&mut ParamReader::new(self.descriptor, &self.registry, &self.written, seed))
    }
}

/// Reads the written form of a policy of this crate.
impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<PolicySpec, PolicyError> {
        PolicySpec::parse(text, &Registry::built_in())
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.facts.given.is_empty() {
            return Ok(());
        }
        let args: Vec<String> =
            self.facts.given.iter().map(|(name, text)| format!("{name}={text}")).collect();
        write!(f, "({})", args.join(", "))
    }
}
