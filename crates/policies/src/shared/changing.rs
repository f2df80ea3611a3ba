//! The waiting jobs in an order that changes with time, not sorted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use miserly_core::{JobId, Ledger, Span, Time};

use super::order::{Facts, Key, Order};
use super::queue::Waiting;
use super::staircase::{Admits, Everything};

/// The number of jobs at which a chunk is split.
const CHUNK: usize = 64;

/// Bounds on ranks hold for the longest wait in a chunk, divided by this. Longer times loosen the bounds, shorter ones
/// need more evaluations.
const PARTS_OF_WAIT: i64 = 32;

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
    /// The number of removals since chunks were last joined.
    removed: usize,
    /// The head of the queue at an instant, if neither a job was inserted since nor this one removed.
    first: Option<(Time, Waiting)>,
}

/// A walk through the jobs in their order, at one instant.
///
/// Jobs may be removed during a walk, but not inserted. The room for jobs may become smaller, but not larger.
#[derive(Debug, Default)]
pub struct Walk {
    has_begun: bool,
    /// What is left, by the least possible rank.
    steps: BinaryHeap<Reverse<(i64, Step)>>,
    jobs: Vec<Waiting>,
}

/// A step of a walk. Of equal ranks, what is not known exactly comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// Open this chunk, for the jobs whose bounds are above a rank.
    Open(usize, Option<i64>),
    /// Compute the key of this job.
    Compare(usize),
    /// This job, with its key, is next.
    Visit(Key, usize),
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

