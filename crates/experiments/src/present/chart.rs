//! Charts of an experiment's results.

use std::collections::BTreeSet;

use miserly_report::chart::{Axis, Bar, Body, Chart, DataSeries, Ramp, Style};
use miserly_report::decimals;
use miserly_report::page::Block;
use miserly_run::SettingsDoc;
use serde::Deserialize;
use serde_json::Value;

use super::drawn::Drawn;
use crate::chart_request::{AxisRequest, ChartKind, ChartRequest, LineRequest, Scale};
use crate::present::lines::{Lookup, first, part};
use crate::present::{gantt, matrix};
use crate::results::{Found, Results, at};
use crate::run_result::Schedule;

/// Returns the chart with its caption, or the caption alone if there is nothing to draw.
pub(crate) fn blocks(chart: &ChartRequest, results: &Results) -> Result<Vec<Block>, String> {
    let mut layout = Vec::new();
    let (body, missing) = match chart.kind {
        ChartKind::Line => lines(chart, results, line)?,
        ChartKind::Steps => lines(chart, results, steps)?,
        ChartKind::Series => lines(chart, results, over_time)?,
        ChartKind::Groups => lines(chart, results, groups)?,
        ChartKind::Points => lines(chart, results, points)?,
        ChartKind::Bars => one(chart, results, bars)?,
        ChartKind::Heat => heat(chart, results)?,
        ChartKind::Gantt | ChartKind::Matrix => one(chart, results, |line, results| {
            let Some((schedule, settings)) = recorded(line, results)? else { return Ok(None) };
            layout = schedule.matrix.as_ref().and_then(matrix::note).into_iter().collect();
            if chart.kind == ChartKind::Gantt {
                layout.extend(gantt::note(&schedule));
                return Ok(Some(gantt::body(&schedule, &settings).into()));
            }
            let matrix = schedule.matrix.as_ref().map(|matrix| matrix::body(matrix).into());
            matrix.map(Some).ok_or_else(|| NO_MATRIX.to_owned())
        })?,
    };
    let mut texts: Vec<String> = chart.note.iter().cloned().collect();
    if !missing.is_empty() {
        texts.push(format!("Not drawn, log missing: {}.", missing.join(", ")));
    }
    texts.extend(layout);
    if chart.kind != ChartKind::Line && several_seeds(chart, results) {
        texts.push("First seed only.".into());
    }
    let Some(body) = body else { return Ok(texts.into_iter().map(Block::Text).collect()) };
    let (x, y) = axes(chart, &body);
    let caption = (!texts.is_empty()).then(|| texts.join(" "));
    Ok(vec![Block::Chart(Chart {
        id: id(&chart.title),
        title: chart.title.clone(),
        caption,
        x,
        y,
        body: body.body,
    })])
}

const NO_WINDOW: &str = "no window was recorded; add gantt = [from, to] to the runs' record";

const NO_MATRIX: &str = "no matrix was recorded: add gantt = [from, to] to the record of runs under gang";

/// Returns the recorded window of the run of a line and its settings; `None` if the log is missing.
fn recorded(line: &LineRequest, results: &Results) -> Result<Option<(Schedule, SettingsDoc)>, String> {
    let Some(result) = first(results, &line.runs)? else { return Ok(None) };
    if result["gantt_window"].is_null() {
        return Err(NO_WINDOW.to_owned());
    }
    let schedule = Schedule::deserialize(result).map_err(|error| error.to_string())?;
    let settings = SettingsDoc::deserialize(&result["run"]["settings"]).map_err(|error| error.to_string())?;
    Ok(Some((schedule, settings)))
}

/// Returns whether some line has runs of several seeds, of which only one can be drawn.
fn several_seeds(chart: &ChartRequest, results: &Results) -> bool {
    let several = |line: &LineRequest| matches!(results.find(&line.runs), Ok(Found::Runs(documents)) if documents.len() > 1);
    chart.lines.iter().any(several)
}

/// The content of a chart, and the lines whose log is missing.
type DrawnLines = Result<(Option<Drawn>, Vec<String>), String>;

