//! The registry: a list of policy descriptors, and the written form of a policy.

mod descriptor;

mod needs;

mod spec;

mod reader;

mod param;

mod domain;

mod syntax;

mod error;

pub use descriptor::{Example, Params, PolicyDescriptor, Promises, Spelling};
pub use domain::Domain;
pub use error::PolicyError;
pub use needs::Needs;
pub use param::{DefaultValue, Param};
pub use reader::{InnerPolicy, OrderSettings, ParamReader};
pub use spec::PolicySpec;
pub use syntax::SyntaxError;

use crate::backfill::policies as backfill;
use crate::{classes, equipartition, gang, preempt, window};

/// The policies of this crate.
static BUILT_IN: [&PolicyDescriptor; 20] = [
    &backfill::FCFS,
    &backfill::EASY,
    &backfill::CONSERVATIVE,
    &backfill::SELECTIVE_BACKFILL,
    &backfill::SORTED,
    &backfill::SLURM,
    &window::MISER,
    &backfill::PRIORITY_BACKFILL,
    &backfill::PRIORITY_BF,
    &backfill::LXFW_BF,
    &backfill::LXF_BACKFILL,
    &backfill::FCFS_BACKFILL,
    &backfill::SJF_BACKFILL,
    &preempt::IMMEDIATE,
    &preempt::SS,
    &preempt::TSS,
    &preempt::IS,
    &classes::LSF,
    &equipartition::EQSPATIAL,
    &gang::GANG,
];

/// A list of policies: those of this crate, and those that were added.
///
/// A clone costs as much as the list of the added policies.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    added: Vec<&'static PolicyDescriptor>,
}

impl Registry {
    /// Returns the policies of this crate.
    pub const fn built_in() -> Registry {
        Registry { added: Vec::new() }
    }

    /// Adds a policy. It replaces a registered policy of the same name.
    #[must_use]
    pub fn with(mut self, descriptor: &'static PolicyDescriptor) -> Registry {
        self.added.retain(|added| added.name != descriptor.name);
        self.added.push(descriptor);
        self
    }

    /// Iterates over all policies: those of this crate first.
    pub fn policies(&self) -> impl Iterator<Item = &'static PolicyDescriptor> {
        let replaced = |name: &str| self.added.iter().any(|added| added.name == name);
        let built_in = BUILT_IN.iter().copied().filter(move |descriptor| !replaced(descriptor.name));
        built_in.chain(self.added.iter().copied())
    }

    /// Returns the policy of that name, in any case. A spelling is not a name.
    pub fn find(&self, name: &str) -> Option<&'static PolicyDescriptor> {
        self.policies().find(|descriptor| descriptor.name.eq_ignore_ascii_case(name))
    }

    /// Returns the policy that has this spelling, in any case, with the spelling.
    pub fn find_spelling(&self, name: &str) -> Option<(&'static PolicyDescriptor, &'static Spelling)> {
        self.policies().find_map(|descriptor| {
            let spelling =
                descriptor.spellings.iter().find(|spelling| spelling.name.eq_ignore_ascii_case(name))?;
            Some((descriptor, spelling))
        })
    }
}

#[cfg(test)]
mod tests;
