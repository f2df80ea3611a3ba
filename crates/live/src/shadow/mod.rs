//! Shadows: a second policy beside that of a queue, on the same events and with the runtimes that come out.
//!
//! A thread reads the journal behind the engine, and changes nothing that the engine sees. A shadow that fails stops alone, and
//! a slow one is late: it takes a tenth of a processor at most. How far it is and what came of it is in a database of its own,
//! `shadow.db`, so that it goes on after a restart.

mod follow;

mod following;

mod row;

mod report;

mod store;

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::model::{Problem, ProblemCode, ShadowReport, ShadowView};
use miserly_core::{JobNumber, Span, Time};
use miserly_engine::{JournalLine, Snapshot, Snapshots};
use miserly_launch::{BootTime, MachineClock as _};
use miserly_policies::PolicySpec;

use self::follow::{Progress, QueueShadow};
use self::report::Summed;
pub use self::report::{ComparedJob, of_jobs};
use self::row::Row;
use self::store::{ShadowStore, StoredShadow};
use crate::clock::BootClock;
use crate::config::unfit;
use crate::store::{History, Line, StoreError};
use crate::users;

/// The time between two looks at the journal.
const INTERVAL: Duration = Duration::from_millis(500);

/// The longest time without a pause, and the pause as a multiple of the time before.
const TURN: Duration = Duration::from_millis(100);
const PAUSE: u32 = 9;

/// The time after which the state of a shadow is stored again.
const STORED: Duration = Duration::from_mins(1);

/// The time after which a round is in the journal, if there was one.
const COMMITTED: Span = Span::from_ticks(60_000_000);

/// The longest time for which the end of the daemon waits for the thread.
const GOING: Duration = Duration::from_secs(2);

/// The file of the database in the state folder.
const FILE: &str = "shadow.db";

/// The policies of shadows, by queue.
pub(crate) type Plan = BTreeMap<String, PolicySpec>;

/// The reports of shadows, for any thread.
#[derive(Clone, Debug)]
pub(crate) struct Shadows {
    path: Arc<Path>,
    plan: Arc<Mutex<Plan>>,
}

impl Shadows {
    /// Returns the report on the jobs that were submitted from an instant on, as a user may see it.
    pub(crate) fn report(
        &self,
        snapshot: &Snapshot,
        caller: &miserly_engine::Caller,
        since: Option<Timestamp>,
    ) -> Result<ShadowReport, Problem> {
        let read = || -> rusqlite::Result<ShadowReport> {
            let Some(store) = ShadowStore::open_to_read(&self.path)? else {
                return Ok(ShadowReport::default());
            };
            let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let planned = |shadow: &StoredShadow| {
                plan.get(&shadow.queue).is_some_and(|policy| policy.to_string() == shadow.policy)
            };
            let shadows =
                store.shadows()?.into_iter().filter(planned).map(|shadow| stored_view(&store, shadow, since));
            Ok(ShadowReport { shadows: shadows.collect::<rusqlite::Result<_>>()? })
        };
        let mut report = read().map_err(|error| {
            Problem::new(ProblemCode::Unavailable, format!("{FILE}: {error}; the daemon's log has more"))
        })?;
        if !snapshot.is_operator(caller) {
            report::only_own(&mut report, caller.uid);
        }
        Ok(report)
    }
}

fn stored_view(
    store: &ShadowStore,
    StoredShadow { queue, policy, since: began, progress }: StoredShadow,
    since: Option<Timestamp>,
) -> rusqlite::Result<ShadowView> {
    let zone = TimeZone::system();
    let mut summed = Summed::default();
    if let Some(until) = progress.until {
        let since = since.unwrap_or(Timestamp::MIN);
        store.jobs(&queue, since, &mut |row| summed.add(&row.compared(), until, &zone))?;
    }
    Ok(summed.view(queue, policy, began, progress, &users::name))
}

/// A thread with the shadows. It ends when this handle is dropped.
pub(crate) struct ShadowThread {
    plan: Arc<Mutex<Plan>>,
    end: Option<Sender<()>>,
    /// It closes when the thread has ended.
    ended: Receiver<()>,
}

impl ShadowThread {
    /// Starts the thread for the state in `folder`.
    ///
    /// # Errors
    /// If the system has no thread.
    pub(crate) fn start(
        folder: &Path,
        plan: Plan,
        snapshots: Snapshots,
        clock: BootClock,
    ) -> io::Result<(ShadowThread, Shadows)> {
        let (sender, end) = channel();
        let (alive, ended) = channel();
        let plan = Arc::new(Mutex::new(plan));
        let follower = Follower::new(folder, Arc::clone(&plan));
        let run = move || {
            let _alive: Sender<()> = alive;
            follower.run(&end, &snapshots, &clock);
        };
        thread::Builder::new().name("shadow".to_owned()).spawn(run)?;
        let path = Arc::from(folder.join(FILE));
        let shadows = Shadows { path, plan: Arc::clone(&plan) };
        Ok((ShadowThread { plan, end: Some(sender), ended }, shadows))
    }

