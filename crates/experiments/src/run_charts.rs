//! The charts of the runs of a log on a page of runs.

use miserly_report::chart::{Axis, AxisScale, Body, Chart, DataSeries, LocalClock, Ramp, Style};
use miserly_report::percent;
use miserly_run::{Cdf, CdfsDoc, GroupDoc, MeasureDoc, RunDoc, SeriesDoc};

use crate::group_grid::{GroupGrid, distinct, properties};
use crate::present::{chart_id, gantt, matrix};
use crate::run_result::Schedule;

/// The runs of a log.
pub(crate) struct RunCharts<'a> {
    /// The runs, in the order of their colours.
    pub(crate) runs: &'a [&'a RunDoc],
    /// The recorded schedule, if the log has one.
    pub(crate) recorded: Option<&'a RunDoc>,
    /// The grouping of the heat maps.
    pub(crate) groups: &'a str,
}

/// The colours of series in the order of the policies. Blue and sky are far apart.
const ORDER: [usize; 10] = [0, 1, 2, 3, 4, 6, 7, 5, 8, 9];

/// The least wait and the least bounded slowdown on a logarithmic axis: 1 second, and 1.
const LEAST: f64 = 1.0;

/// The breakdown by ranges of runtimes.
const RUNTIME_BIN: &str = "runtime-bin";

/// The label of a time axis.
const TIME: &str = "time of the log";

/// A figure of a measure.
type Summary = fn(&MeasureDoc) -> Option<f64>;

/// The heat maps of the bounded slowdown by group.
const SLOWDOWNS: [(&str, Summary); 3] = [
    ("Mean bounded slowdown", |measure| measure.mean),
    ("95th percentile of the bounded slowdown", |measure| measure.p95),
    ("Worst bounded slowdown", |measure| measure.max),
];

