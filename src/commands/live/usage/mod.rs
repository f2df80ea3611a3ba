//! `miserly usage`: the resources of finished jobs, and their use.

mod page;

use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::Context;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use miserly_api::client::Client;
use miserly_api::model::{Filter, JobView};
use miserly_report::{decimals, percent};
use miserly_units::{duration_rounded, span_of_seconds};
use miserly_view::{UsageSums, usage_sums};
use serde::Serialize;

use super::client;
use super::text::{plain, table};
use crate::args::UsageArgs;
use crate::output::{print, print_json};
use crate::page::{check_page, write_page};

/// The answer as JSON.
#[derive(Serialize)]
struct UsageDoc<'a> {
    /// The first instant at which a counted job ended; `null` if there is no bound.
    since: Option<Timestamp>,
    /// The instant before which it ended.
    until: Timestamp,
    parts: &'a [UsageSums],
    all: &'a UsageSums,
}

pub(crate) fn run(args: &UsageArgs) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.report {
        check_page(path)?;
    }
    let zone = TimeZone::system();
    let (since, until) = bounds(args, &zone)?;
    let jobs = ended(&client(&args.daemon)?, args, since, until)?;
    let (parts, all) = usage_sums(&jobs, args.by, &zone);
    if let Some(path) = &args.report {
        write_page(path, &page::page(&jobs, &parts, &all, (since, until), &zone))?;
    }
    if args.json {
        print_json(&UsageDoc { since, until, parts: &parts, all: &all })?;
    } else if args.csv {
        print(&csv(&parts)?)?;
    } else if args.report.is_none() {
        print(&shown(args, &parts, &all))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn bounds(args: &UsageArgs, zone: &TimeZone) -> anyhow::Result<(Option<Timestamp>, Timestamp)> {
    let Some(first) = args.month else {
        return Ok((args.since, args.until.unwrap_or_else(Timestamp::now)));
    };
    let midnight = |date: jiff::civil::Date| Ok::<_, jiff::Error>(date.to_zoned(zone.clone())?.timestamp());
    let next = first.checked_add(1.month()).context("--month: it is beyond the calendar")?;
    Ok((Some(midnight(first)?), midnight(next)?))
}

/// Returns the jobs that ended between two instants.
fn ended(
    client: &Client,
    args: &UsageArgs,
    since: Option<Timestamp>,
    until: Timestamp,
) -> anyhow::Result<Vec<JobView>> {
    let counts = |job: &JobView| {
        job.phase.ended().is_some_and(|end| since.is_none_or(|since| end >= since) && end < until)
    };
    let filter = Filter {
        all: true,
        uid: args.mine.then(|| rustix::process::geteuid().as_raw()),
        queue: args.queue.clone(),
        details: true,
        ..Filter::default()
    };
    let mut found = vec![];
    client.each_page(&filter, |page| {
        found.extend(page.into_iter().filter(counts));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn csv(parts: &[UsageSums]) -> anyhow::Result<String> {
    let mut writer = csv::Writer::from_writer(vec![]);
    let none = [UsageSums::default()];
    for part in if parts.is_empty() { &none } else { parts } {
        writer.serialize(part)?;
    }
    let text = String::from_utf8(writer.into_inner().context("cannot write CSV")?)?;
    // The names of the columns come with the first row.
    Ok(text.split_inclusive('\n').take(parts.len() + 1).collect())
}

const HEADER: [&str; 9] =
    ["", "JOBS", "FAILED", "CANCELLED", "CPU HOURS", "CPU USED", "MEMORY USED", "MEAN WAIT", "KEPT"];

/// The column of the GPU hours, where there are any.
const GPU_HOURS: usize = 5;

fn shown(args: &UsageArgs, parts: &[UsageSums], all: &UsageSums) -> String {
    if parts.is_empty() {
        return "no job has ended in this time\n".to_owned();
    }
    let title = format!("{:?}", args.by).to_uppercase();
    let mut header: Vec<&str> = std::iter::once(&*title).chain(HEADER.into_iter().skip(1)).collect();
    let rows = parts.iter().chain((parts.len() > 1).then_some(all));
    let mut rows: Vec<(Vec<String>, &UsageSums)> = rows.map(|part| (cells(part), part)).collect();
    if all.gpu_hours > 0.0 {
        header.insert(GPU_HOURS, "GPU HOURS");
        for (cells, part) in &mut rows {
            cells.insert(GPU_HOURS, decimals(part.gpu_hours, 2));
        }
    }
    table(&header, &header[1..], rows.into_iter().map(|(cells, _)| cells))
}

/// Returns the cells of a part, as in [`HEADER`].
fn cells(part: &UsageSums) -> Vec<String> {
    let kept = (part.promised > 0).then(|| part.kept as f64 / part.promised as f64);
    vec![
        plain(&part.part),
        part.jobs.to_string(),
        part.failed.to_string(),
        part.cancelled.to_string(),
        decimals(part.cpu_hours, 2),
        percent(part.cpu_share()),
        percent(part.memory_share()),
        part.mean_wait().map_or_else(
            || "-".to_owned(),
            |wait| duration_rounded(span_of_seconds((wait * 10.0).round() / 10.0)),
        ),
        percent(kept),
    ]
}
