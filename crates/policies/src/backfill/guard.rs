//! The guard of the head against candidates that are planned by an optimistic length.

use miserly_core::{Entry, Ledger, Persistent, Time};

use super::reservations::Reservation;
use crate::predict::OtherLengths;
use crate::shared::Waiting;

/// The limit of the delay of a head by candidates that outlive their optimistic lengths.
///
/// The *first shadow time* is the head's shadow time at the instant at which a pass first found it blocked, by the last pass
/// at that instant: an earlier one may plan jobs that it started itself by their optimistic lengths. The guard time is the
/// head's estimate later. Until then a candidate may run beside the head's
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
        let first = entry.policy_state.get::<FirstShadow>().shadow();
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

/// The instant at which a pass first found a head blocked, and its shadow time by the last pass at that instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct FirstShadow(Option<[Time; 2]>);

impl FirstShadow {
    const fn shadow(self) -> Option<Time> {
        match self.0 {
            Some([_, shadow]) => Some(shadow),
            None => None,
        }
    }

    /// Returns the record of a pass with this shadow time, if it is one of the first instant.
    pub(super) fn found(self, now: Time, shadow: Time) -> Option<FirstShadow> {
        self.0.is_none_or(|[found, _]| found == now).then_some(FirstShadow(Some([now, shadow])))
    }
}

impl Persistent for FirstShadow {
    const NAME: &'static str = "backfill/first-shadow";
    const VERSION: u32 = 2;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.into_iter().flatten().map(|time| time.ticks().cast_unsigned()));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<FirstShadow> {
        let time = |word: u64| Time::from_ticks(word.cast_signed());
        match *words {
            [] => Some(FirstShadow(None)),
            // Version 1 has no instant.
            [shadow] => Some(FirstShadow(Some([Time::from_ticks(i64::MIN), time(shadow)]))),
            [found, shadow] => Some(FirstShadow(Some([time(found), time(shadow)]))),
            _ => None,
        }
    }
}
