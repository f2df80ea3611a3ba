//! Migration (§2.5): all jobs are mapped again at each arrival and departure.

use std::cmp::Reverse;

use miserly_core::{Matrix, PeSet, Procs, SlotId};

use super::{Packing, SlotPlacement};

/// First fit decreasing: each job, the largest first, goes to the first slot with sufficient
/// capacity.
///
/// Jobs of equal size are taken in order of arrival, processors in serial order. Optimal if all
/// sizes divide each other. O(n log n), and O(n slots).
#[derive(Clone, Copy, Debug)]
pub struct Migration;

impl Packing for Migration {
    fn place(&self, _matrix: &Matrix, _size: Procs) -> Option<SlotPlacement> {
        None
    }

    fn moves_jobs(&self) -> bool {
        true
    }

    fn remap(&self, procs: Procs, sizes: &[Procs]) -> Option<Vec<SlotPlacement>> {
        // If a job is wider than the remaining machine, all jobs stay in place.
        if sizes.iter().any(|size| *size > procs) {
            return None;
        }
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&at| Reverse(sizes[at]));
        let mut filled: Vec<Procs> = vec![];
        let nowhere = SlotPlacement { slot: SlotId(0), pes: PeSet::empty() };
        let mut places = vec![nowhere; sizes.len()];
        for at in order {
            let size = sizes[at];
            let row = filled.iter().position(|filled| procs - *filled >= size).unwrap_or(filled.len());
            if row == filled.len() {
                filled.push(Procs::ZERO);
            }
            let pes = PeSet::block(u32::try_from(filled[row]).ok()?, u32::try_from(size).ok()?);
            filled[row] += size;
            places[at] = SlotPlacement { slot: SlotId(u32::try_from(row).ok()?), pes };
        }
        Some(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(procs: u64, sizes: &[u64], expected: Option<&[&str]>) {
        let shown = |places: Vec<SlotPlacement>| -> Vec<String> {
            places.iter().map(|place| format!("{}: {}", place.slot.0, place.pes)).collect()
        };
        let asked: Vec<Procs> = sizes.iter().copied().map(Procs::new).collect();
        let places = Migration.remap(procs.into(), &asked).map(shown);
        let expected = expected.map(|all| all.iter().map(ToString::to_string).collect());
        assert_eq!(places, expected, "{sizes:?} on {procs}");
    }

    #[test]
    fn the_largest_first_and_then_who_came_first() {
        check(8, &[], Some(&[]));
        check(8, &[3, 5, 3, 5], Some(&["0: 5-7", "0: 0-4", "1: 5-7", "1: 0-4"]));
        check(8, &[1, 8, 2, 4], Some(&["1: 6", "0: 0-7", "1: 4-5", "1: 0-3"]));
        check(8, &[1, 9], None);
    }
}
