//! Forecasts of the jobs that wait in a live system.

use std::collections::{BTreeMap, BTreeSet};

use miserly_core::{Effect, Entry, EventOrder, JobId, JobNumber, Ledger, Request, Span, System, Time};
use miserly_policies::PolicySpec;
use miserly_sim::Observer;

use crate::ahead::{Rules, SystemCopy, drawn_runtime};
use crate::audit::{Audit, LEVELS, Outcome, SizeClass};
use crate::calibration::Scale;
use crate::replay::{check_live_policy, seconds};
use crate::what_if::{median_of, range_of};
use crate::{Calibration, ForecastError, RuntimeModel};

/// A queue of a live system at an instant.
#[derive(Clone, Debug)]
pub struct LiveQueue {
    /// The policy.
    pub policy: PolicySpec,
    /// The jobs, after all decisions of the instant.
    pub copy: SystemCopy,
}

/// The number of waiting jobs above which futures run under `easy`, whose events take less time.
const DEEP: usize = 300;

/// The time that is simulated where hosts are closed at times: a job may wait there for ever, and a policy for it.
pub const AHEAD_BESIDE_CLOSED: Span = Span::from_ticks(30 * 86_400 * 1_000_000);

impl LiveQueue {
    /// Returns the waiting jobs.
    fn waiting(&self) -> impl Iterator<Item = (JobNumber, JobId)> {
        let ledger = &self.copy.ledger;
        ledger.waiting().map(|job| (ledger.request(job).number, job))
    }

    fn is_deep(&self) -> bool {
        self.copy.ledger.waiting_count() > DEEP
    }

    /// Returns the same jobs under `easy`, without promises; nothing if a job may not start yet, hosts are closed at times, or jobs have
    /// limits or preempt others, which `easy` does not heed.
    fn plain(&self) -> Option<LiveQueue> {
        let ledger = &self.copy.ledger;
        let heeds_more = ["limits", "preempt"].iter().any(|name| self.policy.is_given(name));
        if heeds_more || !ledger.machine().closed_hosts().is_empty() {
            return None;
        }
        let begins = |job| ledger.request(job).constraints.begin.is_some_and(|begin| begin > self.copy.now);
        if ledger.waiting().any(begins) {
            return None;
        }
        let jobs = ledger.waiting().chain(ledger.running()).map(|job| {
            let entry = ledger.entry(job).clone();
            (job, Entry { promise: None, planned: None, planned_on: None, ..entry })
        });
        let ledger = Ledger::restored(ledger.machine().clone(), jobs.collect()).ok()?;
        let copy = SystemCopy { ledger, wake: Some(self.copy.now + Span::TICK), ..self.copy };
        Some(LiveQueue { policy: "easy".parse().ok()?, copy })
    }
}

/// A forecast that was given, with the simulated waits from which it was made. All times are seconds from its instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Given {
    /// The job.
    pub job: JobNumber,
    /// Its processors.
    pub procs: u64,
    /// The waits with likely runtimes, ascending.
    pub draws: Vec<u64>,
    /// The wait with requested runtimes.
    pub requested: u64,
    /// The upper bounds of the wait for each of [`LEVELS`].
    pub bounds: [u64; LEVELS.len()],
    /// Whether the bounds follow from what came of earlier forecasts. If not, they are simulated waits, and hold as often as the
    /// simulation is right.
    pub calibrated: bool,
}

/// The knowledge behind forecasts: runtimes of ended jobs, and the outcomes of earlier forecasts.
#[derive(Clone, Debug, Default)]
pub struct Forecaster {
    model: RuntimeModel,
    calibration: Calibration,
    audit: Audit,
}

impl Forecaster {
    /// Adds the runtime of a job that ended.
    pub fn learn(&mut self, request: &Request, runtime: Span) {
        self.model.learn(request, runtime.min(request.estimate));
    }

    /// Adds the outcome of a forecast that was made at this second: the wait in seconds from then to the start.
    ///
    /// All outcomes calibrate later bounds. The audit has those of calibrated bounds only.
    pub fn settle(&mut self, given: &Given, made: i64, wait: u64) {
        let (size, scale) = (SizeClass::new(given.procs), given.scale());
        let level = Some(self.calibration.level(size, &scale, wait));
        self.calibration.add(size, &scale, made, given.bounds, wait);
        let Given { bounds, calibrated, .. } = *given;
        if calibrated {
            let (at_once, promise, bmbp) = (false, None, None);
            self.audit.add(size, &Outcome { wait, at_once, bounds, promise, bmbp, level });
        }
    }

    /// Returns what became of the forecasts with calibrated bounds.
    pub fn audit(&self) -> &Audit {
        &self.audit
    }

