//! Statements of the paper about the jobs, tested on a log.

use miserly_classes::lsf::{Class, Length, Size};

use super::Demand;
use super::jobs::MonthJob;
use super::rank::correlation;
use crate::o2k::{Month, Period, WeekSlot};
use miserly_core::named_enum;

/// A statement of the paper with the figure of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// Measured quantity.
    pub about: String,
    /// Statement of the paper in short form.
    pub paper: String,
    /// Range in which the statement holds; `None` if the paper gives no number.
    pub range: Option<(f64, f64)>,
    /// Figure of the log; `None` if it has no such jobs.
    pub ours: Option<f64>,
    /// Unit of the figure.
    pub unit: Unit,
}

named_enum! {
    /// The unit of a figure.
    pub enum Unit {
        /// A share between 0 and 1.
        Proportion "share",
        /// Jobs per hour.
        PerHour "per_hour",
        /// A rank correlation between -1 and 1.
        Correlation "correlation",
        /// A ratio.
        Ratio "ratio",
    }
}

impl Statement {
    /// Returns whether the statement holds, or `None` if that is undecidable.
    pub fn holds(&self) -> Option<bool> {
        let ((least, most), ours) = self.range.zip(self.ours)?;
        Some((least..=most).contains(&ours))
    }

    fn new(about: impl Into<String>, unit: Unit, ours: Option<f64>) -> Statement {
        Statement { about: about.into(), paper: String::new(), range: None, ours, unit }
    }

    fn paper(self, says: impl Into<String>) -> Statement {
        Statement { paper: says.into(), ..self }
    }

    fn within(self, least: f64, most: f64) -> Statement {
        Statement { range: Some((least, most)), ..self }
    }
}

/// Returns all statements in the order of section 3, at weekday peak where the paper specifies it.
pub(super) fn all(month: Month, hours: &[u32; WeekSlot::COUNT], jobs: &[MonthJob]) -> Vec<Statement> {
    let peak: Vec<_> = jobs.iter().filter(|job| job.slot == WeekSlot::WEEKDAY_PEAK).copied().collect();
    [large(month, jobs), arrivals(hours, jobs), sizes(jobs), runtimes(jobs, &peak), memory(jobs, &peak)]
        .concat()
}

fn large(month: Month, jobs: &[MonthJob]) -> Vec<Statement> {
    let large: Vec<_> =
        jobs.iter().filter(|job| job.class.is_some_and(|class| class.size == Size::Large)).copied().collect();
    let cells = Class::ALL.into_iter().filter(|class| class.size == Size::Large);
    let paper: u32 = cells.map(|class| month.demands().cell(class).procs).sum();
    let ours = Demand::new(&large, month).procs / 100.0;
    // Four printed figures, each rounded.
    let (paper, off) = (f64::from(paper) / 100.0, 0.02);
    let about = Statement::new("processor demand of the lj jobs", Unit::Proportion, Some(ours));
    vec![about.paper(format!("{:.0} % by Table 4", paper * 100.0)).within(paper - off, paper + off)]
}

/// Returns the statements of Figure 1, whose numbers are missing in the text.
fn arrivals(hours: &[u32; WeekSlot::COUNT], jobs: &[MonthJob]) -> Vec<Statement> {
    let rate = |slot: WeekSlot| {
        let (hours, day) = (hours[slot.index()], if slot.weekend { "weekend" } else { "weekday" });
        let count = jobs.iter().filter(|job| job.slot == slot).count() as f64;
        let rate = (hours > 0).then(|| count / f64::from(hours));
        let about = format!("arrivals at {day}, {}", slot.period.name());
        Statement::new(about, Unit::PerHour, rate).paper("in Figure 1")
    };
    WeekSlot::ALL.into_iter().map(rate).collect()
}

fn sizes(jobs: &[MonthJob]) -> Vec<Statement> {
    let off_peak = |job: &MonthJob| job.slot.weekend || job.slot.period == Period::Low;
    let widest = |job: &MonthJob| job.procs == 64;
    let (off, on) = (share(jobs, off_peak, widest), share(jobs, |job| !off_peak(job), widest));
    vec![
        Statement::new("serial jobs", Unit::Proportion, share(jobs, |_| true, |job| job.procs == 1))
            .paper("many"),
        Statement::new("jobs of 2, 4, 8, ... processors", Unit::Proportion, {
            share(jobs, |_| true, |job| job.procs > 1 && job.procs.is_power_of_two())
        })
        .paper("many"),
        Statement::new(
            "64 processors, off-peak to other times",
            Unit::Ratio,
            off.zip(on).map(|(off, on)| off / on),
        )
        .paper("in some cases above 1"),
    ]
}

