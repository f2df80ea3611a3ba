//! Breakdowns of a run: the measures of groups of jobs.

use std::collections::BTreeMap;

use miserly_sim::{Batches, GroupKey, Grouping, Groups, Metrics};
use serde::{Deserialize, Serialize};

use super::measures::MetricsDoc;

/// The measures of a group of jobs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GroupDoc {
    /// The group: a category, the number of a user, queue or partition (or `unknown`), a range, or a request class.
    pub group: String,
    /// Its name in the header of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
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
    /// The waits in the batches of the run, for comparisons. Empty in a document that was read back.
    #[serde(skip)]
    pub batch_sums: Batches<1>,
}

/// Returns the name of a group in a table of this grouping: that of the header of the log, else a number with its field.
pub fn group_label(by: &str, group: &str, name: Option<&str>) -> String {
    match name {
        Some(name) => name.to_owned(),
        None if is_numbered(by, group) => format!("{by} {group}"),
        None => group.to_owned(),
    }
}

/// Returns whether the group is a number of a field of the log.
fn is_numbered(by: &str, group: &str) -> bool {
    by.parse().is_ok_and(Grouping::is_numbered) && group.parse::<u32>().is_ok()
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
            name: None,
            from,
            to,
            jobs: group.jobs(),
            work: group.work(),
            metrics: MetricsDoc::new(&mut group.measures),
            batch_sums: group.waits.clone(),
        }
    }

    /// Returns the name of the group in a table of this grouping.
    pub fn label(&self, by: &str) -> String {
        group_label(by, &self.group, self.name.as_deref())
    }
}
