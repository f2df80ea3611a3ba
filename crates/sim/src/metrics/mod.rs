//! What is measured of a schedule, as accumulators that merge: the same bytes in any order of merging.

mod distribution;

mod percentiles;

use std::io;

use miserly_core::{Request, Span, Time};

pub use distribution::{Distribution, Summary};
pub use percentiles::{EXACT_MOST, Percentiles, SKETCH_ERROR};

use crate::finished::{Finished, Observer};

/// The bound of the bounded slowdowns: jobs shorter than this count as this long (Zotkin et al. §2).
const TAU: Span = Span::from_ticks(10_000_000);

/// The measures of spec'd papers over the jobs of a run.
///
/// Jobs submitted before the end of the warm-up are simulated and not measured; makespan, utilisation, queue
/// and promises are of the whole run.
#[derive(Clone, Debug)]
pub struct Metrics {
    procs: u64,
    warmup: Span,
    /// Time in the queue, seconds.
    pub wait: Distribution,
    /// Time in the system, seconds.
    pub response: Distribution,
    /// Response / runtime, over the jobs that ran at all.
    pub slowdown: Distribution,
    /// (wait + max(run, 10 s)) / max(run, 10 s): the bounded slowdown of Zotkin and of Kettimuthu.
    pub bounded_slowdown: Distribution,
    /// max(1, (wait + run) / max(run, 10 s)): the form that is standard today.
    pub bounded_slowdown_standard: Distribution,
    /// Response / (processors x max(run, 10 s)): Zotkin et al. eq. 2.
    pub width_slowdown: Distribution,
    simulated: u64,
    measured: u64,
    killed: u64,
    promised: u64,
    broken: u64,
    busy: u128,
    waited: u128,
    first_submit: Option<Time>,
    last_end: Option<Time>,
    queue: QueueMeasure,
}

/// The queue over time.
#[derive(Clone, Copy, Debug, Default)]
struct QueueMeasure {
    longest: usize,
    /// Processor-ticks idle while a job waited.
    lost: u128,
    last: Option<(Time, u64, usize)>,
}

impl Metrics {
    /// Nothing measured yet, on a machine of `procs` processors.
    pub fn new(procs: u64, warmup: Span) -> Metrics {
        Metrics {
            procs,
            warmup,
            wait: Distribution::of_spans(),
            response: Distribution::of_spans(),
            slowdown: Distribution::of_ratios(),
            bounded_slowdown: Distribution::of_ratios(),
            bounded_slowdown_standard: Distribution::of_ratios(),
            width_slowdown: Distribution::of_ratios(),
            simulated: 0,
            measured: 0,
            killed: 0,
            promised: 0,
            broken: 0,
            busy: 0,
            waited: 0,
            first_submit: None,
            last_end: None,
            queue: QueueMeasure::default(),
        }
    }

    /// Jobs that ended.
    pub fn simulated(&self) -> u64 {
        self.simulated
    }

    /// Jobs among them that were submitted after the warm-up.
    pub fn measured(&self) -> u64 {
        self.measured
    }

    /// Jobs among them that were killed at their estimate.
    pub fn killed_at_estimate(&self) -> u64 {
        self.killed
    }

    /// Promises made, and those that were broken.
    pub fn promises(&self) -> (u64, u64) {
        (self.promised, self.broken)
    }

    /// From the first submission to the last end; `None` without jobs.
    pub fn makespan(&self) -> Option<Span> {
        Some(self.last_end? - self.first_submit?)
    }

    /// Busy processor-seconds over processors x makespan, 0 to 1; `None` where that is 0 / 0.
    pub fn utilization(&self) -> Option<f64> {
        self.share_of_capacity(self.busy)
    }

    /// The share of the machine that was idle while some job waited (Zhang et al. 2000), 0 to 1.
    pub fn loss_of_capacity(&self) -> Option<f64> {
        self.share_of_capacity(self.queue.lost)
    }

    /// Jobs waiting, on the average over the makespan, and at most.
    pub fn queue_length(&self) -> (Option<f64>, usize) {
        let mean = self.length().map(|ticks| self.waited as f64 / ticks);
        (mean, self.queue.longest)
    }

    /// Jobs ended per hour of the makespan.
    pub fn throughput_per_hour(&self) -> Option<f64> {
        self.makespan()
            .filter(|span| span.ticks() > 0)
            .map(|span| self.simulated as f64 * 3600.0 / span.as_secs_f64())
    }

    fn share_of_capacity(&self, ticks: u128) -> Option<f64> {
        self.length().map(|length| ticks as f64 / (self.procs as f64 * length))
    }

    fn length(&self) -> Option<f64> {
        self.makespan().map(|span| span.ticks() as f64).filter(|&ticks| ticks > 0.0)
    }

