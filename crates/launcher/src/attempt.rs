//! One attempt in the thread that supervises all: its stage, and the step to the next one.

use std::mem;
use std::time::Duration;

use miserly_api::model::{KilledBy, OverdueCause};
use miserly_core::Span;
use miserly_engine::{Action, Attempt, AttemptOutcome, Input, Launch, PlannedWindow, Usage};
use miserly_executor::{FindFailure, LaunchFailureKind};
use miserly_launch::{AttemptState, BootTime, ReservedWindow};
use miserly_marks::{mark, mark_variant};

use crate::backoff::Backoff;
use crate::crash_point::CrashPoint;
use crate::force::ForcedEnd;
use crate::held_windows::{CpuUse, HeldWindows};
use crate::message::AttemptMessage;
use crate::outcome::{failed, launched, outcome, used};
use crate::parking::Parking;
use crate::site::{Found, Host, ShimHandle, ShimOf, Site};
use crate::supervise::{Supervision, Told};
use crate::tasks::{FailedLaunch, PendingLaunch, Task, TaskResult};
use crate::{convert, queue_programs};

/// The limit of attempts. A launch is retried after the death of its shim only while the job has
/// fewer attempts.
const TRIES: u32 = 3;
/// The first pause before a retry.
const FIRST: Duration = Duration::from_millis(100);

/// The number of pauses after which they get no longer.
const PAUSES: u32 = 8;

/// The first task for an attempt. `T` is the handle of a shim.
#[derive(Debug)]
pub enum Begin<T> {
    /// Launch the attempt.
    Launch(Box<Launch>),
    /// Find out the state of the attempt, which could not be read before.
    Find,
    /// Supervise a shim that was found alive, in this state as far as it has answered.
    Alive(T, Option<AttemptState>),
    /// As above, of an attempt without a usable record. It runs on, also if it was stopped: nobody else continues it. With a grace
    /// period it is ended.
    Adopted(T, Option<AttemptState>, Option<Span>),
}

/// An attempt.
pub(crate) struct Supervised<S: Site> {
    pub(crate) attempt: Attempt,
    /// The number under which its shim is watched.
    pub(crate) number: u64,
    pub(crate) stage: Stage<S>,
    /// Messages that cannot be carried out yet.
    deferred: Vec<AttemptMessage>,
    backoff: Backoff,
    /// The start of the window with which it was launched, if it had one.
    planned_start: Option<BootTime>,
    /// The window with which it is launched. Its shim has it from the launch on.
    window: Option<ReservedWindow>,
    /// What its shim was told to do with the command.
    told: Told,
    /// Whether it is withdrawn: only its shim was launched.
    is_withdrawn: bool,
    /// The time between two looks of its shim at its activity, if it measures that.
    activity: Option<Duration>,
}

/// The stage of an attempt.
pub(crate) enum Stage<S: Site> {
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
    Running(Box<Supervision<S>>),
    /// Its end was reported. Its files stay until the end is on disk.
    Over,
}

/// The reason for which the state of an attempt is looked for.
#[derive(Debug)]
pub(crate) enum FindReason {
    /// The daemon was started.
    Restart,
    /// Its launch failed. Whatever the error is, only the files show the true state.
    Launch(Box<FailedLaunch>),
    /// Its shim has exited without a record of the end.
    Exit(Option<ForcedEnd>),
}