fn axes(chart: &ChartRequest, drawn: &Drawn) -> (Axis, Axis) {
    let axis = |AxisRequest { label, scale }: &AxisRequest, names: &[String]| match scale {
        _ if !names.is_empty() => Axis::category(label, names.to_vec()),
        Scale::Linear => Axis::linear(label),
        Scale::Log => Axis::log(label),
        Scale::Time => Axis::seconds(label),
        Scale::LogTime => Axis::log_seconds(label),
    };
    (axis(&chart.x, &drawn.columns), axis(&chart.y, &drawn.rows))
}

/// Names of files have their limits.
const LONGEST_ID: usize = 120;

/// Returns a name for files and links.
pub(crate) fn id(title: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = title.chars().map(plain).collect();
    let parts: Vec<_> = text.split('-').filter(|part| !part.is_empty()).collect();
    let name: String = parts.join("-").chars().take(LONGEST_ID).collect();
    if name.is_empty() { "chart".into() } else { name }
}

/// Returns one series per line of the chart.
fn lines(
    chart: &ChartRequest,
    results: &Results,
    series: fn(&ChartRequest, &LineRequest, &Results) -> Result<Option<DataSeries>, String>,
) -> DrawnLines {
    let (mut drawn, mut missing) = (Vec::new(), Vec::new());
    for line in &chart.lines {
        match series(chart, line, results).map_err(|problem| in_line(line, &problem))? {
            Some(series) => drawn.push(DataSeries { name: line.label.clone(), ..series }),
            None => missing.push(line.label.clone()),
        }
    }
    let columns = names(chart, results)?;
    let body = (!drawn.is_empty()).then(|| Drawn { columns, ..Drawn::from(Body::Lines { series: drawn }) });
    Ok((body, missing))
}