    /// Adds what another accumulator measured of the same machine: other jobs, or another run.
    ///
    /// Every sum is an integer, so the order of merging does not show.
    pub fn merge(&mut self, other: &Metrics) {
        for (mine, theirs) in self.distributions_mut().into_iter().zip(other.distributions()) {
            mine.merge(theirs);
        }
        self.simulated += other.simulated;
        self.measured += other.measured;
        self.killed += other.killed;
        self.promised += other.promised;
        self.broken += other.broken;
        self.busy += other.busy;
        self.waited += other.waited;
        self.first_submit = [self.first_submit, other.first_submit].into_iter().flatten().min();
        self.last_end = self.last_end.max(other.last_end);
        self.queue.longest = self.queue.longest.max(other.queue.longest);
        self.queue.lost += other.queue.lost;
    }

    fn distributions(&self) -> [&Distribution; 6] {
        [
            &self.wait,
            &self.response,
            &self.slowdown,
            &self.bounded_slowdown,
            &self.bounded_slowdown_standard,
            &self.width_slowdown,
        ]
    }

    fn distributions_mut(&mut self) -> [&mut Distribution; 6] {
        [
            &mut self.wait,
            &mut self.response,
            &mut self.slowdown,
            &mut self.bounded_slowdown,
            &mut self.bounded_slowdown_standard,
            &mut self.width_slowdown,
        ]
    }

    fn measure(&mut self, job: &Finished) {
        self.measured += 1;
        let (wait, response) = (job.wait(), job.response());
        let run = job.end - job.start;
        let bounded = run.max(TAU).ticks() as f64;
        let response_ticks = response.ticks() as f64;
        self.wait.add_span(wait);
        self.response.add_span(response);
        if run > Span::ZERO {
            self.slowdown.add_ratio(response_ticks / run.ticks() as f64);
        }
        self.bounded_slowdown.add_ratio((wait + run.max(TAU)).ticks() as f64 / bounded);
        self.bounded_slowdown_standard.add_ratio((response_ticks / bounded).max(1.0));
        self.width_slowdown.add_ratio(response_ticks / (job.request.procs() as f64 * bounded));
    }
}

impl Observer for Metrics {
    fn submitted(&mut self, now: Time, _request: &Request) {
        self.first_submit.get_or_insert(now);
    }

    fn instant(&mut self, now: Time, free: u64, waiting: usize) {
        let queue = &mut self.queue;
        queue.longest = queue.longest.max(waiting);
        if let Some((since, idle, _)) = queue.last.filter(|&(_, _, waiting)| waiting > 0) {
            queue.lost += u128::from((now - since).ticks().unsigned_abs()) * u128::from(idle);
        }
        queue.last = Some((now, free, waiting));
    }

    fn finished(&mut self, job: &Finished) -> io::Result<()> {
        self.simulated += 1;
        self.killed += u64::from(job.killed);
        self.promised += u64::from(job.promised.is_some());
        self.broken += u64::from(job.broken);
        let run = u128::from((job.end - job.start).ticks().unsigned_abs());
        self.busy += run * u128::from(job.request.procs());
        self.waited += u128::from(job.wait().ticks().unsigned_abs());
        self.last_end = self.last_end.max(Some(job.end));
        let origin = self.first_submit.unwrap_or(job.request.submit);
        if job.request.submit >= origin + self.warmup {
            self.measure(job);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{Reason, Resources};

    use super::*;

    fn job(number: i64) -> Finished {
        let secs = |secs| Span::from_secs(secs).unwrap();
        let submit = Time::ZERO + secs(7 * number);
        let start = submit + secs(number * number % 50);
        let runtime = secs(number % 20);
        let procs = 1 + number.unsigned_abs() % 4;
        Finished {
            request: Request::new(number, submit, secs(60), Resources::cpus(procs)),
            runtime,
            killed: number % 5 == 0,
            start,
            end: start + runtime,
            reason: Reason::Reserved,
            promised: (number % 2 == 0).then_some(start),
            broken: number % 4 == 0,
            pes: None,
            record: None,
        }
    }

    fn measured(numbers: impl Iterator<Item = i64>) -> Metrics {
        let mut metrics = Metrics::new(4, Span::ZERO);
        for job in numbers.map(job) {
            metrics.submitted(job.request.submit, &job.request);
            metrics.finished(&job).unwrap();
        }
        metrics
    }

    #[test]
    fn merged_in_any_order_the_parts_are_the_whole() {
        let figures = |metrics: &mut Metrics| {
            let summaries = metrics.distributions_mut().map(Distribution::summary);
            let counts = (metrics.simulated(), metrics.measured(), metrics.killed_at_estimate());
            (summaries, counts, metrics.promises(), metrics.makespan(), metrics.utilization())
        };
        let whole = figures(&mut measured(0..90));
        let parts = [0..20, 20..50, 50..90];
        for order in [[0, 1, 2], [2, 0, 1], [1, 2, 0]] {
            let mut merged = measured(parts[order[0]].clone());
            merged.merge(&measured(parts[order[1]].clone()));
            merged.merge(&measured(parts[order[2]].clone()));
            assert_eq!(figures(&mut merged), whole);
        }
    }
}
