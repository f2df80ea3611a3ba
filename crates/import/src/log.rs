//! A log that was imported: its jobs in the order of submission, its header, and the report.

use std::io::{self, Write};

use miserly_workload::swf::{Field, Record, Writer};

use crate::numbering::Numbering;
use crate::remark::Remarks;

/// A log in the Standard Workload Format that was made of something else.
#[derive(Debug)]
pub struct Imported {
    /// The comments at its top, `;` included.
    pub comments: Vec<String>,
    /// Its jobs, in the order of submission.
    pub records: Vec<Record>,
    /// What became of the input.
    pub report: Report,
}

/// What an import read and wrote, and what it could not carry over.
#[derive(Clone, Debug)]
pub struct Report {
    /// The input, as it was named.
    pub name: String,
    /// What the input is: `Slurm accounting` or `Batsim workload`.
    pub format: &'static str,
    /// How many lines, or jobs, the input has; header lines are not counted.
    pub read: u64,
    /// How many jobs were written: `read` less those left out.
    pub written: u64,
    /// The machine's processors, where they are known.
    pub procs: Option<u32>,
    /// The most processors that the recorded starts and runtimes have in use at once; `None` if no start is recorded.
    pub busiest: Option<u64>,
    /// Fields of the input that nothing was made of.
    pub unused: Vec<String>,
    /// What was left out or changed.
    pub remarks: Remarks,
}

impl Imported {
    /// Writes the log.
    ///
    /// # Errors
    /// If the output fails.
    pub fn write(&self, output: impl Write) -> io::Result<()> {
        let mut writer = Writer::new(io::BufWriter::new(output));
        self.comments.iter().try_for_each(|comment| writer.comment(comment))?;
        self.records.iter().try_for_each(|record| writer.job(record))?;
        writer.into_inner().flush()
    }
}

/// What the header of a log says.
#[derive(Default)]
pub(crate) struct Head<'a> {
    pub(crate) computer: &'a str,
    pub(crate) unix_start: Option<i64>,
    /// The zone, as the header says it: its field and value.
    pub(crate) zone: Option<String>,
    pub(crate) nodes: Option<u32>,
    pub(crate) procs: Option<u32>,
    pub(crate) queues: Option<&'a Numbering>,
    pub(crate) partitions: Option<&'a Numbering>,
    pub(crate) notes: Vec<String>,
}

impl Head<'_> {
    /// The comments of a log of `jobs` jobs.
    pub(crate) fn comments(&self, jobs: usize) -> Vec<String> {
        let mut comments = vec![
            "; Version: 2.2".to_owned(),
            format!("; Computer: {}", self.computer),
            format!("; Conversion: miserly {}", env!("CARGO_PKG_VERSION")),
            format!("; MaxJobs: {jobs}"),
            format!("; MaxRecords: {jobs}"),
        ];
        let mut add = |name: &str, value: Option<String>| {
            comments.extend(value.map(|value| format!("; {name}: {value}")));
        };
        add("UnixStartTime", self.unix_start.map(|start| start.to_string()));
        comments.extend(self.zone.iter().map(|zone| format!("; {zone}")));
        let mut add = |name: &str, value: Option<String>| {
            comments.extend(value.map(|value| format!("; {name}: {value}")));
        };
        add("MaxNodes", self.nodes.map(|nodes| nodes.to_string()));
        add("MaxProcs", self.procs.map(|procs| procs.to_string()));
        comments.extend(named("Queue", self.queues));
        comments.extend(named("Partition", self.partitions));
        comments.extend(self.notes.iter().map(|note| format!("; Note: {note}")));
        comments
    }
}

/// How many there are, and a line for each.
fn named(kind: &str, numbering: Option<&Numbering>) -> Vec<String> {
    let names = numbering.map_or(&[][..], Numbering::names);
    let total = (!names.is_empty()).then(|| format!("; Max{kind}s: {}", names.len()));
    let each = (1..).zip(names).map(|(number, name): (u64, _)| format!("; {kind}: {number} {name}"));
    total.into_iter().chain(each).collect()
}

/// Sorts by submission, job number and wait, so that the same run stands beside itself.
pub(crate) fn sort(records: &mut [Record]) {
    records
        .sort_by_key(|record| (record.get(Field::Submit), record.get(Field::Job), record.get(Field::Wait)));
}

/// Numbers the jobs from 1.
pub(crate) fn number(records: &mut [Record]) {
    (1..).zip(records).for_each(|(number, record)| record.set(Field::Job, number));
}

/// The most processors in use at once by the recorded starts and runtimes; ends come before starts.
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

/// When a job started and ended, and its processors; a job of no length is not in the way of others.
fn run(record: &Record) -> Option<(i64, i64, i64)> {
    let (wait, runtime) = (record.known(Field::Wait)?, record.positive(Field::Runtime)?);
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
        let head = Head { computer: "c", procs: Some(8), ..Head::default() };
        let comments = head.comments(2).join("\n");
        assert!(comments.ends_with("; MaxJobs: 2\n; MaxRecords: 2\n; MaxProcs: 8"), "{comments}");
    }
}
