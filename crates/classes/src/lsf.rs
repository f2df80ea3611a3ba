//! The twelve job classes of the LSF configuration of the NCSA Origin 2000, by size and requested time.
//!
//! # Source
//! Chiang and Vernon, Production job scheduling for parallel shared memory systems, IPPS 2001, Table 1.
//!
//! ```
//! use miserly_core::Span;
//! use miserly_classes::lsf::Class;
//!
//! // 16 processors, 4 GB, 300 hours on each processor: the paper's example of an lt-mj job (section 2.1).
//! let hours = |hours: i64| Span::from_secs(hours * 3600).unwrap();
//! let class = Class::for_request(16.into(), 4 << 20, hours(300)).unwrap();
//! assert_eq!(class.name(), "lt-mj");
//! assert_eq!(class.reserve_wait(), hours(360));
//! ```

use std::fmt;

use miserly_core::{Procs, Span};

miserly_core::listed_enum! {
    /// The size of a request: processors, and memory in total.
    #[derive(Hash)]
    pub enum Size {
        /// `sj`: up to 8 processors and 2 GB.
        Small "sj",
        /// `mj`: up to 16 processors and 4 GB.
        Medium "mj",
        /// `lj`: up to 64 processors and 16 GB.
        Large "lj",
    }
}

impl Size {
    /// Returns the largest number of processors.
    pub const fn procs(self) -> Procs {
        match self {
            Size::Small => Procs::new(8),
            Size::Medium => Procs::new(16),
            Size::Large => Procs::new(64),
        }
    }

    /// Returns the largest memory of the whole job, in kB. A gigabyte has 1024 x 1024 kB.
    pub const fn memory(self) -> u64 {
        const GIGABYTE: u64 = 1 << 20;
        match self {
            Size::Small => 2 * GIGABYTE,
            Size::Medium => 4 * GIGABYTE,
            Size::Large => 16 * GIGABYTE,
        }
    }

    /// Returns the smallest size with sufficient limits, or `None` beyond the largest.
    ///
    /// A memory of 0 is unknown and fits.
    pub fn for_request(procs: Procs, memory: u64) -> Option<Size> {
        Size::ALL.into_iter().find(|size| procs <= size.procs() && memory <= size.memory())
    }
}

miserly_core::listed_enum! {
    /// The requested cpu time on each processor.
    #[derive(Hash)]
    pub enum Length {
        /// `vst`: up to 5 hours.
        VeryShort "vst",
        /// `st`: up to 50 hours.
        Short "st",
        /// `mt`: up to 200 hours.
        Medium "mt",
        /// `lt`: up to 400 hours.
        Long "lt",
    }
}

impl Length {
    /// Returns the longest requested time.
    pub const fn limit(self) -> Span {
        match self {
            Length::VeryShort => hours(5),
            Length::Short => hours(50),
            Length::Medium => hours(200),
            Length::Long => hours(400),
        }
    }

    /// Returns the wait after which the scheduler may keep a host's resources idle for a job.
    pub const fn reserve_wait(self) -> Span {
        match self {
            Length::VeryShort => hours(12),
            Length::Short => hours(45),
            Length::Medium => hours(180),
            Length::Long => hours(360),
        }
    }

    /// Returns the shortest length with a sufficient limit, or `None` beyond the longest.
    pub fn for_estimate(estimate: Span) -> Option<Length> {
        Length::ALL.into_iter().find(|length| estimate <= length.limit())
    }
}

/// A job class: a size and a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// The size of its jobs.
    pub size: Size,
    /// The length of its jobs.
    pub length: Length,
}

impl Class {
    /// The number of classes.
    pub const COUNT: usize = Size::ALL.len() * Length::ALL.len();

    /// All classes, in the order of the paper's Table 4: `vst-sj`, `st-sj`, ..., `lt-lj`.
    pub const ALL: [Class; Class::COUNT] = {
        let mut all = [Class { size: Size::Small, length: Length::VeryShort }; Class::COUNT];
        let mut index = 0;
        while index < Class::COUNT {
            let (size, length) = (index / Length::ALL.len(), index % Length::ALL.len());
            all[index] = Class { size: Size::ALL[size], length: Length::ALL[length] };
            index += 1;
        }
        all
    };

