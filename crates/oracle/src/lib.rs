//! The policies again, as plainly as they can be said: slow, and easy to believe.
//!
//! Property tests compare the real policies with these start by start, and benchmarks use them as the
//! slow version. Everything is a `Vec` and a linear scan; nothing is kept up to date that can be computed
//! again. An event loop of its own plays the machine.
//!
//! **Architecture invariant:** nothing of the product is used here but the types that name a job, a time
//! and a convention of instants. Logarithms are those of `libm` here as there: another's differ in the last bit.
//!
//! ```
//! use miserly_core::{ActualRuntime, EventOrder, Request, Resources, Span, Time};
//! use miserly_oracle::{NaiveJob, NaiveOrder, NaivePolicy, schedule};
//!
//! let minute = Span::from_secs(60).unwrap();
//! let request = |number| Request::new(number, Time::ZERO, minute, Resources::cpus(3));
//! let jobs = [1, 2].map(|number| NaiveJob { request: request(number), runtime: ActualRuntime(minute) });
//! let fcfs = NaivePolicy::Fcfs { order: NaiveOrder::ARRIVAL };
//! assert_eq!(schedule(4, &jobs, fcfs, EventOrder::Batched), [Time::ZERO, Time::ZERO + minute]);
//! ```

mod order;

mod events;

mod world;

mod plan;

mod ratio;

mod fcfs;

mod easy;

mod conservative;

mod selective;

mod sorted;

mod hosts;

mod pool;

mod lsf;

mod equipartition;

mod suspension;

mod gang;

mod written;

#[cfg(test)]
mod tests;

use miserly_core::{ActualRuntime, EventOrder, Request, Time};

pub use crate::equipartition::equipartition;

use crate::events::Simulation;

pub use crate::gang::{NaiveFurther, NaiveGang, NaiveGangLife, NaivePacking, gang_schedule};
pub use crate::hosts::{NaiveOnHosts, NaiveStart, schedule_on_hosts};
pub use crate::lsf::{NaiveLsf, lsf_schedule};
pub use crate::pool::{NaiveChange, NaiveFate, NaivePool, windows};
pub use crate::ratio::Ratio;
pub use crate::suspension::{
    NaiveDisk, NaiveLife, NaiveLimit, NaiveRule, NaiveStay, NaiveSuspension, suspension_schedule,
};

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
#[derive(Clone, Copy, Debug)]
pub enum NaiveOrder {
    /// Least first.
    Rank(fn(&Request) -> i128),
    /// Largest `value - weight * submit` first, in seconds: the same at any instant as `value + weight * delay`.
    /// What is not a number comes last.
    Value {
        /// The value of a job, before the weight.
        value: fn(NaiveFacts) -> f64,
        /// What a second of delay adds.
        weight: f64,
        /// Where the random number comes from.
        draws: NaiveDraws,
    },
    /// Largest `value - weight * submit` first, compared exactly. What is not a number comes last.
    Exact {
        /// The value of a job, before the weight.
        value: fn(ExactFacts) -> Ratio,
        /// What a second of delay adds.
        weight: Ratio,
    },
}

/// What the exact value of a job is computed from; the meanings are those of [`NaiveFacts`].
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct ExactFacts {
    pub estimate: Ratio,
    pub procs: Ratio,
    pub wait: Ratio,
    pub memory: Ratio,
    pub user: Ratio,
    pub bypassed: Ratio,
}

/// What the value of a job is computed from.
#[derive(Clone, Copy, Debug)]
pub struct NaiveFacts {
    /// In seconds, at least 1.
    pub estimate: f64,
    /// How many are asked for.
    pub procs: f64,
    /// In [0, 1).
    pub random: f64,
    /// Since the submission, in seconds.
    pub wait: f64,
    /// The submission, in seconds of the log.
    pub submit: f64,
    /// In kB.
    pub memory: f64,
    /// The user's number, or -1.
    pub user: f64,
    /// How many jobs that sort behind it started before it, on hosts; else 0.
    pub bypassed: f64,
}

/// Random numbers: the upper 53 bits of the draw number 2^63, or of 2^63 + the ticks of the instant.
#[derive(Clone, Copy, Debug)]
pub enum NaiveDraws {
    /// One for each job.
    Once {
        /// The seed of the draws.
        seed: u64,
    },
    /// New ones at each instant.
    Pass {
        /// The seed of the draws.
        seed: u64,
    },
}

impl NaiveOrder {
    /// Earliest submit first.
    pub const ARRIVAL: NaiveOrder = NaiveOrder::Rank(|_| 0);
    /// Shortest estimate first.
    pub const SHORTEST: NaiveOrder = NaiveOrder::Rank(|job| job.estimate.ticks().into());
    /// Longest estimate first.
    pub const LONGEST: NaiveOrder = NaiveOrder::Rank(|job| -i128::from(job.estimate.ticks()));
    /// Fewest processors first.
    pub const NARROWEST: NaiveOrder = NaiveOrder::Rank(|job| job.procs().get().into());
    /// Most processors first.
    pub const WIDEST: NaiveOrder = NaiveOrder::Rank(|job| -i128::from(job.procs().get()));
    /// Least product of the two first.
    pub const SMALLEST: NaiveOrder =
        NaiveOrder::Rank(|job| i128::from(job.estimate.ticks()) * i128::from(job.procs().get()));
    /// Greatest product of the two first.
    pub const LARGEST: NaiveOrder =
        NaiveOrder::Rank(|job| -i128::from(job.estimate.ticks()) * i128::from(job.procs().get()));
}

/// A policy of Zotkin et al. §2, with its orders.
#[derive(Clone, Copy, Debug)]
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
        /// Whether a head that has a shadow time stays the head.
        hold: bool,
    },
    /// Every job has a reservation, made at its arrival and kept.
    Conservative {
        /// The order of compression.
        order: NaiveOrder,
    },
    /// Every job has a reservation, made anew at every pass in this order.
    NoGuarantee {
        /// The order of the queue.
        order: NaiveOrder,
    },
    /// Jobs whose expansion factor has reached a threshold have reservations, made anew at every pass.
    Selective {
        /// The order of the queue.
        order: NaiveOrder,
        /// The threshold; no job has a reservation, if it is infinite.
        threshold: Ratio,
    },
    /// Jobs start in this order, as long as each meets its deadline.
    Sorted {
        /// The order of the queue.
        order: NaiveOrder,
        /// The deadline is so many times the interval to the first reservation.
        guarantee: i64,
    },
}

/// Returns the start of every job, in the order of the slice, which may be in any order itself.
///
/// # Panics
/// If a job asks for more processors than the machine has: it would never start.
pub fn schedule(procs: u64, jobs: &[NaiveJob], policy: NaivePolicy, instants: EventOrder) -> Vec<Time> {
    for job in jobs {
        assert!(job.request.procs() <= procs.into(), "job {} is wider than the machine", job.request.number);
    }
    Simulation::new(procs, jobs, policy, instants).run()
}
