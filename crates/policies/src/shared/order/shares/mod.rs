//! The shares of users and groups in a tree, and their order by Slurm's Fair Tree.

mod computed;

mod ranks;

mod read;

use std::fmt;

pub use computed::{Computations, ComputedRanks};
pub use ranks::Ranks;
pub use read::ShareTreeError;

/// A tree of the shares that users and groups have of a machine.
///
/// A member has shares, then `*`, and then its form: a user `u7`, a group `g3`, or an account, which is a list of members in
/// brackets. Without shares, it has one. A member with `parent` instead of shares has as much as it wants in its account. The
/// members of such an account are members of the account above it.
///
/// # Order
/// The usage of an account is that of its members. The level of a member is its part of the shares of its account,
/// over its part of the usage of its account. The member with the highest level is the first of its account. A user or group is
/// before an account with the same level. Accounts with the same level keep their order, and the first user of one has the rank of
/// the last one before it. The order of the whole tree is that of its users and groups from the first account to the last one
/// (Slurm's Fair Tree; its documentation merges accounts with the same level, its code does not).
///
/// O(m log m) for m members.
///
/// # Example
/// ```
/// use miserly_policies::ShareTree;
///
/// let tree: ShareTree = "30*(2*u1, u2), 10*u3".parse()?;
/// assert_eq!(tree.to_string(), "30*(2*u1, 1*u2), 10*u3");
/// # Ok::<(), miserly_policies::ShareTreeError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareTree {
    members: Vec<Member>,
    /// A number that differs for other trees, but for a chance of 1 in 2^64.
    digest: u64,
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

impl ShareTree {
    fn new(members: Vec<Member>) -> ShareTree {
        let tree = ShareTree { members, digest: 0 };
        // FNV-1a of the written form.
        let step = |digest: u64, byte: u8| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let digest = tree.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, step);
        ShareTree { digest, ..tree }
    }

    fn owners(&self) -> impl Iterator<Item = Owner> + '_ {
        let mut left: Vec<&Member> = self.members.iter().collect();
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

/// Formats the tree in its written form.
impl fmt::Display for ShareTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.members)
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