    /// Returns forecasts of the jobs that wait in a queue, from `draws` futures with likely runtimes.
    ///
    /// `goes_on` is asked at each simulated instant, with the number of the future: 0 has the requested runtimes, and the draws
    /// are numbered from 1 on. That future ends when it returns `false`. A job that did not start in all futures has no forecast.
    /// Neither has one whose policy is [unsuitable](crate::ForecastError::Unsuitable).
    pub fn forecasts(&self, queue: &LiveQueue, draws: u64, goes_on: &dyn Fn(u64) -> bool) -> Vec<Given> {
        self.forecasts_of(queue, None, draws, goes_on)
    }

    /// Returns the forecast of one job, as [`forecasts`](Forecaster::forecasts) does of all.
    pub fn forecast(
        &self,
        queue: &LiveQueue,
        job: JobNumber,
        draws: u64,
        goes_on: &dyn Fn(u64) -> bool,
    ) -> Option<Given> {
        self.forecasts_of(queue, Some(job), draws, goes_on).pop()
    }

    fn forecasts_of(
        &self,
        queue: &LiveQueue,
        only: Option<JobNumber>,
        draws: u64,
        goes_on: &dyn Fn(u64) -> bool,
    ) -> Vec<Given> {
        if check_live_policy(&queue.policy).is_err() {
            return vec![];
        }
        let LiveQueue { copy, .. } = queue;
        let ledger = &copy.ledger;
        let plain = queue.is_deep().then(|| queue.plain()).flatten();
        let jobs: BTreeMap<JobNumber, JobId> =
            queue.waiting().filter(|(number, _)| only.is_none_or(|only| *number == only)).collect();
        let promised = |job: JobId| ledger.entry(job).promise.map(|promise| promise.best);
        let simulated = plain.as_ref().unwrap_or(queue);
        // A promise is the start with requested runtimes, too.
        let unpromised: BTreeSet<JobNumber> =
            jobs.iter().filter(|(_, job)| promised(**job).is_none()).map(|(number, _)| *number).collect();
        let requested = if unpromised.is_empty() {
            BTreeMap::new()
        } else {
            starts(simulated, unpromised, |entry| entry.request.estimate, &|| goes_on(0))
        };
        let likely = self.likely_starts(simulated, jobs.keys().copied(), draws, goes_on);
        likely
            .into_iter()
            .filter_map(|(number, mut likely)| {
                let job = *jobs.get(&number)?;
                let promise = promised(job);
                likely.sort_unstable();
                let wait = |start: &Time| seconds(*start - copy.now);
                let mut given = Given {
                    job: number,
                    procs: ledger.request(job).procs().get(),
                    draws: likely.iter().map(wait).collect(),
                    requested: wait(&promise.or(requested.get(&number).copied())?),
                    bounds: [0; LEVELS.len()],
                    calibrated: false,
                };
                let size = SizeClass::new(given.procs);
                let scale = given.scale();
                let calibrated = self.calibration.live_bounds(size, &scale);
                given.calibrated = calibrated.is_some();
                let most = promise.map_or(u64::MAX, |promise| wait(&promise));
                let bounds = calibrated.unwrap_or_else(|| scale.simulated());
                // Outcomes of other jobs do not bring it forward.
                let least = ledger.request(job).constraints.begin.map_or(0, |begin| wait(&begin));
                given.bounds = bounds.map(|bound| bound.max(least).min(most));
                Some(given)
            })
            .collect()
    }

    /// Compares a queue with a changed one in the same futures: the jobs that wait and start in both.
    ///
    /// `goes_on` is asked as in [`forecasts`](Forecaster::forecasts); the changed queue has the numbers that follow.
    ///
    /// # Errors
    /// If one of the policies is [unsuitable](ForecastError::Unsuitable).
    pub fn compare(
        &self,
        before: &LiveQueue,
        after: &LiveQueue,
        draws: u64,
        goes_on: &dyn Fn(u64) -> bool,
    ) -> Result<Comparison, ForecastError> {
        for queue in [before, after] {
            check_live_policy(&queue.policy)?;
        }
        // Both run under their own policies, or both under `easy`.
        let plain = (before.policy == after.policy && (before.is_deep() || after.is_deep()))
            .then(|| before.plain().zip(after.plain()))
            .flatten();
        let (before, after) = plain.as_ref().map_or((before, after), |(before, after)| (before, after));
        let starts = self.likely_starts(before, before.waiting().map(|(number, _)| number), draws, goes_on);
        let mut changed =
            self.likely_starts(after, after.waiting().map(|(number, _)| number), draws, &|future| {
                goes_on(draws + 1 + future)
            });
        let waiting = before.copy.ledger.waiting_count() as u64;
        let mut totals = vec![0_i128; usize::try_from(draws).unwrap_or(0)];
        let mut jobs = vec![];
        for (job, before_each) in starts {
            let Some(after_each) = changed.remove(&job) else { continue };
            let pairs = before_each.iter().zip(&after_each);
            let differences: Vec<Span> = pairs.map(|(before, after)| *after - *before).collect();
            for (total, difference) in totals.iter_mut().zip(&differences) {
                *total += i128::from(difference.ticks());
            }
            jobs.push(Compared {
                job,
                before: median(before_each) - before.copy.now,
                after: median(after_each) - before.copy.now,
                difference: Differences::new(differences),
            });
        }
        let count = jobs.len() as i128;
        let mean = |total: i128| Span::from_ticks(i64::try_from(total / count.max(1)).unwrap_or(i64::MAX));
        let mean = Differences::new(totals.into_iter().map(mean).collect());
        Ok(Comparison { not_compared: waiting.saturating_sub(jobs.len() as u64), jobs, mean })
    }

