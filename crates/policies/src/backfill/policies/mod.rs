//! The registered policies of the backfill family, one file each.

mod point;

mod fcfs;

mod easy;

mod conservative;

mod selective;

mod sorted;

mod priority;

mod slurm;

pub use self::conservative::CONSERVATIVE;
pub use self::easy::EASY;
pub use self::fcfs::FCFS;
pub use self::point::Point;
pub(crate) use self::priority::CHIANG;
pub use self::priority::{
    FCFS_BACKFILL, LXF_BACKFILL, LXFW_BF, PRIORITY_BACKFILL, PRIORITY_BF, SJF_BACKFILL,
};
pub use self::selective::SELECTIVE_BACKFILL;
pub use self::slurm::SLURM;
pub use self::sorted::SORTED;

const ZOTKIN: &str = "Zotkin, Keleher, Perkovic: Attacking the Bottlenecks of Backfilling Schedulers, 2000";

/// The documentation of the parameter `order`.
pub(crate) const QUEUE_ORDER: &str = "the order of the queue";
