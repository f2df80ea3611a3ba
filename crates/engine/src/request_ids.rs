//! Names of submissions, with which a client can repeat one whose reply was lost.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use miserly_api::model::{Accepted, Array, Problem, ProblemCode, Submission, Submitted};

use crate::{Caller, EndedFilter, Engine, Journal, JournalError, Launcher, Now, Record};

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

impl<L: Launcher, J: Journal> Engine<L, J> {
    /// Reads the names of the unfinished jobs and of the latest finished ones.
    pub(crate) fn load_request_ids(&mut self) -> Result<(), JournalError> {
        let mut ids = RequestIds::default();
        let latest = EndedFilter { uid: None, queue: None, array: None, limit: Some(READ) };
        let ended = self.journal.ended_jobs(&latest)?;
        // An unreadable one is reported where it is shown.
        let ended: Vec<_> = ended.iter().filter_map(|row| Record::read(row).ok()).collect();
        for record in ended.iter().chain(self.jobs.records()) {
            let first = record.array.map_or(record.number, |array| array.first);
            ids.add(record.uid, first, &record.submission);
        }
        self.request_ids = ids;
        Ok(())
    }

    /// Returns the jobs of an earlier submission of the caller with the same name.
    ///
    /// # Errors
    /// If that submission differs from this one.
    pub(crate) fn submitted_before(
        &self,
        now: Now,
        caller: &Caller,
        submission: &Submission,
    ) -> Result<Option<Submitted>, Problem> {
        let Some(id) = &submission.request_id else { return Ok(None) };
        let Some(Named { first, array }) = self.request_ids.jobs.get(&(caller.uid, id.clone())) else {
            return Ok(None);
        };
        // A changed job is not what was submitted any more.
        let before = self.jobs.get(*first).filter(|record| !record.modified);
        let before = before.map(|record| Arc::clone(&record.submission));
        if before.is_some_and(|before| *before != *submission) || *array != submission.array {
            let message = format!("request_id {id:?} was used for another submission, of job {first}");
            let problem = Problem::with_field("request_id", message);
            return Err(Problem { code: ProblemCode::Conflict, job: Some(*first), ..problem });
        }
        let indexes: Vec<Option<u32>> = match array {
            None => vec![None],
            Some(array) => array.indexes().into_iter().map(Some).collect(),
        };
        let job = |(number, index)| {
            let over = Accepted { number, index, promise: None, no_promise: None, started: true };
            self.accepted(now, number).unwrap_or(over)
        };
        Ok(Some(Submitted { jobs: (*first..).zip(indexes).map(job).collect() }))
    }
}
