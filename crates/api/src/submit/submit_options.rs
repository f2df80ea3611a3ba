//! Submit options.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use jiff::Timestamp;

use crate::model::{Array, Condition, RawVariable, Retry};
use crate::model::{EarlySignal, MailEvent};

/// Submission options. Unset fields are filled from later sources.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SubmitOptions {
    /// The name of the job.
    pub name: Option<String>,
    /// The processors.
    pub cpus: Option<u64>,
    /// The number of tasks that the program starts.
    pub tasks: Option<u64>,
    /// The memory.
    pub memory: Option<Memory>,
    /// The time limit, in seconds.
    pub time: Option<u64>,
    /// The queue.
    pub queue: Option<String>,
    /// The reservation, which is a queue. It precedes the queue.
    pub reservation: Option<String>,
    /// The earliest start.
    pub begin: Option<Timestamp>,
    /// The deadline of the end.
    pub deadline: Option<Timestamp>,
    /// Conditions on the ends of other jobs.
    pub after: Option<Vec<Condition>>,
    /// The indexes of an array.
    pub array: Option<Array>,
    /// Whether its work may be lost and repeated.
    pub restartable: Option<bool>,
    /// Whether and how often it runs again after a failure.
    pub retry: Option<Retry>,
    /// The number of GPUs.
    pub gpus: Option<u64>,
    /// The events on which a mail is wanted.
    pub mail: Option<Vec<MailEvent>>,
    /// The address of the mail.
    pub mail_to: Option<String>,
    /// The signal before the end of the window.
    pub signal: Option<EarlySignal>,
    /// Whether it must not run before its start.
    pub no_opportunistic: Option<bool>,
    /// Whether it is held until it is released.
    pub hold: Option<bool>,
    /// The file of the standard input.
    pub input: Option<PathBuf>,
    /// The file of the standard output.
    pub output: Option<PathBuf>,
    /// The file of the standard error.
    pub error: Option<PathBuf>,
    /// The working directory.
    pub directory: Option<PathBuf>,
    /// The exported part of the submitter's environment.
    pub export: Option<Export>,
}

/// An amount of memory, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Of the job.
    Job(u64),
    /// For each of its processors.
    PerCpu(u64),
}

/// The part of the submitter's environment that a job gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// All of it; else only `names`, and [`Export::ALWAYS`].
    pub all: bool,
    /// The names of single variables.
    pub names: BTreeSet<String>,
    /// Variables with values of their own.
    pub set: BTreeMap<String, String>,
}

impl SubmitOptions {
    /// Returns these options, with unset fields from `other`.
    #[must_use]
    pub fn or(self, other: SubmitOptions) -> SubmitOptions {
        SubmitOptions {
            name: self.name.or(other.name),
            cpus: self.cpus.or(other.cpus),
            tasks: self.tasks.or(other.tasks),
            memory: self.memory.or(other.memory),
            time: self.time.or(other.time),
            queue: self.queue.or(other.queue),
            reservation: self.reservation.or(other.reservation),
            begin: self.begin.or(other.begin),
            deadline: self.deadline.or(other.deadline),
            after: self.after.or(other.after),
            array: self.array.or(other.array),
            restartable: self.restartable.or(other.restartable),
            retry: self.retry.or(other.retry),
            gpus: self.gpus.or(other.gpus),
            mail: self.mail.or(other.mail),
            mail_to: self.mail_to.or(other.mail_to),
            signal: self.signal.or(other.signal),
            no_opportunistic: self.no_opportunistic.or(other.no_opportunistic),
            hold: self.hold.or(other.hold),
            input: self.input.or(other.input),
            output: self.output.or(other.output),
            error: self.error.or(other.error),
            directory: self.directory.or(other.directory),
            export: self.export.or(other.export),
        }
    }
}

impl Memory {
    /// Returns the bytes of a job with a number of processors; `None` if they overflow.
    pub fn of_job(self, cpus: u64) -> Option<u64> {
        match self {
            Memory::Job(bytes) => Some(bytes),
            Memory::PerCpu(bytes) => bytes.checked_mul(cpus),
        }
    }
}

impl Export {
    /// The variables that almost every program needs.
    pub const ALWAYS: [&str; 7] = ["HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER"];

