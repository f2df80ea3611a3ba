//! The streams of one user.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use miserly_api::model::JobsEvent;
use miserly_engine::{Caller, JobChanges, Snapshot, Snapshots};
use tokio::sync::broadcast;
use tokio::task::spawn_blocking;

use super::history::{History, Kind};
use super::text;
use crate::clock::BootClock;
use crate::engine_handle::complete_job;
use crate::forecasts::Forecasts;
use crate::process::LauncherNotes;
use crate::store::Readers;

/// The most events that a stream may be behind. One that is slower begins again with a snapshot.
const BEHIND: usize = 32;

/// The most events after a snapshot with which a stream begins. For more, a new snapshot is made.
const FOLLOWING: usize = BEHIND / 2;

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
///
/// One task advances it, so events are made without a lock.
#[derive(Debug)]
pub(super) struct Hub {
    sources: Sources,
    caller: Caller,
    /// The open streams.
    streams: AtomicUsize,
    sender: broadcast::Sender<Bytes>,
    /// Held while the event of all jobs is made: all streams that need it wait for the same one.
    making: Arc<tokio::sync::Mutex<()>>,
    /// Locked for a few instructions. An event is sent and remembered under one lock, so that a new stream misses none.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    shown: Shown,
    history: History,
    /// Whether a stream may have forecasts.
    forecasts: bool,
    /// The event of all jobs at some instant, once a stream needed it, and the place of the first event after it.
    whole: Option<(Bytes, u64)>,
}

/// The state that the events up to now have shown.
#[derive(Clone, Debug)]
struct Shown {
    snapshot: Arc<Snapshot>,
    /// The jobs that are parked because memory is short.
    parked: Arc<BTreeSet<i64>>,
}

/// The first events of a stream, and the receiver of those that follow.
pub(super) type Begin = (Vec<Bytes>, broadcast::Receiver<Bytes>);

/// One open stream of a hub.
#[derive(Debug)]
pub(super) struct Stream(Arc<Hub>);

impl Stream {
    /// Returns a stream, which counts until it is dropped.
    pub(super) fn new(hub: &Arc<Hub>) -> Stream {
        hub.streams.fetch_add(1, Ordering::Relaxed);
        Stream(Arc::clone(hub))
    }