/// Returns the names along the x axis, in their order; none if there are numbers.
///
/// They are values of an axis of runs, or groups without ranges.
fn names(chart: &ChartRequest, results: &Results) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for line in &chart.lines {
        match (chart.kind, chart.along.as_deref()) {
            (ChartKind::Line, Some(axis)) => {
                let along = results.along(&line.runs, axis)?;
                // One name among numbers makes names of them all.
                if along.iter().any(|(name, _)| name.parse::<f64>().is_err()) {
                    names.extend(along.into_iter().map(|(name, _)| name));
                }
            }
            (ChartKind::Groups, _) => {
                if let Some((groups, _)) = breakdown(line, results)? {
                    names.extend(
                        groups
                            .iter()
                            .filter(|group| group.get("from").is_none_or(Value::is_null))
                            .map(group_name),
                    );
                }
            }
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    Ok(names)
}

/// Returns a chart of one line.
fn one(
    chart: &ChartRequest,
    results: &Results,
    draw: impl FnOnce(&LineRequest, &Results) -> Result<Option<Drawn>, String>,
) -> DrawnLines {
    let [line] = &chart.lines[..] else {
        return Err(format!("this kind of chart takes one line, not {}", chart.lines.len()));
    };
    let drawn = draw(line, results).map_err(|problem| in_line(line, &problem))?;
    let missing = if drawn.is_none() { vec![line.label.clone()] } else { vec![] };
    Ok((drawn, missing))
}

fn in_line(line: &LineRequest, problem: &str) -> String {
    format!("line {:?}: {problem}", line.label)
}

/// Returns a figure along an axis of runs, with its confidence interval over the seeds.
fn line(chart: &ChartRequest, line: &LineRequest, results: &Results) -> Result<Option<DataSeries>, String> {
    let axis = chart.along.as_deref().ok_or("a line chart needs x, such as x = \"factor\"")?;
    let (mut points, mut band) = (Vec::new(), Vec::new());
    let names = names(chart, results)?;
    for (x, found) in results.along(&line.runs, axis)? {
        let place = names.iter().position(|name| *name == x).map(|place| place as f64);
        let Some(x) = place.or_else(|| x.parse().ok()) else { continue };
        let figure = match Lookup::new(&found, &line.figure)? {
            Lookup::Figure(figure) => figure,
            Lookup::NoLog => return Ok(None),
            Lookup::Nothing => continue,
        };
        let y = figure.mean / line.unit;
        points.push((x, y));
        if let Some(width) = figure.half_width {
            let low = (figure.mean - width).max(least(&line.figure));
            band.push((x, low / line.unit, y + width / line.unit));
        }
    }
    Ok(Some(DataSeries::line("", points).with_band(band)))
}

/// Returns the least possible value of a figure. An interval does not reach below it.
pub(super) fn least(figure: &str) -> f64 {
    let is_slowdown = figure.contains("slowdown") && !figure.contains("width_slowdown");
    if is_slowdown { 1.0 } else { f64::NEG_INFINITY }
}

/// Returns pairs of a document as steps.
fn steps(_chart: &ChartRequest, line: &LineRequest, results: &Results) -> Result<Option<DataSeries>, String> {
    let pairs = listed_pairs(line, results)?;
    let scaled = |pairs: Vec<(f64, f64)>| pairs.into_iter().map(|(x, y)| (x / line.unit, y)).collect();
    Ok(pairs.map(|pairs| DataSeries::steps("", scaled(pairs))))
}

/// Returns pairs of a document as points.
fn points(
    _chart: &ChartRequest,
    line: &LineRequest,
    results: &Results,
) -> Result<Option<DataSeries>, String> {
    let pairs = listed_pairs(line, results)?;
    Ok(pairs.map(|pairs| DataSeries { style: Style::Points, ..DataSeries::line("", pairs) }))
}

fn listed_pairs(line: &LineRequest, results: &Results) -> Result<Option<Vec<(f64, f64)>>, String> {
    let Some(value) = part(results, &line.runs, &line.figure)? else { return Ok(None) };
    pairs(value).map(Some).ok_or_else(|| format!("{:?} is not a list of pairs", line.figure))
}

/// A figure of `details.series`, by the log's time in seconds.
fn over_time(
    _chart: &ChartRequest,
    line: &LineRequest,
    results: &Results,
) -> Result<Option<DataSeries>, String> {
    let Some(series) = part(results, &line.runs, "details.series")? else { return Ok(None) };
    let number = |field: &str| series.get(field).and_then(Value::as_f64);
    let step = number("step").ok_or("the results have no series over time")?;
    let values = series.get(&line.figure).and_then(Value::as_array);
    let values = values.ok_or_else(|| format!("the series over time has no {:?}", line.figure))?;
    let from = number("from").unwrap_or_default();
    let point = |(at, value): (usize, &Value)| Some((from + at as f64 * step, value.as_f64()? / line.unit));
    Ok(Some(DataSeries::steps("", values.iter().enumerate().filter_map(point).collect())))
}

/// A measure by the groups of a breakdown, at the middle of each group: `by.runtime-bin:metrics.wait.mean`.
fn groups(chart: &ChartRequest, line: &LineRequest, results: &Results) -> Result<Option<DataSeries>, String> {
    let Some((groups, measure)) = breakdown(line, results)? else { return Ok(None) };
    let names = names(chart, results)?;
    let middle = |group: &Value| {
        if let Some(place) = names.iter().position(|name| *name == group_name(group)) {
            return Some(place as f64);
        }
        let (from, to) = (group.get("from")?.as_f64()?, group.get("to")?.as_f64()?);
        Some(if from > 0.0 { (from * to).sqrt() } else { to / 2.0 })
    };
    let point = |group: &Value| Some((middle(group)?, at(group, measure)?.as_f64()? / line.unit));
    Ok(Some(DataSeries {
        style: Style::Line,
        ..DataSeries::line("", groups.iter().filter_map(point).collect())
    }))
}

/// Returns the groups of a breakdown, and the path of the measure of each.
fn breakdown<'a>(
    line: &'a LineRequest,
    results: &'a Results,
) -> Result<Option<(&'a Vec<Value>, &'a str)>, String> {
    let (path, measure) = line
        .figure
        .rsplit_once(':')
        .ok_or_else(|| format!("{:?}: write it as by.category:metrics.wait.mean", line.figure))?;
    let Some(value) = part(results, &line.runs, path)? else { return Ok(None) };
    let groups = value.as_array().ok_or_else(|| format!("{path:?} is not a breakdown"))?;
    Ok(Some((groups, measure)))
}