fn runtimes(jobs: &[MonthJob], peak: &[MonthJob]) -> Vec<Statement> {
    let asked_over = |hours: u64| share(jobs, |job| job.estimate > hours * 3_600, MonthJob::is_short);
    let within = Length::Short.limit().secs().unsigned_abs();
    let long = |job: &MonthJob| job.class.is_some_and(|class| class.length == Length::Long);
    let size_and_time: Vec<_> = jobs.iter().map(|job| (job.procs as f64, job.runtime as f64)).collect();
    vec![
        Statement::new("peak: under a minute", Unit::Proportion, share(peak, |_| true, MonthJob::is_short))
            .paper("15 to 20 % of each class")
            .within(0.15, 0.20),
        Statement::new("under a minute, of estimates over 1 h", Unit::Proportion, asked_over(1))
            .paper("12 to 33 %")
            .within(0.12, 0.33),
        Statement::new("under a minute, of estimates over 10 h", Unit::Proportion, asked_over(10))
            .paper("11 to 42 %")
            .within(0.11, 0.42),
        Statement::new("peak: lt jobs that ran within st", Unit::Proportion, {
            share(peak, long, |job| job.runtime <= within)
        })
        .paper("over 50 %")
        .within(0.5, 1.0),
        Statement::new("peak: least decade of runtimes", Unit::Proportion, least_decade(peak))
            .paper("significant in each")
            .within(0.01, 1.0),
        Statement::new("runtime with processors", Unit::Correlation, correlation(&size_and_time))
            .paper("positive")
            .within(0.0, 1.0),
    ]
}

fn memory(jobs: &[MonthJob], peak: &[MonthJob]) -> Vec<Statement> {
    const GIGABYTE: u64 = 1 << 20;
    const HALF: u64 = GIGABYTE / 2;
    let per_processor = |of: u64, job: &MonthJob| of as f64 / job.procs as f64;
    let pairs =
        |jobs: &[MonthJob], pair: &dyn Fn(&MonthJob) -> (f64, f64)| jobs.iter().map(pair).collect::<Vec<_>>();
    let used_and_time = pairs(jobs, &|job| (per_processor(job.used, job), job.runtime as f64));
    let asked_and_size = pairs(peak, &|job| (per_processor(job.requested, job), job.procs as f64));
    let mean_used = |serial: bool| {
        let jobs = peak.iter().filter(|job| (job.procs == 1) == serial);
        let used: Vec<_> = jobs.map(|job| per_processor(job.used, job)).collect();
        (!used.is_empty()).then(|| used.iter().sum::<f64>() / used.len() as f64)
    };
    let serial_to_parallel =
        mean_used(true).zip(mean_used(false)).map(|(serial, parallel)| serial / parallel);
    vec![
        Statement::new(
            "peak: under a tenth of the memory",
            Unit::Proportion,
            share(peak, |_| true, MonthJob::is_light),
        )
        .paper("25 to 35 % of each class")
        .within(0.25, 0.35),
        Statement::new("under 1 GB, of those under a minute", Unit::Proportion, {
            share(jobs, MonthJob::is_short, |job| job.used < GIGABYTE)
        })
        .paper("nearly all")
        .within(0.95, 1.0),
        Statement::new("used per processor with runtime", Unit::Correlation, correlation(&used_and_time))
            .paper("positive")
            .within(0.0, 1.0),
        Statement::new("peak: used per processor, serial to parallel", Unit::Ratio, serial_to_parallel)
            .paper("above 1")
            .within(1.0, f64::INFINITY),
        Statement::new(
            "peak: requested per processor with processors",
            Unit::Correlation,
            correlation(&asked_and_size),
        )
        .paper("negative")
        .within(-1.0, 0.0),
        Statement::new("peak: over 512 MB requested, of serial", Unit::Proportion, {
            share(peak, |job| job.procs == 1, |job| job.requested > HALF)
        })
        .paper("50 %")
        .within(0.45, 0.55),
    ]
}

/// Returns the share of jobs that meet a condition, or `None` without jobs.
fn share(
    jobs: &[MonthJob],
    among: impl Fn(&MonthJob) -> bool,
    meets: impl Fn(&MonthJob) -> bool,
) -> Option<f64> {
    let (count, of) = jobs
        .iter()
        .filter(|job| among(job))
        .fold((0_u64, 0_u64), |(count, of), job| (count + u64::from(meets(job)), of + 1));
    (of > 0).then(|| count as f64 / of as f64)
}

/// Returns the least share among the decades of runtime from a second to the limit of the longest
/// class.
fn least_decade(jobs: &[MonthJob]) -> Option<f64> {
    let decades = [1_u64, 10, 100, 1_000, 10_000, 100_000];
    let of = |from: u64| share(jobs, |_| true, |job| (from..from * 10).contains(&job.runtime));
    decades.into_iter().filter_map(of).min_by(f64::total_cmp)
}
