//! Import of Slurm's accounting as printed by `sacct`.
//!
//! Every line of a finished run becomes a job. With `-D`, a requeued job has a line for each of its
//! runs, each with its own submission by Slurm.

mod columns;

mod job;

mod state;

mod values;

#[cfg(test)]
mod tests;

use jiff::tz::TimeZone;
use miserly_core::Procs;
use miserly_workload::Trace;
use miserly_workload::swf::{Field, ReadError, Record};

pub(crate) use columns::is_accounting;
pub use columns::{columns, command};

use self::columns::ColumnLayout;
use self::job::{LineResult, NumberMaps, line_result};
use crate::error::{FieldError, ImportError};
use crate::log::{ImportedLog, LogHeader, Report, busiest, number, sort};
use crate::number_map::NumberMap;
use crate::remark::{Remark, Remarks};

/// The time that counts as a job's submission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SubmitAt {
    /// Submission by the user.
    #[default]
    Submit,
    /// Eligibility: no dependency, begin time or hold delays the job.
    Eligible,
}

/// Options of the conversion.
#[derive(Clone, Debug, Default)]
pub struct SlurmOptions {
    /// Processors of the machine, which the accounting does not contain.
    pub procs: Option<Procs>,
    /// Nodes of the machine.
    pub nodes: Option<u32>,
    /// Time zone of the cluster, for the header and for times that are not seconds of the epoch.
    pub time_zone: Option<TimeZone>,
    /// Time that counts as a job's submission.
    pub submit_at: SubmitAt,
    /// Whether jobs, users and groups keep their ids instead of numbers in order of appearance.
    pub keep_ids: bool,
    /// Whether invalid lines are skipped and counted.
    pub lenient: bool,
}

/// Converts the output of `sacct -P`, with its header line, or without it in the columns of
/// [`command`].
///
/// Reads line by line and keeps the jobs, some 200 bytes each, to sort them.
///
/// # Errors
/// The input is unreadable, lacks columns, or has no finished job. Without `lenient`, also if a
/// line is invalid.
pub fn slurm(trace: &Trace, options: &SlurmOptions) -> Result<ImportedLog, ImportError> {
    let mut accounting = Accounting::new(options);
    let mut lines = trace.reader()?;
    let mut layout = None;
    loop {
        let read = lines.next_raw().map_err(|error| unreadable(trace, error))?;
        let Some(line) = read else { break };
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        if text.is_empty() {
            continue;
        }
        if layout.is_none() {
            layout = Some(ColumnLayout::from_first_line(&text, trace.name(), lines.line())?);
        }
        if let Some(layout) = layout.as_ref().filter(|layout| !layout.is_header(&text)) {
            let (name, line) = (trace.name(), lines.line());
            // sacct ends every line, so this one is cut.
            if !lines.has_line_end() {
                accounting.cut(name, line)?;
                break;
            }
            accounting.line(layout, &text, line).map_err(|error| ImportError::Line {
                name: name.into(),
                line,
                error,
            })?;
        }
    }
    accounting.unused = layout.map(|layout| layout.unused).unwrap_or_default();
    accounting.finish(trace.name())
}

fn unreadable(trace: &Trace, error: ReadError) -> ImportError {
    match error {
        ReadError::TooLong { line } => ImportError::TooLong { name: trace.name().into(), line },
        error => trace.read_error(error).into(),
    }
}

/// The state of the conversion.
struct Accounting<'a> {
    options: &'a SlurmOptions,
    records: Vec<Record>,
    numbers: NumberMaps,
    remarks: Remarks,
    unused: Vec<String>,
    read: u64,
}

