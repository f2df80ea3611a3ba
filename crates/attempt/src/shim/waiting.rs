//! A shim that waits for the window of its job, without a process of the job.
//!
//! It has claimed the attempt. The files of the job, its account, its session and its prolog come at the start, which a daemon
//! orders, or the window does if no daemon is there. Waiting is no attempt of the job: a shim that is withdrawn, or that does not
//! live to see the window, leaves an attempt that never ran.

use std::time::Duration;

use super::claim::ClaimedAttempt;
use super::commands::BATCH;
use super::daemon_link::DaemonLink;
use super::host::Host;
use super::life::Shim;
use super::supervisor::{NotStarted, Supervisor};
use super::timeline::BEGIN_DELAY;
use crate::files::Files;
use crate::message::CommandMessage;
use crate::protocol::{AttemptPhase, AttemptState, ShimCommand, ShimRefusal, ShimReply};
use crate::spec::{ReservedWindow, RunMode};
use crate::time::BootTime;

/// The time between two looks at the locks of the attempts before a window.
pub(super) const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A waiting shim.
pub(super) struct Waiting<H: Host> {
    pub(super) host: H,
    attempt: ClaimedAttempt<H::Files>,
    pub(super) daemon: DaemonLink<H::Connection>,
    /// The window that the shim may begin without a daemon.
    window: Option<ReservedWindow>,
    /// The next look at the locks of the attempts before the window.
    look_at: Option<BootTime>,
}

/// What a command makes of a waiting shim.
enum Effect {
    None,
    /// The command begins in this mode.
    Begin(RunMode),
    /// The attempt becomes void.
    Withdraw,
}

impl ReservedWindow {
    /// Returns whether a window that is due waits for the attempts before it.
    pub(super) fn waits(&self, files: &impl Files, now: BootTime) -> bool {
        let Some(after) = self.after.as_ref().filter(|after| now < after.until) else { return false };
        // What cannot be inspected is not waited for: nobody else can begin this window.
        after.attempts.iter().any(|folder| files.is_locked(folder).unwrap_or(false))
    }
}

impl<H: Host> Waiting<H> {
    pub(super) fn new(
        host: H,
        attempt: ClaimedAttempt<H::Files>,
        window: Option<ReservedWindow>,
        daemon: DaemonLink<H::Connection>,
    ) -> Waiting<H> {
        Waiting { host, attempt, daemon, window, look_at: None }
    }

    pub(super) const fn window(&self) -> Option<&ReservedWindow> {
        self.window.as_ref()
    }

    /// Returns the next instant at which a step is due.
    pub(super) fn next(&self) -> Option<BootTime> {
        self.daemon.has_line().then_some(BootTime(0)).or_else(|| self.begin_at())
    }

    /// Returns the instant at which the shim begins the window by itself.
    fn begin_at(&self) -> Option<BootTime> {
        let window = self.window.as_ref()?;
        let delay = if self.daemon.is_connected() { BEGIN_DELAY } else { Duration::ZERO };
        let at = window.start.after(delay);
        Some(self.look_at.map_or(at, |look| at.max(look)))
    }

    /// Handles commands, and begins the window if it is due.
    pub(super) fn step(mut self) -> Shim<H> {
        if self.host.take_events().shutdown {
            return self.end();
        }
        while let Some(connection) = self.host.accept() {
            // Commands of the previous connection remain valid.
            match self.receive() {
                Ok(waiting) => self = waiting,
                Err(mut shim) => {
                    shim.connect(connection);
                    return *shim;
                }
            }
            self.daemon.connect(connection);
        }
        match self.receive() {
            Ok(waiting) => waiting.begin_if_due(),
            Err(shim) => *shim,
        }
    }

