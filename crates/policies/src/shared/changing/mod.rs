//! The waiting jobs in an order that changes with time, not sorted.

mod aging;

mod chunk;

mod walk;

use std::cmp::Reverse;

use miserly_core::{JobId, Ledger, Time};

pub use self::walk::Walk;

use self::aging::rank;
use self::chunk::{Bounds, Chunk, Member, place};
use self::walk::Step;
use super::order::{Facts, Key, Order};
use super::queue::Waiting;
use super::staircase::{Admits, Everything};

/// The number of jobs at which a chunk is split.
const CHUNK: usize = 64;

/// Of fewer jobs of a chunk that fit, bounds are not kept.
const FEW: usize = 8;

/// The bound of a chunk holds for the longest wait in it, divided by this, if it shows that the head is not in there.
const LOOSE: i64 = 16;

/// Otherwise it holds for the longest wait, divided by the number of jobs over this. Longer times make a walk compute
/// more values, shorter ones make it compute bounds more often.
const TIGHT: i64 = 16;

/// The waiting jobs in an order by waits ([`Order::ages`]), with a walk through those that fit.
///
/// Sorting them again at each pass would evaluate the formula of each. Instead, jobs of similar width and planned time
/// share a chunk. A chunk has the least width and span in it, and a bound on the ranks in it for some time to come, by
/// interval arithmetic. A [walk](Walk) opens a chunk only when no job with a better bound is left, and computes the exact
/// rank of a job only then, too.
///
/// With n jobs and chunks of c, insertion and removal are O(c + n / c). A walk is O(n / c), O(c) for each chunk that it
/// opens, and O(log n) for each of their jobs.
#[derive(Clone, Debug, Default)]
pub struct ChangingIndex {
    chunks: Vec<Chunk>,
    /// The bounds of each chunk, side by side for the scan at the beginning of a walk.
    bounds: Vec<Bounds>,
    /// The number of jobs.
    len: usize,
    /// The number of removals since chunks were last joined.
    removed: usize,
    /// The head of the queue at an instant, if neither a job was inserted since nor this one removed.
    first: Option<(Time, Waiting)>,
    /// The rank of the head when it was last searched for.
    head_rank: i64,
}

/// An instant at which jobs are compared.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The order.
    pub order: &'a Order,
    /// The instant.
    pub now: Time,
    /// The ledger with the jobs.
    pub ledger: &'a Ledger,
}

impl Moment<'_> {
    /// Returns the position of a job in the order.
    pub fn key(&self, job: JobId) -> Key {
        self.order.key(self.now, self.ledger.entry(job), self.ledger)
    }
}

impl ChangingIndex {
    /// Returns whether no job waits.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Inserts a job, with its key in the order of arrival.
    pub fn insert(&mut self, at: &Moment<'_>, waiting: Waiting) {
        self.first = None;
        self.len += 1;
        if self.removed > self.chunks.len() {
            self.join_sparse();
        }
        let entry = at.ledger.entry(waiting.job);
        let (facts, submit) = (Facts::new(entry), entry.request.submit);
        let member = Member { waiting, facts, submit };
        let Some(index) = self.chunk_of(&waiting) else { return self.push(Chunk::new(at, member)) };
        let chunk = &mut self.chunks[index];
        chunk.insert(at, member, &mut self.bounds[index]);
        if chunk.members.len() == CHUNK {
            let upper = chunk.split();
            self.bounds[index] = chunk.measure();
            self.bounds.insert(index + 1, upper.bounds());
            self.chunks.insert(index + 1, upper);
        }
    }

    /// Removes a job, by the same values as it was inserted with.
    pub fn remove(&mut self, waiting: &Waiting) {
        if self.first.is_some_and(|(_, first)| first.job == waiting.job) {
            self.first = None;
        }
        if let Some(index) = self.chunk_of(waiting)
            && self.chunks[index].remove(waiting, &mut self.bounds[index])
        {
            self.len -= 1;
            self.removed += 1;
        }
    }

    fn push(&mut self, chunk: Chunk) {
        self.bounds.push(chunk.bounds());
        self.chunks.push(chunk);
    }

    /// Joins sparse chunks with the next ones, and drops empty ones.
    fn join_sparse(&mut self) {
        self.removed = 0;
        self.bounds.clear();
        for chunk in std::mem::take(&mut self.chunks).into_iter().filter(|chunk| !chunk.members.is_empty()) {
            match self.chunks.last_mut().zip(self.bounds.last_mut()) {
                Some((last, bounds)) if last.members.len() + chunk.members.len() <= CHUNK / 2 => {
                    last.join(chunk);
                    *bounds = last.measure();
                }
                _ => self.push(chunk),
            }
        }
    }

    /// Returns the head of the queue.
    pub fn first(&mut self, at: &Moment<'_>) -> Option<Waiting> {
        if let Some((_, first)) = self.first.filter(|(then, _)| *then == at.now) {
            return Some(first);
        }
        let first = self.next(at, &mut Walk::default(), None, &Everything)?;
        self.first = Some((at.now, first));
        self.head_rank = first.key.primary();
        Some(first)
    }

