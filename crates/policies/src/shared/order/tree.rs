//! The shares of users and groups in a tree, and their order by Slurm's Fair Tree.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use miserly_core::{Persistent, Span, Time, Usage};
use thiserror::Error;

/// A tree of the shares that users and groups have of a machine.
///
/// The written form has the shares of each member of the tree, `*` and the member: a user `u7`, a group `g3`, or an account, which
/// is a list of members in brackets. A member with `parent` instead of shares has as much as it wants in its account. The members
/// of such an account are members of the account above it.
///
/// # Order
/// The usage of an account is that of its members. The level of a member is its part of the shares of its account,
/// over its part of the usage of its account. The member with the highest level is the first of its account; a user or group is
/// before an account with the same level, and the members of accounts with the same level are ordered together. The order of the
/// whole tree is that of its users and groups from the first account to the last one (Slurm's Fair Tree).
///
/// O(m log m) for m members.
///
/// # Example
/// ```
/// use miserly_policies::shared::ShareTree;
///
/// let tree: ShareTree = "30*(2*u1, u2), 10*u3".parse()?;
/// assert_eq!(tree.to_string(), "30*(2*u1, 1*u2), 10*u3");
/// # Ok::<(), miserly_policies::shared::ShareTreeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareTree(Vec<Member>);

/// The reason why a text is no tree of shares.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("character {at}: expected {expected}")]
pub struct ShareTreeError {
    /// The position, from 1.
    at: usize,
    expected: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Member {
    /// None: as much as it wants.
    shares: Option<u32>,
    is: Is,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Is {
    Owner(Owner),
    Account(Vec<Member>),
}

/// A user or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    User(u32),
    Group(u32),
}

/// The ranks of the n users and groups of a tree: the first one has the rank n, the last one the rank 1. Those with the same level
/// have the same rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranks {
    owners: BTreeMap<Owner, u32>,
    /// The number of users and groups.
    count: u32,
}

impl Ranks {
    /// Returns the rank of the user of a job, or else of the group; 0 if neither is in the tree.
    pub fn of(&self, user: Option<u32>, group: Option<u32>) -> u32 {
        let owners = [user.map(Owner::User), group.map(Owner::Group)];
        owners.into_iter().flatten().find_map(|owner| self.owners.get(&owner)).copied().unwrap_or(0)
    }

    /// Returns the number of users and groups in the tree.
    pub const fn count(&self) -> u32 {
        self.count
    }
}

/// The ranks of the last computation of the priorities, and its instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ComputedRanks(pub(super) Option<(Time, Ranks)>);

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

impl ShareTree {
    /// Returns the ranks by the usage at an instant.
    ///
    /// Usage counts in whole processor-seconds, so that equal levels are equal.
    ///
    /// # Example
    /// ```
    /// use miserly_core::{Span, Time, Usage};
    /// use miserly_policies::shared::ShareTree;
    ///
    /// let tree: ShareTree = "30*(2*u1, u2), 10*u3".parse()?;
    /// let used = [(1, 40e6), (2, 10e6), (3, 50e6)];
    /// let usage = Usage::until(Time::ZERO, Span::MAX, used.map(|(user, ticks)| (Some(user), None, ticks)));
    /// let ranks = tree.ranks(&usage, Time::ZERO);
    /// // The account has 3/4 of the shares and half of the usage. In it, user 2 has 1/3 of the shares and 1/5 of the usage.
    /// assert_eq!([1, 2, 3].map(|user| ranks.of(Some(user), None)), [2, 3, 1]);
    /// # Ok::<(), miserly_policies::shared::ShareTreeError>(())
    /// ```
    pub fn ranks(&self, usage: &Usage, now: Time) -> Ranks {
        let used = |owner: Owner| match owner {
            Owner::User(user) => usage.processor_seconds(Some(user), now),
            Owner::Group(group) => usage.group_processor_seconds(Some(group), now),
        };
        let mut ranking = Ranking { used: &used, ranks: Ranks::default(), next: 0, tie: 0 };
        ranking.next = self.owners().count().try_into().unwrap_or(u32::MAX);
        ranking.ranks.count = ranking.next;
        ranking.rank(&[(&self.0, usage_of(&self.0, &used))], false);
        ranking.ranks
    }

