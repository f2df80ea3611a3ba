//! The page: the parts, the days, and the largest jobs.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use miserly_api::model::JobView;
use miserly_report::chart::{Axis, Bar, Body, Chart};
use miserly_report::decimals;
use miserly_report::page::{Block, Page, Section, TableCell, TableData};
use miserly_view::{UsageBy, UsageSums, cpu_hours, usage_sums, word};

use super::{HEADER, cells};
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
    let mut sections = vec![section("Parts", vec![Block::Table(table(parts))])];
    if days.len() > 1 {
        sections.push(section("Days", vec![Block::Chart(chart(&days)), Block::Table(table(&days))]));
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

fn chart(days: &[UsageSums]) -> Chart {
    let bins = days.iter().enumerate().map(|(nth, day)| {
        let middle = nth as f64;
        Bar { from: middle - 0.4, to: middle + 0.4, value: day.cpu_hours }
    });
    Chart {
        id: "days".to_owned(),
        title: "Processor hours by the day of the end".to_owned(),
        caption: None,
        x: Axis::category("day", days.iter().map(|day| day.part.clone()).collect()),
        y: Axis::linear("processor hours").from_zero(),
        body: Body::Bars { bins: bins.collect() },
    }
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
