//! The search for idle jobs. Pure: the caller passes the time and what the processes have used.

use std::collections::BTreeMap;
use std::time::Duration;

use super::host::{CpuTime, CpuTimes};
use crate::protocol::Activity;
use crate::spec::IdleRule;
use crate::time::BootTime;

/// The share of one processor that an active job uses, as its reciprocal.
const SHARE: u32 = 50;
/// The number of intervals after which a look is too late: the machine slept, or the shim was stopped.
const LATE: u32 = 4;

/// The activity of a job with a rule for idle jobs.
#[derive(Debug)]
pub(super) struct IdleWatch {
    rule: IdleRule,
    look_at: BootTime,
    /// The last look.
    last: Option<Look>,
    /// The last instant at which the job was active, as far as that is known.
    active_at: BootTime,
    is_idle: bool,
}

/// A look at a job.
#[derive(Debug)]
struct Look {
    at: BootTime,
    /// What the processes had used, by their identities.
    used: BTreeMap<(u32, u64), CpuTime>,
}

impl Look {
    /// Returns the processor time that was used since an earlier look.
    ///
    /// What a process used that has ended is part of the time of its parent, if that has waited for it. Only what was unknown at
    /// the earlier look counts of it.
    fn since(&self, earlier: &Look) -> Duration {
        let before = |id| earlier.used.get(id).copied().unwrap_or_default();
        let grown = |of: fn(&CpuTime) -> Duration| -> Duration {
            self.used.iter().map(|(id, used)| of(used).saturating_sub(of(&before(id)))).sum()
        };
        let ended = earlier.used.iter().filter(|(id, _)| !self.used.contains_key(id));
        let known: Duration = ended.map(|(_, used)| used.own + used.of_children).sum();
        grown(|used| used.own) + grown(|used| used.of_children).saturating_sub(known)
    }
}

/// What is due for an idle job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleAction {
    /// Warn it.
    Warn,
    /// End it.
    End,
}

impl IdleWatch {
    /// Returns the watch over a job that begins.
    pub(super) fn new(rule: IdleRule, now: BootTime) -> IdleWatch {
        IdleWatch { rule, look_at: now, last: None, active_at: now, is_idle: false }
    }

    /// Returns the instant of the next look.
    pub(super) const fn look_at(&self) -> BootTime {
        self.look_at
    }

    /// Returns the rule.
    pub(super) const fn rule(&self) -> IdleRule {
        self.rule
    }

    /// Returns the activity as a daemon learns of it.
    pub(super) fn activity(&self) -> Activity {
        Activity { interval: self.rule.interval(), idle_since: self.is_idle.then_some(self.active_at) }
    }

    /// Begins anew: the job does not run now, or what it used is unknown.
    pub(super) fn begin_again(&mut self, now: BootTime) {
        *self = IdleWatch { look_at: now.after(self.rule.interval()), ..IdleWatch::new(self.rule, now) };
    }