    /// Carries out received commands. Returns the shim if it does not wait any more.
    fn receive(mut self) -> Result<Waiting<H>, Box<Shim<H>>> {
        for _ in 0..BATCH {
            let now = self.host.now();
            match self.daemon.receive(now) {
                None => break,
                Some(Err((number, refusal))) => {
                    self.daemon.answer(number, ShimReply::Refused(refusal), now);
                }
                Some(Ok(CommandMessage { number, command, .. })) => match self.execute(command) {
                    Ok(Effect::None) => self.daemon.answer(number, ShimReply::Done(self.state()), now),
                    Ok(Effect::Begin(mode)) => return Err(Box::new(self.begin(mode, Some(number)))),
                    Ok(Effect::Withdraw) => {
                        self.daemon.answer(number, ShimReply::Done(self.state()), now);
                        return Err(Box::new(self.end()));
                    }
                    Err(refusal) => self.daemon.answer(number, ShimReply::Refused(refusal), now),
                },
            }
        }
        Ok(self)
    }

    fn execute(&mut self, command: ShimCommand) -> Result<Effect, ShimRefusal> {
        if let Some(cpus) = command.cpus() {
            ShimRefusal::check_cpus(cpus)?;
        }
        match command {
            ShimCommand::SetWindow(window) => {
                ShimRefusal::check_cpus(&window.cpus)?;
                (self.window, self.look_at) = (Some(window), None);
            }
            ShimCommand::RevokeWindow => self.window = None,
            ShimCommand::BeginWindow { cpus, end } => {
                return Ok(Effect::Begin(RunMode::Reserved { cpus, end }));
            }
            ShimCommand::RunEarly { cpus } => {
                return Ok(Effect::Begin(RunMode::Opportunistic { cpus, window: self.window.take() }));
            }
            ShimCommand::Withdraw | ShimCommand::Kill { .. } | ShimCommand::Checkpoint { .. } => {
                return Ok(Effect::Withdraw);
            }
            // They concern processes, and there are none.
            ShimCommand::Status
            | ShimCommand::Stop
            | ShimCommand::Resume
            | ShimCommand::SetCpus { .. }
            | ShimCommand::SetEnd { .. }
            | ShimCommand::SetRunLimit { .. }
            | ShimCommand::Signal { .. } => {}
        }
        Ok(Effect::None)
    }

    fn state(&self) -> AttemptState {
        AttemptState {
            phase: AttemptPhase::Waiting,
            idle: false,
            cpus: vec![],
            affinity: vec![],
            end: None,
            window: self.window.clone(),
            activity: None,
        }
    }

    fn begin_if_due(mut self) -> Shim<H> {
        let now = self.host.now();
        if self.begin_at().is_none_or(|at| at > now) {
            return Shim::waiting(self);
        }
        let Some(window) = self.window.take() else { return Shim::waiting(self) };
        if window.end <= now {
            // The machine slept over it.
            return self.end();
        }
        if window.waits(&self.attempt.files, now) {
            (self.window, self.look_at) = (Some(window), Some(now.after(LOCK_PAUSE)));
            return Shim::waiting(self);
        }
        self.begin(RunMode::Reserved { cpus: window.cpus, end: window.end }, None)
    }

    /// Starts the preparing program. Answers the command of this number.
    fn begin(self, mode: RunMode, number: Option<u64>) -> Shim<H> {
        let Waiting { host, mut attempt, daemon, .. } = self;
        attempt.spec.mode = mode;
        match Supervisor::new(host, attempt, daemon) {
            Ok(mut supervisor) => {
                if let Some(number) = number {
                    supervisor.answer_begin(number);
                }
                Shim::running(supervisor)
            }
            Err(failed) => {
                let NotStarted { host, attempt, mut daemon, error } = *failed;
                host.log(&error);
                if let Some(number) = number {
                    let refusal = ShimRefusal::Begin { error: error.to_string() };
                    daemon.answer(number, ShimReply::Refused(refusal), host.now());
                }
                Waiting::new(host, attempt, None, daemon).end()
            }
        }
    }

    /// Makes the attempt void.
    fn end(self) -> Shim<H> {
        if let Err(error) = self.attempt.files.void(&self.attempt.lock) {
            // A daemon does that, once the lock is free.
            self.host.log(&error);
        }
        Shim::over()
    }
}
