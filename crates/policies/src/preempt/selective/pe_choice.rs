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

#[cfg(test)]
mod tests {
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
}