    /// Parses `ALL`, `NONE`, or names and assignments with commas between them, as `ALL,DEBUG=1` or
    /// `PATH,SEED`.
    ///
    /// # Errors
    /// A name that no variable can have.
    pub fn parse(text: &str) -> Result<Export, String> {
        let mut export = Export { all: false, names: BTreeSet::new(), set: BTreeMap::new() };
        for part in text.split(',').map(str::trim) {
            let (name, value) =
                part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
            if name.is_empty() || name.contains('\0') || value.is_some_and(|value| value.contains('\0')) {
                return Err(
                    "write ALL, NONE, or variables with commas between them, such as ALL,DEBUG=1".into()
                );
            }
            match (name, value) {
                (name, Some(value)) => drop(export.set.insert(name.to_owned(), value.to_owned())),
                ("ALL", None) => export.all = true,
                ("NONE", None) => {}
                (name, None) => drop(export.names.insert(name.to_owned())),
            }
        }
        Ok(export)
    }

    /// Returns the environment of a job, from that of its submitter.
    pub fn environment(&self, submitters: BTreeMap<String, String>) -> BTreeMap<String, String> {
        let kept = submitters.into_iter().filter(|(name, _)| self.keeps(name));
        kept.chain(self.set.clone()).collect()
    }

    /// Returns the variables of the submitter that are not UTF-8 text and that the job has, too.
    pub fn raw_environment(&self, submitters: Vec<RawVariable>) -> Vec<RawVariable> {
        let keeps = |variable: &RawVariable| match std::str::from_utf8(&variable.name) {
            Ok(name) => self.keeps(name) && !self.set.contains_key(name),
            Err(_) => self.all,
        };
        submitters.into_iter().filter(keeps).collect()
    }

    fn keeps(&self, name: &str) -> bool {
        self.all || self.names.contains(name) || Export::ALWAYS.contains(&name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn variables_that_are_no_text_are_kept_as_others_are() {
        let raw = |name: &[u8]| RawVariable { name: name.to_vec(), value: vec![0xff] };
        let all = [raw(b"SEED"), raw(b"HOME"), raw(b"SECRET"), raw(b"\xfe")];
        let kept = |text: &str| Export::parse(text).unwrap().raw_environment(all.to_vec());
        assert_eq!(kept("ALL,SECRET=x"), [all[0].clone(), all[1].clone(), all[3].clone()]);
        assert_eq!(kept("SEED"), all[..2]);
        assert_eq!(kept("NONE"), [all[1].clone()]);
    }

    #[track_caller]
    fn check(text: &str, expect: &[(&str, &str)]) {
        let submitters = variables(&[("PATH", "/bin"), ("SEED", "1"), ("SECRET", "s")]);
        assert_eq!(Export::parse(text).unwrap().environment(submitters), variables(expect), "{text}");
    }

    #[test]
    fn environments() {
        check("ALL", &[("PATH", "/bin"), ("SEED", "1"), ("SECRET", "s")]);
        check("NONE", &[("PATH", "/bin")]);
        check("SEED", &[("PATH", "/bin"), ("SEED", "1")]);
        check("NONE,SEED=2,A=b=c", &[("PATH", "/bin"), ("SEED", "2"), ("A", "b=c")]);
        check("ALL,SEED=", &[("PATH", "/bin"), ("SEED", ""), ("SECRET", "s")]);
        for bad in ["", "ALL,,SEED", "=1", "A\0=1"] {
            assert!(Export::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_is_said_first_counts() {
        let first = SubmitOptions { cpus: Some(1), ..SubmitOptions::default() };
        let second = SubmitOptions { cpus: Some(2), time: Some(60), ..SubmitOptions::default() };
        assert_eq!(
            first.or(second),
            SubmitOptions { cpus: Some(1), time: Some(60), ..SubmitOptions::default() }
        );
    }

    #[test]
    fn memory_for_each_processor() {
        assert_eq!(Memory::PerCpu(3).of_job(4), Some(12));
        assert_eq!(Memory::Job(3).of_job(4), Some(3));
        assert_eq!(Memory::PerCpu(u64::MAX).of_job(2), None);
    }
}
