//! Revoke before grant: no shim gets a window, and no job processors, that another shim may still begin to use by itself.
//!
//! Planned windows are disjoint in numbers of processors, but messages get stale when plans move, and the daemon may die at any
//! instant. So a change of plans has an order. First each shim acknowledges that it has lost its window, and only then another
//! one gets an overlapping window, or a command processors of it. What waits here is lost with the daemon, which is right: the
//! next one plans again.
//!
//! A shim that does not acknowledge in [`PATIENCE`] cannot keep others from their starts. If it waits it is killed, since it has
//! no command. Else its window counts as lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use miserly_core::Time;
use miserly_engine::{Action, Attempt, Launch, PlannedWindow};
use miserly_launch::{BootTime, ReservedWindow};
use miserly_marks::mark;

use crate::attempt::Stage;
use crate::convert;
use crate::held_windows::CpuUse;
use crate::message::AttemptMessage;
use crate::shim_loop::ShimLoop;
use crate::site::{Host, Site};

/// The time for the acknowledgement of a lost window.
const PATIENCE: Duration = Duration::from_secs(2);

/// What waits until other shims have lost their windows.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    /// The planned windows that the shims of attempts do not have yet.
    wanted: BTreeMap<Attempt, Wanted>,
    /// The messages that give an attempt processors, and all that follow them.
    held_back: BTreeMap<Attempt, HeldBack>,
    /// The processors and the end that each attempt has in its window.
    used: BTreeMap<Attempt, (Vec<u32>, Time)>,
    /// The launches into windows, and since when each waits.
    launches: BTreeMap<Attempt, BootTime>,
}

/// A planned window that a shim does not have yet.
#[derive(Debug)]
struct Wanted {
    window: Option<PlannedWindow>,
    /// Whether the shim was told to give up the one before.
    is_revoked: bool,
}

#[derive(Debug)]
struct HeldBack {
    since: BootTime,
    messages: VecDeque<AttemptMessage>,
}

impl Grants {
    /// Takes a message, unless it may be passed on to the attempt at once.
    pub(crate) fn admit(
        &mut self,
        attempt: Attempt,
        message: AttemptMessage,
        now: BootTime,
    ) -> Option<AttemptMessage> {
        let AttemptMessage::Do(action) = &message else { return self.queue(attempt, message) };
        match action {
            Action::PlanWindow(window) => {
                self.want(attempt, Some(window.clone()));
                None
            }
            Action::RevokeWindow => {
                self.want(attempt, None);
                None
            }
            // Nothing else matters any more.
            Action::Kill { .. } | Action::WriteOut { .. } | Action::Withdraw => {
                self.forget(attempt);
                Some(message)
            }
            // Its window ends the job. A shim that does not know the window yet learns of it first.
            Action::EndOverdue { .. } => {
                self.wanted.remove(&attempt);
                self.queue(attempt, message)
            }
            Action::BeginWindow { .. } | Action::EndAt(_) | Action::Move(_) => {
                // A shim that learned of an earlier plan later would end the job by it.
                if let (Action::BeginWindow { .. }, Some(wanted)) = (action, self.wanted.get_mut(&attempt)) {
                    wanted.window = None;
                }
                self.held_back
                    .entry(attempt)
                    .or_insert_with(|| HeldBack { since: now, messages: VecDeque::new() })
                    .messages
                    .push_back(message);
                None
            }
            _ => self.queue(attempt, message),
        }
    }

    /// Puts a message behind those that wait, if there are any.
    fn queue(&mut self, attempt: Attempt, message: AttemptMessage) -> Option<AttemptMessage> {
        match self.held_back.get_mut(&attempt) {
            Some(held) => {
                held.messages.push_back(message);
                None
            }
            None => Some(message),
        }
    }

    fn want(&mut self, attempt: Attempt, window: Option<PlannedWindow>) {
        let is_revoked = self.wanted.get(&attempt).is_some_and(|wanted| wanted.is_revoked);
        self.wanted.insert(attempt, Wanted { window, is_revoked });
    }

    /// Takes the planned window of a launch, or takes note of the processors of its window.
    pub(crate) fn launch(&mut self, attempt: Attempt, launch: &mut Launch, now: BootTime) {
        if let Some(window) = launch.planned_window.take() {
            self.want(attempt, Some(window));
        }
        if let Some(end) = launch.end.filter(|_| launch.limit.is_none()) {
            self.used.insert(attempt, (launch.cpus.clone(), end));
        }
        self.launches.insert(attempt, now);
    }

    /// Takes back the planned window of a launch that failed and is repeated, unless there is a later plan.
    pub(crate) fn repeat(&mut self, attempt: Attempt, window: Option<PlannedWindow>) {
        if let Some(window) = window.filter(|_| !self.wanted.contains_key(&attempt)) {
            mark!("a repeated launch has its window again");
            self.want(attempt, Some(window));
        }
    }

