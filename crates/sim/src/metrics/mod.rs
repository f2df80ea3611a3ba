//! The measures of a schedule, as sums that do not depend on the order of the jobs.

mod measures;

mod distribution;

mod percentiles;

mod batches;

mod student;

mod guarantees;

mod opportunistic;

mod suspended;

mod sliced;

mod steady;

mod area;

mod throughput;

mod window;

mod series;

mod groups;

mod devices;

use std::collections::BTreeMap;
use std::io;

use miserly_core::{Effect, JobNumber, Procs, Refusal, Request, Span, StartReason, System, Time};

pub use batches::{BATCH_JOBS_LEAST, BATCHES_LEAST, BATCHES_MOST, Batches, Interval, interval};
pub use devices::{ClassUse, DeviceUse};
pub use distribution::{Distribution, Summary};
pub use groups::{
    Group, GroupKey, Grouping, GroupingError, Groups, MOST_BOUNDS, OwnGroup, OwnRanges, Quality, SuitedRanges,
};
pub use guarantees::Guarantees;
pub use measures::{MEASURES, Measures};
pub use opportunistic::OpportunisticTotals;
pub use percentiles::{EXACT_MOST, Percentiles, SKETCH_ERROR};
pub use series::{BUCKETS_MOST, Bucket, Series};
pub use sliced::Sliced;
pub use student::mean_with_half_width;
pub use suspended::Suspended;
pub use window::{BatchRule, Mark, Window};

use self::area::AreaWeighted;
use self::steady::Steady;
use self::throughput::HourlyEnds;
use crate::finished::{Finished, Observer, SystemSnapshot};

/// The measures of the papers over the jobs of a run.
///
/// Jobs submitted before the end of the warm-up are simulated and not measured. Makespan,
/// utilization, queue and promises cover the whole run. With [batches by
/// termination](Metrics::in_batches) the jobs of these batches are measured, and the run ends with
/// the last of them.
#[derive(Clone, Debug)]
pub struct Metrics {
    procs: Procs,
    warmup: Span,
    /// The measures of the jobs.
    pub measures: Measures,
    /// The precision of the means.
    pub batches: Batches,
    /// The quality of the promises as forecasts.
    pub guarantees: Guarantees,
    /// The opportunistic work before starts.
    pub opportunistic: OpportunisticTotals,
    /// The measures of each group, for the requested groupings.
    pub groups: BTreeMap<Grouping, Groups>,
    /// The number and the cost of suspensions.
    pub suspended: Suspended,
    /// The use of slots, if time is sliced.
    pub sliced: Sliced,
    /// The measured terminations, if not all are measured.
    pub window: Option<Window>,
    totals: Totals,
}

/// The counts and sums over the whole run.
#[derive(Clone, Debug, Default)]
struct Totals {
    /// Jobs submitted, and those within the warm-up.
    submitted: u64,
    warming: u64,
    simulated: u64,
    measured: u64,
    killed: u64,
    promised: u64,
    broken: u64,
    /// Starts that were promised or planned, for the first time or another one.
    planned_starts: u64,
    refused: BTreeMap<Refusal, u64>,
    lost: u128,
    submitted_work: u128,
    immediate: u64,
    busy: u128,
    waited: u128,
    first_submit: Option<Time>,
    last_end: Option<Time>,
    queue: QueueMeasure,
    steady: Steady,
    area: AreaWeighted,
    ends: HourlyEnds,
}

/// The queue over time.
#[derive(Clone, Copy, Debug, Default)]
struct QueueMeasure {
    longest: usize,
    /// Processor-ticks idle while a job waited.
    lost: u128,
    /// Processor-ticks idle because a host was reserved.
    kept: u128,
    last: Option<(Time, SystemSnapshot)>,
}

impl Metrics {
    /// Returns empty measures for a machine of `procs` processors.
    pub fn new(procs: impl Into<Procs>, warmup: Span) -> Metrics {
        let measures = Measures::default();
        Metrics {
            procs: procs.into(),
            warmup,
            batches: Batches::new(measures.all().map(Distribution::unit)),
            measures,
            guarantees: Guarantees::default(),
            opportunistic: OpportunisticTotals::default(),
            groups: BTreeMap::new(),
            suspended: Suspended::default(),
            sliced: Sliced::default(),
            window: None,
            totals: Totals::default(),
        }
    }

    /// Also measures the jobs of each group of these groupings.
    #[must_use]
    pub fn grouped(mut self, by: &[Grouping]) -> Metrics {
        self.groups = by.iter().map(|&by| (by, Groups::new(by))).collect();
        self
    }