    /// Returns the class of a request: processors, total memory in kB, and time.
    ///
    /// It has the smallest size and the shortest length with sufficient limits. Returns `None` beyond `lt-lj`. A
    /// memory of 0 is unknown and fits.
    ///
    /// The estimate replaces the cpu time per processor of Table 1, which logs do not have. The runtime limit of
    /// `vst` jobs, 5.5 hours, therefore never decides.
    pub fn for_request(procs: Procs, memory: u64, estimate: Span) -> Option<Class> {
        Some(Class { size: Size::for_request(procs, memory)?, length: Length::for_estimate(estimate)? })
    }

    /// Returns the index in [`Class::ALL`].
    pub const fn index(self) -> usize {
        self.size as usize * Length::ALL.len() + self.length as usize
    }

    /// Returns the name in the paper, such as `vst-sj`.
    pub const fn name(self) -> &'static str {
        const NAMES: [&str; Class::COUNT] = [
            "vst-sj", "st-sj", "mt-sj", "lt-sj", "vst-mj", "st-mj", "mt-mj", "lt-mj", "vst-lj", "st-lj",
            "mt-lj", "lt-lj",
        ];
        NAMES[self.index()]
    }

    /// Returns the wait after which the scheduler may keep a host's resources idle for a job.
    pub const fn reserve_wait(self) -> Span {
        self.length.reserve_wait()
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

const fn hours(count: i64) -> Span {
    const HOUR: i64 = 3_600 * 1_000_000;
    Span::from_ticks(count * HOUR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABYTE: u64 = 1 << 20;

    #[track_caller]
    fn check(procs: u64, memory: u64, estimate: Span, expected: Option<&str>) {
        assert_eq!(Class::for_request(procs.into(), memory, estimate).map(Class::name), expected);
    }

    #[test]
    fn limits_belong_to_the_class_they_end() {
        check(8, 2 * GIGABYTE, hours(5), Some("vst-sj"));
        check(9, 2 * GIGABYTE, hours(5), Some("vst-mj"));
        check(8, 2 * GIGABYTE + 1, hours(5), Some("vst-mj"));
        check(8, 2 * GIGABYTE, hours(5) + Span::TICK, Some("st-sj"));
        check(16, 4 * GIGABYTE, hours(50), Some("st-mj"));
        check(17, 4 * GIGABYTE, hours(50) + Span::TICK, Some("mt-lj"));
        check(16, 4 * GIGABYTE + 1, hours(200), Some("mt-lj"));
        check(64, 16 * GIGABYTE, hours(400), Some("lt-lj"));
    }

    #[test]
    fn beyond_the_largest_there_is_no_class() {
        check(65, GIGABYTE, hours(1), None);
        check(1, 16 * GIGABYTE + 1, hours(1), None);
        check(1, GIGABYTE, hours(400) + Span::TICK, None);
    }

    #[test]
    fn a_memory_that_is_unknown_fits() {
        check(1, 0, hours(1), Some("vst-sj"));
        check(64, 0, hours(400), Some("lt-lj"));
    }

    #[test]
    fn a_class_has_the_names_of_its_parts_in_order() {
        let names = Class::ALL.map(|class| format!("{}-{}", class.length.name(), class.size.name()));
        assert_eq!(names.each_ref().map(String::as_str), Class::ALL.map(Class::name));
        assert!(Class::ALL.is_sorted());
        assert!((0..Class::COUNT).eq(Class::ALL.into_iter().map(Class::index)));
        assert_eq!(format!("{:>8}", Class::ALL[11]), "   lt-lj");
    }

    #[test]
    fn longer_jobs_wait_longer_for_a_reservation() {
        let waits = Length::ALL.map(|length| length.reserve_wait().secs() / 3600);
        assert_eq!(waits, [12, 45, 180, 360]);
    }
}
