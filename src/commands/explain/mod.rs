//! `miserly explain`: the history of one job.

mod clock;

mod document;

mod gantt;

mod held;

mod story;

mod watch;

mod why;

use miserly_core::JobNumber;
use miserly_report::TableStyle;
use miserly_run::RunSetup;
use miserly_workload::Estimates;
use miserly_workload::swf::{Field, LogLine, ReadError};

use self::clock::Clock;
use self::document::Document;
use self::gantt::chart;
use self::watch::Watch;

use crate::args::ExplainArgs;
use crate::output::{print, print_json, width};
use crate::run_options::{open, prepare};

pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let prepared = prepare(open(&args.trace)?, &args.run, Estimates::default())?;
    let mut watch = Watch::new(args.job, prepared.procs());
    let mut simulation = prepared.simulation(&args.policy)?;
    let mut jobs = prepared.jobs()?.peekable();
    while !watch.over() && simulation.step(&mut jobs, &mut [&mut watch])?.is_some() {}
    let Some(story) = watch.story else { return Err(absent(&prepared, args.job)?) };
    if args.json {
        return print_json(&Document::new(&story, args.policy.to_string()));
    }
    let clock = Clock::new(prepared.dates(), args.seconds);
    let style = TableStyle { width: Some(width()), seconds: args.seconds, ..TableStyle::default() };
    let chart = chart(&story, &watch.held, &clock, width());
    print(&story.text(&args.policy.to_string(), chart.as_deref(), &clock, style))
}

/// Returns the reason why there is no such job in the run.
fn absent(prepared: &RunSetup, job: JobNumber) -> anyhow::Result<anyhow::Error> {
    let mut reader = prepared.trace.reader()?;
    loop {
        match reader.next_line() {
            Ok(None) | Err(ReadError::TooLong { .. } | ReadError::Io { .. }) => break,
            Ok(Some(LogLine::Job(record))) if record.get(Field::Job) == job => {
                let line = reader.line();
                return Ok(anyhow::anyhow!(
                    "{}:{line}: job {job} is not simulated; miserly simulate prints the number of skipped jobs by reason",
                    prepared.trace.name()
                ));
            }
            Ok(Some(_)) | Err(_) => {}
        }
    }
    Ok(anyhow::anyhow!("{}: no job {job}; the job number is field 1 of a line", prepared.trace.name()))
}