    /// Measures the jobs of these batches, by their terminations, instead of those submitted after
    /// a warm-up.
    #[must_use]
    pub fn in_batches(mut self, rule: Option<BatchRule>) -> Metrics {
        let Some(rule) = rule else { return self };
        self.batches = Batches::of_size(rule.jobs, self.measures.all().map(Distribution::unit));
        self.window = Some(Window::new(rule, self.sliced.slots.unit()));
        self
    }

    /// Returns the number of jobs that ended.
    pub fn simulated(&self) -> u64 {
        self.totals.simulated
    }

    /// Returns the number of ended jobs that were submitted after the warm-up.
    pub fn measured(&self) -> u64 {
        self.totals.measured
    }

    /// Returns the number of ended jobs that were killed at their estimate.
    pub fn killed_at_estimate(&self) -> u64 {
        self.totals.killed
    }

    /// Returns the number of promises, and the number of broken ones.
    pub fn promises(&self) -> (u64, u64) {
        (self.totals.promised, self.totals.broken)
    }

    /// Returns how often a start was promised or planned, for the first time or another one: the decisions of a
    /// policy that keeps reservations.
    pub fn planned_starts(&self) -> u64 {
        self.totals.planned_starts
    }

    /// Returns the time from the first submission to the last end, or `None` without jobs.
    pub fn makespan(&self) -> Option<Span> {
        Some(self.totals.last_end? - self.totals.first_submit?)
    }

    /// Returns busy processor-seconds over processors x makespan, 0 to 1, or `None` where that is 0
    /// / 0.
    pub fn utilization(&self) -> Option<f64> {
        self.share_of_capacity(self.totals.busy)
    }

    /// Returns busy processor-seconds over processors x time, 0 to 1, from the first submission to the last one, or `None`
    /// where these are one instant. No schedule looks worse because its last job ends later.
    pub fn utilization_to_last_submission(&self) -> Option<f64> {
        let (work, time) = self.totals.steady.work_and_time()?;
        Some(work as f64 / (self.procs.get() as f64 * time as f64))
    }

    /// Returns the share of the machine, 0 to 1, that was idle while jobs waited (Zhang et al.
    /// 2000).
    pub fn loss_of_capacity(&self) -> Option<f64> {
        self.share_of_capacity(self.totals.queue.lost)
    }

    /// Returns the share of the machine that was idle because a host was reserved for a waiting
    /// job, 0 to 1 (Chiang and Vernon §2.1).
    pub fn kept_idle(&self) -> Option<f64> {
        self.share_of_capacity(self.totals.queue.kept)
    }

    /// Returns the lost work as a share of the machine, 0 to 1.
    pub fn lost_work(&self) -> Option<f64> {
        self.share_of_capacity(self.totals.lost)
    }

    /// Returns the number of measured jobs that started at their submission, quanta excluded.
    ///
    /// They may have started with fewer processors than requested, and have received more later.
    pub fn started_immediately(&self) -> u64 {
        self.totals.immediate
    }

    /// Returns the resources held during swap-out and swap-in, as a share of the machine, 0 to 1.
    pub fn overhead(&self) -> Option<f64> {
        self.share_of_capacity(self.suspended.held)
    }

    /// Returns the number of jobs that the policy refused, by reason.
    pub fn refused_jobs(&self) -> &BTreeMap<Refusal, u64> {
        &self.totals.refused
    }

    /// Returns the mean number of waiting jobs over the makespan, and the maximum.
    pub fn queue_length(&self) -> (Option<f64>, usize) {
        let mean = self.length().map(|ticks| self.totals.waited as f64 / ticks);
        (mean, self.totals.queue.longest)
    }

    /// Returns the jobs ended per hour of the makespan.
    pub fn throughput_per_hour(&self) -> Option<f64> {
        self.makespan()
            .filter(|span| span.ticks() > 0)
            .map(|span| self.totals.simulated as f64 * 3600.0 / span.as_secs_f64())
    }

    /// Returns the standard deviation of the jobs that ended per hour, over the whole hours of the log
    /// between the first submission and the last end, or `None` without one.
    pub fn throughput_deviation(&self) -> Option<f64> {
        self.totals.ends.deviation(self.totals.first_submit?, self.totals.last_end?)
    }

    /// Returns the mean response of the measured jobs, in seconds, weighted by processors x runtime, or
    /// `None` without work.
    pub fn area_weighted_response(&self) -> Option<f64> {
        self.totals.area.response()
    }

