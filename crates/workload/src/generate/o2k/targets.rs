//! What the jobs of a class have to demand, so that Table 4 comes out.

use miserly_classes::lsf::Class;

use crate::o2k::{Cell, MEMORY, Month, PROCS};

/// What a printed 0 % is taken for, in percent: less than a half. Decided here.
const ZERO: f64 = 0.35;

/// What the jobs of a class are to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Target {
    /// How many.
    pub(super) jobs: usize,
    /// Their processor-seconds.
    pub(super) procs: f64,
    /// Their kB-seconds.
    pub(super) memory: f64,
}

impl Target {
    /// The share that `part` seconds have of what `whole` have; of the jobs, rounded.
    pub(super) fn share(&self, part: u64, whole: u64) -> Target {
        let share = part as f64 / whole as f64;
        // The whole is longer than the part.
        let jobs = (self.jobs as u64 * part + whole / 2) / whole;
        Target {
            jobs: usize::try_from(jobs).unwrap_or(self.jobs),
            procs: self.procs * share,
            memory: self.memory * share,
        }
    }
}

/// The targets of all classes.
pub(super) struct Targets([Target; Class::COUNT]);

impl Targets {
    pub(super) fn of_month(month: Month) -> Targets {
        let (table, seconds) = (month.demands(), month.seconds() as f64);
        let overall = table.overall();
        let shares =
            |of: fn(Cell) -> u32| unrounded(Class::ALL.map(|class| of(table.of(class))), of(overall));
        let (procs, memory) = (shares(|cell| cell.procs), shares(|cell| cell.memory));
        Targets(Class::ALL.map(|class| Target {
            jobs: table.of(class).jobs as usize,
            procs: procs[class.index()] / 100.0 * f64::from(PROCS) * seconds,
            memory: memory[class.index()] / 100.0 * MEMORY as f64 * seconds,
        }))
    }

    pub(super) fn of(&self, class: Class) -> Target {
        self.0[class.index()]
    }
}

/// Percents that round to those printed and, as far as that allows, add up to the printed total: what is missing, or
/// too much, is shared alike by all but the zeros.
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
                (Class::ALL.map(|class| table.of(class).procs), overall.procs),
                (Class::ALL.map(|class| table.of(class).memory), overall.memory),
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
        let target = Target { jobs: 10, procs: 100.0, memory: 50.0 };
        assert_eq!(target.share(1, 4), Target { jobs: 3, procs: 25.0, memory: 12.5 });
    }
}