    /// Returns the first job of a walk that fits into the room, behind `after` (or of all, if `None`).
    ///
    /// `after` is not before that of the last call. A job that was removed from the queue must not be behind it.
    pub fn next(
        &mut self,
        at: &Moment<'_>,
        walk: &mut Walk,
        after: Option<&Key>,
        room: &impl Admits,
    ) -> Option<Waiting> {
        if !walk.has_begun {
            self.begin(at, walk, room);
        }
        loop {
            if let Some(waiting) = walk.first_ready() {
                let fits = room.admits(waiting.procs, waiting.span);
                if fits && Some(&waiting.key) > after {
                    // It is passed by the next call, if that is behind it.
                    return Some(waiting);
                }
                walk.pass_ready(after, fits);
                continue;
            }
            let Reverse((rank, step)) = walk.steps.pop()?;
            if !self.may_fit(walk, step, room) {
                // The room became smaller. Since the steps were last examined, that may be so for many of them.
                walk.retain(|walk, step| self.may_fit(walk, step, room));
                continue;
            }
            match step {
                Step::Open(chunk) => self.open(at, walk, chunk, None, room),
                Step::OpenAgain(chunk) => self.open(at, walk, chunk, Some(rank), room),
                Step::Compare(job) => walk.ready(at, job, after),
            }
        }
    }

    /// Returns whether a step may find a job that fits.
    fn may_fit(&self, walk: &Walk, step: Step, room: &impl Admits) -> bool {
        match step {
            Step::Open(chunk) | Step::OpenAgain(chunk) => {
                let Bounds { least_procs, least_span, .. } = self.bounds[chunk];
                room.admits(least_procs, least_span)
            }
            Step::Compare(job) => {
                let Waiting { procs, span, .. } = walk.jobs[job].waiting;
                room.admits(procs, span)
            }
        }
    }

    fn begin(&mut self, at: &Moment<'_>, walk: &mut Walk, room: &impl Admits) {
        walk.has_begun = true;
        let tight = self.tight();
        let ChangingIndex { chunks, bounds, head_rank, .. } = self;
        let fits = |bounds: &Bounds| room.admits(bounds.least_procs, bounds.least_span);
        let bounds = bounds.iter_mut().enumerate().filter(|(_, bounds)| fits(bounds));
        let steps = bounds.filter_map(|(index, bounds)| {
            if at.now > bounds.until {
                let chunk = &mut chunks[index];
                if chunk.members.is_empty() {
                    return None;
                }
                chunk.refresh(at, bounds, LOOSE);
                if !at.order.is_linear() && bounds.rank(at.now) <= *head_rank {
                    chunk.refresh(at, bounds, tight);
                }
            }
            Some(Reverse((bounds.rank(at.now), Step::Open(index))))
        });
        walk.steps = steps.collect();
    }

    /// Returns the parts of the longest wait for which a tight bound holds.
    fn tight(&self) -> i64 {
        (i64::try_from(self.len).unwrap_or(i64::MAX) / TIGHT).max(LOOSE)
    }

    /// Adds to a walk the jobs of a chunk that fit and that may come before all other steps, and a step for the rest.
    /// `from`: the least bound of the jobs that were not added before.
    fn open(
        &mut self,
        at: &Moment<'_>,
        walk: &mut Walk,
        index: usize,
        from: Option<i64>,
        room: &impl Admits,
    ) {
        let tight = self.tight();
        let (chunk, bounds) = (&mut self.chunks[index], &mut self.bounds[index]);
        let fits = |member: &Member| room.admits(member.waiting.procs, member.waiting.span);
        if from.is_none() && !at.order.is_linear() {
            let fitting = || chunk.members.iter().filter(|member| fits(member));
            if fitting().count() < FEW {
                return walk.compare(fitting().map(|member| (rank(member.most(at, at.now)), member)));
            }
            chunk.tighten(at, bounds, tight);
        }
        chunk.bound_members(at, bounds);
        let fitting = || chunk.members.iter().enumerate().filter(|(_, member)| fits(member));
        let ranked = || fitting().map(|(index, member)| (chunk.rank(at.now, index), member));
        let left = || ranked().filter(|(rank, _)| Some(*rank) >= from);
        let others = walk.steps.peek().map(|Reverse((rank, _))| *rank);
        let Some(limit) = others.or_else(|| left().map(|(rank, _)| rank).min()) else { return };
        let limit = from.map_or(limit, |from| limit.max(from));
        let mut rest = None;
        walk.compare(left().filter_map(|(rank, member)| {
            if rank <= limit {
                return Some((rank, member));
            }
            rest = Some(rest.map_or(rank, |rest: i64| rest.min(rank)));
            None
        }));
        if let Some(rest) = rest {
            walk.steps.push(Reverse((rest, Step::OpenAgain(index))));
        }
    }

    /// Returns the index of the chunk that contains the job or would contain it.
    fn chunk_of(&self, waiting: &Waiting) -> Option<usize> {
        let after = self.chunks.partition_point(|chunk| chunk.start <= place(waiting));
        (!self.chunks.is_empty()).then(|| after.saturating_sub(1))
    }
}
