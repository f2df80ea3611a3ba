//! Preemption, as Slurm's `preempt/partition_prio` and `preempt/qos` have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use miserly_core::{Entry, JobId, Ledger, Persistent, Placement, Request, Resources, Span, State, Time};
use miserly_units::{duration, parse_duration};
use thiserror::Error;

/// The rules of preemption: which running jobs leave the machine for which waiting ones.
///
/// Each rule is for the running jobs of some queues. `by` has the queues whose waiting jobs preempt them. `mode` is `requeue`, after
/// which they wait again and begin anew, or `cancel`. Jobs of a lower `rank` are preempted first. A job is `exempt` for this time from its
/// start on. It leaves the machine when the time of `grace` is over. Without hosts, reservations do not know that it leaves before its
/// time limit.
///
/// # Example
/// ```
/// use miserly_policies::backfill::PreemptionRules;
///
/// let rules: PreemptionRules = "1: by=2+3, exempt=300; 2: by=3, mode=cancel, rank=2, grace=30s".parse()?;
/// assert_eq!(
///     rules.to_string(),
///     "1: by=2+3, mode=requeue, exempt=5m; 2: by=3, mode=cancel, rank=2, grace=30s"
/// );
/// # Ok::<(), miserly_policies::backfill::PreemptionRulesError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PreemptionRules(Vec<PreemptionRule>);

/// The rule of the running jobs of some queues.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PreemptionRule {
    queues: Vec<u32>,
    by: Vec<u32>,
    mode: Mode,
    rank: u64,
    exempt: Span,
    grace: Span,
}

/// What becomes of a preempted job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Requeue,
    Cancel,
}

impl Mode {
    const ALL: [(&'static str, Mode); 2] = [("requeue", Mode::Requeue), ("cancel", Mode::Cancel)];
}

/// The order in which running jobs are tried, with the names of Slurm's `PreemptParameters`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptionOrder {
    /// Whether the job that started last comes first, whatever its rank.
    pub youngest_first: bool,
    /// How often the search is made again to find fewer jobs.
    pub reorder_count: u64,
    /// Whether the order stays, except for the job that made the room, which comes first in the next search.
    pub strict_order: bool,
}

/// The reason why a text is no list of rules of preemption.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "\"{text}\" is no rule of preemption; write such as '1: by=2+3, mode=requeue, rank=1, exempt=5min, grace=30s', each queue once, and without a circle of queues"
)]
pub struct PreemptionRulesError {
    text: String,
}

impl FromStr for PreemptionRules {
    type Err = PreemptionRulesError;

    fn from_str(text: &str) -> Result<PreemptionRules, PreemptionRulesError> {
        let mut rules = PreemptionRules::default();
        for text in text.split(';') {
            let error = || PreemptionRulesError { text: text.trim().to_owned() };
            let rule = PreemptionRule::read(text).ok_or_else(error)?;
            if rule.queues.iter().any(|queue| rules.of_queue(*queue).is_some()) {
                return Err(error());
            }
            rules.0.push(rule);
        }
        if rules.has_circle() {
            return Err(PreemptionRulesError { text: text.trim().to_owned() });
        }
        Ok(rules)
    }
}

impl PreemptionRule {
    fn read(text: &str) -> Option<PreemptionRule> {
        let numbers =
            |text: &str| text.split('+').map(|queue| queue.trim().parse().ok()).collect::<Option<Vec<u32>>>();
        let (queues, values) = text.split_once(':')?;
        let mut rule = PreemptionRule {
            queues: numbers(queues)?,
            by: vec![],
            mode: Mode::Requeue,
            rank: 0,
            exempt: Span::ZERO,
            grace: Span::ZERO,
        };
        let mut seen = vec![];
        for value in values.split(',') {
            let (name, value) = value.split_once('=')?;
            let (name, value) = (name.trim(), value.trim());
            match name {
                _ if seen.contains(&name) => return None,
                "by" => rule.by = numbers(value)?,
                "mode" => rule.mode = Mode::ALL.iter().find(|(known, _)| *known == value)?.1,
                "rank" => rule.rank = value.parse().ok()?,
                "exempt" => rule.exempt = parse_duration(value).ok()?,
                "grace" => rule.grace = parse_duration(value).ok()?,
                _ => return None,
            }
            seen.push(name);
        }
        let is_own = rule.by.iter().any(|queue| rule.queues.contains(queue));
        (!rule.by.is_empty() && !is_own).then_some(rule)
    }
}

/// Formats the rules in their written form.
impl fmt::Display for PreemptionRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |queues: &[u32]| queues.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
        let rule = |rule: &PreemptionRule| {
            let mode = Mode::ALL.iter().find(|(_, mode)| *mode == rule.mode).map_or("", |(name, _)| name);
            let mut text = format!("{}: by={}, mode={mode}", list(&rule.queues), list(&rule.by));
            if rule.rank > 0 {
                text += &format!(", rank={}", rule.rank);
            }
            for (name, span) in [("exempt", rule.exempt), ("grace", rule.grace)] {
                if span > Span::ZERO {
                    text += &format!(", {name}={}", duration(span));
                }
            }
            text
        };
        f.write_str(&self.0.iter().map(rule).collect::<Vec<_>>().join("; "))
    }
}

