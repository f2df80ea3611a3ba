//! Jobs of similar width and span, with bounds on their ranks.

use miserly_core::{Span, Time};

use super::Moment;
use crate::shared::order::{Facts, Key};
use crate::shared::queue::Waiting;

/// What is true of each job of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least_procs: u32,
    pub(super) least_span: Span,
    /// No rank is below this until `until`.
    pub(super) least_rank: i64,
    pub(super) until: Time,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The job. Its key is that of the order of arrival.
    pub(super) waiting: Waiting,
    /// What the formula uses, without the wait.
    pub(super) facts: Facts,
    pub(super) submit: Time,
}

/// Jobs of similar width and span, by [`place`].
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    /// No member has a place before this one, and none of the next chunk has one before its own.
    pub(super) start: Place,
    /// Empty only until chunks are joined.
    pub(super) members: Vec<Member>,
    /// The hull of the facts of the members.
    pub(super) facts: Facts,
    pub(super) oldest: Time,
    pub(super) newest: Time,
    /// A bound on the rank of each member, for as long as that of the chunk; or empty.
    pub(super) least_ranks: Vec<i64>,
}

/// The place of a job in the index, which does not change with time: by width, span and arrival.
pub(super) type Place = (u32, Span, Key);

pub(super) fn place(waiting: &Waiting) -> Place {
    (waiting.procs, waiting.span, waiting.key)
}

impl Chunk {
    /// Returns the chunk of these members, at least one.
    pub(super) fn new(members: Vec<Member>) -> Chunk {
        let Member { waiting, facts, submit } = members[0];
        let start = place(&waiting);
        let mut chunk =
            Chunk { start, members, facts, oldest: submit, newest: submit, least_ranks: Vec::new() };
        chunk.measure();
        chunk
    }

    /// Returns the bounds, without one on ranks.
    pub(super) fn bounds(&self) -> Bounds {
        let jobs = || self.members.iter().map(|member| &member.waiting);
        Bounds {
            least_procs: jobs().map(|job| job.procs).min().unwrap_or(u32::MAX),
            least_span: jobs().map(|job| job.span).min().unwrap_or(Span::MAX),
            least_rank: i64::MIN,
            until: EXPIRED,
        }
    }

    /// Measures the facts again. Returns the bounds, without one on ranks.
    pub(super) fn measure(&mut self) -> Bounds {
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

    pub(super) fn insert(&mut self, at: &Moment<'_>, member: Member, bounds: &mut Bounds) {
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
            let rank = self.members[position].least_rank(at, bounds.until);
            bounds.least_rank = bounds.least_rank.min(rank);
            if !self.least_ranks.is_empty() {
                self.least_ranks.insert(position, rank);
            }
        }
    }

    /// Removes a job. Returns whether it was there.
    pub(super) fn remove(&mut self, waiting: &Waiting, bounds: &mut Bounds) -> bool {
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
    pub(super) fn refresh(&mut self, at: &Moment<'_>, bounds: &mut Bounds, parts: i64) {
        let longest = at.now - self.oldest;
        bounds.until = at.now + Span::from_ticks(longest.ticks() / parts);
        bounds.least_rank =
            at.order.least_rank(&self.facts, at.now - self.newest, bounds.until - self.oldest);
        self.least_ranks.clear();
    }

    /// Computes a bound on all ranks again, if it holds for longer than this part of the longest wait.
    pub(super) fn tighten(&mut self, at: &Moment<'_>, bounds: &mut Bounds, parts: i64) {
        let longest = at.now - self.oldest;
        if bounds.until > at.now + Span::from_ticks(longest.ticks() / parts) {
            self.refresh(at, bounds, parts);
        }
    }

    /// Computes a bound on the rank of each member, if there is none for now.
    pub(super) fn bound_members(&mut self, at: &Moment<'_>, bounds: &mut Bounds) {
        if self.least_ranks.is_empty() {
            let mut ranks: Vec<i64> = Vec::with_capacity(self.members.len());
            for (index, member) in self.members.iter().enumerate() {
                let alike = index > 0 && member.is_alike(&self.members[index - 1]);
                ranks.push(if alike { ranks[index - 1] } else { member.least_rank(at, bounds.until) });
            }
            self.bound(ranks, bounds);
        }
    }

    fn bound(&mut self, ranks: Vec<i64>, bounds: &mut Bounds) {
        bounds.least_rank = ranks.iter().copied().min().unwrap_or(i64::MAX);
        self.least_ranks = ranks;
    }
}

impl Member {
    /// Returns whether this job and the other one have the same rank at any time.
    pub(super) fn is_alike(&self, other: &Member) -> bool {
        let same = |member: &Member| (member.waiting.procs, member.waiting.span, member.submit);
        same(self) == same(other) && self.facts.are_alike(&other.facts)
    }

    /// Returns a bound on the rank from now on until this time.
    pub(super) fn least_rank(&self, at: &Moment<'_>, until: Time) -> i64 {
        let until = until.max(at.now);
        at.order.least_rank(&self.facts, at.now - self.submit, until - self.submit)
    }
}

/// The time at which new bounds expired.
pub(super) const EXPIRED: Time = Time::from_ticks(i64::MIN);
