//! The guard of the head against candidates that are planned by an optimistic length.

use miserly_core::{Entry, Ledger, Persistent, Time};

use super::reservations::Reservation;
use crate::predict::OtherLengths;
use crate::shared::Waiting;

/// The limit of the delay of a head by candidates that outlive their optimistic lengths.
///
/// The *first shadow time* is the head's shadow time at the first pass that found it blocked. The
/// guard time is the head's estimate later. Until then a candidate may run beside the head's
/// reservation if it fits by its optimistic length, and if its cautious length ends before the guard
/// time or the shadow time, whichever is later. From the guard time on, it has to fit by its estimate.
///
/// On a plain machine the head of an arrival order thus starts by the guard time plus the longest
/// estimate, if no job outlives its estimate.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeadGuard {
    shadow: Time,
    guard: Time,
}

impl HeadGuard {
    /// Returns the guard of a head with this reservation.
    pub(super) fn new<P>(head: &Reservation<P>, ledger: &Ledger) -> HeadGuard {
        let entry = ledger.entry(head.job.job);
        let FirstShadow(first) = entry.policy_state.get();
        HeadGuard { shadow: head.at, guard: first.unwrap_or(head.at) + entry.request.estimate }
    }

    /// Returns whether a candidate may start by its optimistic length, which it is planned by.
    pub(super) fn admits(&self, now: Time, candidate: &Waiting, entry: &Entry) -> bool {
        let HeadGuard { shadow, guard } = *self;
        let latest = if now < guard {
            let lengths = entry.prediction.map(|prediction| OtherLengths::lengths(entry, prediction));
            let cautious = lengths.map_or(entry.request.estimate, |lengths| lengths.cautious);
            now + cautious <= shadow.max(guard)
        } else {
            now + entry.request.planned() <= shadow
        };
        now + candidate.span <= shadow && latest
    }
}

/// The shadow time of a head at the first pass that found it blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FirstShadow(pub(super) Option<Time>);

impl Persistent for FirstShadow {
    const NAME: &'static str = "backfill/first-shadow";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(word_of(self.0));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<FirstShadow> {
        decoded(words, FirstShadow)
    }
}

/// Returns the word of a time that may be unknown.
pub(super) fn word_of(time: Option<Time>) -> Option<u64> {
    time.map(|time| time.ticks().cast_unsigned())
}

/// Returns the value whose time [`word_of`] stored; `None` if the words are not one.
pub(super) fn decoded<T>(words: &[u64], value: fn(Option<Time>) -> T) -> Option<T> {
    match *words {
        [] => Some(value(None)),
        [ticks] => Some(value(Some(Time::from_ticks(ticks.cast_signed())))),
        _ => None,
    }
}
