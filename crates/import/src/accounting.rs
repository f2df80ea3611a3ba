//! Accounting of a batch system: every row of a finished run becomes a job.

use std::io;
use std::sync::Arc;

use jiff::tz::TimeZone;
use miserly_workload::swf::{ExtraColumns, Field, ReadError, Record};
use miserly_workload::{ConvertedLog, Sorted, Sorter, Trace};

use crate::error::{FieldError, ImportError};
use crate::format::Format;
use crate::job::{NumberMaps, RowJobs, Unfinished, jobs_of_row};
use crate::log::{Busiest, Imported, LogHeader, Report, RuleCount, submission, unsorted};
use crate::options::{ImportOptions, SubmitAt};
use crate::remark::{Remark, Remarks};
use crate::row::{Column, Row};
use crate::table::{SameJob, StatusLine, UnknownStates, join_parts, keep_last};

/// A day in seconds.
const DAY: i64 = 86_400;

/// The time after which a job that runs without a limit counts as a runaway, in seconds.
const LONG: i64 = 30 * DAY;

/// Calls `work` with each line of accounting that is neither blank nor a comment after `#`, and its number.
///
/// # Errors
/// The input is unreadable, `work` fails, or the last line is cut and the options are not lenient.
pub(crate) fn lines(
    trace: &Trace,
    accounting: &mut Accounting<'_>,
    mut work: impl FnMut(&mut Accounting<'_>, &str, u64) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut lines = trace.reader()?;
    loop {
        let read = lines.next_raw().map_err(|error| unreadable(trace, error))?;
        let Some(line) = read else { return Ok(()) };
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\r', ' ']);
        if text.trim().is_empty() || text.starts_with('#') {
            continue;
        }
        let text = text.to_owned();
        // The system ends every line, so this one is cut.
        if !lines.has_line_end() {
            return accounting.cut(trace.name(), lines.line());
        }
        work(accounting, &text, lines.line())?;
    }
}

fn unreadable(trace: &Trace, error: ReadError) -> ImportError {
    match error {
        ReadError::TooLong { line } => ImportError::TooLong { name: trace.name().into(), line },
        error => trace.read_error(error).into(),
    }
}

/// The state of the conversion.
pub(crate) struct Accounting<'a> {
    format: Format,
    options: &'a ImportOptions,
    /// The rows, where the jobs are made of all of them.
    rows: Option<Sorter<[i64; 3]>>,
    jobs: Sorter<i64>,
    /// Why a job could not be kept.
    failure: Option<io::Error>,
    pub(crate) numbers: NumberMaps,
    remarks: Remarks,
    pub(crate) unknown_states: UnknownStates,
    pub(crate) unused: Vec<String>,
    read: u64,
    has_ids: bool,
    /// Jobs that run, with the place of their row.
    running: Vec<(Unfinished, String)>,
    /// The latest time of a row.
    latest: i64,
    /// What is known of a table.
    pub(crate) table: Option<TableFacts>,
}

/// What is known of a table beside its rows.
pub(crate) struct TableFacts {
    /// Name of its column map.
    pub(crate) map: String,
    pub(crate) same_job: SameJob,
    /// Whether its times count from an unknown instant.
    pub(crate) is_relative: bool,
    /// Whether all jobs have numbers of their own.
    pub(crate) has_numbers: bool,
    pub(crate) zone: Option<TimeZone>,
    pub(crate) rules: Vec<RuleCount>,
    pub(crate) notes: Vec<String>,
    /// The line of its map for the final states.
    pub(crate) status: Option<StatusLine>,
}

/// The order of accounting: equal runs are neighbours.
fn by_run(record: &Record) -> [i64; 3] {
    [Field::Submit, Field::Job, Field::Wait].map(|field| record.get(field))
}

/// The order in which the runs or parts of a job are neighbours.
fn by_job(record: &Record) -> [i64; 3] {
    [Field::Job, Field::Submit, Field::Wait].map(|field| record.get(field))
}

