//! The lists of jobs at an instant, of which each page asks for the part that it shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::http::StatusCode;
use miserly_view::{Facts, Job, LISTS, Lists, ListsPart, ListsRequest, Sort, Which};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::Refusal;
use crate::packed::Packed;

/// The most rows of a list in an answer.
const ROWS_MOST: usize = 100;

/// The most answers that are kept.
const ANSWERS_MOST: usize = 64;

/// The most bytes of a question of a page. It is a key of answers that are kept.
const KEY_MOST: usize = 64 << 10;

/// Returns a question as a text, by which equal ones are known.
///
/// # Errors
/// If it is too long.
pub(crate) fn key_of(question: &impl Serialize) -> Result<String, Refusal> {
    let key = serde_json::to_string(question).unwrap_or_default();
    if key.len() > KEY_MOST {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "the question is too long"));
    }
    Ok(key)
}

/// The lists at an instant. Equal questions share an answer.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) facts: Arc<Facts>,
    lists: Lists,
    /// The places of the jobs in the facts, in the order of their numbers; made by the first who asks for a job.
    places: OnceLock<Vec<usize>>,
    answers: Mutex<BTreeMap<ListsQuestion, Arc<Packed>>>,
}

/// A question of a page: a part of the lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListsQuestion {
    /// An earlier instant.
    pub(crate) at: Option<i64>,
    find: String,
    own: bool,
    which: Which,
    /// The opened arrays.
    open: BTreeSet<i64>,
    /// The first row of each list, and its order.
    from: [usize; LISTS],
    sort: [Option<Sort>; LISTS],
    count: usize,
    /// The chosen job or array, and whether it is an array.
    chosen: Option<(i64, bool)>,
}

impl ListsQuestion {
    fn request(&self) -> ListsRequest {
        ListsRequest {
            find: self.find.trim().to_owned(),
            own: self.own,
            which: self.which,
            sort: self.sort,
            open: self.open.clone(),
            from: self.from,
            count: self.count.min(ROWS_MOST),
            chosen: self.chosen,
        }
    }
}

impl Listing {
    pub(crate) fn new(facts: Arc<Facts>) -> Listing {
        Listing { lists: Lists::new(&facts), facts, places: OnceLock::new(), answers: Mutex::default() }
    }

    /// Returns the job with a number. O(log n) for n jobs, but for the first one.
    pub(crate) fn job(&self, number: i64) -> Option<&Job> {
        let jobs = &self.facts.jobs;
        let places = self.places.get_or_init(|| {
            let mut places: Vec<usize> = (0..jobs.len()).collect();
            places.sort_by_key(|place| jobs[*place].number);
            places
        });
        let found = places.binary_search_by_key(&number, |place| jobs[*place].number).ok()?;
        Some(&jobs[places[found]])
    }

    /// Returns the first rows.
    pub(crate) fn first(&self, count: usize) -> ListsPart {
        let question = ListsQuestion { count, ..ListsQuestion::default() };
        self.lists.part(&self.facts, &question.request())
    }

    /// Returns a part of the lists. Rows are by name, and their order is a list of names, so that a difference has the changed rows only.
    pub(crate) fn part(&self, question: &ListsQuestion) -> Value {
        let mut part = json!(self.lists.part(&self.facts, &question.request()));
        for list in ["own", "waiting", "running", "ended"] {
            let rows: Vec<Value> = part[list]["rows"].as_array_mut().map(std::mem::take).unwrap_or_default();
            let name = |row: &Value| {
                let kind = if row["array"].is_null() { "" } else { "a" };
                format!("{kind}{}", row["number"])
            };
            part[list]["order"] = rows.iter().map(name).collect();
            part[list]["rows"] = rows.into_iter().map(|row| (name(&row), row)).collect::<Map<_, _>>().into();
        }
        // An answer names the job that it is about: a page may have chosen another one since.
        part["asked"] = json!(question.chosen);
        part
    }

    /// Returns the answer to a question.
    pub(crate) fn answer(&self, question: &ListsQuestion) -> Arc<Packed> {
        let answers = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = answers().get(question) {
            return Arc::clone(known);
        }
        let text = self.part(question).to_string();
        let made = Arc::new(Packed::new(text));
        let mut answers = answers();
        if answers.len() >= ANSWERS_MOST {
            answers.clear();
        }
        answers.insert(question.clone(), Arc::clone(&made));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_found_by_its_number() {
        let jobs = [5, 3, 9].map(|number| Arc::new(Job { number, ..Job::default() }));
        let facts = Facts { live: true, jobs: jobs.to_vec(), ..crate::no_facts() };
        let listing = Listing::new(Arc::new(facts));
        let found = [3, 5, 9, 4].map(|number| listing.job(number).map(|job| job.number));
        assert_eq!(found, [Some(3), Some(5), Some(9), None]);
    }
}
