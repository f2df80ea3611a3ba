//! The demands of each class that reproduce Table 4.

use miserly_classes::lsf::Class;

use crate::o2k::{DemandCell, MEMORY, Month, PROCS};

/// Value of a printed 0 % in percent: less than a half. Decided here.
const ZERO: f64 = 0.35;

/// The required totals of a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ClassTarget {
    /// Number of jobs.
    pub(super) jobs: usize,
    /// Processor-seconds.
    pub(super) procs: f64,
    /// kB-seconds.
    pub(super) memory: f64,
}

impl ClassTarget {
    /// Returns the share of `part` seconds in `whole` seconds, with a rounded number of jobs.
    pub(super) fn share(&self, part: u64, whole: u64) -> ClassTarget {
        let share = part as f64 / whole as f64;
        // The whole is longer than the part.
        let jobs = (self.jobs as u64 * part + whole / 2) / whole;
        ClassTarget {
            jobs: usize::try_from(jobs).unwrap_or(self.jobs),
            procs: self.procs * share,
            memory: self.memory * share,
        }
    }
}

/// The targets of all classes.
pub(super) struct ClassTargets([ClassTarget; Class::COUNT]);

impl ClassTargets {
    pub(super) fn of_month(month: Month) -> ClassTargets {
        let (table, seconds) = (month.demands(), month.seconds() as f64);
        let overall = table.overall();
        let shares =
            |of: fn(DemandCell) -> u32| unrounded(Class::ALL.map(|class| of(table.cell(class))), of(overall));
        let (procs, memory) = (shares(|cell| cell.procs), shares(|cell| cell.memory));
        ClassTargets(Class::ALL.map(|class| ClassTarget {
            jobs: table.cell(class).jobs as usize,
            procs: procs[class.index()] / 100.0 * f64::from(PROCS) * seconds,
            memory: memory[class.index()] / 100.0 * MEMORY as f64 * seconds,
        }))
    }

    pub(super) fn target(&self, class: Class) -> ClassTarget {
        self.0[class.index()]
    }
}

/// Returns percents that round to the printed ones and add up to the printed total, if possible.
///
/// All classes except zeros share the difference equally.
fn unrounded(printed: [u32; Class::COUNT], total: u32) -> [f64; Class::COUNT] {
    const ROUNDING: f64 = 0.45;
    let cells = printed.map(|cell| if cell == 0 { ZERO } else { f64::from(cell) });
    let others = printed.iter().filter(|&&cell| cell > 0).count();
    let off = (f64::from(total) - cells.iter().sum::<f64>()) / others as f64;
    let off = off.clamp(-ROUNDING, ROUNDING);
    std::array::from_fn(|at| if printed[at] == 0 { cells[at] } else { cells[at] + off })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_round_to_the_table_and_add_up() {
        for month in Month::ALL {
            let (table, overall) = (month.demands(), month.demands().overall());
            for (of, total) in [
                (Class::ALL.map(|class| table.cell(class).procs), overall.procs),
                (Class::ALL.map(|class| table.cell(class).memory), overall.memory),
            ] {
                let targets = unrounded(of, total);
                assert!(targets.iter().zip(of).all(|(target, cell)| (target - f64::from(cell)).abs() < 0.5));
                let sum: f64 = targets.iter().sum();
                assert!((sum - f64::from(total)).abs() < 1e-9, "{month}: {sum}");
            }
        }
    }

    #[test]
    fn a_share_of_the_jobs_is_rounded() {
        let target = ClassTarget { jobs: 10, procs: 100.0, memory: 50.0 };
        assert_eq!(target.share(1, 4), ClassTarget { jobs: 3, procs: 25.0, memory: 12.5 });
    }
}
