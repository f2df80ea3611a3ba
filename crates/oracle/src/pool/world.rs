//! The event loop of the pool, and its decisions.

use miserly_core::{EventOrder, Kind, Refusal, Request, Resources, Time};

use super::{NaiveChange, NaiveFate, NaivePool};
use crate::order::arrival;

/// A job that has started and has no reported end yet.
struct Running {
    job: usize,
    start: i64,
    end: i64,
    expected: i64,
    noticed: bool,
    gone: bool,
}

impl Running {
    /// Returns whether the job becomes overdue at that time.
    fn is_found(&self, now: i64) -> bool {
        !self.noticed && self.expected == now && self.end > now
    }
}

/// A window: its job and its start. `None` means that there is no place for it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Window {
    job: usize,
    at: Option<i64>,
}

/// An allocated interval.
struct Taken {
    from: i64,
    to: i64,
    amount: Resources,
}

/// The state of the run. Jobs are identified by their positions.
pub(super) struct World<'a> {
    pool: &'a NaivePool,
    /// The requests with their amendments.
    requests: Vec<Request>,
    capacity: Resources,
    now: i64,
    future: Vec<usize>,
    changes: Vec<(Time, NaiveChange)>,
    waiting: Vec<usize>,
    running: Vec<Running>,
    /// Waiting jobs that lost their windows with a change of their requests. They come before compression.
    displaced: Vec<usize>,
    /// The windows, in the order in which their starts were decided. One that moves goes to the
    /// end.
    windows: Vec<Window>,
    wake: Option<i64>,
    fates: Vec<NaiveFate>,
}

