//! One attempt in the thread that supervises all: its stage, and the step to the next one.

use std::mem;
use std::time::Duration;

use miserly_api::model::{KilledBy, OverdueCause};
use miserly_core::Span;
use miserly_engine::{Action, Attempt, AttemptOutcome, Input, Launch, Usage};
use miserly_executor::{FindFailure, LaunchFailureKind};
use miserly_launch::{BootTime, FoundAttempt, MachineClock as _, Shim};

use super::backoff::Backoff;
use super::force::ForcedEnd;
use super::home::{outcome, used};
use super::message::AttemptMessage;
use super::parking::Parking;
use super::shim_loop::Context;
use super::supervise::Supervision;
use super::tasks::{FailedLaunch, PendingLaunch, Task, TaskResult};
use super::{convert, queue_programs};
use crate::crash_point::CrashPoint;

/// The limit of attempts. A launch is retried after the death of its shim only while the job has
/// fewer attempts.
const TRIES: u32 = 3;
/// The first pause before a retry.
const FIRST: Duration = Duration::from_millis(100);

/// The number of pauses after which they get no longer.
const PAUSES: u32 = 8;

/// The first task for an attempt.
#[derive(Debug)]
pub(super) enum Begin {
    /// Launch the attempt.
    Launch(Box<Launch>),
    /// Find out the state of the attempt, which could not be read before.
    Find,
    /// Supervise a shim that was found alive.
    Alive(Box<Shim>),
    /// End an unknown job with this grace period. Nothing is reported, and its folder is removed.
    Unknown(Box<Shim>, Span),
}

/// An attempt.
#[derive(Debug)]
pub(super) struct Supervised {
    pub(super) attempt: Attempt,
    /// The number of its descriptors in the poller.
    pub(super) number: u64,
    pub(super) stage: Stage,
    /// Messages that cannot be carried out yet.
    deferred: Vec<AttemptMessage>,
    backoff: Backoff,
    /// The start of the window with which it was launched, if it had one.
    planned_start: Option<BootTime>,
    /// Whether the engine knows the attempt. If not, nothing is reported.
    is_known: bool,
}

/// The stage of an attempt.
#[derive(Debug)]
pub(super) enum Stage {
    /// The launch waits for a thread or for descriptors.
    Queued(PendingLaunch),
    /// The launch failed and is tried again at this instant.
    Delayed(PendingLaunch, BootTime),
    /// A thread launches it.
    Launching,
    /// A thread finds out its state.
    Finding(FindReason),
    /// Its state could not be found out. The next try is at this instant.
    FindingLater(FindReason, BootTime),
    /// It never ran, for lack of a resource. This is reported at this instant.
    NeverRan(BootTime),
    /// Its shim runs.
    Running(Box<Supervision>),
    /// Its end was reported. Its files stay until the end is on disk.
    Over,
}

/// The reason for which the state of an attempt is looked for.
#[derive(Debug)]
pub(super) enum FindReason {
    /// The daemon was started.
    Restart,
    /// Its launch failed. Whatever the error is, only the files show the true state.
    Launch(Box<FailedLaunch>),
    /// Its shim has exited without a record of the end.
    Exit(Option<ForcedEnd>),
}

impl Supervised {
    /// Begins with an attempt.
    pub(super) fn begin(context: &Context, attempt: Attempt, number: u64, begin: Begin) -> Supervised {
        let stage = Stage::Over;
        let (deferred, backoff, planned_start) = (vec![], Backoff::new(FIRST), None);
        let mut this =
            Supervised { attempt, number, stage, deferred, backoff, planned_start, is_known: true };
        match begin {
            Begin::Launch(launch) => {
                let start = launch.planned_window.as_ref().map(|window| window.start);
                this.planned_start = start.map(|start| context.home.clock.boot_time(start));
                this.stage = Stage::Queued(PendingLaunch {
                    launch,
                    is_repeated: false,
                    since: context.home.clock.now(),
                });
            }
            Begin::Find => this.find(context, FindReason::Restart),
            Begin::Alive(shim) => this.supervise(context, *shim),
            Begin::Unknown(shim, grace) => {
                this.is_known = false;
                this.deferred.push(AttemptMessage::Do(Action::Kill { grace }));
                this.supervise(context, *shim);
            }
        }
        this
    }

    /// Returns whether nothing is left to do, not even at a message.
    pub(super) fn is_done(&self) -> bool {
        !self.is_known && matches!(self.stage, Stage::Over)
    }

    /// Returns the instant of the next step that needs no message and no event.
    pub(super) fn next(&self) -> Option<BootTime> {
        match &self.stage {
            Stage::Delayed(_, at) | Stage::FindingLater(_, at) | Stage::NeverRan(at) => Some(*at),
            Stage::Running(supervision) => supervision.next(),
            Stage::Queued(_) | Stage::Launching | Stage::Finding(_) | Stage::Over => None,
        }
    }

