//! One pass over a window of a log: the loop of the benchmark.

use std::ops::Range;
use std::sync::Arc;

use crate::log::{Job, JobLog};

/// A job that runs.
#[derive(Clone, Copy, Debug)]
struct Running {
    end: i64,
    estimated_end: i64,
    procs: u32,
}

/// One pass over a window of a log.
///
/// A scheduler takes a waiting job with [`commit`](Episode::commit). Time moves on, by one arrival or one end at a time,
/// until the job fits, and then it starts. The scheduler cannot take it back. Jobs that arrive meanwhile wait.
/// The machine is empty at the begin of the window.
///
/// # Source
/// Zhang et al.: `RLScheduler`, SC 2020, and their published code. A backfilling pass starts each job, in the order of
/// arrival, that ends by its estimate strictly before the shadow time of the committed one. It has no extra processors,
/// and the shadow time is computed once.
#[derive(Clone, Debug)]
pub struct Episode {
    log: Arc<JobLog>,
    window: Range<usize>,
    backfills: bool,
    now: i64,
    free: u32,
    /// The next job that arrives.
    next: usize,
    /// The waiting jobs, as indexes of the log.
    queue: Vec<usize>,
    /// In the order of the ends, where ends are equal in that of the last sort.
    running: Vec<Running>,
    /// The starts of the jobs of the window.
    starts: Vec<Option<i64>>,
}

impl Episode {
    /// Begins a pass over the jobs of this range, which is not empty and within the log.
    ///
    /// # Panics
    /// If it is not.
    pub fn new(log: Arc<JobLog>, window: Range<usize>, backfills: bool) -> Episode {
        assert!(!window.is_empty() && window.end <= log.jobs.len(), "the window is within the log");
        let first = window.start;
        Episode {
            now: log.jobs[first].submit,
            free: log.procs,
            next: first + 1,
            queue: vec![first],
            running: vec![],
            starts: vec![None; window.len()],
            log,
            window,
            backfills,
        }
    }

    /// Returns the log.
    pub fn log(&self) -> &JobLog {
        &self.log
    }

    /// Returns the present time, in seconds of the log.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// Returns the free processors.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Returns the waiting jobs, in the order of the last sort, later arrivals behind.
    pub fn queue(&self) -> impl ExactSizeIterator<Item = &Job> {
        self.queue.iter().map(|index| &self.log.jobs[*index])
    }

    /// Returns the waiting job at this position.
    ///
    /// # Panics
    /// If no job has that position.
    pub fn waiting(&self, position: usize) -> &Job {
        &self.log.jobs[self.queue[position]]
    }

    /// Sorts the waiting jobs by a key, smallest first. Equal ones keep their order.
    pub fn sort_by_key<K: PartialOrd>(&mut self, mut key: impl FnMut(&Job, i64) -> K) {
        let (log, now) = (&self.log, self.now);
        let mut keyed: Vec<(K, usize)> =
            self.queue.iter().map(|index| (key(&log.jobs[*index], now), *index)).collect();
        keyed.sort_by(|one, other| one.0.partial_cmp(&other.0).unwrap_or(std::cmp::Ordering::Equal));
        self.queue.clear();
        self.queue.extend(keyed.into_iter().map(|(_, index)| index));
    }

    /// Starts the waiting job at this position as soon as it fits. Then, if no job waits, time moves on to the next arrival.
    /// Returns whether a job waits.
    ///
    /// # Panics
    /// If no job has that position.
    pub fn commit(&mut self, position: usize) -> bool {
        let chosen = self.queue[position];
        let procs = self.log.jobs[chosen].procs;
        if self.free < procs {
            let shadow = self.backfills.then(|| self.shadow_time(procs));
            while self.free < procs {
                if let Some(shadow) = shadow {
                    self.backfill(shadow);
                }
                self.step();
            }
        }
        self.queue.retain(|index| *index != chosen);
        self.start(chosen);
        while self.queue.is_empty() && self.next < self.window.end {
            self.step();
        }
        !self.queue.is_empty()
    }

