//! Limits of running jobs, as Slurm's qualities of service have them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use miserly_core::{JobId, Kind, Ledger, Request};
use thiserror::Error;

/// Limits of the jobs that run at the same time. A job that would exceed one waits, and no job waits for it.
///
/// Each limit holds for the jobs of some queues together, for those of some groups (`g7`), or for `all` jobs. It bounds their number
/// (`jobs`), their processors (`procs`), their GPUs (`gpus`), their memory in MiB (`memory`), or these for each user (`user_jobs` and
/// so on).
///
/// # Example
/// ```
/// use miserly_policies::backfill::RunningLimits;
///
/// let limits: RunningLimits = "1+3: user_jobs=2, user_procs=64; g5+g6: jobs=9; all: procs=1000".parse()?;
/// assert_eq!(limits.to_string(), "1+3: user_jobs=2, user_procs=64; g5+g6: jobs=9; all: procs=1000");
/// # Ok::<(), miserly_policies::backfill::RunningLimitsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningLimits(Vec<RunningLimit>);

/// The limits of some jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct RunningLimit {
    jobs: Limited,
    all: Most,
    of_user: Most,
}

/// The jobs of a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Limited {
    #[default]
    All,
    Queues(Vec<u32>),
    Groups(Vec<u32>),
}

/// The most running jobs, and the most of each resource that they have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Most {
    jobs: Option<u64>,
    resources: [Option<u64>; RESOURCES.len()],
}

/// The resources that limits bound, with their names and the parts of each that a limit counts.
const RESOURCES: [(&str, Kind, u64); 3] =
    [("procs", Kind::Cpus, 1), ("gpus", Kind::Gpus, 1), ("memory", Kind::Memory, 1024)];

/// The reason why a text is no list of limits.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{text}\" is no limit; write such as '1+3: user_jobs=2, user_procs=64; g5+g6: jobs=9; all: jobs=10, procs=1000', for queues, groups or all jobs"
)]
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
        let (jobs, values) = text.split_once(':')?;
        let mut limit = RunningLimit { jobs: Limited::read(jobs.trim())?, ..RunningLimit::default() };
        for value in values.split(',') {
            let (name, most) = value.split_once('=')?;
            let (most_of, name) = match name.trim().strip_prefix("user_") {
                Some(name) => (&mut limit.of_user, name),
                None => (&mut limit.all, name.trim()),
            };
            let place = most_of.place(name)?;
            if place.replace(most.trim().parse().ok()?).is_some() {
                return None;
            }
        }
        Some(limit)
    }

    fn holds_for(&self, request: &Request) -> bool {
        let is_in = |numbers: &[u32], number: Option<u32>| number.is_some_and(|one| numbers.contains(&one));
        match &self.jobs {
            Limited::All => true,
            Limited::Queues(queues) => is_in(queues, request.queue),
            Limited::Groups(groups) => is_in(groups, request.group),
        }
    }
}

impl Limited {
    fn read(text: &str) -> Option<Limited> {
        let numbers = |prefix: &str| {
            let number = |word: &str| word.trim().strip_prefix(prefix)?.parse().ok();
            text.split('+').map(number).collect::<Option<Vec<u32>>>()
        };
        match text {
            "all" => Some(Limited::All),
            _ => numbers("").map(Limited::Queues).or_else(|| numbers("g").map(Limited::Groups)),
        }
    }
}

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (prefix, numbers) = match self {
            Limited::All => return f.write_str("all"),
            Limited::Queues(queues) => ("", queues),
            Limited::Groups(groups) => ("g", groups),
        };
        let words: Vec<String> = numbers.iter().map(|number| format!("{prefix}{number}")).collect();
        f.write_str(&words.join("+"))
    }
}

/// Formats the limits in their written form.
impl fmt::Display for RunningLimits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = |limit: &RunningLimit| {
            let values = limit.all.written("").chain(limit.of_user.written("user_"));
            format!("{}: {}", limit.jobs, values.collect::<Vec<_>>().join(", "))
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
    /// The amount of a resource.
    Resource,
}

/// Returns the amounts of a job that limits count, rounded up.
fn amounts(request: &Request) -> [u64; RESOURCES.len()] {
    RESOURCES.map(|(_, kind, unit)| request.demand.get(kind).div_ceil(unit))
}

