//! `miserly workload convert`: the jobs of a log of any form, as a log or as a table.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use miserly_report::{AtomicFile, JobTable, count};
use miserly_workload::swf::{LogLine, ReadError, SwfWriter, is_count};
use miserly_workload::{FieldFilter, LogDates, Survey, Trace, TraceError};

use crate::args::{ConvertAnyArgs, ConvertArgs, JobForm};
use crate::commands::import;
use crate::output::{print, refuse_the_input_itself, to_file};
use crate::read_log::read_to_write;

pub(super) fn run(args: &ConvertArgs) -> anyhow::Result<()> {
    match (&args.form, &args.any.trace) {
        (Some(form), _) => import::run(form),
        (None, Some(trace)) => convert(trace, &args.any),
        // The parser requires one of them.
        (None, None) => Ok(()),
    }
}

fn convert(path: &Path, args: &ConvertAnyArgs) -> anyhow::Result<()> {
    if let Some(output) = &args.output {
        refuse_the_input_itself(path, "--output", output)?;
    }
    let trace = read_to_write(path, &args.rewrite, args.procs)?;
    let survey = trace.survey()?;
    let mut dropped = args.filter.dropped();
    for filter in &mut dropped {
        filter.resolve(&survey.header).with_context(|| trace.name().to_owned())?;
    }
    let conversion = Conversion { trace: &trace, survey: &survey, dropped, lenient: args.rewrite.lenient };
    let Some(path) = to_file(args.output.as_deref()) else {
        let counts = conversion.write(args.form(), BufWriter::new(io::stdout().lock()))?;
        note!("{}", counts.text(trace.name()).trim_end());
        return Ok(());
    };
    let failed = || format!("cannot write {}", path.display());
    let (file, mut output) = AtomicFile::create(path).with_context(failed)?;
    let counts = conversion.write(args.form(), &mut output)?;
    file.commit(output).with_context(failed)?;
    print(&counts.text(trace.name()))
}

impl ConvertAnyArgs {
    fn form(&self) -> JobForm {
        let is_csv = |path: &Path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
        let by_name = self.output.as_deref().filter(|path| is_csv(path)).map(|_| JobForm::Csv);
        self.format.or(by_name).unwrap_or(JobForm::Swf)
    }
}

/// A log of which the jobs are written that meet no condition.
struct Conversion<'a> {
    trace: &'a Trace,
    survey: &'a Survey,
    dropped: Vec<FieldFilter>,
    lenient: bool,
}

/// The number of jobs that are written, and of those that are left out by reason.
#[derive(Default)]
struct Counts {
    written: u64,
    left_out: BTreeMap<String, u64>,
}

impl Counts {
    fn text(&self, name: &str) -> String {
        let read = self.written + self.left_out.values().sum::<u64>();
        let reasons = self.left_out.iter().map(|(reason, jobs)| format!("  {} {reason}\n", count(*jobs)));
        let reasons: String = reasons.collect();
        format!("{name}: {} of {} jobs written\n{reasons}", count(self.written), count(read))
    }
}

impl Conversion<'_> {
    fn write(&self, form: JobForm, output: impl Write) -> anyhow::Result<Counts> {
        let counts = match form {
            JobForm::Swf => self.write_swf(output),
            JobForm::Csv => {
                let (columns, dates) = (self.survey.header.extra_columns(), LogDates::of(self.survey));
                let mut table = JobTable::new(output, &columns, dates.as_ref())?;
                let counts =
                    self.each(|line| if let LogLine::Job(job) = line { table.job(job) } else { Ok(()) })?;
                table.into_inner().flush()?;
                Ok(counts)
            }
        }?;
        if counts.written == 0 && counts.left_out.is_empty() {
            return Err(TraceError::Empty { name: self.trace.name().to_owned() }.into());
        }
        Ok(counts)
    }

    fn write_swf(&self, output: impl Write) -> anyhow::Result<Counts> {
        let mut writer = SwfWriter::new(output);
        // Without the jobs that are left out, the number of the header is that of another log.
        let is_whole = self.dropped.is_empty() && !self.lenient;
        let counts = self.each(|line| match line {
            LogLine::Comment(comment) if !is_whole && is_count(comment) => Ok(()),
            line => writer.line(line),
        })?;
        writer.into_inner().flush()?;
        Ok(counts)
    }

    /// Calls `write` with the lines of the log, without the jobs that are left out.
    fn each(&self, mut write: impl FnMut(&LogLine<'_>) -> io::Result<()>) -> anyhow::Result<Counts> {
        let (mut reader, mut counts) = (self.trace.reader()?, Counts::default());
        loop {
            let line = match reader.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(counts),
                Err(ReadError::Malformed { .. }) if self.lenient => {
                    *counts.left_out.entry("malformed".to_owned()).or_default() += 1;
                    continue;
                }
                Err(error) => return Err(self.trace.read_error(error).into()),
            };
            if let LogLine::Job(job) = line {
                if let Some(filter) = self.dropped.iter().find(|filter| filter.matches(job)) {
                    *counts.left_out.entry(filter.to_string()).or_default() += 1;
                    continue;
                }
                counts.written += 1;
            }
            write(&line).context("cannot write the jobs")?;
        }
    }
}
