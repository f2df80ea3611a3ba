//! An imported log: its jobs in the order of submission, its header, and the report.

use std::io::{self, Write};
use std::sync::Arc;

use miserly_core::Procs;
use miserly_workload::swf::{ExtraColumns, Field, Record, SwfWriter};
use miserly_workload::{ConvertedLog, Sorter, TraceError};

use crate::error::ImportError;
use crate::number_map::NumberMap;
use crate::remark::{RemarkCount, Remarks};

/// A log that was converted from another format, of which few jobs are held in memory.
#[derive(Debug)]
pub struct Imported {
    /// Its comments and jobs.
    pub log: ConvertedLog,
    /// Report of the conversion.
    pub report: Report,
}

/// A log that was converted from another format, held in memory.
#[derive(Debug)]
pub struct ImportedLog {
    /// Comments at the top, including `;`.
    pub comments: Vec<String>,
    /// Jobs in the order of submission.
    pub records: Vec<Record>,
    /// Report of the conversion.
    pub report: Report,
}

/// The report of an import: counts and lost information.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name of the input.
    pub name: String,
    /// Format of the input, such as `Slurm accounting`.
    pub format: &'static str,
    /// Lines or jobs in the input, without header lines.
    pub read: u64,
    /// Written jobs: `read` minus the excluded ones.
    pub written: u64,
    /// Processors of the machine, if known.
    pub procs: Option<Procs>,
    /// Maximum of concurrently used processors by the recorded starts and runtimes; `None` without
    /// recorded starts.
    pub busiest: Option<u64>,
    /// Unused fields of the input.
    pub unused: Vec<String>,
    /// Remarks on excluded and changed jobs.
    pub remarks: Remarks,
    /// The rules of the column map that left rows out: the parts of [`Remark::Dropped`](crate::Remark::Dropped).
    pub rules: Vec<RuleCount>,
    /// What a user of the log must know, a sentence each.
    pub notes: Vec<String>,
    /// The states of [`Remark::UnknownState`](crate::Remark::UnknownState).
    pub unknown_states: UnknownStatesReport,
}

/// The final states whose meaning is unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnknownStatesReport {
    /// The commonest ones.
    pub most: Vec<UnknownState>,
    /// Jobs in other ones.
    pub more: u64,
    /// What to write into the column map of a table so that it knows them.
    pub remedy: Option<String>,
}

/// A final state whose meaning is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownState {
    /// The state as written.
    pub state: String,
    /// Number of its jobs.
    pub jobs: u64,
}

/// A rule of a column map, and the rows that it left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleCount {
    /// The rule as written.
    pub text: String,
    /// Number of rows, with examples.
    pub tally: RemarkCount,
}

impl Imported {
    /// Reads the jobs into memory.
    ///
    /// # Errors
    /// The temporary file of the jobs cannot be read.
    pub fn held(self) -> Result<ImportedLog, ImportError> {
        let mut records = Vec::with_capacity(usize::try_from(self.report.written).unwrap_or(0));
        let read = self.log.each_job(|record| {
            records.push(record.clone());
            io::Result::Ok(())
        });
        read.map_err(|error| unsorted(&self.report.name, error))?;
        Ok(ImportedLog { comments: self.log.comments.to_vec(), records, report: self.report })
    }
}

/// Returns the error for jobs that cannot be sorted.
pub(crate) fn unsorted(name: &str, error: io::Error) -> ImportError {
    TraceError::Sort { name: name.into(), error }.into()
}

/// Returns the submission of a job, by which a log is sorted.
pub(crate) fn submission(record: &Record) -> i64 {
    record.get(Field::Submit)
}

impl ImportedLog {
    /// Moves the jobs to where few are held in memory.
    ///
    /// # Errors
    /// The temporary file of the jobs cannot be written.
    pub fn sorted(self) -> Result<Imported, ImportError> {
        let failed = |error| unsorted(&self.report.name, error);
        let mut jobs = Sorter::new(submission);
        self.records.iter().try_for_each(|record| jobs.push(record)).map_err(failed)?;
        let jobs = Arc::new(jobs.finish().map_err(failed)?);
        let log = ConvertedLog { comments: self.comments.into(), jobs, begin: 0, is_numbered: false };
        Ok(Imported { log, report: self.report })
    }

    /// Writes the log.
    ///
    /// # Errors
    /// The output fails.
    pub fn write(&self, output: impl Write) -> io::Result<()> {
        let mut writer = SwfWriter::new(io::BufWriter::new(output));
        self.comments.iter().try_for_each(|comment| writer.comment(comment))?;
        self.records.iter().try_for_each(|record| writer.job(record))?;
        writer.into_inner().flush()
    }
}

/// The header of a log.
#[derive(Default)]
pub(crate) struct LogHeader<'a> {
    pub(crate) computer: &'a str,
    pub(crate) unix_start: Option<i64>,
    /// Time zone as the header's field and value.
    pub(crate) zone: Option<String>,
    pub(crate) nodes: Option<u32>,
    pub(crate) procs: Option<Procs>,
    /// Users and groups with names, if these are kept.
    pub(crate) users: Option<&'a NumberMap>,
    pub(crate) groups: Option<&'a NumberMap>,
    pub(crate) queues: Option<&'a NumberMap>,
    pub(crate) partitions: Option<&'a NumberMap>,
    /// Original ids of the jobs, if these are not their numbers.
    pub(crate) jobs: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) extras: ExtraColumns,
}