impl<'a> World<'a> {
    pub(super) fn new(pool: &'a NaivePool) -> World<'a> {
        World {
            pool,
            requests: pool.jobs.iter().map(|job| job.request.clone()).collect(),
            capacity: pool.most(),
            now: 0,
            future: (0..pool.jobs.len()).collect(),
            changes: pool.changes.clone(),
            waiting: Vec::new(),
            running: Vec::new(),
            displaced: Vec::new(),
            windows: Vec::new(),
            wake: None,
            fates: vec![NaiveFate::default(); pool.jobs.len()],
        }
    }

    pub(super) fn run(mut self, event_order: EventOrder) -> Vec<NaiveFate> {
        while let Some(now) = self.next_instant() {
            self.now = now;
            self.round(event_order);
        }
        self.fates
    }

    fn next_instant(&self) -> Option<i64> {
        let submits = self.future.iter().map(|&job| self.requests[job].submit.ticks());
        let ends = self.running.iter().map(|running| running.end);
        let notices =
            self.running.iter().filter(|r| !r.noticed && r.expected < r.end).map(|running| running.expected);
        let changes = self.changes.iter().map(|(at, _)| at.ticks());
        submits.chain(ends).chain(notices).chain(changes).chain(self.wake).min()
    }

    fn round(&mut self, event_order: EventOrder) {
        let (now, timer) = (self.now, self.wake == Some(self.now));
        let ended: Vec<usize> = self.running.iter().filter(|r| r.end == now).map(|r| r.job).collect();
        let (due, later) = self.changes.iter().partition(|(at, _)| at.ticks() == now);
        self.changes = later;
        let mut due: Vec<(Time, NaiveChange)> = due;
        due.retain(|(_, change)| self.is_about_somebody(*change, &ended));
        let mut submitted = self.future.clone();
        submitted.retain(|&job| self.requests[job].submit.ticks() == now);
        submitted.sort_by_key(|&job| arrival(job, &self.pool.jobs));
        if ended.is_empty() && due.is_empty() && submitted.is_empty() && !timer && !self.any_notice() {
            return;
        }
        match event_order {
            EventOrder::Batched => self.batch(&ended, &due, &submitted),
            EventOrder::Sequential => self.sequential(&ended, &due, &submitted, timer),
        }
    }

    /// Handles all events, then runs one pass.
    fn batch(&mut self, ended: &[usize], due: &[(Time, NaiveChange)], submitted: &[usize]) {
        for &job in ended {
            self.end(job);
        }
        self.notice();
        for (_, change) in due {
            self.change(*change);
        }
        for &job in submitted {
            self.submit(job);
        }
        self.pass(!ended.is_empty(), !due.is_empty());
    }

    /// Handles one event at a time, each followed by a pass.
    fn sequential(&mut self, ended: &[usize], due: &[(Time, NaiveChange)], submitted: &[usize], timer: bool) {
        for running in &mut self.running {
            running.gone = running.end == self.now && running.expected == self.now;
        }
        if self.notice() {
            self.pass(false, false);
        }
        for (_, change) in due {
            self.change(*change);
        }
        if !due.is_empty() {
            self.pass(false, true);
        }
        for &job in submitted {
            self.submit(job);
            self.pass(false, false);
        }
        for &job in ended {
            self.end(job);
            self.pass(true, false);
        }
        if timer {
            self.pass(false, false);
        }
    }

    fn is_about_somebody(&self, change: NaiveChange, ended: &[usize]) -> bool {
        match change {
            NaiveChange::Withdraw(job) | NaiveChange::Begin(job, _) | NaiveChange::Request(job, ..) => {
                self.waiting.contains(&job)
            }
            NaiveChange::Estimate(job, _) => {
                let runs = self.running.iter().any(|running| running.job == job);
                self.waiting.contains(&job) || (runs && !ended.contains(&job))
            }
            NaiveChange::Capacity(_) => true,
        }
    }

    fn submit(&mut self, job: usize) {
        self.future.retain(|&other| other != job);
        self.waiting.push(job);
    }

    fn end(&mut self, job: usize) {
        self.running.retain(|running| running.job != job);
    }

    fn any_notice(&self) -> bool {
        self.running.iter().any(|running| running.is_found(self.now))
    }

    /// Reports overdue jobs and returns whether there are any.
    fn notice(&mut self) -> bool {
        let now = self.now;
        let any = self.any_notice();
        for running in self.running.iter_mut().filter(|running| running.is_found(now)) {
            running.noticed = true;
        }
        any
    }

    fn change(&mut self, change: NaiveChange) {
        match change {
            NaiveChange::Withdraw(job) => {
                self.waiting.retain(|&other| other != job);
                self.windows.retain(|window| window.job != job);
            }
            NaiveChange::Begin(job, begin) => self.requests[job].constraints.begin = begin,
            NaiveChange::Estimate(job, estimate) => {
                self.requests[job].estimate = estimate;
                let planned = self.requests[job].planned().ticks();
                for running in self.running.iter_mut().filter(|running| running.job == job) {
                    running.expected = (running.start + planned).max(self.now + 1);
                    running.noticed = false;
                }
            }
            NaiveChange::Request(job, demand, estimate) => {
                (self.requests[job].demand, self.requests[job].estimate) = (demand, estimate);
                self.windows.retain(|window| window.job != job);
                self.displaced.push(job);
            }
            NaiveChange::Capacity(capacity) => self.capacity = capacity,
        }
    }
}

/// Decisions.
impl World<'_> {
    fn pass(&mut self, ended: bool, disturbed: bool) {
        let missed = self.windows.iter().any(|window| window.at.is_some_and(|at| at < self.now));
        let overdue = self.running.iter().any(|running| running.noticed && !running.gone);
        if disturbed || missed || overdue {
            self.repair();
        }
        let displaced = std::mem::take(&mut self.displaced);
        for job in self.by_arrival(displaced) {
            if self.waiting.contains(&job) && self.windows.iter().all(|window| window.job != job) {
                self.admit(job);
            }
        }
        if disturbed || ended {
            self.compress();
        }
        for job in self.by_arrival(self.waiting.clone()) {
            if self.windows.iter().all(|window| window.job != job) {
                self.admit(job);
            }
        }
        self.start_due();
        self.wake = self.next_wake();
    }

    /// Removes all windows and restores each at its old start, or at the earliest later fit.
    fn repair(&mut self) {
        let before = std::mem::take(&mut self.windows);
        let mut lifted = before.clone();
        lifted.sort_by_key(|window| (window.at.unwrap_or(i64::MAX), arrival(window.job, &self.pool.jobs)));
        for Window { job, at } in lifted {
            let from = at.map(|at| at.max(self.begin(job)));
            let new = from.and_then(|from| self.hole(job, from, i64::MAX));
            self.windows.push(Window { job, at: new });
            self.record_if_moved(job, at, new);
        }
        // First the unmoved windows in their old order, then the moved ones in the order of their
        // moves.
        let unmoved = |window: &Window| before.iter().position(|other| other == window);
        self.windows.sort_by_key(|window| unmoved(window).unwrap_or(before.len()));
    }

