//! The runtimes of a user's ended jobs.

use miserly_core::{Persistent, Span};

/// The runtimes of the last two jobs of a user, in the order of their ends, in whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LastRuntimes {
    /// The last one.
    last: Option<u64>,
    /// The one before.
    before: Option<u64>,
}

impl LastRuntimes {
    /// Adds the runtime of a job that ended.
    pub(super) fn add(&mut self, runtime: Span) {
        self.before = self.last;
        self.last = Some(u64::try_from(runtime.ticks() / 1_000_000).unwrap_or(0));
    }

    /// Returns the mean of the two in whole seconds, rounded down.
    pub(super) fn mean(&self) -> Option<Span> {
        let sum = self.last?.checked_add(self.before?)?;
        Span::from_secs(i64::try_from(sum / 2).ok()?)
    }
}

impl Persistent for LastRuntimes {
    const NAME: &'static str = "predict/last-runtimes";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.last);
        words.extend(self.before);
    }

    fn decode(_version: u32, words: &[u64]) -> Option<LastRuntimes> {
        match *words {
            [] => Some(LastRuntimes::default()),
            [last] => Some(LastRuntimes { last: Some(last), before: None }),
            [last, before] => Some(LastRuntimes { last: Some(last), before: Some(before) }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::PolicyState;

    use super::*;

    #[test]
    fn the_mean_of_two_is_rounded_down() {
        let mut last = LastRuntimes::default();
        let mut state = PolicyState::EMPTY;
        for (runtime, mean) in [(10, None), (15, Some(12)), (0, Some(7)), (0, Some(0))] {
            last.add(Span::from_ticks(runtime * 1_000_000 + 999_999));
            assert_eq!(last.mean(), mean.and_then(Span::from_secs));
            state.set(&last);
            assert_eq!(state.get::<LastRuntimes>(), last);
        }
    }
}
