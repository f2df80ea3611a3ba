//! Limits of running jobs, as Slurm's qualities of service have them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use miserly_core::{JobId, Ledger, Request};
use thiserror::Error;

/// Limits of the jobs that run at the same time. A job that would exceed one waits, and no job waits for it.
///
/// Each limit holds for the jobs of some queues together, or for `all` jobs. It bounds their number (`jobs`), their processors
/// (`procs`), or these for each user (`user_jobs`, `user_procs`).
///
/// # Example
/// ```
/// use miserly_policies::backfill::RunningLimits;
///
/// let limits: RunningLimits = "1+3: user_jobs=2, user_procs=64; all: procs=1000".parse()?;
/// assert_eq!(limits.to_string(), "1+3: user_jobs=2, user_procs=64; all: procs=1000");
/// # Ok::<(), miserly_policies::backfill::RunningLimitsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningLimits(Vec<RunningLimit>);

/// The limits of the jobs of some queues.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RunningLimit {
    /// The queues; all jobs, if there are none.
    queues: Vec<u32>,
    all: Most,
    of_user: Most,
}

/// The most running jobs and processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Most {
    jobs: Option<u64>,
    procs: Option<u64>,
}

/// The reason why a text is no list of limits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{text}\" is no limit; write such as '1+3: user_jobs=2, user_procs=64; all: jobs=10, procs=1000'")]
pub struct RunningLimitsError {
    text: String,
}

impl FromStr for RunningLimits {
    type Err = RunningLimitsError;

    fn from_str(text: &str) -> Result<RunningLimits, RunningLimitsError> {
        let limit = |text: &str| {
            RunningLimit::read(text).ok_or_else(|| RunningLimitsError { text: text.trim().to_owned() })
        };
        text.split(';').map(limit).collect::<Result<_, _>>().map(RunningLimits)
    }
}

impl RunningLimit {
    fn read(text: &str) -> Option<RunningLimit> {
        let (queues, values) = text.split_once(':')?;
        let mut limit = RunningLimit::default();
        if queues.trim() != "all" {
            limit.queues = queues.split('+').map(|queue| queue.trim().parse().ok()).collect::<Option<_>>()?;
        }
        for value in values.split(',') {
            let (name, most) = value.split_once('=')?;
            let place = match name.trim() {
                "jobs" => &mut limit.all.jobs,
                "procs" => &mut limit.all.procs,
                "user_jobs" => &mut limit.of_user.jobs,
                "user_procs" => &mut limit.of_user.procs,
                _ => return None,
            };
            if place.replace(most.trim().parse().ok()?).is_some() {
                return None;
            }
        }
        Some(limit)
    }

    fn holds_for(&self, request: &Request) -> bool {
        self.queues.is_empty() || request.queue.is_some_and(|queue| self.queues.contains(&queue))
    }
}

/// Formats the limits in their written form.
impl fmt::Display for RunningLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = |limit: &RunningLimit| {
            let queues: Vec<String> = limit.queues.iter().map(u32::to_string).collect();
            let queues = if queues.is_empty() { "all".to_owned() } else { queues.join("+") };
            let values = [
                ("jobs", limit.all.jobs),
                ("procs", limit.all.procs),
                ("user_jobs", limit.of_user.jobs),
                ("user_procs", limit.of_user.procs),
            ];
            let values = values.into_iter().filter_map(|(name, most)| Some(format!("{name}={}", most?)));
            format!("{queues}: {}", values.collect::<Vec<_>>().join(", "))
        };
        f.write_str(&self.0.iter().map(limit).collect::<Vec<_>>().join("; "))
    }
}

impl RunningLimits {
    /// Returns whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a job exceeds a limit by itself.
    pub(super) fn never_allow(&self, request: &Request) -> bool {
        let exceeds = |limit: &&RunningLimit| {
            limit.all.refuses(Use::NONE, request).or(limit.of_user.refuses(Use::NONE, request))
        };
        self.0.iter().filter(|limit| limit.holds_for(request)).any(|limit| exceeds(&limit).is_some())
    }
}

/// A limit that a job would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Exceeded {
    /// The number of jobs.
    Jobs,
    /// The number of processors.
    Procs,
}

