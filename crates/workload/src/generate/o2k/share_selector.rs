//! Even distribution of a property over an exact share of the jobs.

/// A selector that gives a share of any sequence of jobs the property, to within one job.
///
/// Random draws would miss the share by several percent in small classes and in single periods of
/// the week.
pub(super) struct ShareSelector {
    share: f64,
    owed: f64,
}

impl ShareSelector {
    /// Creates a selector for this share; `start`, in [0, 1), determines the first selected job.
    pub(super) fn new(share: f64, start: f64) -> ShareSelector {
        ShareSelector { share, owed: start }
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
        let mut deal = ShareSelector::new(0.175, 0.4);
        let turns: Vec<_> = (0..1000).map(|_| deal.next()).collect();
        for stretch in [1, 7, 40, 333] {
            for jobs in turns.windows(stretch) {
                let count = jobs.iter().filter(|&&turn| turn).count() as f64;
                assert!((count - 0.175 * stretch as f64).abs() <= 1.0 + 1e-9, "{count} of {stretch}");
            }
        }
    }
}
