//! The options of `#SBATCH`, as those of `miserly submit`.

use std::iter::Peekable;
use std::slice::Iter;

use miserly_units::slurm::{kibibytes, time_limit};

use super::script::Parser;
use super::submit_options::count;
use super::{SubmitOptions, gres_gpus};
use crate::model::{Submission, is_blank, is_invisible};

/// What an option of Slurm is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    /// The option with this long name and the same values.
    Same(&'static str),
    /// The flag with this long name.
    Flag(&'static str),
    /// The option with this long name; a plain number is in minutes.
    Time(&'static str),
    /// The option with this long name; a plain number is in MiB.
    Memory(&'static str),
    Comment,
    Tasks,
    CpusPerTask,
    Nodes,
    Gres,
    NotRestartable,
}

/// The options of `#SBATCH` that have a meaning here: long name, letter and meaning.
const OPTIONS: &[(&str, Option<char>, Meaning)] = &[
    ("job-name", Some('J'), Meaning::Same("name")),
    ("comment", None, Meaning::Comment),
    ("cpus-per-task", Some('c'), Meaning::CpusPerTask),
    ("ntasks", Some('n'), Meaning::Tasks),
    ("nodes", Some('N'), Meaning::Nodes),
    ("mem", None, Meaning::Memory("memory")),
    ("mem-per-cpu", None, Meaning::Memory("memory-per-cpu")),
    ("gpus", Some('G'), Meaning::Same("gpus")),
    ("gpus-per-node", None, Meaning::Same("gpus")),
    ("gres", None, Meaning::Gres),
    ("time", Some('t'), Meaning::Time("time")),
    ("partition", Some('p'), Meaning::Same("queue")),
    ("reservation", None, Meaning::Same("reservation")),
    ("begin", Some('b'), Meaning::Same("begin")),
    ("deadline", None, Meaning::Same("deadline")),
    ("dependency", Some('d'), Meaning::Same("after")),
    ("array", Some('a'), Meaning::Same("array")),
    ("requeue", None, Meaning::Flag("restartable")),
    ("no-requeue", None, Meaning::NotRestartable),
    ("signal", None, Meaning::Same("signal")),
    ("mail-type", None, Meaning::Same("mail")),
    ("mail-user", None, Meaning::Same("mail-to")),
    ("hold", Some('H'), Meaning::Flag("hold")),
    ("input", Some('i'), Meaning::Same("input")),
    ("output", Some('o'), Meaning::Same("output")),
    ("error", Some('e'), Meaning::Same("error")),
    ("chdir", Some('D'), Meaning::Same("directory")),
    ("export", None, Meaning::Same("export")),
];

/// Options of sbatch that scripts do not have as a rule, and what to write in their place.
const OTHERS: &[(&[&str], &str)] = &[
    (&["--parsable"], "--quiet, which prints only the job number"),
    (&["--test-only"], "--quote, which prints the promise and submits nothing"),
    (&["-W"], "--wait"),
    (&["--ntasks-per-node", "--tasks-per-node"], "--cpus, the processors of the whole job"),
    (
        &[
            "-A",
            "--account",
            "-C",
            "--constraint",
            "--exclusive",
            "-q",
            "--qos",
            "-w",
            "--nodelist",
            "-x",
            "--exclude",
            "--licenses",
        ],
        "nothing: there is no such option",
    ),
];

/// Returns what to write in place of an option of sbatch that `miserly submit` does not have. `option` has its dashes.
pub fn hint(option: &str) -> Option<String> {
    let option = option.split('=').next().unwrap_or(option);
    if let Some((_, own)) = OTHERS.iter().find(|(others, _)| others.contains(&option)) {
        return Some((*own).to_owned());
    }
    let found = if let Some(long) = option.strip_prefix("--") {
        OPTIONS.iter().find(|row| row.0 == long)?
    } else {
        let letter = option.strip_prefix('-')?.chars().next()?;
        OPTIONS.iter().find(|row| row.1 == Some(letter))?
    };
    Some(match found.2 {
        Meaning::Tasks | Meaning::CpusPerTask => "--cpus, the processors of the whole job".to_owned(),
        Meaning::Nodes => "nothing: a job runs on one machine".to_owned(),
        Meaning::NotRestartable => "nothing: a job runs once unless it is --restartable".to_owned(),
        Meaning::Comment => "--comment".to_owned(),
        Meaning::Gres => "--gpus, the number of GPUs".to_owned(),
        Meaning::Same(own) | Meaning::Flag(own) | Meaning::Time(own) | Meaning::Memory(own) => {
            format!("--{own}")
        }
    })
}

/// The directives of Slurm of a script, as they are read line by line.
#[derive(Debug, Default)]
pub(super) struct SlurmDirectives {
    pub(super) options: SubmitOptions,
    tasks: Option<u64>,
    cpus_per_task: Option<u64>,
}

impl SlurmDirectives {
    /// Reads the words of a line. The last option of a kind counts. Options that have no meaning here go to `ignored`.
    ///
    /// # Errors
    /// An option without its value, a flag with one, a value that has no meaning, or a word that belongs to no option.
    pub(super) fn read(
        &mut self,
        words: &[String],
        parser: &Parser,
        mut ignored: impl FnMut(&str),
    ) -> Result<(), String> {
        let mut words = words.iter().peekable();
        while let Some((name, attached)) = next(&mut words)? {
            let is = |row: &&(&str, Option<char>, Meaning)| match name.strip_prefix("--") {
                Some(long) => row.0 == long,
                None => row.1.is_some() && row.1 == name.chars().nth(1),
            };
            let Some(&(long, _, meaning)) = OPTIONS.iter().find(is) else {
                if attached.is_none() {
                    words.next_if(|value| !value.starts_with('-'));
                }
                ignored(name);
                continue;
            };
            let mut value = || match attached {
                Some(value) => Ok(value),
                None => words.next().map(String::as_str).ok_or_else(|| format!("{name} needs a value")),
            };
            let in_option = |message: String| format!("--{long}: {message}");
            let own = match meaning {
                Meaning::Flag(_) | Meaning::NotRestartable if attached.is_some() => {
                    return Err(format!("{name} takes no value"));
                }
                Meaning::Flag(flag) => format!("--{flag}"),
                Meaning::NotRestartable => {
                    self.options.submission.restartable = false;
                    continue;
                }
                Meaning::Tasks => {
                    self.tasks = Some(count(value()?).map_err(in_option)?);
                    continue;
                }
                Meaning::CpusPerTask => {
                    self.cpus_per_task = Some(count(value()?).map_err(in_option)?);
                    continue;
                }
                Meaning::Nodes if ["1", "1-1"].contains(&value()?) => continue,
                Meaning::Nodes => {
                    return Err(in_option("a job runs on one machine; write 1, or nothing".to_owned()));
                }
                Meaning::Comment => {
                    let text = value()?;
                    // A comment for Slurm is no reason to refuse the script.
                    if is_blank(text) || text.contains(is_invisible) || text.len() > Submission::COMMENT_MOST
                    {
                        ignored(name);
                        continue;
                    }
                    format!("--comment={text}")
                }
                Meaning::Gres => format!("--gpus={}", gres(value()?).map_err(in_option)?),
                Meaning::Time(option) => format!("--{option}={}", own_time(value()?)),
                Meaning::Memory(option) => format!("--{option}={}", own_memory(value()?)),
                Meaning::Same(option) => format!("--{option}={}", value()?),
            };
            let given = parser.options(vec![own], Some(&format!("--{long}")))?;
            self.options = given.or(std::mem::take(&mut self.options));
        }
        Ok(())
    }

    /// Returns the options, with the processors of all tasks.
    ///
    /// # Errors
    /// If the number of processors overflows.
    pub(super) fn finish(self) -> Result<SubmitOptions, String> {
        let SlurmDirectives { mut options, tasks, cpus_per_task } = self;
        if tasks.or(cpus_per_task).is_some() {
            let cpus = tasks.unwrap_or(1).checked_mul(cpus_per_task.unwrap_or(1));
            options.cpus = Some(cpus.ok_or("more tasks than can be counted")?.into());
            options.submission.tasks = tasks;
        }
        Ok(options)
    }
}

/// Returns a time limit of Slurm, where plain numbers are minutes, in the common grammar.
fn own_time(text: &str) -> String {
    time_limit(text).map_or_else(|| text.to_owned(), |limit| limit.to_string())
}

/// Returns an amount of memory of Slurm, where plain numbers are MiB, in the common grammar. Slurm's 0, all memory of the
/// machine, is none there.
fn own_memory(text: &str) -> String {
    kibibytes(text).map_or_else(|| text.to_owned(), |amount| format!("{amount}KiB"))
}

/// Returns the next option among the words of a line: its name with dashes, and the value that is attached to it.
///
/// # Errors
/// A word that belongs to no option.
fn next<'a>(words: &mut Peekable<Iter<'a, String>>) -> Result<Option<(&'a str, Option<&'a str>)>, String> {
    let Some(word) = words.next() else { return Ok(None) };
    if word.starts_with("--") {
        return Ok(Some(word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)))));
    }
    let Some(letter) = word.strip_prefix('-').and_then(|short| short.chars().next()) else {
        return Err(format!("{word:?} belongs to no option"));
    };
    let (name, value) = word.split_at(1 + letter.len_utf8());
    Ok(Some((name, Some(value).filter(|value| !value.is_empty()))))
}

