//! The end of an attempt by force: the daemon does what its shim should have done.
//!
//! The shim is continued first if it is stopped, since it records the true end. If the attempt
//! still lives a moment later, the daemon kills its processes itself. Last it kills a shim that
//! stays stopped although no process of the job is left.

use std::io;
use std::time::Duration;

use miserly_api::model::{Exit, KilledBy, OverdueCause};
use miserly_core::Time;
use miserly_engine::{AttemptOutcome, Input};
use miserly_launch::{BootTime, KillResult};
use miserly_marks::{mark, mark_variant};

use crate::attempt::report_survivors;
use crate::site::{Host, ShimHandle, Site};
use crate::supervise::Supervision;
use crate::tasks::Task;

/// The time for the shim to end the job, after a command or after it was continued.
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest pause between attempts to kill processes that do not die.
const LONGEST: Duration = Duration::from_secs(30);
/// How often a shim is continued that counts the running time of its job.
const WAKES: u32 = 5;
/// The signal of a forced end.
const KILL: i32 = 9;

/// An end by force.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ForcedEnd {
    at: BootTime,
    step: Step,
    by: KilledBy,
    pause: Duration,
    /// How often the shim may be found stopped before the daemon does more than to continue it.
    /// `None` if the daemon does not wait for that.
    patience: Option<u32>,
    /// Whether it leaves time for an epilog, once that is known.
    waits_for_epilog: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Let the shim do it.
    Wake,
    /// Kill the processes of the job.
    Job,
    /// Wait until a thread has killed the processes of the job.
    Killing,
    /// Kill the shim, too, if it is stopped.
    Shim,
}

impl ForcedEnd {
    /// Returns the end of an attempt whose window and cleanup time are over.
    ///
    /// If its running time counts, it is ended only if its shim is stopped time after time.
    pub(crate) fn overdue(now: BootTime, by_running_time: bool) -> ForcedEnd {
        let patience = by_running_time.then_some(WAKES);
        ForcedEnd {
            at: now,
            step: Step::Wake,
            by: KilledBy::Time,
            pause: PATIENCE,
            patience,
            waits_for_epilog: false,
        }
    }

    /// Returns the end of an attempt that its shim shall kill at an instant.
    pub(crate) fn requested(kill_at: BootTime) -> ForcedEnd {
        let overdue = ForcedEnd::overdue(kill_at.after(PATIENCE), false);
        ForcedEnd { by: KilledBy::User, waits_for_epilog: true, ..overdue }
    }

    /// Leaves time for the epilog of an attempt whose processes are killed before. Once only.
    pub(crate) fn wait_for_epilog(&mut self, epilog: Duration) {
        if self.step == Step::Wake && !epilog.is_zero() && std::mem::take(&mut self.waits_for_epilog) {
            mark!("it waits for the epilog");
            self.at = self.at.after(epilog);
        }
    }

    /// Returns the earlier of two ends, with the cause of the first one. One that waits for no shim
    /// precedes one that does.
    pub(crate) fn or(self, other: ForcedEnd) -> ForcedEnd {
        match (self.patience, other.patience) {
            (Some(_), None) => return other,
            (None, Some(_)) => return self,
            _ => {}
        }
        if other.at < self.at && self.step == Step::Wake { ForcedEnd { by: self.by, ..other } } else { self }
    }

    /// Returns the instant of the next step, if it is one of this thread.
    pub(crate) fn next_step(&self) -> Option<BootTime> {
        (self.step != Step::Killing).then_some(self.at)
    }

    /// Returns the outcome as its shim recorded it, with the cause if the shim saw only the kill.
    pub(crate) fn outcome(&self, recorded: AttemptOutcome) -> AttemptOutcome {
        match recorded {
            AttemptOutcome::Ended { at, exit: Exit::Signal(KILL), by: None } if self.step != Step::Wake => {
                AttemptOutcome::Ended { at, exit: Exit::Signal(KILL), by: Some(self.by) }
            }
            other => other,
        }
    }

    /// Returns the outcome of an attempt without a record: that of a kill if the daemon killed the
    /// shim.
    pub(crate) fn lost(&self, found: AttemptOutcome, now: Time) -> AttemptOutcome {
        match found {
            AttemptOutcome::Lost(_) if self.step != Step::Wake => {
                AttemptOutcome::Ended { at: now, exit: Exit::Signal(KILL), by: Some(self.by) }
            }
            other => other,
        }
    }

    /// Schedules the step after a look at the shim, which was stopped or not.
    fn looked(&mut self, now: BootTime, was_stopped: bool) {
        match &mut self.patience {
            None => self.next(now, Step::Job),
            Some(0) if was_stopped => self.next(now, Step::Job),
            Some(left) if was_stopped => {
                *left -= 1;
                self.next(now, Step::Wake);
            }
            Some(left) => {
                *left = WAKES;
                self.again(now);
            }
        }
    }

    fn next(&mut self, now: BootTime, step: Step) {
        (self.step, self.at) = (step, now.after(PATIENCE));
    }

    /// Tries again, later each time.
    fn again(&mut self, now: BootTime) {
        self.at = now.after(self.pause);
        self.pause = (self.pause * 2).min(LONGEST);
    }
}