impl Most {
    fn place(&mut self, name: &str) -> Option<&mut Option<u64>> {
        if name == "jobs" {
            return Some(&mut self.jobs);
        }
        let nth = RESOURCES.iter().position(|(known, ..)| *known == name)?;
        Some(&mut self.resources[nth])
    }

    /// Returns the limits that there are, with this prefix of their names.
    fn written(self, prefix: &str) -> impl Iterator<Item = String> {
        let resources = RESOURCES.into_iter().zip(self.resources).map(|((name, ..), most)| (name, most));
        [("jobs", self.jobs)]
            .into_iter()
            .chain(resources)
            .filter_map(move |(name, most)| Some(format!("{prefix}{name}={}", most?)))
    }

    /// Returns what a job would exceed beside so much use. The number of jobs comes first.
    fn refuses(self, used: Use, request: &Request) -> Option<Exceeded> {
        if self.jobs.is_some_and(|most| used.jobs >= most) {
            return Some(Exceeded::Jobs);
        }
        let mut each = self.resources.into_iter().zip(used.resources).zip(amounts(request));
        let exceeds = |((most, used), more): ((Option<u64>, u64), u64)| {
            // A job without the resource is not bounded.
            more > 0 && most.is_some_and(|most| used + more > most)
        };
        each.any(exceeds).then_some(Exceeded::Resource)
    }
}

/// Running jobs and their resources.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    jobs: u64,
    resources: [u64; RESOURCES.len()],
}

impl Use {
    const NONE: Use = Use { jobs: 0, resources: [0; RESOURCES.len()] };

    fn add(&mut self, amounts: [u64; RESOURCES.len()]) {
        self.jobs += 1;
        self.resources.iter_mut().zip(amounts).for_each(|(used, more)| *used += more);
    }

    fn remove(&mut self, amounts: [u64; RESOURCES.len()]) {
        self.jobs = self.jobs.saturating_sub(1);
        self.resources.iter_mut().zip(amounts).for_each(|(used, less)| *used = used.saturating_sub(less));
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
        ledger.running().chain(ledger.suspended()).for_each(|job| used.start(limits, job, ledger));
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

    fn each(
        &mut self,
        limits: &RunningLimits,
        request: &Request,
        change: fn(&mut Use, [u64; RESOURCES.len()]),
    ) {
        let amounts = amounts(request);
        for (_, (all, users)) in
            limits.0.iter().zip(&mut self.0).filter(|(limit, _)| limit.holds_for(request))
        {
            change(all, amounts);
            change(users.entry(request.user).or_default(), amounts);
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
            (
                "3: user_memory=5,gpus=2,user_gpus=1,memory=7",
                "3: gpus=2, memory=7, user_gpus=1, user_memory=5",
            ),
            ("g7 + g2:jobs=4", "g7+g2: jobs=4"),
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
            "all: user_user_jobs=1",
            "1: jobs=1, jobs=2",
            "all: jobs=1;",
            "g1+2: jobs=1",
            "g: jobs=1",
        ] {
            assert!(wrong.parse::<RunningLimits>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_job_may_exceed_a_limit_by_itself() {
        use miserly_core::{Resources, Span, Time};

        let limits: RunningLimits = "2: user_procs=4; 3: jobs=0; g2: procs=1".parse().unwrap();
        for (queue, group, procs, never) in [
            (1, 1, 9, false),
            (2, 1, 4, false),
            (2, 1, 5, true),
            (3, 1, 1, true),
            (1, 2, 1, false),
            (1, 2, 2, true),
        ] {
            let request = Request::new(1, Time::ZERO, Span::TICK, Resources::cpus(procs));
            let request = Request { queue: Some(queue), group: Some(group), ..request };
            assert_eq!(limits.never_allow(&request), never, "{queue}, {group}: {procs}");
        }
    }

    #[test]
    fn gpus_and_memory_are_counted_and_a_job_without_them_is_not_bounded() {
        use miserly_core::{Resources, Span, Time};

        let limits: RunningLimits = "all: gpus=0, user_memory=2".parse().unwrap();
        let never = |kind, amount| {
            let demand = Resources::cpus(9_u64).with(kind, amount);
            limits.never_allow(&Request::new(1, Time::ZERO, Span::TICK, demand))
        };
        assert_eq!([never(Kind::Other, 5), never(Kind::Gpus, 1)], [false, true]);
        // The third MiB begins behind 2048 kB.
        assert_eq!([2048, 2049].map(|kilobytes| never(Kind::Memory, kilobytes)), [false, true]);
    }
}
