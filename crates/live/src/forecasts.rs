//! Forecasts of starts: a thread simulates ahead on snapshots, and keeps its forecasts.
//!
//! The thread reads snapshots and finished jobs, and changes nothing that the engine sees. Its forecasts and their outcomes
//! are in a database of its own, `forecasts.db`. If that fails, forecasts go on in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use miserly_api::model::{
    ForecastRecord, ForecastView, ForecastsEvent, JobForecast, JobView, KilledBy, Phase, Problem,
    ProblemCode, Quote, WhatIfAnswer, WhatIfDifference, WhatIfJob,
};
use miserly_core::{Request, Resources, Span, Time};
use miserly_engine::{
    Caller, DaemonReply, DaemonRequest, EndedFilter, EndedJobs, JournalError, Now, QueueCopy, Snapshot,
    Snapshots, WhatIfCopies,
};
use miserly_forecast::{Compared, Differences, Forecaster, Given, LiveQueue, SystemCopy};
use miserly_launch::{BootTime, MachineClock as _};
use miserly_units::span_of_seconds;
use tokio::sync::watch;

use crate::clock::BootClock;
use crate::forecast_store::{ForecastStore, StoredForecast};
use crate::process;
use crate::store::Readers;

/// The time between two looks at the state.
const INTERVAL: Duration = Duration::from_millis(500);

/// The longest time for the forecasts of all queues. Jobs that are left then have no forecast.
const BUDGET: Duration = Duration::from_secs(2);

/// The longest time for the forecast of one job, on request.
const AT_ONCE: Duration = Duration::from_millis(100);

/// The pause after forecasts, as a multiple of the time that they took. So they take a tenth of a processor at most.
const PAUSE: u32 = 9;

/// The age at which forecasts are made again although nothing happened.
const OLD: Duration = Duration::from_mins(1);

/// The number of futures with likely runtimes.
const DRAWS: u64 = 20;

/// The number of finished jobs from which a new daemon learns.
const HISTORY: u32 = 2000;

/// The present forecasts, for any thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forecasts {
    published: Arc<RwLock<Published>>,
    /// Simulations use it for seconds, without the lock.
    forecaster: Arc<RwLock<Arc<Forecaster>>>,
    /// Changes whenever the forecasts were made again.
    made: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Published {
    by_job: BTreeMap<i64, ForecastView>,
    record: Option<ForecastRecord>,
}

impl Forecasts {
    /// Adds the forecast of a job that waits.
    pub(crate) fn add_to(&self, job: &mut JobView) {
        if job.phase == Phase::Queued {
            job.forecast = self.read(|published| published.by_job.get(&job.number).copied());
        }
    }

    /// Returns the forecasts of those jobs that wait.
    pub(crate) fn event(&self, waits: impl Fn(i64) -> bool) -> ForecastsEvent {
        let forecast = |(&job, &forecast): (&i64, &ForecastView)| JobForecast { job, forecast };
        let forecasts = self.read(|published| {
            published.by_job.iter().filter(|(job, _)| waits(**job)).map(forecast).collect()
        });
        ForecastsEvent { forecasts }
    }

    /// Publishes forecasts.
    pub(crate) fn set(&self, by_job: BTreeMap<i64, ForecastView>) {
        self.change(|published| published.by_job = by_job);
        self.made.send_replace(());
    }

    /// Returns whether any job has a forecast.
    pub(crate) fn any(&self) -> bool {
        self.read(|published| !published.by_job.is_empty())
    }

    /// Returns a receiver that changes whenever the forecasts were made again.
    pub(crate) fn made(&self) -> watch::Receiver<()> {
        self.made.subscribe()
    }

    /// Returns the likely start of a job on a copy of its queue.
    pub(crate) fn of_copy(&self, copy: QueueCopy, job: i64, made: Timestamp) -> Option<ForecastView> {
        let (queue, begin) = (live_queue(copy), BootTime::now());
        let goes_on = |future| BootTime::now().since(begin) < slice(AT_ONCE, future);
        let given = self.knowing(|known| known.forecast(&queue, job, DRAWS, &goes_on))?;
        Some(view(made, &given))
    }