impl RunCharts<'_> {
    /// Returns the charts of distributions, with a line for each run.
    pub(crate) fn distributions(&self) -> Vec<Chart> {
        let mut wait = self.distribution("Wait", Axis::log_seconds("wait"), |cdf| &cdf.wait);
        let slowdown = Axis::log("bounded slowdown");
        let mut slowdown = self.distribution("Bounded slowdown", slowdown, |cdf| &cdf.bounded_slowdown);
        for chart in [&mut wait, &mut slowdown] {
            from_least(chart);
        }
        wait.caption = Some(self.without_wait());
        let promised = self.runs.iter().any(|run| run.promises.made > 0).then(|| {
            let ratio = Axis::log("promised wait / actual wait");
            self.distribution("Quality of promises as forecasts", ratio, |cdf| &cdf.guarantees)
        });
        [wait, slowdown, self.by_runtime()].into_iter().chain(promised).collect()
    }

    fn distribution(&self, title: &str, x: Axis, cdf: fn(&CdfsDoc) -> &Cdf) -> Chart {
        let y = Axis::linear("share of the jobs").between(0.0, 1.0);
        let points = |run: &RunDoc| run.details.as_ref().map(|details| cdf(&details.cdf).clone());
        self.lines(title, [x, y], Style::Steps, points)
    }

    /// Returns the mean wait at the middle of each range of runtimes.
    fn by_runtime(&self) -> Chart {
        let middle = |group: &GroupDoc| {
            let (from, to) = (group.from? as f64, group.to? as f64);
            Some(if from > 0.0 { (from * to).sqrt() } else { to / 2.0 })
        };
        let point = |group: &GroupDoc| Some((middle(group)?, group.metrics.wait.mean?));
        let points = |run: &RunDoc| Some(run.by.get(RUNTIME_BIN)?.iter().filter_map(point).collect());
        let axes = [Axis::log_seconds("runtime"), Axis::log_seconds("mean wait")];
        let mut chart = self.lines("Wait against runtime", axes, Style::Line, points);
        groups_without_wait(&mut chart);
        chart
    }

    /// Returns the bounded slowdown by group: a grid of widths and runtimes for a single run, else a column for each run.
    /// Groups without jobs are left out.
    pub(crate) fn by_group(&self) -> Vec<Chart> {
        let groups = |run: &RunDoc| {
            let groups = run.by.get(self.groups).into_iter().flatten();
            groups.filter(|group| group.jobs > 0).cloned().collect()
        };
        let groups: Vec<Vec<GroupDoc>> = self.runs.iter().map(|run| groups(run)).collect();
        let chart = |(title, value): (&str, Summary)| {
            let value = |group: &GroupDoc| value(&group.metrics.bounded_slowdown);
            if let [groups] = &groups[..] {
                return Some(GroupGrid::new(self.groups, groups, value)?.chart(
                    &chart_id(title),
                    title,
                    None,
                    Ramp::Log,
                ));
            }
            let rows = distinct(groups.iter().flatten().map(|group| group.group.as_str()));
            let cell = |row: &String, groups: &Vec<GroupDoc>| {
                value(groups.iter().find(|group| group.group == *row)?)
            };
            let cells: Vec<Vec<_>> =
                rows.iter().map(|row| groups.iter().map(|groups| cell(row, groups)).collect()).collect();
            let counts = cells.iter().flatten().flatten().all(|value| value.fract() == 0.0);
            let policies = self.runs.iter().map(|run| run.policy.clone()).collect();
            let axes = [Axis::category("policy", policies), Axis::category(properties(self.groups), rows)];
            Some(chart(title, axes, Body::Heat { cells, ramp: Ramp::Log, decimals: usize::from(!counts) }))
        };
        SLOWDOWNS.into_iter().filter_map(chart).collect()
    }

    /// Returns the charts over time, with a line for each run.
    pub(crate) fn over_time(&self) -> Vec<Chart> {
        let charts = [
            self.series("Busy processors", "processors", |series| &series.busy),
            self.series("Jobs waiting", "jobs", |series| &series.waiting),
        ];
        charts.into()
    }

    fn series(&self, title: &str, unit: &str, values: fn(&SeriesDoc) -> &Vec<f64>) -> Chart {
        let points = |run: &RunDoc| {
            let series = &run.details.as_ref()?.series;
            let at = |bucket: usize| series.from + bucket as f64 * series.step;
            Some(values(series).iter().enumerate().map(|(bucket, value)| (at(bucket), *value)).collect())
        };
        let axes = [Axis::seconds(TIME), Axis::linear(unit)];
        let mut chart = self.lines(title, axes, Style::Steps, points);
        whole_time(&mut chart);
        in_panels(&mut chart);
        self.dates(&mut chart);
        chart
    }

    /// Returns the slots of a run, if its policy slices time.
    pub(crate) fn slots(run: &RunDoc, schedule: &Schedule) -> Option<Chart> {
        let recorded = schedule.matrix.as_ref()?;
        let title = format!("Slots by processors, {}", run.policy);
        let axes = [Axis::linear("processors"), Axis::linear("slot")];
        Some(Chart { caption: matrix::note(recorded), ..chart(&title, axes, matrix::body(recorded)) })
    }

    /// Returns the jobs of a run on the processors.
    pub(crate) fn schedule(&self, run: &RunDoc, schedule: &Schedule) -> Chart {
        let id = chart_id(&format!("Jobs on processors, {}", run.policy));
        let body = gantt::body(schedule, &run.settings);
        let notes: Vec<String> = schedule
            .matrix
            .as_ref()
            .and_then(matrix::note)
            .into_iter()
            .chain(gantt::note(schedule))
            .collect();
        let caption = (!notes.is_empty()).then(|| notes.join(" "));
        // The section says what is drawn.
        let axes = [Axis::linear(TIME), Axis::linear("processors")];
        let mut chart = Chart { id, caption, ..chart(&run.policy, axes, body) };
        self.dates(&mut chart);
        chart
    }

    /// Returns a chart with a line for each run that has points, and one for the recorded schedule.
    fn lines(
        &self,
        title: &str,
        axes: [Axis; 2],
        style: Style,
        points: impl Fn(&RunDoc) -> Option<Vec<(f64, f64)>>,
    ) -> Chart {
        let line = |(at, run): (usize, &RunDoc)| {
            let points = points(run).filter(|points| !points.is_empty())?;
            let series = DataSeries::line(&run.policy, points);
            Some(DataSeries { style, look: Some(ORDER[at % ORDER.len()]), ..series })
        };
        let runs = self.runs.iter().copied().chain(self.recorded);
        let series = runs.enumerate().filter_map(line).collect();
        chart(title, axes, Body::Lines { series })
    }

    /// Shows dates on a time axis if the log has them.
    fn dates(&self, chart: &mut Chart) {
        let bounds = match &chart.body {
            Body::Gantt { from, to, .. } => Some((*from, *to)),
            _ => chart.x.from.zip(chart.x.to),
        };
        let dates = self.runs.iter().find_map(|run| run.trace.dates.as_ref());
        let (Some((from, to)), Some(dates)) = (bounds, dates) else { return };
        // The jobs of a window may be submitted long before it.
        let Some(clock) = LocalClock::new(dates, from - BEFORE, to + BEFORE) else { return };
        chart.x.label = clock.label(from, to);
        chart.x.scale = AxisScale::Dates(clock);
    }

    fn without_wait(&self) -> String {
        let share = |run: &RunDoc| format!("{} {}", run.policy, percent(run.guarantees.without_wait));
        let shares: Vec<String> =
            self.recorded.into_iter().chain(self.runs.iter().copied()).map(share).collect();
        format!("Jobs without wait, included at the left edge: {}.", shares.join(", "))
    }
}

fn chart(title: &str, [x, y]: [Axis; 2], body: Body) -> Chart {
    Chart { id: chart_id(title), title: title.to_owned(), caption: None, x, y, body }
}

/// Starts a distribution at the least value. The jobs at or below it are a step at the left edge.
fn from_least(chart: &mut Chart) {
    chart.x.from = Some(LEAST);
    if let Body::Lines { series } = &mut chart.body {
        series.iter_mut().for_each(step_at_least);
    }
}

/// Replaces the points at or below the least value by one point with their share.
fn step_at_least(series: &mut DataSeries) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_waits_are_a_step_at_the_edge() {
        let mut series = DataSeries::steps("", vec![(0.0, 0.4), (0.5, 0.5), (1.0, 0.6), (90.0, 1.0)]);
        step_at_least(&mut series);
        assert_eq!(series.points, [(1.0, 0.6), (90.0, 1.0)]);
        let mut series = DataSeries::steps("", vec![(2.0, 0.5), (3.0, 1.0)]);
        step_at_least(&mut series);
        assert_eq!(series.points, [(2.0, 0.5), (3.0, 1.0)]);
    }
}
