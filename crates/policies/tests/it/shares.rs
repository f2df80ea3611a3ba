//! The order of a tree of shares against its definition: leaves are compared by their paths.

use std::cmp::Ordering;
use std::fmt::Write as _;

use miserly_core::{Span, Time, Usage};
use miserly_policies::shared::ShareTree;
use proptest::prelude::*;

/// A tree as the test knows it. Users have their numbers by their places.
#[derive(Clone, Debug)]
enum Tree {
    /// The usage of a user.
    User(u64),
    /// The members of an account with their shares; none: `parent`.
    Account(Vec<(Option<u32>, Tree)>),
}

/// Returns a tree with a user at least.
fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![Just(0), 0..4u64, 0..1000u64].prop_map(Tree::User);
    leaf.prop_recursive(4, 40, 5, |inner| {
        // `parent` of an account has another meaning.
        let member = (prop::option::weighted(0.9, 0..4u32), inner).prop_map(|(shares, tree)| match tree {
            Tree::User(_) => (shares, tree),
            Tree::Account(_) => (shares.or(Some(2)), tree),
        });
        prop::collection::vec(member, 0..5).prop_map(Tree::Account)
    })
    .prop_map(|tree| match tree {
        Tree::User(_) => Tree::Account(vec![(Some(1), tree)]),
        Tree::Account(mut members) => {
            members.push((Some(1), Tree::User(2)));
            Tree::Account(members)
        }
    })
}

/// A step of the path to a user: the level as a fraction, and the place of an account in its list.
type Step = ([u64; 2], Option<usize>);

/// A user, or an account without members.
struct Leaf {
    /// None: an account, which has no rank but a place.
    number: Option<u32>,
    usage: u64,
    path: Vec<Step>,
}

impl Tree {
    fn usage(&self) -> u64 {
        match self {
            Tree::User(usage) => *usage,
            Tree::Account(members) => members.iter().map(|(_, member)| member.usage()).sum(),
        }
    }

    fn collect(&self, path: &[Step], text: &mut String, leaves: &mut Vec<Leaf>) {
        let Tree::Account(members) = self else { panic!("an account") };
        let all: u32 = members.iter().filter_map(|(shares, _)| *shares).sum();
        for (place, (shares, member)) in members.iter().enumerate() {
            let level = match shares {
                None => [1, 0],
                Some(0) => [0, 1],
                Some(shares) => {
                    let (part, of) = (member.usage(), self.usage());
                    if part == 0 { [1, 0] } else { [u64::from(*shares) * of, u64::from(all) * part] }
                }
            };
            let shares = shares.map_or("parent".to_owned(), |shares| shares.to_string());
            write!(text, "{}{shares}*", if place == 0 { "" } else { ", " }).unwrap();
            let mut path = path.to_vec();
            path.push((level, matches!(member, Tree::Account(_)).then_some(place)));
            match member {
                Tree::User(usage) => {
                    let users = leaves.iter().filter(|leaf| leaf.number.is_some()).count();
                    let number = u32::try_from(users).unwrap();
                    write!(text, "u{number}").unwrap();
                    leaves.push(Leaf { number: Some(number), usage: *usage, path });
                }
                Tree::Account(members) if members.is_empty() => {
                    text.push_str("()");
                    leaves.push(Leaf { number: None, usage: 0, path });
                }
                Tree::Account(_) => {
                    text.push('(');
                    member.collect(&path, text, leaves);
                    text.push(')');
                }
            }
        }
    }
}

/// Compares the levels of two steps.
fn levels(one: &Step, two: &Step) -> Ordering {
    let [([a, b], _), ([c, d], _)] = [one, two];
    (u128::from(*a) * u128::from(*d)).cmp(&(u128::from(*c) * u128::from(*b)))
}

/// Returns the order of two users, and whether the second one has the rank of the first one if it is next to it.
fn compare(one: &Leaf, two: &Leaf) -> (Ordering, bool) {
    for (mine, theirs) in one.path.iter().zip(&two.path) {
        let order = levels(theirs, mine);
        if order.is_ne() {
            return (order, false);
        }
        if mine.1 != theirs.1 {
            return (mine.1.cmp(&theirs.1), true);
        }
    }
    (Ordering::Equal, true)
}

proptest! {
    #[test]
    fn users_are_ordered_by_their_paths(tree in tree()) {
        let (mut text, mut leaves) = (String::new(), vec![]);
        tree.collect(&[], &mut text, &mut leaves);
        let users = leaves.iter().filter_map(|leaf| Some((leaf.number?, leaf.usage)));
        let used: Vec<_> = users.map(|(user, usage)| (Some(user), None, usage as f64 * 1e6)).collect();
        let mut next = u32::try_from(used.len()).unwrap();
        let usage = Usage::until(Time::ZERO, Span::MAX, used);
        let ranks = text.parse::<ShareTree>().unwrap().ranks(&usage, Time::ZERO);
        leaves.sort_by(|one, two| compare(one, two).0);
        let mut rank = next;
        prop_assert_eq!(ranks.count(), next);
        for place in 0..leaves.len() {
            let Some(number) = leaves[place].number else { continue };
            if place == 0 || !compare(&leaves[place - 1], &leaves[place]).1 {
                rank = next;
            }
            next -= 1;
            prop_assert_eq!(ranks.rank(Some(number), None), rank, "{} in {}", number, text);
        }
    }
}
