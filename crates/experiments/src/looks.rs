//! The looks of the charts on a page of runs: the colours of policies and start reasons, and the bounds of axes.

use miserly_report::chart::{AxisScale, Body, Chart, DataSeries, GanttJob, GanttKeys, LocalClock};
use miserly_report::percent;
use miserly_run::RunDoc;

use crate::chart_request::{ChartKind, ChartRequest};

/// The runs that a page shows.
pub(crate) struct Looks<'a> {
    /// The policies, in the order of their colours.
    pub(crate) policies: Vec<String>,
    /// The schedules of the log.
    pub(crate) outcomes: Vec<&'a RunDoc>,
}

/// The colours of series in the order of the policies. Blue and sky are far apart.
const ORDER: [usize; 10] = [0, 1, 2, 3, 4, 6, 7, 5, 8, 9];

/// Start reasons and other keys of Gantt charts, with their words in a legend.
const REASONS: [(&str, &str); 7] = [
    ("immediate", "started immediately"),
    ("backfilled", "backfilled ahead of an earlier job"),
    ("reserved", "started in queue order"),
    ("promised", "started as promised"),
    ("quantum", "started for a quantum"),
    ("opportunistic", "ran opportunistically"),
    ("swapping", "swapped out or in"),
];

/// The least wait and the least bounded slowdown on a logarithmic axis: 1 second, and 1.
const LEAST: f64 = 1.0;

impl Looks<'_> {
    /// Gives a chart of a page its looks.
    pub(crate) fn apply(&self, chart: &mut Chart, request: &ChartRequest) {
        match &mut chart.body {
            Body::Lines { series } => {
                for series in series.iter_mut() {
                    let policy = self.policies.iter().position(|policy| *policy == series.name);
                    series.look = policy.map(|policy| ORDER[policy % ORDER.len()]);
                }
            }
            Body::Gantt { jobs, keys, .. } => *keys = in_words(jobs),
            _ => {}
        }
        match request.kind {
            ChartKind::Steps => self.distribution(chart, request),
            ChartKind::Series => {
                whole_time(chart);
                in_panels(chart);
            }
            ChartKind::Groups => groups_without_wait(chart),
            // The section says what is drawn.
            ChartKind::Gantt => chart.title.clone_from(&request.lines[0].label),
            _ => {}
        }
        self.dates(chart);
    }

    /// Shows dates on a time axis if the log has them.
    fn dates(&self, chart: &mut Chart) {
        let bounds = match &chart.body {
            Body::Gantt { from, to, .. } => Some((*from, *to)),
            _ => chart.x.from.zip(chart.x.to).filter(|_| chart.x.scale == AxisScale::Seconds),
        };
        let dates = self.outcomes.iter().find_map(|outcome| outcome.trace.dates.as_ref());
        let (Some((from, to)), Some(dates)) = (bounds, dates) else { return };
        // The jobs of a window may be submitted long before it.
        let Some(clock) = LocalClock::new(dates, from - BEFORE, to + BEFORE) else { return };
        chart.x.label = clock.label(from, to);
        chart.x.scale = AxisScale::Dates(clock);
    }

    /// Fits the axes of a distribution. The jobs at or below the least value are a step at the left edge.
    fn distribution(&self, chart: &mut Chart, request: &ChartRequest) {
        (chart.y.from, chart.y.to) = (Some(0.0), Some(1.0));
        let figure = request.lines[0].figure.as_str();
        let measure = figure.rsplit('.').next();
        if !matches!(measure, Some("wait" | "bounded_slowdown")) {
            return;
        }
        chart.x.from = Some(LEAST);
        if let Body::Lines { series } = &mut chart.body {
            series.iter_mut().for_each(from_least);
        }
        if measure == Some("wait") {
            chart.caption = Some(self.without_wait());
        }
    }

    fn without_wait(&self) -> String {
        let share = |run: &&RunDoc| format!("{} {}", run.policy, percent(run.guarantees.without_wait));
        let shares: Vec<String> = self.outcomes.iter().map(share).collect();
        format!("Jobs without wait, included at the left edge: {}.", shares.join(", "))
    }
}