    /// Begins after a commit if all events since are remembered, else with all jobs. Returns `None` if they cannot be read.
    pub(super) async fn begin(&self, after: Option<i64>) -> Option<Begin> {
        if let Some(begin) = self.0.begin(after) {
            return Some(begin);
        }
        let making = Arc::clone(&self.0.making).lock_owned().await;
        // Another stream may have had it made meanwhile.
        if let Some(begin) = self.0.begin(after) {
            return Some(begin);
        }
        let hub = Arc::clone(&self.0);
        let make = move || {
            // Held although the client goes away.
            let _making = making;
            hub.make_whole()
        };
        spawn_blocking(make).await.ok()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Hub {
    /// Returns a hub with events after the present snapshot.
    pub(super) fn new(sources: Sources, caller: Caller) -> Hub {
        let shown = Shown { snapshot: sources.snapshots.latest(), parked: sources.notes.parked_jobs() };
        let history = History::new(shown.snapshot.journal());
        let state = State { shown, history, forecasts: sources.forecasts.any(), whole: None };
        let (sender, _) = broadcast::channel(BEHIND);
        let (streams, making) = (AtomicUsize::new(0), Arc::default());
        Hub { sources, caller, streams, sender, making, state: Mutex::new(state) }
    }

    /// Returns the number of open streams.
    pub(super) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Returns the begin of a stream from remembered events.
    fn begin(&self, after: Option<i64>) -> Option<Begin> {
        let state = self.lock();
        let missed = after.and_then(|after| state.history.after(after));
        let events = missed.or_else(|| state.whole_and_since())?;
        Some((events, self.sender.subscribe()))
    }

    /// Makes the event of all jobs, and begins a stream with it.
    fn make_whole(&self) -> Begin {
        let (shown, place, receiver) = {
            let state = self.lock();
            (state.shown.clone(), state.history.next(), self.sender.subscribe())
        };
        let (text, forecasts) = self.whole(&shown);
        let mut state = self.lock();
        state.forecasts |= forecasts;
        state.whole = Some((text.clone(), place));
        (vec![text], receiver)
    }

    /// Returns the event of all unfinished jobs, and whether any has a forecast.
    fn whole(&self, shown: &Shown) -> (Bytes, bool) {
        let views = shown.snapshot.unfinished_views(self.sources.clock.read(), &self.caller);
        let (event, forecasts) = self.event(shown, JobChanges { views, gone: vec![] });
        (text::snapshot(&event), forecasts)
    }

    /// Sends the changes since the last look. Returns whether there are any.
    pub(super) fn advance(&self) -> bool {
        let before = self.lock().shown.clone();
        let snapshot = self.sources.snapshots.latest();
        let after = Shown { snapshot, parked: self.sources.notes.parked_jobs() };
        let committed = self.advance_to_commit(&before, &after);
        let parked = before.parked != after.parked && self.show_parked(&before, &after);
        committed | parked
    }

    /// Sends the changes by commits.
    fn advance_to_commit(&self, before: &Shown, after: &Shown) -> bool {
        // After a commit that failed, the same state is published again.
        if after.snapshot.journal() == before.snapshot.journal() {
            self.lock().shown.snapshot = Arc::clone(&after.snapshot);
            return false;
        }
        // What is parked is shown next.
        let shown = Shown { snapshot: Arc::clone(&after.snapshot), parked: Arc::clone(&before.parked) };
        let (now, ended) = (self.sources.clock.read(), &self.sources.ended);
        match shown.snapshot.job_changes(&before.snapshot, now, &self.caller, ended) {
            Ok(changes) => self.show(shown, Kind::Commit, changes),
            Err(error) => {
                tracing::error!("finished jobs cannot be read; streams of events begin again: {error}");
                self.restart(shown);
                true
            }
        }
    }

    /// Sends the jobs that are parked, or not parked any more.
    fn show_parked(&self, before: &Shown, after: &Shown) -> bool {
        let changed = before.parked.symmetric_difference(&after.parked).copied();
        let views = after.snapshot.views_of(changed, self.sources.clock.read(), &self.caller);
        self.show(after.clone(), Kind::Aside, JobChanges { views, gone: vec![] })
    }

    /// Sends changes, and takes note of the state that they show. Returns whether there are any.
    fn show(&self, shown: Shown, kind: Kind, changes: JobChanges) -> bool {
        let event = (!changes.is_empty()).then(|| self.event(&shown, changes));
        let event = event.map(|(event, forecasts)| (text::change(&event), forecasts));
        let mut state = self.lock();
        state.history.advance(shown.snapshot.journal());
        state.shown = shown;
        let Some((event, forecasts)) = event else { return false };
        state.forecasts |= forecasts;
        state.history.add(kind, event.clone());
        self.send(event);
        true
    }

    /// Sends all jobs, and forgets the events before.
    fn restart(&self, shown: Shown) {
        let (text, forecasts) = self.whole(&shown);
        let mut state = self.lock();
        state.history.restart(shown.snapshot.journal());
        state.shown = shown;
        state.forecasts |= forecasts;
        state.whole = Some((text.clone(), state.history.next()));
        self.send(text);
    }

    /// Sends the present forecasts. Returns whether there are any, or were any.
    pub(super) fn forecast(&self) -> bool {
        let snapshot = Arc::clone(&self.lock().shown.snapshot);
        let event = self.sources.forecasts.event(|job| snapshot.waits(job));
        let any = !event.forecasts.is_empty();
        let text = text::forecasts(&event);
        let mut state = self.lock();
        if !any && !state.forecasts {
            return false;
        }
        state.forecasts = any;
        state.history.add(Kind::Forecasts, text.clone());
        self.send(text);
        true
    }

    /// Shows the clients that the daemon is alive.
    pub(super) fn keep_alive(&self) {
        self.send(text::KEEP_ALIVE);
    }

    /// Returns the event of some jobs, and whether any has a forecast.
    fn event(&self, shown: &Shown, JobChanges { views: mut jobs, gone }: JobChanges) -> (JobsEvent, bool) {
        for job in &mut jobs {
            complete_job(&self.sources.forecasts, &shown.parked, job);
        }
        let forecasts = jobs.iter().any(|job| job.forecast.is_some());
        (JobsEvent { journal: shown.snapshot.journal(), jobs, gone }, forecasts)
    }

    fn send(&self, event: Bytes) {
        // Without a stream nothing is sent.
        let _ = self.sender.send(event);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the remembered event of all jobs, and the few events after it.
    fn whole_and_since(&self) -> Option<Vec<Bytes>> {
        let (whole, place) = self.whole.as_ref()?;
        let since = self.history.since(*place).filter(|since| since.len() <= FOLLOWING)?;
        Some([whole.clone()].into_iter().chain(since).collect())
    }
}
