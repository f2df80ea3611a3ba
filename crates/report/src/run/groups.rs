//! The breakdowns of a run: the measures of each group of its jobs.

use std::collections::BTreeMap;

use miserly_sim::{GroupKey, Groups, Metrics};
use serde::Serialize;

use super::document::MetricsDoc;

/// The measures of some of the jobs.
#[derive(Clone, Debug, Serialize)]
pub struct Group {
    /// Which jobs: a category, a user's or a queue's number (or `unknown`), a range of runtimes, a
    /// class of requests.
    pub group: String,
    /// The least actual runtime of a range, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The runtimes of a range are below this, seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Measured jobs among them.
    pub jobs: u64,
    /// Their processor-seconds.
    pub work: f64,
    /// Their measures.
    pub metrics: MetricsDoc,
}

/// The groups of each grouping that was asked for, by its word.
pub(super) fn breakdowns(metrics: &mut Metrics) -> BTreeMap<String, Vec<Group>> {
    metrics.groups.values_mut().map(|groups| (groups.by().to_string(), Group::all(groups))).collect()
}

impl Group {
    fn all(groups: &mut Groups) -> Vec<Group> {
        groups.iter_mut().map(|(key, group)| Group::of(key, group)).collect()
    }

    fn of(key: GroupKey, group: &mut miserly_sim::Group) -> Group {
        let (from, to) = key.runtimes().unzip();
        Group {
            group: key.to_string(),
            from,
            to,
            jobs: group.jobs(),
            work: group.work(),
            metrics: MetricsDoc::of(&mut group.measures),
        }
    }
}
