//! The lists of jobs at an instant, of which each page asks for the part that it shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use miserly_view::{Facts, Lists, ListsPart, ListsRequest};
use serde::Deserialize;

use crate::packed::Packed;

/// The most rows of a list in an answer.
const ROWS_MOST: usize = 100;

/// The most answers that are kept.
const ANSWERS_MOST: usize = 64;

/// The lists at an instant. Equal questions share an answer.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) facts: Arc<Facts>,
    lists: Lists,
    answers: Mutex<BTreeMap<ListsQuestion, Arc<Packed>>>,
}

/// A question of a page: a part of the lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ListsQuestion {
    /// An earlier instant.
    pub(crate) at: Option<i64>,
    find: String,
    own: bool,
    /// The opened arrays, with commas.
    open: String,
    waiting: usize,
    running: usize,
    ended: usize,
    count: usize,
    chosen: Option<i64>,
    /// Whether the chosen one is an array.
    whole: bool,
}

impl ListsQuestion {
    /// Returns the question for the first rows.
    pub(crate) fn first(count: usize) -> ListsQuestion {
        ListsQuestion { count, ..ListsQuestion::default() }
    }

    fn request(&self) -> ListsRequest {
        ListsRequest {
            find: self.find.trim().to_owned(),
            own: self.own,
            open: self.open.split(',').filter_map(|array| array.parse().ok()).collect(),
            from: [self.waiting, self.running, self.ended],
            count: self.count.min(ROWS_MOST),
            chosen: self.chosen.map(|number| (number, self.whole)),
        }
    }
}

impl Listing {
    pub(crate) fn new(facts: Arc<Facts>) -> Listing {
        Listing { lists: Lists::new(&facts), facts, answers: Mutex::default() }
    }

    /// Returns a part of the lists.
    pub(crate) fn part(&self, question: &ListsQuestion) -> ListsPart {
        self.lists.part(&self.facts, &question.request())
    }

    /// Returns the answer to a question.
    pub(crate) fn answer(&self, question: &ListsQuestion) -> Arc<Packed> {
        let answers = || self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = answers().get(question) {
            return Arc::clone(known);
        }
        let text = serde_json::to_string(&self.part(question)).unwrap_or_default();
        let made = Arc::new(Packed::new(text));
        let mut answers = answers();
        if answers.len() >= ANSWERS_MOST {
            answers.clear();
        }
        answers.insert(question.clone(), Arc::clone(&made));
        made
    }
}
