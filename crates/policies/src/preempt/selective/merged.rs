//! Two orders as one.

use std::cmp::Ordering;

/// Merges two sequences that are in this order. It reads one item of each ahead.
pub(super) fn merged<T>(
    one: impl Iterator<Item = T>,
    other: impl Iterator<Item = T>,
    order: impl Fn(&T, &T) -> Ordering,
) -> impl Iterator<Item = T> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(mine), Some(its)) if order(mine, its).is_gt() => other.next(),
        (None, Some(_)) => other.next(),
        _ => one.next(),
    })
}