    /// Takes a message, which has its effect with the next [`advance`](Supervised::advance).
    pub(super) fn take(&mut self, context: &Context, message: AttemptMessage) {
        match &mut self.stage {
            Stage::Running(supervision) => supervision.take(&context.home.clock, message),
            Stage::Queued(_) if ends(&message) => self.report(context, AttemptOutcome::NeverRan),
            Stage::Delayed(..) | Stage::NeverRan(_) if needs_job(&message) => {
                self.report(context, AttemptOutcome::NeverRan);
            }
            Stage::Over => {}
            _ => self.deferred.push(message),
        }
    }

    /// Takes the steps that are due.
    pub(super) fn advance(&mut self, context: &Context, now: BootTime) {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Delayed(pending, at) if at <= now => self.stage = Stage::Queued(pending),
            Stage::NeverRan(at) if at <= now => self.report(context, AttemptOutcome::NeverRan),
            Stage::FindingLater(reason, at) if at <= now => self.find(context, reason),
            Stage::Running(mut supervision) => {
                supervision.exchange(context, now);
                self.report_start(context, &mut supervision, now);
                supervision.force(context, self.attempt);
                if supervision.has_exited {
                    self.exited(context, *supervision);
                } else {
                    self.stage = Stage::Running(supervision);
                }
            }
            stage => self.stage = stage,
        }
    }

    /// Gives a queued launch to a thread. Returns whether it was queued.
    pub(super) fn launch(&mut self, context: &Context) -> bool {
        match mem::replace(&mut self.stage, Stage::Launching) {
            Stage::Queued(pending) => {
                context.tasks.launch(self.attempt, pending);
                true
            }
            stage => {
                self.stage = stage;
                false
            }
        }
    }

    /// Gives up a queued launch whose window has lost more than the grace period. The attempt counts
    /// as never run, and the engine decides how to go on.
    pub(super) fn give_up_if_late(&mut self, context: &Context) {
        if let Stage::Queued(pending) = &self.stage
            && is_late(context, pending)
        {
            self.report(context, AttemptOutcome::NeverRan);
        }
    }

    /// Applies the result of a task.
    pub(super) fn finished(&mut self, context: &Context, result: TaskResult) {
        match result {
            TaskResult::Launched(shim) => self.supervise(context, *shim),
            TaskResult::Failed(failed) => {
                tracing::warn!("job {} cannot be launched: {}", self.attempt.job, failed.error);
                self.find(context, FindReason::Launch(failed));
            }
            TaskResult::Taken(message) => {
                tracing::error!("job {} cannot be launched: {message}", self.attempt.job);
                self.report(context, context.home.failed(message));
            }
            TaskResult::Found(found) => self.found(context, *found),
            TaskResult::Killed(result) => {
                if let Stage::Running(supervision) = &mut self.stage {
                    supervision.killed(context, self.attempt, result);
                }
            }
        }
    }

    fn find(&mut self, context: &Context, reason: FindReason) {
        self.stage = Stage::Finding(reason);
        context.tasks.submit(self.attempt, Task::Find);
    }

    fn found(&mut self, context: &Context, found: Result<FoundAttempt, FindFailure>) {
        let Stage::Finding(reason) = mem::replace(&mut self.stage, Stage::Over) else { return };
        match (found, reason) {
            (Err(error), reason) if !matches!(error, FindFailure::Final(_)) => {
                self.find_later(context, reason, error);
            }
            (Ok(FoundAttempt::Alive(shim)), _) => self.supervise(context, shim),
            (Ok(FoundAttempt::NeverRan), FindReason::Launch(failed)) => self.launch_failed(context, *failed),
            (Ok(FoundAttempt::NeverRan), FindReason::Exit(_)) => self.never_ran(),
            (found, reason) => {
                let home = &context.home;
                if let Ok(found) = &found {
                    self.report_usage(context, used(home, self.attempt, found));
                    self.report_epilog(context, queue_programs::note_found(home, self.attempt, found));
                }
                let failed = |error: FindFailure| home.failed(error.to_string());
                let outcome = found.map_or_else(failed, |found| outcome(home, self.attempt, found));
                self.report(
                    context,
                    match reason {
                        FindReason::Exit(Some(force)) => force.lost(outcome, home.clock.now()),
                        _ => outcome,
                    },
                );
            }
        }
    }

    /// Reports later that the shim lacked a resource of the machine before the command could run. The
    /// pause is longer after each attempt of the job.
    fn never_ran(&mut self) {
        let mut backoff = Backoff::new(FIRST);
        let pause = (0..self.attempt.nth.min(PAUSES)).map(|_| backoff.pause()).last().unwrap_or(FIRST);
        self.stage = Stage::NeverRan(BootTime::now().after(pause));
    }

    fn find_later(&mut self, context: &Context, reason: FindReason, error: FindFailure) {
        match error {
            FindFailure::Survivors(pids) => report_survivors(context, self.attempt, pids),
            error => tracing::warn!("job {}: {error}", self.attempt.job),
        }
        self.stage = Stage::FindingLater(reason, BootTime::now().after(self.backoff.pause()));
    }

    /// Tries a launch again while the machine temporarily lacks a resource.
    ///
    /// Retries end when the window has lost more than the grace. They also end at a message that
    /// requires a running job. The attempt then counts as never run, and the engine decides how to
    /// go on.
    fn launch_failed(&mut self, context: &Context, failed: FailedLaunch) {
        let FailedLaunch { pending, error } = failed;
        if error.kind != LaunchFailureKind::Temporary {
            // If the shim was killed before it began, the launch may be retried. The number of
            // attempts is limited.
            let retries = error.kind == LaunchFailureKind::Died && self.attempt.nth < TRIES;
            let outcome =
                if retries { AttemptOutcome::NeverRan } else { context.home.failed(error.to_string()) };
            return self.report(context, outcome);
        }
        if is_late(context, &pending) || self.deferred.iter().any(needs_job) {
            return self.report(context, AttemptOutcome::NeverRan);
        }
        let at = BootTime::now().after(self.backoff.pause());
        self.stage = Stage::Delayed(PendingLaunch { is_repeated: true, ..pending }, at);
    }

    fn supervise(&mut self, context: &Context, shim: Shim) {
        let parking = Parking::new(self.planned_start);
        match Supervision::new(context, self.attempt, self.number, shim, parking) {
            Ok(mut supervision) => {
                context.home.guard.wake();
                self.backoff.reset();
                for message in mem::take(&mut self.deferred) {
                    supervision.take(&context.home.clock, message);
                }
                self.stage = Stage::Running(Box::new(supervision));
            }
            Err(error) => {
                tracing::warn!("job {}: its shim cannot be supervised: {error}", self.attempt.job);
                let at = BootTime::now().after(self.backoff.pause());
                self.stage = Stage::FindingLater(FindReason::Restart, at);
            }
        }
    }

    /// Reports the start of the command, which may come later than the launch of its shim.
    fn report_start(&self, context: &Context, supervision: &mut Supervision, now: BootTime) {
        if let Some(started) = supervision.take_start(now).filter(|_| self.is_known) {
            let at = context.home.clock.stored(&started);
            if let Some(at) = at {
                context.report(Input::Launched(self.attempt, at));
            }
            if let Some(how) = supervision.watch_partition(context, self.attempt) {
                context.report(Input::CapacityLost(self.attempt, how));
            }
        }
    }

    /// Reports the end of an attempt without a shim.
    fn exited(&mut self, context: &Context, supervision: Supervision) {
        supervision.remove_from(&context.poller);
        let Supervision { shim, force, .. } = supervision;
        if let Ok(Some(end)) = shim.end() {
            self.report_usage(context, convert::usage(&end));
            self.report_epilog(context, queue_programs::note(&context.home, self.attempt, &end));
            let outcome = convert::outcome(&context.home.clock, self.attempt, &end);
            let outcome = force.map_or(outcome.clone(), |force| force.outcome(outcome));
            return self.report(context, outcome);
        }
        // There is no record of the end.
        self.find(context, FindReason::Exit(force));
    }

    /// Reports the usage of the attempt, before its end.
    fn report_usage(&self, context: &Context, usage: Option<Usage>) {
        if let Some(usage) = usage.filter(|_| self.is_known) {
            context.report(Input::Used(self.attempt, usage));
        }
    }

    /// Reports that the epilog failed, before the end.
    fn report_epilog(&self, context: &Context, failed: Option<String>) {
        if let Some(why) = failed.filter(|_| self.is_known) {
            context.report(Input::EpilogFailed(self.attempt, why));
        }
    }

    fn report(&mut self, context: &Context, outcome: AttemptOutcome) {
        self.stage = Stage::Over;
        // The next job may get its processors as soon as the end is known.
        context.home.executor.end_partition(self.attempt);
        self.deferred.clear();
        if self.is_known {
            CrashPoint::BeforeReport.pass();
            if matches!(outcome, AttemptOutcome::Ended { by: Some(KilledBy::Shutdown), .. }) {
                // Other shims get the signal, too.
                context.report(Input::ShuttingDown);
            }
            context.report(Input::AttemptEnded(self.attempt, outcome));
        } else {
            context.tasks.submit(self.attempt, Task::Remove);
        }
    }
}

/// Reports processes that do not die.
pub(super) fn report_survivors(context: &Context, attempt: Attempt, pids: Vec<u32>) {
    tracing::warn!("job {}: its processes {pids:?} do not die", attempt.job);
    context.report(Input::Overdue(attempt, OverdueCause::Processes { pids }));
}

/// Returns whether the window has lost more than the grace period.
fn is_late(context: &Context, pending: &PendingLaunch) -> bool {
    let launch = &pending.launch;
    launch.end.is_some_and(|_| context.home.clock.now() > pending.since + launch.grace)
}

/// Returns whether a message ends the attempt.
fn ends(message: &AttemptMessage) -> bool {
    matches!(message, AttemptMessage::Do(Action::Kill { .. } | Action::EndOverdue { .. }))
}

/// Returns whether a message requires a running job.
fn needs_job(message: &AttemptMessage) -> bool {
    ends(message) || matches!(message, AttemptMessage::Do(Action::BeginWindow { .. }))
}