    /// Gives each window in turn the earliest start.
    fn compress(&mut self) {
        let jobs = self.windows.iter().map(|window| window.job).collect();
        for job in self.by_arrival(jobs) {
            let index = self.windows.iter().position(|window| window.job == job).expect("just listed");
            let old = self.windows.remove(index);
            let until = old.at.unwrap_or(i64::MAX);
            let new = self.hole(job, self.begin(job), until).or(old.at);
            let place = if new == old.at { index } else { self.windows.len() };
            self.windows.insert(place, Window { job, at: new });
            self.record_if_moved(job, old.at, new);
        }
    }

    fn admit(&mut self, job: usize) {
        let span = self.requests[job].planned().ticks();
        let limit = self.pool.horizon.map(|horizon| self.now + horizon);
        let deadline = self.requests[job].constraints.deadline.map(Time::ticks);
        let until = |end: Option<i64>| end.map_or(i64::MAX, |end| end - span + 1);
        let first = self.hole(job, self.begin(job), until(limit).min(until(deadline)));
        let tight = deadline.is_some_and(|deadline| limit.is_none_or(|limit| deadline <= limit));
        if let Some(at) = first {
            self.windows.push(Window { job, at: Some(at) });
            return self.record_promise(job, Some(at), false);
        }
        let why = if tight { Refusal::Deadline } else { Refusal::NoWindow };
        self.fates[job].refused = Some(if self.never_fits(job) { Refusal::TooLarge } else { why });
        self.waiting.retain(|&other| other != job);
    }

    fn start_due(&mut self) {
        let due: Vec<usize> = self
            .windows
            .iter()
            .filter(|window| window.at == Some(self.now))
            .map(|window| window.job)
            .collect();
        for job in due {
            self.windows.retain(|window| window.job != job);
            self.waiting.retain(|&other| other != job);
            self.fates[job].start = Some(Time::from_ticks(self.now));
            let end = self.now + self.pool.jobs[job].runtime.0.ticks();
            let expected = self.now + self.requests[job].planned().ticks();
            self.running.push(Running { job, start: self.now, end, expected, noticed: false, gone: false });
        }
    }

    /// Returns the next start that is feasible even if no overdue job ends until then.
    fn next_wake(&self) -> Option<i64> {
        let late = self.running.iter().filter(|running| running.noticed && !running.gone);
        let late: Vec<usize> = late.map(|running| running.job).collect();
        let amount = late.iter().fold(Resources::NONE, |sum, job| sum.plus(&self.demand(*job)));
        let starts = self.windows.iter().filter_map(|window| window.at);
        let kept = |at: &i64| {
            let mut all = self.taken(false);
            all.push(Taken { from: *at, to: *at + 1, amount });
            self.fits(*at, &all, &amount)
        };
        starts.filter(|at| late.is_empty() || kept(at)).min()
    }

    fn record_if_moved(&mut self, job: usize, old: Option<i64>, new: Option<i64>) {
        let (before, after) = (old.unwrap_or(i64::MAX), new.unwrap_or(i64::MAX));
        if after != before {
            self.record_promise(job, new, after > before);
        }
    }

    fn record_promise(&mut self, job: usize, at: Option<i64>, broken: bool) {
        let latest = at.map_or(Time::MAX, Time::from_ticks);
        self.fates[job].promises.push((Time::from_ticks(self.now), latest, broken));
    }
}

