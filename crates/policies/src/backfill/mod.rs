//! Backfilling (Lifka 1995; Zotkin, Keleher, Perkovic 2000; Chiang, Vernon 2001).
//!
//! Every policy of the family is a value of [`BackfillRules`], run by one engine ([`Backfill`]).
//! The engine is monomorphised over the free resources ([`Availability`]): counts of processors
//! ([`CountPlan`]), or hosts ([`HostPlan`](crate::shared::HostPlan)).
//!
//! | policy | rules |
//! |---|---|
//! | EASY | recomputed reservations, depth 1 |
//! | conservative | kept reservations |
//! | conservative without guarantees | recomputed reservations, all jobs |
//! | selective reservations | recomputed reservations, the jobs above an expansion factor |
//! | sorted with a guarantee | kept reservations, a guarantee |
//! | first-fit windows (Miser) | kept reservations, a horizon |

mod rules;

mod engine;

mod recomputed;

mod kept;

mod guarantee;

mod guard;

mod availability;

mod counts;

mod hosts;

mod changes;

mod reservations;

mod bounds;

mod queue;

mod fcfs;

mod slurm;

pub mod policies;

pub use availability::{Availability, Following, FreedCapacity, OverTime, Places, Search};
pub use counts::{CountPlan, FreedProcs};
pub use engine::{Backfill, Backfilling, backfill, backfill_on_hosts};
pub use fcfs::Fcfs;
pub use reservations::{Reservation, Reservations};
pub use rules::{BackfillRules, ReservationDepth};
pub use slurm::{
    BillingWeights, BillingWeightsError, CyclePlan, NodePlan, Planned, PreemptionOrder, PreemptionRules,
    PreemptionRulesError, RunningLimits, RunningLimitsError, Simple, SlurmLike, SlurmRules, select_hosts,
};
