//! The decayed usage of users and groups, from the history of all runs.

use libm::exp2;
use miserly_core::{Span, Time};

use crate::Ratio;

/// A run of a job: its user, its group, its processors, its start and its end so far.
#[derive(Clone, Copy)]
pub(crate) struct Run {
    pub(crate) user: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) procs: u64,
    pub(crate) start: Time,
    pub(crate) end: Time,
}

/// The usage of a user or a group, as formulas read it.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    /// The part in the usage of all, rounded to billionths.
    pub(crate) share: Ratio,
    /// The processor-hours, rounded to processor-seconds.
    pub(crate) hours: Ratio,
}

impl Used {
    pub(crate) fn nothing() -> Used {
        Used { share: 0.into(), hours: 0.into() }
    }

    /// Returns the usage of the runs that are `mine` at `now`. `half_life`: none, if usage does not decay.
    pub(crate) fn new(
        mine: impl Fn(&&Run) -> bool,
        runs: &[Run],
        now: Time,
        half_life: Option<Span>,
    ) -> Used {
        match half_life {
            None => {
                let sum = |runs: &mut dyn Iterator<Item = &Run>| runs.map(work).sum();
                Used::exact(sum(&mut runs.iter().filter(&mine)), sum(&mut runs.iter()))
            }
            Some(half_life) => {
                let decayed = |run: &Run| decayed(run, now, half_life);
                let sum = |runs: &mut dyn Iterator<Item = &Run>| runs.map(decayed).sum();
                Used::rounded(sum(&mut runs.iter().filter(&mine)), sum(&mut runs.iter()))
            }
        }
    }

    fn exact(mine: i128, all: i128) -> Used {
        if all == 0 {
            return Used::nothing();
        }
        let billionths = (2 * mine * 1_000_000_000 + all) / (2 * all);
        Used {
            share: Ratio::new(billionths, 1_000_000_000),
            hours: Ratio::new((mine + 500_000) / 1_000_000, 3600),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "small numbers without a fraction")]
    fn rounded(mine: f64, all: f64) -> Used {
        if all < 1.0 {
            return Used::nothing();
        }
        Used {
            share: Ratio::new((mine / all * 1e9).round() as i128, 1_000_000_000),
            hours: Ratio::new((mine / 1e6).round() as i128, 3600),
        }
    }
}

/// The processor-ticks of a run.
fn work(run: &Run) -> i128 {
    i128::from((run.end - run.start).ticks()) * i128::from(run.procs)
}

/// The integral of the processors over the run, each tick of the age `a` times `2^(-a / half_life)`.
fn decayed(run: &Run, now: Time, half_life: Span) -> f64 {
    let half_life = half_life.ticks() as f64;
    let weight = |at: Time| exp2(-((now - at).ticks() as f64) / half_life);
    run.procs as f64 * half_life / std::f64::consts::LN_2 * (weight(run.end) - weight(run.start))
}
