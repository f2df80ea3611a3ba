//! The backfill family on hosts with memory (Chiang and Vernon 2001, section 2.2), with a separate
//! event loop.

mod recomputed;

mod devices;

mod fit;

mod kept;

mod late;

mod plan;

mod preempted;

mod selective;

mod slurm;

mod sorted;

mod world;

use miserly_core::{EventOrder, Machine, Time};

use crate::{NaiveCycles, NaiveJob, NaiveOrder, Ratio};

use self::fit::Part;
use self::world::World;

/// A policy of the backfill family, on hosts.
#[derive(Clone, Copy, Debug)]
pub enum NaiveOnHosts {
    /// No backfilling: jobs start in queue order, up to the first that fits nowhere.
    Fcfs {
        /// The order of the queue.
        order: NaiveOrder,
    },
    /// The first jobs of the queue have reservations, recomputed at every pass.
    Anew {
        /// The order of the queue.
        order: NaiveOrder,
        /// The order in which the jobs without reservations are tried.
        backfill: NaiveOrder,
        /// The number of reservations, or `None` for all jobs.
        depth: Option<usize>,
        /// Whether a head that has a reservation stays the head.
        hold: bool,
    },
    /// Jobs whose expansion factor has reached a threshold have reservations, recomputed at every pass.
    Selective {
        /// The order of the queue.
        order: NaiveOrder,
        /// The threshold; no job has a reservation, if it is infinite.
        threshold: Ratio,
    },
    /// Every job has a reservation, made at its arrival and kept.
    Kept {
        /// The order of compression.
        order: NaiveOrder,
    },
    /// Jobs start in any order that leaves each of them its guarantee.
    Sorted {
        /// The order in which jobs are tried.
        order: NaiveOrder,
        /// The deadline of a job, in units of the first wait that it was promised.
        guarantee: i64,
    },
    /// The first job of the queue has a reservation. A job past its bound goes to the head.
    LateAtHead {
        /// The order of the queue.
        order: NaiveOrder,
        /// The bound of a job, in units of its wait under conservative backfilling on as many processors.
        guarantee: i64,
    },
    /// A main loop, and cycles that reserve whole hosts. Jobs may span hosts.
    Slurm {
        /// The order of the queue.
        order: NaiveOrder,
        /// The settings of the cycles.
        cycles: NaiveCycles,
    },
}

/// The start and the placement of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveStart {
    /// The start.
    pub at: Time,
    /// The hosts, in order, and the number of processors that it holds of each.
    pub on: Vec<(usize, u64)>,
    /// The cells of devices of which it holds some, in order, and the amounts.
    pub devices: Vec<(usize, u64)>,
}

/// Returns the start and the placement of each job, in the order of the slice.
///
/// # Panics
/// If a job waits forever, because it fits on no idle machine.
pub fn schedule_on_hosts(
    machine: &Machine,
    jobs: &[NaiveJob],
    policy: NaiveOnHosts,
    event_order: EventOrder,
) -> Vec<NaiveStart> {
    let placed = World::new(machine, jobs, policy).run(event_order);
    let start = |(at, parts): (Time, Vec<Part>)| {
        let mut on: Vec<_> = parts.iter().map(|part| (part.host, part.amount.cpus_count().get())).collect();
        on.sort_unstable();
        let devices = parts.iter().flat_map(|part| part.devices.clone()).collect();
        NaiveStart { at, on, devices }
    };
    placed.into_iter().map(start).collect()
}
