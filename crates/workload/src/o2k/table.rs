//! Table 4: the jobs of each class and month and their demands.

use miserly_classes::lsf::Class;

use super::Month;

/// A month of Table 4.
///
/// Demands are percents of the capacity of all hosts during the month, as printed. The text of the
/// paper (§3) gives the lt-mj jobs 1 to 5 % of the processors; the table has 6 in January.
/// Otherwise, the text and the table agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demands {
    /// Jobs per class in the order of [`Class::ALL`].
    jobs: [u32; Class::COUNT],
    /// Requested processors times actual runtime per class.
    procs: [u32; Class::COUNT],
    /// Requested memory times actual runtime per class.
    memory: [u32; Class::COUNT],
    /// Printed processor demand of the whole month.
    procs_overall: u32,
    /// Printed memory demand of the whole month.
    memory_overall: u32,
}

/// A class in a month of Table 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemandCell {
    /// Submitted jobs.
    pub jobs: u32,
    /// Processor demand in percent.
    pub procs: u32,
    /// Memory demand in percent.
    pub memory: u32,
}

impl Demands {
    /// Returns the cell of a class.
    pub const fn cell(&self, class: Class) -> DemandCell {
        let at = class.index();
        DemandCell { jobs: self.jobs[at], procs: self.procs[at], memory: self.memory[at] }
    }

    /// Returns the cell of the whole month.
    ///
    /// Its demands are not the sums of the classes: October's processors have 75, and the classes
    /// add up to 73. Rounding alone explains differences of up to six.
    pub fn overall(&self) -> DemandCell {
        DemandCell { jobs: self.jobs(), procs: self.procs_overall, memory: self.memory_overall }
    }

    /// Returns the jobs of all classes, which equals the printed number in every month.
    pub fn jobs(&self) -> u32 {
        self.jobs.iter().sum()
    }
}

impl Month {
    /// Returns the figures of Table 4 for this month.
    pub const fn demands(self) -> &'static Demands {
        &TABLE_4[self as usize]
    }
}

const TABLE_4: [Demands; Month::ALL.len()] = [
    Demands {
        jobs: [3234, 2188, 2224, 116, 707, 748, 145, 27, 218, 243, 73, 51],
        procs: [1, 9, 13, 3, 1, 8, 8, 1, 1, 13, 11, 4],
        memory: [1, 4, 8, 2, 1, 4, 7, 5, 0, 4, 11, 8],
        procs_overall: 75,
        memory_overall: 55,
    },
    Demands {
        jobs: [2155, 2216, 502, 139, 629, 711, 208, 40, 304, 333, 90, 21],
        procs: [1, 9, 7, 2, 1, 14, 10, 3, 2, 14, 14, 3],
        memory: [1, 6, 6, 2, 1, 5, 10, 5, 0, 7, 7, 5],
        procs_overall: 80,
        memory_overall: 53,
    },
    Demands {
        jobs: [1605, 2075, 552, 114, 190, 571, 189, 28, 101, 275, 134, 29],
        procs: [1, 8, 9, 4, 0, 12, 17, 4, 0, 10, 15, 9],
        memory: [0, 5, 7, 3, 0, 5, 11, 4, 0, 10, 14, 11],
        procs_overall: 89,
        memory_overall: 72,
    },
    Demands {
        jobs: [2033, 2601, 550, 71, 493, 585, 161, 61, 130, 250, 89, 22],
        procs: [1, 9, 11, 3, 1, 9, 13, 6, 1, 8, 11, 10],
        memory: [0, 6, 7, 3, 1, 5, 10, 6, 0, 11, 10, 16],
        procs_overall: 83,
        memory_overall: 74,
    },
    Demands {
        jobs: [3252, 2252, 465, 70, 549, 697, 212, 32, 173, 312, 88, 20],
        procs: [1, 9, 11, 3, 1, 10, 13, 3, 1, 18, 12, 5],
        memory: [1, 7, 7, 3, 1, 5, 10, 5, 0, 10, 12, 15],
        procs_overall: 88,
        memory_overall: 74,
    },
    Demands {
        jobs: [1668, 2666, 469, 57, 450, 624, 213, 70, 173, 497, 122, 25],
        procs: [1, 11, 9, 3, 1, 11, 15, 4, 1, 14, 13, 3],
        memory: [0, 7, 6, 3, 1, 6, 9, 8, 0, 15, 19, 4],
        procs_overall: 85,
        memory_overall: 78,
    },
];

#[cfg(test)]
mod tests {
    use miserly_classes::lsf::{Length, Size};

    use super::*;

    #[test]
    fn jobs_add_up_to_the_number_printed() {
        let sums = Month::ALL.map(|month| month.demands().jobs());
        assert_eq!(sums, [9974, 7348, 5863, 7046, 8122, 7034]);
    }

    #[test]
    fn demands_add_up_to_about_the_number_printed() {
        let off = |month: Month| {
            let (table, overall) = (month.demands(), month.demands().overall());
            let sums = [table.procs.iter().sum::<u32>(), table.memory.iter().sum()];
            [
                sums[0].cast_signed() - overall.procs.cast_signed(),
                sums[1].cast_signed() - overall.memory.cast_signed(),
            ]
        };
        assert_eq!(Month::ALL.map(off), [[-2, 0], [0, 2], [0, -2], [0, 1], [-1, 2], [1, 0]]);
    }

    /// Section 3: mt-lj 10 to 15 %, lt-mj 1 to 5 % (January's is 6 in the table), large jobs over
    /// 30 % in four months.
    #[test]
    fn what_the_text_says_of_the_table() {
        let of = |length, size| Month::ALL.map(|month| month.demands().cell(Class { size, length }).procs);
        assert!(of(Length::Medium, Size::Large).iter().all(|procs| (10..=15).contains(procs)));
        assert_eq!(of(Length::Long, Size::Medium), [1, 3, 4, 6, 3, 4]);
        let large = |month: Month| {
            Length::ALL
                .map(|length| month.demands().cell(Class { size: Size::Large, length }).procs)
                .iter()
                .sum::<u32>()
        };
        assert_eq!(Month::ALL.map(large), [29, 33, 34, 30, 36, 31]);
    }
}