impl Accounting<'_> {
    pub(crate) fn new(format: Format, options: &ImportOptions) -> Accounting<'_> {
        Accounting { rows: Some(Sorter::new(by_run)), ..Accounting::of_jobs(format, options) }
    }

    /// Returns the state of a conversion of a table.
    pub(crate) fn of_table(same_job: SameJob, options: &ImportOptions) -> Accounting<'_> {
        let is_made_of_all = matches!(same_job, SameJob::Last | SameJob::Gang);
        let rows = is_made_of_all.then(|| Sorter::new(by_job));
        Accounting { rows, ..Accounting::of_jobs(Format::Table, options) }
    }

    /// Returns the state of a conversion in which each row is a job.
    fn of_jobs(format: Format, options: &ImportOptions) -> Accounting<'_> {
        Accounting {
            format,
            options,
            rows: None,
            jobs: Sorter::new(submission),
            failure: None,
            numbers: NumberMaps::new(options.keep_ids),
            remarks: Remarks::default(),
            unknown_states: UnknownStates::default(),
            unused: vec![],
            read: 0,
            has_ids: false,
            running: vec![],
            latest: 0,
            table: None,
        }
    }

    /// Adds the jobs of a row, which is at `line`, or refuses an invalid one.
    pub(crate) fn add(&mut self, row: Result<Row<'_>, FieldError>, line: u64) -> Result<(), FieldError> {
        self.add_at(row, || format!("line {line}"))
    }

    /// Adds the jobs of a row. `place` is its place in the input.
    pub(crate) fn add_at(
        &mut self,
        row: Result<Row<'_>, FieldError>,
        place: impl Fn() -> String,
    ) -> Result<(), FieldError> {
        let found = row.and_then(|row| {
            self.has_ids |= row.has(Column::Job);
            let jobs = jobs_of_row(&row, self.options, &mut self.numbers)?;
            if jobs.remarks.contains(&Remark::UnknownState) {
                self.unknown_states.add(row.text(Column::State));
            }
            Ok(jobs)
        });
        let RowJobs { records, count, remarks, unfinished, latest } = match found {
            Ok(jobs) => jobs,
            Err(error) => return self.refuse(error, place),
        };
        self.read += count;
        self.latest = self.latest.max(latest);
        for remark in remarks {
            self.remarks.add_all(remark, count, &place);
        }
        self.running.extend(unfinished.map(|unfinished| (unfinished, place())));
        for record in &records {
            self.keep(record);
        }
        Ok(())
    }

    /// Counts an invalid row, or refuses it.
    pub(crate) fn refuse(&mut self, error: FieldError, place: impl Fn() -> String) -> Result<(), FieldError> {
        if !self.options.lenient {
            return Err(error);
        }
        self.leave_out_at(Remark::Malformed, || format!("{}: {error}", place()));
        Ok(())
    }

    /// Adds a job.
    pub(crate) fn push(&mut self, record: &Record, remarks: &[Remark], place: &dyn Fn() -> String) {
        self.read += 1;
        for &remark in remarks {
            self.remarks.add(remark, place);
        }
        self.keep(record);
    }

    /// Keeps a row or a job. After a failure no more is kept.
    fn keep(&mut self, record: &Record) {
        if self.failure.is_none() {
            let kept = match &mut self.rows {
                Some(rows) => rows.push(record),
                None => self.jobs.push(record),
            };
            self.failure = kept.err();
        }
    }

    /// Counts a record that is not a job.
    pub(crate) fn leave_out(&mut self, remark: Remark, line: u64) {
        self.leave_out_at(remark, || format!("line {line}"));
    }

    /// Counts a row that is not a job.
    pub(crate) fn leave_out_at(&mut self, remark: Remark, place: impl FnOnce() -> String) {
        self.read += 1;
        self.remarks.add(remark, place);
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

    pub(crate) fn finish(mut self, name: &str) -> Result<Imported, ImportError> {
        self.judge_running();
        let jobs = self.sorted().map_err(|error| unsorted(name, error))?;
        let keeps_ids = self.options.keep_ids
            && match &self.table {
                None => self.has_ids,
                Some(table) => table.has_numbers,
            };
        let written = jobs.count();
        let mut log =
            ConvertedLog { comments: [].into(), jobs: Arc::new(jobs), begin: 0, is_numbered: !keeps_ids };
        let (mut first, mut busiest) = (None, Busiest::default());
        let read = log.each_job(|record| {
            first.get_or_insert(record.get(Field::Submit));
            busiest.add(record);
            io::Result::Ok(())
        });
        read.map_err(|error| unsorted(name, error))?;
        let Some(first) = first else {
            return Err(ImportError::Empty { name: name.into(), read: self.read, wanted: "over" });
        };
        log.begin = first;
        if !keeps_ids && self.options.keep_ids && self.table.is_some() {
            self.remarks.add_all(Remark::NumberedAgain, written, || "all jobs".into());
        }
        let (rules, notes) =
            self.table.as_ref().map(|table| (table.rules.clone(), table.notes.clone())).unwrap_or_default();
        let status = self.table.as_ref().and_then(|table| table.status.as_ref());
        let report = Report {
            name: name.into(),
            format: self.format.about(),
            read: self.read,
            written,
            procs: self.options.procs,
            busiest: busiest.most(),
            unused: std::mem::take(&mut self.unused),
            remarks: std::mem::take(&mut self.remarks),
            rules,
            notes,
            unknown_states: self.unknown_states.report(status),
        };
        let header = self.head(first, &report, keeps_ids, log.jobs.extra_columns());
        log.comments = header.comments(written).into();
        Ok(Imported { log, report })
    }

    /// Returns the jobs in the order of submission. Rows of the same instant stay in their order.
    fn sorted(&mut self) -> io::Result<Sorted<i64>> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let mut jobs = std::mem::replace(&mut self.jobs, Sorter::new(submission));
        let Some(rows) = self.rows.take() else { return jobs.finish() };
        let rows = Arc::new(rows.finish()?);
        let remarks = &mut self.remarks;
        match self.table.as_ref().map(|table| table.same_job) {
            Some(SameJob::Last) => keep_last(&rows, remarks, |job| jobs.push(job))?,
            Some(_) => join_parts(&rows, remarks, |job| jobs.push(job))?,
            None if self.has_ids => {
                let mut runs = Sorter::new(by_job);
                let keep = |run: &Record| jobs.push(run).and_then(|()| runs.push(run));
                without_repetitions(&rows, remarks, keep)?;
                count_runs(&Arc::new(runs.finish()?), remarks)?;
            }
            None => fold(&rows, |_, _| false, |job| jobs.push(job))?,
        }
        jobs.finish()
    }

    /// Tells runaway jobs from those that ran when the accounting was read: at its latest time, their limit had ended more
    /// than a day before.
    fn judge_running(&mut self) {
        for (Unfinished { start, limit }, place) in std::mem::take(&mut self.running) {
            let end = start.saturating_add(limit.map_or(LONG, |limit| limit.saturating_add(DAY)));
            let remark = if end < self.latest { Remark::Runaway } else { Remark::Unfinished };
            self.remarks.add(remark, || place);
        }
    }

    fn head(&self, first: i64, report: &Report, keeps_ids: bool, extras: ExtraColumns) -> LogHeader<'_> {
        let local = report.remarks.count(Remark::LocalTime) > 0;
        let of_table = self.table.as_ref().and_then(|table| table.zone.as_ref());
        let zone = self.options.time_zone.as_ref().or(of_table).and_then(zone_field);
        LogHeader {
            computer: self.format.computer(),
            unix_start: Some(first).filter(|_| !self.table.as_ref().is_some_and(|table| table.is_relative)),
            zone: zone.or_else(|| local.then(|| "TimeZone: 0".into())),
            nodes: self.options.nodes,
            procs: self.options.procs,
            users: Some(&self.numbers.users).filter(|_| self.options.keep_ids),
            groups: Some(&self.numbers.groups).filter(|_| self.options.keep_ids),
            queues: Some(&self.numbers.queues),
            partitions: Some(&self.numbers.partitions),
            jobs: vec![],
            notes: self.notes(local, report, keeps_ids),
            extras,
        }
    }

    fn notes(&self, local: bool, report: &Report, keeps_ids: bool) -> Vec<String> {
        let Report { name, read, written, .. } = report;
        let name = name.rsplit('/').next().unwrap_or(name);
        let submission = match self.options.submit_at {
            SubmitAt::Submit => "the submission is when the user submitted the job",
            SubmitAt::Eligible => "the submission is when the job became eligible",
        };
        let ids = match (self.options.keep_ids, keeps_ids) {
            (true, true) => "jobs, users and groups have the ids or names that they had on the cluster",
            (true, false) => {
                "jobs are numbered by submission; users and groups have the ids or names that they had on the cluster"
            }
            (false, _) => "jobs are numbered by submission, users and groups by appearance",
        };
        let mut notes =
            vec![format!("made of the {} {name}: {written} jobs of {read} read", self.format.about())];
        if matches!(self.format, Format::Slurm | Format::SlurmJson) {
            notes.push("queues are Slurm's partitions; partitions are Slurm's QOS".into());
        }
        if let Some(table) = &self.table {
            notes.push(format!("columns by {}", table.map));
            notes.extend(table.notes.iter().cloned());
        } else {
            notes.push(
                "a job that was requeued is a job for each of its runs; the runtime is without suspension"
                    .into(),
            );
        }
        notes.extend([submission.into(), ids.into()]);
        notes.extend(
            self.options
                .cpus_per_node
                .map(|cpus| format!("a size that is only known in nodes counts {cpus} processors for each")),
        );
        if local {
            notes.push("the times are the cluster's local time, read as UTC".into());
        }
        notes
    }
}

