//! Jobs of similar width and span, with bounds on their ranks.

use miserly_core::{Span, Time};

use super::Moment;
use super::aging::{self, Aging};
use crate::shared::order::{Facts, Key};
use crate::shared::queue::Waiting;

/// What is true of each job of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) least_procs: u32,
    pub(super) least_span: Span,
    /// No value is above this line until `until`.
    pub(super) most: Aging,
    pub(super) until: Time,
}

impl Bounds {
    /// Returns the least possible rank at this time.
    pub(super) fn rank(&self, now: Time) -> i64 {
        self.most.raised().rank(now)
    }

    /// Extends the bounds to a job with this line.
    fn admit(&mut self, line: Aging, now: Time) {
        if now <= self.until && !self.most.covers(line, now) {
            let until = self.most.ahead_of(line, now);
            self.until = if self.most.at(now) < line.at(now) { EXPIRED } else { self.until.min(until) };
        }
    }
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
    /// The largest value of each member, for as long as that of the chunk; or empty.
    pub(super) most: Vec<f64>,
    /// The line of each member, if the order is linear; else empty, and the fields above are used.
    pub(super) lines: Vec<Aging>,
}

/// The place of a job in the index, which does not change with time: by width, span and arrival.
pub(super) type Place = (u32, Span, Key);

pub(super) fn place(waiting: &Waiting) -> Place {
    (waiting.procs, waiting.span, waiting.key)
}

impl Chunk {
    /// Returns the chunk of one job.
    pub(super) fn new(at: &Moment<'_>, member: Member) -> Chunk {
        let lines = if at.order.is_linear() { vec![member.line(at)] } else { Vec::new() };
        Chunk::from_members(vec![member], lines)
    }

    /// Returns the chunk of these members, at least one.
    fn from_members(members: Vec<Member>, lines: Vec<Aging>) -> Chunk {
        let Member { waiting, facts, submit } = members[0];
        let start = place(&waiting);
        let (oldest, newest) = (submit, submit);
        let mut chunk = Chunk { start, members, facts, oldest, newest, most: Vec::new(), lines };
        chunk.measure();
        chunk
    }

    /// Splits off the upper half.
    pub(super) fn split(&mut self) -> Chunk {
        let half = self.members.len() / 2;
        let lines = if self.lines.is_empty() { Vec::new() } else { self.lines.split_off(half) };
        Chunk::from_members(self.members.split_off(half), lines)
    }

    /// Appends the next chunk.
    pub(super) fn join(&mut self, next: Chunk) {
        self.members.extend(next.members);
        self.lines.extend(next.lines);
    }

