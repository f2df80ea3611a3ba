//! Draws that are the same each time.

use miserly_core::draw;

/// A sequence of draws from one seed.
pub(crate) struct Draws {
    seed: u64,
    drawn: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Draws {
        Draws { seed, drawn: 0 }
    }

    /// The next one, below `most`.
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.drawn += 1;
        draw(self.seed, 0, self.drawn) % most
    }

    /// One of these.
    pub(crate) fn of<T: Copy>(&mut self, these: &[T]) -> T {
        let most = u64::try_from(these.len()).expect("a length");
        these[usize::try_from(self.below(most)).expect("an index")]
    }
}
