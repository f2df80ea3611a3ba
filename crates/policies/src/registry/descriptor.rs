//! The descriptor of a policy.

use std::fmt;

use miserly_core::{Machine, Policy};

use super::{Needs, Param, ParamReader, PolicyError, Registry};
use crate::backfill::policies::Point;

miserly_core::listed_enum! {
    /// The jobs to which a policy promises a latest start.
    pub enum Promises {
        /// No job.
        Nothing "nothing",
        /// The head of the queue.
        Head "the head of the queue",
        /// Every job, when it is submitted.
        EveryJob "every job",
    }
}

/// The typed parameters of a policy, and the policy that they make.
///
/// A policy has one type for its parameters. [`PolicyDescriptor::read`] fills it from the written
/// form.
pub trait Params: fmt::Debug {
    /// Makes the policy, ready for a driver. The machine meets the needs of the policy.
    fn build(&self, machine: &Machine) -> Box<dyn Policy>;

    /// Returns the jobs to which the policy promises a latest start.
    fn promises(&self) -> Promises {
        Promises::Nothing
    }

    /// Returns the needs of the policy with these parameters. `needs` are those of the descriptor.
    fn needs(&self, needs: Needs) -> Needs {
        needs
    }

    /// Returns the rules of backfilling, if the policy is a point of the backfill family.
    ///
    /// Such a policy can run within another one.
    fn backfill(&self) -> Option<Point> {
        None
    }
}

/// Another name of a policy, which stands for some of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spelling {
    /// The name.
    pub name: &'static str,
    /// The parameters that it stands for, as written. Others may be added, and these may be given
    /// again.
    pub means: &'static str,
    /// The effect of these parameters, in one line.
    pub title: &'static str,
}

/// A written form of a policy, and what the literature calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The written form.
    pub policy: &'static str,
    /// The meaning, in one line.
    pub meaning: &'static str,
}

/// A registered policy, with all of its facts for the rest of the program.
///
/// # Example
/// A policy with one parameter, added to the policies of this crate:
/// ```
/// use miserly_core::{Machine, Policy};
/// use miserly_policies::backfill::Fcfs;
/// use miserly_policies::{Order, Params, PolicyDescriptor, PolicySpec, Registry};
///
/// #[derive(Debug)]
/// struct MyParams {
///     order: Order,
/// }
///
/// impl Params for MyParams {
///     fn build(&self, _machine: &Machine) -> Box<dyn Policy> {
///         Box::new(Fcfs::new(self.order.clone()))
///     }
/// }
///
/// static MINE: PolicyDescriptor =
///     PolicyDescriptor::new("mine", "starts the head of the queue while it fits", |params| {
///         let order = params.order("order", "widest", "the order of the queue")?;
///         Ok(Box::new(MyParams { order }))
///     });
///
/// let registry = Registry::built_in().with(&MINE);
/// let spec = PolicySpec::parse("mine(order=shortest)", &registry)?;
/// assert_eq!(spec.to_string(), "mine(order=shortest)");
/// let policy = spec.build(&Machine::plain(100), 1)?;
/// # Ok::<(), miserly_policies::PolicyError>(())
/// ```
pub struct PolicyDescriptor {
    /// The name in the written form.
    pub name: &'static str,
    /// The effect of the policy, in one line.
    pub title: &'static str,
    /// The paper that describes it.
    pub paper: &'static str,
    /// The promises in words, with their conditions. [`Params::promises`] computes them.
    pub promises: &'static str,
    /// The needs with all parameters at their defaults.
    pub needs: Needs,
    /// Other names.
    pub spellings: &'static [Spelling],
    /// Written forms that papers have names for.
    pub examples: &'static [Example],
    /// Declares the parameters and reads their values, in the order in which documents list them.
    pub read: fn(&mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError>,
}

impl PolicyDescriptor {
    /// Returns a descriptor of a policy that promises nothing and runs on any machine of constant
    /// capacity.
    pub const fn new(
        name: &'static str,
        title: &'static str,
        read: fn(&mut ParamReader<'_>) -> Result<Box<dyn Params>, PolicyError>,
    ) -> PolicyDescriptor {
        let (paper, promises, needs) = ("none", "nothing", Needs::NONE);
        PolicyDescriptor { name, title, paper, promises, needs, spellings: &[], examples: &[], read }
    }

    /// Returns the declared parameters, in order.
    ///
    /// # Errors
    /// If a default is no value of its parameter, or two parameters have one name.
    pub fn params(&'static self, registry: &Registry) -> Result<Vec<Param>, PolicyError> {
        let mut reader = ParamReader::new(self, registry, &[], 0);
        (self.read)(&mut reader)?;
        Ok(reader.into_declared())
    }

    /// Returns whether the policy can run within another one.
    pub(super) fn is_backfill(&'static self, registry: &Registry) -> bool {
        let params = (self.read)(&mut ParamReader::new(self, registry, &[], 0));
        params.is_ok_and(|params| params.backfill().is_some())
    }
}

/// Two descriptors are equal if they have one name: a registry has a name once.
impl PartialEq for PolicyDescriptor {
    fn eq(&self, other: &PolicyDescriptor) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for PolicyDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicyDescriptor({})", self.name)
    }
}
