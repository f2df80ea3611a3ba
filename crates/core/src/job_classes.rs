//! Static classes of jobs, and the classes that each host runs.

use std::collections::BTreeMap;

use crate::{Procs, Span};

/// The static job classes of a machine: each is a size and a length (Chiang and Vernon §2.1).
///
/// A host runs the sizes of its order. A machine file has them ([`Machine::with_classes`]).
///
/// [`Machine::with_classes`]: crate::Machine::with_classes
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobClasses {
    /// The name of the table, for messages.
    pub name: String,
    /// The sizes. A job has the first one with sufficient limits.
    pub sizes: Vec<SizeClass>,
    /// The lengths. A job has the first one with a sufficient limit.
    pub lengths: Vec<LengthClass>,
    /// The order of each host, by its name.
    pub hosts: BTreeMap<String, Vec<SizeTurn>>,
}

/// A size of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// The name.
    pub name: String,
    /// The largest number of processors.
    pub procs: Procs,
    /// The largest memory of the whole job, in kB.
    pub memory: u64,
}

/// A length of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LengthClass {
    /// The name.
    pub name: String,
    /// The longest requested time.
    pub time: Span,
    /// The wait after which a host may be kept for a job. `None`: none is.
    pub reserve_wait: Option<Span>,
    /// The number of its jobs that may execute at a time on all hosts together. `None`: any number.
    pub most: Option<u32>,
    /// Whether its jobs come before those of the other lengths of their size.
    pub first: bool,
}

/// A size in the order of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeTurn {
    /// The position of the size in [`JobClasses::sizes`].
    pub size: usize,
    /// The number of its jobs that may execute on the host at a time. `None`: any number.
    pub most: Option<u32>,
}

/// A job class, by positions in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobClass {
    /// The position in [`JobClasses::sizes`].
    pub size: usize,
    /// The position in [`JobClasses::lengths`].
    pub length: usize,
}

impl JobClasses {
    /// Returns the class of a request: processors, total memory in kB, and time.
    ///
    /// Returns `None` beyond the limits. A memory of 0 is unknown and fits.
    ///
    /// # Example
    /// ```
    /// use miserly_core::{JobClass, JobClasses, LengthClass, Procs, SizeClass, Span};
    ///
    /// let size = |name: &str, procs: u64| SizeClass { name: name.into(), procs: procs.into(), memory: 1000 };
    /// let hour = Span::from_secs(3600).unwrap();
    /// let length = LengthClass { name: "day".into(), time: hour, reserve_wait: None, most: None, first: false };
    /// let classes = JobClasses {
    ///     sizes: vec![size("narrow", 4), size("wide", 16)],
    ///     lengths: vec![length],
    ///     ..JobClasses::default()
    /// };
    /// let class = |procs: u64, memory, time| classes.class(procs.into(), memory, time);
    /// assert_eq!(class(5, 1000, hour), Some(JobClass { size: 1, length: 0 }));
    /// assert_eq!(class(17, 0, hour).or(class(1, 1001, hour)).or(class(1, 0, hour + Span::TICK)), None);
    /// ```
    pub fn class(&self, procs: Procs, memory: u64, time: Span) -> Option<JobClass> {
        let size = self.sizes.iter().position(|size| procs <= size.procs && memory <= size.memory)?;
        let length = self.lengths.iter().position(|length| time <= length.time)?;
        Some(JobClass { size, length })
    }
}