    /// Returns the mean slowdown of the measured jobs, weighted by processors x runtime, or `None`
    /// without work.
    pub fn area_weighted_slowdown(&self) -> Option<f64> {
        self.totals.area.slowdown()
    }

    /// Returns the mean number of used slots over the makespan, if time is sliced.
    pub fn used_slots(&self) -> Option<f64> {
        let end = self.totals.last_end?;
        self.length().map(|ticks| self.sliced.slot_ticks(end) as f64 / ticks)
    }

    fn share_of_capacity(&self, ticks: u128) -> Option<f64> {
        self.length().map(|length| ticks as f64 / (self.procs.get() as f64 * length))
    }

    fn length(&self) -> Option<f64> {
        self.makespan().map(|span| span.ticks() as f64).filter(|&ticks| ticks > 0.0)
    }

    /// Measures a job that ended.
    pub fn measure_end(&mut self, job: &Finished) {
        let place = self.place(job);
        self.totals.simulated += 1;
        self.totals.killed += u64::from(job.killed);
        self.totals.promised += u64::from(job.promised.is_some());
        self.totals.broken += u64::from(job.broken);
        let run = u128::from(job.runtime.ticks().unsigned_abs());
        let work = run * u128::from(job.request.procs());
        self.totals.busy += work;
        self.totals.steady.ended(job, work);
        // A job that ended before its start was in the queue until then.
        let left_queue = job.reason.map_or(job.end, |_| job.start);
        self.totals.waited += u128::from((left_queue - job.request.submit).ticks().unsigned_abs());
        self.opportunistic.add(job);
        self.suspended.add(job);
        self.totals.lost += job.lost;
        self.totals.last_end = self.totals.last_end.max(Some(job.end));
        self.totals.ends.add(job.end);
        if let Some(place) = place {
            self.totals.area.add(job, work);
            self.measure(job, place);
        }
    }

    /// Measures a job at its position in the order of the batches.
    fn measure(&mut self, job: &Finished, place: u64) {
        self.totals.measured += 1;
        let immediate = job.start == job.request.submit
            && job.reason.is_some_and(|reason| reason != StartReason::Quantum);
        self.totals.immediate += u64::from(immediate);
        let amounts = self.measures.add(job);
        self.batches.add(place, &amounts);
        let slots = self.sliced.add(job);
        if let Some(window) = &mut self.window {
            window.add(place, slots);
        }
        self.guarantees.add(job);
        self.groups.values_mut().for_each(|groups| groups.add(job, place));
    }

    /// Returns the position of a measured job in the order of the batches.
    ///
    /// The order is that of terminations, or of submissions.
    fn place(&self, job: &Finished) -> Option<u64> {
        match &self.window {
            Some(window) => window.rule.place(self.totals.simulated),
            // All measured jobs were submitted after those that are not measured.
            None => self.measures_from(job.request.submit).then(|| job.admission - self.totals.warming),
        }
    }

    /// Returns whether a job submitted then is measured.
    fn measures_from(&self, submit: Time) -> bool {
        submit >= self.totals.first_submit.unwrap_or(submit) + self.warmup
    }
}

impl Observer for Metrics {
    fn submitted(&mut self, now: Time, request: &Request) {
        self.totals.first_submit.get_or_insert(now);
        self.totals.steady.submitted(now);
        self.totals.submitted += 1;
        self.totals.warming += u64::from(!self.measures_from(request.submit));
        if self.window.is_none() {
            // A job that will be refused counts too, so that the batches are the same under every
            // policy.
            self.batches.reach(self.totals.submitted - self.totals.warming);
        }
    }

    fn effect(&mut self, _now: Time, _job: JobNumber, effect: &Effect) {
        let plans =
            matches!(effect, Effect::Promised { .. } | Effect::PromiseBroken { .. } | Effect::Planned { .. });
        self.totals.planned_starts += u64::from(plans);
    }

    fn instant(&mut self, now: Time, standing: SystemSnapshot) {
        self.sliced.instant(now, standing);
        self.totals.submitted_work = standing.submitted_work;
        let queue = &mut self.totals.queue;
        queue.longest = queue.longest.max(standing.waiting);
        if let Some((since, before)) = queue.last.filter(|(_, before)| before.waiting > 0) {
            let ticks = u128::from((now - since).ticks().unsigned_abs());
            queue.lost += ticks * u128::from(before.free);
            queue.kept += ticks * u128::from(before.kept);
        }
        queue.last = Some((now, standing));
    }

