//! The random numbers of a batch of jobs.

use miserly_classes::lsf::Class;

use super::super::random::Stream;
use crate::o2k::Month;

/// The purpose of a random stream. Its values are part of the meaning of a seed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Sizes = 1,
    Arrivals = 2,
    Estimates = 3,
    Runtimes = 4,
    RequestedMemory = 5,
    UsedMemory = 6,
    Users = 7,
}

/// The streams of a batch, distinct from those of any other month, class or batch.
pub(super) struct Streams {
    seed: u64,
    batch: u64,
}

impl Streams {
    pub(super) fn new(seed: u64, month: Month, class: Class, number: u64) -> Streams {
        let batch = (month as u64 * Class::COUNT as u64 + class.index() as u64) * 2 + number;
        Streams { seed, batch }
    }

    /// Returns the stream for a purpose, from its beginning.
    pub(super) fn stream(&self, purpose: Purpose) -> Stream {
        Stream::new(self.seed, self.batch * 16 + purpose as u64)
    }
}