    /// Returns the bounds, without one on values.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            least_procs: self.members.first().map_or(u32::MAX, |first| first.waiting.procs),
            least_span: self.least_span(),
            most: Aging::level(f64::INFINITY),
            until: EXPIRED,
        }
    }

    fn least_span(&self) -> Span {
        self.members.iter().map(|member| member.waiting.span).min().unwrap_or(Span::MAX)
    }

    /// Measures the facts again. Returns the bounds, without one on values.
    pub(super) fn measure(&mut self) -> Bounds {
        self.most.clear();
        if let Some(first) = self.members.first()
            && self.lines.is_empty()
        {
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
        let line = at.order.is_linear().then(|| member.line(at));
        if let Some(line) = line {
            self.lines.insert(position, line);
        }
        if self.members.len() == 1 {
            *bounds = self.measure();
            return;
        }
        bounds.least_procs = bounds.least_procs.min(procs);
        bounds.least_span = bounds.least_span.min(span);
        match line {
            Some(line) => bounds.admit(line, at.now),
            None => self.extend_bounds(at, position, bounds),
        }
    }

    /// Extends the bound on values to a new member of an order that is not linear.
    fn extend_bounds(&mut self, at: &Moment<'_>, position: usize, bounds: &mut Bounds) {
        self.extend(position);
        if at.now > bounds.until {
            self.most.clear();
            return;
        }
        let most = self.members[position].most(at, bounds.until);
        bounds.most = Aging::level(bounds.most.at(at.now).max(most));
        if !self.most.is_empty() {
            self.most.insert(position, most);
        }
    }

    /// Removes a job. Returns whether it was there.
    pub(super) fn remove(&mut self, waiting: &Waiting, bounds: &mut Bounds) -> bool {
        let here = place(waiting);
        let Ok(position) = self.members.binary_search_by(|member| place(&member.waiting).cmp(&here)) else {
            return false;
        };
        self.members.remove(position);
        let (most, until) = (bounds.most, bounds.until);
        if self.lines.is_empty() {
            let mut values = std::mem::take(&mut self.most);
            *bounds = self.measure();
            if !values.is_empty() {
                values.remove(position);
                bounds.until = until;
                self.bound(values, bounds);
            }
        } else if self.lines.remove(position) == most {
            *bounds = self.bounds();
        } else {
            *bounds = Bounds { most, until, ..self.bounds() };
        }
        true
    }

    /// Computes a bound on all values from now on, for this part of the longest wait if the order is not linear.
    pub(super) fn refresh(&mut self, at: &Moment<'_>, bounds: &mut Bounds, parts: i64) {
        if let Some((most, until)) = aging::uppermost(&self.lines, at.now) {
            (bounds.most, bounds.until) = (most, until);
            return;
        }
        let longest = at.now - self.oldest;
        bounds.until = at.now + Span::from_ticks(longest.ticks() / parts);
        let most = at.order.most(&self.facts, at.now - self.newest, bounds.until - self.oldest);
        bounds.most = Aging::level(most);
        self.most.clear();
    }

    /// Computes a bound on all values again, if it holds for longer than this part of the longest wait.
    pub(super) fn tighten(&mut self, at: &Moment<'_>, bounds: &mut Bounds, parts: i64) {
        let longest = at.now - self.oldest;
        if bounds.until > at.now + Span::from_ticks(longest.ticks() / parts) {
            self.refresh(at, bounds, parts);
        }
    }

    /// Computes a bound on the value of each member, if there is none for now.
    pub(super) fn bound_members(&mut self, at: &Moment<'_>, bounds: &mut Bounds) {
        if self.most.is_empty() && self.lines.is_empty() {
            let mut values: Vec<f64> = Vec::with_capacity(self.members.len());
            for (index, member) in self.members.iter().enumerate() {
                let alike = index > 0 && member.is_alike(&self.members[index - 1]);
                values.push(if alike { values[index - 1] } else { member.most(at, bounds.until) });
            }
            self.bound(values, bounds);
        }
    }

    fn bound(&mut self, values: Vec<f64>, bounds: &mut Bounds) {
        bounds.most = Aging::level(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        self.most = values;
    }

    /// Returns the least possible rank of a member, once there are bounds on all.
    pub(super) fn rank(&self, now: Time, index: usize) -> i64 {
        self.lines.get(index).map_or_else(|| aging::rank(self.most[index]), |line| line.rank(now))
    }
}

impl Member {
    /// Returns whether this job and the other one have the same rank at any time.
    pub(super) fn is_alike(&self, other: &Member) -> bool {
        let same = |member: &Member| (member.waiting.procs, member.waiting.span, member.submit);
        same(self) == same(other) && self.facts.are_alike(&other.facts)
    }

    /// Returns the largest value from now on until this time.
    pub(super) fn most(&self, at: &Moment<'_>, until: Time) -> f64 {
        let until = until.max(at.now);
        at.order.most(&self.facts, at.now - self.submit, until - self.submit)
    }

    fn line(&self, at: &Moment<'_>) -> Aging {
        Aging::new(at.order.line(&self.facts), self.submit)
    }
}

/// The time at which new bounds expired.
pub(super) const EXPIRED: Time = Time::from_ticks(i64::MIN);
