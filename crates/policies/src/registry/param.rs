//! The parameters of a policy, as documents list them.

use std::fmt;

use super::Domain;

/// The value of a parameter that is not given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// This value, as it is written.
    Is(String),
    /// The value of the parameter of that name.
    SameAs(&'static str),
    /// The seed of the run.
    SeedOfRun,
}

impl fmt::Display for DefaultValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefaultValue::Is(value) => f.write_str(value),
            DefaultValue::SameAs(name) => write!(f, "the same as {name}"),
            DefaultValue::SeedOfRun => f.write_str("the run's"),
        }
    }
}

/// A parameter of a policy.
#[derive(Clone, Debug)]
pub struct Param {
    /// The name.
    pub name: &'static str,
    /// The values that it can have.
    pub domain: Domain,
    /// The value if none is given.
    pub default: DefaultValue,
    /// The effect.
    pub doc: &'static str,
}