impl Accounting<'_> {
    fn new(options: &SlurmOptions) -> Accounting<'_> {
        let kept = || NumberMap::new(options.keep_ids);
        let numbers = NumberMaps {
            users: kept(),
            groups: kept(),
            queues: NumberMap::new(false),
            qos: NumberMap::new(false),
            parts: NumberMap::new(false),
        };
        let (records, remarks, unused) = (vec![], Remarks::default(), vec![]);
        Accounting { options, records, numbers, remarks, unused, read: 0 }
    }

    fn line(&mut self, layout: &ColumnLayout, text: &str, line: u64) -> Result<(), FieldError> {
        self.read += 1;
        let found = layout.row(text).and_then(|row| line_result(&row, self.options, &mut self.numbers));
        let LineResult { record, remarks } = match found {
            Ok(line_result) => line_result,
            Err(error) if self.options.lenient => {
                self.remarks.add(Remark::Malformed, || format!("line {line}: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        for remark in remarks {
            self.remarks.add(remark, || format!("line {line}"));
        }
        self.records.extend(record);
        Ok(())
    }

    /// Refuses a line without a line end, or counts it.
    fn cut(&mut self, name: &str, line: u64) -> Result<(), ImportError> {
        self.read += 1;
        if !self.options.lenient {
            return Err(ImportError::Cut { name: name.into(), line });
        }
        self.remarks.add(Remark::Malformed, || format!("line {line}: no line end"));
        Ok(())
    }

    fn finish(mut self, name: &str) -> Result<ImportedLog, ImportError> {
        sort(&mut self.records);
        self.remove_repetitions();
        let Some(first) = self.records.first().map(|record| record.get(Field::Submit)) else {
            return Err(ImportError::Empty { name: name.into(), read: self.read, wanted: "over" });
        };
        for record in &mut self.records {
            record.set(Field::Submit, record.get(Field::Submit) - first);
        }
        if !self.options.keep_ids {
            number(&mut self.records);
        }
        let report = Report {
            name: name.into(),
            format: "Slurm accounting",
            read: self.read,
            written: self.records.len() as u64,
            procs: self.options.procs,
            busiest: busiest(&self.records),
            unused: std::mem::take(&mut self.unused),
            remarks: std::mem::take(&mut self.remarks),
        };
        let comments = self.head(first, &report).comments(self.records.len());
        Ok(ImportedLog { comments, records: self.records, report })
    }

    /// Removes duplicate runs and counts repeated jobs.
    fn remove_repetitions(&mut self) {
        let remarks = &mut self.remarks;
        self.records.dedup_by(|later, earlier| {
            let same = later == earlier;
            if same {
                remarks.add(Remark::Repeated, || format!("job {}", later.get(Field::Job)));
            }
            same
        });
        let mut jobs: Vec<i64> = self.records.iter().map(|record| record.get(Field::Job)).collect();
        jobs.sort_unstable();
        for pair in jobs.windows(2).filter(|pair| pair[0] == pair[1]) {
            remarks.add(Remark::RunAgain, || format!("job {}", pair[0]));
        }
    }

    fn head(&self, first: i64, report: &Report) -> LogHeader<'_> {
        let local = report.remarks.count(Remark::LocalTime) > 0;
        let zone = self.options.time_zone.as_ref().and_then(|zone| zone.iana_name());
        let zone = zone.map(|zone| format!("TimeZoneString: {zone}"));
        LogHeader {
            computer: "a cluster under Slurm",
            unix_start: Some(first),
            zone: zone.or_else(|| local.then(|| "TimeZone: 0".into())),
            nodes: self.options.nodes,
            procs: self.options.procs,
            queues: Some(&self.numbers.queues),
            partitions: Some(&self.numbers.qos),
            notes: self.notes(local, report),
        }
    }

    fn notes(&self, local: bool, report: &Report) -> Vec<String> {
        let Report { name, read, written, .. } = report;
        let name = name.rsplit('/').next().unwrap_or(name);
        let submission = match self.options.submit_at {
            SubmitAt::Submit => "the submission is when the user submitted the job",
            SubmitAt::Eligible => "the submission is when the job became eligible",
        };
        let ids = if self.options.keep_ids {
            "jobs, users and groups have the ids that they had on the cluster"
        } else {
            "jobs are numbered by submission, users and groups by appearance"
        };
        let mut notes = vec![
            format!("made of Slurm's accounting {name}: {written} jobs of {read} lines"),
            "queues are Slurm's partitions; partitions are Slurm's QOS".into(),
            "a job that was requeued is a job for each of its runs; the runtime is without suspension".into(),
            submission.into(),
            ids.into(),
        ];
        if local {
            notes.push("the times are the cluster's local time, read as UTC".into());
        }
        notes
    }
}
