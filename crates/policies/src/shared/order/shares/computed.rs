//! The ranks of the last computation of priorities, which the ledger keeps.

use miserly_core::{Persistent, Span, Time};

use super::{Owner, Ranks};

/// The ranks of the last computation of the priorities, and its instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct ComputedRanks(pub(in super::super) Option<(Time, Ranks)>);

/// The instant, the number of owners, and each owner with its rank.
impl Persistent for ComputedRanks {
    const NAME: &'static str = "order/fair-tree";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        let Some((at, ranks)) = &self.0 else { return };
        words.extend([at.ticks().cast_unsigned(), ranks.count.into()]);
        for (owner, rank) in &ranks.owners {
            let code = match *owner {
                Owner::User(user) => u64::from(user) << 1,
                Owner::Group(group) => u64::from(group) << 1 | 1,
            };
            words.extend([code, u64::from(*rank)]);
        }
    }

    fn decode(_version: u32, words: &[u64]) -> Option<ComputedRanks> {
        let [at, count, owners @ ..] = words else { return words.is_empty().then(ComputedRanks::default) };
        let owner = |pair: &[u64]| {
            let [code, rank] = *pair else { return None };
            let number = u32::try_from(code >> 1).ok()?;
            let owner = if code & 1 == 0 { Owner::User(number) } else { Owner::Group(number) };
            Some((owner, u32::try_from(rank).ok()?))
        };
        let owners = owners.chunks(2).map(owner).collect::<Option<_>>()?;
        let ranks = Ranks { owners, count: u32::try_from(*count).ok()? };
        Some(ComputedRanks(Some((Time::from_ticks(at.cast_signed()), ranks))))
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
    use miserly_core::{PolicyState, Usage};

    use super::*;
    use crate::shared::ShareTree;

    #[test]
    fn stored_ranks_are_read() {
        let tree: ShareTree = "u1, (g1, g7)".parse().unwrap();
        let ranks = tree.ranks(&Usage::default(), Time::ZERO);
        let computed = ComputedRanks(Some((Time::from_ticks(-5), ranks)));
        let mut state = PolicyState::EMPTY;
        state.set(&computed);
        assert_eq!(state.get::<ComputedRanks>(), computed);
        for words in [&[1][..], &[1, 2, 3], &[1, u64::MAX], &[1, 2, 3, u64::MAX]] {
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
