//! The rows of the list: one job each, or the jobs of an array that look alike.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{IndexRange, JobRef, JobView, Phase, number_ranges};

use super::super::text::{Instants, outcome};

/// One job, or several jobs of an array with the same request and the same state, of which none runs.
pub(super) struct Row<'j>(Vec<&'j JobView>);

impl<'j> Row<'j> {
    /// Returns the first job in the order of the list.
    pub(super) fn first(&self) -> &'j JobView {
        self.0[0]
    }

    /// Returns the jobs, in the order of the list.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &'j JobView> {
        self.0.iter().copied()
    }

    /// Returns the jobs in the notation that commands take.
    pub(super) fn label(&self) -> String {
        let (first, indexes) = (self.first(), self.jobs().filter_map(|job| job.index).collect::<Vec<u32>>());
        match first.array {
            Some(array) if self.0.len() > 1 => {
                let range = |&(first, last): &(u32, u32)| IndexRange { first, last, step: 1 };
                JobRef::Array(array, number_ranges(&indexes).iter().map(range).collect()).to_string()
            }
            _ => first.label(),
        }
    }

    /// Returns the sentence of a row with several jobs that wait, if there are forecasts of all their starts.
    ///
    /// The instant is that by which the last of them has ended if it starts when it likely does.
    pub(super) fn sentence(&self, instants: Instants) -> Option<String> {
        let waits = self.0.len() > 1 && matches!(self.first().phase, Phase::Queued);
        let end = |job: &JobView| -> Option<Timestamp> {
            let time = SignedDuration::try_from_secs_f64(job.time).ok()?;
            job.forecast?.median.checked_add(time).ok()
        };
        let ends: Option<Vec<Timestamp>> = self.jobs().filter(|_| waits).map(end).collect();
        let last = ends?.into_iter().max()?;
        Some(format!("{} queued, likely done by {}", self.label(), instants.text(last)))
    }
}

/// Returns the rows for some jobs: those of an array that look alike in one, in the place of the first of them.
pub(super) fn rows(jobs: &[JobView], each: bool) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = vec![];
    let mut row_of = BTreeMap::new();
    for job in jobs {
        let key = if each { None } else { key(job) };
        match key.map(|key| *row_of.entry(key).or_insert(rows.len())) {
            Some(nth) if nth < rows.len() => rows[nth].0.push(job),
            _ => rows.push(Row(vec![job])),
        }
    }
    rows
}

/// Returns what jobs of an array have in common if they look alike.
fn key(job: &JobView) -> Option<impl Ord> {
    let rests = matches!(job.phase, Phase::Queued | Phase::Held) || job.phase.ended().is_some();
    let request = (&job.name, &job.queue, job.cpus, job.memory, job.gpus, job.time.to_bits());
    Some((job.array.filter(|_| rests)?, job.uid, request, outcome(job)))
}
