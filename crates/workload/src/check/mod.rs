//! What is wrong or odd in a log, line by line.

use std::collections::BTreeMap;

use crate::jobs::ProcsField;
use crate::swf::{Header, Line, ReadError, Record};
use crate::trace::{Trace, TraceError};

mod anomaly;

mod line;

mod across;

mod header;

pub use anomaly::{Anomaly, Severity};

use across::Across;

/// How many findings of a kind are told in words; of the others only the lines are kept.
const DETAILS: usize = 20;

/// What a check found.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// The log's name.
    pub name: String,
    /// The machine's processors: as given, else as the header says.
    pub procs: Option<u32>,
    /// All lines.
    pub lines: u64,
    /// Lines that are neither comments nor blank.
    pub read: u64,
    /// Of those, the ones that a simulation leaves out: malformed, or with a finding of [`Severity::Skipped`].
    pub left_out: u64,
    /// What was found, by kind; kinds of which nothing was found are not there.
    pub findings: BTreeMap<Anomaly, Finding>,
}

/// All that was found of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// How often.
    pub count: u64,
    /// Where, from 1, ascending. Fewer than `count` where something is missing from the log as a whole.
    pub lines: Vec<u64>,
    /// The first of them in words, where there is more to say than the kind.
    pub details: Vec<String>,
}

impl CheckReport {
    /// Whether nothing at all was found.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    /// How many findings are this severe.
    pub fn count(&self, severity: Severity) -> u64 {
        let these = self.findings.iter().filter(|(anomaly, _)| anomaly.severity() == severity);
        these.map(|(_, finding)| finding.count).sum()
    }
}

/// Where the parts of the check put what they find.
#[derive(Default)]
struct Findings(BTreeMap<Anomaly, Finding>);

impl Findings {
    fn add(&mut self, anomaly: Anomaly, line: impl Into<Option<u64>>) {
        let finding = self.0.entry(anomaly).or_default();
        finding.count += 1;
        finding.lines.extend(line.into());
    }

    /// Says more of a kind, unless enough has been said.
    fn tell(&mut self, anomaly: Anomaly, told: impl FnOnce() -> String) {
        let details = &mut self.0.entry(anomaly).or_default().details;
        if details.len() < DETAILS {
            details.push(told());
        }
    }
}

/// Checks a log. `procs` overrides the header's machine size; `field` says which field is a job's size where
/// both are known. Memory grows with the log: a few dozen bytes per job.
///
/// # Errors
/// If the log cannot be read; what can be read and is wrong is a finding.
pub fn check(trace: &Trace, procs: Option<u32>, field: ProcsField) -> Result<CheckReport, TraceError> {
    let survey = trace.survey()?;
    let procs = procs.or_else(|| survey.header.procs());
    let mut pass = Pass { procs, field, ..Pass::default() };
    let mut reader = trace.reader()?;
    loop {
        let line = reader.line() + 1;
        match reader.next_line() {
            Ok(None) => break,
            Ok(Some(Line::Blank)) => {}
            Ok(Some(Line::Comment(comment))) => header::note(comment, line, &mut pass.header_lines),
            Ok(Some(Line::Job(record))) => pass.job(record, line),
            Err(ReadError::Malformed { error, .. }) => {
                pass.read += 1;
                pass.left_out += 1;
                pass.findings.add(Anomaly::Malformed, line);
                pass.findings.tell(Anomaly::Malformed, || format!("line {line}: {error}"));
            }
            Err(error) => return Err(trace.read_error(error)),
        }
    }
    Ok(pass.finish(trace.name(), &survey.header, reader.line()))
}

/// The one pass over the lines.
#[derive(Default)]
struct Pass {
    procs: Option<u32>,
    field: ProcsField,
    read: u64,
    left_out: u64,
    across: Across,
    header_lines: header::Lines,
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