    /// Returns the time at which the jobs that run will have left so many processors, by their estimates.
    fn shadow_time(&mut self, procs: u32) -> i64 {
        self.running.sort_by_key(|job| job.estimated_end);
        let mut free = self.free;
        let mut ends = self.running.iter();
        let enough = ends.find(|job| {
            free += job.procs;
            free >= procs
        });
        let shadow = enough.map_or(self.now, |job| job.estimated_end);
        self.running.sort_by_key(|job| job.end);
        shadow
    }

    /// Starts each waiting job that fits now and ends before the shadow time, in the order of arrival.
    fn backfill(&mut self, shadow: i64) {
        let log = Arc::clone(&self.log);
        self.queue.sort_by_key(|index| log.jobs[*index].submit);
        let mut position = 0;
        while let Some(&index) = self.queue.get(position) {
            let job = &log.jobs[index];
            if self.now.saturating_add(job.estimate) < shadow && job.procs <= self.free {
                self.queue.remove(position);
                self.start(index);
            } else {
                position += 1;
            }
        }
    }

    fn start(&mut self, index: usize) {
        let job = self.log.jobs[index];
        self.free -= job.procs;
        self.starts[index - self.window.start] = Some(self.now);
        let end = self.now.saturating_add(job.runtime);
        let estimated_end = self.now.saturating_add(job.estimate);
        let position = self.running.partition_point(|other| other.end <= end);
        self.running.insert(position, Running { end, estimated_end, procs: job.procs });
    }

    /// Moves time on to the next arrival, or to the next end if it comes first.
    fn step(&mut self) {
        let end = self.running.first().map_or(i64::MAX, |job| job.end);
        if self.next < self.window.end && self.log.jobs[self.next].submit <= end {
            self.now = self.now.max(self.log.jobs[self.next].submit);
            self.queue.push(self.next);
            self.next += 1;
        } else {
            let ended = self.running.remove(0);
            self.now = self.now.max(end);
            self.free += ended.procs;
        }
    }

    /// Returns the jobs that have started, with their starts.
    pub fn started(&self) -> impl Iterator<Item = (&Job, i64)> {
        let jobs = &self.log.jobs[self.window.clone()];
        jobs.iter().zip(&self.starts).filter_map(|(job, start)| start.map(|start| (job, start)))
    }

    /// Returns the mean bounded slowdown over the jobs of the window that have started.
    pub fn mean_bounded_slowdown(&self) -> f64 {
        self.mean(|job, start| bounded_slowdown(job, start as f64))
    }

    /// Returns the mean over the jobs of the window of a value of a job and its start.
    pub(crate) fn mean(&self, value: impl Fn(&Job, i64) -> f64) -> f64 {
        self.started().map(|(job, start)| value(job, start)).sum::<f64>() / self.starts.len() as f64
    }

    /// Returns the utilization: the work of the jobs that have started, of what the machine had from the first submission
    /// to the last start.
    pub fn utilization(&self) -> f64 {
        self.work() / (self.span_to(self.now) as f64 * f64::from(self.log.procs))
    }

    /// Returns the utilization from the first submission to the last end of the jobs that have started.
    pub fn utilization_to_last_end(&self) -> f64 {
        let end = self.started().map(|(job, start)| start.saturating_add(job.runtime)).max();
        let span = end.map_or(0, |end| self.span_to(end));
        if span > 0 { self.work() / (span as f64 * f64::from(self.log.procs)) } else { 0.0 }
    }

    /// Returns the processor time of the jobs that have started, in seconds.
    fn work(&self) -> f64 {
        self.started().map(|(job, _)| job.runtime as f64 * f64::from(job.procs)).sum()
    }

    /// Returns the time since the first submission.
    fn span_to(&self, instant: i64) -> i64 {
        instant - self.log.jobs[self.window.start].submit
    }
}

/// Returns the bounded slowdown of a job, with a bound of 10 s.
pub fn bounded_slowdown(job: &Job, start: f64) -> f64 {
    let response = start - job.submit as f64 + job.runtime as f64;
    (response / job.runtime.max(10) as f64).max(1.0)
}
