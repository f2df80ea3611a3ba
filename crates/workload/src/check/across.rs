//! Checks across lines: order, numbers, dependencies, capacity.

use miserly_core::Procs;

use super::{Anomaly, Findings};
use crate::jobs::ProcsField;
use crate::swf::{Field, Record};

/// The state of the checks across lines.
#[derive(Default)]
pub(super) struct Across {
    latest_submit: i64,
    last_number: i64,
    /// Job numbers and their lines.
    numbers: Vec<(i64, u64)>,
    /// Lines and the numbers of their preceding jobs.
    preceding: Vec<(u64, i64)>,
    changes: Vec<UsageChange>,
}

/// A start or an end, by the recorded waits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UsageChange {
    at: i64,
    /// Ends sort before starts, because processors freed at an instant are available at it.
    starts: bool,
    line: u64,
    procs: Procs,
}

impl Across {
    pub(super) fn add(&mut self, record: &Record, field: ProcsField, line: u64, findings: &mut Findings) {
        let submit = record.get(Field::Submit);
        if submit >= 0 {
            if submit < self.latest_submit {
                findings.add(Anomaly::OutOfOrder, line);
            }
            self.latest_submit = self.latest_submit.max(submit);
        }
        self.add_number(record, line, findings);
        self.add_run(record, field, line);
    }

    fn add_number(&mut self, record: &Record, line: u64, findings: &mut Findings) {
        let number = record.get(Field::Job);
        if number >= 1 {
            if number < self.last_number {
                findings.add(Anomaly::NumbersDescend, line);
            }
            self.last_number = number;
            self.numbers.push((number, line));
        }
        if record.get(Field::PrecedingJob) > 0 {
            self.preceding.push((line, record.get(Field::PrecedingJob)));
        }
    }

    /// Records the execution of a job, if the log has its times.
    ///
    /// Partial executions are excluded: a line for the whole job represents them.
    fn add_run(&mut self, record: &Record, field: ProcsField, line: u64) {
        let (submit, wait) = (record.get(Field::Submit), record.get(Field::Wait));
        let runtime = record.get(Field::Runtime);
        let Some(procs) = field.size(record) else { return };
        if submit < 0 || wait < 0 || runtime <= 0 || (2..=4).contains(&record.get(Field::Status)) {
            return;
        }
        let at = submit + wait;
        self.changes.push(UsageChange { at, starts: true, line, procs });
        self.changes.push(UsageChange { at: at + runtime, starts: false, line, procs });
    }

    pub(super) fn finish(mut self, procs: Option<Procs>, findings: &mut Findings) {
        self.numbers.sort_unstable();
        self.duplicates(findings);
        self.dependences(findings);
        if let Some(procs) = procs {
            self.capacity(procs, findings);
        }
    }

    fn duplicates(&self, findings: &mut Findings) {
        let pairs = self.numbers.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        let mut lines: Vec<u64> = pairs.map(|pair| pair[1].1).collect();
        lines.sort_unstable();
        for line in lines {
            findings.add(Anomaly::DuplicateJobNumber, line);
        }
    }

    fn dependences(&self, findings: &mut Findings) {
        for &(line, preceding) in &self.preceding {
            let first = self.numbers.partition_point(|&(number, _)| number < preceding);
            match self.numbers.get(first) {
                Some(&(number, above)) if number == preceding => {
                    if above >= line {
                        findings.add(Anomaly::PrecedingLater, line);
                    }
                }
                _ => findings.add(Anomaly::PrecedingUnknown, line),
            }
        }
    }

    /// Sweeps over the starts and ends. A job is reported if its start exceeds the machine's
    /// capacity.
    fn capacity(&mut self, procs: Procs, findings: &mut Findings) {
        self.changes.sort_unstable();
        let (mut running, mut peak, mut lines) = (Procs::ZERO, None::<(Procs, UsageChange)>, Vec::new());
        for change in &self.changes {
            if !change.starts {
                running -= change.procs;
                continue;
            }
            running += change.procs;
            if running > procs {
                lines.push(change.line);
                if peak.is_none_or(|(greatest, _)| running > greatest) {
                    peak = Some((running, *change));
                }
            }
        }
        lines.sort_unstable();
        for line in lines {
            findings.add(Anomaly::OverCapacity, line);
        }
        if let Some((running, UsageChange { at, line, .. })) = peak {
            findings.add_detail(Anomaly::OverCapacity, || {
                format!("at most {running} of {procs} processors, at second {at} (line {line})")
            });
        }
    }
}
