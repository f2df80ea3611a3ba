//! The choice of processors for a job without fixed processors.

use miserly_core::{PeSet, Procs};

/// The choice of processors for a job without fixed processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeChoice {
    /// The lowest.
    Lowest,
    /// The lowest processors to which no suspended job has to return, then those of the least
    /// urgent jobs.
    Spare,
}

/// Returns `count` of these processors by [`PeChoice::Spare`], if there are as many.
///
/// `returning` has the processors to which suspended jobs have to return, the most urgent job's
/// first.
///
/// It is read until those of more urgent jobs leave too few: O(j) operations on sets for j jobs.
pub(super) fn spare<'p>(
    from: &PeSet,
    count: Procs,
    mut returning: impl Iterator<Item = &'p PeSet>,
) -> Option<PeSet> {
    let (mut left, mut procs) = (from.clone(), from.count());
    while procs > count {
        let Some(pes) = returning.next() else { break };
        let mut layer = left.intersection(pes);
        if layer.is_empty() {
            continue;
        }
        left.remove_all(&layer);
        procs -= layer.count();
        if procs < count {
            left.insert_all(&layer.take_lowest(count - procs)?);
            return Some(left);
        }
    }
    left.take_lowest(count)
}

#[cfg(test)]
mod tests {
    use miserly_core::draw;

    use super::*;

    /// Returns the processors as the rule is written: in layers, from the least urgent job's.
    fn by_layers<'p>(
        from: &PeSet,
        count: Procs,
        returning: impl Iterator<Item = &'p PeSet>,
    ) -> Option<PeSet> {
        let mut left = from.clone();
        let mut wanted = vec![];
        for pes in returning {
            wanted.push(left.intersection(pes));
            left.remove_all(pes);
        }
        let mut chosen = PeSet::empty();
        for mut layer in std::iter::once(left).chain(wanted.into_iter().rev()) {
            let more = layer.count().min(count - chosen.count());
            chosen.insert_all(&layer.take_lowest(more)?);
        }
        Some(chosen).filter(|chosen| chosen.count() == count)
    }

    #[test]
    fn the_processors_of_the_least_urgent_go_first() {
        let free = PeSet::from_ranges(&[(0, 9)]);
        let returning = [(2, 3), (0, 5), (3, 7)].map(|range| PeSet::from_ranges(&[range]));
        let choice = |count: u64| spare(&free, count.into(), returning.iter());
        let spare = |count| choice(count).unwrap().to_string();
        assert_eq!(spare(2), "8-9", "nobody comes back to these");
        assert_eq!(spare(3), "6 8-9", "the last comes back to 3 to 7, of which the second has up to 5");
        assert_eq!(spare(5), "0 6-9", "0, 1, 4 and 5 are the second's and not the first's");
        assert_eq!(spare(9), "0-2 4-9");
        assert_eq!(choice(11), None);
    }

    #[test]
    fn a_choice_reads_no_more_jobs_than_it_depends_on() {
        let mut shorter = 0;
        for nth in 0..4_000 {
            let low = |number| u32::try_from(draw(13, nth, number) % 40).unwrap();
            let set = |number| PeSet::from_ranges(&[(low(number), low(number + 1))]);
            let free = PeSet::from_ranges(&[(low(0), 20 + low(1)), (low(2), low(3))]);
            let returning: Vec<PeSet> = (0..draw(13, nth, 4) % 9).map(|job| set(5 + 2 * job)).collect();
            let count = Procs::new(1 + draw(13, nth, 40) % 24);
            let mut read = 0;
            let counted = returning.iter().inspect(|_| read += 1);
            assert_eq!(spare(&free, count, counted), by_layers(&free, count, returning.iter()));
            shorter += u32::from(read < returning.len());
        }
        assert!((500..3_500).contains(&shorter), "{shorter} of 4000");
    }
}