    fn owners(&self) -> impl Iterator<Item = Owner> + '_ {
        let mut left: Vec<&Member> = self.0.iter().collect();
        std::iter::from_fn(move || {
            loop {
                match &left.pop()?.is {
                    Is::Owner(owner) => return Some(*owner),
                    Is::Account(members) => left.extend(members),
                }
            }
        })
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
    /// Ranks the members of accounts with the same level, each with its usage.
    fn rank(&mut self, accounts: &[(&Vec<Member>, u64)], mut tied: bool) {
        let mut siblings: Vec<Sibling<'_>> =
            accounts.iter().flat_map(|(members, usage)| self.siblings(members, *usage)).collect();
        let is_account = |sibling: &Sibling<'_>| matches!(sibling.is, Is::Account(_));
        siblings
            .sort_by(|one, other| other.level.cmp(one.level).then(is_account(one).cmp(&is_account(other))));
        for alike in siblings.chunk_by(|one, other| one.level.cmp(other.level).is_eq()) {
            let mut accounts = vec![];
            for sibling in alike {
                match sibling.is {
                    Is::Owner(owner) => {
                        if !tied {
                            self.tie = self.next;
                        }
                        tied = true;
                        self.ranks.owners.insert(*owner, self.tie);
                        self.next = self.next.saturating_sub(1);
                    }
                    Is::Account(members) => accounts.push((members, sibling.usage)),
                }
            }
            if !accounts.is_empty() {
                self.rank(&accounts, tied);
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

/// Formats the tree in its written form.
impl fmt::Display for ShareTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.0)
    }
}

fn write_list(f: &mut fmt::Formatter<'_>, members: &[Member]) -> fmt::Result {
    for (place, member) in members.iter().enumerate() {
        let between = if place == 0 { "" } else { ", " };
        match member.shares {
            Some(shares) => write!(f, "{between}{shares}*")?,
            None => write!(f, "{between}parent*")?,
        }
        match &member.is {
            Is::Owner(Owner::User(user)) => write!(f, "u{user}")?,
            Is::Owner(Owner::Group(group)) => write!(f, "g{group}")?,
            Is::Account(members) => {
                f.write_str("(")?;
                write_list(f, members)?;
                f.write_str(")")?;
            }
        }
    }
    Ok(())
}

impl FromStr for ShareTree {
    type Err = ShareTreeError;

    fn from_str(text: &str) -> Result<ShareTree, ShareTreeError> {
        let mut reader = Reader { text, at: 0 };
        let members = reader.list(0)?;
        if reader.peek().is_some() {
            return Err(reader.expected("a comma or the end"));
        }
        let tree = ShareTree(members);
        let mut owners: Vec<Owner> = tree.owners().collect();
        owners.sort_unstable();
        if owners.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(ShareTreeError { at: 1, expected: "each user and group once" });
        }
        Ok(tree)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    /// The deepest accounts.
    const DEPTH: usize = 64;

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the next character that is no blank.
    fn peek(&mut self) -> Option<char> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        self.rest().chars().next()
    }

