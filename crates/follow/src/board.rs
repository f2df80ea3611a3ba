//! The latest facts, for any thread.

use std::sync::Arc;

use miserly_view::Facts;
use tokio::sync::watch;

/// Facts, and whether they are up to date.
#[derive(Clone, Debug)]
pub struct Posted {
    /// The number of the change, from 0.
    pub version: u64,
    /// The facts.
    pub facts: Arc<Facts>,
    /// Why they are not up to date.
    pub problem: Option<String>,
}

/// The latest facts. Clones have the same ones.
#[derive(Clone, Debug)]
pub struct Board(watch::Sender<Posted>);

impl Board {
    /// Returns a board with these facts.
    pub fn new(facts: Facts) -> Board {
        Board(watch::Sender::new(Posted { version: 0, facts: Arc::new(facts), problem: None }))
    }

    /// Returns the latest facts.
    pub fn latest(&self) -> Posted {
        self.0.borrow().clone()
    }

    /// Returns a receiver of changes.
    pub fn subscribe(&self) -> watch::Receiver<Posted> {
        self.0.subscribe()
    }

    /// Replaces the facts.
    pub fn post(&self, facts: Facts) {
        let facts = Arc::new(facts);
        self.0.send_modify(|posted| {
            *posted = Posted { version: posted.version + 1, facts, problem: None };
        });
    }

    /// Keeps the facts, which are not up to date for this reason.
    pub fn fail(&self, problem: &str) {
        self.0.send_if_modified(|posted| {
            let new = posted.problem.as_deref() != Some(problem);
            if new {
                posted.version += 1;
                posted.problem = Some(problem.to_owned());
            }
            new
        });
    }
}
