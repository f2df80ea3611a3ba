//! The packing schemes (Feitelson 1996, §2), each behind one interface: they place jobs in the
//! matrix.

mod first_fit;

mod best_fit;

mod left_right;

mod load;

mod loads;

mod buddy;

mod migration;

use std::fmt::Debug;

use miserly_core::{Matrix, PeSet, Procs, SlotId};

pub use best_fit::BestFit;
pub use buddy::{Booking, Buddy};
pub use first_fit::FirstFit;
pub use left_right::{BySize, BySlots, FilledFromRight};
pub use load::LeastLoaded;
pub use migration::Migration;

/// A slot and processors in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotPlacement {
    /// The slot.
    pub slot: SlotId,
    /// The processors.
    pub pes: PeSet,
}

/// A slot and consecutive processors in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotBlock {
    /// The slot.
    pub slot: SlotId,
    /// The lowest processor.
    pub lowest: u32,
    /// The number of processors, at least one.
    pub count: u32,
}

impl SlotBlock {
    /// Returns whether these are its slot and its processors.
    pub fn is(self, slot: SlotId, pes: &PeSet) -> bool {
        self.slot == slot && *pes.ranges() == [(self.lowest, self.lowest + self.count - 1)]
    }

    /// Returns it as the placement of a job.
    pub fn placement(self) -> SlotPlacement {
        SlotPlacement { slot: self.slot, pes: PeSet::block(self.lowest, self.count) }
    }
}

/// A packing scheme. Processors used only by alternates count as free.
///
/// A job that fits in no used slot gets an unused one. A scheme's data are derived from the
/// placements of the present jobs, which are reported to it, and from the state of the slots.
pub trait Packing: Debug + Send {
    /// Returns the placement of a job of this size in a used slot, or `None` if none of them can
    /// take it.
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<SlotPlacement>;

    /// Returns the processors of a job of this size in an unused slot. The host has at least as
    /// many.
    fn open(&self, matrix: &Matrix, size: Procs) -> Option<PeSet> {
        matrix.all().clone().take_lowest(size)
    }

    /// Returns the side from which an unused slot is filled, to be stored with the slot.
    fn filled(&self, _matrix: &Matrix) -> Option<FilledFromRight> {
        None
    }

    /// Removes all jobs and sets the number of processors.
    ///
    /// Later jobs may have other processors, which are lost, with numbers below `numbers`.
    fn reset(&mut self, _procs: Procs, _numbers: Procs) {}

    /// Records a job placed on these processors.
    fn came(&mut self, _pes: &PeSet) {}

    /// Records the departure of a job from these processors.
    fn left(&mut self, _pes: &PeSet) {}

    /// Returns whether the scheme moves jobs at each arrival and departure.
    ///
    /// Then [`remap`](Packing::remap) gives the placements, and [`place`](Packing::place) returns
    /// `None`.
    fn moves_jobs(&self) -> bool {
        false
    }

    /// Returns the placements of all present jobs, given their sizes in the order of arrival.
    ///
    /// Returns `None` if the scheme does not move jobs.
    fn remap(&self, _procs: Procs, _sizes: &[Procs]) -> Option<Vec<SlotBlock>> {
        None
    }
}

/// Returns the slots with sufficient capacity for a job of this size.
fn with_room(matrix: &Matrix, size: Procs) -> impl Iterator<Item = (SlotId, &miserly_core::Slot)> {
    matrix.slots().filter(move |(_, row)| row.open_count() >= size)
}
