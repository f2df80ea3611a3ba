//! What a job's time has in store for it. No clock and no process: those are told.

use std::time::Duration;

use crate::end::Cause;
use crate::time::BootTime;

/// What is left of a job when its main process has ended has this long between `SIGTERM` and `SIGKILL`, or the order's grace if
/// that is shorter.
const LEFTOVERS: Duration = Duration::from_secs(1);

/// How long after its start a window begins by itself although there is a daemon, which begins it on time unless it hangs. It may
/// have a reason to begin it later, and needs a moment to say so.
const HUNG: Duration = Duration::from_secs(2);

/// When a job's window begins, and when it is asked to leave, killed, or let go on.
#[derive(Debug)]
pub(super) struct Course {
    /// The start of a window that has not begun.
    start: Option<BootTime>,
    end: Option<BootTime>,
    /// What it has of the time that it may run, where that is what counts: there is no other end then.
    turns: Option<Turns>,
    grace: Duration,
    alone: Duration,
    stopped: bool,
    /// Since when no daemon is connected.
    away: Option<BootTime>,
    /// How long its window goes on once the job was let go on by itself.
    left: Option<Duration>,
    ending: Option<Ending>,
}

/// How long a job has run that is stopped again and again.
#[derive(Clone, Copy, Debug)]
struct Turns {
    /// How long it may run.
    limit: Duration,
    /// How long it had run when it was last stopped.
    ran: Duration,
    /// Since when it runs.
    since: Option<BootTime>,
}

/// A job that is being ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ending {
    /// Why; `None`: its main process ended, and the rest goes too.
    pub(super) cause: Option<Cause>,
    /// When it is killed.
    pub(super) kill_at: BootTime,
    asked: bool,
    pub(super) killed: bool,
}

/// What is to be done now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Begin its window: no daemon does.
    Begin,
    /// Ask the job to leave.
    Term,
    /// Kill it.
    Kill,
    /// Let it go on: it was stopped, and the daemon that stopped it does not come back.
    Continue,
}

impl Course {
    /// A job that runs, while a daemon is connected.
    pub(super) fn new(end: Option<BootTime>, grace: Duration, alone: Duration) -> Course {
        let (start, turns, away, left, ending) = (None, None, None, None, None);
        Course { start, end, turns, grace, alone, stopped: false, away, left, ending }
    }

    /// A job that takes turns with others, and waits for its first; it may run for so long.
    pub(super) fn in_turns(limit: Duration, grace: Duration, alone: Duration) -> Course {
        let turns = Turns { limit, ran: Duration::ZERO, since: None };
        Course { turns: Some(turns), stopped: true, ..Course::new(None, grace, alone) }
    }

    /// The next instant at which something is due.
    pub(super) fn next(&self) -> Option<BootTime> {
        match self.ending {
            Some(ending) if ending.killed => None,
            Some(ending) if ending.asked => Some(ending.kill_at),
            Some(_) => Some(BootTime(0)),
            None => [self.begin_at(), self.term_at(), self.continue_at()].into_iter().flatten().min(),
        }
    }

    /// What is due at `now`, once each; to be asked until there is nothing.
    pub(super) fn due(&mut self, now: BootTime) -> Option<Due> {
        if self.ending.is_none() && self.begin_at().is_some_and(|at| at <= now) {
            self.start = None;
            return Some(Due::Begin);
        }
        if self.ending.is_none() && self.term_at().is_some_and(|at| at <= now) {
            self.ending = self.end().map(|end| Ending::new(Some(Cause::Time), end));
        }
        let Some(ending) = &mut self.ending else {
            let goes_on = self.continue_at().is_some_and(|at| at <= now);
            if goes_on {
                self.go_on_alone(now);
            }
            return goes_on.then_some(Due::Continue);
        };
        if ending.kill_at <= now && !ending.killed {
            (ending.asked, ending.killed) = (true, true);
            return Some(Due::Kill);
        }
        let ask = !ending.asked;
        ending.asked = true;
        ask.then_some(Due::Term)
    }

    /// Ends the job: killed when the grace is over, and no later than it would have been.
    pub(super) fn kill(&mut self, now: BootTime, grace: Duration, cause: Cause) {
        self.end_by(now.after(grace), Some(cause));
    }

    /// Ends what is left when the main process has ended.
    pub(super) fn leave(&mut self, now: BootTime) {
        if self.ending.is_none() {
            self.end_by(now.after(self.grace.min(LEFTOVERS)), None);
        }
    }

    fn end_by(&mut self, kill_at: BootTime, cause: Option<Cause>) {
        let kill_at = self.end().map_or(kill_at, |end| kill_at.min(end));
        let ending = self.ending.get_or_insert(Ending::new(cause, kill_at));
        ending.kill_at = ending.kill_at.min(kill_at);
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.ending
    }

