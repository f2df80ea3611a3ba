//! The decay of usage.

use miserly_core::Span;

/// The decay of usage with a half-life.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decay {
    /// Seconds; infinite without decay.
    half_life: f64,
}

impl Decay {
    /// Returns the decay with a half-life; `Span::MAX`: none.
    pub(crate) fn new(half_life: Span) -> Decay {
        Decay { half_life: if half_life == Span::MAX { f64::INFINITY } else { half_life.as_secs_f64() } }
    }

    /// Returns the part that is left after this time, seconds.
    pub(crate) fn over(self, seconds: f64) -> f64 {
        (-seconds / self.half_life).exp2()
    }

    /// Returns the processor-seconds that are left of a run on one processor, from one age to another, seconds.
    pub(crate) fn of_run(self, from: f64, to: f64) -> f64 {
        if self.half_life.is_infinite() {
            return from - to;
        }
        self.half_life / std::f64::consts::LN_2 * (self.over(to) - self.over(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_the_sum_of_its_parts() {
        for (half_life, whole) in [(Span::MAX, 90.0), (Span::from_ticks(60_000_000), 49.852)] {
            let decay = Decay::new(half_life);
            let parts = decay.of_run(100.0, 70.0) + decay.of_run(70.0, 10.0);
            assert!(
                (parts - whole).abs() < 1e-3 && (decay.of_run(100.0, 10.0) - parts).abs() < 1e-9,
                "{parts}"
            );
        }
        assert!((Decay::new(Span::from_ticks(60_000_000)).over(120.0) - 0.25).abs() < 1e-12);
    }
}
