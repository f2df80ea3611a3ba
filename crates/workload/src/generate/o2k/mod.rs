//! A month of the NCSA Origin 2000: generated replacements of the unpublished logs of Chiang and
//! Vernon 2001, §3.

use miserly_classes::lsf::Class;

use self::batch::ClassBatch;
use self::stream::Streams;
use self::targets::ClassTargets;
use super::log::{GeneratedLog, SiteHeader};
use super::{GenerateError, GeneratedJob, Model, ModelOptions};
use crate::o2k::{HOSTS, MODEL, Month, PROCS, TIME_ZONE, WARM_UP};

mod targets;

mod stream;

mod share_selector;

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

/// The jobs of one of the paper's six months, after seven days of warm-up, with memory and twelve
/// classes.
///
/// Each class of Table 4 is generated on its own and matches its cells by construction. It has the
/// number of jobs of the table. Its runtimes and then its memory are adjusted until they meet the
/// demands of the table. All else follows the statements of §3 or, where the paper is silent, is
/// decided here. The warm-up week is generated in the same way, from a week's share of the month's
/// jobs and demands. It is not part of the month. Second 0 is its beginning.
///
/// - **Demands.** The targets are the table's figures, except where rounding leaves room. A 0 % is
///   taken as 0.35 % (below 0.5, decided here). The other classes share equally the difference
///   between their sum and the printed total. The hardest cell is October's lt-mj: 27 jobs with 5 %
///   of the memory and 1 % of the processors. They must be narrow, request nearly the 4 GB of their
///   class, and run nearly as long as permitted. Of 200 seeds, one misses that cell by more than
///   its rounding (by 0.6 percentage points).
/// - **Sizes** (§3: many serial, many powers of two): weights by class, decided here. A class with
///   a high memory demand for its processors has more narrow jobs with much memory. Its definition
///   admits these (Table 1). The weights are tilted by the least sufficient power of the size.
/// - **Arrivals** (§3, Figure 1): a Poisson process with a given number of jobs. Its rate depends
///   on the period and on the kind of day. The figure's numbers are not in the text. Per hour: 1 at
///   a weekday's peak, 0.55 in intermediate hours, 0.25 in low ones, half of it at weekends,
///   decided here. In November, January and March, jobs of 64 processors have three times that rate
///   in low hours and at weekends. The paper mentions this "in some cases" (§3); the months and the
///   factor are decided here.
/// - **Estimates** are round, up to the class's limit, which is the commonest. Decided here.
/// - **Runtimes.** 17.5 % of each class run under a minute (15 to 20 %, §3), regardless of the
///   estimate. That gives the 12 to 33 % of §2.4 for estimates over an hour, and the 11 to 42 %
///   over ten hours. Of the lt jobs at least 55 % run no longer than the 50 hours of st ("over 50
///   %", §3). The others spread over the decades from a minute to the estimate (Figure 2), wider
///   jobs longer (§3). Their length follows from the demand.
/// - **Memory.** 30 % of each class use less than a tenth of their request (25 to 35 %, §3). Among
///   jobs under a minute it is 60 %, decided here. Half the serial jobs request over 512 MB (§3).
///   Of the jobs under a minute all but 2 % use under 1 GB ("nearly all", §3). Longer jobs use more
///   of their memory (§3).
/// - **Users.** 200, with harmonic activity of order 1. The paper has none; decided here.
///
/// Times of day are local to the machine, with the end of summer time in October. Draws use `exp`,
/// `ln` and `powf`, whose last bit may differ between platforms. On one platform the same
/// parameters give the same bytes.
///
/// # Source
/// Chiang and Vernon, Production job scheduling for parallel shared memory systems, IPPS 2001,
/// §2.1, §2.4, §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct O2k {
    /// Month.
    pub month: Month,
    /// Seed of all draws. Default 1.
    pub seed: u64,
}

impl O2k {
    /// Name of the model.
    pub const NAME: &str = MODEL;

    /// Creates the model from requested parameters; the default month is October 1999.
    ///
    /// # Errors
    /// [`GenerateError::NotTaken`] for a requested shape: jobs, processors and load are those of
    /// the month.
    pub(super) fn from_options(options: &ModelOptions) -> Result<O2k, GenerateError> {
        // The machine is fixed, and a request for the same machine changes nothing.
        let procs = options.procs.filter(|procs| procs.get() != u64::from(PROCS));
        ModelOptions { procs, ..options.clone() }.reject_shape(O2k::NAME)?;
        Ok(O2k { month: options.month.unwrap_or(Month::October), seed: options.seed.unwrap_or(1) })
    }

    /// Returns the machine and the begin of the log.
    fn site(&self) -> SiteHeader {
        let queue = |(number, class): (usize, Class)| format!("; Queue: {number} {class}");
        let zone = format!("; TimeZoneString: {TIME_ZONE}");
        let queues = format!("; MaxQueues: {}", Class::COUNT);
        let comments = [zone, queues].into_iter().chain((1..).zip(Class::ALL).map(queue));
        SiteHeader {
            procs: PROCS,
            nodes: HOSTS,
            unix_start: self.month.unix_start() - WARM_UP.cast_signed(),
            comments: comments.collect(),
        }
    }

    /// Generates the jobs of a class: those of the warm-up and those of the month.
    fn jobs_of(&self, class: Class, targets: &ClassTargets) -> Vec<GeneratedJob> {
        let month = targets.target(class);
        let week = month.share(WARM_UP, self.month.seconds());
        let batch = |number, target, from, to| {
            let streams = Streams::new(self.seed, self.month, class, number);
            ClassBatch { month: self.month, class, target, from, to }.jobs(&streams)
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

    fn generate(&self) -> Result<GeneratedLog, GenerateError> {
        let targets = ClassTargets::of_month(self.month);
        let mut jobs: Vec<GeneratedJob> =
            Class::ALL.into_iter().flat_map(|class| self.jobs_of(class, &targets)).collect();
        // Stable: among jobs of the same second the smaller class comes first.
        jobs.sort_by_key(|job| job.submit);
        Ok(GeneratedLog::new(self, self.site(), jobs))
    }
}
