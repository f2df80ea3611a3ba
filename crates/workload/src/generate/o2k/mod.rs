//! A month of the NCSA Origin 2000: the logs of Chiang and Vernon 2001, §3, which are not public, made up again.

use miserly_core::lsf::Class;

use self::batch::Batch;
use self::stream::Streams;
use self::targets::Targets;
use super::log::{MadeLog, Site};
use super::{Asked, GenerateError, Made, Model};
use crate::o2k::{HOSTS, MODEL, Month, PROCS, TIME_ZONE, WARM_UP};

mod targets;

mod stream;

mod deal;

mod batch;

mod draft;

mod sizes;

mod submissions;

mod estimates;

mod runtimes;

mod memory;

mod solve;

#[cfg(test)]
mod tests;

/// The jobs of one of the paper's six months, after seven days of warm-up: with memory, of twelve classes.
///
/// Each class of Table 4 is made on its own, and hits its cells by construction: it has as many jobs as the table
/// says, and its runtimes and then its memory are bent until they demand what the table says. All else is from the
/// statements of §3, and where the paper is silent, decided here. The warm-up week is made in the same way, of a
/// week's share of the month's jobs and demands, and is not part of the month. Second 0 is its beginning.
///
/// - **Demands.** The targets are the table's figures, but for what its rounding leaves open: a 0 % is taken for
///   0.35 % (below 0.5, decided here), and the other classes share alike what their sum lacks to the printed total.
///   The hardest cell is October's lt-mj: its 27 jobs, which demand 5 % of the memory and 1 % of the processors, have
///   to be narrow, to ask for nearly the 4 GB of their class, and to run for nearly as long as they may. Of 200 seeds
///   one misses that cell by more than its rounding (by 0.6 percentage points).
/// - **Sizes** (§3: many serial, many powers of two): weights by class, decided here. A class whose
///   memory demand is high for its processors has more narrow jobs of much memory, which its definition admits
///   (Table 1): the weights are tilted by a power of the size as far as that needs, and no further.
/// - **Arrivals** (§3, Figure 1): a Poisson process, given the number of jobs, whose rate is that of the period and
///   of the kind of day. The figure's numbers are not in the text: per hour of a weekday's peak 1, of its
///   intermediate hours 0.55, of its low ones 0.25, and half of that at weekends, decided here. In November,
///   January and March the rate of jobs of 64 processors is three times that in low hours and at weekends ("in some
///   cases", §3; which and how much is decided here).
/// - **Estimates** are round, up to the class's limit, which is the commonest. Decided here.
/// - **Runtimes.** 17.5 % of each class run under a minute (15 to 20 %, §3), whatever they asked for; which gives the
///   12 to 33 % of §2.4 of those that asked for over an hour, and the 11 to 42 % for over ten hours. Of the lt jobs
///   at least 55 % run no longer than the 50 hours of st ("over 50 %", §3). The others spread over the decades from a minute to the
///   estimate (Figure 2), the wider the longer (§3), as short or long as the demand needs.
/// - **Memory.** 30 % of each class use less than a tenth of what they ask for (25 to 35 %, §3), of those under a
///   minute 60 %, decided here. Half the serial jobs ask for over 512 MB (§3). Of the jobs under a minute all
///   but 2 % use under 1 GB ("nearly all", §3). The longer a job runs, the more of its memory it uses (§3).
/// - **Users.** 200, of harmonic activity of order 1. The paper has none; decided here.
///
/// Times of the day are those of the machine's place, with the end of summer time in October. Draws go through
/// `exp`, `ln` and `powf`, which may differ in the last bit between platforms; on one platform the same parameters
/// make the same bytes.
///
/// # Source
/// Chiang and Vernon, Production job scheduling for parallel shared memory systems, IPPS 2001, §2.1, §2.4, §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct O2k {
    /// The month.
    pub month: Month,
    /// The seed of all draws. Default 1.
    pub seed: u64,
}

impl O2k {
    /// The model's name.
    pub const NAME: &str = MODEL;

    /// The model of what was asked for; October 1999 where no month was.
    ///
    /// # Errors
    /// [`GenerateError::NotTaken`] if a shape is asked for: jobs, processors and load are those of the month.
    pub(super) fn of(asked: &Asked) -> Result<O2k, GenerateError> {
        // The machine is given: naming it again is no other wish.
        let procs = asked.procs.filter(|procs| *procs != PROCS);
        Asked { procs, ..asked.clone() }.shapes_not(O2k::NAME)?;
        Ok(O2k { month: asked.month.unwrap_or(Month::October), seed: asked.seed.unwrap_or(1) })
    }

    /// The machine and the instant at which the log begins.
    fn site(&self) -> Site {
        let queue = |(number, class): (usize, Class)| format!("; Queue: {number} {class}");
        let zone = format!("; TimeZoneString: {TIME_ZONE}");
        let queues = format!("; MaxQueues: {}", Class::COUNT);
        let comments = [zone, queues].into_iter().chain((1..).zip(Class::ALL).map(queue));
        Site {
            procs: PROCS,
            nodes: HOSTS,
            unix_start: self.month.unix_start() - WARM_UP.cast_signed(),
            comments: comments.collect(),
        }
    }

    /// The jobs of a class: those of the warm-up, and those of the month.
    fn jobs_of(&self, class: Class, targets: &Targets) -> Vec<Made> {
        let month = targets.of(class);
        let week = month.share(WARM_UP, self.month.seconds());
        let batch = |number, target, from, to| {
            let streams = Streams::new(self.seed, self.month, class, number);
            Batch { month: self.month, class, target, from, to }.jobs(&streams)
        };
        let mut jobs = batch(0, week, 0, WARM_UP);
        jobs.extend(batch(1, month, WARM_UP, WARM_UP + self.month.seconds()));
        jobs
    }
}

impl Model for O2k {
    fn name(&self) -> &'static str {
        O2k::NAME
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        vec![
            ("month", self.month.to_string()),
            ("seed", self.seed.to_string()),
            ("warm_up", WARM_UP.to_string()),
            ("rates", "1, 0.55, 0.25 (peak, intermediate, low), half at weekends, decided here".to_owned()),
            ("under_a_minute", runtimes::UNDER_A_MINUTE.to_string()),
            ("lt_within_st", runtimes::LONG_WITHIN_SHORT.to_string()),
            ("under_a_tenth_of_memory", memory::LIGHT.to_string()),
            ("users", format!("{}, decided here", draft::USERS)),
        ]
    }

    fn validate(&self) -> Result<(), GenerateError> {
        Ok(())
    }

    fn generate(&self) -> Result<MadeLog, GenerateError> {
        let targets = Targets::of_month(self.month);
        let mut jobs: Vec<Made> =
            Class::ALL.into_iter().flat_map(|class| self.jobs_of(class, &targets)).collect();
        // Stable: of jobs of the same second the smaller class comes first.
        jobs.sort_by_key(|job| job.submit);
        Ok(MadeLog::new(self, self.site(), jobs))
    }
}
