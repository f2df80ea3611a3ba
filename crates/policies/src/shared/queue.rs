//! The waiting jobs in one order, with a search that skips jobs that do not fit.

use miserly_core::{Entry, JobId, Ledger, Span, Time};

use super::order::{Key, Keys, Order};
use super::staircase::Admits;

/// The number of jobs at which a chunk is split.
const CHUNK: usize = 64;

/// A waiting job, as the index stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting {
    /// Its position in the order.
    pub key: Key,
    /// The job.
    pub job: JobId,
    /// The number of processors that it needs.
    pub procs: u32,
    /// The time for which it is planned to hold them.
    pub span: Span,
}

impl Waiting {
    /// Returns a waiting job with its position in this order. If the order has ranks of a tree, the queue has to be sorted again.
    pub fn new(order: &Order, now: Time, job: JobId, ledger: &Ledger) -> Waiting {
        let entry = ledger.entry(job);
        Waiting { key: order.first_key(now, entry, ledger), ..Waiting::by_arrival(job, entry) }
    }

    /// Returns a waiting job with its position in the order of arrival.
    pub fn by_arrival(job: JobId, entry: &Entry) -> Waiting {
        Waiting { key: Key::arrival(entry), job, procs: procs(entry), span: entry.planned_span() }
    }
}

/// Returns the job's processors.
///
/// The registry admits no machine, and the driver no job, beyond a `u32`.
pub(crate) fn procs(entry: &Entry) -> u32 {
    u32::try_from(entry.request.procs()).unwrap_or(u32::MAX)
}

/// A sorted run of jobs, with the least width and span in it.
///
/// The minima are exact when measured, and lower bounds after removals.
#[derive(Clone, Debug)]
struct Chunk {
    jobs: Vec<Waiting>,
    /// The number of removals since the last measurement.
    gone: usize,
    least_procs: u32,
    least_span: Span,
}

/// The position reached by a walk through the queue: a hint that saves the search for the last key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    chunk: usize,
    index: usize,
}

/// The waiting jobs, sorted, in chunks that record the least width and span in them.
///
/// ```
/// use miserly_core::{Entry, JobId, Ledger, Machine, Request, Resources, Span, Time};
/// use miserly_policies::shared::{Criterion, Order, QueueIndex, Staircase, Waiting};
///
/// let order = Order::by(Criterion::Widest);
/// let mut jobs = vec![];
/// for (job, procs) in [(0, 2), (1, 8), (2, 4)] {
///     let request = Request::new(job.into(), Time::ZERO, Span::from_ticks(60), Resources::cpus(procs));
///     jobs.push((JobId(job), Entry::waiting(request, job.into())));
/// }
/// let ledger = Ledger::restored(Machine::plain(8), jobs).expect("no job runs");
/// let mut queue = QueueIndex::new();
/// for job in ledger.waiting() {
///     queue.insert(Waiting::new(&order, Time::ZERO, job, &ledger));
/// }
/// assert_eq!(queue.first().map(|head| head.procs), Some(8));
/// // Four processors are free for 90 ticks, and three of them for ever.
/// let room = Staircase::of_shadow(4, Span::from_ticks(90), 3);
/// assert_eq!(queue.next_admitted(None, &room).map(|next| next.procs), Some(4));
/// ```
///
/// With n jobs and chunks of c, insertion and removal are O(c + n / c). The search for a job that
/// fits skips a chunk in O(1) if no job in it fits.
#[derive(Clone, Debug, Default)]
pub struct QueueIndex {
    chunks: Vec<Chunk>,
    len: usize,
}

impl QueueIndex {
    /// Returns an empty queue.
    pub const fn new() -> QueueIndex {
        QueueIndex { chunks: Vec::new(), len: 0 }
    }

    /// Returns the number of waiting jobs.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Removes every job.
    pub fn clear(&mut self) {
        self.chunks.clear();
        self.len = 0;
    }

    /// Sorts the jobs by new keys. If the keys keep the order, no job moves.
    pub fn rekey(&mut self, mut key: impl FnMut(&Waiting) -> Key) {
        for job in self.chunks.iter_mut().flat_map(|chunk| &mut chunk.jobs) {
            job.key = key(job);
        }
        if !self.iter().is_sorted_by_key(|job| job.key) {
            self.sort();
        }
    }

    /// Sorts the jobs by their positions as of `now`, if the order changes with time.
    pub fn sort_again(&mut self, order: &Order, now: Time, ledger: &Ledger) {
        if order.changes() {
            let mut keys = Keys::new(order, now, ledger);
            self.rekey(|held| keys.key(ledger.entry(held.job)));
        }
    }

    fn sort(&mut self) {
        let mut jobs: Vec<Waiting> = self.iter().copied().collect();
        // Keys that change with time leave long sorted runs, which this sort uses.
        jobs.sort_by_key(|job| job.key);
        self.chunks = jobs.chunks(CHUNK / 2).map(|jobs| Chunk::new(jobs.to_vec())).collect();
    }

    /// Returns the head of the queue.
    pub fn first(&self) -> Option<&Waiting> {
        self.chunks.first().and_then(|chunk| chunk.jobs.first())
    }

