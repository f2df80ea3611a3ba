//! Vectors that several threads read and write between barriers.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::barrier::SpinBarrier;

/// A vector of numbers. A barrier orders the writes of one thread before the reads of another.
pub(crate) struct SharedVec(Vec<AtomicU64>);

impl SharedVec {
    pub(crate) fn new(len: usize, value: f64) -> SharedVec {
        SharedVec((0..len).map(|_| AtomicU64::new(value.to_bits())).collect())
    }

    pub(crate) fn get(&self, at: usize) -> f64 {
        f64::from_bits(self.0[at].load(Ordering::Relaxed))
    }

    pub(crate) fn set(&self, at: usize, value: f64) {
        self.0[at].store(value.to_bits(), Ordering::Relaxed);
    }

    /// Returns the sum in the order of the elements.
    fn sum(&self) -> f64 {
        (0..self.0.len()).map(|at| self.get(at)).sum()
    }
}

/// A sum over all threads. Its parts are summed in the same order for any number of threads.
pub(crate) struct SharedSum(SharedVec);

impl SharedSum {
    pub(crate) fn new(parts: usize) -> SharedSum {
        SharedSum(SharedVec::new(parts, 0.0))
    }

    /// Sets a part of the sum.
    pub(crate) fn set(&self, part: usize, value: f64) {
        self.0.set(part, value);
    }

    /// Waits for the parts of all threads, and returns their sum.
    ///
    /// A thread may set a part again only after another barrier.
    pub(crate) fn reduce(&self, barrier: &SpinBarrier) -> f64 {
        barrier.wait();
        self.0.sum()
    }
}
