//! The next deadline of a job: begin, `SIGTERM`, `SIGKILL` or resume. Pure: the caller passes the
//! time.

use std::time::Duration;

use crate::end::EndCause;
use crate::time::BootTime;

/// Time from `SIGTERM` to `SIGKILL` for processes that outlive the main process.
///
/// The grace period of the specification applies if it is shorter, unless the job has a relay.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);

/// Delay after which the shim begins a window although a daemon is connected.
///
/// A daemon may begin the window later for a reason, and needs a moment to send that.
pub const BEGIN_DELAY: Duration = Duration::from_secs(2);

/// The deadlines of a job: begin of its window, termination, kill and resume.
#[derive(Debug)]
pub(super) struct Timeline {
    /// Start of a window that has not begun.
    start: Option<BootTime>,
    end: Option<BootTime>,
    /// Running time, if the job has a run limit. It then determines the end.
    budget: Option<RunBudget>,
    grace: Duration,
    orphan_resume_delay: Duration,
    stopped: bool,
    /// How often the job was stopped while it ran.
    stops: u32,
    /// Instant since which no daemon is connected.
    absent_since: Option<BootTime>,
    /// Longest time that the window lasts once the job is resumed, unless it gets another end.
    max_after_resume: Option<Duration>,
    /// Time from the early signal to the end of the window, if the user wants one.
    warning: Option<Duration>,
    /// The end of the window for which the early signal was sent.
    warned: Option<BootTime>,
    ending: Option<Termination>,
}

/// The running time of a job that is stopped repeatedly.
#[derive(Clone, Copy, Debug)]
struct RunBudget {
    /// Run limit.
    limit: Duration,
    /// Running time up to the last stop.
    ran: Duration,
    /// Instant since which the job runs.
    since: Option<BootTime>,
}

/// A termination in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Termination {
    /// Cause; `None` if the main process exited and the remaining processes follow.
    pub(super) cause: Option<EndCause>,
    /// Instant of `SIGKILL`.
    pub(super) kill_at: BootTime,
    term_sent: bool,
    pub(super) killed: bool,
}

/// An action that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DueAction {
    /// Begin the window, because no daemon does.
    Begin,
    /// Send the early signal of the user.
    Warn,
    /// Send `SIGTERM`.
    Term,
    /// Send `SIGKILL`.
    Kill,
    /// Resume a stopped job whose daemon did not reconnect.
    Resume,
}

impl Timeline {
    /// Creates the timeline of a running job with a connected daemon.
    pub(super) fn new(end: Option<BootTime>, grace: Duration, orphan_resume_delay: Duration) -> Timeline {
        let (start, budget, absent_since, max_after_resume, ending) = (None, None, None, None, None);
        Timeline {
            start,
            end,
            budget,
            grace,
            orphan_resume_delay,
            stopped: false,
            stops: 0,
            absent_since,
            max_after_resume,
            warning: None,
            warned: None,
            ending,
        }
    }

    /// Creates the timeline of a stopped job with a run limit.
    pub(super) fn with_run_limit(
        limit: Duration,
        grace: Duration,
        orphan_resume_delay: Duration,
    ) -> Timeline {
        let budget = RunBudget { limit, ran: Duration::ZERO, since: None };
        Timeline { budget: Some(budget), stopped: true, ..Timeline::new(None, grace, orphan_resume_delay) }
    }

