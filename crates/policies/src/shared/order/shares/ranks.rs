//! The ranks of the users and groups of a tree of shares, by their usage.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use miserly_core::{Time, Usage};

use super::{Is, Member, Owner, ShareTree};

impl ShareTree {
    /// Returns the ranks by the usage at an instant.
    ///
    /// Usage counts in whole processor-seconds, so that equal levels are equal.
    ///
    /// # Example
    /// ```
    /// use miserly_core::{Span, Time, Usage};
    /// use miserly_policies::ShareTree;
    ///
    /// let tree: ShareTree = "30*(2*u1, u2), 10*u3".parse()?;
    /// let used = [(1, 40e6), (2, 10e6), (3, 50e6)];
    /// let usage = Usage::until(Time::ZERO, Span::MAX, used.map(|(user, ticks)| (Some(user), None, ticks)));
    /// let ranks = tree.ranks(&usage, Time::ZERO);
    /// // The account has 3/4 of the shares and half of the usage. In it, user 2 has 1/3 of the shares and 1/5 of the usage.
    /// assert_eq!([1, 2, 3].map(|user| ranks.rank(Some(user), None)), [2, 3, 1]);
    /// # Ok::<(), miserly_policies::ShareTreeError>(())
    /// ```
    pub fn ranks(&self, usage: &Usage, now: Time) -> Ranks {
        let used = |owner: Owner| match owner {
            Owner::User(user) => usage.processor_seconds(Some(user), now),
            Owner::Group(group) => usage.group_processor_seconds(Some(group), now),
        };
        let count = self.owners().count().try_into().unwrap_or(u32::MAX);
        let ranks = Ranks { owners: BTreeMap::new(), count };
        // An account without users may be the first member of all.
        let mut ranking = Ranking { used: &used, ranks, next: count, tie: count };
        ranking.rank(&self.members, usage_of(&self.members, &used), false);
        ranking.ranks
    }
}

/// The ranks of the n users and groups of a tree: the first one has the rank n, the last one the rank 1. Those with the same level
/// have the same rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    pub(super) owners: BTreeMap<Owner, u32>,
    /// The number of users and groups.
    pub(super) count: u32,
}

impl Ranks {
    /// Returns the rank of the user of a job, or else of the group; 0 if neither is in the tree.
    pub fn rank(&self, user: Option<u32>, group: Option<u32>) -> u32 {
        let owners = [user.map(Owner::User), group.map(Owner::Group)];
        owners.into_iter().flatten().find_map(|owner| self.owners.get(&owner)).copied().unwrap_or(0)
    }

    /// Returns the number of users and groups in the tree.
    pub const fn count(&self) -> u32 {
        self.count
    }
}

/// A member beside its siblings.
struct Sibling<'a> {
    is: &'a Is,
    usage: u64,
    level: Level,
}

/// A part of the shares over a part of the usage, as a fraction. Over 0 it is infinite.
#[derive(Clone, Copy, Debug)]
struct Level {
    over: u128,
    under: u128,
}

impl Level {
    const INFINITE: Level = Level { over: 1, under: 0 };

    /// Compares exactly, by the parts of continued fractions.
    fn cmp(self, other: Level) -> Ordering {
        let (mut one, mut two, mut swapped) = (self, other, false);
        loop {
            let order = match (one.under, two.under) {
                (0, 0) => Ordering::Equal,
                (0, _) => Ordering::Greater,
                (_, 0) => Ordering::Less,
                _ => (one.over / one.under).cmp(&(two.over / two.under)),
            };
            if order.is_ne() || one.under == 0 {
                return if swapped { order.reverse() } else { order };
            }
            // Of two rests below 1, the one with the larger inverse is the smaller one.
            let inverse = |level: Level| Level { over: level.under, under: level.over % level.under };
            (one, two, swapped) = (inverse(one), inverse(two), !swapped);
        }
    }
}

fn usage_of(members: &[Member], used: &impl Fn(Owner) -> u64) -> u64 {
    members.iter().fold(0, |sum: u64, member| sum.saturating_add(usage_of_member(&member.is, used)))
}