#[derive(Clone, Debug)]
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
    least_procs: u32,
    least_span: Span,
    /// The hull of the facts of the members.
    facts: Facts,
    oldest: Time,
    newest: Time,
    /// No rank of a member is below this until `until`.
    least_rank: i64,
    /// The same for each member, or empty.
    least_ranks: Vec<i64>,
    until: Time,
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
        self.chunks.iter().all(|chunk| chunk.members.is_empty())
    }

    /// Inserts a job, with its key in the order of arrival.
    pub fn insert(&mut self, at: &Moment<'_>, waiting: Waiting) {
        self.first = None;
        if self.removed > self.chunks.len() {
            self.join_sparse();
        }
        let entry = at.ledger.entry(waiting.job);
        let (facts, submit) = (at.order.facts(entry), entry.request.submit);
        let member = Member { waiting, facts, submit };
        let Some(index) = self.chunk_of(&waiting) else {
            self.chunks.push(Chunk::new(vec![member]));
            return;
        };
        let chunk = &mut self.chunks[index];
        chunk.insert(at, member);
        if chunk.members.len() == CHUNK {
            let upper = Chunk::new(chunk.members.split_off(CHUNK / 2));
            chunk.measure();
            self.chunks.insert(index + 1, upper);
        }
    }

    /// Removes a job, by the same values as it was inserted with.
    pub fn remove(&mut self, waiting: &Waiting) {
        if self.first.is_some_and(|(_, first)| first.job == waiting.job) {
            self.first = None;
        }
        if let Some(index) = self.chunk_of(waiting) {
            self.chunks[index].remove(waiting);
            self.removed += 1;
        }
    }

    /// Joins sparse chunks with the next ones, and drops empty ones.
    fn join_sparse(&mut self) {
        self.removed = 0;
        let mut joined: Vec<Chunk> = Vec::with_capacity(self.chunks.len());
        for chunk in self.chunks.drain(..).filter(|chunk| !chunk.members.is_empty()) {
            match joined.last_mut() {
                Some(last) if last.members.len() + chunk.members.len() <= CHUNK / 2 => {
                    last.members.extend(chunk.members);
                    last.measure();
                }
                _ => joined.push(chunk),
            }
        }
        self.chunks = joined;
    }

    /// Returns the head of the queue.
    pub fn first(&mut self, at: &Moment<'_>) -> Option<Waiting> {
        if let Some((_, first)) = self.first.filter(|(then, _)| *then == at.now) {
            return Some(first);
        }
        let first = self.next(at, &mut Walk::default(), None, &Everything)?;
        self.first = Some((at.now, first));
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
        while let Some(Reverse((_, step))) = walk.steps.pop() {
            match step {
                Step::Open(chunk, above) => self.open(at, walk, chunk, above, room),
                Step::Compare(job) => {
                    let key = at.key(walk.jobs[job].job);
                    if Some(&key) > after {
                        walk.steps.push(Reverse((key.primary(), Step::Visit(key, job))));
                    }
                }
                Step::Visit(key, job) => {
                    let waiting = Waiting { key, ..walk.jobs[job] };
                    if Some(&key) > after && room.admits(waiting.procs, waiting.span) {
                        // It is passed by the next call, if that is behind it.
                        walk.steps.push(Reverse((key.primary(), step)));
                        return Some(waiting);
                    }
                }
            }
        }
        None
    }

    fn begin(&mut self, at: &Moment<'_>, walk: &mut Walk, room: &impl Admits) {
        walk.has_begun = true;
        let chunks = self.chunks.iter_mut().enumerate();
        let fits = |chunk: &Chunk| !chunk.members.is_empty() && room.admits(chunk.least_procs, chunk.least_span);
        let steps = chunks.filter(|(_, chunk)| fits(chunk)).map(|(index, chunk)| {
            chunk.refresh(at);
            Reverse((chunk.least_rank, Step::Open(index, None)))
        });
        walk.steps = steps.collect();
    }

    /// Adds to a walk the jobs of a chunk that fit and that may come before all other steps, and a step for the rest.
    fn open(&mut self, at: &Moment<'_>, walk: &mut Walk, index: usize, above: Option<i64>, room: &impl Admits) {
        let chunk = &mut self.chunks[index];
        chunk.bound_members(at);
        let left = || chunk.members.iter().zip(&chunk.least_ranks).filter(|(_, rank)| Some(**rank) > above);
        let others = walk.steps.peek().map(|Reverse((rank, _))| *rank);
        let Some(limit) = others.or_else(|| left().map(|(_, rank)| *rank).min()) else { return };
        let mut rest = None;
        for (member, rank) in left() {
            if *rank > limit {
                rest = Some(rest.map_or(*rank, |rest: i64| rest.min(*rank)));
            } else if room.admits(member.waiting.procs, member.waiting.span) {
                walk.steps.push(Reverse((*rank, Step::Compare(walk.jobs.len()))));
                walk.jobs.push(member.waiting);
            }
        }
        if let Some(rest) = rest {
            walk.steps.push(Reverse((rest, Step::Open(index, above.max(Some(limit))))));
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
        let mut chunk = Chunk {
            start: place(&members[0].waiting),
            facts: members[0].facts,
            members,
            least_procs: 0,
            least_span: Span::ZERO,
            oldest: Time::ZERO,
            newest: Time::ZERO,
            least_rank: i64::MIN,
            least_ranks: Vec::new(),
            until: EXPIRED,
        };
        chunk.measure();
        chunk
    }

    /// Measures what does not change with time. The bounds on ranks expire.
    fn measure(&mut self) {
        self.until = EXPIRED;
        self.least_ranks.clear();
        let Some(first) = self.members.first() else { return };
        (self.least_procs, self.least_span) = (first.waiting.procs, first.waiting.span);
        (self.facts, self.oldest, self.newest) = (first.facts, first.submit, first.submit);
        for position in 1..self.members.len() {
            self.extend(position);
        }
    }

    fn extend(&mut self, position: usize) {
        let member = &self.members[position];
        self.least_procs = self.least_procs.min(member.waiting.procs);
        self.least_span = self.least_span.min(member.waiting.span);
        self.facts.extend(&member.facts);
        self.oldest = self.oldest.min(member.submit);
        self.newest = self.newest.max(member.submit);
    }

    fn insert(&mut self, at: &Moment<'_>, member: Member) {
        let rank = member.least_rank(at, self.until);
        let here = place(&member.waiting);
        let position = self.members.partition_point(|member| place(&member.waiting) < here);
        self.start = self.start.min(here);
        self.members.insert(position, member);
        if self.members.len() == 1 {
            self.measure();
            return;
        }
        self.extend(position);
        if at.now > self.until {
            self.least_ranks.clear();
        } else {
            self.least_rank = self.least_rank.min(rank);
            if !self.least_ranks.is_empty() {
                self.least_ranks.insert(position, rank);
            }
        }
    }

    fn remove(&mut self, waiting: &Waiting) {
        let here = place(waiting);
        let Ok(position) = self.members.binary_search_by(|member| place(&member.waiting).cmp(&here)) else { return };
        self.members.remove(position);
        let (until, mut ranks) = (self.until, std::mem::take(&mut self.least_ranks));
        self.measure();
        if !ranks.is_empty() {
            ranks.remove(position);
            self.until = until;
            self.bound(ranks);
        }
    }

    /// Computes a bound on all ranks, if there is none for now.
    fn refresh(&mut self, at: &Moment<'_>) {
        if at.now <= self.until {
            return;
        }
        let longest = at.now - self.oldest;
        let until = at.now + Span::from_ticks(longest.ticks() / PARTS_OF_WAIT);
        self.least_rank = at.order.least_rank(&self.facts, at.now - self.newest, until - self.oldest);
        self.until = until;
        self.least_ranks.clear();
    }

    /// Computes a bound on the rank of each member, if there is none for now.
    fn bound_members(&mut self, at: &Moment<'_>) {
        self.refresh(at);
        if self.least_ranks.is_empty() {
            let ranks = self.members.iter().map(|member| member.least_rank(at, self.until)).collect();
            self.bound(ranks);
        }
    }

    fn bound(&mut self, ranks: Vec<i64>) {
        self.least_rank = ranks.iter().copied().min().unwrap_or(i64::MAX);
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