    /// Changes the policies of the shadows.
    pub(crate) fn change(&self, plan: Plan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }
}

impl Drop for ShadowThread {
    fn drop(&mut self) {
        self.end.take();
        // It stores its state, unless a policy takes too long.
        let _ = self.ended.recv_timeout(GOING);
    }
}

struct Follower {
    folder: PathBuf,
    plan: Arc<Mutex<Plan>>,
    /// The plan of the shadows.
    planned: Plan,
    store: Option<ShadowStore>,
    shadows: BTreeMap<String, QueueShadow>,
    /// Whether the journal may have lines that the shadows do not know.
    unread: bool,
    /// The last stored state.
    progress: BTreeMap<String, Progress>,
    stored: BootTime,
}

impl Follower {
    fn new(folder: &Path, plan: Arc<Mutex<Plan>>) -> Follower {
        Follower {
            folder: folder.to_owned(),
            plan,
            planned: Plan::new(),
            store: None,
            shadows: BTreeMap::new(),
            unread: true,
            progress: BTreeMap::new(),
            stored: BootTime::now(),
        }
    }

    fn run(mut self, end: &Receiver<()>, snapshots: &Snapshots, clock: &BootClock) {
        let (mut pause, mut seen): (Duration, Option<Arc<Snapshot>>) = (Duration::ZERO, None);
        while end.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let begin = BootTime::now();
            let now = clock.read();
            self.follow_plan(now.wall);
            let snapshot = snapshots.latest();
            self.unread |= seen.as_ref().is_none_or(|seen| !Arc::ptr_eq(seen, &snapshot));
            seen = Some(snapshot);
            let more = !self.shadows.is_empty() && self.turn(now.ticks - COMMITTED, begin);
            let worked = BootTime::now().since(begin);
            let least = if more { Duration::from_millis(1) } else { INTERVAL };
            pause = (worked * PAUSE).max(least);
        }
        self.put(true);
    }

    /// Begins, changes and drops shadows by the configuration.
    fn follow_plan(&mut self, now: Timestamp) {
        let plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if plan == self.planned {
            return;
        }
        self.put(true);
        if self.store.is_none() {
            let path = self.folder.join(FILE);
            match ShadowStore::open(&path) {
                Ok(store) => self.store = Some(store),
                Err(error) => tracing::error!("{}: {error}; there are no shadows", path.display()),
            }
        }
        self.shadows.retain(|queue, shadow| plan.get(queue) == Some(shadow.policy()));
        for (queue, policy) in &plan {
            if self.shadows.contains_key(queue) {
                continue;
            }
            let begun = self.stored_in(|store| store.begin(queue, &policy.to_string(), now)).flatten();
            let restored = begun.and_then(|state| QueueShadow::restored(queue, policy, &state));
            let new = || QueueShadow::new(queue.clone(), policy.clone(), newest_checkpoint(&self.folder));
            let shadow = restored.unwrap_or_else(new);
            self.shadows.insert(queue.clone(), shadow);
        }
        self.planned = plan;
        self.unread = true;
    }

    /// Uses the store. After an error there are no shadows until the next start.
    fn stored_in<T>(&mut self, using: impl FnOnce(&mut ShadowStore) -> rusqlite::Result<T>) -> Option<T> {
        match using(self.store.as_mut()?) {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::error!("{FILE}: {error}; there are no shadows until the next start");
                self.store = None;
                self.shadows.clear();
                None
            }
        }
    }

    /// Reads on and simulates for a while. Returns whether there is more to do.
    fn turn(&mut self, known: Time, begin: BootTime) -> bool {
        if self.store.is_none() {
            return false;
        }
        if self.unread {
            match self.read(begin) {
                Ok(all) => self.unread = !all,
                Err(error) => tracing::error!("shadows stay behind: the journal cannot be read: {error}"),
            }
        }
        let mut more = self.unread;
        for shadow in self.shadows.values_mut() {
            if !self.unread {
                shadow.observe_nothing(known);
            }
            let mut goes_on = || BootTime::now().since(begin) < TURN;
            more |= shadow.guarded(|shadow| shadow.advance(&mut goes_on));
        }
        self.put(BootTime::now().since(self.stored) > STORED);
        more
    }

    /// Reads lines of the journal that the shadows do not know, for a while. Returns whether these were all.
    fn read(&mut self, begin: BootTime) -> Result<bool, StoreError> {
        let Some(from) = self.shadows.values().map(QueueShadow::next).min() else { return Ok(true) };
        let (shadows, mut all) = (&mut self.shadows, true);
        History::open(&self.folder)?.journal(from, &mut |line| {
            for shadow in shadows.values_mut() {
                shadow.guarded(|shadow| shadow.observe(&line));
            }
            all = BootTime::now().since(begin) < TURN;
            if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(all)
    }

    /// Stores the news; with `state`, so that shadows can go on from here.
    fn put(&mut self, state: bool) {
        let mut changed = vec![];
        for (queue, shadow) in &mut self.shadows {
            // A shadow that has just begun is stored at once, so that it never begins twice.
            let began = shadow.take_began();
            let state = (state || began).then(|| shadow.saved()).flatten();
            changed.push((queue.clone(), began, shadow.progress(), shadow.take_changed(), state));
        }
        for (queue, began, progress, rows, state) in changed {
            if rows.is_empty() && state.is_none() && self.progress.get(&queue) == Some(&progress) {
                continue;
            }
            self.progress.insert(queue.clone(), progress.clone());
            self.stored_in(|store| {
                if began {
                    store.remove_open(&queue)?;
                }
                store.put(&queue, &progress, &rows, state.as_deref())
            });
        }
        if state {
            self.stored = BootTime::now();
        }
    }
}

/// Returns the number of the line of the newest checkpoint, or of the first line.
fn newest_checkpoint(folder: &Path) -> i64 {
    let segments = History::open(folder).and_then(|history| history.segments());
    segments.ok().and_then(|segments| segments.last().map(|last| last.last + 1)).unwrap_or(1)
}

/// The reason why there is no shadow of a journal.
#[derive(Debug, thiserror::Error)]
pub enum ShadowError {
    /// The state cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The journal has no such queue.
    #[error("the journal has no queue {0:?}; its queues are {1}")]
    UnknownQueue(String, String),
    /// The policy has no place in a shadow.
    #[error("policy {policy}: {why}")]
    Unfit {
        /// The policy.
        policy: String,
        /// The reason.
        why: &'static str,
    },
}

/// Returns the report of a shadow that goes over the whole journal of a state at once; of all queues, or of one.
///
/// It works with or without a daemon, and changes nothing. `since` is that of the jobs in the report.
///
/// # Errors
/// If the state cannot be read, or a queue or policy is not suitable.
pub fn of_journal(
    folder: &Path,
    queue: Option<&str>,
    policy: &PolicySpec,
    since: Option<Timestamp>,
) -> Result<ShadowReport, ShadowError> {
    if let Some(why) = unfit(&policy.needs()) {
        return Err(ShadowError::Unfit { policy: policy.to_string(), why });
    }
    let history = History::open(folder)?;
    let first = history.segments()?.first().map_or(1, |segment| segment.first);
    let mut queues: BTreeMap<String, Whole> = BTreeMap::new();
    let (mut began, mut all): (Option<Timestamp>, Vec<String>) = (None, vec![]);
    history.journal(first, &mut |line| {
        if let Ok(JournalLine::Checkpoint(checkpoint)) = serde_json::from_str::<JournalLine>(&line.body) {
            began = began.or(Some(checkpoint.wall));
            for one in &checkpoint.queues {
                let name = &one.queue.name;
                if !all.contains(name) {
                    all.push(name.clone());
                }
                if queue.is_none_or(|queue| queue == name) {
                    let new = || QueueShadow::new(name.clone(), policy.clone(), line.number);
                    let whole = || Whole { shadow: new(), rows: BTreeMap::new() };
                    queues.entry(name.clone()).or_insert_with(whole);
                }
            }
        }
        for queue in queues.values_mut() {
            queue.observe(&line);
        }
        ControlFlow::Continue(())
    })?;
    if let Some(queue) = queue.filter(|queue| !queues.contains_key(*queue)) {
        return Err(ShadowError::UnknownQueue(queue.to_owned(), all.join(", ")));
    }
    let zone = TimeZone::system();
    let since = since.unwrap_or(Timestamp::MIN);
    let view = |(name, Whole { shadow, rows }): (String, Whole)| {
        let progress = shadow.progress();
        let mut summed = Summed::default();
        for row in rows.values().filter(|row| row.submitted >= since) {
            summed.add(&row.compared(), progress.until.unwrap_or(Timestamp::MIN), &zone);
        }
        summed.view(name, policy.to_string(), began.unwrap_or_default(), progress, &users::name)
    };
    Ok(ShadowReport { shadows: queues.into_iter().map(view).collect() })
}

/// A shadow over a whole journal.
struct Whole {
    shadow: QueueShadow,
    /// The jobs, by submission and number.
    rows: BTreeMap<(Timestamp, JobNumber), Row>,
}

impl Whole {
    fn observe(&mut self, line: &Line) {
        self.shadow.observe(line);
        self.shadow.advance(&mut || true);
        if self.shadow.take_began() {
            // It began again: what was open has no outcome.
            self.rows.retain(|_, row| row.start.is_some() && row.shadow_start.is_some());
        }
        for row in self.shadow.take_changed() {
            let key = (row.submitted, row.number);
            if row.gone {
                self.rows.remove(&key);
            } else {
                self.rows.insert(key, row);
            }
        }
    }
}
