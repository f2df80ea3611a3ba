//! Options of a conversion.

use std::sync::Arc;

use jiff::tz::TimeZone;
use miserly_core::{Procs, named_enum};

use crate::table::ColumnMap;

named_enum! {
    /// The time that counts as a job's submission.
    #[derive(Default)]
    pub enum SubmitAt {
        /// Submission by the user.
        #[default]
        Submit "submit",
        /// Eligibility: no dependency, begin time or hold delays the job.
        Eligible "eligible",
    }
}

/// Returns the time zone of that name in the database of time zones.
///
/// # Errors
/// There is none.
pub fn find_time_zone(name: &str) -> Result<TimeZone, &'static str> {
    TimeZone::get(name).map_err(|_| "unknown time zone; write it as Europe/Berlin or UTC")
}

/// Options of a conversion. A format that has no use for an option ignores it.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Processors of the machine, which accounting does not contain.
    pub procs: Option<Procs>,
    /// Nodes of the machine.
    pub nodes: Option<u32>,
    /// Processors of a node, for jobs whose size is a number of nodes.
    pub cpus_per_node: Option<u32>,
    /// Time zone of the cluster, for the header and for times without an offset.
    pub time_zone: Option<TimeZone>,
    /// Separator of the columns of `sacct`, if it is not that of the header.
    pub delimiter: Option<String>,
    /// Time that counts as a job's submission.
    pub submit_at: SubmitAt,
    /// Whether jobs, users and groups keep their ids instead of numbers in order of appearance.
    pub keep_ids: bool,
    /// Whether invalid lines are skipped and counted.
    pub lenient: bool,
    /// The meaning of the columns, if the log is a table.
    pub columns: Option<Arc<ColumnMap>>,
}
