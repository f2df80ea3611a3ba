//! Arrays of which a limited number of tasks may run at the same time.

use std::collections::BTreeMap;

use miserly_slurm::{Cluster, Job};

use super::case::{Case, Stage};
use super::rebuild::holds_nodes;

/// The number of tasks of each array that have a place: those that hold nodes, are placed, or are in the ledger.
///
/// A task without a place would keep nodes idle that Slurm does not let it have.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayPlaces(BTreeMap<u64, u64>);

impl ArrayPlaces {
    /// Counts them.
    pub(super) fn of(cases: &BTreeMap<String, Case>, cluster: &Cluster) -> ArrayPlaces {
        let mut places = ArrayPlaces::default();
        for job in cluster.jobs.values() {
            let has = holds_nodes(job) || cases.get(&job.id).is_some_and(Case::has_place);
            places.change(job, false, has);
        }
        places
    }

    /// Takes in whether a job had a place, and has one now.
    pub(super) fn change(&mut self, job: &Job, had: bool, has: bool) {
        let Some((array, _)) = job.array else { return };
        let places = self.0.entry(array).or_default();
        *places = (*places + u64::from(has)).saturating_sub(u64::from(had));
    }

    /// Returns the limit of the array of a waiting job, if all of its places are those of other tasks.
    pub(super) fn lacks_place(&self, job: &Job, case: &Case) -> Option<u64> {
        let (array, _) = job.array.as_ref()?;
        let most = case.facts.form.array_limit.filter(|most| *most > 0)?;
        let places = self.0.get(array).copied().unwrap_or(0);
        (places.saturating_sub(u64::from(case.has_place())) >= most).then_some(most)
    }
}

impl Case {
    /// Returns whether the job is placed, or in the ledger.
    pub(super) fn has_place(&self) -> bool {
        self.facts.stage != Stage::Waiting || self.handle.is_some()
    }
}
