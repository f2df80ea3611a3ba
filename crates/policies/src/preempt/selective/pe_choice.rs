//! The choice of processors for a job without fixed processors.

use miserly_core::{PeSet, Procs};

/// The choice of processors for a job without fixed processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeChoice {
    /// The lowest.
    Lowest,
    /// The lowest processors to which no suspended job has to return, then those of the least
    /// urgent jobs.
    Spare,
}

impl PeChoice {
    /// Returns `count` of these processors, if there are as many.
    ///
    /// `returning` has the processors to which suspended jobs have to return, the most urgent job's
    /// first.
    ///
    /// O(r) operations on sets for r such jobs.
    pub(super) fn choose<'p>(
        self,
        from: &PeSet,
        count: Procs,
        returning: impl Iterator<Item = &'p PeSet>,
    ) -> Option<PeSet> {
        if from.count() < count {
            return None;
        }
        let mut left = from.clone();
        if self == PeChoice::Lowest {
            return left.take_lowest(count);
        }
        let mut wanted = vec![];
        for pes in returning {
            if left.is_empty() {
                break;
            }
            wanted.push(left.intersection(pes));
            left.remove_all(pes);
        }
        let mut chosen = PeSet::empty();
        for mut layer in std::iter::once(left).chain(wanted.into_iter().rev()) {
            let more = layer.count().min(count - chosen.count());
            chosen.insert_all(&layer.take_lowest(more)?);
        }
        Some(chosen)
    }
}

/// Returns the `count` lowest of these processors to which no job returns, if there are as many.
///
/// [`PeChoice::Spare`] chooses them then, and the order of the jobs does not matter.
pub(super) fn unwanted<'p>(
    from: &PeSet,
    count: Procs,
    returning: impl Iterator<Item = &'p PeSet>,
) -> Option<PeSet> {
    let mut left = from.clone();
    for pes in returning {
        left.remove_all(pes);
        if left.is_empty() {
            break;
        }
    }
    left.take_lowest(count)
}

#[cfg(test)]
mod tests {
    use miserly_core::draw;

    use super::*;

    fn choose(place: PeChoice, count: u64) -> Option<String> {
        let free = PeSet::from_ranges(&[(0, 9)]);
        let returning = [(2, 3), (0, 5), (3, 7)].map(|range| PeSet::from_ranges(&[range]));
        place.choose(&free, count.into(), returning.iter()).map(|pes| pes.to_string())
    }

    #[test]
    fn the_processors_of_the_least_urgent_go_first() {
        let spare = |count| choose(PeChoice::Spare, count).unwrap();
        assert_eq!(spare(2), "8-9", "nobody comes back to these");
        assert_eq!(spare(3), "6 8-9", "the last comes back to 3 to 7, of which the second has up to 5");
        assert_eq!(spare(5), "0 6-9", "0, 1, 4 and 5 are the second's and not the first's");
        assert_eq!(spare(9), "0-2 4-9");
        assert_eq!(choose(PeChoice::Spare, 11), None);
        assert_eq!(choose(PeChoice::Lowest, 3).unwrap(), "0-2");
    }

    #[test]
    fn unwanted_processors_are_those_of_the_choice() {
        let mut found = 0;
        for nth in 0..2_000 {
            let low = |number| u32::try_from(draw(13, nth, number) % 40).unwrap();
            let set = |number| PeSet::from_ranges(&[(low(number), low(number + 1))]);
            let free = PeSet::from_ranges(&[(low(0), 20 + low(1)), (low(2), low(3))]);
            let returning: Vec<PeSet> = (0..draw(13, nth, 4) % 5).map(|job| set(5 + 2 * job)).collect();
            let count = Procs::new(1 + draw(13, nth, 20) % 12);
            if let Some(unwanted) = unwanted(&free, count, returning.iter().rev()) {
                found += 1;
                assert_eq!(PeChoice::Spare.choose(&free, count, returning.iter()), Some(unwanted));
            }
        }
        assert!((500..1_900).contains(&found), "{found} of 2000");
    }
}
