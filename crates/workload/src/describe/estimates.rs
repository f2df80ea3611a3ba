//! The users' estimates, and how good they were.

use super::COMMONEST;
use super::spread::{Common, Share, Spread, Tally, nearest_rank};
use super::study::Study;
use crate::swf::{Field, Record};

/// An estimate is round if it is a multiple of this, in seconds.
pub const ROUND: u64 = 300;

/// What is known of the users' estimates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimateQuality {
    /// Jobs with an estimate above 0, out of all.
    pub known: Share,
    /// The estimates, in seconds.
    pub spread: Option<Spread>,
    /// Jobs that ran longer than their estimate, out of those of which both are known.
    pub ran_past: Share,
    /// Jobs that ran exactly as long, out of those of which both are known.
    pub exact: Share,
    /// The median of estimate / max(runtime, 1 s).
    pub median_factor: Option<f64>,
    /// The 80th percentile of the same.
    pub p80_factor: Option<f64>,
    /// Estimates that are multiples of five minutes, out of those known.
    pub round: Share,
    /// How many different estimates there are.
    pub distinct: u64,
    /// The commonest estimates, in seconds.
    pub common: Vec<Common>,
}

/// Counts estimates as they come.
#[derive(Default)]
pub(super) struct EstimateCounter {
    jobs: u64,
    estimates: Tally,
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
        let Some(runtime) = record.known(Field::Runtime) else { return };
        self.ran_past += u64::from(runtime > estimate);
        self.exact += u64::from(runtime == estimate);
        self.pairs.push((estimate, runtime));
    }

    /// What is known of the estimates, and the study of them together with the runtimes of all jobs.
    pub(super) fn finish(self, runtimes: &Tally) -> (EstimateQuality, Study) {
        let factor = |&(estimate, runtime): &(u64, u64)| estimate as f64 / runtime.max(1) as f64;
        let mut factors: Vec<f64> = self.pairs.iter().map(factor).collect();
        factors.sort_unstable_by(f64::total_cmp);
        let share = |count| Share { count, of: factors.len() as u64 };
        let quality = EstimateQuality {
            known: Share { count: self.estimates.count(), of: self.jobs },
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
