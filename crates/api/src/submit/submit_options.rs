//! Submit options.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;
use jiff::{Timestamp, Zoned};

use super::{GpuRequest, after, gpus, instant, length_of_time, mail_address, mail_events, memory};
use crate::model::submission::complete;
use crate::model::{Condition, MailEvent, RawVariable, Submission};

// Names of their own, because clap would make repeated options of plain vectors.
type Conditions = Vec<Condition>;
type MailEvents = Vec<MailEvent>;

/// The options of a submission, as a command line or the directives of a script have them.
///
/// A field with its default value is not given. Fields beside [`submission`](SubmitOptions::submission) are those that have to be
/// given in a complete submission, or that have another form there.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct SubmitOptions {
    /// The time limit: seconds, or 90min, 12h, 7d, 1:30:00. Required here or in the script; the job is ended when it is reached
    #[arg(long, short, value_name = "TIME", value_parser = length_of_time)]
    pub time: Option<u64>,

    /// The number of processors, or the least and the most of a resizable job, such as 2-8 [default: 1]
    #[arg(long, short, value_name = "N", value_parser = Cpus::parse)]
    pub cpus: Option<Cpus>,

    /// The number of GPUs, with a type before it if not any will do: 2, a100:2. The job sees no others where the kernel hides them
    #[arg(long, short = 'G', value_name = "[TYPE:]N", value_parser = gpus)]
    pub gpus: Option<GpuRequest>,

    /// What a submission has in the same form
    #[command(flatten)]
    pub submission: Submission,

    /// The memory for each processor, such as 512MiB or 8GiB
    #[arg(long, visible_alias = "mem-per-cpu", value_name = "SIZE", value_parser = memory, conflicts_with = "memory")]
    pub memory_per_cpu: Option<u64>,

    /// The reservation, in place of a queue; miserly reservation list lists them
    #[arg(long, value_name = "NAME")]
    pub reservation: Option<String>,

    /// The jobs that must end first: 12,13 with any result, ok:12 with success, notok:12 with failure, each-ok:ARRAY with
    /// success of the job with the same index; ok:name=NAME takes the newest job of that name. Kinds can be mixed, such as
    /// ok:12,13,notok:14. The notation of sbatch (afterok:12:13) works, too
    #[arg(long, visible_alias = "dependency", value_name = "CONDITIONS", value_parser = after)]
    pub after: Option<Conditions>,

    /// Asks for a mail on these events, which miserly hook --mail sends: begin, end, fail, moved, all, none
    #[arg(long, visible_alias = "mail-type", value_name = "EVENT,...", value_parser = mail_events)]
    pub mail: Option<MailEvents>,

    /// The address of the mail [default: the user]
    #[arg(long, visible_alias = "mail-user", value_name = "ADDRESS", value_parser = mail_address)]
    pub mail_to: Option<String>,

    /// The working folder of the job [default: the current folder]
    #[arg(long, short, visible_short_alias = 'D', visible_alias = "chdir", value_name = "DIR")]
    pub directory: Option<PathBuf>,

    /// The environment of the job: ALL, NONE, or a list of NAME and NAME=VALUE, separated by commas [default: ALL]
    #[arg(long, value_name = "WHAT", value_parser = Export::parse)]
    pub export: Option<Export>,
}

/// The processors that a job requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// The least ones of a resizable job.
    pub least: Option<u64>,
    /// The number of processors; of a resizable job the most.
    pub most: u64,
}

impl From<u64> for Cpus {
    fn from(most: u64) -> Cpus {
        Cpus { least: None, most }
    }
}

impl Cpus {
    /// Parses a number above 0, or a range of such numbers.
    ///
    /// # Errors
    /// Any other text.
    pub fn parse(text: &str) -> Result<Cpus, String> {
        let Some((least, most)) = text.split_once('-') else { return Ok(count(text)?.into()) };
        match (count(least), count(most)) {
            (Ok(least), Ok(most)) if least <= most => Ok(Cpus { least: Some(least), most }),
            _ => Err(format!("{text:?} is no number above 0 and no range of them, such as 2-8")),
        }
    }
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
    /// Returns these options, with those that are not given from `other`.
    #[must_use]
    pub fn or(mut self, mut other: SubmitOptions) -> SubmitOptions {
        // They are two forms of one option.
        if self.memory_per_cpu.or(self.submission.memory).is_some() {
            (other.memory_per_cpu, other.submission.memory) = (None, None);
        }
        let none = SubmitOptions::default();
        complete!(self, other, none, time cpus gpus memory_per_cpu reservation after mail mail_to directory export);
        self.submission = self.submission.or(other.submission);
        self
    }

