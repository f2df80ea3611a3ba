//! Arrays of which a limited number of tasks may run at the same time.

use std::collections::{BTreeMap, BTreeSet};

use miserly_slurm::{Cluster, Job};

use super::job::DrivenJob;
use super::rebuild::holds_nodes;

/// The tasks of each array that have a place: those that hold nodes, are placed, or are in the ledger.
///
/// A task without a place would keep nodes idle that Slurm does not let it have. The first tasks have the places.
#[derive(Clone, Debug, Default)]
pub(super) struct ArrayPlaces {
    places: BTreeMap<u64, Places>,
    /// The most tasks of an array at the same time; 0 without a limit. Slurm shows it with the tasks that wait together only.
    limits: BTreeMap<u64, u64>,
}

#[derive(Clone, Debug, Default)]
struct Places {
    /// The tasks that hold nodes.
    holding: usize,
    /// The other ones, by their order.
    waiting: BTreeSet<(u64, u64)>,
}

impl ArrayPlaces {
    /// Counts them.
    pub(super) fn count(&mut self, jobs: &BTreeMap<String, DrivenJob>, cluster: &Cluster) {
        self.places.clear();
        for job in cluster.jobs.values() {
            let Some((array, _)) = job.array else { continue };
            let places = self.places.entry(array).or_default();
            if holds_nodes(job) {
                places.holding += 1;
            } else if jobs.get(&job.id).is_some_and(DrivenJob::has_place) {
                places.waiting.insert(job.order());
            }
        }
        self.limits.retain(|array, _| self.places.contains_key(array));
    }

    /// Takes in the limit of the array of a task, if Slurm shows one with it.
    pub(super) fn set_limit(&mut self, task: &str, limit: Option<u64>) {
        let array = task.split_once('_').and_then(|(array, _)| array.parse().ok());
        self.limits.extend(array.zip(limit));
    }

    /// Takes in whether a waiting job has a place now.
    pub(super) fn set_place(&mut self, job: &Job, has: bool) {
        let Some((array, _)) = job.array else { return };
        let waiting = &mut self.places.entry(array).or_default().waiting;
        if has {
            waiting.insert(job.order());
        } else {
            waiting.remove(&job.order());
        }
    }

    /// Returns the limit of the array of a waiting job, if all of its places are those of other tasks.
    pub(super) fn lacks_place(&self, job: &Job, known: &DrivenJob) -> Option<u64> {
        let (array, _) = job.array.as_ref()?;
        let most = self.limits.get(array).copied().or(known.form.array_limit);
        let most = most.filter(|most| *most > 0)?;
        let places = self.places.get(array)?;
        let others = if known.has_place() {
            places.waiting.range(..job.order()).count()
        } else {
            places.waiting.len()
        };
        ((places.holding + others) as u64 >= most).then_some(most)
    }
}
