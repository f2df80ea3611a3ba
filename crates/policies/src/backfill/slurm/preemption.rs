//! Preemption, as Slurm's `preempt/partition_prio` and `preempt/qos` have it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use miserly_core::{Entry, JobId, Ledger, Persistent, Placement, Request, Resources, Span, State, Time};
use miserly_units::{duration, parse_duration};
use thiserror::Error;

use super::suspension::Room;

/// The rules of preemption: which running jobs leave the machine for which waiting ones.
///
/// Each rule is for the running jobs of some queues. `by` has the queues whose waiting jobs preempt them, and `by_priority` those whose
/// waiting jobs do so if their priority is higher than that of the running job was at its start. `mode` is `requeue`, after which they
/// wait again and begin anew, `cancel`, or `suspend`: they are off their processors while jobs of higher queues use them. Jobs of a lower
/// `rank` are preempted first. A job is `exempt` for this time from its start on. It leaves the machine when the time of `grace` is over.
/// A suspended job has neither. Without hosts, no job is suspended, and reservations do not know that a job leaves before its time limit.
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
    by_priority: Vec<u32>,
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
    Suspend,
}

impl Mode {
    const ALL: [(&'static str, Mode); 3] =
        [("requeue", Mode::Requeue), ("cancel", Mode::Cancel), ("suspend", Mode::Suspend)];
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
    "\"{text}\" is no rule of preemption; write such as '1: by=2+3, mode=requeue, rank=1, exempt=5min, grace=30s', each queue once, without a circle of queues, and mode=suspend without by_priority, exempt and grace"
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
            by_priority: vec![],
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
                "by_priority" => rule.by_priority = numbers(value)?,
                "mode" => rule.mode = Mode::ALL.iter().find(|(known, _)| *known == value)?.1,
                "rank" => rule.rank = value.parse().ok()?,
                "exempt" => rule.exempt = parse_duration(value).ok()?,
                "grace" => rule.grace = parse_duration(value).ok()?,
                _ => return None,
            }
            seen.push(name);
        }
        let is_own = rule.by.iter().any(|queue| rule.queues.contains(queue));
        // Slurm suspends by partitions, whatever the priorities are, at once, and resumes the job.
        let is_plain = rule.by_priority.is_empty() && rule.exempt + rule.grace == Span::ZERO;
        let is_possible = rule.mode != Mode::Suspend || is_plain;
        let is_empty = rule.by.is_empty() && rule.by_priority.is_empty();
        (!is_empty && !is_own && is_possible).then_some(rule)
    }
}

