//! The history of one job.

mod clock;

mod document;

mod gantt;

mod held;

mod story;

mod watch;

mod why;

use std::collections::BTreeMap;

use miserly_core::JobNumber;
use miserly_policies::PolicySpec;
use miserly_report::TableStyle;
use miserly_run::RunSetup;
use miserly_sim::Observer;
use miserly_workload::LogDates;
use miserly_workload::swf::{Extra, Field, LogLine, Names, ReadError};
use serde::{Serialize, Serializer};

use self::clock::Clock;
use self::document::Document;
use self::gantt::chart;
use self::story::Story;
use self::watch::Watch;

/// The history of a job: of each submission under its number.
///
/// Serialized, it is a document, or a list of them if the number was submitted several times. Times are in seconds of the log.
pub struct Explanation {
    policy: String,
    job: JobNumber,
    /// The submissions that are in the run.
    watches: Vec<Watch>,
    /// The names and extra fields of each submission, if the log has any.
    extras: Vec<BTreeMap<&'static str, String>>,
    dates: Option<LogDates>,
}

/// Follows a job through a run. An observer of `observers` that has enough ends the run early.
///
/// # Errors
/// If the log has no such job, or the run fails.
pub fn explain(
    setup: &RunSetup,
    policy: &PolicySpec,
    job: JobNumber,
    observers: &mut [&mut dyn Observer],
) -> anyhow::Result<Explanation> {
    // Accounting has a requeued job once for each run, and old numbers again.
    let mut runs = 0;
    for logged in setup.jobs()? {
        runs += usize::from(logged?.request.number == job);
    }
    let mut watches: Vec<Watch> = (0..runs).map(|earlier| Watch::new(job, earlier, setup.procs())).collect();
    follow(setup, policy, &mut watches, observers)?;
    watches.retain(|watch| watch.story.is_some());
    if watches.is_empty() {
        return Err(absent(setup, job)?);
    }
    let extras = extras(setup, job)?;
    Ok(Explanation { policy: policy.to_string(), job, watches, extras, dates: setup.dates() })
}

impl Explanation {
    fn stories(&self) -> impl ExactSizeIterator<Item = (usize, &Watch, &Story)> {
        let stories: Vec<_> =
            self.watches.iter().filter_map(|watch| Some((watch, watch.story.as_ref()?))).collect();
        stories.into_iter().enumerate().map(|(place, (watch, story))| (place, watch, story))
    }

    /// Returns the history as text of this width, with the charts of the waits. `seconds` leaves out dates.
    pub fn text(&self, width: usize, seconds: bool) -> String {
        let clock = Clock::new(self.dates.clone(), seconds);
        let style = TableStyle { width: Some(width), seconds, ..TableStyle::default() };
        let mut texts = Vec::new();
        let stories = self.stories();
        let all = stories.len();
        for (place, watch, story) in stories {
            let chart = chart(story, &watch.held, &clock, width);
            let text = story.text(&self.policy, chart.as_deref(), &clock, style);
            let head = match all {
                1 => String::new(),
                _ => format!("number {}, submission {} of {all}:\n", self.job, place + 1),
            };
            texts.push(head + &text + &self.extras.get(place).map_or_else(String::new, extras_text));
        }
        texts.join("\n")
    }
}

impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let document = |(place, _, story): (usize, &Watch, &Story)| {
            let extras = self.extras.get(place).cloned().unwrap_or_default();
            Document::new(story, self.policy.clone(), extras)
        };
        let documents: Vec<Document> = self.stories().map(document).collect();
        match &documents[..] {
            [one] => one.serialize(serializer),
            several => several.serialize(serializer),
        }
    }
}

/// Returns the names in the header of the log and the extra fields of each submission of a job, if the log has any.
fn extras(setup: &RunSetup, job: JobNumber) -> anyhow::Result<Vec<BTreeMap<&'static str, String>>> {
    let mut found = Vec::new();
    let header = &setup.survey.header;
    let has_names = Names::FIELDS.iter().any(|field| !header.names(*field).is_empty());
    if header.extra_columns().is_empty() && !has_names {
        return Ok(found);
    }
    for record in setup.records()? {
        let record = record?;
        if record.get(Field::Job) == job {
            let name = |field: Field| Some((field.name(), setup.name_of(field, &record)?.to_owned()));
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

/// Plays the run until the job of each observer has ended, or one of `others` has enough.
fn follow(
    setup: &RunSetup,
    policy: &PolicySpec,
    watches: &mut [Watch],
    others: &mut [&mut dyn Observer],
) -> anyhow::Result<()> {
    let mut simulation = setup.simulation(policy)?;
    let mut jobs = setup.jobs()?.peekable();
    loop {
        let open = watches.iter_mut().filter(|watch| !watch.over());
        let mut open: Vec<&mut dyn Observer> = open.map(|watch| watch as &mut dyn Observer).collect();
        if open.is_empty() || others.iter().any(|other| other.has_enough()) {
            return Ok(());
        }
        for other in others.iter_mut() {
            open.push(&mut **other);
        }
        if simulation.step(&mut jobs, &mut open)?.is_none() {
            return Ok(());
        }
    }
}

/// Returns the reason why there is no such job in the run.
fn absent(setup: &RunSetup, job: JobNumber) -> anyhow::Result<anyhow::Error> {
    let mut reader = setup.trace.reader()?;
    loop {
        match reader.next_line() {
            Ok(None) | Err(ReadError::TooLong { .. } | ReadError::Io { .. }) => break,
            Ok(Some(LogLine::Job(record))) if record.get(Field::Job) == job => {
                let line = format!(":{}", reader.line());
                let line = if setup.trace.is_converted() { "" } else { &line };
                return Ok(anyhow::anyhow!(
                    "{}{line}: job {job} is not simulated; miserly simulate prints the number of skipped jobs by reason",
                    setup.trace.name()
                ));
            }
            Ok(Some(_)) | Err(_) => {}
        }
    }
    Ok(anyhow::anyhow!("{}: no job {job}; the job number is field 1 of a line", setup.trace.name()))
}