    /// Returns the answer to a what-if question, made at this instant.
    pub(crate) fn answer(&self, copies: WhatIfCopies, made: Timestamp) -> Result<WhatIfAnswer, Problem> {
        let WhatIfCopies { queue, before, after, quote } = copies;
        let quote =
            quote.map(|(quote, job)| Quote { forecast: self.of_copy(after.clone(), job, made), ..quote });
        let (before, after, begin) = (live_queue(before), live_queue(after), BootTime::now());
        // The first half of the time is for the queue without the change.
        let goes_on = |future| BootTime::now().since(begin) < slice(BUDGET / 2, future);
        let compared = self.knowing(|known| known.compare(&before, &after, DRAWS, &goes_on));
        let compared = compared.map_err(|error| Problem::new(ProblemCode::Refused, error.to_string()))?;
        let job = |compared: &Compared| {
            Some(WhatIfJob {
                number: compared.job,
                before: made.saturating_add(signed(compared.before)).ok()?,
                after: made.saturating_add(signed(compared.after)).ok()?,
                difference: difference(compared.difference?),
            })
        };
        let jobs: Vec<WhatIfJob> = compared.jobs.iter().filter_map(job).collect();
        Ok(WhatIfAnswer {
            queue,
            futures: DRAWS,
            quote,
            mean: compared.mean.filter(|_| !jobs.is_empty()).map(difference),
            jobs,
            not_compared: compared.not_compared,
        })
    }

    /// Returns the audit of earlier forecasts, if any was audited.
    pub(crate) fn record(&self) -> Option<ForecastRecord> {
        self.read(|published| published.record)
    }

