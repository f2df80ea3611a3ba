//! Names of submissions, with which a client can repeat one whose reply was lost.

use std::collections::{BTreeMap, VecDeque};

use miserly_api::model::{Array, Submission};

use crate::job::table::JobTable;
use crate::{EndedFilter, Journal, JournalError, Record};

/// The number of names that are remembered.
const REMEMBERED: usize = 10_000;

/// The number of finished jobs whose names a new daemon reads.
const READ: u32 = 1000;

/// The names of the latest submissions, by user.
#[derive(Debug, Default)]
pub(crate) struct RequestIds {
    jobs: BTreeMap<(u32, String), Named>,
    order: VecDeque<(u32, String)>,
}

/// The jobs of a named submission: those of an array have successive numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Named {
    first: i64,
    array: Option<Array>,
}

impl RequestIds {
    /// Returns the names of the unfinished jobs and of the latest finished ones.
    pub(crate) fn load(journal: &impl Journal, jobs: &JobTable) -> Result<RequestIds, JournalError> {
        let mut ids = RequestIds::default();
        let latest = EndedFilter { uid: None, queue: None, array: None, limit: Some(READ) };
        let ended = journal.ended_jobs(&latest)?;
        // An unreadable one is reported where it is shown.
        let ended: Vec<_> = ended.iter().filter_map(|row| Record::read(row).ok()).collect();
        for record in ended.iter().chain(jobs.records()) {
            let first = record.array.map_or(record.number, |array| array.first);
            ids.add(record.uid, first, &record.submission);
        }
        Ok(ids)
    }

    /// Returns the first job and the array of the submission of a user with a name.
    pub(crate) fn get(&self, uid: u32, id: &str) -> Option<(i64, Option<&Array>)> {
        let named = self.jobs.get(&(uid, id.to_owned()))?;
        Some((named.first, named.array.as_ref()))
    }

    /// Adds a submission, if it has a name.
    pub(crate) fn add(&mut self, uid: u32, first: i64, submission: &Submission) {
        let Some(id) = &submission.request_id else { return };
        let key = (uid, id.clone());
        if self.jobs.insert(key.clone(), Named { first, array: submission.array.clone() }).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.jobs.remove(&oldest);
        }
    }
}
