//! The policies again, as plainly as they can be said: slow, and easy to believe.
//!
//! Property tests compare the real policies with these start by start, and benchmarks use them as the
//! slow version. Everything is a `Vec` and a linear scan; nothing is kept up to date that can be computed
//! again. An event loop of its own plays the machine.
//!
//! **Architecture invariant:** nothing of the product is used here but the types that name a job, a time
//! and a convention of instants.
//!
//! ```
//! use miserly_core::{ActualRuntime, Instants, Request, Resources, Span, Time};
//! use miserly_oracle::{NaiveJob, NaiveOrder, NaivePolicy, schedule};
//!
//! let minute = Span::from_secs(60).unwrap();
//! let request = |number| Request::new(number, Time::ZERO, minute, Resources::cpus(3));
//! let jobs = [1, 2].map(|number| NaiveJob { request: request(number), runtime: ActualRuntime(minute) });
//! let fcfs = NaivePolicy::Fcfs { order: NaiveOrder::Arrival };
//! assert_eq!(schedule(4, &jobs, fcfs, Instants::Batch), [Time::ZERO, Time::ZERO + minute]);
//! ```

mod order;

mod events;

mod world;

mod plan;

mod fcfs;

mod easy;

mod conservative;

#[cfg(test)]
mod tests;

use miserly_core::{ActualRuntime, Instants, Request, Time};

use crate::events::Simulation;

/// A job: what its user asked for, and the truth that no policy looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveJob {
    /// What the policy is told.
    pub request: Request,
    /// How long it runs, already cut by whatever overrun rule the caller wants; longer than the estimate
    /// means that it becomes overdue.
    pub runtime: ActualRuntime,
}

/// An order of waiting jobs; ties by submit time, then job number, then position in the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaiveOrder {
    /// Earliest submit first.
    Arrival,
    /// Shortest estimate first.
    Shortest,
    /// Longest estimate first.
    Longest,
    /// Fewest processors first.
    Narrowest,
    /// Most processors first.
    Widest,
}

/// A policy of Zotkin et al. §2, with its orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaivePolicy {
    /// No backfilling: jobs start in queue order, up to the first that does not fit.
    Fcfs {
        /// The order of the queue.
        order: NaiveOrder,
    },
    /// The head of the queue has a reservation; the others may pass it if they do not delay it.
    Easy {
        /// The order of the queue.
        order: NaiveOrder,
        /// The order in which the jobs behind the head are tried.
        backfill: NaiveOrder,
    },
    /// Every job has a reservation, made at its arrival and kept.
    Conservative {
        /// The order of compression, and of starts at one instant.
        order: NaiveOrder,
    },
}

/// Returns the start of every job, in the order of the slice, which may be in any order itself.
///
/// # Panics
/// If a job asks for more processors than the machine has: it would never start.
pub fn schedule(procs: u64, jobs: &[NaiveJob], policy: NaivePolicy, instants: Instants) -> Vec<Time> {
    for job in jobs {
        assert!(job.request.procs() <= procs, "job {} is wider than the machine", job.request.number);
    }
    Simulation::new(procs, jobs, policy, instants).run()
}