    /// Returns the jobs in order.
    pub fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.chunks.iter().flat_map(|chunk| &chunk.jobs)
    }

    /// Visits, in order, each job that is no wider than `limit`. `visit` may raise the limit.
    ///
    /// Chunks of wider jobs are skipped in O(1).
    ///
    /// # Errors
    /// The first error that `visit` returns. No further job is visited.
    pub fn visit_narrow<E>(
        &self,
        limit: &mut u32,
        mut visit: impl FnMut(&Waiting, &mut u32) -> Result<(), E>,
    ) -> Result<(), E> {
        for chunk in &self.chunks {
            if chunk.least_procs > *limit {
                continue;
            }
            for job in &chunk.jobs {
                if job.procs <= *limit {
                    visit(job, limit)?;
                }
            }
        }
        Ok(())
    }

    /// Inserts a job. Its key must not be in the queue.
    pub fn insert(&mut self, waiting: Waiting) {
        self.len += 1;
        if self.chunks.is_empty() {
            self.chunks.push(Chunk::new(Vec::with_capacity(CHUNK)));
        }
        let at = self.chunk_of(&waiting.key);
        let chunk = &mut self.chunks[at];
        chunk.insert(waiting);
        if chunk.jobs.len() == CHUNK {
            let upper = Chunk::new(chunk.jobs.split_off(CHUNK / 2));
            chunk.measure();
            self.chunks.insert(at + 1, upper);
        }
    }

    /// Removes a job. Returns whether it was in the queue.
    pub fn remove(&mut self, key: &Key) -> bool {
        if self.chunks.is_empty() {
            return false;
        }
        let at = self.chunk_of(key);
        if !self.chunks[at].remove(key) {
            return false;
        }
        self.len -= 1;
        self.tidy(at);
        true
    }

    /// Returns the first job after `after` (from the head, if `None`) that fits under the
    /// staircase.
    pub fn next_admitted(&self, after: Option<&Key>, stairs: &impl Admits) -> Option<Waiting> {
        let (from, skip) = match after {
            None => (0, 0),
            Some(_) if self.chunks.is_empty() => return None,
            Some(key) => {
                let at = self.chunk_of(key);
                (at, self.chunks[at].jobs.partition_point(|job| job.key <= *key))
            }
        };
        let mut skip = skip;
        for chunk in &self.chunks[from..] {
            if stairs.admits(chunk.least_procs, chunk.least_span) {
                let fits = |job: &&Waiting| stairs.admits(job.procs, job.span);
                if let Some(found) = chunk.jobs[skip..].iter().find(fits) {
                    return Some(*found);
                }
            }
            skip = 0;
        }
        None
    }

    /// Returns the first job after `after`, or the head for `None`.
    ///
    /// `position` is that of the last result. If the job there is `after`, this is O(1).
    pub fn successor(&self, after: Option<&Key>, position: &mut Position) -> Option<Waiting> {
        let Some(after) = after else {
            *position = Position::default();
            return self.first().copied();
        };
        let here = self.chunks.get(position.chunk).and_then(|chunk| chunk.jobs.get(position.index));
        if here.is_some_and(|job| job.key == *after) {
            position.index += 1;
        } else {
            position.chunk = if self.chunks.is_empty() { 0 } else { self.chunk_of(after) };
            let jobs = self.chunks.get(position.chunk).map_or(&[][..], |chunk| &chunk.jobs);
            position.index = jobs.partition_point(|job| job.key <= *after);
        }
        if self.chunks.get(position.chunk)?.jobs.len() == position.index {
            *position = Position { chunk: position.chunk + 1, index: 0 };
        }
        self.chunks.get(position.chunk)?.jobs.get(position.index).copied()
    }

    /// Returns the chunk that contains the key or would contain it. The queue must have a chunk.
    fn chunk_of(&self, key: &Key) -> usize {
        let after =
            self.chunks.partition_point(|chunk| chunk.jobs.first().is_some_and(|job| job.key <= *key));
        after.saturating_sub(1)
    }

    /// Removes a chunk that became empty, or joins it with the next one if both are sparse.
    fn tidy(&mut self, at: usize) {
        if self.chunks[at].jobs.is_empty() {
            self.chunks.remove(at);
            return;
        }
        let together = |next: &Chunk| self.chunks[at].jobs.len() + next.jobs.len();
        if self.chunks.get(at + 1).is_some_and(|next| together(next) <= CHUNK / 2) {
            let next = self.chunks.remove(at + 1);
            self.chunks[at].jobs.extend(next.jobs);
            self.chunks[at].measure();
        }
    }
}

impl Chunk {
    fn new(jobs: Vec<Waiting>) -> Chunk {
        let mut chunk = Chunk { jobs, gone: 0, least_procs: u32::MAX, least_span: Span::MAX };
        chunk.measure();
        chunk
    }

    fn measure(&mut self) {
        self.gone = 0;
        self.least_procs = self.jobs.iter().map(|job| job.procs).min().unwrap_or(u32::MAX);
        self.least_span = self.jobs.iter().map(|job| job.span).min().unwrap_or(Span::MAX);
    }

    fn insert(&mut self, waiting: Waiting) {
        let at = self.jobs.partition_point(|job| job.key < waiting.key);
        debug_assert!(self.jobs.get(at).is_none_or(|job| job.key != waiting.key), "a job waits once");
        self.jobs.insert(at, waiting);
        self.least_procs = self.least_procs.min(waiting.procs);
        self.least_span = self.least_span.min(waiting.span);
    }

    fn remove(&mut self, key: &Key) -> bool {
        let Ok(at) = self.jobs.binary_search_by(|job| job.key.cmp(key)) else { return false };
        self.jobs.remove(at);
        self.gone += 1;
        // Runs once per number of removals that equals its cost, so the amortized cost is O(1).
        if 4 * self.gone > self.jobs.len() {
            self.measure();
        }
        true
    }
}
