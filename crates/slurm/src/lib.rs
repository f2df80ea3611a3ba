//! A Slurm cluster, as its own commands show it.
//!
//! [`Slurm`] runs them, without a shell. [`Cluster`] is the state at one instant: nodes, partitions, jobs, reservations.
//! [`Poller`] reads it again and again at a small share of the controller's time, and [`Change`]s are the differences.
//! [`log()`] is the accounting as a job log.
//!
//! Only text formats are read. They differ little between the versions since 22.05; the JSON of the commands differs much.
//! [`Slurm::control`], [`Slurm::submit_array`] and [`Check::run`] with a probe alone change a cluster.

mod accounting;

mod array;

mod associations;

mod audit;

mod check;

mod closed;

mod cluster;

mod command;

mod cycles;

mod decay;

mod error;

mod fields;

mod forecasts;

mod gres;

mod holes;

mod host_list;

mod live_limits;

mod new_job;

mod node_needs;

mod obstacle;

mod poller;

mod preemption;

mod places;

mod queue_nodes;

mod queues;

mod records;

mod rights;

mod statistics;

mod submission;

mod twin;

mod twin_queues;

mod version;

pub use accounting::{AccountedJob, accounted_jobs, learn, log, processor_billing};
pub use array::{ArrayRequest, ArrayState, task_ranges};
pub use associations::{Association, Associations, decay_time};
pub use audit::{Audit, AuditSummary};
pub use check::{Check, CommandCheck, Difference};
pub use cluster::{
    Allocated, Amount, Change, Cluster, Comments, Configuration, DRIVER_FLAGS, Detail, Job, JobState, Limit,
    Node, Partition, Reservation, Setting, changes,
};
pub use command::Slurm;
pub use cycles::{Comparison, CycleAudit, RecordedJob, Seen};
pub use error::SlurmError;
pub use forecasts::{Forecasts, JobForecast, forecasts};
pub use gres::{gpu_types, gpus, has_gpu_parts};
pub use holes::Hole;
pub use host_list::{HostListError, hosts};
pub use live_limits::{AssociationLimits, Limits};
pub use new_job::{NewJob, NewJobError};
pub use node_needs::NodeNeeds;
pub use places::{RecordedHost, known_hosts, place_jobs};
pub use poller::Poller;
pub use preemption::PreemptionSettings;
pub use queue_nodes::Observed;
pub use queues::Queue;
pub use records::{Calibration, Record, RecordError};
pub use statistics::BackfillCycles;
pub use twin::{ControllerDelays, Machinery, QueueWeights, Twin, TwinAudit, TwinCauses};
pub use twin_queues::{Quality, QualityLimits, TwinQueue, TwinQueues, qualities};
pub use version::{Form, Standing};
