//! Amounts of resources as they are written down: one number for each kind, in the order of the kinds.

use miserly_core::{Kind, Resources};

/// Amounts, by [`Kind::ALL`].
pub type Amounts = [u64; Kind::ALL.len()];

/// What is written down of these resources.
pub fn amounts(of: &Resources) -> Amounts {
    Kind::ALL.map(|kind| of.get(kind))
}

/// The resources that were written down.
pub fn resources(amounts: Amounts) -> Resources {
    Kind::ALL.into_iter().zip(amounts).fold(Resources::NONE, |sum, (kind, amount)| sum.with(kind, amount))
}