    /// Returns the next instant at which an action is due.
    pub(super) fn next(&self) -> Option<BootTime> {
        match self.ending {
            Some(ending) if ending.killed => None,
            Some(ending) if ending.term_sent => Some(ending.kill_at),
            Some(_) => Some(BootTime(0)),
            None => [self.begin_at(), self.warn_at(), self.term_at(), self.continue_at()]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    /// Returns an action due at `now`, each once. The caller repeats the call until it returns
    /// `None`.
    pub(super) fn due(&mut self, now: BootTime) -> Option<DueAction> {
        if self.ending.is_none() && self.begin_at().is_some_and(|at| at <= now) {
            self.start = None;
            return Some(DueAction::Begin);
        }
        if self.ending.is_none() && self.warn_at().is_some_and(|at| at <= now) {
            self.warned = self.end();
            return Some(DueAction::Warn);
        }
        if self.ending.is_none() && self.term_at().is_some_and(|at| at <= now) {
            self.ending = self.end().map(|end| Termination::new(Some(EndCause::Time), end));
        }
        let Some(ending) = &mut self.ending else {
            let resumes = self.continue_at().is_some_and(|at| at <= now);
            if resumes {
                self.resume(now);
            }
            return resumes.then_some(DueAction::Resume);
        };
        if ending.kill_at <= now && !ending.killed {
            (ending.term_sent, ending.killed) = (true, true);
            return Some(DueAction::Kill);
        }
        let send_term = !ending.term_sent;
        ending.term_sent = true;
        send_term.then_some(DueAction::Term)
    }

    /// Terminates the job for its user after `grace`, no later than an earlier deadline.
    pub(super) fn terminate(&mut self, now: BootTime, grace: Duration) {
        self.end_by(now.after(grace), Some(EndCause::User));
    }

    /// Terminates the job because it is idle.
    pub(super) fn end_idle(&mut self, now: BootTime) {
        self.end_by(now.after(self.grace), Some(EndCause::Idle));
    }

    /// Terminates the job because the machine or the session shuts down.
    pub(super) fn shut_down(&mut self, now: BootTime) {
        self.end_by(now.after(self.grace), Some(EndCause::Shutdown));
        if let Some(ending) = &mut self.ending {
            ending.cause.get_or_insert(EndCause::Shutdown);
        }
    }

    /// Terminates the remaining processes after the exit of the main process.
    ///
    /// A relay among them reads the rest of the output, also if the job has no grace.
    pub(super) fn terminate_leftovers(&mut self, now: BootTime, has_relay: bool) {
        if self.ending.is_none() {
            let grace = if has_relay { LEFTOVER_GRACE } else { self.grace.min(LEFTOVER_GRACE) };
            self.end_by(now.after(grace), None);
        }
    }

    /// Ends the job without `SIGTERM`, by `SIGKILL` at an instant, for its checkpoint command.
    pub(super) fn write_out(&mut self, until: BootTime) {
        let ending = Termination { term_sent: true, ..Termination::new(Some(EndCause::User), until) };
        self.ending.get_or_insert(ending);
    }

    /// Kills a job that is being terminated at an instant, if not earlier.
    pub(super) fn kill_by(&mut self, at: BootTime) {
        if let Some(ending) = &mut self.ending {
            ending.kill_at = ending.kill_at.min(at);
        }
    }

    fn end_by(&mut self, kill_at: BootTime, cause: Option<EndCause>) {
        let kill_at = self.end().map_or(kill_at, |end| kill_at.min(end));
        let ending = self.ending.get_or_insert(Termination::new(cause, kill_at));
        ending.kill_at = ending.kill_at.min(kill_at);
    }

    pub(super) fn ending(&self) -> Option<Termination> {
        self.ending
    }

    /// Returns the end of the window, unknown for a stopped job with a run limit.
    pub(super) fn end(&self) -> Option<BootTime> {
        self.budget.map_or(self.end, RunBudget::end)
    }

    /// Sets the time from the early signal to the end of the window.
    pub(super) fn set_warning(&mut self, before: Option<Duration>) {
        self.warning = before;
    }

    /// Sets the start of a window that has not begun. `None`: it has begun or is unknown.
    pub(super) fn set_start(&mut self, start: Option<BootTime>) {
        self.start = start;
    }

    /// Replaces the end of the window.
    pub(super) fn set_end(&mut self, end: BootTime) {
        self.end = Some(end);
        (self.max_after_resume, self.budget) = (None, None);
    }

    /// Ends the window after a total running time. Stopped time does not count.
    pub(super) fn set_run_limit(&mut self, now: BootTime, limit: Duration) {
        let since = (!self.stopped).then_some(now);
        self.budget.get_or_insert(RunBudget { limit, ran: Duration::ZERO, since }).limit = limit;
        (self.end, self.max_after_resume) = (None, None);
    }

    /// Limits the window after a resume. An earlier end still applies.
    pub(super) fn set_max_after_resume(&mut self, max_after_resume: Option<Duration>) {
        self.max_after_resume = max_after_resume;
    }

    /// Takes note that the job runs again: the shim resumes it without a daemon, or a daemon does that may not know its window.
    pub(super) fn resume(&mut self, now: BootTime) {
        self.set_stopped(now, false);
        if let Some(length) = self.max_after_resume.take() {
            let end = now.after(length);
            self.end = Some(self.end.map_or(end, |before| before.min(end)));
        }
    }

    /// Returns how often the job was stopped while it ran.
    pub(super) fn stops(&self) -> u32 {
        self.stops
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Records that the job is stopped or runs, from now on.
    pub(super) fn set_stopped(&mut self, now: BootTime, stopped: bool) {
        self.stops += u32::from(stopped && !self.stopped);
        self.stopped = stopped;
        if let Some(budget) = &mut self.budget {
            budget.set_running(now, !stopped);
        }
    }

    /// Records the instant since which no daemon is connected; `None` if one is.
    pub(super) fn set_daemon_absent(&mut self, since: Option<BootTime>) {
        self.absent_since = since;
    }

    fn begin_at(&self) -> Option<BootTime> {
        let delay = if self.absent_since.is_some() { Duration::ZERO } else { BEGIN_DELAY };
        self.start.map(|start| start.after(delay))
    }

    /// Returns the instant of the early signal. A later end of the window has a signal of its own.
    fn warn_at(&self) -> Option<BootTime> {
        let at = self.end()?.before(self.warning?);
        self.warned.is_none_or(|warned| warned <= at).then_some(at)
    }

    fn term_at(&self) -> Option<BootTime> {
        self.end().map(|end| end.before(self.grace))
    }

    fn continue_at(&self) -> Option<BootTime> {
        self.absent_since.filter(|_| self.stopped).map(|since| since.after(self.orphan_resume_delay))
    }
}

impl RunBudget {
    /// Returns the instant at which the run limit is reached if the job is not stopped before.
    fn end(self) -> Option<BootTime> {
        Some(self.since?.after(self.limit.saturating_sub(self.ran)))
    }

    fn set_running(&mut self, now: BootTime, running: bool) {
        if let Some(since) = self.since.take() {
            self.ran += now.since(since);
        }
        self.since = running.then_some(now);
    }
}

impl Termination {
    fn new(cause: Option<EndCause>, kill_at: BootTime) -> Termination {
        Termination { cause, kill_at, term_sent: false, killed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns a job that ends at 100 s with a grace of 10 s and is resumed after 5 s without a
    /// daemon.
    fn timeline() -> Timeline {
        Timeline::new(Some(at(100)), 10 * SECOND, 5 * SECOND)
    }

    fn at(second: i64) -> BootTime {
        BootTime(second * 1_000_000)
    }

    #[track_caller]
    fn check(timeline: &mut Timeline, second: i64, due: &[DueAction], next: Option<i64>) {
        let all: Vec<DueAction> = std::iter::from_fn(|| timeline.due(at(second))).collect();
        assert_eq!((all.as_slice(), timeline.next()), (due, next.map(at)));
    }

    #[test]
    fn a_window_ends_with_a_grace_and_then_by_force() {
        let mut timeline = timeline();
        check(&mut timeline, 89, &[], Some(90));
        check(&mut timeline, 90, &[DueAction::Term], Some(100));
        timeline.terminate(at(91), 20 * SECOND);
        check(&mut timeline, 99, &[], Some(100));
        check(&mut timeline, 101, &[DueAction::Kill], None);
        assert_eq!(timeline.ending().unwrap().cause, Some(EndCause::Time));
    }

    #[test]
    fn a_window_that_is_over_leaves_no_grace() {
        check(&mut timeline(), 200, &[DueAction::Kill], None);
    }

    #[test]
    fn without_a_window_nothing_is_due() {
        check(&mut Timeline::new(None, SECOND, SECOND), 1_000_000, &[], None);
    }

    #[test]
    fn a_kill_keeps_to_the_window_and_the_earliest_one_counts() {
        let mut timeline = timeline();
        timeline.terminate(at(50), 90 * SECOND);
        check(&mut timeline, 50, &[DueAction::Term], Some(100));
        timeline.terminate(at(60), 5 * SECOND);
        check(&mut timeline, 60, &[], Some(65));
        check(&mut timeline, 65, &[DueAction::Kill], None);
        assert_eq!(timeline.ending().unwrap().cause, Some(EndCause::User));
    }

    #[test]
    fn without_a_grace_it_is_killed_at_once() {
        let mut timeline = timeline();
        timeline.terminate(at(50), Duration::ZERO);
        check(&mut timeline, 50, &[DueAction::Kill], None);
    }

    #[test]
    fn leftovers_of_a_main_process_have_a_second() {
        let mut timeline = timeline();
        timeline.terminate_leftovers(at(50), false);
        check(&mut timeline, 50, &[DueAction::Term], Some(51));
        assert_eq!(timeline.ending().unwrap().cause, None);
    }

    #[test]
    fn a_relay_has_a_second_without_a_grace_up_to_the_end_of_the_window() {
        let leftovers = |end, has_relay| {
            let mut timeline = Timeline::new(Some(end), Duration::ZERO, SECOND);
            timeline.terminate_leftovers(at(50), has_relay);
            timeline.ending().unwrap().kill_at
        };
        assert_eq!(leftovers(at(100), false), at(50));
        assert_eq!(leftovers(at(100), true), at(51));
        assert_eq!(leftovers(BootTime(50_500_000), true), BootTime(50_500_000));
    }

    #[test]
    fn a_shutdown_has_the_grace_and_keeps_an_earlier_cause() {
        let mut timeline = timeline();
        timeline.shut_down(at(50));
        check(&mut timeline, 50, &[DueAction::Term], Some(60));
        assert_eq!(timeline.ending().unwrap().cause, Some(EndCause::Shutdown));
        let mut leftovers = self::timeline();
        leftovers.terminate_leftovers(at(50), false);
        leftovers.shut_down(at(50));
        check(&mut leftovers, 50, &[DueAction::Term], Some(51));
        assert_eq!(leftovers.ending().unwrap().cause, Some(EndCause::Shutdown));
        let mut cancelled = self::timeline();
        cancelled.terminate(at(50), SECOND);
        cancelled.shut_down(at(50));
        assert_eq!(cancelled.ending().unwrap().cause, Some(EndCause::User));
    }

    #[test]
    fn another_end_counts_until_the_job_is_term_sent() {
        let mut timeline = timeline();
        timeline.set_end(at(200));
        check(&mut timeline, 100, &[], Some(190));
        check(&mut timeline, 190, &[DueAction::Term], Some(200));
    }

    #[test]
    fn a_window_begins_by_itself_when_no_daemon_begins_it() {
        let mut timeline = Timeline::new(None, 10 * SECOND, 5 * SECOND);
        timeline.set_start(Some(at(50)));
        check(&mut timeline, 50, &[], Some(52));
        timeline.set_daemon_absent(Some(at(20)));
        check(&mut timeline, 49, &[], Some(50));
        check(&mut timeline, 50, &[DueAction::Begin], None);
        timeline.set_end(at(100));
        check(&mut timeline, 50, &[], Some(90));
    }

    #[test]
    fn a_daemon_that_hangs_is_not_waited_for() {
        let mut timeline = Timeline::new(None, 10 * SECOND, 5 * SECOND);
        timeline.set_start(Some(at(50)));
        check(&mut timeline, 52, &[DueAction::Begin], None);
    }

    #[test]
    fn a_job_that_is_being_ended_begins_no_window() {
        let mut timeline = Timeline::new(None, 10 * SECOND, 5 * SECOND);
        timeline.set_start(Some(at(50)));
        timeline.set_daemon_absent(Some(at(20)));
        timeline.terminate(at(49), 5 * SECOND);
        check(&mut timeline, 50, &[DueAction::Term], Some(54));
    }

    #[test]
    fn max_after_resume_counts_from_the_resume() {
        let mut timeline = timeline();
        timeline.set_stopped(at(0), true);
        timeline.set_end(BootTime(i64::MAX));
        timeline.set_max_after_resume(Some(30 * SECOND));
        timeline.set_daemon_absent(Some(at(1000)));
        check(&mut timeline, 1004, &[], Some(1005));
        check(&mut timeline, 1006, &[DueAction::Resume], Some(1026));
        check(&mut timeline, 1026, &[DueAction::Term], Some(1036));
        check(&mut timeline, 1036, &[DueAction::Kill], None);
    }

    #[test]
    fn max_after_resume_counts_from_a_resume_by_a_daemon_that_gives_no_end() {
        let mut timeline = timeline();
        timeline.set_stopped(at(0), true);
        timeline.set_end(BootTime(i64::MAX));
        timeline.set_max_after_resume(Some(30 * SECOND));
        timeline.resume(at(1000));
        check(&mut timeline, 1000, &[], Some(1020));
    }

    #[test]
    fn another_end_replaces_max_after_resume() {
        let mut timeline = timeline();
        timeline.set_stopped(at(0), true);
        timeline.set_max_after_resume(Some(SECOND));
        timeline.set_end(at(200));
        timeline.set_daemon_absent(Some(at(20)));
        check(&mut timeline, 25, &[DueAction::Resume], Some(190));
    }

    #[test]
    fn a_run_limit_ends_the_job() {
        let mut timeline = Timeline::with_run_limit(20 * SECOND, 5 * SECOND, 50 * SECOND);
        check(&mut timeline, 1000, &[], None);
        timeline.set_stopped(at(1000), false);
        check(&mut timeline, 1000, &[], Some(1015));
        timeline.set_stopped(at(1010), true);
        check(&mut timeline, 2000, &[], None);
        timeline.set_run_limit(at(2000), 30 * SECOND);
        timeline.set_stopped(at(3000), false);
        // A repeated call changes nothing.
        timeline.set_stopped(at(3005), false);
        check(&mut timeline, 3005, &[], Some(3015));
        check(&mut timeline, 3015, &[DueAction::Term], Some(3020));
        check(&mut timeline, 3020, &[DueAction::Kill], None);
        assert_eq!(timeline.ending().unwrap().cause, Some(EndCause::Time));
    }

    #[test]
    fn a_job_with_a_run_limit_is_resumed_without_a_daemon() {
        let mut timeline = Timeline::with_run_limit(20 * SECOND, 5 * SECOND, 50 * SECOND);
        timeline.set_stopped(at(100), false);
        timeline.set_stopped(at(112), true);
        timeline.set_daemon_absent(Some(at(120)));
        check(&mut timeline, 120, &[], Some(170));
        check(&mut timeline, 170, &[DueAction::Resume], Some(173));
        check(&mut timeline, 178, &[DueAction::Kill], None);
    }

    #[test]
    fn an_end_replaces_the_run_limit() {
        let mut timeline = Timeline::with_run_limit(20 * SECOND, 5 * SECOND, 50 * SECOND);
        timeline.set_end(at(200));
        timeline.set_stopped(at(100), false);
        check(&mut timeline, 150, &[], Some(195));
    }

    #[test]
    fn a_stopped_job_waits_for_its_daemon_for_a_time() {
        let mut timeline = timeline();
        timeline.set_stopped(at(0), true);
        check(&mut timeline, 20, &[], Some(90));
        timeline.set_daemon_absent(Some(at(20)));
        check(&mut timeline, 24, &[], Some(25));
        timeline.set_daemon_absent(None);
        check(&mut timeline, 30, &[], Some(90));
        timeline.set_daemon_absent(Some(at(30)));
        check(&mut timeline, 35, &[DueAction::Resume], Some(90));
        assert!(!timeline.is_stopped());
    }

    #[test]
    fn an_early_signal_comes_once_for_each_end() {
        let mut timeline = Timeline::new(Some(BootTime(100_000_000)), Duration::from_secs(1), Duration::ZERO);
        timeline.set_warning(Some(Duration::from_secs(30)));
        let at = |second: i64| BootTime(second * 1_000_000);
        assert_eq!(timeline.next(), Some(at(70)));
        assert_eq!(timeline.due(at(69)), None);
        assert_eq!(timeline.due(at(70)), Some(DueAction::Warn));
        assert_eq!((timeline.due(at(70)), timeline.next()), (None, Some(at(99))));
        // A little longer, there is no second signal so soon.
        timeline.set_end(at(120));
        assert_eq!(timeline.next(), Some(at(119)));
        timeline.set_end(at(200));
        assert_eq!(timeline.next(), Some(at(170)));
        assert_eq!(timeline.due(at(170)), Some(DueAction::Warn));
        assert_eq!(timeline.due(at(199)), Some(DueAction::Term));
    }

    #[test]
    fn a_window_shorter_than_the_warning_begins_with_the_signal() {
        let mut timeline = Timeline::new(None, Duration::from_secs(1), Duration::ZERO);
        timeline.set_warning(Some(Duration::from_secs(30)));
        assert_eq!(timeline.next(), None);
        timeline.set_end(BootTime(10_000_000));
        assert_eq!(timeline.due(BootTime(1_000_000)), Some(DueAction::Warn));
        assert_eq!(timeline.due(BootTime(1_000_000)), None);
    }
}