impl PreemptionRules {
    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether some jobs are ended for good.
    pub(crate) fn cancels(&self) -> bool {
        self.0.iter().any(|rule| rule.mode == Mode::Cancel)
    }

    /// Returns whether jobs of the queue of a request preempt others.
    pub(super) fn admit(&self, request: &Request) -> bool {
        request.queue.is_some_and(|queue| self.0.iter().any(|rule| rule.by.contains(&queue)))
    }

    /// Returns the level of each queue: above those of all queues whose jobs its own preempt. Other queues have level 0.
    pub(super) fn levels(&self) -> BTreeMap<u32, usize> {
        let mut levels = BTreeMap::new();
        // A chain of queues is not longer than there are queues, unless two of them preempt each other.
        let most: usize = self.0.iter().map(|rule| rule.queues.len() + rule.by.len()).sum();
        for _ in 0..most {
            for rule in &self.0 {
                let below = rule.queues.iter().map(|queue| level(&levels, *queue)).max().unwrap_or(0);
                for queue in &rule.by {
                    let above = level(&levels, *queue).max(below + 1).min(most);
                    levels.insert(*queue, above);
                }
            }
        }
        levels
    }

    /// Returns whether queues preempt each other in a circle: their jobs would take turns without an end.
    fn has_circle(&self) -> bool {
        let queues = self.0.iter().flat_map(|rule| rule.queues.iter().chain(&rule.by));
        let number = queues.collect::<BTreeSet<_>>().len();
        // The highest queue is above all others at most.
        self.levels().values().any(|level| *level >= number)
    }

    fn of_queue(&self, queue: u32) -> Option<&PreemptionRule> {
        self.0.iter().find(|rule| rule.queues.contains(&queue))
    }

    /// Returns what becomes of a job that is preempted.
    pub(super) fn mode(&self, request: &Request) -> Mode {
        request.queue.and_then(|queue| self.of_queue(queue)).map_or(Mode::default(), |rule| rule.mode)
    }

    /// Returns the time that a job has before it leaves the machine.
    pub(super) fn grace(&self, request: &Request) -> Span {
        request.queue.and_then(|queue| self.of_queue(queue)).map_or(Span::ZERO, |rule| rule.grace)
    }

    /// Returns the running jobs that may be preempted for a job, in the order in which they are tried.
    ///
    /// By rank, then the jobs on fewer hosts, then in the order of submission. Or those that started last come first.
    fn candidates(
        &self,
        order: PreemptionOrder,
        now: Time,
        ledger: &Ledger,
        preemptor: &Request,
    ) -> Vec<JobId> {
        let Some(queue) = preemptor.queue else { return vec![] };
        let key = |job: JobId| {
            let entry = ledger.entry(job);
            let rule = self.of_queue(entry.request.queue?).filter(|rule| rule.by.contains(&queue))?;
            let State::Running { start, placement, released: false, .. } = &entry.state else { return None };
            // A job that starts now is before all that it may be preempted for.
            let is_exempt = *start >= now || now - *start < rule.exempt;
            let hosts = placement.shares().len() as u64;
            let key = if order.youngest_first {
                (now - *start, (0, 0), entry.admitted)
            } else {
                (Span::ZERO, (rule.rank, hosts), entry.admitted)
            };
            (!is_exempt).then_some((key, job))
        };
        let mut all: Vec<_> = ledger.running().filter_map(key).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, job)| job).collect()
    }

    /// Returns the jobs that leave the machine for a job. `hosts_in` returns the hosts of the job in this room, if there is any.
    ///
    /// One job after the other is taken off, until there is room. The last one comes first in the next search, and behind it those with the
    /// most hosts of this room. The search is made again as often as [`reorder_count`](PreemptionOrder::reorder_count) says, and
    /// once more. Of the jobs of the last search, those leave that are on hosts of the room.
    pub(super) fn victims(
        &self,
        order: PreemptionOrder,
        now: Time,
        ledger: &Ledger,
        preemptor: &Request,
        open: &[bool],
        hosts_in: impl Fn(&[Resources]) -> Option<Placement>,
    ) -> Option<Vec<JobId>> {
        let placement = |job: JobId| ledger.entry(job).placement();
        let is_open = |job: &JobId| {
            placement(*job)
                .is_some_and(|placement| placement.shares().iter().any(|share| open[share.host.index()]))
        };
        let mut candidates = self.candidates(order, now, ledger, preemptor);
        candidates.retain(is_open);
        let count = candidates.len() as u64;
        let mut searches = 0;
        loop {
            let mut free = ledger.free_hosts().each().to_vec();
            let room_after = |job: &JobId| {
                placement(*job).into_iter().flat_map(Placement::shares).for_each(|share| {
                    let room = &mut free[share.host.index()];
                    *room = room.plus(&share.amount);
                });
                hosts_in(&free)
            };
            let (last, room) =
                candidates.iter().map(room_after).enumerate().find_map(|(nth, room)| Some((nth, room?)))?;
            let shared = |job: JobId| {
                let is_in = |host| room.shares().iter().any(|share| share.host == host);
                placement(job).map_or(0, |placement| {
                    placement.shares().iter().filter(|share| is_in(share.host)).count()
                })
            };
            if searches > order.reorder_count || count <= searches + 1 {
                candidates.truncate(last + 1);
                candidates.retain(|job| shared(*job) > 0);
                return Some(candidates);
            }
            searches += 1;
            if order.strict_order {
                candidates[..=last].rotate_right(1);
            } else {
                let mut ranked: Vec<(usize, JobId)> =
                    candidates[..last].iter().map(|job| (shared(*job), *job)).collect();
                ranked.sort_by_key(|(shared, _)| std::cmp::Reverse(*shared));
                let behind = candidates[last + 1..].iter().copied();
                // Those without a host of the room stay among those that were not tried.
                let first = std::iter::once(candidates[last]);
                candidates = first.chain(ranked.into_iter().map(|(_, job)| job)).chain(behind).collect();
            }
        }
    }
}

