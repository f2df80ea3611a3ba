//! Where in the matrix a job goes (Feitelson 1996, §2): the packing schemes, each behind one interface.

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

/// A place in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The row.
    pub slot: SlotId,
    /// The processors.
    pub pes: PeSet,
}

/// A packing scheme. What jobs have tentatively in rows besides their own is free to it.
///
/// A job that no row which is used can take gets one that is not. What a scheme keeps follows from the places of the jobs that are there,
/// which it is told of, and from the state of the slots.
pub trait Packing: Debug + Send {
    /// Where a job of this size goes among the rows that are used; `None` if none of them can take it.
    fn place(&self, matrix: &Matrix, size: Procs) -> Option<Place>;

    /// Which processors a job of this size, which the host has, gets in a row that nobody uses.
    fn open(&self, matrix: &Matrix, size: Procs) -> Option<PeSet> {
        matrix.all().clone().take_lowest(size)
    }

    /// Returns the side from which a slot is filled that was not used before, to be kept with the slot.
    fn filled(&self, _matrix: &Matrix) -> Option<FilledFromRight> {
        None
    }

    /// Nobody is there, on so many processors. Jobs may come that have others, which are lost, below `numbers`.
    fn reset(&mut self, _procs: Procs, _numbers: Procs) {}

    /// A job has its place on these processors now.
    fn came(&mut self, _pes: &PeSet) {}

    /// A job that had its place on these processors is gone.
    fn left(&mut self, _pes: &PeSet) {}

    /// Whether the scheme moves jobs whenever one comes or goes: [`remap`](Packing::remap) then says where, and [`place`](Packing::place) is nowhere.
    fn moves_jobs(&self) -> bool {
        false
    }

    /// Where all jobs go that are there, by their sizes, in the order of their arrival, if the scheme moves jobs.
    fn remap(&self, _procs: Procs, _sizes: &[Procs]) -> Option<Vec<Place>> {
        None
    }
}

/// The rows that can take so many, by capacity alone.
fn with_room(matrix: &Matrix, size: Procs) -> impl Iterator<Item = (SlotId, &miserly_core::Slot)> {
    matrix.slots().filter(move |(_, row)| row.open_count() >= size)
}