impl Most {
    /// Returns what a job would exceed beside so much use. The number of jobs comes first.
    fn refuses(self, used: Use, request: &Request) -> Option<Exceeded> {
        let procs = request.procs().get();
        if self.jobs.is_some_and(|most| used.jobs >= most) {
            return Some(Exceeded::Jobs);
        }
        self.procs.is_some_and(|most| used.procs + procs > most).then_some(Exceeded::Procs)
    }
}

/// Running jobs and their processors.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    jobs: u64,
    procs: u64,
}

impl Use {
    const NONE: Use = Use { jobs: 0, procs: 0 };

    fn add(&mut self, procs: u64) {
        self.jobs += 1;
        self.procs += procs;
    }

    fn remove(&mut self, procs: u64) {
        self.jobs = self.jobs.saturating_sub(1);
        self.procs = self.procs.saturating_sub(procs);
    }
}

/// The use of each limit by the running jobs.
///
/// Each operation is O(r log u) for r limits and u users.
#[derive(Clone, Debug, Default)]
pub(super) struct LimitUse(Vec<(Use, BTreeMap<Option<u32>, Use>)>);

impl LimitUse {
    /// Returns the use by the running jobs of a ledger.
    pub(super) fn new(limits: &RunningLimits, ledger: &Ledger) -> LimitUse {
        let mut used = LimitUse::none(limits);
        ledger.running().for_each(|job| used.start(limits, job, ledger));
        used
    }

    pub(super) fn none(limits: &RunningLimits) -> LimitUse {
        LimitUse(vec![Default::default(); limits.0.len()])
    }

    /// Adds a job that starts.
    pub(super) fn start(&mut self, limits: &RunningLimits, job: JobId, ledger: &Ledger) {
        self.each(limits, ledger.request(job), Use::add);
    }

    /// Removes a job that has run.
    pub(super) fn end(&mut self, limits: &RunningLimits, job: JobId, ledger: &Ledger) {
        self.each(limits, ledger.request(job), Use::remove);
    }

    fn each(&mut self, limits: &RunningLimits, request: &Request, change: fn(&mut Use, u64)) {
        let procs = request.procs().get();
        for (_, (all, users)) in
            limits.0.iter().zip(&mut self.0).filter(|(limit, _)| limit.holds_for(request))
        {
            change(all, procs);
            change(users.entry(request.user).or_default(), procs);
        }
    }

    /// Returns what a job would exceed if it started now. The number of jobs comes first.
    pub(super) fn exceeded(&self, limits: &RunningLimits, request: &Request) -> Option<Exceeded> {
        let refused = limits.0.iter().zip(&self.0).filter(|(limit, _)| limit.holds_for(request)).filter_map(
            |(limit, (all, users))| {
                let own = users.get(&request.user).copied().unwrap_or_default();
                let [all, own] = [limit.all.refuses(*all, request), limit.of_user.refuses(own, request)];
                all.into_iter().chain(own).min()
            },
        );
        refused.min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_a_written_form() {
        for (text, canonical) in [
            ("all:jobs=3", "all: jobs=3"),
            (" 2 + 1 :user_procs=8,jobs=0 ; all: procs=9 ", "2+1: jobs=0, user_procs=8; all: procs=9"),
        ] {
            let limits: RunningLimits = text.parse().unwrap();
            assert_eq!(limits.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(limits));
        }
        for wrong in [
            "",
            "all",
            "all:",
            "all: jobs",
            "all: jobs=-1",
            "x: jobs=1",
            "all: nodes=1",
            "1: jobs=1, jobs=2",
            "all: jobs=1;",
        ] {
            assert!(wrong.parse::<RunningLimits>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_job_may_exceed_a_limit_by_itself() {
        use miserly_core::{Resources, Span, Time};

        let limits: RunningLimits = "2: user_procs=4; 3: jobs=0".parse().unwrap();
        for (queue, procs, never) in [(1, 9, false), (2, 4, false), (2, 5, true), (3, 1, true)] {
            let request = Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(procs));
            let request = Request { queue: Some(queue), ..request };
            assert_eq!(limits.never_allow(&request), never, "{queue}: {procs}");
        }
    }
}