fn level(levels: &BTreeMap<u32, usize>, queue: u32) -> usize {
    levels.get(&queue).copied().unwrap_or(0)
}

/// The order of the queue with preemption: the jobs of higher levels come first.
#[derive(Debug, Default)]
pub(super) struct Levels {
    of_queues: BTreeMap<u32, usize>,
    highest: usize,
}

impl Levels {
    pub(super) fn new(rules: &PreemptionRules) -> Levels {
        let of_queues = rules.levels();
        Levels { highest: of_queues.values().copied().max().unwrap_or(0), of_queues }
    }

    pub(super) fn highest(&self) -> usize {
        self.highest
    }

    /// Returns whether the job of a request has a level.
    pub(super) fn has(&self, request: &Request, at: usize) -> bool {
        request.queue.map_or(0, |queue| level(&self.of_queues, queue)) == at
    }
}

/// The preemption of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Preempted {
    #[default]
    No,
    /// It runs until then, for a job with this admission number.
    Leaves { at: Time, by: u64 },
    /// It waits, and may start again from then on.
    Again { at: Time },
}

impl Preempted {
    pub(super) fn of(entry: &Entry) -> Preempted {
        entry.policy_state.get()
    }

    /// Returns the instant at which something is to be done about a job.
    pub(super) fn due(entry: &Entry) -> Option<Time> {
        match (Preempted::of(entry), &entry.state) {
            (Preempted::Leaves { at, .. }, State::Running { .. })
            | (Preempted::Again { at }, State::Waiting) => Some(at),
            _ => None,
        }
    }
}

impl Persistent for Preempted {
    const NAME: &'static str = "slurm/preempted";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        match self {
            Preempted::No => {}
            Preempted::Leaves { at, by } => words.extend([at.ticks().cast_unsigned(), *by]),
            Preempted::Again { at } => words.push(at.ticks().cast_unsigned()),
        }
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Preempted> {
        let time = |ticks: u64| Time::from_ticks(ticks.cast_signed());
        match *words {
            [] => Some(Preempted::No),
            [at] => Some(Preempted::Again { at: time(at) }),
            [at, by] => Some(Preempted::Leaves { at: time(at), by }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read_back() {
        for (text, canonical) in [
            ("1:by=2", "1: by=2, mode=requeue"),
            ("1+4: mode=cancel,by=2+3 , grace=90", "1+4: by=2+3, mode=cancel, grace=1m30s"),
            (
                "1: by=2; 2: by=3, rank=7, exempt=2h",
                "1: by=2, mode=requeue; 2: by=3, mode=requeue, rank=7, exempt=2h",
            ),
        ] {
            let rules: PreemptionRules = text.parse().unwrap();
            assert_eq!(rules.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(rules));
        }
        for wrong in [
            "",
            "1",
            "1:",
            "1: mode=requeue",
            "1: by=",
            "1: by=1",
            "1: by=2, by=3",
            "1: by=2, mode=suspend",
            "1: by=2, grace=-1s",
            "all: by=2",
            "1: by=2; 1: by=3",
            "1: by=2;",
            "1: by=2; 2: by=1",
            "1: by=2; 2: by=3; 3: by=4+1",
        ] {
            assert!(wrong.parse::<PreemptionRules>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_queue_is_above_those_that_it_preempts() {
        let levels = |text: &str| {
            let levels = text.parse::<PreemptionRules>().unwrap().levels();
            [1, 2, 3, 4].map(|queue| level(&levels, queue))
        };
        assert_eq!(levels("1: by=2"), [0, 1, 0, 0]);
        assert_eq!(levels("2: by=3; 1: by=2+4"), [0, 1, 2, 1]);
    }
}