impl LogHeader<'_> {
    /// Returns the comments of a log with `jobs` jobs.
    pub(crate) fn comments(&self, jobs: u64) -> Vec<String> {
        let mut comments = vec![
            "; Version: 2.2".to_owned(),
            format!("; Computer: {}", self.computer),
            format!("; Conversion: miserly {}", env!("CARGO_PKG_VERSION")),
            format!("; MaxJobs: {jobs}"),
            format!("; MaxRecords: {jobs}"),
        ];
        let optional = [
            self.unix_start.map(|start| format!("; UnixStartTime: {start}")),
            self.zone.as_ref().map(|zone| format!("; {zone}")),
            self.nodes.map(|nodes| format!("; MaxNodes: {nodes}")),
            self.procs.map(|procs| format!("; MaxProcs: {procs}")),
        ];
        comments.extend(optional.into_iter().flatten());
        let names = |map: Option<&NumberMap>| map.map_or(vec![], |map| map.names().to_vec());
        comments.extend(named("User", &names(self.users)));
        comments.extend(named("Group", &names(self.groups)));
        comments.extend(named("Queue", &names(self.queues)));
        comments.extend(named("Partition", &names(self.partitions)));
        comments.extend((1..).zip(&self.jobs).map(|(number, id): (u64, _)| format!("; Job: {number} {id}")));
        comments.extend(self.notes.iter().map(|note| format!("; Note: {note}")));
        comments.extend((!self.extras.is_empty()).then(|| self.extras.to_string()));
        comments
    }
}

/// Returns the number of names and a line for each. A name in quotes may have line ends.
fn named(kind: &str, names: &[String]) -> Vec<String> {
    let total = (!names.is_empty()).then(|| format!("; Max{kind}s: {}", names.len()));
    let line = |(number, name): (u64, &String)| {
        format!("; {kind}: {number} {}", name.replace(char::is_control, "\u{fffd}"))
    };
    let each = (1..).zip(names).map(line);
    total.into_iter().chain(each).collect()
}

/// Numbers the jobs from 1.
pub(crate) fn number(records: &mut [Record]) {
    (1..).zip(records).for_each(|(number, record)| record.set(Field::Job, number));
}

/// The maximum of concurrently used processors. It holds the ends and starts of the jobs in the system.
#[derive(Default)]
pub(crate) struct Busiest {
    /// Instants at which the use changes, and by how much.
    changes: Vec<(i64, i64)>,
    /// The number of changes from which those of the past are counted.
    enough: usize,
    used: i64,
    most: Option<i64>,
}

impl Busiest {
    /// Fewest changes that are sorted at once.
    const FEWEST: usize = 1 << 14;

    /// Adds the next job in the order of submission.
    pub(crate) fn add(&mut self, record: &Record) {
        let Some((start, end, procs)) = run(record) else { return };
        if self.changes.len() > self.enough.max(Busiest::FEWEST) {
            self.count(record.get(Field::Submit));
            self.enough = 2 * self.changes.len();
        }
        self.changes.extend([(start, procs), (end, -procs)]);
    }

    /// Counts the changes before an instant. Ends precede starts at the same instant.
    #[expect(
        clippy::stable_sort_primitive,
        reason = "changes that are left are in order, which this sort uses"
    )]
    fn count(&mut self, now: i64) {
        self.changes.sort();
        let past = self.changes.partition_point(|(at, _)| *at < now);
        for (_, change) in self.changes.drain(..past) {
            self.used += change;
            self.most = self.most.max(Some(self.used));
        }
    }

    /// Returns the maximum; `None` without a job that ran.
    pub(crate) fn most(mut self) -> Option<u64> {
        self.count(i64::MAX);
        self.most.and_then(|most| u64::try_from(most).ok())
    }
}

/// Returns start, end and processors of a job with a positive runtime.
fn run(record: &Record) -> Option<(i64, i64, i64)> {
    let (wait, runtime) = (record.recorded(Field::Wait)?, record.positive(Field::Runtime)?);
    let procs = record.positive(Field::Allocated)?;
    let start = record.get(Field::Submit).checked_add_unsigned(wait)?;
    Some((start, start.checked_add_unsigned(runtime)?, i64::try_from(procs).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(submit: i64, wait: i64, runtime: i64, procs: i64) -> Record {
        let mut record = Record::unknown();
        let fields = [Field::Submit, Field::Wait, Field::Runtime, Field::Allocated];
        fields
            .into_iter()
            .zip([submit, wait, runtime, procs])
            .for_each(|(field, value)| record.set(field, value));
        record
    }

    #[test]
    fn the_busiest_instant() {
        let most = |runs: &[(i64, i64, i64, i64)]| {
            let mut busiest = Busiest::default();
            for &(s, w, r, p) in runs {
                busiest.add(&record(s, w, r, p));
            }
            busiest.most()
        };
        assert_eq!(most(&[(0, 5, 10, 3), (0, 10, 10, 4), (1, 0, 1, 5)]), Some(7));
        assert_eq!(most(&[(0, 0, 10, 3), (0, 10, 10, 4)]), Some(4), "one ends as the other starts");
        assert_eq!(most(&[(0, -1, 10, 3), (0, 5, -1, 4)]), None);
    }

    #[test]
    fn the_busiest_instant_of_many_jobs() {
        let mut busiest = Busiest::default();
        // Two each 5 s, each of 30 s: twelve are there at once, and the later ones are larger.
        for job in 0..60_000 {
            busiest.add(&record(job / 2 * 5, 5, 30, 1 + job / 30_000));
            assert!(busiest.changes.len() <= Busiest::FEWEST + 2);
        }
        assert_eq!(busiest.most(), Some(24));
    }

    #[test]
    fn a_header_says_what_is_known() {
        let head = LogHeader { computer: "c", procs: Some(Procs::new(8)), ..LogHeader::default() };
        let comments = head.comments(2).join("\n");
        assert!(comments.ends_with("; MaxJobs: 2\n; MaxRecords: 2\n; MaxProcs: 8"), "{comments}");
    }
}
