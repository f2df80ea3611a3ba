//! Migration (§2.5): all jobs are mapped anew whenever one comes or goes.

use std::cmp::Reverse;

use miserly_core::{Matrix, PeSet, SlotId};

use super::{Packing, Place};

/// First fit decreasing: the largest job first, of equals the one that came first, each to the first row with capacity enough; processors
/// in serial order. Optimal if all sizes divide each other. O(n log n), and O(n rows).
#[derive(Clone, Copy, Debug)]
pub struct Migration;

impl Packing for Migration {
    fn place(&self, _matrix: &Matrix, _size: u64) -> Option<Place> {
        None
    }

    fn moves_jobs(&self) -> bool {
        true
    }

    fn remap(&self, procs: u64, sizes: &[u64]) -> Option<Vec<Place>> {
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&at| Reverse(sizes[at]));
        let mut filled: Vec<u64> = vec![];
        let nowhere = Place { slot: SlotId(0), pes: PeSet::empty() };
        let mut places = vec![nowhere; sizes.len()];
        for at in order {
            let size = sizes[at];
            let row = filled.iter().position(|filled| procs - filled >= size).unwrap_or(filled.len());
            if row == filled.len() {
                filled.push(0);
            }
            let pes = PeSet::block(u32::try_from(filled[row]).ok()?, u32::try_from(size).ok()?);
            filled[row] += size;
            places[at] = Place { slot: SlotId(u32::try_from(row).ok()?), pes };
        }
        Some(places)
    }
}
