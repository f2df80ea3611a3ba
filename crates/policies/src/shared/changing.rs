//! The waiting jobs in an order that changes with time, not sorted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use miserly_core::{JobId, Ledger, Span, Time};

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

/// What is true of each job of a chunk.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least_procs: u32,
    least_span: Span,
    /// No rank is below this until `until`.
    least_rank: i64,
    until: Time,
}

/// A walk through the jobs in their order, at one instant.
///
/// Jobs may be removed during a walk, but not inserted. The room for jobs may become smaller, but not larger.
#[derive(Debug, Default)]
pub struct Walk {
    has_begun: bool,
    /// What is left, by the least possible rank.
    steps: BinaryHeap<Reverse<(i64, Step)>>,
    /// The jobs that may be next, each with its key.
    ready: BinaryHeap<Reverse<(Key, usize)>>,
    jobs: Vec<Waiting>,
}

/// A step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Open this chunk.
    Open(usize),
    /// Open this chunk again, for the jobs with bounds above those that were found before.
    OpenAgain(usize),
    /// Compute the key of this job.
    Compare(usize),
}

impl Walk {
    /// Adds a job with a bound on its rank.
    fn compare(&mut self, least_rank: i64, job: Waiting) {
        self.steps.push(Reverse((least_rank, Step::Compare(self.jobs.len()))));
        self.jobs.push(job);
    }
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

#[derive(Clone, Copy, Debug)]
struct Member {
    /// The job. Its key is that of the order of arrival.
    waiting: Waiting,
    /// What the formula uses, without the wait.
    facts: Facts,
    submit: Time,
}

/// Jobs of similar width and span, by [`place`].
#[derive(Clone, Debug)]
struct Chunk {
    /// No member has a place before this one, and none of the next chunk has one before its own.
    start: Place,
    /// Empty only until chunks are joined.
    members: Vec<Member>,
    /// The hull of the facts of the members.
    facts: Facts,
    oldest: Time,
    newest: Time,
    /// A bound on the rank of each member, for as long as that of the chunk; or empty.
    least_ranks: Vec<i64>,
}

/// The place of a job in the index, which does not change with time: by width, span and arrival.
type Place = (u32, Span, Key);

fn place(waiting: &Waiting) -> Place {
    (waiting.procs, waiting.span, waiting.key)
}

impl Moment<'_> {
    /// Returns the position of a job in the order.
    pub fn key(&self, job: JobId) -> Key {
        self.order.key(self.now, self.ledger.entry(job))
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
        let (facts, submit) = (Facts::of(entry), entry.request.submit);
        let member = Member { waiting, facts, submit };
        let Some(index) = self.chunk_of(&waiting) else { return self.push(Chunk::new(vec![member])) };
        let chunk = &mut self.chunks[index];
        chunk.insert(at, member, &mut self.bounds[index]);
        if chunk.members.len() == CHUNK {
            let upper = Chunk::new(chunk.members.split_off(CHUNK / 2));
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
                    last.members.extend(chunk.members);
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
            let least = walk.steps.peek().map_or(i64::MAX, |Reverse((rank, _))| *rank);
            if let Some(Reverse((key, job))) = walk.ready.peek()
                && (key.primary() < least || walk.steps.is_empty())
            {
                let waiting = Waiting { key: *key, ..walk.jobs[*job] };
                if Some(key) > after && room.admits(waiting.procs, waiting.span) {
                    // It is passed by the next call, if that is behind it.
                    return Some(waiting);
                }
                walk.ready.pop();
                continue;
            }
            let Reverse((rank, step)) = walk.steps.pop()?;
            match step {
                Step::Open(chunk) => self.open(at, walk, chunk, None, room),
                Step::OpenAgain(chunk) => self.open(at, walk, chunk, Some(rank), room),
                Step::Compare(job) => {
                    let key = at.key(walk.jobs[job].job);
                    if Some(&key) > after {
                        walk.ready.push(Reverse((key, job)));
                    }
                }
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
                if bounds.least_rank <= *head_rank {
                    chunk.refresh(at, bounds, tight);
                }
            }
            Some(Reverse((bounds.least_rank, Step::Open(index))))
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
        if from.is_none() {
            let fitting = || chunk.members.iter().filter(|member| fits(member));
            if fitting().count() < FEW {
                for member in fitting() {
                    walk.compare(member.least_rank(at, at.now), member.waiting);
                }
                return;
            }
            chunk.tighten(at, bounds, tight);
        }
        chunk.bound_members(at, bounds);
        let ranked = || chunk.members.iter().zip(&chunk.least_ranks);
        let left = || ranked().filter(|(member, rank)| Some(**rank) >= from && fits(member));
        let others = walk.steps.peek().map(|Reverse((rank, _))| *rank);
        let Some(limit) = others.or_else(|| left().map(|(_, rank)| *rank).min()) else { return };
        let limit = from.map_or(limit, |from| limit.max(from));
        let mut rest = None;
        for (member, rank) in left() {
            if *rank > limit {
                rest = Some(rest.map_or(*rank, |rest: i64| rest.min(*rank)));
            } else {
                walk.compare(*rank, member.waiting);
            }
        }
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

impl Chunk {
    /// Returns the chunk of these members, at least one.
    fn new(members: Vec<Member>) -> Chunk {
        let Member { waiting, facts, submit } = members[0];
        let start = place(&waiting);
        let mut chunk =
            Chunk { start, members, facts, oldest: submit, newest: submit, least_ranks: Vec::new() };
        chunk.measure();
        chunk
    }

    /// Returns the bounds, without one on ranks.
    fn bounds(&self) -> Bounds {
        let jobs = || self.members.iter().map(|member| &member.waiting);
        Bounds {
            least_procs: jobs().map(|job| job.procs).min().unwrap_or(u32::MAX),
            least_span: jobs().map(|job| job.span).min().unwrap_or(Span::MAX),
            least_rank: i64::MIN,
            until: EXPIRED,
        }
    }

    /// Measures the facts again. Returns the bounds, without one on ranks.
    fn measure(&mut self) -> Bounds {
        self.least_ranks.clear();
        if let Some(first) = self.members.first() {
            (self.facts, self.oldest, self.newest) = (first.facts, first.submit, first.submit);
            for position in 1..self.members.len() {
                self.extend(position);
            }
        }
        self.bounds()
    }

    fn extend(&mut self, position: usize) {
        let member = &self.members[position];
        self.facts.extend(&member.facts);
        self.oldest = self.oldest.min(member.submit);
        self.newest = self.newest.max(member.submit);
    }

    fn insert(&mut self, at: &Moment<'_>, member: Member, bounds: &mut Bounds) {
        let rank = member.least_rank(at, bounds.until);
        let Waiting { procs, span, .. } = member.waiting;
        let here = place(&member.waiting);
        let position = self.members.partition_point(|member| place(&member.waiting) < here);
        self.start = self.start.min(here);
        self.members.insert(position, member);
        if self.members.len() == 1 {
            *bounds = self.measure();
            return;
        }
        self.extend(position);
        bounds.least_procs = bounds.least_procs.min(procs);
        bounds.least_span = bounds.least_span.min(span);
        if at.now > bounds.until {
            self.least_ranks.clear();
        } else {
            bounds.least_rank = bounds.least_rank.min(rank);
            if !self.least_ranks.is_empty() {
                self.least_ranks.insert(position, rank);
            }
        }
    }

    /// Removes a job. Returns whether it was there.
    fn remove(&mut self, waiting: &Waiting, bounds: &mut Bounds) -> bool {
        let here = place(waiting);
        let Ok(position) = self.members.binary_search_by(|member| place(&member.waiting).cmp(&here)) else {
            return false;
        };
        self.members.remove(position);
        let mut ranks = std::mem::take(&mut self.least_ranks);
        let until = bounds.until;
        *bounds = self.measure();
        if !ranks.is_empty() {
            ranks.remove(position);
            bounds.until = until;
            self.bound(ranks, bounds);
        }
        true
    }

    /// Computes a bound on all ranks from now on, for this part of the longest wait.
    fn refresh(&mut self, at: &Moment<'_>, bounds: &mut Bounds, parts: i64) {
        let longest = at.now - self.oldest;
        bounds.until = at.now + Span::from_ticks(longest.ticks() / parts);
        bounds.least_rank =
            at.order.least_rank(&self.facts, at.now - self.newest, bounds.until - self.oldest);
        self.least_ranks.clear();
    }

    /// Computes a bound on all ranks again, if it holds for longer than this part of the longest wait.
    fn tighten(&mut self, at: &Moment<'_>, bounds: &mut Bounds, parts: i64) {
        let longest = at.now - self.oldest;
        if bounds.until > at.now + Span::from_ticks(longest.ticks() / parts) {
            self.refresh(at, bounds, parts);
        }
    }

    /// Computes a bound on the rank of each member, if there is none for now.
    fn bound_members(&mut self, at: &Moment<'_>, bounds: &mut Bounds) {
        if self.least_ranks.is_empty() {
            let ranks = self.members.iter().map(|member| member.least_rank(at, bounds.until)).collect();
            self.bound(ranks, bounds);
        }
    }

    fn bound(&mut self, ranks: Vec<i64>, bounds: &mut Bounds) {
        bounds.least_rank = ranks.iter().copied().min().unwrap_or(i64::MAX);
        self.least_ranks = ranks;
    }
}

impl Member {
    /// Returns a bound on the rank from now on until this time.
    fn least_rank(&self, at: &Moment<'_>, until: Time) -> i64 {
        let until = until.max(at.now);
        at.order.least_rank(&self.facts, at.now - self.submit, until - self.submit)
    }
}

/// The time at which new bounds expired.
const EXPIRED: Time = Time::from_ticks(i64::MIN);