impl<S: Site> Supervised<S> {
    /// Begins with an attempt.
    pub(crate) fn begin(site: &S, attempt: Attempt, number: u64, begin: Begin<ShimOf<S>>) -> Supervised<S> {
        mark_variant!(&begin, Begin { Launch, Find, Alive, Adopted });
        let stage = Stage::Over;
        let mut this = Supervised {
            attempt,
            number,
            stage,
            deferred: vec![],
            backoff: Backoff::new(FIRST),
            planned_start: None,
            window: None,
            told: Told::Unknown,
            is_withdrawn: false,
            activity: None,
        };
        match begin {
            Begin::Launch(launch) => {
                this.activity = launch.idle.map(|terms| convert::idle_rule(terms).interval());
                this.told = match launch.end {
                    Some(_) => Told::BeginWindow,
                    None if launch.waits => Told::Wait,
                    None => Told::RunEarly,
                };
                this.stage = Stage::Queued(PendingLaunch {
                    launch,
                    is_repeated: false,
                    since: site.host().clock().now(),
                });
            }
            Begin::Find => this.find(site, FindReason::Restart),
            Begin::Alive(shim, answer) => this.take_up(site, shim, answer.as_ref()),
            Begin::Adopted(shim, answer, grace) => {
                let action = grace.map_or(Action::Continue, |grace| Action::Kill { grace });
                this.deferred.push(AttemptMessage::Do(action));
                this.take_up(site, shim, answer.as_ref());
            }
        }
        this
    }

    /// Returns the instant of the next step that needs no message and no event.
    pub(crate) fn next(&self) -> Option<BootTime> {
        match &self.stage {
            Stage::Delayed(_, at) | Stage::FindingLater(_, at) | Stage::NeverRan(at) => Some(*at),
            Stage::Running(supervision) => supervision.next(),
            Stage::Queued(_) | Stage::Launching | Stage::Finding(_) | Stage::Over => None,
        }
    }

    /// Returns whether its shim may begin a window that overlaps with a use, by itself.
    pub(crate) fn may_have(&self, used: CpuUse<'_>) -> bool {
        match &self.stage {
            Stage::Running(supervision) => supervision.held.overlaps(used),
            Stage::Launching | Stage::Finding(FindReason::Launch(_)) => {
                self.window.as_ref().is_some_and(|window| used.overlaps(window))
            }
            Stage::Finding(FindReason::Restart) | Stage::FindingLater(FindReason::Restart, _) => true,
            _ => false,
        }
    }

    /// Returns whether its shim is to lose all windows that overlap with a use.
    pub(crate) fn loses(&self, used: CpuUse<'_>) -> bool {
        let last = match &self.stage {
            Stage::Running(supervision) => supervision.held.last(),
            _ => self.window.as_ref(),
        };
        last.is_none_or(|window| !used.overlaps(window))
    }

    /// Returns whether it is withdrawn and not over. Its command may have begun.
    pub(crate) fn is_leaving(&self) -> bool {
        self.is_withdrawn && !matches!(self.stage, Stage::Over)
    }

    /// Returns whether its shim waits, and was not told to begin.
    pub(crate) fn is_waiting(&self) -> bool {
        match &self.stage {
            Stage::Running(supervision) => supervision.told() == Told::Wait,
            _ => self.told == Told::Wait,
        }
    }

    fn take_up(&mut self, site: &S, shim: ShimOf<S>, state: Option<&AttemptState>) {
        let held = state.map_or_else(HeldWindows::unknown, |state| {
            self.told = state.into();
            self.activity = state.activity.map(|activity| activity.interval);
            HeldWindows::of(state.window.clone())
        });
        self.supervise(site, shim, held);
    }

    /// Takes a message, which has its effect with the next [`advance`](Supervised::advance).
    pub(crate) fn take(&mut self, site: &S, message: AttemptMessage) {
        self.is_withdrawn |= matches!(message, AttemptMessage::Do(Action::Withdraw));
        match &mut self.stage {
            Stage::Running(supervision) => supervision.take(site, message),
            Stage::Queued(_) if ends(&message) => {
                mark!("an end before the launch");
                self.report(site, AttemptOutcome::NeverRan);
            }
            Stage::Delayed(..) | Stage::NeverRan(_) if needs_job(&message) => {
                mark!("a command to a delayed launch");
                self.report(site, AttemptOutcome::NeverRan);
            }
            Stage::Over => {}
            _ => {
                mark!("a command waits for its shim");
                self.deferred.push(message);
            }
        }
    }

