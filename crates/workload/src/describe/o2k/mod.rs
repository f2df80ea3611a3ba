//! A month of the NCSA Origin 2000 compared with the paper: Table 4, and the statements of section
//! 3.

use crate::describe::study::{Cdf, cdf_of};
use miserly_classes::lsf::Class;

use self::jobs::{HOURS_OF_WEEK, MonthJob};
use super::spread::Proportion;
use crate::o2k::{DemandCell, MEMORY, Month, PROCS, WeekSlot};

mod jobs;

mod rank;

mod statements;

pub(super) use jobs::MonthCollector;
pub use statements::{Statement, Unit};

/// The jobs of a month of the model `o2k` without the warm-up, as counted in section 3 of the
/// paper.
#[derive(Clone, Debug, PartialEq)]
pub struct MonthStudy {
    /// Month.
    pub month: Month,
    /// Classes in the order of Table 4.
    pub classes: Vec<ClassRow>,
    /// All classes together.
    pub overall: Demand,
    /// All classes together in Table 4.
    pub paper: DemandCell,
    /// Jobs beyond the limits of the largest class.
    pub unclassed: u64,
    /// Statements of section 3 about the jobs.
    pub statements: Vec<Statement>,
    /// Mean number of jobs submitted in each hour of the days from Monday to Friday, local time (Figure 1).
    pub arrivals: [[f64; 24]; 5],
}

/// A class of a month.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassRow {
    /// Class by processors, memory and estimate. The queue in the log is ignored.
    pub class: Class,
    /// Demand in the log.
    pub ours: Demand,
    /// Demand in Table 4.
    pub paper: DemandCell,
    /// Jobs under a minute, out of those submitted at weekday peak.
    pub under_a_minute: Proportion,
    /// Jobs that use less than a tenth of their requested memory, out of those submitted at weekday
    /// peak.
    pub under_a_tenth: Proportion,
    /// Runtimes in seconds of the jobs submitted at weekday peak (Figure 2).
    pub peak_runtimes: Cdf,
}

/// The demand of jobs during a month.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Number of jobs.
    pub jobs: u64,
    /// Processors times runtime, in percent of the capacity of all hosts.
    pub procs: f64,
    /// Requested memory times runtime, in percent of the capacity of all hosts.
    pub memory: f64,
}

impl MonthStudy {
    /// Creates the study; `hours` are how often the month has each hour of the week.
    fn new(month: Month, hours: &[u32; HOURS_OF_WEEK], jobs: &[MonthJob]) -> MonthStudy {
        let mut of_slot = [0; WeekSlot::COUNT];
        for (hour, times) in (0..).zip(hours) {
            of_slot[WeekSlot::at(hour * 3_600).index()] += times;
        }
        let arrivals =
            std::array::from_fn(|day| std::array::from_fn(|hour| rate(24 * day + hour, hours, jobs)));
        let overall = Demand::new(jobs, month);
        let classes: Vec<_> = Class::ALL.into_iter().map(|class| ClassRow::new(class, month, jobs)).collect();
        MonthStudy {
            month,
            overall,
            paper: month.demands().overall(),
            unclassed: jobs.iter().filter(|job| job.class.is_none()).count() as u64,
            statements: statements::all(month, &of_slot, jobs),
            arrivals,
            classes,
        }
    }
}

/// Returns the mean number of jobs submitted in an hour of the week.
fn rate(hour: usize, hours: &[u32; HOURS_OF_WEEK], jobs: &[MonthJob]) -> f64 {
    jobs.iter().filter(|job| job.hour == hour).count() as f64 / f64::from(hours[hour].max(1))
}

impl ClassRow {
    fn new(class: Class, month: Month, jobs: &[MonthJob]) -> ClassRow {
        let jobs: Vec<_> = jobs.iter().filter(|job| job.class == Some(class)).copied().collect();
        let peak: Vec<_> = jobs.iter().filter(|job| job.slot == WeekSlot::WEEKDAY_PEAK).collect();
        let share = |meets: fn(&MonthJob) -> bool| Proportion {
            count: peak.iter().filter(|job| meets(job)).count() as u64,
            of: peak.len() as u64,
        };
        ClassRow {
            class,
            ours: Demand::new(&jobs, month),
            paper: month.demands().cell(class),
            under_a_minute: share(MonthJob::is_short),
            under_a_tenth: share(MonthJob::is_light),
            peak_runtimes: cdf_of(peak.iter().map(|job| job.runtime)),
        }
    }
}

impl Demand {
    fn new(jobs: &[MonthJob], month: Month) -> Demand {
        // Integer sums are independent of the order.
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