fn usage_of_member(member: &Is, used: &impl Fn(Owner) -> u64) -> u64 {
    match member {
        Is::Owner(owner) => used(*owner),
        Is::Account(members) => usage_of(members, used),
    }
}

struct Ranking<'a, F> {
    used: &'a F,
    ranks: Ranks,
    /// The rank of the next owner.
    next: u32,
    /// The rank of the last owner with a level of its own.
    tie: u32,
}

impl<F: Fn(Owner) -> u64> Ranking<'_, F> {
    /// Ranks the members of an account with this usage. `tied`: the first ones have the rank of the last owner.
    fn rank(&mut self, members: &[Member], usage: u64, mut tied: bool) {
        let mut siblings = self.siblings(members, usage);
        let is_account = |sibling: &Sibling<'_>| matches!(sibling.is, Is::Account(_));
        siblings
            .sort_by(|one, other| other.level.cmp(one.level).then(is_account(one).cmp(&is_account(other))));
        for alike in siblings.chunk_by(|one, other| one.level.cmp(other.level).is_eq()) {
            for sibling in alike {
                match sibling.is {
                    Is::Owner(owner) => {
                        if !tied {
                            self.tie = self.next;
                        }
                        self.ranks.owners.insert(*owner, self.tie);
                        self.next = self.next.saturating_sub(1);
                    }
                    Is::Account(members) => self.rank(members, sibling.usage, tied),
                }
                tied = true;
            }
            tied = false;
        }
    }

    fn siblings<'a>(&self, members: &'a [Member], usage: u64) -> Vec<Sibling<'a>> {
        let all: u64 = members.iter().filter_map(|member| member.shares).map(u64::from).sum();
        let sibling = |member: &'a Member| {
            let used = usage_of_member(&member.is, self.used);
            let level = match member.shares {
                None => Level::INFINITE,
                Some(0) => Level { over: 0, under: 1 },
                Some(_) if used == 0 => Level::INFINITE,
                Some(shares) => Level {
                    over: u128::from(shares) * u128::from(usage),
                    under: u128::from(all) * u128::from(used),
                },
            };
            Sibling { is: &member.is, usage: used, level }
        };
        members.iter().map(sibling).collect()
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::Span;

    use super::*;

    #[track_caller]
    fn check(tree: &str, used: &[(u32, u32)], expected: &[u32]) {
        let usage = used.iter().map(|(user, seconds)| (Some(*user), None, f64::from(*seconds) * 1e6));
        let usage = Usage::until(Time::ZERO, Span::MAX, usage);
        let ranks = tree.parse::<ShareTree>().unwrap().ranks(&usage, Time::ZERO);
        let users = 1..=u32::try_from(expected.len()).unwrap();
        let found: Vec<u32> = users.map(|user| ranks.rank(Some(user), None)).collect();
        assert_eq!(found, expected, "{tree}");
    }

    #[test]
    fn the_first_account_has_the_first_users() {
        // Both accounts have half of the shares; the second one has less usage, though user 3 has the most.
        check("(u1, u2), (u3, u4)", &[(1, 30), (2, 30), (3, 40), (4, 1)], &[2, 2, 3, 4]);
        // Those without usage are first; those without shares are last.
        check("u1, 0*u2, 5*u3, parent*u4", &[(1, 1), (4, 9)], &[2, 1, 4, 4]);
    }

    #[test]
    fn accounts_with_the_same_level_are_in_the_order_of_the_tree() {
        // Each account has half of the shares and half of the usage. The first user of the second one has the rank of the last one
        // of the first.
        check("(u1, u2), (u3, u4)", &[(1, 20), (2, 30), (3, 45), (4, 5)], &[4, 3, 1, 3]);
        // A user is before an account with the same level, and its first user has the same rank.
        check("(u1), u2", &[(1, 10), (2, 10)], &[2, 2]);
        // An account without users has the level of one without usage.
        check("(), (u1, u2), u3", &[(3, 10)], &[3, 3, 1]);
    }
}