    /// Takes the steps that are due.
    pub(crate) fn advance(&mut self, site: &S, now: BootTime) {
        match mem::replace(&mut self.stage, Stage::Over) {
            Stage::Delayed(pending, at) if at <= now => {
                mark!("a launch is tried again");
                self.stage = Stage::Queued(pending);
            }
            Stage::NeverRan(at) if at <= now => self.report(site, AttemptOutcome::NeverRan),
            Stage::FindingLater(reason, at) if at <= now => self.find(site, reason),
            Stage::Running(mut supervision) => {
                supervision.exchange(site, now);
                if let Some(held) = supervision.take_held(site.host()) {
                    site.report(held);
                }
                if let Some(begun) = supervision.take_begun() {
                    site.report(Input::Began(begun));
                }
                if let Some(activity) = supervision.take_activity(site.host()) {
                    site.report(activity);
                }
                self.report_start(site, &mut supervision, now);
                supervision.force(site);
                if supervision.has_exited {
                    self.exited(site, *supervision);
                } else {
                    self.stage = Stage::Running(supervision);
                }
            }
            stage => self.stage = stage,
        }
    }

    /// Returns the launch, if it is queued.
    pub(crate) fn queued(&self) -> Option<&PendingLaunch> {
        if let Stage::Queued(pending) = &self.stage { Some(pending) } else { None }
    }

