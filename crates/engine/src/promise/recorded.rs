//! The latest starts by the plans of one job, as they were recorded.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::fmt::serde::timestamp::microsecond;
use miserly_api::model::PromiseChangeReason;
use miserly_core::Time;
use miserly_saved::ticks;
use serde::{Deserialize, Serialize};

/// A promise, as it was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct RecordedPromise {
    /// The wall time at which it was made.
    #[serde(with = "microsecond::required")]
    pub(crate) at: Timestamp,
    /// The latest start; [`Time::MAX`] if none is promised any more.
    #[serde(with = "ticks")]
    pub(crate) start: Time,
    /// The cause, if it is not an improvement.
    #[serde(default, rename = "broken", skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<PromiseChangeReason>,
}

/// Recorded promises, in order. They are stored as a list.
///
/// A clone shares all but the last one, which moves most often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(from = "Vec<RecordedPromise>", into = "Vec<RecordedPromise>")]
pub(crate) struct RecordedPromises {
    /// All but the last one.
    earlier: Arc<[RecordedPromise]>,
    last: Option<RecordedPromise>,
}

impl RecordedPromises {
    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Returns the number of promises.
    pub(crate) fn len(&self) -> usize {
        self.earlier.len() + usize::from(self.last.is_some())
    }

    /// Returns the promises, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &RecordedPromise> {
        self.earlier.iter().chain(&self.last)
    }

    /// Returns the first promise.
    pub(crate) fn first(&self) -> Option<&RecordedPromise> {
        self.iter().next()
    }

    /// Returns the last promise.
    pub(crate) fn last(&self) -> Option<&RecordedPromise> {
        self.last.as_ref()
    }

    /// Adds a promise.
    pub(crate) fn push(&mut self, promise: RecordedPromise) {
        if let Some(before) = self.last.replace(promise) {
            self.earlier = self.earlier.iter().copied().chain([before]).collect();
        }
    }

    /// Replaces the last promise, or adds the first one.
    pub(crate) fn replace_last(&mut self, promise: RecordedPromise) {
        self.last = Some(promise);
    }
}

impl From<Vec<RecordedPromise>> for RecordedPromises {
    fn from(mut promises: Vec<RecordedPromise>) -> RecordedPromises {
        let last = promises.pop();
        RecordedPromises { earlier: promises.into(), last }
    }
}

impl From<RecordedPromises> for Vec<RecordedPromise> {
    fn from(promises: RecordedPromises) -> Vec<RecordedPromise> {
        promises.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn promise(start: i64, cause: Option<PromiseChangeReason>) -> RecordedPromise {
        RecordedPromise { at: Timestamp::UNIX_EPOCH, start: Time::from_ticks(start), cause }
    }

    #[test]
    fn a_clone_keeps_its_promises_and_shares_those_that_do_not_move() {
        let mut promises = RecordedPromises::default();
        assert!(promises.is_empty() && promises.first().is_none());
        promises.push(promise(9, None));
        promises.push(promise(8, None));
        let before = promises.clone();
        promises.replace_last(promise(7, None));
        assert!(Arc::ptr_eq(&before.earlier, &promises.earlier));
        promises.push(promise(6, None));
        let starts =
            |of: &RecordedPromises| of.iter().map(|promise| promise.start.ticks()).collect::<Vec<_>>();
        assert_eq!((starts(&before), starts(&promises)), (vec![9, 8], vec![9, 7, 6]));
        assert_eq!((promises.len(), promises.first().map(|first| first.start.ticks())), (3, Some(9)));
        assert_eq!(RecordedPromises::from(Vec::from(promises.clone())), promises);
    }
}
