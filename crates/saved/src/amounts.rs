//! Amounts of resources, as they are stored.

use miserly_core::{Kind, Resources};

/// One amount for each kind, in the order of [`Kind::ALL`].
pub type Amounts = [u64; Kind::ALL.len()];

/// Returns the stored form of resources.
pub fn amounts(of: &Resources) -> Amounts {
    Kind::ALL.map(|kind| of.get(kind))
}

/// Returns the resources.
pub fn resources(amounts: Amounts) -> Resources {
    Kind::ALL.into_iter().zip(amounts).fold(Resources::NONE, |sum, (kind, amount)| sum.with(kind, amount))
}
