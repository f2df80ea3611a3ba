//! The differences of runs of one log.

use miserly_sim::{Interval, MEASURES};
use serde::{Deserialize, Serialize};

use super::groups::GroupDoc;
use super::measures::KEYS;
use super::run::RunDoc;

/// The difference of two policies' means of one measure on one log, by paired batches of the same
/// jobs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct DifferenceDoc {
    /// Name of the log.
    pub trace: String,
    /// Measure, by its key in `metrics`.
    pub measure: String,
    /// First policy.
    pub policy_a: String,
    /// Second policy.
    pub policy_b: String,
    /// Mean paired difference, first minus second, in the unit of the measure.
    pub mean: Option<f64>,
    /// Half width of its 95 % interval; null if unreliable, as in [`UncertaintyDoc`](super::UncertaintyDoc).
    pub half_width: Option<f64>,
    /// Correlation of each paired difference with the next; null with fewer than 10 pairs or
    /// without variance.
    pub autocorrelation: Option<f64>,
    /// Whether the interval contains 0; null without an interval.
    pub within_noise: Option<bool>,
}

/// Returns the differences of all pairs of runs of one log, for each measure.
pub fn differences(runs: &[&RunDoc]) -> Vec<DifferenceDoc> {
    let pairs = runs.iter().enumerate().flat_map(|(at, a)| runs[at + 1..].iter().map(move |b| (*a, *b)));
    pairs.flat_map(|(a, b)| (0..MEASURES).map(move |measure| DifferenceDoc::new(a, b, measure))).collect()
}

impl DifferenceDoc {
    /// Compares two runs by the measure at this position in `Measures::all`.
    pub fn new(a: &RunDoc, b: &RunDoc, measure: usize) -> DifferenceDoc {
        let interval = a.batch_sums.difference(&b.batch_sums, measure);
        let Interval { mean, half_width, autocorrelation } = interval;
        DifferenceDoc {
            trace: a.trace.name.clone(),
            measure: KEYS[measure].to_owned(),
            policy_a: a.policy.clone(),
            policy_b: b.policy.clone(),
            mean,
            half_width,
            autocorrelation,
            within_noise: interval.within_noise(),
        }
    }
}

/// The least number of jobs in a group whose change is tested.
pub const GROUP_JOBS_LEAST: u64 = 30;

/// The change of the mean wait of a group of jobs from one policy to another.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct GroupChangeDoc {
    /// The group, as in `by`.
    pub group: String,
    /// Its name in the header of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Measured jobs in the group.
    pub jobs: u64,
    /// Mean wait under the other policy, in seconds.
    pub before: f64,
    /// Mean wait under the policy, in seconds.
    pub after: f64,
    /// Half width of the interval of the change. All those of a comparison hold together with 95 %. Null if unreliable.
    pub half_width: Option<f64>,
    /// Whether the interval contains 0; null without an interval.
    pub within_noise: Option<bool>,
}

impl GroupChangeDoc {
    /// Compares the groups of a grouping that have at least [`GROUP_JOBS_LEAST`] jobs under two policies.
    pub fn all(by: &str, after: &RunDoc, before: &RunDoc) -> Vec<GroupChangeDoc> {
        let (Some(groups), Some(others)) = (after.by.get(by), before.by.get(by)) else { return Vec::new() };
        let enough = groups.iter().filter(|group| group.jobs >= GROUP_JOBS_LEAST);
        let other = |group: &GroupDoc| others.iter().find(|other| other.group == group.group);
        let pairs: Vec<[&GroupDoc; 2]> = enough.filter_map(|group| Some([group, other(group)?])).collect();
        let change = |pair: &[&GroupDoc; 2]| GroupChangeDoc::new([after, before], *pair, pairs.len());
        pairs.iter().filter_map(change).collect()
    }

    fn new(runs: [&RunDoc; 2], [after, before]: [&GroupDoc; 2], tested: usize) -> Option<GroupChangeDoc> {
        let batches = [&after.batch_sums, &before.batch_sums];
        let half_width = runs[0].batch_sums.group_difference(&runs[1].batch_sums, batches, tested).half_width;
        let waits = [before, after].map(|group| group.metrics.wait.mean);
        let [Some(was), Some(is)] = waits else { return None };
        Some(GroupChangeDoc {
            group: after.group.clone(),
            name: after.name.clone(),
            jobs: after.jobs,
            before: was,
            after: is,
            half_width,
            within_noise: half_width.map(|half_width| (is - was).abs() <= half_width),
        })
    }

    /// Returns the change of the sum of the waits, in seconds.
    pub fn total(&self) -> f64 {
        (self.after - self.before) * self.jobs as f64
    }
}