    /// Forgets an attempt.
    pub(crate) fn forget(&mut self, attempt: Attempt) {
        self.wanted.remove(&attempt);
        self.held_back.remove(&attempt);
        self.used.remove(&attempt);
        self.launches.remove(&attempt);
    }

    /// Returns the first instant after `now` at which something waits no longer.
    pub(crate) fn next(&self, now: BootTime) -> Option<BootTime> {
        let held = self.held_back.values().map(|held| held.since);
        let ends = held.chain(self.launches.values().copied()).map(|since| since.after(PATIENCE));
        ends.filter(|end| *end > now).min()
    }
}

impl<S: Site> ShimLoop<S> {
    /// Sends each planned window whose time has come, and passes on each message that waits no longer.
    pub(crate) fn settle_grants(&mut self, now: BootTime) {
        self.settle_windows();
        for attempt in self.grants.held_back.keys().copied().collect::<Vec<_>>() {
            self.settle_messages(attempt, now);
        }
    }

    fn settle_windows(&mut self) {
        for attempt in self.grants.wanted.keys().copied().collect::<Vec<_>>() {
            let Some(supervised) = self.attempts().get(&attempt) else {
                self.grants.forget(attempt);
                continue;
            };
            let Stage::Running(supervision) = &supervised.stage else { continue };
            let Some(Wanted { window, is_revoked }) = self.grants.wanted.get(&attempt) else { continue };
            let held = supervision.held.has_any();
            let window = window.as_ref().filter(|window| self.is_ahead(window));
            let planned = window.map(|window| convert::window(self.site().host().clock(), window));
            let action = match (window, planned) {
                (Some(window), Some(planned)) if self.blockers(attempt, CpuUse::of(&planned)).is_empty() => {
                    Some(Action::PlanWindow(window.clone()))
                }
                (None, _) if held => Some(Action::RevokeWindow),
                (None, _) => None,
                // Others may wait for it in turn.
                (Some(_), _) if held && !is_revoked => {
                    if let Some(wanted) = self.grants.wanted.get_mut(&attempt) {
                        wanted.is_revoked = true;
                    }
                    self.pass_on(attempt, AttemptMessage::Do(Action::RevokeWindow));
                    continue;
                }
                (Some(_), _) => continue,
            };
            self.grants.wanted.remove(&attempt);
            if let Some(action) = action {
                self.pass_on(attempt, AttemptMessage::Do(action));
            }
        }
    }

    /// Returns whether a window begins later than now. After a stall, a plan may be old: its shim would begin the window at once.
    fn is_ahead(&self, window: &PlannedWindow) -> bool {
        self.site().host().clock().boot_time(window.start) > self.site().now()
    }

    /// Returns the other attempts whose shims may have a window that overlaps with a use.
    fn blockers(&self, attempt: Attempt, used: CpuUse<'_>) -> BTreeSet<Attempt> {
        let others = self.attempts().iter().filter(|(other, _)| **other != attempt);
        others.filter(|(_, other)| other.may_have(used)).map(|(other, _)| *other).collect()
    }

    /// Returns whether a use waits for others. After some time it does not: those that only wait are killed.
    fn is_blocked(&self, attempt: Attempt, used: CpuUse<'_>, since: BootTime) -> bool {
        let mut blockers = self.blockers(attempt, used);
        // Where the engine lets them overlap, because it lacks processors, there is nothing to wait for.
        blockers.retain(|other| self.loses(*other, used));
        if blockers.is_empty() {
            return false;
        }
        if self.site().now() < since.after(PATIENCE) {
            return true;
        }
        for blocker in blockers {
            if let Some(other) = self.attempts().get(&blocker).filter(|other| other.is_waiting())
                && let Stage::Running(supervision) = &other.stage
            {
                tracing::warn!("job {}: its shim does not answer; it is ended", blocker.job);
                if let Err(error) = self.site().host().kill_shim(blocker, &supervision.shim) {
                    tracing::warn!("job {}: its shim cannot be ended: {error}", blocker.job);
                }
            }
        }
        false
    }

    /// Returns whether the shim of an attempt is to lose all windows that overlap with a use.
    fn loses(&self, attempt: Attempt, used: CpuUse<'_>) -> bool {
        match self.grants.wanted.get(&attempt) {
            Some(Wanted { window, .. }) => window
                .as_ref()
                .is_none_or(|window| !used.overlaps(&convert::window(self.site().host().clock(), window))),
            None => self.attempts().get(&attempt).is_none_or(|supervised| supervised.loses(used)),
        }
    }

