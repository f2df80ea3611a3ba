//! The warm-up that a log has of its own.

use miserly_core::Span;
use miserly_workload::{ArrivalScaling, JobOptions, Survey};

/// Returns the seconds after the first submission that are not measured by the header of the log, if it has them.
///
/// They move with the submissions. Of jobs that are submitted all at once, all are measured.
pub(crate) fn warmup_of(survey: &Survey, jobs: &JobOptions) -> i64 {
    let first = jobs.from.into_iter().chain(survey.first_submit).max();
    let left = survey.header.warmup().map_or(0, |until| until.saturating_sub(first.unwrap_or(0)).max(0));
    match jobs.arrivals {
        ArrivalScaling::Logged => left,
        ArrivalScaling::Offline => 0,
        ArrivalScaling::Scaled(factor) => {
            let moved = factor.divide(Span::from_secs(left).unwrap_or(Span::MAX));
            moved.secs() + i64::from(Span::from_secs(moved.secs()) != Some(moved))
        }
    }
}

#[cfg(test)]
mod tests {
    use miserly_workload::Trace;

    use super::*;

    #[test]
    fn of_the_header() {
        let warmup = |header: &str, jobs: &JobOptions| {
            let log = format!("{header}\n1 30 -1 60 1 -1 -1 1 60 -1 1 1 -1 -1 -1 -1 -1 -1\n");
            warmup_of(&Trace::memory("log", log.into_bytes()).survey().unwrap(), jobs)
        };
        let plain = JobOptions::default();
        assert_eq!(warmup("; MaxProcs: 1", &plain), 0);
        assert_eq!(warmup("; Warmup: 100", &plain), 70, "from the first submission");
        assert_eq!(warmup("; Warmup: 20", &plain), 0);
        let from = |from| JobOptions { from: Some(from), ..JobOptions::default() };
        assert_eq!([10, 80, 200].map(|second| warmup("; Warmup: 100", &from(second))), [70, 20, 0]);
        let arrivals = |arrivals| JobOptions { arrivals, ..JobOptions::default() };
        let scaled = |text: &str| arrivals(ArrivalScaling::Scaled(text.parse().unwrap()));
        assert_eq!(["2", "4", "0.5"].map(|factor| warmup("; Warmup: 100", &scaled(factor))), [35, 18, 140]);
        assert_eq!(warmup("; Warmup: 100", &arrivals(ArrivalScaling::Offline)), 0);
    }
}
