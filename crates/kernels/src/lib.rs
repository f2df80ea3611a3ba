//! Small parallel computations with checked results: jobs for experiments on real processes.
//!
//! The three kernels are of the classes of the NAS kernels that Roussos et al. (Miser, section 5) measured. They differ in how
//! often their threads synchronise by busy waiting:
//!
//! | kernel | computation | synchronisation |
//! |---|---|---|
//! | [`Kernel::Ep`] | pairs of normal deviates, as the NAS kernel EP | none |
//! | [`Kernel::Bt`] | block-tridiagonal solves along the lines of a grid, in both directions | two barriers in a step |
//! | [`Kernel::Cg`] | inverse iteration with conjugate gradients on a random sparse matrix | three barriers in an iteration |
//!
//! The results do not depend on the number of threads, nor on the machine.
//!
//! ```
//! use miserly_kernels::Kernel;
//!
//! let [one, two] = [1, 2].map(|threads| Kernel::Ep.run(2, threads));
//! assert!(one.verified);
//! assert_eq!(one, two);
//! ```

mod barrier;

mod shared;

mod ep;

mod bt;

mod cg;

use std::ops::Range;

/// A kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// Embarrassingly parallel: no synchronisation.
    Ep,
    /// Block tridiagonal: coarse synchronisation.
    Bt,
    /// Conjugate gradient: fine-grained synchronisation.
    Cg,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The figures of the result. They are the same for any number of threads.
    pub figures: [f64; 2],
    /// Whether the result passed the kernel's own check.
    pub verified: bool,
}

impl Kernel {
    /// All kernels, from no synchronisation to the finest.
    pub const ALL: [Kernel; 3] = [Kernel::Ep, Kernel::Bt, Kernel::Cg];

    /// Returns the name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kernel::Ep => "ep",
            Kernel::Bt => "bt",
            Kernel::Cg => "cg",
        }
    }

    /// Returns the kernel of a name.
    pub fn from_name(name: &str) -> Option<Kernel> {
        Kernel::ALL.into_iter().find(|kernel| kernel.as_str() == name)
    }

    /// Computes `rounds` rounds on `threads` threads, at least one of each.
    ///
    /// The time is proportional to the rounds. Threads wait for each other by spinning.
    pub fn run(self, rounds: u32, threads: usize) -> Outcome {
        let (rounds, threads) = (rounds.max(1), threads.max(1));
        match self {
            Kernel::Ep => ep::run(rounds, threads),
            Kernel::Bt => bt::run(rounds, threads),
            Kernel::Cg => cg::run(rounds, threads),
        }
    }
}

/// Returns the part of `items` that thread number `thread` computes.
fn part(items: usize, threads: usize, thread: usize) -> Range<usize> {
    items * thread / threads..items * (thread + 1) / threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_all_items_once() {
        for (items, threads) in [(7, 3), (2, 5), (64, 64), (10, 1)] {
            let all: Vec<usize> = (0..threads).flat_map(|thread| part(items, threads, thread)).collect();
            assert_eq!(all, (0..items).collect::<Vec<_>>());
        }
    }

    #[test]
    fn results_are_verified_and_do_not_depend_on_the_threads() {
        for kernel in Kernel::ALL {
            let alone = kernel.run(2, 1);
            assert!(alone.verified, "{kernel:?}: {alone:?}");
            for threads in [2, 3] {
                assert_eq!(kernel.run(2, threads), alone, "{kernel:?} on {threads} threads");
            }
            assert_ne!(kernel.run(3, 1), alone, "{kernel:?}: more rounds have another result");
        }
    }

    #[test]
    fn names_are_those_of_kernels() {
        for kernel in Kernel::ALL {
            assert_eq!(Kernel::from_name(kernel.as_str()), Some(kernel));
        }
        assert_eq!(Kernel::from_name("lu"), None);
    }
}
