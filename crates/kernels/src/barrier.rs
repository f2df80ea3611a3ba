//! A barrier of busy-waiting threads.

use std::hint;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A barrier at which threads spin until all have arrived. It never blocks in the kernel.
pub(crate) struct SpinBarrier {
    threads: usize,
    arrived: AtomicUsize,
    /// The number of times that all have arrived.
    generation: AtomicUsize,
}

impl SpinBarrier {
    pub(crate) fn new(threads: usize) -> SpinBarrier {
        SpinBarrier { threads, arrived: AtomicUsize::new(0), generation: AtomicUsize::new(0) }
    }

    /// Waits until all threads have called this. What they wrote before is visible to all afterwards.
    pub(crate) fn wait(&self) {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            return;
        }
        while self.generation.load(Ordering::Acquire) == generation {
            hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_thread_passes_before_all_have_arrived() {
        const THREADS: usize = 3;
        let (barrier, count) = (SpinBarrier::new(THREADS), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for round in 1..=20 {
                        count.fetch_add(1, Ordering::Relaxed);
                        barrier.wait();
                        assert_eq!(count.load(Ordering::Relaxed), THREADS * round);
                        barrier.wait();
                    }
                });
            }
        });
    }
}
