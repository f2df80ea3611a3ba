//! Packing from the left or from the right (§2.2): best fit, with processors from one end or the
//! other.

use miserly_core::{Matrix, PeSet, Persistent, Procs, Slot};

use super::best_fit::best;
use super::{Packing, SlotPlacement};

/// Small jobs from the left, large ones from the right.
#[derive(Clone, Copy, Debug)]
pub struct BySize {
    /// The largest of the small jobs. The paper takes 8, of 128 processors.
    pub threshold: Procs,
}

/// Slots filled from the left or from the right, in equal numbers, or with one more from the left.
#[derive(Clone, Copy, Debug)]
pub struct BySlots;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

/// Whether a slot is filled from the right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilledFromRight(bool);

impl Persistent for FilledFromRight {
    const NAME: &'static str = "gang/filled-from-right";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.push(self.0.into());
    }

    fn decode(_version: u32, words: &[u64]) -> Option<FilledFromRight> {
        Some(FilledFromRight(words == [1]))
    }
}

fn is_filled_from_right(row: &Slot) -> bool {
    row.state().get::<FilledFromRight>().0
}

fn take(mut from: PeSet, count: Procs, side: Side) -> Option<PeSet> {
    match side {
        Side::Left => from.take_lowest(count),
        Side::Right => from.take_highest(count),
    }
}

impl BySize {
    fn side(self, size: Procs) -> Side {
        if size <= self.threshold { Side::Left } else { Side::Right }
    }
}

impl Packing for BySize {
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<SlotPlacement> {
        let (slot, row) = best(matrix, size)?;
        Some(SlotPlacement { slot, pes: take(row.open().clone(), size, self.side(size))? })
    }

    fn open(&self, matrix: &Matrix, size: Procs) -> Option<PeSet> {
        take(matrix.all().clone(), size, self.side(size))
    }
}

/// Returns the side from which the next unused slot is filled.
fn next(matrix: &Matrix) -> Side {
    let right = matrix.slots().filter(|(_, row)| is_filled_from_right(row)).count();
    if matrix.used() - right <= right { Side::Left } else { Side::Right }
}

impl Packing for BySlots {
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<SlotPlacement> {
        let (slot, row) = best(matrix, size)?;
        let from = if is_filled_from_right(row) { Side::Right } else { Side::Left };
        Some(SlotPlacement { slot, pes: take(row.open().clone(), size, from)? })
    }

    fn open(&self, matrix: &Matrix, size: Procs) -> Option<PeSet> {
        take(matrix.all().clone(), size, next(matrix))
    }

    fn filled(&self, matrix: &Matrix) -> Option<FilledFromRight> {
        (next(matrix) == Side::Right).then_some(FilledFromRight(true))
    }
}