    fn read<T>(&self, get: impl FnOnce(&Published) -> T) -> T {
        get(&self.published.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, change: impl FnOnce(&mut Published)) {
        change(&mut self.published.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Uses the present knowledge.
    fn knowing<T>(&self, get: impl FnOnce(&Forecaster) -> T) -> T {
        let known = Arc::clone(&self.forecaster.read().unwrap_or_else(PoisonError::into_inner));
        get(&known)
    }

    /// Adds to the knowledge.
    fn learn(&self, learn: impl FnOnce(&mut Forecaster)) {
        learn(Arc::make_mut(&mut self.forecaster.write().unwrap_or_else(PoisonError::into_inner)));
    }
}

/// A thread that makes forecasts. It ends when this handle is dropped.
pub(crate) struct ForecastThread(#[allow(dead_code, reason = "its end ends the thread")] Sender<()>);

impl ForecastThread {
    /// Starts the thread for the state in `folder`.
    ///
    /// # Errors
    /// If the system has no thread.
    pub(crate) fn start(
        folder: &Path,
        snapshots: Snapshots,
        ended: Readers,
        clock: BootClock,
    ) -> io::Result<(ForecastThread, Forecasts)> {
        let (handle, end) = channel();
        let forecasts = Forecasts::default();
        let (folder, published) = (folder.to_owned(), forecasts.clone());
        let run = move || Follower::new(&folder, ended, published).run(&end, &snapshots, &clock);
        thread::Builder::new().name("forecasts".to_owned()).spawn(run)?;
        Ok((ForecastThread(handle), forecasts))
    }
}

/// Follows the state from snapshot to snapshot.
struct Follower {
    ended: Readers,
    published: Forecasts,
    store: Option<ForecastStore>,
    /// The unfinished jobs, and whether each of them waits.
    jobs: BTreeMap<i64, bool>,
    /// The highest number of a job that was seen.
    highest: Option<i64>,
    /// The first forecast of each job that waits.
    open: BTreeMap<i64, (Timestamp, Given)>,
    /// The unfinished jobs with a forecast that has an outcome. A job that waits again is not audited again.
    settled: BTreeSet<i64>,
}

impl Follower {
    fn new(folder: &Path, ended: Readers, published: Forecasts) -> Follower {
        let path: PathBuf = folder.join("forecasts.db");
        let store = ForecastStore::open(&path)
            .inspect_err(|error| tracing::error!("{}: {error}; forecasts are not kept", path.display()))
            .ok();
        let mut follower = Follower {
            ended,
            published,
            store,
            jobs: BTreeMap::new(),
            highest: None,
            open: BTreeMap::new(),
            settled: BTreeSet::new(),
        };
        follower.load();
        follower
    }

    /// Takes up the forecasts of earlier daemons.
    fn load(&mut self) {
        for StoredForecast { given, made, wait } in self.stored(ForecastStore::all).unwrap_or_default() {
            match wait {
                Some(wait) => {
                    self.settled.insert(given.job);
                    self.published.learn(|known| known.settle(&given, made.as_second(), wait));
                }
                None => drop(self.open.insert(given.job, (made, given))),
            }
        }
        self.publish_record();
    }

    /// Uses the store. After an error it is not used again.
    fn stored<T>(&mut self, using: impl FnOnce(&mut ForecastStore) -> rusqlite::Result<T>) -> Option<T> {
        match using(self.store.as_mut()?) {
            Ok(value) => Some(value),
            Err(error) => {
                tracing::error!("forecasts.db: {error}; forecasts are not kept until the next start");
                self.store = None;
                None
            }
        }
    }

    fn run(mut self, end: &Receiver<()>, snapshots: &Snapshots, clock: &BootClock) {
        let (mut last, mut made_of): (Option<Arc<Snapshot>>, Option<Arc<Snapshot>>) = (None, None);
        let (mut made, mut ended) = (BootTime::now(), BootTime::now());
        let mut pause = Duration::ZERO;
        while end.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            let snapshot = snapshots.latest();
            let is = |other: &Option<Arc<Snapshot>>| {
                other.as_ref().is_some_and(|other| Arc::ptr_eq(other, &snapshot))
            };
            let now = clock.read();
            if !is(&last)
                && let Err(error) = self.follow(&snapshot, now)
            {
                tracing::error!("forecasts go without the finished jobs, which cannot be read: {error}");
            }
            last = Some(Arc::clone(&snapshot));
            let waits = self.jobs.values().any(|waits| *waits);
            let due = !is(&made_of) || (waits && BootTime::now().since(made) > OLD);
            if due && BootTime::now().since(ended) >= pause {
                made = BootTime::now();
                self.forecast(&snapshot, now);
                (ended, made_of) = (BootTime::now(), Some(snapshot));
                pause = ended.since(made) * PAUSE;
            }
        }
    }

    /// Takes in the starts and ends since the last snapshot.
    fn follow(&mut self, snapshot: &Snapshot, now: Now) -> Result<(), JournalError> {
        let jobs: BTreeMap<i64, bool> = snapshot.unfinished().collect();
        let gone: Vec<i64> = self.jobs.keys().filter(|job| !jobs.contains_key(job)).copied().collect();
        for job in gone {
            self.look_at(snapshot, now, job);
        }
        let learned = self.learn_unseen(snapshot, now, &jobs);
        let open: Vec<i64> = self.open.keys().filter(|job| jobs.get(job) != Some(&true)).copied().collect();
        for job in open {
            self.look_at(snapshot, now, job);
        }
        self.settled.retain(|job| jobs.contains_key(job));
        self.jobs = jobs;
        learned
    }

    /// Learns from jobs that began and ended between two snapshots, and at first from the newest finished jobs.
    fn learn_unseen(
        &mut self,
        snapshot: &Snapshot,
        now: Now,
        jobs: &BTreeMap<i64, bool>,
    ) -> Result<(), JournalError> {
        let highest = snapshot.highest_job();
        let unseen: Vec<i64> = if let Some(seen) = self.highest {
            (seen + 1..=highest).filter(|job| !jobs.contains_key(job)).collect()
        } else {
            // Without the history it learns from what ends from now on.
            self.highest = Some(highest);
            let newest = EndedFilter { limit: Some(HISTORY), ..EndedFilter::default() };
            self.ended.ended_jobs(&newest)?.iter().map(|row| row.number).collect()
        };
        for job in unseen {
            self.look_at(snapshot, now, job);
        }
        self.highest = Some(highest);
        Ok(())
    }

    /// Takes in the outcome of a job: its runtime if it ended, and its start if it has a forecast.
    fn look_at(&mut self, snapshot: &Snapshot, now: Now, job: i64) {
        let (root, request) = (Caller { uid: 0, account: None, credential: None }, DaemonRequest::Job(job));
        let answer = snapshot.answer(now, &root, &request, &self.ended, &process::check);
        let view = match answer {
            Ok(DaemonReply::Job(view)) => view,
            // It was forgotten meanwhile.
            Err(problem) if problem.code == ProblemCode::NotFound => return self.settle(job, None),
            // A forecast without an outcome is looked at again.
            Ok(_) | Err(_) => return,
        };
        if let Some(runtime) = runtime(&view) {
            let request = request_of(&view, snapshot.cleanup_time());
            self.published.learn(|known| known.learn(&request, runtime));
        }
        if let Some(start) = start(&view.phase) {
            self.settle(job, Some(start));
        } else if view.phase != Phase::Queued {
            self.settle(job, None);
        }
    }

    /// Compares the forecast of a job with its start. Without a start, for example after a cancellation, it is dropped.
    fn settle(&mut self, job: i64, start: Option<Timestamp>) {
        let Some((made, given)) = self.open.remove(&job) else { return };
        let wait = start.map(|start| seconds_until(made, start));
        self.stored(|store| match wait {
            Some(wait) => store.settle(job, wait),
            None => store.remove(job),
        });
        if let Some(wait) = wait {
            self.settled.insert(job);
            self.published.learn(|known| known.settle(&given, made.as_second(), wait));
            self.publish_record();
        }
    }

    fn publish_record(&self) {
        let all = self.published.knowing(|known| known.audit().all());
        let [kept_50, kept_80, kept_95] = all.levels.map(|level| level.kept());
        let record = ForecastRecord { audited: all.jobs, kept_50, kept_80, kept_95 };
        self.published.change(|published| published.record = (all.jobs > 0).then_some(record));
    }

    /// Forecasts all jobs that wait.
    fn forecast(&mut self, snapshot: &Snapshot, now: Now) {
        let mut given = vec![];
        let queues: Vec<LiveQueue> = snapshot.waiting_queues(now).into_iter().map(live_queue).collect();
        let budget = BUDGET / u32::try_from(queues.len().max(1)).unwrap_or(u32::MAX);
        for queue in queues {
            let begin = BootTime::now();
            let goes_on = |future| BootTime::now().since(begin) < slice(budget, future);
            let forecasts = self.published.knowing(|known| known.forecasts(&queue, DRAWS, &goes_on));
            given.extend(forecasts);
        }
        let made = now.wall;
        let by_job = given.iter().map(|given| (given.job, view(made, given))).collect();
        self.published.set(by_job);
        let waits = |given: &Given| self.jobs.get(&given.job) == Some(&true);
        let first = |given: &Given| {
            waits(given) && !self.open.contains_key(&given.job) && !self.settled.contains(&given.job)
        };
        let first: Vec<Given> = given.into_iter().filter(first).collect();
        self.stored(|store| store.add(made, &first));
        self.open.extend(first.into_iter().map(|given| (given.job, (made, given))));
    }
}

fn signed(span: Span) -> SignedDuration {
    SignedDuration::from_micros(span.ticks())
}

fn difference(Differences { median, range }: Differences) -> WhatIfDifference {
    let [least, largest] = range.map(Span::as_secs_f64);
    WhatIfDifference { median: median.as_secs_f64(), least, largest }
}

/// Returns a copy of a queue for simulations. Its policy is a new one, and its first pass is a tick later.
fn live_queue(QueueCopy { policy, at, ledger }: QueueCopy) -> LiveQueue {
    LiveQueue { policy, copy: SystemCopy { now: at, ledger, wake: Some(at + Span::TICK) } }
}

/// Returns the time, of all futures together, at which this one has to end.
fn slice(budget: Duration, future: u64) -> Duration {
    budget * u32::try_from(future + 1).unwrap_or(u32::MAX) / u32::try_from(DRAWS + 1).unwrap_or(1)
}

/// Returns the request of a job, as far as runtimes depend on it. Its policy knows the time limit with the cleanup time.
fn request_of(job: &JobView, cleanup_time: Span) -> Request {
    let limit = span_of_seconds(job.time) + cleanup_time;
    let request = Request::new(job.number, Time::ZERO, limit, Resources::cpus(job.cpus.max(1)));
    Request { user: Some(job.uid), ..request }
}

/// Returns the runtime of a job that ended by itself or at its time limit.
fn runtime(job: &JobView) -> Option<Span> {
    let (start, end) = match &job.phase {
        Phase::Done { start, end, .. }
        | Phase::Killed { start: Some(start), end, by: KilledBy::Time, .. } => (*start, *end),
        _ => return None,
    };
    Some(Span::from_ticks(end.as_microsecond().saturating_sub(start.as_microsecond()).max(0)))
}

/// Returns the first instant at which a job ran.
fn start(phase: &Phase) -> Option<Timestamp> {
    match phase {
        Phase::Opportunistic { start, .. } | Phase::Done { start, .. } => Some(*start),
        Phase::Running(allocation) | Phase::Suspended(allocation) => Some(allocation.start),
        Phase::Killed { start, .. } => *start,
        _ => None,
    }
}

/// Returns the whole seconds from one instant to another, rounded up; 0 if it is earlier.
fn seconds_until(from: Timestamp, to: Timestamp) -> u64 {
    let micros = to.as_microsecond().saturating_sub(from.as_microsecond());
    u64::try_from(micros).unwrap_or(0).div_ceil(1_000_000)
}

fn view(made: Timestamp, given: &Given) -> ForecastView {
    let at = |seconds: u64| {
        let seconds = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        made.saturating_add(seconds).unwrap_or(Timestamp::MAX)
    };
    let [median, by_80, by_95] = given.bounds.map(at);
    let [by_80, by_95] = [by_80, by_95].map(|bound| given.calibrated.then_some(bound));
    ForecastView { made, median, by_80, by_95 }
}
