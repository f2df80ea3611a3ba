//! The number of requests of each user in a minute.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use miserly_api::model::{Problem, ProblemCode};

const MINUTE: Duration = Duration::from_mins(1);

/// The requests of the present minute of each user, and their limit.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestRate(Arc<Mutex<Counted>>);

#[derive(Debug, Default)]
struct Counted {
    limit: Option<u32>,
    /// The beginning of the minute, and the requests since.
    users: BTreeMap<u32, (Option<Instant>, u32)>,
}

impl RequestRate {
    /// Sets the limit.
    pub(crate) fn change(&self, limit: Option<u32>) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.limit = limit;
        counted.users.clear();
    }

    /// Counts a request. The daemon's user and root are exempt.
    ///
    /// # Errors
    /// If the user has made too many in this minute.
    #[allow(clippy::disallowed_methods, reason = "the rate of requests has no effect on jobs")]
    pub(crate) fn count(&self, uid: u32) -> Result<(), Problem> {
        let exempt = uid == 0 || uid == rustix::process::geteuid().as_raw();
        if exempt { Ok(()) } else { self.count_at(uid, Instant::now()) }
    }

    fn count_at(&self, uid: u32, now: Instant) -> Result<(), Problem> {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(limit) = counted.limit else { return Ok(()) };
        let (since, requests) = counted.users.entry(uid).or_default();
        if since.is_none_or(|since| now.duration_since(since) >= MINUTE) {
            (*since, *requests) = (Some(now), 0);
        }
        *requests = requests.saturating_add(1);
        if *requests <= limit {
            return Ok(());
        }
        let message = format!(
            "you made more than {limit} requests in a minute (user-limits.requests-per-minute); try again later"
        );
        Err(Problem::new(ProblemCode::Unavailable, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "the base of all instants of the test")]
    fn each_user_has_so_many_requests_in_a_minute() {
        let rate = RequestRate::default();
        let begin = Instant::now();
        let count = |uid, second| rate.count_at(uid, begin + Duration::from_secs(second)).is_ok();
        assert!((0..100).all(|_| count(7, 0)));
        rate.change(Some(2));
        assert_eq!(
            [count(7, 0), count(7, 1), count(7, 59), count(8, 59), count(7, 60)],
            [true, true, false, true, true]
        );
        rate.change(None);
        assert!((0..100).all(|_| count(7, 60)));
    }
}