    /// Returns the memory of the job, bytes; `None` if it overflows.
    pub fn memory(&self) -> Option<Option<u64>> {
        match self.memory_per_cpu {
            Some(bytes) => bytes.checked_mul(self.cpus.map_or(1, |cpus| cpus.most)).map(Some),
            None => Some(self.submission.memory),
        }
    }
}

/// Parses a number above 0.
///
/// # Errors
/// Any other text.
pub fn count(text: &str) -> Result<u64, String> {
    let count = text.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("{text:?} is no number above 0"))
}

/// Parses an instant. One without a date or a zone is relative to now.
///
/// # Errors
/// Those of [`instant`](fn@instant).
pub fn when(text: &str) -> Result<Timestamp, String> {
    instant(text, &Zoned::now())
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
    use clap::FromArgMatches;

    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn processors_are_a_number_or_a_range() {
        assert_eq!(Cpus::parse("8"), Ok(8.into()));
        assert_eq!(Cpus::parse("2-8"), Ok(Cpus { least: Some(2), most: 8 }));
        for wrong in ["0", "8-2", "0-2", "2-", "-2", "2-8-9", "two"] {
            assert!(Cpus::parse(wrong).is_err(), "{wrong}");
        }
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
    fn each_option_is_completed() {
        let command = || SubmitOptions::augment_args(clap::Command::new("submit").no_binary_name(true));
        for option in command().get_arguments().filter(|option| option.get_id() != "help") {
            let long = option.get_long().unwrap();
            let value = match long {
                "after" => "3",
                "array" => "0-3",
                "begin" | "deadline" => "+2h",
                "start-within" => "10min",
                "mail" => "end",
                "memory" | "memory-per-cpu" | "gpu-memory" => "1GiB",
                "signal" | "resize-signal" => "USR1",
                "time" => "90s",
                _ => "2",
            };
            let is_flag = option.get_num_args().is_some_and(|count| !count.takes_values());
            let takes_value = option.get_action().takes_values() && !is_flag;
            let value = if takes_value { format!("={value}") } else { String::new() };
            let matches = command().try_get_matches_from([format!("--{long}{value}")]).unwrap();
            let given = SubmitOptions::from_arg_matches(&matches).unwrap();
            assert_ne!(given, SubmitOptions::default(), "{long}");
            assert_eq!(SubmitOptions::default().or(given.clone()), given, "{long}");
            assert_eq!(given.clone().or(SubmitOptions::default()), given, "{long}");
        }
    }

    #[test]
    fn what_is_said_first_counts() {
        let first = SubmitOptions { cpus: Some(1.into()), ..SubmitOptions::default() };
        let second = SubmitOptions { cpus: Some(2.into()), time: Some(60), ..SubmitOptions::default() };
        assert_eq!(
            first.or(second),
            SubmitOptions { cpus: Some(1.into()), time: Some(60), ..SubmitOptions::default() }
        );
    }

    #[test]
    fn memory_for_each_processor() {
        let per_cpu = |bytes, cpus| SubmitOptions {
            memory_per_cpu: Some(bytes),
            cpus: Some(Cpus::from(cpus)),
            ..SubmitOptions::default()
        };
        assert_eq!(per_cpu(3, 4).memory(), Some(Some(12)));
        assert_eq!(per_cpu(u64::MAX, 2).memory(), None);
        let of_job = || SubmitOptions {
            submission: Submission { memory: Some(3), ..Submission::default() },
            ..SubmitOptions::default()
        };
        assert_eq!(of_job().memory(), Some(Some(3)));
        assert_eq!(of_job().or(per_cpu(3, 4)).memory(), Some(Some(3)));
        assert_eq!(per_cpu(3, 4).or(of_job()).memory(), Some(Some(12)));
    }
}