/// Returns a time zone as a field of the header: its name, or the seconds east of Greenwich.
fn zone_field(zone: &TimeZone) -> Option<String> {
    let offset = || Some(format!("TimeZone: {}", zone.to_fixed_offset().ok()?.seconds()));
    zone.iana_name().map(|name| format!("TimeZoneString: {name}")).or_else(offset)
}

/// Folds neighbours: `work` says whether the later one is a part of the earlier one, which it may change. `done` has each
/// of the others.
pub(crate) fn fold(
    sorted: &Arc<Sorted<[i64; 3]>>,
    mut work: impl FnMut(&mut Record, &Record) -> bool,
    mut done: impl FnMut(&Record) -> io::Result<()>,
) -> io::Result<()> {
    let (mut reader, mut kept) = (sorted.reader(), None::<Record>);
    while let Some(later) = reader.next_record()? {
        if let Some(kept) = &mut kept {
            if work(kept, later) {
                continue;
            }
            done(kept)?;
        }
        kept = Some(later.clone());
    }
    kept.as_ref().map_or(Ok(()), done)
}

/// Leaves out runs that are there already.
fn without_repetitions(
    runs: &Arc<Sorted<[i64; 3]>>,
    remarks: &mut Remarks,
    done: impl FnMut(&Record) -> io::Result<()>,
) -> io::Result<()> {
    let is_repeated = |earlier: &mut Record, later: &Record| {
        let same = earlier == later;
        if same {
            remarks.add(Remark::Repeated, || format!("job {}", later.get(Field::Job)));
        }
        same
    };
    fold(runs, is_repeated, done)
}

/// Counts the runs with the number of an earlier one.
fn count_runs(runs: &Arc<Sorted<[i64; 3]>>, remarks: &mut Remarks) -> io::Result<()> {
    let count = |earlier: &mut Record, later: &Record| {
        if earlier.get(Field::Job) == later.get(Field::Job) {
            let remark = if is_requeued(earlier, later) { Remark::RunAgain } else { Remark::Recycled };
            remarks.add(remark, || format!("job {}", earlier.get(Field::Job)));
        }
        false
    };
    fold(runs, count, |_| Ok(()))
}

/// Returns whether a run with the number of an earlier one is the same job again: of the same user, and submitted at most a
/// day after the earlier run.
fn is_requeued(earlier: &Record, later: &Record) -> bool {
    let known = |field| earlier.recorded(field).map_or(0, u64::cast_signed);
    let end = earlier.get(Field::Submit) + known(Field::Wait) + known(Field::Runtime);
    earlier.get(Field::User) == later.get(Field::User) && later.get(Field::Submit) <= end + DAY
}
