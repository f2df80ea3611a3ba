//! Pauses between tries that get longer.

use std::time::Duration;

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses of which each is twice as long as the one before, at most [`LONGEST`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    first: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) const fn new(first: Duration) -> Backoff {
        Backoff { first, next: first }
    }

    /// Returns the next pause.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        pause
    }

    /// Begins with the first pause again.
    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pause_is_twice_as_long_up_to_the_longest() {
        let mut backoff = Backoff::new(Duration::from_secs(1));
        let secs: Vec<u64> = (0..5).map(|_| backoff.pause().as_secs()).collect();
        assert_eq!(secs, [1, 2, 4, 5, 5]);
        backoff.reset();
        assert_eq!(backoff.pause().as_secs(), 1);
    }
}