/// Formats the rules in their written form.
impl fmt::Display for PreemptionRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |queues: &[u32]| queues.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
        let rule = |rule: &PreemptionRule| {
            let mode = Mode::ALL.iter().find(|(_, mode)| *mode == rule.mode).map_or("", |(name, _)| name);
            let by = [("by", &rule.by), ("by_priority", &rule.by_priority)].into_iter();
            let by = by.filter(|(_, queues)| !queues.is_empty());
            let by: Vec<String> = by.map(|(name, queues)| format!("{name}={}", list(queues))).collect();
            let mut text = format!("{}: {}, mode={mode}", list(&rule.queues), by.join(", "));
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

    /// Returns whether some jobs are suspended.
    pub(crate) fn suspends(&self) -> bool {
        self.0.iter().any(|rule| rule.mode == Mode::Suspend)
    }

    /// Returns whether some jobs are preempted by those with a higher priority only.
    pub(super) fn compare_priorities(&self) -> bool {
        self.0.iter().any(|rule| !rule.by_priority.is_empty())
    }

    /// Returns whether jobs of the queue of a request preempt others in this way: by suspension, or so that they leave the machine.
    pub(super) fn admit(&self, request: &Request, by_suspension: bool) -> bool {
        let is_by =
            |rule: &PreemptionRule, queue| rule.by.contains(&queue) || rule.by_priority.contains(&queue);
        let mut rules = self.0.iter().filter(|rule| (rule.mode == Mode::Suspend) == by_suspension);
        request.queue.is_some_and(|queue| rules.any(|rule| is_by(rule, queue)))
    }

    /// Returns whether a job takes the place of another one. `is_higher`: whether its priority is higher.
    pub(super) fn preempt(&self, by: &Request, victim: &Request, is_higher: impl FnOnce() -> bool) -> bool {
        let rule = victim.queue.and_then(|queue| self.of_queue(queue)).zip(by.queue);
        rule.is_some_and(|(rule, queue)| {
            rule.by.contains(&queue) || rule.by_priority.contains(&queue) && is_higher()
        })
    }

    /// Returns whether a job suspends another one.
    pub(super) fn suspend(&self, by: &Request, victim: &Request) -> bool {
        self.mode(victim) == Mode::Suspend && self.preempt(by, victim, || false)
    }

    /// Returns the level of each queue: above those of all queues whose jobs its own preempt. Other queues have level 0.
    pub(super) fn levels(&self) -> BTreeMap<u32, usize> {
        let mut levels = BTreeMap::new();
        // A chain of queues is not longer than there are queues, unless they preempt each other in a circle.
        let most = self.number_of_queues();
        for _ in 0..=most {
            let before = levels.clone();
            for rule in &self.0 {
                let below = rule.queues.iter().map(|queue| level(&levels, *queue)).max().unwrap_or(0);
                for queue in &rule.by {
                    let above = level(&levels, *queue).max(below + 1).min(most);
                    levels.insert(*queue, above);
                }
            }
            if levels == before {
                break;
            }
        }
        levels
    }

    /// Returns whether queues preempt each other in a circle: their jobs would take turns without an end.
    fn has_circle(&self) -> bool {
        // The highest queue is above all others at most.
        self.levels().values().any(|level| *level >= self.number_of_queues())
    }

    fn number_of_queues(&self) -> usize {
        let queues = self.0.iter().flat_map(|rule| rule.queues.iter().chain(&rule.by));
        queues.collect::<BTreeSet<_>>().len()
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

    /// Returns the running jobs that may leave the machine for a job, in the order in which they are tried. `is_lower`: whether a running
    /// job has a lower priority.
    ///
    /// By rank, then the jobs on fewer hosts, then in the order of submission. Or those that started last come first.
    pub(super) fn candidates(
        &self,
        order: PreemptionOrder,
        now: Time,
        ledger: &Ledger,
        preemptor: &Request,
        is_lower: impl Fn(&Entry, Time) -> bool,
    ) -> Vec<JobId> {
        let key = |job: JobId| {
            let entry = ledger.entry(job);
            let rule = self.of_queue(entry.request.queue?).filter(|rule| rule.mode != Mode::Suspend)?;
            let State::Running { start, placement, released: false, .. } = &entry.state else { return None };
            if !self.preempt(preemptor, &entry.request, || is_lower(entry, *start)) {
                return None;
            }
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

    /// Returns those of the candidates that leave the machine for a job. `hosts_in` returns the hosts of the job in this room, if there is
    /// any.
    ///
    /// One job after the other is taken off, until there is room. The last one comes first in the next search, and behind it those with the
    /// most hosts of this room. The search is made again as often as [`reorder_count`](PreemptionOrder::reorder_count) says, and
    /// once more. Of the jobs of the last search, those leave that are on hosts of the room.
    pub(super) fn victims(
        order: PreemptionOrder,
        ledger: &Ledger,
        mut candidates: Vec<JobId>,
        open: &[bool],
        hosts_in: impl Fn(&[Resources]) -> Option<Placement>,
    ) -> Option<Vec<JobId>> {
        let placement = |job: JobId| ledger.entry(job).placement();
        let is_open = |job: &JobId| {
            placement(*job)
                .is_some_and(|placement| placement.shares().iter().any(|share| open[share.host.index()]))
        };
        candidates.retain(is_open);
        let beside = Room::new(ledger, |_| false);
        // Room only grows with each job that leaves.
        let mut without_all = beside.clone();
        candidates.iter().filter_map(|job| placement(*job)).for_each(|place| without_all.leave(place));
        hosts_in(&without_all.free())?;
        let count = candidates.len() as u64;
        let mut searches = 0;
        loop {
            let mut room = beside.clone();
            let room_after = |job: &JobId| {
                if let Some(place) = placement(*job) {
                    room.leave(place);
                }
                hosts_in(&room.free())
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

/// Sorts as the `qsort` of the C library does, which Slurm calls: both halves by themselves, and then merges them. So the result is defined
/// though `is_first`, whether the first of two jobs comes before the second one or is equal, is no order of all of them.
pub(super) fn merge_sort<T: Copy>(jobs: &[T], is_first: &impl Fn(&T, &T) -> bool) -> Vec<T> {
    if jobs.len() <= 1 {
        return jobs.to_vec();
    }
    let (one, other) = jobs.split_at(jobs.len() / 2);
    let (one, other) = (merge_sort(one, is_first), merge_sort(other, is_first));
    let (mut left, mut right) = (&one[..], &other[..]);
    let mut merged = Vec::with_capacity(jobs.len());
    while let ([first, rest @ ..], [second, behind @ ..]) = (left, right) {
        if is_first(first, second) {
            merged.push(*first);
            left = rest;
        } else {
            merged.push(*second);
            right = behind;
        }
    }
    merged.extend_from_slice(left);
    merged.extend_from_slice(right);
    merged
}

/// The preemption of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Preempted {
    #[default]
    No,
    /// It runs until the end of its grace, and leaves the machine after its epilogs.
    Leaves { ends: Time, at: Time },
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
    const VERSION: u32 = 2;

    fn encode(&self, words: &mut Vec<u64>) {
        match self {
            Preempted::No => {}
            Preempted::Leaves { ends, at } => {
                words.extend([ends, at].map(|time| time.ticks().cast_unsigned()));
            }
            Preempted::Again { at } => words.push(at.ticks().cast_unsigned()),
        }
    }

    fn decode(version: u32, words: &[u64]) -> Option<Preempted> {
        let time = |ticks: u64| Time::from_ticks(ticks.cast_signed());
        match *words {
            [] => Some(Preempted::No),
            [at] => Some(Preempted::Again { at: time(at) }),
            // The second word was the number of another job.
            [at, _] if version == 1 => Some(Preempted::Leaves { ends: time(at), at: time(at) }),
            [ends, at] => Some(Preempted::Leaves { ends: time(ends), at: time(at) }),
            _ => None,
        }
    }
}

/// The rank of a running job at its start, if rules of preemption compare it: Slurm's priorities of running jobs do not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RankAtStart(pub(super) Option<i64>);

impl Persistent for RankAtStart {
    const NAME: &'static str = "slurm/rank-at-start";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.map(i64::cast_unsigned));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<RankAtStart> {
        let rank = words.first().map(|word| word.cast_signed());
        (words.len() <= 1).then_some(RankAtStart(rank))
    }
}

/// The instant at which a waiting job last preempted others, if it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Preempting(pub(super) Option<Time>);

impl Persistent for Preempting {
    const NAME: &'static str = "slurm/preempting";
    const VERSION: u32 = 1;

    fn encode(&self, words: &mut Vec<u64>) {
        words.extend(self.0.map(|at| at.ticks().cast_unsigned()));
    }

    fn decode(_version: u32, words: &[u64]) -> Option<Preempting> {
        let at = words.first().map(|ticks| Time::from_ticks(ticks.cast_signed()));
        (words.len() <= 1).then_some(Preempting(at))
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
            ("1+2: by_priority=1+2", "1+2: by_priority=1+2, mode=requeue"),
            ("1: mode=suspend, by=2,rank=1", "1: by=2, mode=suspend, rank=1"),
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
            "1: by=2, mode=stop",
            "1: by=2, mode=suspend, grace=1s",
            "1: by_priority=1, mode=suspend",
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