    fn system(&mut self, now: Time, system: &System) {
        self.sliced.system(system);
        let Some(window) = self.window.as_mut().filter(|window| window.is_due(self.totals.simulated)) else {
            return;
        };
        let (done, jobs) = window::in_system(now, system);
        let (submitted_work, slot_ticks) = (self.totals.submitted_work, self.sliced.slot_ticks(now));
        let unifications = self.sliced.unifications;
        let mark =
            Mark { at: now, jobs, submitted_work, done: self.totals.busy + done, slot_ticks, unifications };
        window.mark(self.totals.simulated, mark);
    }

    fn has_enough(&self) -> bool {
        self.window.as_ref().is_some_and(Window::is_full)
    }

    fn refused(&mut self, _now: Time, _request: &Request, why: Refusal) -> io::Result<()> {
        *self.totals.refused.entry(why).or_default() += 1;
        Ok(())
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.measure_end(job);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::Resources;

    use super::*;
    use crate::LoggedStatus;

    fn job(number: i64) -> Finished {
        let secs = |secs| Span::from_secs(secs).unwrap();
        let submit = Time::ZERO + secs(7 * number);
        let start = submit + secs(number * number % 50);
        let runtime = secs(number % 20);
        let procs = 1 + number.unsigned_abs() % 4;
        Finished {
            admission: number.unsigned_abs(),
            request: Request::new(number, submit, secs(60), Resources::cpus(procs)),
            runtime,
            killed: number % 5 == 0,
            status: LoggedStatus::Unknown,
            labels: Vec::new(),
            start,
            end: start + runtime,
            reason: Some(StartReason::Reserved),
            promised: (number % 2 == 0).then_some(start),
            reserved: None,
            broken: number % 4 == 0,
            pes: None,
            allocations: vec![],
            interruptions: crate::Interruptions::default(),
            lost: 0,
            opportunistic: None,
            slices: None,
        }
    }

    /// Returns the measures of 90 jobs that end in this order.
    fn measured(ends: impl Iterator<Item = i64>) -> Metrics {
        let mut metrics = Metrics::new(4, Span::ZERO);
        for job in (0..90).map(job) {
            metrics.submitted(job.request.submit, &job.request);
        }
        for job in ends.map(job) {
            metrics.finished(&job).unwrap();
        }
        metrics
    }

    /// Ten processors; the last of three jobs of five processors is submitted at 200 s.
    #[test]
    fn a_late_end_is_no_lost_machine() {
        let secs = |secs| Span::from_secs(secs).unwrap();
        let utilizations = |starts: [i64; 3]| {
            let mut metrics = Metrics::new(10, Span::ZERO);
            for (number, (submit, start)) in [0, 50, 200].into_iter().zip(starts).enumerate() {
                let submit = Time::ZERO + secs(submit);
                let request = Request::new(1, submit, secs(100), Resources::cpus(5));
                metrics.submitted(submit, &request);
                let (start, runtime) = (Time::ZERO + secs(start), secs(100));
                let admission = number as u64;
                metrics.measure_end(&Finished {
                    admission,
                    request,
                    runtime,
                    start,
                    end: start + runtime,
                    ..job(0)
                });
            }
            (metrics.utilization_to_last_submission(), metrics.utilization())
        };
        assert_eq!(utilizations([0, 50, 200]), (Some(0.5), Some(0.5)));
        assert_eq!(utilizations([0, 150, 900]), (Some(0.375), Some(0.15)));
    }

    /// Returns the measures of jobs as submission, start, runtime and processors.
    fn metrics_of(jobs: &[[i64; 4]]) -> Metrics {
        let secs = |secs| Span::from_secs(secs).unwrap();
        let mut metrics = Metrics::new(10, Span::ZERO);
        for (admission, [submit, start, runtime, procs]) in (0..).zip(jobs) {
            let procs = Resources::cpus(procs.unsigned_abs());
            let request = Request::new(1, Time::ZERO + secs(*submit), secs(*runtime), procs);
            metrics.submitted(request.submit, &request);
            let (start, runtime) = (Time::ZERO + secs(*start), secs(*runtime));
            let end = start + runtime;
            metrics.measure_end(&Finished { admission, request, runtime, start, end, ..job(0) });
        }
        metrics
    }

    /// Areas 200 and 400 with responses 150 and 100: 70 000 / 600. Slowdowns 1.5 and 1: 700 / 600. The job
    /// without a runtime has no area.
    #[test]
    fn jobs_weighted_by_their_area() {
        let metrics = metrics_of(&[[0, 50, 100, 2], [10, 10, 100, 4], [20, 900, 0, 8]]);
        assert_eq!(metrics.area_weighted_response(), Some(70_000.0 / 600.0));
        assert_eq!(metrics.area_weighted_slowdown(), Some(700.0 / 600.0));
        let none = metrics_of(&[[0, 0, 0, 1]]);
        assert_eq!((none.area_weighted_response(), none.area_weighted_slowdown()), (None, None));
    }

    /// The first submission is at 1800 s and the last end at 4 h: the hours 1, 2 and 3 have 2, 0 and 1 ends.
    /// The mean is 1 and the deviation sqrt((1 + 1 + 0) / 3) = sqrt(6) / 3.
    #[test]
    fn the_deviation_of_the_throughput() {
        let metrics = metrics_of(&[
            [1800, 1800, 60, 1],
            [1800, 3600, 0, 1],
            [1800, 3600, 3599, 1],
            [1800, 10_800, 60, 1],
            [1800, 14_340, 60, 1],
        ]);
        assert_eq!(metrics.throughput_deviation(), Some(f64::sqrt(6.0) / 3.0));
        assert_eq!(metrics_of(&[[0, 0, 3599, 1]]).throughput_deviation(), None);
        assert_eq!(metrics_of(&[[0, 0, 3600, 1]]).throughput_deviation(), Some(0.0));
    }

    proptest::proptest! {
        /// Against sums of floating-point numbers, and a count for each hour from the first to the last.
        #[test]
        fn weighted_means_and_the_deviation_are_those_of_a_naive_sum(
            jobs in proptest::collection::vec(
                (0..20_000_i64, 0..30_000_i64, 0..9000_i64, 1..10_i64), 1..40)
        ) {
            let mut jobs: Vec<[i64; 4]> = jobs
                .into_iter()
                .map(|(submit, wait, runtime, procs)| [submit, submit + wait, runtime, procs])
                .collect();
            jobs.sort_unstable();
            let metrics = metrics_of(&jobs);
            let near = |a: Option<f64>, b: f64| match a {
                Some(a) => (a - b).abs() <= 1e-9 * b.abs().max(1.0),
                None => b.is_nan(),
            };
            let weighted = |value: &dyn Fn(f64, f64) -> f64| {
                let ran = || jobs.iter().filter(|job| job[2] > 0);
                let area = |job: &[i64; 4]| (job[2] * job[3]) as f64;
                let response = |job: &[i64; 4]| (job[1] + job[2] - job[0]) as f64;
                ran().map(|job| area(job) * value(response(job), job[2] as f64)).sum::<f64>()
                    / ran().map(area).sum::<f64>()
            };
            proptest::prop_assert!(near(metrics.area_weighted_response(), weighted(&|response, _| response)));
            let slowdown = weighted(&|response, runtime| response / runtime);
            proptest::prop_assert!(near(metrics.area_weighted_slowdown(), slowdown));
            let first = jobs[0][0];
            let last = jobs.iter().map(|job| job[1] + job[2]).max().unwrap();
            let hours: Vec<f64> = (0..20)
                .filter(|hour| first <= hour * 3600 && hour * 3600 + 3600 <= last)
                .map(|hour| jobs.iter().filter(|job| (job[1] + job[2]) / 3600 == hour).count() as f64)
                .collect();
            let mean = hours.iter().sum::<f64>() / hours.len() as f64;
            let variance = hours.iter().map(|jobs| (jobs - mean).powi(2)).sum::<f64>() / hours.len() as f64;
            proptest::prop_assert!(near(metrics.throughput_deviation(), variance.sqrt()));
        }
    }

    #[test]
    fn the_order_of_the_ends_does_not_show() {
        let figures = |mut metrics: Metrics| {
            let summaries = metrics.measures.all_mut().map(Distribution::summary);
            let intervals: [Interval; MEASURES] = std::array::from_fn(|at| metrics.batches.interval(at));
            let counts = (metrics.simulated(), metrics.measured(), metrics.killed_at_estimate());
            (
                summaries,
                intervals,
                counts,
                metrics.promises(),
                metrics.makespan(),
                metrics.utilization_to_last_submission(),
                (metrics.area_weighted_response(), metrics.area_weighted_slowdown()),
                metrics.throughput_deviation(),
            )
        };
        let in_order = figures(measured(0..90));
        assert_eq!(figures(measured((0..90).rev())), in_order);
        assert_eq!(figures(measured((0..90).map(|number| number * 37 % 90))), in_order);
    }
}
