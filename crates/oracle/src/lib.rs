//! Reference implementations of the policies: slow, simple and easy to verify.
//!
//! Property tests compare the policies with them start by start, and benchmarks use them as the
//! slow version. All data is in a `Vec` with linear scans. Every value is computed again when it is
//! needed. A separate event loop plays the machine.
//!
//! **Architecture invariant:** this crate uses only the product's types for jobs, times and event
//! orders. Logarithms come from `libm`, as in the product, because other implementations differ in
//! the last bit.
//!
//! ```
//! use miserly_core::{ActualRuntime, EventOrder, Request, Resources, Span, Time};
//! use miserly_oracle::{NaiveJob, NaiveOrder, NaivePolicy, schedule};
//!
//! let minute = Span::from_secs(60).unwrap();
//! let request = |number| Request::new(number, Time::ZERO, minute, Resources::cpus(3));
//! let runtime = ActualRuntime(minute);
//! let jobs = [1, 2].map(|number| NaiveJob { request: request(number), runtime });
//! let fcfs = NaivePolicy::Fcfs { order: NaiveOrder::ARRIVAL };
//! assert_eq!(schedule(4, &jobs, fcfs, EventOrder::Batched), [Time::ZERO, Time::ZERO + minute]);
//! ```

mod order;

mod usage;

mod events;

mod world;

mod plan;

mod ratio;

mod fcfs;

mod easy;

mod conservative;

mod selective;

mod sorted;

mod late;

mod predicted;

mod slurm;

mod hosts;

mod pool;

mod lsf;

mod equipartition;

mod suspension;

mod gang;

mod written;

#[cfg(test)]
mod tests;

use miserly_core::{ActualRuntime, EventOrder, Request, Span, Time};

pub use crate::equipartition::equipartition;

use crate::events::Simulation;

pub use crate::gang::{NaiveFurther, NaiveGang, NaiveGangLife, NaivePacking, gang_schedule};
pub use crate::hosts::{NaiveOnHosts, NaiveStart, schedule_on_hosts};
pub use crate::lsf::{NaiveLsf, lsf_schedule};
pub use crate::pool::{NaiveChange, NaiveFate, NaivePool, windows};
pub use crate::predicted::{NaiveBook, NaiveCorrector, NaivePrediction, NaivePredictor};
pub use crate::ratio::Ratio;
pub use crate::slurm::{NaiveCycles, NaiveLimits, NaivePreemption, NaiveVictims};
pub use crate::suspension::{
    NaiveDisk, NaiveLife, NaiveLimit, NaiveRule, NaiveStay, NaiveSuspension, suspension_schedule,
};

/// A job: its request, and the actual runtime, which no policy reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NaiveJob {
    /// The request that the policy receives.
    pub request: Request,
    /// The actual runtime, after the overrun rule of the caller. If it exceeds the estimate, the
    /// job becomes overdue.
    pub runtime: ActualRuntime,
}

/// An order of waiting jobs. Ties are broken by submit time, then job number, then position in the
/// slice.
#[derive(Clone, Copy, Debug)]
pub enum NaiveOrder {
    /// Smallest first.
    Rank(fn(&Request) -> i128),
    /// Largest `value - weight * submit` first, in seconds. At any instant this equals the order by
    /// `value + weight * delay`. NaN comes last.
    Value {
        /// The value of a job, before the weight.
        value: fn(NaiveFacts) -> f64,
        /// The increase per second of delay.
        weight: f64,
        /// The source of the random number.
        draws: NaiveDraws,
    },
    /// Largest `value - weight * submit` first, compared exactly. NaN comes last.
    Exact {
        /// The value of a job, before the weight.
        value: fn(&ExactFacts) -> Ratio,
        /// The increase per second of delay.
        weight: Ratio,
        /// The decay of usage, if the value depends on it.
        usage: Option<NaiveDecay>,
    },
}

/// The inputs of the exact value of a job, with the meanings of [`NaiveFacts`].
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct ExactFacts {
    pub estimate: Ratio,
    pub procs: Ratio,
    pub wait: Ratio,
    pub memory: Ratio,
    pub user: Ratio,
    pub bypassed: Ratio,
    pub usage_share: Ratio,
    pub usage: Ratio,
    pub group_usage_share: Ratio,
    pub group_usage: Ratio,
}

/// The inputs of the value of a job.
#[derive(Clone, Copy, Debug)]
pub struct NaiveFacts {
    /// In seconds, at least 1.
    pub estimate: f64,
    /// The requested number of processors.
    pub procs: f64,
    /// In [0, 1).
    pub random: f64,
    /// The time since the submission, in seconds.
    pub wait: f64,
    /// The submission, in seconds of the log.
    pub submit: f64,
    /// The memory, in kB.
    pub memory: f64,
    /// The user's number, or -1.
    pub user: f64,
    /// The number of jobs that sort behind it and started before it, on hosts. Otherwise 0.
    pub bypassed: f64,
}

/// The decay of usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NaiveDecay {
    /// It never decays.
    Never,
    /// It halves in this span.
    HalfLife(Span),
}

/// Random numbers: the upper 53 bits of a draw. Its number is 2^63, or 2^63 plus the ticks of the
/// instant.
#[derive(Clone, Copy, Debug)]
pub enum NaiveDraws {
    /// One draw for each job.
    Once {
        /// The seed of the draws.
        seed: u64,
    },
    /// New draws at each instant.
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
    /// Smallest product of estimate and processors first.
    pub const SMALLEST: NaiveOrder =
        NaiveOrder::Rank(|job| i128::from(job.estimate.ticks()) * i128::from(job.procs().get()));
    /// Largest product of estimate and processors first.
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
    /// The head of the queue has a reservation. Other jobs may start before it if they do not delay
    /// it.
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
    /// Every job has a reservation, recomputed at every pass in this order.
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
    /// The first jobs of the queue start while they fit. In cycles, others start beside reservations.
    Slurm {
        /// The order of the queue.
        order: NaiveOrder,
        /// The cycles.
        cycles: NaiveCycles,
    },
    /// Jobs start in this order, as long as each meets its deadline.
    Sorted {
        /// The order of the queue.
        order: NaiveOrder,
        /// The factor of the deadline: a multiple of the interval to the first reservation.
        guarantee: i64,
    },
    /// EASY in this order. A job past its bound goes to the head.
    LateAtHead {
        /// The order of the queue.
        order: NaiveOrder,
        /// The factor of the bound: a multiple of the wait under conservative backfilling.
        guarantee: i64,
    },
}

/// Returns the start of every job, in the order of the slice. The slice may be in any order.
///
/// # Panics
/// If a job requests more processors than the machine has: it would never start.
pub fn schedule(procs: u64, jobs: &[NaiveJob], policy: NaivePolicy, event_order: EventOrder) -> Vec<Time> {
    for job in jobs {
        assert!(job.request.procs() <= procs.into(), "job {} is wider than the machine", job.request.number);
    }
    Simulation::new(procs, jobs, policy, event_order).run()
}

/// Returns the start of every job, as [`schedule`] does, under predicted runtimes.
///
/// # Panics
/// As [`schedule`].
pub fn schedule_predicted(
    procs: u64,
    jobs: &[NaiveJob],
    policy: NaivePolicy,
    prediction: NaivePrediction,
    event_order: EventOrder,
) -> Vec<Time> {
    Simulation::new(procs, jobs, policy, event_order).predicting(prediction).run()
}
