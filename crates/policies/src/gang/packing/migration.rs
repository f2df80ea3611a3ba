//! Migration (§2.5): all jobs are mapped again at each arrival and departure.

use miserly_core::{Matrix, Procs, SlotId};

use super::{Packing, SlotBlock, SlotPlacement};

/// First fit decreasing: each job, the largest first, goes to the first slot with sufficient
/// capacity.
///
/// Jobs of equal size are taken in order of arrival, processors in serial order. Optimal if all
/// sizes divide each other. O(n slots + w) for n jobs that are at most w processors wide.
#[derive(Clone, Copy, Debug)]
pub struct Migration;

impl Packing for Migration {
    fn place(&self, _matrix: &Matrix, _size: Procs) -> Option<SlotPlacement> {
        None
    }

    fn moves_jobs(&self) -> bool {
        true
    }

    fn remap(&self, procs: Procs, sizes: &[Procs]) -> Option<Vec<SlotBlock>> {
        // If a job is wider than the remaining machine, all jobs stay in place.
        if sizes.iter().any(|size| *size > procs) {
            return None;
        }
        let sizes = sizes.iter().map(|size| u32::try_from(*size).ok()).collect::<Option<Vec<u32>>>()?;
        let mut filled: Vec<Procs> = vec![];
        let mut places = vec![SlotBlock { slot: SlotId(0), lowest: 0, count: 1 }; sizes.len()];
        for at in largest_first(&sizes) {
            let count = sizes[at];
            let size = Procs::new(count.into());
            let row = filled.iter().position(|filled| procs - *filled >= size).unwrap_or(filled.len());
            if row == filled.len() {
                filled.push(Procs::ZERO);
            }
            let lowest = u32::try_from(filled[row]).ok()?;
            filled[row] += size;
            places[at] = SlotBlock { slot: SlotId(u32::try_from(row).ok()?), lowest, count };
        }
        Some(places)
    }
}

/// Returns the positions of all sizes, the largest first, and equal ones in their order. O(n + w) for n sizes of
/// at most w: they are counted, not compared.
fn largest_first(sizes: &[u32]) -> Vec<usize> {
    let most = sizes.iter().max().map_or(0, |most| *most as usize);
    // The number of larger ones, then the place of the next one of this size.
    let mut next = vec![0_usize; most + 2];
    for size in sizes {
        next[*size as usize] += 1;
    }
    let mut larger = 0;
    for of_size in next.iter_mut().rev() {
        larger += std::mem::replace(of_size, larger);
    }
    let mut order = vec![0; sizes.len()];
    for (at, size) in sizes.iter().enumerate() {
        let place = &mut next[*size as usize];
        order[*place] = at;
        *place += 1;
    }
    order
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use miserly_core::draw;

    use super::*;

    fn check(procs: u64, sizes: &[u64], expected: Option<&[&str]>) {
        let shown = |places: Vec<SlotBlock>| -> Vec<String> {
            let places = places.iter().map(|place| place.placement());
            places.map(|place| format!("{}: {}", place.slot.0, place.pes)).collect()
        };
        let asked: Vec<Procs> = sizes.iter().copied().map(Procs::new).collect();
        let places = Migration.remap(procs.into(), &asked).map(shown);
        let expected = expected.map(|all| all.iter().map(ToString::to_string).collect());
        assert_eq!(places, expected, "{sizes:?} on {procs}");
    }

    #[test]
    fn sizes_are_in_the_order_of_a_stable_sort() {
        for seed in 0..200 {
            let sizes = (0..draw(seed, 0, 0) % 40).map(|nth| u32::try_from(draw(seed, 1, nth) % 9).unwrap());
            let sizes: Vec<u32> = sizes.collect();
            let mut expect: Vec<usize> = (0..sizes.len()).collect();
            expect.sort_by_key(|at| Reverse(sizes[*at]));
            assert_eq!(largest_first(&sizes), expect, "{sizes:?}");
        }
    }

    #[test]
    fn the_largest_first_and_then_who_came_first() {
        check(8, &[], Some(&[]));
        check(8, &[3, 5, 3, 5], Some(&["0: 5-7", "0: 0-4", "1: 5-7", "1: 0-4"]));
        check(8, &[1, 8, 2, 4], Some(&["1: 6", "0: 0-7", "1: 4-5", "1: 0-3"]));
        check(8, &[1, 9], None);
    }
}