    /// Returns the simulated starts of those of these jobs that started in each draw, in the order of the draws.
    fn likely_starts(
        &self,
        queue: &LiveQueue,
        jobs: impl Iterator<Item = JobNumber>,
        draws: u64,
        goes_on: &dyn Fn(u64) -> bool,
    ) -> BTreeMap<JobNumber, Vec<Time>> {
        let model = queue.copy.likely_runtimes(&self.model);
        let mut likely: BTreeMap<JobNumber, Vec<Time>> = jobs.map(|number| (number, vec![])).collect();
        for number in 0..draws {
            let runtime = |entry: &Entry| drawn_runtime(&model, entry, number);
            let one = starts(queue, likely.keys().copied().collect(), runtime, &|| goes_on(number + 1));
            likely.retain(|job, starts| {
                starts.extend(one.get(job));
                one.contains_key(job)
            });
            if likely.is_empty() {
                break;
            }
        }
        likely
    }
}

/// Returns the starts of these jobs in one future, as far as it goes on.
fn starts(
    queue: &LiveQueue,
    jobs: BTreeSet<JobNumber>,
    runtime: impl FnMut(&Entry) -> Span,
    goes_on: &dyn Fn() -> bool,
) -> BTreeMap<JobNumber, Time> {
    let LiveQueue { policy, copy } = queue;
    let machine = copy.ledger.machine().clone();
    let last = if machine.closed_hosts().is_empty() { Time::MAX } else { copy.now + AHEAD_BESIDE_CLOSED };
    let rules = Rules { policy: policy.clone(), machine, seed: 0, event_order: EventOrder::Batched };
    let mut watch = Watch { missing: jobs, starts: BTreeMap::new(), now: copy.now, last, goes_on };
    copy.run(&rules, runtime, &mut watch);
    watch.starts
}

/// The comparison of a queue with a changed one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The jobs that started in each future of both, by number.
    pub jobs: Vec<Compared>,
    /// The number of other jobs that wait without the change.
    pub not_compared: u64,
    /// The difference of the mean starts of these jobs.
    pub mean: Option<Differences>,
}

/// A job in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The job.
    pub job: JobNumber,
    /// The median wait without the change.
    pub before: Span,
    /// The median wait with the change.
    pub after: Span,
    /// By how much the start is later with the change.
    pub difference: Option<Differences>,
}

/// Differences over the futures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Differences {
    /// The median (of two in the middle, the lower).
    pub median: Span,
    /// The ends of the middle 90 %.
    pub range: [Span; 2],
}

impl Differences {
    fn new(mut differences: Vec<Span>) -> Option<Differences> {
        differences.sort_unstable();
        Some(Differences { median: median_of(&differences)?, range: range_of(&differences)? })
    }
}

/// Returns the median of some instants (of two in the middle, the lower).
fn median(mut starts: Vec<Time>) -> Time {
    starts.sort_unstable();
    median_of(&starts).unwrap_or(Time::MAX)
}

impl Given {
    fn scale(&self) -> Scale {
        Scale::new(&self.draws, self.requested)
    }
}

/// Waits for the starts of jobs.
struct Watch<'a> {
    missing: BTreeSet<JobNumber>,
    starts: BTreeMap<JobNumber, Time>,
    now: Time,
    /// The last instant of interest.
    last: Time,
    goes_on: &'a dyn Fn() -> bool,
}

impl Observer for Watch<'_> {
    fn system(&mut self, now: Time, _: &System) {
        self.now = now;
    }

    fn effect(&mut self, now: Time, job: JobNumber, effect: &Effect) {
        if matches!(effect, Effect::Started { .. }) && self.missing.remove(&job) {
            self.starts.insert(job, now);
        }
    }

    fn has_enough(&self) -> bool {
        self.missing.is_empty() || self.now > self.last || !(self.goes_on)()
    }
}
