//! What searches found out about starts without a hole.

use miserly_core::{Span, Time};

/// The number of facts that are kept: enough for a few kinds of jobs that alternate.
const MOST: usize = 8;

/// What is known about starts at which no hole begins.
///
/// A job that is at least as wide and as long as another one has no hole where that one has none.
/// So one search in vain answers all identical jobs behind it, until processors are given back.
#[derive(Clone, Debug, Default)]
pub(super) struct NoHoles {
    facts: Vec<Fact>,
    /// The fact that is replaced next.
    oldest: usize,
}

/// A fact: no hole for `procs` and `span` starts in `from..until`, even if it need not extend beyond
/// `limit`.
#[derive(Clone, Copy, Debug)]
struct Fact {
    procs: u32,
    span: Span,
    from: Time,
    until: Time,
    limit: Time,
}

impl NoHoles {
    /// Returns the first instant, not before `from`, at which such a hole may start.
    pub(super) fn skip(&self, from: Time, limit: Time, span: Span, procs: u32) -> Time {
        let smaller = |fact: &&Fact| {
            fact.procs <= procs && fact.span <= span && fact.from <= from && fact.limit <= limit
        };
        self.facts.iter().filter(smaller).fold(from, |from, fact| from.max(fact.until))
    }

    /// Records that no such hole starts in `from..until`.
    pub(super) fn note(&mut self, from: Time, until: Time, limit: Time, span: Span, procs: u32) {
        // A hole that starts before `until` ends before this.
        let limit = limit.min(until + span);
        let fact = Fact { procs, span, from, until, limit };
        let same = |old: &Fact| (old.procs, old.span) == (procs, span);
        if let Some(old) = self.facts.iter_mut().find(|old| same(old)) {
            *old = fact;
        } else if self.facts.len() < MOST {
            self.facts.push(fact);
        } else {
            self.facts[self.oldest] = fact;
            self.oldest = (self.oldest + 1) % MOST;
        }
    }

    /// Forgets what processors that are given back from `at` on may change.
    pub(super) fn given(&mut self, at: Time) {
        if self.facts.is_empty() {
            return;
        }
        for fact in &mut self.facts {
            if fact.limit > at {
                fact.until = fact.until.min(at - fact.span + Span::TICK);
            }
        }
        self.facts.retain(|fact| fact.from < fact.until);
        self.oldest = 0;
    }
}
