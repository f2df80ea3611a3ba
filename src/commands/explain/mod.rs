//! `miserly explain`: the history of one job.

mod clock;

mod document;

mod gantt;

mod held;

mod story;

mod watch;

mod why;

use std::collections::BTreeMap;

use miserly_core::JobNumber;
use miserly_report::TableStyle;
use miserly_run::RunSetup;
use miserly_sim::Observer;
use miserly_workload::Estimates;
use miserly_workload::swf::{Extra, Field, LogLine, Names, ReadError};

use self::clock::Clock;
use self::document::Document;
use self::gantt::chart;
use self::story::Story;
use self::watch::Watch;

use crate::args::ExplainArgs;
use crate::output::{print, print_json, width};
use crate::run_options::prepare;

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let prepared = prepare(&args.trace, &args.run, Estimates::default())?;
    // Accounting has a requeued job once for each run, and old numbers again.
    let mut runs = 0;
    for job in prepared.jobs()? {
        runs += usize::from(job?.request.number == args.job);
    }
    let watches = (0..runs).map(|earlier| Watch::new(args.job, earlier, prepared.procs()));
    let mut watches: Vec<Watch> = watches.collect();
    follow(&prepared, args, &mut watches)?;
    let stories: Vec<_> = watches.iter().filter_map(|watch| Some((watch.story.as_ref()?, watch))).collect();
    if stories.is_empty() {
        return Err(absent(&prepared, args.job)?);
    }
    let extras = extras(&prepared, args.job)?;
    if args.json {
        let document = |(place, (story, _)): (usize, &(&Story, &Watch))| {
            let extras = extras.get(place).cloned().unwrap_or_default();
            Document::new(story, args.policy.to_string(), extras)
        };
        let documents: Vec<_> = stories.iter().enumerate().map(document).collect();
        return if let [one] = &documents[..] { print_json(one) } else { print_json(&documents) };
    }
    let clock = Clock::new(prepared.dates(), args.seconds);
    let style = TableStyle { width: Some(width()), seconds: args.seconds, ..TableStyle::default() };
    let mut texts = Vec::new();
    for (place, (story, watch)) in stories.iter().enumerate() {
        let chart = chart(story, &watch.held, &clock, width());
        let text = story.text(&args.policy.to_string(), chart.as_deref(), &clock, style);
        let head = match stories.len() {
            1 => String::new(),
            all => format!("number {}, submission {} of {all}:\n", args.job, place + 1),
        };
        texts.push(head + &text + &extras.get(place).map_or_else(String::new, extras_text));
    }
    print(&texts.join("\n"))
}

/// Returns the names in the header of the log and the extra fields of each submission of a job, if the log has any.
fn extras(prepared: &RunSetup, job: JobNumber) -> anyhow::Result<Vec<BTreeMap<&'static str, String>>> {
    let mut found = Vec::new();
    let header = &prepared.survey.header;
    let has_names = Names::FIELDS.iter().any(|field| !header.names(*field).is_empty());
    if header.extra_columns().is_empty() && !has_names {
        return Ok(found);
    }
    for record in prepared.records()? {
        let record = record?;
        if record.get(Field::Job) == job {
            let name = |field: Field| Some((field.name(), prepared.name_of(field, &record)?.to_owned()));
            let value = |extra: Extra| Some((extra.name(), record.extras().text(extra)?.into_owned()));
            let names = Names::FIELDS.into_iter().filter_map(name);
            found.push(names.chain(Extra::ALL.into_iter().filter_map(value)).collect());
        }
    }
    Ok(found)
}

/// Returns a line with the names and extra fields of a job, if it has any.
fn extras_text(extras: &BTreeMap<&'static str, String>) -> String {
    if extras.is_empty() {
        return String::new();
    }
    let one =
        |(extra, text): (&&str, &String)| format!("{extra} {}", text.replace(char::is_control, "\u{fffd}"));
    format!("\nin the log: {}\n", extras.iter().map(one).collect::<Vec<_>>().join(", "))
}

/// Plays the run until the job of each observer has ended.
fn follow(prepared: &RunSetup, args: &ExplainArgs, watches: &mut [Watch]) -> anyhow::Result<()> {
    let mut simulation = prepared.simulation(&args.policy)?;
    let mut jobs = prepared.jobs()?.peekable();
    loop {
        let open = watches.iter_mut().filter(|watch| !watch.over());
        let mut open: Vec<&mut dyn Observer> = open.map(|watch| watch as &mut dyn Observer).collect();
        if open.is_empty() || simulation.step(&mut jobs, &mut open)?.is_none() {
            return Ok(());
        }
    }
}

/// Returns the reason why there is no such job in the run.
fn absent(prepared: &RunSetup, job: JobNumber) -> anyhow::Result<anyhow::Error> {
    let mut reader = prepared.trace.reader()?;
    loop {
        match reader.next_line() {
            Ok(None) | Err(ReadError::TooLong { .. } | ReadError::Io { .. }) => break,
            Ok(Some(LogLine::Job(record))) if record.get(Field::Job) == job => {
                let line = format!(":{}", reader.line());
                let line = if prepared.trace.is_converted() { "" } else { &line };
                return Ok(anyhow::anyhow!(
                    "{}{line}: job {job} is not simulated; miserly simulate prints the number of skipped jobs by reason",
                    prepared.trace.name()
                ));
            }
            Ok(Some(_)) | Err(_) => {}
        }
    }
    Ok(anyhow::anyhow!("{}: no job {job}; the job number is field 1 of a line", prepared.trace.name()))
}
