//! Breakdowns of a run: the measures of groups of jobs.

use std::collections::BTreeMap;

use miserly_sim::{GroupKey, Groups, Metrics};
use serde::{Deserialize, Serialize};

use super::measures::MetricsDoc;

/// The measures of a group of jobs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GroupDoc {
    /// Name of the group.
    ///
    /// A category, the number of a user or queue (or `unknown`), a range of runtimes, or a request
    /// class.
    pub group: String,
    /// Least actual runtime of the range, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// Upper bound of the range, excluded, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Measured jobs in the group.
    pub jobs: u64,
    /// Work of these jobs in processor-seconds.
    pub work: f64,
    /// Measures of these jobs.
    pub metrics: MetricsDoc,
}

/// Returns the groups of each requested grouping, by its keyword.
pub(super) fn breakdowns(metrics: &mut Metrics) -> BTreeMap<String, Vec<GroupDoc>> {
    metrics.groups.values_mut().map(|groups| (groups.grouping().to_string(), GroupDoc::all(groups))).collect()
}

impl GroupDoc {
    fn all(groups: &mut Groups) -> Vec<GroupDoc> {
        groups.iter_mut().map(|(key, group)| GroupDoc::new(key, group)).collect()
    }

    fn new(key: &GroupKey, group: &mut miserly_sim::Group) -> GroupDoc {
        let (from, to) = key.runtimes().unzip();
        GroupDoc {
            group: key.to_string(),
            from,
            to,
            jobs: group.jobs(),
            work: group.work(),
            metrics: MetricsDoc::new(&mut group.measures),
        }
    }
}