    /// The end of its window, as far as it is known: nobody knows how long it stays stopped that takes turns.
    pub(super) fn end(&self) -> Option<BootTime> {
        self.turns.map_or(self.end, Turns::end)
    }

    /// The window begins then, unless it has begun; `None`: it has, or nobody knows.
    pub(super) fn start_at(&mut self, start: Option<BootTime>) {
        self.start = start;
    }

    /// Another end of the window.
    pub(super) fn end_at(&mut self, end: BootTime) {
        self.end = Some(end);
        (self.left, self.turns) = (None, None);
    }

    /// Its window ends when it has run for so long in all, stopped time not counted.
    pub(super) fn run_for(&mut self, now: BootTime, limit: Duration) {
        let since = (!self.stopped).then_some(now);
        self.turns.get_or_insert(Turns { limit, ran: Duration::ZERO, since }).limit = limit;
        (self.end, self.left) = (None, None);
    }

    /// So long after a stopped job goes on by itself its window ends, if that is before the end that it has.
    pub(super) fn left_alone(&mut self, left: Option<Duration>) {
        self.left = left;
    }

    fn go_on_alone(&mut self, now: BootTime) {
        self.stopped(now, false);
        if let Some(left) = self.left.take() {
            let end = now.after(left);
            self.end = Some(self.end.map_or(end, |before| before.min(end)));
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether it is stopped, from now on.
    pub(super) fn stopped(&mut self, now: BootTime, stopped: bool) {
        self.stopped = stopped;
        if let Some(turns) = &mut self.turns {
            turns.runs(now, !stopped);
        }
    }

    /// The daemon went at that instant; `None`: there is one.
    pub(super) fn daemon_away(&mut self, since: Option<BootTime>) {
        self.away = since;
    }

    fn begin_at(&self) -> Option<BootTime> {
        let late = if self.away.is_some() { Duration::ZERO } else { HUNG };
        self.start.map(|start| start.after(late))
    }

    fn term_at(&self) -> Option<BootTime> {
        self.end().map(|end| end.before(self.grace))
    }

    fn continue_at(&self) -> Option<BootTime> {
        self.away.filter(|_| self.stopped).map(|since| since.after(self.alone))
    }
}

impl Turns {
    /// When it will have run for as long as it may, if it is not stopped before.
    fn end(self) -> Option<BootTime> {
        Some(self.since?.after(self.limit.saturating_sub(self.ran)))
    }

    fn runs(&mut self, now: BootTime, runs: bool) {
        if let Some(since) = self.since.take() {
            self.ran += now.since(since);
        }
        self.since = runs.then_some(now);
    }
}

impl Ending {
    fn new(cause: Option<Cause>, kill_at: BootTime) -> Ending {
        Ending { cause, kill_at, asked: false, killed: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A job until 100 s with a grace of 10 s, that stays stopped for 5 s without a daemon.
    fn course() -> Course {
        Course::new(Some(at(100)), 10 * SECOND, 5 * SECOND)
    }

    fn at(second: i64) -> BootTime {
        BootTime(second * 1_000_000)
    }

    #[track_caller]
    fn check(course: &mut Course, second: i64, due: &[Due], next: Option<i64>) {
        let all: Vec<Due> = std::iter::from_fn(|| course.due(at(second))).collect();
        assert_eq!((all.as_slice(), course.next()), (due, next.map(at)));
    }

    #[test]
    fn a_window_ends_with_a_grace_and_then_by_force() {
        let mut course = course();
        check(&mut course, 89, &[], Some(90));
        check(&mut course, 90, &[Due::Term], Some(100));
        check(&mut course, 99, &[], Some(100));
        check(&mut course, 101, &[Due::Kill], None);
        assert_eq!(course.ending().unwrap().cause, Some(Cause::Time));
    }

    #[test]
    fn a_window_that_is_over_leaves_no_grace() {
        check(&mut course(), 200, &[Due::Kill], None);
    }

    #[test]
    fn without_a_window_nothing_is_due() {
        check(&mut Course::new(None, SECOND, SECOND), 1_000_000, &[], None);
    }

    #[test]
    fn a_kill_keeps_to_the_window_and_the_first_cause_counts() {
        let mut course = course();
        course.kill(at(50), 90 * SECOND, Cause::User);
        check(&mut course, 50, &[Due::Term], Some(100));
        course.kill(at(60), 5 * SECOND, Cause::Memory);
        check(&mut course, 60, &[], Some(65));
        check(&mut course, 65, &[Due::Kill], None);
        assert_eq!(course.ending().unwrap().cause, Some(Cause::User));
    }

    #[test]
    fn without_a_grace_it_is_killed_at_once() {
        let mut course = course();
        course.kill(at(50), Duration::ZERO, Cause::User);
        check(&mut course, 50, &[Due::Kill], None);
    }

    #[test]
    fn what_a_main_process_leaves_behind_has_a_second() {
        let mut course = course();
        course.leave(at(50));
        check(&mut course, 50, &[Due::Term], Some(51));
        assert_eq!(course.ending().unwrap().cause, None);
    }

    #[test]
    fn another_end_counts_until_the_job_is_asked() {
        let mut course = course();
        course.end_at(at(200));
        check(&mut course, 100, &[], Some(190));
        check(&mut course, 190, &[Due::Term], Some(200));
    }

    #[test]
    fn a_window_begins_by_itself_when_no_daemon_begins_it() {
        let mut course = Course::new(None, 10 * SECOND, 5 * SECOND);
        course.start_at(Some(at(50)));
        check(&mut course, 50, &[], Some(52));
        course.daemon_away(Some(at(20)));
        check(&mut course, 49, &[], Some(50));
        check(&mut course, 50, &[Due::Begin], None);
        course.end_at(at(100));
        check(&mut course, 50, &[], Some(90));
    }

    #[test]
    fn a_daemon_that_hangs_is_not_waited_for() {
        let mut course = Course::new(None, 10 * SECOND, 5 * SECOND);
        course.start_at(Some(at(50)));
        check(&mut course, 52, &[Due::Begin], None);
    }

    #[test]
    fn a_job_that_is_being_ended_begins_no_window() {
        let mut course = Course::new(None, 10 * SECOND, 5 * SECOND);
        course.start_at(Some(at(50)));
        course.daemon_away(Some(at(20)));
        course.kill(at(49), 5 * SECOND, Cause::User);
        check(&mut course, 50, &[Due::Term], Some(54));
    }

    #[test]
    fn what_is_left_of_a_window_is_counted_from_when_a_stopped_job_goes_on() {
        let mut course = course();
        course.stopped(at(0), true);
        course.end_at(BootTime(i64::MAX));
        course.left_alone(Some(30 * SECOND));
        course.daemon_away(Some(at(1000)));
        check(&mut course, 1004, &[], Some(1005));
        check(&mut course, 1006, &[Due::Continue], Some(1026));
        check(&mut course, 1026, &[Due::Term], Some(1036));
        check(&mut course, 1036, &[Due::Kill], None);
    }

    #[test]
    fn another_end_takes_the_place_of_what_is_left() {
        let mut course = course();
        course.stopped(at(0), true);
        course.left_alone(Some(SECOND));
        course.end_at(at(200));
        course.daemon_away(Some(at(20)));
        check(&mut course, 25, &[Due::Continue], Some(190));
    }

    #[test]
    fn who_takes_turns_ends_when_it_has_run_for_its_time() {
        let mut course = Course::in_turns(20 * SECOND, 5 * SECOND, 50 * SECOND);
        check(&mut course, 1000, &[], None);
        course.stopped(at(1000), false);
        check(&mut course, 1000, &[], Some(1015));
        course.stopped(at(1010), true);
        check(&mut course, 2000, &[], None);
        course.run_for(at(2000), 30 * SECOND);
        course.stopped(at(3000), false);
        // Told twice is told once.
        course.stopped(at(3005), false);
        check(&mut course, 3005, &[], Some(3015));
        check(&mut course, 3015, &[Due::Term], Some(3020));
        check(&mut course, 3020, &[Due::Kill], None);
        assert_eq!(course.ending().unwrap().cause, Some(Cause::Time));
    }

    #[test]
    fn who_takes_turns_goes_on_without_a_daemon_and_ends_by_its_time() {
        let mut course = Course::in_turns(20 * SECOND, 5 * SECOND, 50 * SECOND);
        course.stopped(at(100), false);
        course.stopped(at(112), true);
        course.daemon_away(Some(at(120)));
        check(&mut course, 120, &[], Some(170));
        check(&mut course, 170, &[Due::Continue], Some(173));
        check(&mut course, 178, &[Due::Kill], None);
    }

    #[test]
    fn an_end_takes_the_place_of_turns() {
        let mut course = Course::in_turns(20 * SECOND, 5 * SECOND, 50 * SECOND);
        course.end_at(at(200));
        course.stopped(at(100), false);
        check(&mut course, 150, &[], Some(195));
    }

    #[test]
    fn a_stopped_job_waits_for_its_daemon_for_a_time() {
        let mut course = course();
        course.stopped(at(0), true);
        check(&mut course, 20, &[], Some(90));
        course.daemon_away(Some(at(20)));
        check(&mut course, 24, &[], Some(25));
        course.daemon_away(None);
        check(&mut course, 30, &[], Some(90));
        course.daemon_away(Some(at(30)));
        check(&mut course, 35, &[Due::Continue], Some(90));
        assert!(!course.is_stopped());
    }
}
