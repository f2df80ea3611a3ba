//! The job classes of a machine in documents and stored states.

use std::collections::BTreeMap;

use miserly_core::{JobClasses, LengthClass, Procs, SizeClass, SizeTurn, Span};
use miserly_units::{UnitError, parse_duration_from};
use serde::{Deserialize, Serialize};

/// A table of job classes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct ClassesDoc {
    /// Name of its file.
    pub name: String,
    /// Sizes, the smallest first.
    pub sizes: Vec<SizeDoc>,
    /// Lengths, the shortest first.
    pub lengths: Vec<LengthDoc>,
    /// Sizes that each host runs, in its order.
    pub hosts: BTreeMap<String, Vec<TurnDoc>>,
}

/// A size of requests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct SizeDoc {
    /// Name.
    pub name: String,
    /// Largest number of processors.
    pub cpus: u64,
    /// Largest memory of the whole job in kB; null for any.
    pub memory: Option<u64>,
}

/// A length of requests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct LengthDoc {
    /// Name.
    pub name: String,
    /// Longest requested time, such as `5h`.
    pub time: String,
    /// Wait after which a host may be kept for a job; null if none is.
    pub reserve_wait: Option<String>,
    /// Jobs that may execute at a time on all hosts together; null for any number.
    pub limit: Option<u32>,
    /// Whether its jobs come before those of the other lengths of their size.
    pub first: bool,
}

/// A size in the order of a host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct TurnDoc {
    /// Position of the size in the list of sizes, from 0.
    pub size: usize,
    /// Jobs that may execute on the host at a time; null for any number.
    pub limit: Option<u32>,
}

impl ClassesDoc {
    /// Returns the document of a table.
    pub fn new(classes: &JobClasses) -> ClassesDoc {
        let size = |size: &SizeClass| SizeDoc {
            name: size.name.clone(),
            cpus: size.procs.get(),
            memory: (size.memory < u64::MAX).then_some(size.memory),
        };
        let length = |length: &LengthClass| LengthDoc {
            name: length.name.clone(),
            time: miserly_units::duration(length.time),
            reserve_wait: length.reserve_wait.map(miserly_units::duration),
            limit: length.most,
            first: length.first,
        };
        let order = |order: &Vec<SizeTurn>| {
            order.iter().map(|turn| TurnDoc { size: turn.size, limit: turn.most }).collect()
        };
        ClassesDoc {
            name: classes.name.clone(),
            sizes: classes.sizes.iter().map(size).collect(),
            lengths: classes.lengths.iter().map(length).collect(),
            hosts: classes.hosts.iter().map(|(host, turns)| (host.clone(), order(turns))).collect(),
        }
    }

    /// Returns the table of the document.
    ///
    /// # Errors
    /// A duration that is none.
    pub fn classes(&self) -> Result<JobClasses, UnitError> {
        let time = |text: &String| parse_duration_from(text, Span::ZERO);
        let size = |size: &SizeDoc| SizeClass {
            name: size.name.clone(),
            procs: Procs::new(size.cpus),
            memory: size.memory.unwrap_or(u64::MAX),
        };
        let length = |length: &LengthDoc| -> Result<LengthClass, UnitError> {
            Ok(LengthClass {
                name: length.name.clone(),
                time: time(&length.time)?,
                reserve_wait: length.reserve_wait.as_ref().map(time).transpose()?,
                most: length.limit,
                first: length.first,
            })
        };
        // A state of another version may name a size that the table does not have.
        let turn = |turn: &TurnDoc| SizeTurn { size: turn.size, most: turn.limit };
        let order = |order: &Vec<TurnDoc>| {
            let known = order.iter().filter(|turn| turn.size < self.sizes.len());
            known.map(turn).collect()
        };
        Ok(JobClasses {
            name: self.name.clone(),
            sizes: self.sizes.iter().map(size).collect(),
            lengths: self.lengths.iter().map(length).collect::<Result<_, _>>()?,
            hosts: self.hosts.iter().map(|(host, turns)| (host.clone(), order(turns))).collect(),
        })
    }
}
