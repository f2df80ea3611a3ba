//! Detection of errors and anomalies in a log.

use std::collections::BTreeMap;

use crate::jobs::ProcsField;
use crate::swf::{Deviations, Header, LogLine, ReadError, Record};
use crate::trace::{Trace, TraceError};

mod anomaly;

mod line;

mod across;

mod header;

pub use anomaly::{Anomaly, Severity};

use across::Across;
use miserly_core::Procs;

/// Maximum number of findings per kind with details. Further ones have only line numbers.
const DETAILS: usize = 20;

/// The result of a check.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// Name of the log.
    pub name: String,
    /// Processors of the machine: as given, else from the header.
    pub procs: Option<Procs>,
    /// All lines.
    pub lines: u64,
    /// Lines that are neither comments nor blank.
    pub read: u64,
    /// Lines among them that a simulation skips: malformed, or with a finding of
    /// [`Severity::Skipped`].
    pub left_out: u64,
    /// Findings by kind, without empty kinds.
    pub findings: BTreeMap<Anomaly, Finding>,
}

/// All findings of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Number of findings.
    pub count: u64,
    /// Line numbers from 1, ascending. Fewer than `count` for findings on the log as a whole.
    pub lines: Vec<u64>,
    /// Details of the first findings, if the kind has any.
    pub details: Vec<String>,
}

impl CheckReport {
    /// Returns whether there are no findings.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// Returns the number of findings of a severity.
    pub fn count(&self, severity: Severity) -> u64 {
        let these = self.findings.iter().filter(|(anomaly, _)| anomaly.severity() == severity);
        these.map(|(_, finding)| finding.count).sum()
    }
}

/// The findings collected so far.
#[derive(Default)]
struct Findings(BTreeMap<Anomaly, Finding>);

impl Findings {
    fn add(&mut self, anomaly: Anomaly, line: impl Into<Option<u64>>) {
        let finding = self.0.entry(anomaly).or_default();
        finding.count += 1;
        finding.lines.extend(line.into());
    }

    /// Adds a detail to a kind, up to the limit.
    fn add_detail(&mut self, anomaly: Anomaly, detail: impl FnOnce() -> String) {
        let details = &mut self.0.entry(anomaly).or_default().details;
        if details.len() < DETAILS {
            details.push(detail());
        }
    }
}

/// Checks a log.
///
/// `procs` overrides the header's machine size. `field` is the preferred field for a job's size.
/// Memory grows with the log: a few dozen bytes per job.
///
/// # Errors
/// The log cannot be read. Readable but wrong content is a finding.
pub fn check(trace: &Trace, procs: Option<Procs>, field: ProcsField) -> Result<CheckReport, TraceError> {
    let survey = trace.survey()?;
    let procs = procs.or_else(|| survey.header.procs());
    let mut pass = Pass { procs, field, ..Pass::default() };
    let mut reader = trace.reader()?;
    let mut before = Deviations::default();
    loop {
        let line = reader.line() + 1;
        let read = reader.next_line();
        match read {
            Ok(None) => break,
            Ok(Some(LogLine::Blank)) => {}
            Ok(Some(LogLine::Comment(comment))) => header::note(comment, line, &mut pass.header_lines),
            Ok(Some(LogLine::Job(record))) => pass.job(record, line),
            Err(ReadError::Malformed { error, .. }) => {
                pass.read += 1;
                pass.left_out += 1;
                pass.findings.add(Anomaly::Malformed, line);
                pass.findings.add_detail(Anomaly::Malformed, || format!("line {line}: {error}"));
            }
            Err(error) => return Err(trace.read_error(error)),
        }
        let found = reader.deviations();
        pass.deviations(before, found, line);
        before = found;
    }
    pass.name_extra_fields(&survey.header, before.most_fields);
    Ok(pass.finish(trace.name(), &survey.header, reader.line()))
}

/// The pass over the lines.
#[derive(Default)]
struct Pass {
    procs: Option<Procs>,
    field: ProcsField,
    read: u64,
    left_out: u64,
    across: Across,
    header_lines: header::HeaderLines,
    findings: Findings,
}

impl Pass {
    fn job(&mut self, record: &Record, line: u64) {
        self.read += 1;
        let mut skipped = false;
        for anomaly in line::anomalies(record, self.field, self.procs) {
            self.findings.add(anomaly, line);
            skipped |= anomaly.severity() == Severity::Skipped;
        }
        self.left_out += u64::from(skipped);
        self.across.add(record, self.field, line, &mut self.findings);
    }

    /// Adds the deviations of a line.
    fn deviations(&mut self, before: Deviations, found: Deviations, line: u64) {
        let kinds = [
            (Anomaly::ExtraFields, found.extra_fields > before.extra_fields),
            (Anomaly::MissingFields, found.missing_fields > before.missing_fields),
            (Anomaly::Decimals, found.decimals > before.decimals),
        ];
        for (anomaly, _) in kinds.into_iter().filter(|(_, found)| *found) {
            self.findings.add(anomaly, line);
        }
    }

    /// Adds the names of the fields behind the eighteenth, which a header may have as `; Field: 19 energy`.
    fn name_extra_fields(&mut self, header: &Header, most: u64) {
        let names = header.names_by("Field");
        for number in 19..=most.min(18 + DETAILS as u64) {
            let name = u32::try_from(number).ok().and_then(|number| names.get(number));
            let name = name.map_or_else(String::new, |name| format!(" ({name})"));
            self.findings.add_detail(Anomaly::ExtraFields, || format!("field {number}{name}"));
        }
    }

    fn finish(mut self, name: &str, header: &Header, lines: u64) -> CheckReport {
        let malformed = self.findings.0.get(&Anomaly::Malformed).map_or(0, |finding| finding.count);
        if malformed == self.read {
            self.findings.add(Anomaly::NoJobs, None);
        }
        header::check(header, self.read, &self.header_lines, &mut self.findings);
        self.across.finish(self.procs, &mut self.findings);
        CheckReport {
            name: name.to_owned(),
            procs: self.procs,
            lines,
            read: self.read,
            left_out: self.left_out,
            findings: self.findings.0,
        }
    }
}

#[cfg(test)]
mod tests;