    fn settle_messages(&mut self, attempt: Attempt, now: BootTime) {
        loop {
            let Some(HeldBack { since, messages }) = self.grants.held_back.get(&attempt) else { return };
            let (since, Some(message)) = (*since, messages.front()) else {
                self.grants.held_back.remove(&attempt);
                return;
            };
            let before = self.grants.used.get(&attempt);
            let used = match message {
                AttemptMessage::Do(Action::BeginWindow { cpus, end }) => Some((cpus.clone(), *end)),
                AttemptMessage::Do(Action::EndAt(end)) => before.map(|(cpus, _)| (cpus.clone(), *end)),
                AttemptMessage::Do(Action::Move(cpus)) => before.map(|(_, end)| (cpus.clone(), *end)),
                _ => None,
            };
            if let Some((cpus, end)) = &used {
                let until = self.site().host().clock().boot_time(*end);
                if self.is_blocked(attempt, CpuUse { from: now, until, cpus }, since) {
                    return;
                }
            }
            self.grants.used.extend(used.map(|used| (attempt, used)));
            let held = self.grants.held_back.get_mut(&attempt);
            if let Some(message) = held.and_then(|held| held.messages.pop_front()) {
                self.pass_on(attempt, message);
            }
        }
    }

    /// Returns whether a queued launch waits: for windows of others, or for the end of an earlier attempt of the job.
    pub(crate) fn is_launch_blocked(&self, attempt: Attempt) -> bool {
        let Some(since) = self.grants.launches.get(&attempt).copied() else { return false };
        let Some(supervised) = self.attempts().get(&attempt) else { return false };
        let Some(pending) = supervised.queued() else { return false };
        let earlier = Attempt { nth: 0, ..attempt }..attempt;
        if self.attempts().range(earlier).any(|(_, other)| other.is_leaving()) {
            return true;
        }
        let Some(end) = pending.launch.end.filter(|_| pending.launch.limit.is_none()) else { return false };
        let (from, until) = (self.site().now(), self.site().host().clock().boot_time(end));
        self.is_blocked(attempt, CpuUse { from, until, cpus: &pending.launch.cpus }, since)
    }

    /// Returns the planned window with which an attempt is launched: its shim has it from the beginning, if nothing is in its way.
    pub(crate) fn window_at_launch(&mut self, attempt: Attempt) -> Option<PlannedWindow> {
        self.grants.launches.remove(&attempt);
        let window =
            self.grants.wanted.get(&attempt)?.window.as_ref().filter(|window| self.is_ahead(window))?;
        let planned: ReservedWindow = convert::window(self.site().host().clock(), window);
        if !self.blockers(attempt, CpuUse::of(&planned)).is_empty() {
            return None;
        }
        self.grants.wanted.remove(&attempt)?.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTEMPT: Attempt = Attempt { job: 1, nth: 1 };

    fn admit(grants: &mut Grants, action: Action) -> bool {
        grants.admit(ATTEMPT, AttemptMessage::Do(action), BootTime(0)).is_some()
    }

    fn begin() -> Action {
        Action::BeginWindow { cpus: vec![1], end: Time::from_ticks(9) }
    }

    fn window(start: i64) -> PlannedWindow {
        let (start, end) = (Time::from_ticks(start), Time::from_ticks(start + 5));
        PlannedWindow { start, end, cpus: vec![1], after: vec![], latest: start }
    }

    #[test]
    fn an_overdue_end_follows_a_begin_that_waits() {
        let mut grants = Grants::default();
        assert!(!admit(&mut grants, begin()));
        assert!(!admit(&mut grants, Action::EndOverdue { by_running_time: false }));
        assert_eq!(grants.held_back[&ATTEMPT].messages.len(), 2);
        // What ends the job at once waits for nothing.
        assert!(admit(&mut grants, Action::Kill { grace: miserly_core::Span::ZERO }));
        assert!(grants.held_back.is_empty());
    }

    #[test]
    fn no_earlier_plan_follows_a_begin() {
        let mut grants = Grants::default();
        admit(&mut grants, Action::PlanWindow(window(1)));
        admit(&mut grants, begin());
        assert_eq!(grants.wanted[&ATTEMPT].window, None);
    }

    #[test]
    fn no_past_instant_is_a_reason_for_a_turn() {
        let mut grants = Grants::default();
        admit(&mut grants, begin());
        let end = BootTime(0).after(PATIENCE);
        assert_eq!(grants.next(BootTime(0)), Some(end));
        assert_eq!(grants.next(end), None);
    }

    #[test]
    fn a_repeated_launch_has_its_window_unless_there_is_a_later_plan() {
        let mut grants = Grants::default();
        grants.repeat(ATTEMPT, Some(window(1)));
        assert_eq!(grants.wanted[&ATTEMPT].window, Some(window(1)));
        for (action, plan) in [(Action::PlanWindow(window(7)), Some(window(7))), (Action::RevokeWindow, None)]
        {
            admit(&mut grants, action);
            grants.repeat(ATTEMPT, Some(window(1)));
            assert_eq!(grants.wanted[&ATTEMPT].window, plan);
        }
    }

    #[test]
    fn the_latest_plan_counts() {
        let mut grants = Grants::default();
        for action in [Action::PlanWindow(window(1)), Action::PlanWindow(window(7))] {
            assert!(!admit(&mut grants, action));
        }
        assert_eq!(grants.wanted[&ATTEMPT].window, Some(window(7)));
        assert!(!admit(&mut grants, Action::RevokeWindow));
        assert_eq!(grants.wanted[&ATTEMPT].window, None);
    }
}