    /// Gives a queued launch to a thread, with this planned window. Returns whether it was queued.
    pub(crate) fn launch(&mut self, site: &S, window: Option<PlannedWindow>) -> bool {
        match mem::replace(&mut self.stage, Stage::Launching) {
            Stage::Queued(mut pending) => {
                let clock = site.host().clock();
                self.window = window.as_ref().map(|window| convert::window(clock, window));
                let start = self.window.as_ref().map(|window| window.start);
                self.planned_start = start.filter(|_| !pending.launch.waits);
                pending.launch.planned_window = window;
                site.launch(self.attempt, pending);
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
    pub(crate) fn give_up_if_late(&mut self, site: &S) {
        if let Stage::Queued(pending) = &self.stage
            && is_late(site, pending)
        {
            self.report(site, AttemptOutcome::NeverRan);
        }
    }

    /// Applies the result of a task.
    pub(crate) fn finished(&mut self, site: &S, result: TaskResult<ShimOf<S>>) {
        mark_variant!(&result, TaskResult { Launched, Failed, Taken, Found, Killed });
        match result {
            TaskResult::Launched(shim) => {
                let held = HeldWindows::of(self.window.take());
                self.supervise(site, shim, held);
            }
            TaskResult::Failed(failed) => {
                tracing::warn!("job {} cannot be launched: {}", self.attempt.job, failed.error);
                self.find(site, FindReason::Launch(failed));
            }
            TaskResult::Taken(message) => {
                tracing::error!("job {} cannot be launched: {message}", self.attempt.job);
                self.report(site, failed(site.host(), message));
            }
            TaskResult::Found(found) => self.found(site, *found),
            TaskResult::Killed(result) => {
                if let Stage::Running(supervision) = &mut self.stage {
                    supervision.killed(site, result);
                }
            }
        }
    }

    fn find(&mut self, site: &S, reason: FindReason) {
        self.stage = Stage::Finding(reason);
        site.submit(self.attempt, Task::Find);
    }

    fn found(&mut self, site: &S, found: Result<Found<ShimOf<S>>, FindFailure>) {
        let Stage::Finding(reason) = mem::replace(&mut self.stage, Stage::Over) else { return };
        mark_variant!(&reason, FindReason { Restart, Launch, Exit });
        match (found, reason) {
            (Err(error), reason) if !matches!(error, FindFailure::Final(_)) => {
                self.find_later(site, reason, error);
            }
            (Ok(Found::Alive(shim)), FindReason::Launch(_)) => {
                let held = HeldWindows::of(self.window.take());
                self.supervise(site, shim, held);
            }
            (Ok(Found::Alive(shim)), _) => self.supervise(site, shim, HeldWindows::unknown()),
            (Ok(Found::NeverRan), FindReason::Launch(failed)) => self.launch_failed(site, *failed),
            (Ok(Found::NeverRan), FindReason::Exit(_)) => {
                mark!("a shim was gone before the start");
                self.never_ran(site);
            }
            (found, reason) => {
                let host = site.host();
                // A supervised attempt has reported its start.
                if !matches!(reason, FindReason::Exit(_))
                    && let Some(at) = launched(host, self.attempt)
                {
                    site.report(Input::Launched(self.attempt, at));
                }
                if let Ok(found) = &found {
                    self.report_usage(site, used(host, self.attempt, found));
                    self.report_epilog(site, queue_programs::note_found(host, self.attempt, found));
                }
                let outcome = match found {
                    Ok(found) => outcome(host, self.attempt, &found),
                    Err(error) => failed(host, error.to_string()),
                };
                self.report(
                    site,
                    match reason {
                        FindReason::Exit(Some(force)) => force.lost(outcome, host.clock().now()),
                        _ => outcome,
                    },
                );
            }
        }
    }

    /// Reports later that the attempt lacked a resource of the machine before the command could run. The
    /// pause is longer after each attempt of the job.
    fn never_ran(&mut self, site: &S) {
        if self.is_withdrawn {
            return self.report(site, AttemptOutcome::NeverRan);
        }
        let mut backoff = Backoff::new(FIRST);
        let pause = (0..self.attempt.nth.min(PAUSES)).map(|_| backoff.pause()).last().unwrap_or(FIRST);
        self.stage = Stage::NeverRan(site.now().after(pause));
    }

    fn find_later(&mut self, site: &S, reason: FindReason, error: FindFailure) {
        mark!("an attempt is looked for later");
        match error {
            FindFailure::Survivors(pids) => report_survivors(site, self.attempt, pids),
            error => tracing::warn!("job {}: {error}", self.attempt.job),
        }
        self.stage = Stage::FindingLater(reason, site.now().after(self.backoff.pause()));
    }

    /// Tries a launch again while the machine temporarily lacks a resource.
    ///
    /// Retries end when the window has lost more than the grace. They also end at a message that
    /// requires a running job. The attempt then counts as never run, and the engine decides how to
    /// go on.
    fn launch_failed(&mut self, site: &S, FailedLaunch { pending, error }: FailedLaunch) {
        if error.kind != LaunchFailureKind::Temporary {
            mark!("a launch fails");
            // If the shim was killed before it began, the launch may be retried. The number of
            // attempts is limited.
            let retries = error.kind == LaunchFailureKind::Died && self.attempt.nth < TRIES;
            let outcome =
                if retries { AttemptOutcome::NeverRan } else { failed(site.host(), error.to_string()) };
            return self.report(site, outcome);
        }
        if self.deferred.iter().any(needs_job) {
            return self.report(site, AttemptOutcome::NeverRan);
        }
        if is_late(site, &pending) {
            mark!("a failed launch comes too late");
            return self.never_ran(site);
        }
        mark!("a launch lacks a resource");
        let at = site.now().after(self.backoff.pause());
        self.stage = Stage::Delayed(PendingLaunch { is_repeated: true, ..pending }, at);
    }

    fn supervise(&mut self, site: &S, shim: ShimOf<S>, held: HeldWindows) {
        let parking = Parking::new(self.planned_start);
        match Supervision::new(site, self.attempt, self.number, shim, parking, (self.told, held)) {
            Ok(mut supervision) => {
                site.note_shim();
                self.backoff.reset();
                supervision.activity.expect(self.activity);
                for message in mem::take(&mut self.deferred) {
                    supervision.take(site, message);
                }
                self.stage = Stage::Running(Box::new(supervision));
            }
            Err(error) => {
                tracing::warn!("job {}: its shim cannot be supervised: {error}", self.attempt.job);
                let at = site.now().after(self.backoff.pause());
                self.stage = Stage::FindingLater(FindReason::Restart, at);
            }
        }
    }

    /// Reports the start of the command, which may come later than the launch of its shim.
    fn report_start(&self, site: &S, supervision: &mut Supervision<S>, now: BootTime) {
        if let Some(started) = supervision.take_start(site, now) {
            let at = site.host().clock().stored(&started);
            if let Some(at) = at {
                site.report(Input::Launched(self.attempt, at));
            }
            if let Some(how) = supervision.watch_partition(site) {
                site.report(Input::CapacityLost(self.attempt, how));
            }
        }
    }

    /// Reports the end of an attempt without a shim.
    fn exited(&mut self, site: &S, supervision: Supervision<S>) {
        let (shim, force) = supervision.end(site);
        if let Some(end) = shim.end() {
            self.report_usage(site, convert::usage(&end));
            self.report_epilog(site, queue_programs::note(site.host(), self.attempt, &end));
            let outcome = convert::outcome(site.host().clock(), self.attempt, &end);
            mark!("a shim recorded its end");
            let outcome = force.map_or(outcome.clone(), |force| force.outcome(outcome));
            return self.report(site, outcome);
        }
        mark!("a shim is gone without an end");
        // There is no record of the end.
        self.find(site, FindReason::Exit(force));
    }

    /// Reports the usage of the attempt, before its end.
    fn report_usage(&self, site: &S, usage: Option<Usage>) {
        if let Some(usage) = usage {
            site.report(Input::Used(self.attempt, usage));
        }
    }

    /// Reports that the epilog failed, before the end.
    fn report_epilog(&self, site: &S, failed: Option<String>) {
        if let Some(why) = failed {
            site.report(Input::EpilogFailed(self.attempt, why));
        }
    }

    fn report(&mut self, site: &S, outcome: AttemptOutcome) {
        self.stage = Stage::Over;
        mark_variant!(&outcome, AttemptOutcome { Ended, WrittenOut, Failed, Lost, NeverRan });
        // The next job may get its processors as soon as the end is known.
        site.host().end_partition(self.attempt);
        self.deferred.clear();
        site.host().pass(CrashPoint::BeforeReport);
        if matches!(outcome, AttemptOutcome::Ended { by: Some(KilledBy::Shutdown), .. }) {
            mark!("a shutdown is noticed");
            // Other shims get the signal, too.
            site.report(Input::ShuttingDown);
        }
        site.report(Input::AttemptEnded(self.attempt, outcome));
    }
}

/// Reports processes that do not die.
pub(crate) fn report_survivors(site: &impl Site, attempt: Attempt, pids: Vec<u32>) {
    tracing::warn!("job {}: its processes {pids:?} do not die", attempt.job);
    site.report(Input::Overdue(attempt, OverdueCause::Processes { pids }));
}

/// Returns whether the window has lost more than the grace period.
fn is_late(site: &impl Site, pending: &PendingLaunch) -> bool {
    let launch = &pending.launch;
    launch.end.is_some_and(|_| site.host().clock().now() > pending.since + launch.grace)
}

/// Returns whether a message ends the attempt.
fn ends(message: &AttemptMessage) -> bool {
    matches!(
        message,
        AttemptMessage::Do(
            Action::Kill { .. } | Action::WriteOut { .. } | Action::EndOverdue { .. } | Action::Withdraw
        )
    )
}

/// Returns whether a message requires a running job.
fn needs_job(message: &AttemptMessage) -> bool {
    ends(message)
        || matches!(message, AttemptMessage::Do(Action::BeginWindow { .. } | Action::RunEarly { .. }))
}
