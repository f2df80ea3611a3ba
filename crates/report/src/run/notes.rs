//! Notes for users on the figures of a run.

use miserly_run::{RunDoc, UncertaintyDoc};
use miserly_sim::{BATCH_JOBS_LEAST, BATCHES_LEAST, EXACT_MOST};

use super::measures::NAMES;

/// Returns a note if the warm-up covers every job.
pub fn nothing_measured(run: &RunDoc) -> Option<String> {
    (run.jobs.measured == 0 && run.jobs.simulated > 0)
        .then(|| "no job is measured: all were submitted within the warm-up; give a shorter --warmup".into())
}

/// Returns the notes on the figures of a run.
pub(super) fn notes(run: &RunDoc) -> impl Iterator<Item = String> {
    let notes = [percentile_note(run), uncertainty_note(&run.uncertainty), nothing_measured(run)];
    notes.into_iter().flatten()
}

/// Returns a note if the percentiles are not exact.
fn percentile_note(run: &RunDoc) -> Option<String> {
    let error = run.percentiles.relative_error;
    (error > 0.0).then(|| {
        format!("percentiles within {:.2} % (a sketch: over {EXACT_MOST} jobs were measured)", 100.0 * error)
    })
}

/// Returns a note that explains a mean without a half width.
fn uncertainty_note(uncertainty: &UncertaintyDoc) -> Option<String> {
    let jobs = uncertainty.jobs_per_batch;
    if uncertainty.batches < BATCHES_LEAST as u64 {
        return None;
    }
    if jobs < BATCH_JOBS_LEAST {
        let jobs = if jobs == 1 { "1 job".to_owned() } else { format!("{jobs} jobs") };
        return Some(format!(
            "no ±: batches of {jobs} are too short; the minimum is {BATCH_JOBS_LEAST} jobs"
        ));
    }
    let (half_widths, correlations) = (uncertainty.half_width.all(), uncertainty.autocorrelation.all());
    let figures = NAMES.iter().zip(half_widths.into_iter().zip(correlations));
    let correlated = figures.filter(|(_, (half_width, _))| half_width.is_none());
    let correlated: Vec<String> =
        correlated.filter_map(|(name, (_, r))| Some(format!("{name} (r {:.2})", (*r)?))).collect();
    (!correlated.is_empty())
        .then(|| format!("no ± (successive batch means correlate): {}", correlated.join(", ")))
}

#[cfg(test)]
mod tests {
    use miserly_run::PerMeasure;

    use super::*;

    #[track_caller]
    fn check(batches: u64, jobs_per_batch: u64, half_width: Option<f64>, expect: Option<&str>) {
        let (half_width, autocorrelation) =
            (PerMeasure::from_fn(|_| half_width), PerMeasure::from_fn(|_| Some(0.1)));
        let half_width = PerMeasure { wait: None, ..half_width };
        let autocorrelation = PerMeasure { wait: Some(0.62), ..autocorrelation };
        let uncertainty =
            UncertaintyDoc { batches, jobs_per_batch, level: 0.95, half_width, autocorrelation };
        assert_eq!(uncertainty_note(&uncertainty).as_deref(), expect);
    }

    #[test]
    fn the_note_says_why_there_is_no_half_width() {
        check(9, 1, None, None);
        check(40, 1, None, Some("no ±: batches of 1 job are too short; the minimum is 64 jobs"));
        check(40, 32, None, Some("no ±: batches of 32 jobs are too short; the minimum is 64 jobs"));
        check(40, 64, Some(3.0), Some("no ± (successive batch means correlate): wait (r 0.62)"));
    }
}