/// A measure by group, a row each, and line, a column each. Lines may have different groups; a cell that a line does not have stays empty.
fn heat(chart: &ChartRequest, results: &Results) -> DrawnLines {
    let (mut lines, mut missing) = (Vec::new(), Vec::new());
    for line in &chart.lines {
        match breakdown(line, results).map_err(|problem| in_line(line, &problem))? {
            Some((groups, measure)) => lines.push((line, groups, measure)),
            None => missing.push(line.label.clone()),
        }
    }
    let rows = group_names(lines.iter().flat_map(|(_, groups, _)| groups.iter()));
    let cell = |name: &String, (line, groups, measure): &(&LineRequest, &Vec<Value>, &str)| {
        let group = groups.iter().find(|group| group_name(group) == *name)?;
        Some(at(group, measure)?.as_f64()? / line.unit)
    };
    let cells: Vec<Vec<Option<f64>>> =
        rows.iter().map(|name| lines.iter().map(|line| cell(name, line)).collect()).collect();
    let counts = cells.iter().flatten().flatten().all(|value| value.fract() == 0.0);
    let negative = cells.iter().flatten().flatten().any(|value| *value < 0.0);
    let ramp = if negative { Ramp::Diverging { middle: 0.0 } } else { Ramp::Log };
    let body = Body::Heat { cells, ramp, decimals: usize::from(!counts) };
    let columns: Vec<String> = lines.into_iter().map(|(line, ..)| line.label.clone()).collect();
    let none = columns.is_empty();
    Ok(((!none).then_some(Drawn { body, columns, rows }), missing))
}

fn group_name(group: &Value) -> String {
    let name = group.get("name").or_else(|| group.get("group"));
    name.and_then(Value::as_str).unwrap_or("?").to_owned()
}

/// The names of groups, each once: by where their ranges begin, if they are ranges, else as they come.
fn group_names<'a>(groups: impl Iterator<Item = &'a Value>) -> Vec<String> {
    let mut named: Vec<(f64, String)> = Vec::new();
    for group in groups {
        let name = group_name(group);
        if !named.iter().any(|(_, known)| *known == name) {
            named.push((group.get("from").and_then(Value::as_f64).unwrap_or(f64::INFINITY), name));
        }
    }
    named.sort_by(|a, b| a.0.total_cmp(&b.0));
    named.into_iter().map(|(_, name)| name).collect()
}

/// Returns bins or pairs of a document as bars.
fn bars(line: &LineRequest, results: &Results) -> Result<Option<Drawn>, String> {
    let Some(value) = part(results, &line.runs, &line.figure)? else { return Ok(None) };
    if let Some(pairs) = pairs(value) {
        let bin = |(at, &(_, value)): (usize, &(f64, f64))| Bar {
            from: at as f64 - 0.4,
            to: at as f64 + 0.4,
            value,
        };
        let bins = pairs.iter().enumerate().map(bin).collect();
        let columns = pairs.iter().map(|(x, _)| decimals(x / line.unit, 0)).collect();
        return Ok(Some(Drawn { body: Body::Bars { bins }, columns, rows: vec![] }));
    }
    let bin = |bin: &Value| {
        let field = |name: &str| bin.get(name).and_then(Value::as_f64);
        Some(Bar { from: field("from")? / line.unit, to: field("to")? / line.unit, value: field("jobs")? })
    };
    let bins = value.as_array().and_then(|bins| bins.iter().map(bin).collect::<Option<Vec<_>>>());
    let bins = bins.ok_or_else(|| format!("{:?} is not a list of bins or pairs", line.figure))?;
    Ok(Some(Drawn::from(Body::Bars { bins })))
}

fn pairs(value: &Value) -> Option<Vec<(f64, f64)>> {
    let pair = |pair: &Value| Some((pair.get(0)?.as_f64()?, pair.get(1)?.as_f64()?));
    value.as_array()?.iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_slowdown_is_below_one() {
        let cut = ["metrics.slowdown.mean", "by.category:metrics.bounded_slowdown.mean"].map(least);
        assert_eq!(cut.map(|least| least > 0.0), [true; 2]);
        let whole = ["metrics.wait.mean", "metrics.width_slowdown.mean"].map(least);
        assert_eq!(whole.map(|least| least < 0.0), [true; 2]);
    }
}
