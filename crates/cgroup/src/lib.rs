//! Control groups (cgroup v2) for the attempts of jobs.
//!
//! A daemon has a [`Tree`]: a group in which it may create others. Each attempt has a [`JobGroup`] in it:
//!
//! ```text
//! TREE/               controllers enabled for its children; no process
//!   shims/            all shims, which no limit of a job reaches
//!   jobs/             controllers enabled for its children; `memory.min` at least the sum of theirs
//!     17.1/           all processes of an attempt: limits, freezer, kill
//! ```
//!
//! The kernel accepts values that it does not follow: a processor that is offline, a partition that
//! is invalid. So every setting is read back, and [`CgroupError::Differs`] has the value of the
//! kernel.
//!
//! [`Tree::probe`] tries each setting where the jobs will be. Nothing is concluded from a version of
//! the kernel or from a list of files.
#![cfg(target_os = "linux")]

mod error;

mod cpu_list;

mod group;

mod setting;

mod tree;

mod probe;

mod job_group;

mod usage;

mod pressure;

mod devices;

pub mod systemd;

pub use cpu_list::{CpuListError, format_cpus, online_cpus, parse_cpus};
pub use devices::{Device, DeviceKind, DeviceRange, DeviceRules};
pub use error::CgroupError;
pub use group::Group;
pub use job_group::{EventWatch, Events, GroupMemory, JobGroup, Limits, Processors};
pub use pressure::{Pressure, Resource, Stall};
pub use probe::{Capabilities, Capability};
pub use setting::Setting;
pub use tree::{Tree, group_of};
pub use usage::Usage;
