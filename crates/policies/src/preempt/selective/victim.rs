//! Jobs that may be suspended, and the choice among them.

use miserly_core::{JobId, Resources};

use super::rank::Rank;

/// A job that may be suspended by jobs of sufficient rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct Victim {
    pub(super) rank: Rank,
    pub(super) admitted: u64,
    pub(super) job: JobId,
    /// The resources that it frees.
    pub(super) gives: Resources,
}

/// Returns victims by increasing rank, then by admission number.
pub(super) fn by_rank(mut victims: Vec<Victim>) -> Vec<Victim> {
    victims.sort_unstable_by(|one, other| one.rank.cmp(&other.rank).then(one.admitted.cmp(&other.admitted)));
    victims
}

/// Returns the first victims until the need is met, without those that turn out to be unnecessary.
///
/// Unnecessary victims are removed from the end.
pub(super) fn enough<'v>(
    free: Resources,
    need: &Resources,
    mut from: impl Iterator<Item = &'v Victim>,
) -> Option<Vec<Victim>> {
    let mut had = free;
    let mut chosen = vec![];
    while !need.fits_in(&had) {
        let victim = *from.next()?;
        had = had.plus(&victim.gives);
        chosen.push(victim);
    }
    let mut needed: Vec<Victim> = vec![];
    for victim in chosen.into_iter().rev() {
        let fewer = had.less(&victim.gives);
        if need.fits_in(&fewer) {
            had = fewer;
        } else {
            needed.push(victim);
        }
    }
    Some(needed)
}
