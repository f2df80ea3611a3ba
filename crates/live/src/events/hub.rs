//! The streams of one user.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use miserly_api::model::{JobView, JobsEvent};
use miserly_engine::{Caller, Snapshot, Snapshots};
use tokio::sync::broadcast;

use super::history::History;
use super::text;
use crate::clock::BootClock;
use crate::engine_handle::complete_job;
use crate::forecasts::Forecasts;
use crate::process::LauncherNotes;
use crate::store::Readers;

/// The most events that a stream may be behind. One that is slower begins again with a snapshot.
const BEHIND: usize = 32;

/// All that a hub reads.
#[derive(Clone, Debug)]
pub(super) struct Sources {
    pub(super) snapshots: Snapshots,
    pub(super) ended: Readers,
    pub(super) clock: BootClock,
    pub(super) forecasts: Forecasts,
    pub(super) notes: LauncherNotes,
}

/// The events of one user, for all streams of that user.
#[derive(Debug)]
pub(super) struct Hub {
    sources: Sources,
    caller: Caller,
    /// The open streams.
    streams: AtomicUsize,
    sender: broadcast::Sender<Bytes>,
    /// Locked while an event is made, so that a new stream misses none. Only threads that may wait lock it.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The snapshot up to which all changes were sent.
    last: Arc<Snapshot>,
    history: History,
    /// The event of all jobs in `last`, once a stream needs it.
    whole: Option<Bytes>,
}

/// One open stream of a hub.
#[derive(Debug)]
pub(super) struct Stream(Arc<Hub>);

impl Stream {
    /// Returns a stream, which counts until it is dropped.
    pub(super) fn new(hub: &Arc<Hub>) -> Stream {
        hub.streams.fetch_add(1, Ordering::Relaxed);
        Stream(Arc::clone(hub))
    }

    /// Returns the first events of a stream, and the receiver of those that follow.
    pub(super) fn begin(&self, after: Option<i64>) -> (Vec<Bytes>, broadcast::Receiver<Bytes>) {
        let hub = &*self.0;
        let mut state = hub.lock();
        let receiver = hub.sender.subscribe();
        let missed = after.and_then(|after| state.history.after(after));
        (missed.unwrap_or_else(|| vec![hub.whole(&mut state)]), receiver)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Hub {
    /// Returns a hub whose events follow the present snapshot.
    pub(super) fn new(sources: Sources, caller: Caller) -> Hub {
        let last = sources.snapshots.latest();
        let state = State { history: History::new(last.journal()), last, whole: None };
        let (sender, _) = broadcast::channel(BEHIND);
        Hub { sources, caller, streams: AtomicUsize::new(0), sender, state: Mutex::new(state) }
    }

    /// Returns whether a stream is open.
    pub(super) fn has_streams(&self) -> bool {
        self.streams.load(Ordering::Relaxed) > 0
    }

    /// Sends what changed since the last look. Returns whether anything did.
    pub(super) fn advance(&self) -> bool {
        let mut state = self.lock();
        let (before, snapshot) = (Arc::clone(&state.last), self.sources.snapshots.latest());
        if Arc::ptr_eq(&before, &snapshot) {
            return false;
        }
        state.last = Arc::clone(&snapshot);
        // After a commit that failed, the same state is published again.
        if snapshot.journal() == before.journal() {
            return false;
        }
        state.whole = None;
        let now = self.sources.clock.read();
        match snapshot.changed_views(&before, now, &self.caller, &self.sources.ended) {
            Ok(jobs) => self.send_change(&mut state, jobs),
            Err(error) => {
                tracing::error!("finished jobs cannot be read; streams of events begin again: {error}");
                state.history = History::new(snapshot.journal());
                self.send(self.whole(&mut state));
                true
            }
        }
    }

    fn send_change(&self, state: &mut State, jobs: Vec<JobView>) -> bool {
        let journal = state.last.journal();
        let event = (!jobs.is_empty()).then(|| text::change(&self.event(journal, jobs)));
        state.history.add(journal, event.clone());
        let changed = event.is_some();
        if let Some(event) = event {
            self.send(event);
        }
        changed
    }

    /// Sends the present forecasts. Returns whether there are any.
    pub(super) fn forecast(&self) -> bool {
        let event = self.sources.forecasts.event();
        let mut state = self.lock();
        state.whole = None;
        let any = !event.forecasts.is_empty();
        if any {
            self.send(text::forecasts(&event));
        }
        any
    }

    /// Shows the clients that the daemon is alive.
    pub(super) fn keep_alive(&self) {
        self.send(text::KEEP_ALIVE);
    }

    /// Returns the event of all unfinished jobs.
    fn whole(&self, state: &mut State) -> Bytes {
        let last = Arc::clone(&state.last);
        let make = || {
            let views = last.unfinished_views(self.sources.clock.read(), &self.caller);
            text::snapshot(&self.event(last.journal(), views))
        };
        state.whole.get_or_insert_with(make).clone()
    }

    fn event(&self, journal: i64, mut jobs: Vec<JobView>) -> JobsEvent {
        for job in &mut jobs {
            complete_job(&self.sources.forecasts, &self.sources.notes, job);
        }
        JobsEvent { journal, jobs }
    }

    fn send(&self, event: Bytes) {
        // Without a stream nothing is sent.
        let _ = self.sender.send(event);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
