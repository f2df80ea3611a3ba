//! The last events, for clients that connect again, and for those that begin with an older snapshot.

use std::collections::VecDeque;

use axum::body::Bytes;

/// The most remembered events.
const MOST: usize = 256;

/// The most bytes of remembered events.
const MOST_BYTES: usize = 4 << 20;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Changes by a commit.
    Commit,
    /// Changes without a commit.
    Aside,
    /// All forecasts. They replace those of an earlier event.
    Forecasts,
}

/// The events since some commit, oldest first.
#[derive(Debug)]
pub(super) struct History {
    /// The commit after which all changes are remembered.
    begin: i64,
    /// The commit up to which the changes are remembered.
    end: i64,
    events: VecDeque<Event>,
    bytes: usize,
    /// The place of the next event. Places are counted from the begin of the hub.
    next: u64,
    /// The place from which on all events are remembered.
    known: u64,
}

#[derive(Debug)]
struct Event {
    /// The commit at which it ends.
    commit: i64,
    place: u64,
    kind: Kind,
    text: Bytes,
}

impl History {
    /// Returns a history without events, which begins after a commit.
    pub(super) fn new(commit: i64) -> History {
        History { begin: commit, end: commit, events: VecDeque::new(), bytes: 0, next: 0, known: 0 }
    }

    /// Returns the place of the next event.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// Takes note that all changes up to a commit are known.
    pub(super) fn advance(&mut self, commit: i64) {
        self.end = commit;
    }

    /// Adds an event at the last commit.
    pub(super) fn add(&mut self, kind: Kind, text: Bytes) {
        if kind == Kind::Forecasts {
            self.events.retain(|event| event.kind != Kind::Forecasts);
        }
        self.events.push_back(Event { commit: self.end, place: self.next, kind, text });
        self.next += 1;
        self.bytes = self.events.iter().map(|event| event.text.len()).sum();
        while self.events.len() > MOST || self.bytes > MOST_BYTES {
            let Some(event) = self.events.pop_front() else { return };
            self.bytes -= event.text.len();
            self.forgotten(&event);
        }
    }

    fn forgotten(&mut self, event: &Event) {
        self.known = event.place + 1;
        // Without a commit it has the number of the commit before, with which a client may ask for it.
        self.begin = if event.kind == Kind::Commit { event.commit } else { event.commit + 1 };
    }

    /// Forgets all, and begins again after a commit.
    pub(super) fn restart(&mut self, commit: i64) {
        let next = self.next;
        *self = History { next, known: next, ..History::new(commit) };
    }

    /// Returns the events after a commit, or `None` if some are not remembered. Those without a commit of their own are among
    /// them: a client may have missed them.
    pub(super) fn after(&self, commit: i64) -> Option<Vec<Bytes>> {
        let known = self.begin <= commit && commit <= self.end;
        let missed =
            |event: &&Event| event.commit > commit || (event.commit == commit && event.kind != Kind::Commit);
        known.then(|| self.events.iter().filter(missed).map(|event| event.text.clone()).collect())
    }

    /// Returns the events from a place on, or `None` if some are not remembered.
    pub(super) fn since(&self, place: u64) -> Option<Vec<Bytes>> {
        let later = self.events.iter().filter(|event| event.place >= place);
        (self.known <= place).then(|| later.map(|event| event.text.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(history: &mut History, commit: i64, kind: Kind, text: &str) {
        history.advance(commit);
        history.add(kind, text.to_owned().into());
    }

    fn texts(texts: &[&'static str]) -> Vec<Bytes> {
        texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect()
    }

    #[test]
    fn changes_after_a_remembered_commit() {
        let mut history = History::new(10);
        add(&mut history, 12, Kind::Commit, "12");
        history.advance(13);
        add(&mut history, 15, Kind::Commit, "15");
        assert_eq!((history.after(9), history.after(16)), (None, None));
        assert_eq!(history.after(10), Some(texts(&["12", "15"])));
        // Within the changes of an event: they are sent again.
        assert_eq!(history.after(11), Some(texts(&["12", "15"])));
        assert_eq!(history.after(12), Some(texts(&["15"])));
        assert_eq!(history.after(15), Some(texts(&[])));
    }

    #[test]
    fn what_changed_without_a_commit_is_sent_again() {
        let mut history = History::new(10);
        add(&mut history, 10, Kind::Aside, "parked");
        add(&mut history, 10, Kind::Forecasts, "old");
        add(&mut history, 11, Kind::Commit, "11");
        add(&mut history, 11, Kind::Forecasts, "new");
        assert_eq!(history.after(10), Some(texts(&["parked", "11", "new"])));
        assert_eq!(history.after(11), Some(texts(&["new"])));
        assert_eq!(
            (history.since(0), history.since(3)),
            (Some(texts(&["parked", "11", "new"])), Some(texts(&["new"])))
        );
        history.restart(12);
        assert_eq!((history.since(3), history.since(4)), (None, Some(texts(&[]))));
        assert_eq!((history.after(11), history.after(12)), (None, Some(texts(&[]))));
    }

    #[test]
    fn old_changes_are_forgotten() {
        let mut history = History::new(0);
        for commit in 1..=1000 {
            add(&mut history, commit, Kind::Commit, "x");
        }
        let most = i64::try_from(MOST).expect("a small number");
        assert_eq!(history.after(1000 - most - 1), None);
        assert_eq!(history.after(1000 - most).map(|events| events.len()), Some(MOST));
        assert_eq!(history.since(1000 - u64::try_from(MOST).expect("a small number") - 1), None);
        history.advance(1001);
        history.add(Kind::Commit, vec![0; MOST_BYTES + 1].into());
        assert_eq!((history.after(1000), history.after(1001)), (None, Some(texts(&[]))));
        add(&mut history, 1001, Kind::Aside, "x");
        history.add(Kind::Aside, vec![0; MOST_BYTES].into());
        assert_eq!(history.after(1001), None, "a client may have missed the first one");
    }
}