/// Queries of the state.
impl World<'_> {
    fn by_arrival(&self, mut jobs: Vec<usize>) -> Vec<usize> {
        jobs.sort_by_key(|&job| arrival(job, &self.pool.jobs));
        jobs
    }

    fn begin(&self, job: usize) -> i64 {
        self.requests[job].constraints.begin.map_or(self.now, |begin| begin.ticks().max(self.now))
    }

    /// Returns the demand of the job, of the kinds that the pool has.
    fn demand(&self, job: usize) -> Resources {
        let most = self.pool.most();
        let all = &self.requests[job].demand;
        let there_is = Kind::ALL.into_iter().filter(|kind| most.get(*kind) > 0);
        there_is.fold(Resources::NONE, |demand, kind| demand.with(kind, all.get(kind)))
    }

    /// Returns the allocations of the running jobs and the windows. Overdue jobs count for one
    /// tick, or not at all.
    fn taken(&self, overdue: bool) -> Vec<Taken> {
        let running = self.running.iter().filter(|running| !running.gone);
        let running = running.filter(|running| overdue || !running.noticed).map(|running| {
            let to = if running.noticed { self.now + 1 } else { running.expected };
            Taken { from: self.now, to, amount: self.demand(running.job) }
        });
        let windows = self.windows.iter().filter_map(|window| {
            let from = window.at?;
            let to = from + self.requests[window.job].planned().ticks();
            Some(Taken { from, to, amount: self.demand(window.job) })
        });
        running.chain(windows).collect()
    }

    /// Returns the first tick of `from..until` at which the job fits for its whole span.
    fn hole(&self, job: usize, from: i64, until: i64) -> Option<i64> {
        let (amount, span) = (self.demand(job), self.requests[job].planned().ticks());
        // Later no allocation is left, and the calendar repeats: a fit not found by then does not
        // exist.
        let ends = self.taken(true).iter().map(|taken| taken.to).max().unwrap_or(from);
        let last = from.max(ends).max(self.pool.regular_from()) + 2 * self.pool.period;
        (from..until.min(last)).find(|&at| {
            let mut taken = self.taken(true);
            taken.push(Taken { from: at, to: at + span, amount });
            (at..at + span).all(|tick| self.fits(tick, &taken, &amount))
        })
    }

    /// Returns whether the amount fits at that tick, for the kinds that the job requests.
    fn fits(&self, at: i64, taken: &[Taken], amount: &Resources) -> bool {
        let there_is = self.pool.capacity_at(at, &self.capacity);
        let here = || taken.iter().filter(|taken| taken.from <= at && at < taken.to);
        let sum = |kind| here().map(|taken| taken.amount.get(kind)).sum::<u64>();
        Kind::ALL.into_iter().all(|kind| amount.get(kind) == 0 || sum(kind) <= there_is.get(kind))
    }

    /// Returns whether the job does not fit even into an empty pool without losses.
    fn never_fits(&self, job: usize) -> bool {
        let (amount, span) = (self.demand(job), self.requests[job].planned().ticks());
        let whole = self.pool.most();
        let fits = |tick: i64| {
            let there_is = self.pool.capacity_at(tick, &whole);
            amount.fits_in(&there_is)
        };
        let first = self.begin(job);
        let last = first.max(self.pool.regular_from()) + 2 * self.pool.period;
        !(first..last).any(|at| (at..(at + span).min(at.max(last) + 2 * self.pool.period)).all(fits))
    }
}

#[cfg(test)]
mod tests {
    use miserly_core::{ActualRuntime, Span};

    use super::*;
    use crate::NaiveJob;

    /// Eight processors by day for nine ticks, and two by night for fifteen.
    ///
    /// A job of five processors that arrives with four ticks left of the day has its window in the
    /// next one.
    #[test]
    fn a_window_lies_in_one_day() {
        let request = |number, span| {
            Request::new(number, Time::from_ticks(5), Span::from_ticks(span), Resources::cpus(4))
        };
        let job = |(number, span)| NaiveJob {
            request: request(number, span),
            runtime: ActualRuntime(Span::from_ticks(span)),
        };
        let pool = NaivePool {
            steps: vec![(0, Resources::cpus(8)), (9, Resources::cpus(2))],
            period: 24,
            once: vec![],
            horizon: None,
            jobs: [(1, 5), (2, 4), (3, 10)].map(job).into(),
            changes: vec![],
        };
        let fates = super::super::windows(&pool, EventOrder::Batched);
        let starts = fates.iter().map(|fate| fate.start.map(Time::ticks));
        assert_eq!(starts.collect::<Vec<_>>(), [Some(24), Some(5), None]);
        assert_eq!(fates[2].refused, Some(Refusal::TooLarge));
    }
}
