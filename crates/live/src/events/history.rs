//! The last changes, for clients that connect again.

use std::collections::VecDeque;

use axum::body::Bytes;

/// The most remembered changes.
const MOST: usize = 256;

/// The most bytes of remembered changes.
const MOST_BYTES: usize = 4 << 20;

/// The changes since some commit, oldest first.
#[derive(Debug)]
pub(super) struct History {
    /// The commit after which all changes are remembered.
    begin: i64,
    /// The commit up to which the changes are remembered.
    end: i64,
    /// The events, with the commits at which they end.
    events: VecDeque<(i64, Bytes)>,
    bytes: usize,
}

impl History {
    /// Returns a history without changes, which begins after a commit.
    pub(super) fn new(commit: i64) -> History {
        History { begin: commit, end: commit, events: VecDeque::new(), bytes: 0 }
    }

    /// Adds the changes up to a commit; `None` if no job changed.
    pub(super) fn add(&mut self, commit: i64, event: Option<Bytes>) {
        self.end = commit;
        let Some(event) = event else { return };
        self.bytes += event.len();
        self.events.push_back((commit, event));
        while self.events.len() > MOST || self.bytes > MOST_BYTES {
            let Some((commit, event)) = self.events.pop_front() else { return };
            self.bytes -= event.len();
            self.begin = commit;
        }
    }

    /// Returns the changes after a commit, or `None` if some are not remembered.
    pub(super) fn after(&self, commit: i64) -> Option<Vec<Bytes>> {
        let known = self.begin <= commit && commit <= self.end;
        let later = self.events.iter().filter(|(end, _)| *end > commit);
        known.then(|| later.map(|(_, event)| event.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: i64) -> Bytes {
        number.to_string().into()
    }

    #[test]
    fn changes_after_a_remembered_commit() {
        let mut history = History::new(10);
        history.add(12, Some(text(12)));
        history.add(13, None);
        history.add(15, Some(text(15)));
        assert_eq!((history.after(9), history.after(16)), (None, None));
        assert_eq!(history.after(10), Some(vec![text(12), text(15)]));
        // Within the changes of an event: they are sent again.
        assert_eq!(history.after(11), Some(vec![text(12), text(15)]));
        assert_eq!(history.after(12), Some(vec![text(15)]));
        assert_eq!(history.after(15), Some(vec![]));
    }

    #[test]
    fn old_changes_are_forgotten() {
        let mut history = History::new(0);
        for commit in 1..=1000 {
            history.add(commit, Some(text(commit)));
        }
        let oldest = 1000 - i64::try_from(MOST).expect("a small number");
        assert_eq!(history.after(oldest - 1), None);
        assert_eq!(history.after(oldest).map(|events| events.len()), Some(MOST));
        history.add(1001, Some(vec![0; MOST_BYTES + 1].into()));
        assert_eq!((history.after(1000), history.after(1001)), (None, Some(vec![])));
    }
}
