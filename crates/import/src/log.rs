//! An imported log: its jobs in the order of submission, its header, and the report.

use std::io::{self, Write};

use miserly_core::Procs;
use miserly_workload::swf::{Extra, ExtraColumns, Field, Record, SwfWriter};

use crate::number_map::NumberMap;
use crate::remark::Remarks;

/// A log in the Standard Workload Format, converted from another format.
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
}

impl ImportedLog {
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
    pub(crate) queues: Option<&'a NumberMap>,
    pub(crate) partitions: Option<&'a NumberMap>,
    /// Original ids of the jobs, if these are not their numbers.
    pub(crate) jobs: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) extras: ExtraColumns,
}

impl LogHeader<'_> {
    /// Returns the comments of a log with `jobs` jobs.
    pub(crate) fn comments(&self, jobs: usize) -> Vec<String> {
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
        comments.extend(named("Queue", &names(self.queues)));
        comments.extend(named("Partition", &names(self.partitions)));
        comments.extend((1..).zip(&self.jobs).map(|(number, id): (u64, _)| format!("; Job: {number} {id}")));
        comments.extend(self.notes.iter().map(|note| format!("; Note: {note}")));
        comments.extend((!self.extras.is_empty()).then(|| self.extras.to_string()));
        comments
    }
}

/// Returns the number of names and a line for each.
fn named(kind: &str, names: &[String]) -> Vec<String> {
    let total = (!names.is_empty()).then(|| format!("; Max{kind}s: {}", names.len()));
    let each = (1..).zip(names).map(|(number, name): (u64, _)| format!("; {kind}: {number} {name}"));
    total.into_iter().chain(each).collect()
}

/// Returns a column for each extra field that a job has.
pub(crate) fn extra_columns(records: &[Record]) -> ExtraColumns {
    let is_known = |extra: &Extra| records.iter().any(|record| record.extras().has(*extra));
    Extra::ALL.into_iter().filter(is_known).collect()
}

/// Sorts by submission, job number and wait, so that equal runs are neighbours.
pub(crate) fn sort(records: &mut [Record]) {
    records
        .sort_by_key(|record| (record.get(Field::Submit), record.get(Field::Job), record.get(Field::Wait)));
}

/// Numbers the jobs from 1.
pub(crate) fn number(records: &mut [Record]) {
    (1..).zip(records).for_each(|(number, record)| record.set(Field::Job, number));
}

/// Returns the maximum of concurrently used processors. Ends precede starts at the same instant.
pub(crate) fn busiest(records: &[Record]) -> Option<u64> {
    let runs = records.iter().filter_map(run);
    let mut changes: Vec<(i64, i64)> =
        runs.flat_map(|(start, end, procs)| [(start, procs), (end, -procs)]).collect();
    changes.sort_unstable();
    let mut used = 0;
    let most = changes.iter().map(|(_, change)| {
        used += change;
        used
    });
    most.max().and_then(|most| u64::try_from(most).ok())
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
            busiest(&runs.iter().map(|&(s, w, r, p)| record(s, w, r, p)).collect::<Vec<_>>())
        };
        assert_eq!(most(&[(0, 5, 10, 3), (0, 10, 10, 4), (1, 0, 1, 5)]), Some(7));
        assert_eq!(most(&[(0, 0, 10, 3), (0, 10, 10, 4)]), Some(4), "one ends as the other starts");
        assert_eq!(most(&[(0, -1, 10, 3), (0, 5, -1, 4)]), None);
    }

    #[test]
    fn a_header_says_what_is_known() {
        let head = LogHeader { computer: "c", procs: Some(Procs::new(8)), ..LogHeader::default() };
        let comments = head.comments(2).join("\n");
        assert!(comments.ends_with("; MaxJobs: 2\n; MaxRecords: 2\n; MaxProcs: 8"), "{comments}");
    }
}
