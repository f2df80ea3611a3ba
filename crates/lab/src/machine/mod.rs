//! Machines as they are asked for: by a built-in name, by a number of processors, or as a file.

mod file;

mod checked;

mod pools;

mod builtin;

#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::path::Path;

use miserly_core::{Host, Kind, Machine, Resources, Sharing, Spread};
use miserly_policies::shared::Profile;
use miserly_report::{HostsDoc, MachineDoc};

pub use builtin::BUILT_IN;
pub use pools::Pools;

/// More hosts than any machine has.
pub const HOSTS_MOST: u64 = 1_000_000;

/// A machine as it is described: its hosts by kind, and how jobs lie on them.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineSpec {
    /// What it was asked for by; of a file, its name without folders.
    pub name: String,
    spread: Spread,
    sharing: Sharing,
    hosts: Vec<Hosts>,
    /// Its pools, if it has any.
    pub pools: Option<Pools>,
}

/// One host, or several that are alike.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Hosts {
    name: String,
    /// How many, named with 1, 2, ... behind `name`; `None` for one that is named just so.
    count: Option<u32>,
    /// What each has.
    each: Resources,
}

/// Why there is no such machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A number that no machine can have.
    #[error("machine {0}: a machine has 1 to {most} processors", most = Profile::MOST)]
    Procs(String),
    /// Neither built in, nor a number, nor a file that can be read.
    #[error(
        "machine {word:?}: none of that name is built in (there is {known}), it is no number of processors, and as a \
         file it cannot be read: {error}",
        known = BUILT_IN.join(", ")
    )]
    Unknown {
        /// What was asked for.
        word: String,
        /// Why it cannot be read.
        error: io::Error,
    },
    /// The file says something that makes no sense.
    #[error("{file}:{line}: {problem}")]
    File {
        /// The file.
        file: String,
        /// The line.
        line: usize,
        /// What is wrong, and what to do.
        problem: String,
    },
}

impl MachineSpec {
    /// The machine that is asked for by `word`: a built-in name, a number of processors, or else a file, whose text
    /// `read` finds.
    ///
    /// # Errors
    /// If there is no such machine, or its file makes no sense.
    pub fn named(
        word: &str,
        read: impl FnOnce(&str) -> io::Result<String>,
    ) -> Result<MachineSpec, MachineError> {
        if let Some(built_in) = MachineSpec::built_in(word) {
            return Ok(built_in);
        }
        if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
            let procs = word.parse().ok().filter(|procs| (1..=Profile::MOST).contains(procs));
            return procs.map(MachineSpec::plain).ok_or_else(|| MachineError::Procs(word.into()));
        }
        match read(word) {
            Ok(text) => MachineSpec::parse(word, &text),
            Err(error) => Err(MachineError::Unknown { word: word.into(), error }),
        }
    }

    /// One host of `procs` processors, which jobs share, and nothing else accounted.
    pub fn plain(procs: u32) -> MachineSpec {
        let host = Hosts { name: "machine".into(), count: None, each: Resources::cpus(u64::from(procs)) };
        MachineSpec::of(procs.to_string(), vec![host])
    }

    fn of(name: String, hosts: Vec<Hosts>) -> MachineSpec {
        MachineSpec { name, spread: Spread::default(), sharing: Sharing::default(), hosts, pools: None }
    }

    /// The same hosts, with jobs on them as is said here, where it is.
    #[must_use]
    pub fn with(self, spread: Option<Spread>, sharing: Option<Sharing>) -> MachineSpec {
        let (spread, sharing) = (spread.unwrap_or(self.spread), sharing.unwrap_or(self.sharing));
        MachineSpec { spread, sharing, ..self }
    }

    /// The processors of all hosts together.
    pub fn procs(&self) -> u32 {
        let procs: u64 = self.hosts.iter().map(|hosts| hosts.number() * hosts.each.cpus_count().get()).sum();
        // At most `Profile::MOST`, which is checked where hosts come from.
        u32::try_from(procs).unwrap_or(u32::MAX)
    }

    /// The machine itself.
    pub fn machine(&self) -> Machine {
        let hosts = self.hosts.iter().flat_map(Hosts::each).collect();
        Machine::of(hosts).spreading(self.spread).sharing(self.sharing)
    }

    /// As documents tell it.
    pub fn document(&self) -> MachineDoc {
        let known = |amount: u64| (amount > 0).then_some(amount);
        let hosts = self.hosts.iter().map(|hosts| HostsDoc {
            name: hosts.name.clone(),
            count: hosts.count,
            cpus: hosts.each.cpus_count().get(),
            memory: known(hosts.each.get(Kind::Memory)),
            gpus: known(hosts.each.get(Kind::Gpus)),
        });
        MachineDoc {
            name: self.name.clone(),
            span: word_of(&SPANS, self.spread),
            sharing: word_of(&SHARINGS, self.sharing),
            hosts: hosts.collect(),
            pools: self.pools.as_ref().map(Pools::document),
        }
    }
}

impl Hosts {
    fn number(&self) -> u64 {
        self.count.map_or(1, u64::from)
    }

    /// Their names.
    fn names(&self) -> impl Iterator<Item = String> {
        let alone = self.count.is_none().then(|| self.name.clone());
        alone.into_iter().chain((1..=self.count.unwrap_or(0)).map(|n| format!("{}{n}", self.name)))
    }

    fn each(&self) -> impl Iterator<Item = Host> {
        self.names().map(|name| Host { name, capacity: self.each })
    }
}

/// The words for over how many hosts a job may lie.
pub const SPANS: [(&str, Spread); 2] = [("one", Spread::One), ("any", Spread::Any)];

/// The words for whether jobs share hosts.
pub const SHARINGS: [(&str, Sharing); 2] = [("shared", Sharing::Shared), ("whole", Sharing::Whole)];

/// The word for a value of a list that has them all.
fn word_of<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, of)| *of == value).map_or("", |(word, _)| word)
}

/// The value of a word.
///
/// # Errors
/// What it is one of.
pub(crate) fn value_of<T: Copy>(words: &[(&str, T)], field: &str, written: &str) -> Result<T, String> {
    words.iter().find(|(word, _)| *word == written).map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("{field} = {written:?}: it is one of {}", known.join(", "))
    })
}

/// The name of a file without its folders.
fn file_name(path: &str) -> &str {
    Path::new(path).file_name().and_then(|name| name.to_str()).unwrap_or(path)
}

impl fmt::Display for MachineSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