    /// Skips a character, if it is the next one.
    fn skip(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn expected(&self, expected: &'static str) -> ShareTreeError {
        ShareTreeError { at: self.text[..self.at].chars().count() + 1, expected }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Member>, ShareTreeError> {
        if depth > Reader::DEPTH {
            return Err(self.expected("at most 64 accounts within each other"));
        }
        let mut members = vec![];
        // An account may have shares, but no users yet.
        if depth > 0 && self.peek() == Some(')') {
            return Ok(members);
        }
        loop {
            match self.member(depth)? {
                Member { shares: None, is: Is::Account(within) } => members.extend(within),
                member => members.push(member),
            }
            if !self.skip(',') {
                return Ok(members);
            }
        }
    }

    fn member(&mut self, depth: usize) -> Result<Member, ShareTreeError> {
        let shares = match self.peek() {
            Some('u' | 'g' | '(') => Some(1),
            Some('p') if self.rest().starts_with("parent") => {
                self.at += "parent".len();
                self.times()?;
                None
            }
            _ => {
                let shares = self.number("shares, a user such as u7, a group such as g7, or a bracket")?;
                self.times()?;
                Some(shares)
            }
        };
        let is = if self.skip('(') {
            let members = self.list(depth + 1)?;
            if !self.skip(')') {
                return Err(self.expected("a comma or a closing bracket"));
            }
            Is::Account(members)
        } else if self.skip('u') {
            Is::Owner(Owner::User(self.number("the number of a user")?))
        } else if self.skip('g') {
            Is::Owner(Owner::Group(self.number("the number of a group")?))
        } else {
            return Err(self.expected("a user such as u7, a group such as g7, or a bracket"));
        };
        Ok(Member { shares, is })
    }

    fn times(&mut self) -> Result<(), ShareTreeError> {
        if self.skip('*') { Ok(()) } else { Err(self.expected("*")) }
    }

    fn number(&mut self, expected: &'static str) -> Result<u32, ShareTreeError> {
        let digits: &str = self.rest().split(|found: char| !found.is_ascii_digit()).next().unwrap_or("");
        let number = digits.parse().map_err(|_| self.expected(expected))?;
        self.at += digits.len();
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::PolicyState;

    use super::*;

    #[track_caller]
    fn refused(text: &str, at: usize, expected: &str) {
        let error = text.parse::<ShareTree>().unwrap_err();
        assert_eq!((error.at, error.expected), (at, expected), "{text}");
    }

    #[test]
    fn a_tree_is_read_as_it_is_written() {
        for (text, written) in [
            ("u1", "1*u1"),
            ("30*(2*u1,parent*g7), 0 * (u3,())", "30*(2*u1, parent*g7), 0*(1*u3, 1*())"),
            // The members of an account without shares of its own are those of the account above.
            ("2*u1, parent*(3*u2, parent*(u3), 4*(u4))", "2*u1, 3*u2, 1*u3, 4*(1*u4)"),
        ] {
            let tree: ShareTree = text.parse().unwrap();
            assert_eq!(tree.to_string(), written);
            assert_eq!(tree.to_string().parse::<ShareTree>(), Ok(tree));
        }
        refused("", 1, "shares, a user such as u7, a group such as g7, or a bracket");
        refused("2*u1, 3*x", 9, "a user such as u7, a group such as g7, or a bracket");
        refused("2*(u1", 6, "a comma or a closing bracket");
        refused("2*u1)", 5, "a comma or the end");
        refused("2 u1", 3, "*");
        refused("u99999999999", 2, "the number of a user");
        refused("u1, 2*(g1, u1)", 1, "each user and group once");
        refused(&"(".repeat(100_000), 66, "at most 64 accounts within each other");
    }

    #[track_caller]
    fn check(tree: &str, used: &[(u32, u32)], expected: &[u32]) {
        let usage = used.iter().map(|(user, seconds)| (Some(*user), None, f64::from(*seconds) * 1e6));
        let usage = Usage::until(Time::ZERO, Span::MAX, usage);
        let ranks = tree.parse::<ShareTree>().unwrap().ranks(&usage, Time::ZERO);
        let users = 1..=u32::try_from(expected.len()).unwrap();
        let found: Vec<u32> = users.map(|user| ranks.of(Some(user), None)).collect();
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
    fn users_of_equal_accounts_are_ordered_together() {
        // Each account has half of the shares and half of the usage. User 4 is far below its share.
        check("(u1, u2), (u3, u4)", &[(1, 20), (2, 30), (3, 45), (4, 5)], &[3, 2, 1, 4]);
        // A user is before an account with the same level, and its first user has the same rank.
        check("(u1), u2", &[(1, 10), (2, 10)], &[2, 2]);
    }

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
