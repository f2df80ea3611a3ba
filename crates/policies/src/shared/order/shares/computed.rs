//! The ranks of the last computation of priorities, which the ledger keeps.

use miserly_core::{Persistent, Span, Time, Usage};

use super::{Owner, Ranks, ShareTree};

/// The ranks of the last computation of priorities, which the state of a ledger keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComputedRanks(Option<Computed>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Computed {
    /// The instant of the computation.
    at: Time,
    /// The digest of the tree.
    tree: u64,
    ranks: Ranks,
}

impl ComputedRanks {
    /// Returns the ranks of a tree by the usage of `now`, for the computation at this instant.
    pub fn new(tree: &ShareTree, usage: &Usage, now: Time, at: Time) -> ComputedRanks {
        ComputedRanks(Some(Computed { at, tree: tree.digest, ranks: tree.ranks(usage, now) }))
    }

    /// Returns whether these are the ranks of a tree at an instant.
    pub(in super::super) fn are_of(&self, tree: &ShareTree, at: Time) -> bool {
        self.0.as_ref().is_some_and(|computed| computed.at == at && computed.tree == tree.digest)
    }

    /// Returns the ranks, if they are of this tree.
    pub(in super::super) fn into_ranks(self, tree: &ShareTree) -> Option<Ranks> {
        self.0.filter(|computed| computed.tree == tree.digest).map(|computed| computed.ranks)
    }
}

/// The instant, the digest of the tree, the number of owners, and each owner with its rank.
impl Persistent for ComputedRanks {
    const NAME: &'static str = "order/fair-tree";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        let Some(Computed { at, tree, ranks }) = &self.0 else { return };
        words.extend([at.ticks().cast_unsigned(), *tree, ranks.count.into()]);
        for (owner, rank) in &ranks.owners {
            let code = match *owner {
                Owner::User(user) => u64::from(user) << 1,
                Owner::Group(group) => u64::from(group) << 1 | 1,
            };
            words.extend([code, u64::from(*rank)]);
        }
    }

    fn decode(_version: u32, words: &[u64]) -> Option<ComputedRanks> {
        let [at, tree, count, owners @ ..] = words else {
            return words.is_empty().then(ComputedRanks::default);
        };
        let owner = |pair: &[u64]| {
            let [code, rank] = *pair else { return None };
            let number = u32::try_from(code >> 1).ok()?;
            let owner = if code & 1 == 0 { Owner::User(number) } else { Owner::Group(number) };
            Some((owner, u32::try_from(rank).ok()?))
        };
        let owners = owners.chunks(2).map(owner).collect::<Option<_>>()?;
        let ranks = Ranks { owners, count: u32::try_from(*count).ok()? };
        Some(ComputedRanks(Some(Computed { at: Time::from_ticks(at.cast_signed()), tree: *tree, ranks })))
    }
}

/// The instants at which a cluster computes its priorities: one each period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Computations {
    /// The time between two of them.
    pub period: Span,
    /// One of them.
    pub first: Time,
}

impl Computations {
    /// Returns the last one that is not after an instant.
    pub fn last(self, now: Time) -> Time {
        let since = (now - self.first).ticks();
        now - Span::from_ticks(since.rem_euclid(self.period.ticks().max(1)))
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::PolicyState;

    use super::*;

    #[test]
    fn stored_ranks_are_read() {
        let tree: ShareTree = "u1, (g1, g7)".parse().unwrap();
        let at = Time::from_ticks(-5);
        let computed = ComputedRanks::new(&tree, &Usage::default(), Time::ZERO, at);
        let mut state = PolicyState::EMPTY;
        state.set(&computed);
        assert_eq!(state.get::<ComputedRanks>(), computed);
        let other: ShareTree = "2*u1, (g1, g7)".parse().unwrap();
        assert!(
            computed.are_of(&tree, at) && !computed.are_of(&tree, Time::ZERO) && !computed.are_of(&other, at)
        );
        assert_eq!((computed.clone().into_ranks(&other), computed.into_ranks(&tree).is_some()), (None, true));
        for words in [&[1][..], &[1, 0], &[1, 0, 2, 3], &[1, 0, u64::MAX], &[1, 0, 2, 3, u64::MAX]] {
            assert_eq!(ComputedRanks::decode(1, words), None);
        }
    }

    #[test]
    fn priorities_are_computed_each_period() {
        let computations = Computations { period: Span::from_ticks(60), first: Time::from_ticks(7) };
        let last = |now: i64| computations.last(Time::from_ticks(now)).ticks();
        assert_eq!([6, 7, 66, 67, -60].map(last), [-53, 7, 7, 67, -113]);
    }
}