    /// Looks at what the processes have used so far. Each action is returned once.
    pub(super) fn look(&mut self, now: BootTime, used: CpuTimes) -> Option<IdleAction> {
        let interval = self.rule.interval();
        self.look_at = now.after(interval);
        let look = Look { at: now, used: used.into_iter().collect() };
        let is_active = self.last.as_ref().is_none_or(|earlier| {
            let passed = now.since(earlier.at);
            passed > interval * LATE || look.since(earlier) * SHARE >= passed
        });
        self.last = Some(look);
        if is_active {
            (self.active_at, self.is_idle) = (now, false);
            return None;
        }
        let idle = now.since(self.active_at);
        if self.rule.ends && idle >= self.rule.after {
            self.is_idle = true;
            return Some(IdleAction::End);
        }
        let warns = !self.is_idle && idle >= self.rule.warn_after();
        self.is_idle |= warns;
        warns.then_some(IdleAction::Warn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000_000;

    /// A job that is idle after 5 min, at which the shim looks each 30 s.
    fn watch(ends: bool) -> IdleWatch {
        IdleWatch::new(IdleRule { after: Duration::from_mins(5), ends }, BootTime(0))
    }

    /// Looks until a minute, each half of it. The process uses a share of the time, in thousandths, from `used` on. Returns the
    /// actions, with their half minutes.
    fn look(
        watch: &mut IdleWatch,
        halves: std::ops::Range<i64>,
        share: i64,
        used: &mut i64,
    ) -> Vec<(i64, IdleAction)> {
        let mut actions = vec![];
        for half in halves {
            *used += MINUTE / 2 / 1000 * share;
            let time = Duration::from_micros(used.unsigned_abs());
            actions.extend(
                watch
                    .look(BootTime(half * MINUTE / 2), vec![((7, 1), CpuTime::own(time))])
                    .map(|action| (half, action)),
            );
        }
        actions
    }

    #[test]
    fn a_job_without_work_is_warned_once_and_is_active_again_with_work() {
        let (mut watch, mut used) = (watch(false), 0);
        assert_eq!(look(&mut watch, 0..15, 10, &mut used), [(10, IdleAction::Warn)]);
        assert_eq!(watch.activity().idle_since, Some(BootTime(0)));
        assert_eq!(look(&mut watch, 15..16, 30, &mut used), []);
        assert_eq!(watch.activity().idle_since, None);
        assert_eq!(look(&mut watch, 16..40, 10, &mut used), [(25, IdleAction::Warn)]);
        assert_eq!(look(&mut watch, 40..100, 20, &mut used), [], "a fiftieth of a processor is work");
    }

    #[test]
    fn a_job_is_warned_before_it_is_ended() {
        let (mut watch, mut used) = (watch(true), 0);
        assert_eq!(look(&mut watch, 0..11, 10, &mut used), [(8, IdleAction::Warn), (10, IdleAction::End)]);
    }

    #[test]
    fn short_processes_count_and_the_end_of_one_does_not() {
        let mut watch = watch(false);
        let ms = |ms| CpuTime::own(Duration::from_millis(ms));
        watch.look(BootTime(0), vec![((7, 1), ms(90_000))]);
        assert_eq!(watch.look(BootTime(MINUTE / 2), vec![((8, 2), ms(700))]), None);
        assert_eq!(watch.active_at, BootTime(MINUTE / 2), "the time of a new process");
        watch.look(BootTime(MINUTE), vec![]);
        assert_eq!(watch.active_at, BootTime(MINUTE / 2));
        // Another process with the number of an earlier one.
        watch.look(BootTime(MINUTE / 2 * 3), vec![((8, 3), ms(700))]);
        assert_eq!(watch.active_at, BootTime(MINUTE / 2 * 3));
    }

    #[test]
    fn time_in_which_nothing_was_seen_is_not_idle() {
        let (mut watch, mut used) = (watch(true), 0);
        look(&mut watch, 0..7, 0, &mut used);
        assert_eq!(look(&mut watch, 100..107, 0, &mut used), [], "the machine slept");
        watch.begin_again(BootTime(60 * MINUTE));
        assert_eq!(watch.look_at(), BootTime(60 * MINUTE + MINUTE / 2));
        assert_eq!(look(&mut watch, 121..129, 0, &mut used), [], "it was stopped");
    }

    #[test]
    fn the_time_of_an_ended_child_counts_once() {
        let time = |own, of_children| CpuTime {
            own: Duration::from_secs(own),
            of_children: Duration::from_secs(of_children),
        };
        let look =
            |used: &[((u32, u64), CpuTime)]| Look { at: BootTime(0), used: used.iter().copied().collect() };
        let (shell, child) = ((1, 1), (2, 2));
        let earlier = look(&[(shell, time(1, 5)), (child, time(90, 7))]);
        let since = |used: &[_]| look(used).since(&earlier).as_secs();
        assert_eq!(since(&[(shell, time(1, 102))]), 0, "its parent has waited for it");
        assert_eq!(since(&[(shell, time(1, 105))]), 3, "it worked before its end");
        assert_eq!(since(&[(shell, time(4, 5))]), 3, "another process has waited for it");
        assert_eq!(since(&[(shell, time(1, 8)), (child, time(90, 7))]), 3, "a short process");
    }
}