/// Replaces the points at or below the least value by one point with their share.
fn from_least(series: &mut DataSeries) {
    let below = series.points.iter().filter(|(x, _)| *x <= LEAST).map(|(_, share)| *share);
    let Some(share) = below.max_by(f64::total_cmp) else { return };
    series.points.retain(|(x, _)| *x > LEAST);
    series.points.insert(0, (LEAST, share));
}

/// Places groups of jobs without wait at the lower end of the axis.
fn groups_without_wait(chart: &mut Chart) {
    let Body::Lines { series } = &mut chart.body else { return };
    let points = series.iter_mut().flat_map(|series| &mut series.points);
    let below: Vec<&mut (f64, f64)> = points.filter(|(_, wait)| *wait < LEAST).collect();
    if below.is_empty() {
        return;
    }
    for point in below {
        point.1 = LEAST;
    }
    chart.y.from = Some(LEAST);
    chart.caption = Some("A mean wait below 1s, or none, is drawn at 1s.".to_owned());
}

/// Time around a window in which dates are exact, in seconds: 60 days.
const BEFORE: f64 = 60.0 * 86_400.0;

/// Greatest ratio of the largest values of two series on a linear axis.
const LINEAR: f64 = 10.0;

/// Draws each of several series in a panel of its own, with common axes.
///
/// More than two curves that vary fast hide each other. If the largest values are far apart, the axis is logarithmic.
fn in_panels(chart: &mut Chart) {
    let Body::Lines { series } = &mut chart.body else { return };
    let series = if series.len() > 2 { std::mem::take(series) } else { return };
    let greatest = series.iter().map(|series| series.points.iter().map(|point| point.1).fold(0.0, f64::max));
    let used = greatest.filter(|value| *value > 0.0);
    let (least, most) =
        used.fold((f64::INFINITY, 0.0_f64), |(least, most), value| (least.min(value), most.max(value)));
    if most > LINEAR * least && least > LEAST {
        chart.y.scale = AxisScale::Log;
        chart.y.from = Some(LEAST);
        chart.caption = Some("Logarithmic axis: values up to 1 are at the lower edge.".to_owned());
    }
    chart.body = Body::Panels { series };
}

/// Ends the time axis at the data, and starts the other axis at zero.
fn whole_time(chart: &mut Chart) {
    let Body::Lines { series } = &chart.body else { return };
    let times = || series.iter().flat_map(|series| &series.points).map(|point| point.0);
    chart.y = chart.y.clone().from_zero();
    (chart.x.from, chart.x.to) = (times().min_by(f64::total_cmp), times().max_by(f64::total_cmp));
}

/// Writes the start reasons in words, and returns all of them; the most frequent keys if the jobs have other keys.
fn in_words(jobs: &mut [GanttJob]) -> GanttKeys {
    let word = |key: &str| REASONS.iter().find(|(reason, _)| *reason == key).map(|(_, words)| *words);
    if !jobs.iter().any(|job| word(&job.key).is_some()) {
        return GanttKeys::Frequent;
    }
    for job in jobs {
        if let Some(words) = word(&job.key) {
            job.key = words.to_owned();
        }
    }
    GanttKeys::Listed(REASONS.iter().map(|(_, words)| (*words).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_waits_are_a_step_at_the_edge() {
        let mut series = DataSeries::steps("", vec![(0.0, 0.4), (0.5, 0.5), (1.0, 0.6), (90.0, 1.0)]);
        from_least(&mut series);
        assert_eq!(series.points, [(1.0, 0.6), (90.0, 1.0)]);
        let mut series = DataSeries::steps("", vec![(2.0, 0.5), (3.0, 1.0)]);
        from_least(&mut series);
        assert_eq!(series.points, [(2.0, 0.5), (3.0, 1.0)]);
    }
}
