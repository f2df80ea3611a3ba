//! Batches, and the plain model of a store.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use miserly_engine::{EndedFilter, JobRow, JournalBatch};
use miserly_store::{Line, Store};

pub(crate) use super::content::row;

/// Returns a batch about one job, as the engine writes it: a line, the job, and sometimes a value.
pub(crate) fn batch(number: i64, ended: bool, version: i64) -> JournalBatch {
    let size = usize::try_from(version * 977 % 6000).unwrap_or_default() + 40;
    let meta = if version % 5 == 0 { vec![("clock".to_owned(), version.to_string())] } else { vec![] };
    JournalBatch {
        lines: vec![format!("{{\"line\":{version}}}"); usize::try_from(version % 3).unwrap_or_default()],
        rows: vec![row(number, ended, version, size)],
        values: meta,
        ..JournalBatch::default()
    }
}

/// The content of a store, as its users see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) jobs: BTreeMap<i64, JobRow>,
    pub(crate) lines: Vec<Line>,
    /// The number of the last line.
    pub(crate) last: i64,
    pub(crate) meta: BTreeMap<String, String>,
}

impl Model {
    pub(crate) fn commit(&mut self, batch: &JournalBatch) {
        let checkpoint = batch.checkpoint.iter().map(|checkpoint| &checkpoint.line);
        for body in batch.lines.iter().chain(checkpoint) {
            self.last += 1;
            let number = self.last;
            self.lines.push(Line { number, body: body.clone() });
        }
        self.jobs.extend(batch.rows.iter().map(|row| (row.number, row.clone())));
        self.meta.extend(batch.values.iter().cloned());
        self.meta.retain(|_, text| !text.is_empty());
    }

    /// Returns the content of a store, from all its queries.
    pub(crate) fn of(store: &Store) -> Model {
        let jobs = [store.live_jobs().unwrap(), store.ended_jobs(&EndedFilter::default()).unwrap()].concat();
        let meta = ["clock", "other"].into_iter();
        Model {
            jobs: jobs.into_iter().map(|row| (row.number, row)).collect(),
            lines: journal(store, 1),
            last: store.last_line(),
            meta: meta.filter_map(|key| Some((key.to_owned(), store.meta(key)?.to_owned()))).collect(),
        }
    }

    pub(crate) fn live(&self) -> Vec<JobRow> {
        self.jobs.values().filter(|row| !row.ended).cloned().collect()
    }

    pub(crate) fn ended(&self, filter: &EndedFilter) -> Vec<JobRow> {
        let admits = |row: &&JobRow| {
            row.ended
                && filter.uid.is_none_or(|uid| uid == row.uid)
                && filter.queue.as_ref().is_none_or(|queue| *queue == row.queue)
                && filter.array.is_none_or(|array| row.number == array || row.array == Some(array))
        };
        let found: Vec<JobRow> = self.jobs.values().filter(admits).cloned().collect();
        let limit = filter.limit.map_or(found.len(), |limit| limit as usize);
        found[found.len().saturating_sub(limit)..].to_vec()
    }
}

pub(crate) fn journal(store: &Store, from: i64) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut take = |line| {
        lines.push(line);
        ControlFlow::Continue(())
    };
    store.journal(from, &mut take).unwrap();
    lines
}