impl<S: Site> Supervision<S> {
    /// Takes the next step of an end by force, if it is due.
    pub(crate) fn force(&mut self, site: &S) {
        let Some(mut force) = self.force.take() else { return };
        force.wait_for_epilog(self.epilog());
        if force.next_step().is_some_and(|at| at <= site.now()) {
            mark_variant!(force.step, Step { Wake, Job, Killing, Shim });
            match force.step {
                Step::Wake => {
                    let was_stopped = self.wake(site.host());
                    if was_stopped {
                        site.report(Input::Overdue(self.attempt, OverdueCause::ShimStopped));
                    }
                    force.looked(site.now(), was_stopped);
                }
                Step::Job => {
                    site.submit(self.attempt, Task::Kill);
                    force.step = Step::Killing;
                }
                Step::Shim => self.kill_shim(site, &mut force),
                Step::Killing => {}
            }
        }
        self.force = Some(force);
    }

    /// Applies the result of [`Task::Kill`].
    pub(crate) fn killed(&mut self, site: &S, result: io::Result<KillResult>) {
        let Some(mut force) = self.force.filter(|force| force.step == Step::Killing) else { return };
        force.step = Step::Job;
        match result {
            Ok(KillResult::All(killed)) => {
                mark!("the daemon has killed the processes");
                if !killed.is_empty() {
                    tracing::warn!("job {}: its shim did not end it; killed {killed:?}", self.attempt.job);
                }
                self.wake(site.host());
                force.next(site.now(), Step::Shim);
            }
            Ok(KillResult::Survivors(pids)) => {
                mark!("processes survive");
                self.wake(site.host());
                report_survivors(site, self.attempt, pids);
                force.again(site.now());
            }
            Err(error) => {
                tracing::warn!("job {}: cannot be ended by force: {error}", self.attempt.job);
                force.again(site.now());
            }
        }
        self.force = Some(force);
    }

    /// Kills a shim that is stopped again. Any other shim is about to record the end.
    fn kill_shim(&self, site: &S, force: &mut ForcedEnd) {
        if self.shim.is_stopped() {
            mark!("a shim is killed");
            tracing::warn!("job {}: its shim stays stopped; it is killed", self.attempt.job);
            if let Err(error) = site.host().kill_shim(self.attempt, &self.shim) {
                tracing::warn!("job {}: its shim cannot be killed: {error}", self.attempt.job);
            }
        }
        force.step = Step::Job;
        force.again(site.now());
    }
}

#[cfg(test)]
mod tests {
    use miserly_api::model::LostBy;

    use super::*;

    const NOW: BootTime = BootTime(5_000_000);

    #[test]
    fn a_request_leaves_the_shim_a_second_and_an_overdue_job_nothing() {
        let request = ForcedEnd::requested(NOW.after(PATIENCE));
        assert_eq!(request.at, NOW.after(2 * PATIENCE));
        let both = request.or(ForcedEnd::overdue(NOW, false));
        assert_eq!((both.at, both.by), (NOW, KilledBy::User));
        assert_eq!(both.or(ForcedEnd::requested(NOW)).at, NOW);
        let patient = ForcedEnd::overdue(NOW, true);
        assert_eq!(patient.or(request).at, request.at);
        assert_eq!(request.or(patient).at, request.at);
        for (mut force, delay) in [(request, 5 * PATIENCE), (ForcedEnd::overdue(NOW, false), Duration::ZERO)]
        {
            let at = force.at;
            force.wait_for_epilog(Duration::ZERO);
            force.wait_for_epilog(5 * PATIENCE);
            force.wait_for_epilog(5 * PATIENCE);
            assert_eq!(force.at, at.after(delay));
        }
    }

    #[test]
    fn a_shim_that_counts_running_time_is_continued_until_it_is_stopped_time_after_time() {
        let mut force = ForcedEnd::overdue(NOW, true);
        for was_stopped in [false, true, true, false, true, true, true, true, true] {
            force.looked(NOW, was_stopped);
            assert_eq!(force.step, Step::Wake);
        }
        force.looked(NOW, true);
        assert_eq!(force.step, Step::Job);
        let mut force = ForcedEnd::overdue(NOW, false);
        force.looked(NOW, false);
        assert_eq!(force.step, Step::Job);
    }

    #[test]
    fn only_what_the_daemon_killed_has_its_cause() {
        let at = Time::from_ticks(3);
        let ended = |signal, by| AttemptOutcome::Ended { at, exit: Exit::Signal(signal), by };
        let mut force = ForcedEnd::overdue(NOW, false);
        assert_eq!(force.outcome(ended(KILL, None)), ended(KILL, None));
        assert_eq!(force.lost(AttemptOutcome::Lost(LostBy::Shim), at), AttemptOutcome::Lost(LostBy::Shim));
        force.next(NOW, Step::Job);
        assert_eq!(force.outcome(ended(KILL, None)), ended(KILL, Some(KilledBy::Time)));
        assert_eq!(force.outcome(ended(11, None)), ended(11, None));
        assert_eq!(force.outcome(ended(KILL, Some(KilledBy::User))), ended(KILL, Some(KilledBy::User)));
        assert_eq!(force.lost(AttemptOutcome::Lost(LostBy::Shim), at), ended(KILL, Some(KilledBy::Time)));
        assert_eq!(force.lost(AttemptOutcome::NeverRan, at), AttemptOutcome::NeverRan);
    }
}
