//! The page: the parts, the days, and the largest jobs.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::model::JobView;
use miserly_report::chart::{Axis, BarSeries, Body, Chart, GroupBar};
use miserly_report::decimals;
use miserly_report::page::{Block, Page, Section, TableCell, TableData};
use miserly_view::{UsageBy, UsageSums, cpu_hours, usage_sums, word};

use super::{HEADER, cells, plain};
use crate::page::made_by;

/// The largest jobs that the page lists.
const LARGEST: usize = 20;

pub(super) fn page(
    jobs: &[JobView],
    parts: &[UsageSums],
    all: &UsageSums,
    (since, until): (Option<Timestamp>, Timestamp),
    zone: &TimeZone,
) -> Page {
    let day = |at: Timestamp| at.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string();
    let since = since.map_or_else(|| "the beginning".to_owned(), day);
    let (days, _) = usage_sums(jobs, UsageBy::Day, zone);
    let lead = format!(
        "{} jobs ended from {since} to {}. They had {} processor hours.",
        all.jobs,
        day(until),
        decimals(all.cpu_hours, 1)
    );
    let section = |heading: &str, blocks| Section { heading: heading.to_owned(), blocks };
    let parts = [hours("parts", parts), shares("parts", parts), Block::Table(table(parts))];
    let mut sections = vec![section("Parts", parts.into())];
    if days.len() > 1 {
        let days = [hours("days", &days), shares("days", &days), Block::Table(table(&days))];
        sections.push(section("Days", days.into()));
    }
    sections.push(section("The largest jobs", vec![Block::Table(largest(jobs))]));
    Page { title: "Usage".to_owned(), lead: Some(lead), sections, provenance: made_by() }
}

fn table(parts: &[UsageSums]) -> TableData {
    let row = |part: &UsageSums| {
        let mut cells = cells(part).into_iter();
        let first = cells.next().map(TableCell::text);
        first.into_iter().chain(cells.map(TableCell::number)).collect()
    };
    let title = |text: &&str| text.to_lowercase();
    TableData {
        caption: None,
        header: vec![HEADER.iter().map(title).collect()],
        rows: parts.iter().map(row).collect(),
    }
}

/// The most parts of a chart: those with the most processor hours.
const DRAWN: usize = 40;

/// Returns a chart with a group of bars for each part: all days, or else the largest parts.
fn chart(id: &str, title: &str, parts: &[UsageSums], y: Axis, series: &[(&str, Figure)]) -> Chart {
    let mut drawn: Vec<&UsageSums> = parts.iter().collect();
    drawn.sort_by(|one, other| other.cpu_hours.total_cmp(&one.cpu_hours));
    let least = drawn.get(DRAWN - 1).map_or(0.0, |part| part.cpu_hours);
    // The parts keep their order.
    let drawn: Vec<&UsageSums> = parts.iter().filter(|part| part.cpu_hours >= least).take(DRAWN).collect();
    let left_out = parts.len() - drawn.len();
    let bars = |figure: Figure| {
        drawn.iter().map(|part| figure(part).map(|value| GroupBar { value, interval: None })).collect()
    };
    let of_figure =
        |&(name, figure): &(&str, Figure)| BarSeries { name: name.to_owned(), bars: bars(figure) };
    Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: (left_out > 0).then(|| format!("Without {left_out} smaller parts, which the table has.")),
        x: Axis::category("", drawn.iter().map(|part| plain(&part.part)).collect()),
        y,
        body: Body::Groups { series: series.iter().map(of_figure).collect() },
    }
}

/// A figure of a part; `None` if it is not known.
type Figure = fn(&UsageSums) -> Option<f64>;

/// Returns the hours of processors that each part had, and those that it used.
fn hours(id: &str, parts: &[UsageSums]) -> Block {
    let y = Axis::linear("processor hours").from_zero();
    let series: [(&str, Figure); 2] = [
        ("had", |part| Some(part.cpu_hours)),
        ("used, where it is known", |part| (part.known_cpu_hours > 0.0).then_some(part.used_cpu_hours)),
    ];
    Block::Chart(chart(&format!("hours-{id}"), "Processor hours", parts, y, &series))
}

/// Returns the shares of the requested processors and memory that each part used, and that of kept promises.
fn shares(id: &str, parts: &[UsageSums]) -> Block {
    let y = Axis { from: Some(0.0), ..Axis::linear("%") };
    let series: [(&str, Figure); 3] = [
        ("processors used", |part| Some(100.0 * part.cpu_share()?)),
        ("memory used", |part| Some(100.0 * part.memory_share()?)),
        ("promises kept", |part| {
            (part.promised > 0).then(|| 100.0 * part.kept as f64 / part.promised as f64)
        }),
    ];
    Block::Chart(chart(
        &format!("shares-{id}"),
        "Used of what was requested, and kept promises",
        parts,
        y,
        &series,
    ))
}

fn largest(jobs: &[JobView]) -> TableData {
    let mut largest: Vec<&JobView> = jobs.iter().collect();
    largest.sort_by(|one, other| {
        cpu_hours(other).total_cmp(&cpu_hours(one)).then(one.number.cmp(&other.number))
    });
    let row = |job: &&JobView| {
        vec![
            TableCell::number(job.number.to_string()),
            TableCell::text(job.name.clone()),
            TableCell::text(job.user.clone()),
            TableCell::text(job.queue.clone()),
            TableCell::number(job.cpus.to_string()),
            TableCell::number(decimals(cpu_hours(job), 2)),
            TableCell::text(word(job)),
        ]
    };
    let header = ["job", "name", "user", "queue", "processors", "processor hours", "state"];
    TableData {
        caption: None,
        header: vec![header.map(str::to_owned).to_vec()],
        rows: largest.iter().take(LARGEST).map(row).collect(),
    }
}
