//! A month of the NCSA Origin 2000 beside what the paper says of it: Table 4, and the statements of section 3.

use crate::describe::study::{Cdf, cdf_of};
use miserly_classes::lsf::Class;

use self::jobs::MonthJob;
use super::spread::Share;
use crate::o2k::{Cell, MEMORY, Month, PROCS, Slot};

mod jobs;

mod rank;

mod statements;

pub(super) use jobs::MonthCollector;
pub use statements::{Statement, Unit};

/// The jobs of a month of the model `o2k`, without those of the warm-up, as the paper's section 3 counts them.
#[derive(Clone, Debug, PartialEq)]
pub struct MonthStudy {
    /// The month.
    pub month: Month,
    /// Every class, in the order of Table 4.
    pub classes: Vec<ClassRow>,
    /// All classes together.
    pub overall: Demand,
    /// What Table 4 prints for all classes together.
    pub paper: Cell,
    /// Jobs beyond the limits of the largest class.
    pub unclassed: u64,
    /// What section 3 says of the jobs.
    pub statements: Vec<Statement>,
}

/// A class of a month.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassRow {
    /// The class: by processors, memory and estimate, whatever queue the log says.
    pub class: Class,
    /// What the log has.
    pub ours: Demand,
    /// What Table 4 has.
    pub paper: Cell,
    /// Of the jobs submitted at weekday peak, those that run for less than a minute.
    pub under_a_minute: Share,
    /// Of the jobs submitted at weekday peak, those that use less than a tenth of the memory they ask for.
    pub under_a_tenth: Share,
    /// The runtimes of the jobs submitted at weekday peak, seconds (Figure 2).
    pub peak_runtimes: Cdf,
}

/// What jobs demand of the machine during a month.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// How many jobs.
    pub jobs: u64,
    /// Processors times runtime, in percent of what all hosts can give.
    pub procs: f64,
    /// Requested memory times runtime, in percent of what all hosts can give.
    pub memory: f64,
}

impl MonthStudy {
    /// `hours` are those of each slot of the week in the month.
    fn new(month: Month, hours: &[u32; Slot::COUNT], jobs: &[MonthJob]) -> MonthStudy {
        let overall = Demand::of(jobs, month);
        let classes: Vec<_> = Class::ALL.into_iter().map(|class| ClassRow::of(class, month, jobs)).collect();
        MonthStudy {
            month,
            overall,
            paper: month.demands().overall(),
            unclassed: jobs.iter().filter(|job| job.class.is_none()).count() as u64,
            statements: statements::all(month, hours, jobs),
            classes,
        }
    }
}

impl ClassRow {
    fn of(class: Class, month: Month, jobs: &[MonthJob]) -> ClassRow {
        let jobs: Vec<_> = jobs.iter().filter(|job| job.class == Some(class)).copied().collect();
        let peak: Vec<_> = jobs.iter().filter(|job| job.slot == Slot::WEEKDAY_PEAK).collect();
        let share = |meets: fn(&MonthJob) -> bool| Share {
            count: peak.iter().filter(|job| meets(job)).count() as u64,
            of: peak.len() as u64,
        };
        ClassRow {
            class,
            ours: Demand::of(&jobs, month),
            paper: month.demands().of(class),
            under_a_minute: share(MonthJob::is_short),
            under_a_tenth: share(MonthJob::is_light),
            peak_runtimes: cdf_of(peak.iter().map(|job| job.runtime)),
        }
    }
}

impl Demand {
    fn of(jobs: &[MonthJob], month: Month) -> Demand {
        // Integer sums: they depend on no order.
        let demand = |of: fn(&MonthJob) -> u64, capacity: u64| {
            let sum: u128 = jobs.iter().map(|job| u128::from(of(job)) * u128::from(job.runtime)).sum();
            sum as f64 / (capacity as f64 * month.seconds() as f64) * 100.0
        };
        Demand {
            jobs: jobs.len() as u64,
            procs: demand(|job| job.procs, PROCS.into()),
            memory: demand(|job| job.requested, MEMORY),
        }
    }
}
