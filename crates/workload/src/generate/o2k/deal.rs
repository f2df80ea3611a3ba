//! Dealing out a property to an exact share of the jobs, evenly.

/// Whose turn it is, so that of any stretch of jobs the share has the property, to within one job.
///
/// Draws would miss the share by several percents in the smaller classes, and more so in one period of the week.
pub(super) struct Deal {
    share: f64,
    owed: f64,
}

impl Deal {
    /// Deals to this share; `start`, in [0, 1), says how near the first turn is.
    pub(super) fn new(share: f64, start: f64) -> Deal {
        Deal { share, owed: start }
    }

    pub(super) fn next(&mut self) -> bool {
        self.owed += self.share;
        let turn = self.owed >= 1.0;
        if turn {
            self.owed -= 1.0;
        }
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stretch_has_its_share() {
        let mut deal = Deal::new(0.175, 0.4);
        let turns: Vec<_> = (0..1000).map(|_| deal.next()).collect();
        for stretch in [1, 7, 40, 333] {
            for jobs in turns.windows(stretch) {
                let count = jobs.iter().filter(|&&turn| turn).count() as f64;
                assert!((count - 0.175 * stretch as f64).abs() <= 1.0 + 1e-9, "{count} of {stretch}");
            }
        }
    }
}
