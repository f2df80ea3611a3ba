//! The users' estimates and their accuracy.

use super::COMMONEST;
use super::spread::{Common, Proportion, ValueCounts, ValueSpread, nearest_rank};
use super::study::Study;
use crate::swf::{Field, Record};

/// Divisor of round estimates in seconds.
pub const ROUND: u64 = 300;

/// The users' estimates and their accuracy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimateQuality {
    /// Jobs with a positive estimate, out of all.
    pub known: Proportion,
    /// Estimates in seconds.
    pub spread: Option<ValueSpread>,
    /// Jobs that ran longer than their estimate, out of those with both values known.
    pub ran_past: Proportion,
    /// Jobs that ran exactly as long, out of those with both values known.
    pub exact: Proportion,
    /// Median of estimate / max(runtime, 1 s).
    pub median_factor: Option<f64>,
    /// 80th percentile of the same ratio.
    pub p80_factor: Option<f64>,
    /// Multiples of five minutes, out of the known estimates.
    pub round: Proportion,
    /// Number of different estimates.
    pub distinct: u64,
    /// Commonest estimates in seconds.
    pub common: Vec<Common>,
}

/// A counter of estimates.
#[derive(Default)]
pub(super) struct EstimateCounter {
    jobs: u64,
    estimates: ValueCounts,
    ran_past: u64,
    exact: u64,
    /// Estimates and runtimes.
    pairs: Vec<(u64, u64)>,
}

impl EstimateCounter {
    pub(super) fn add(&mut self, record: &Record) {
        self.jobs += 1;
        let Some(estimate) = record.positive(Field::Estimate) else { return };
        self.estimates.add(estimate);
        let Some(runtime) = record.recorded(Field::Runtime) else { return };
        self.ran_past += u64::from(runtime > estimate);
        self.exact += u64::from(runtime == estimate);
        self.pairs.push((estimate, runtime));
    }

    /// Returns the accuracy of the estimates, and their study together with the runtimes of all
    /// jobs.
    pub(super) fn finish(self, runtimes: &ValueCounts) -> (EstimateQuality, Study) {
        let factor = |&(estimate, runtime): &(u64, u64)| estimate as f64 / runtime.max(1) as f64;
        let mut factors: Vec<f64> = self.pairs.iter().map(factor).collect();
        factors.sort_unstable_by(f64::total_cmp);
        let share = |count| Proportion { count, of: factors.len() as u64 };
        let quality = EstimateQuality {
            known: Proportion { count: self.estimates.count(), of: self.jobs },
            spread: self.estimates.spread(),
            ran_past: share(self.ran_past),
            exact: share(self.exact),
            median_factor: percentile(&factors, 50),
            p80_factor: percentile(&factors, 80),
            round: self.estimates.share(|estimate| estimate % ROUND == 0),
            distinct: self.estimates.distinct(),
            common: self.estimates.common(COMMONEST),
        };
        (quality, Study::new(runtimes, &self.estimates, self.pairs))
    }
}

fn percentile(sorted: &[f64], percent: u64) -> Option<f64> {
    let rank = usize::try_from(nearest_rank(sorted.len() as u64, percent)).ok()?;
    sorted.get(rank - 1).copied()
}