/// Parses `gpu:2`, `gpu:a100:2` or `gpu` of sbatch's `--gres`.
fn gres(text: &str) -> Result<String, String> {
    let wrong = || "write gpu:2 or gpu:TYPE:2; there are no other resources".to_owned();
    let Some(rest) = text.strip_prefix("gpu").filter(|_| !text.contains(',')) else { return Err(wrong()) };
    let Some(rest) = rest.strip_prefix(':') else {
        return if rest.is_empty() { Ok("1".to_owned()) } else { Err(wrong()) };
    };
    gres_gpus(rest).map(|request| request.written())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submit::{length_of_time, memory};

    #[test]
    fn time_limits() {
        #[track_caller]
        fn check(text: &str, own: Option<u64>, slurm: Option<u64>) {
            assert_eq!(length_of_time(text).ok(), own, "{text:?}");
            assert_eq!(length_of_time(&own_time(text)).ok(), slurm, "{text:?} in #SBATCH");
        }
        let same = |text: &str, secs: u64| check(text, Some(secs), Some(secs));
        same("90s", 90);
        same("15min", 900);
        same("1.5h", 5_400);
        same("1d12h", 129_600);
        same("1:30:00", 5_400);
        same("0:00:01", 1);
        same("2-12:30:15", 217_815);
        check("30", Some(30), Some(1_800));
        check("90:30", None, Some(5_430));
        for bad in
            ["", "0", "0s", "0:00:00", "0.5s", "-1s", "1h30", "UNLIMITED", "10000000001s", "99999999999999"]
        {
            check(bad, None, None);
        }
    }

    #[test]
    fn amounts_of_memory() {
        #[track_caller]
        fn check(text: &str, own: Option<u64>, slurm: Option<u64>) {
            assert_eq!(memory(text).ok(), own, "{text:?}");
            assert_eq!(memory(&own_memory(text)).ok(), slurm, "{text:?} in #SBATCH");
        }
        let same = |text: &str, bytes: u64| check(text, Some(bytes), Some(bytes));
        same("512MB", 512 << 20);
        same("8G", 8 << 30);
        same("8GiB", 8 << 30);
        same("1.5G", 3 << 29);
        check("4096", None, Some(4 << 30));
        for bad in ["", "0", "0G", "G", "-1G", "8GG", "99999999999T", "é", "1Gé"] {
            check(bad, None, None);
        }
    }

    #[test]
    fn generic_resources_are_gpus() {
        for (text, own) in
            [("gpu", "1"), ("gpu:2", "2"), ("gpu:a100:4", "a100:4"), ("gpu:a100", "a100:1"), ("gpu:0", "0")]
        {
            assert_eq!(gres(text), Ok(own.to_owned()), "{text}");
        }
        for text in ["", "gpu:", "mps:2", "gpu:1,mps:2", "gpus"] {
            assert!(gres(text).is_err(), "{text}");
        }
    }
}
