//! Execution of the daemon's commands.

use std::time::Duration;

use miserly_cgroup::Capability;
use miserly_marks::{mark, mark_variant};

use super::host::{Host, Recipients, Signal, StopScan, ThreadClass};
use super::idle::IdleWatch;
use super::stop::PendingStop;
use super::supervisor::Supervisor;
use super::timeline::DueAction;
use super::waiting::LOCK_PAUSE;
use crate::message::CommandMessage;
use crate::protocol::{AttemptPhase, AttemptState, ShimCommand, ShimRefusal, ShimReply};
use crate::queue_program::ProgramKind;
use crate::spec::{ReservedWindow, RunMode};
use crate::time::BootTime;

/// Most messages that are handled before the shim looks at its other duties.
pub(super) const BATCH: usize = 64;

/// Retry interval for the processors of a window that has begun without them.
const PLACE_INTERVAL: Duration = Duration::from_secs(1);

/// The result of a command that is answered at once.
pub(super) type CommandResult = Result<(), ShimRefusal>;

impl<H: Host> Supervisor<H> {
    /// Accepts connections. The latest one is the daemon's.
    pub(super) fn accept(&mut self) {
        while let Some(connection) = self.host.accept() {
            mark!("a daemon connects");
            // Commands of the previous connection remain valid.
            self.receive_commands();
            self.connect(connection);
        }
    }

    pub(super) fn connect(&mut self, connection: H::Connection) {
        self.daemon.connect(connection);
        self.timeline.set_daemon_absent(None);
        if let Some(stop) = &mut self.stop {
            // The sender of the stop has been replaced.
            stop.number = None;
        }
    }

    /// Carries out received commands. A line that is no known command is refused.
    pub(super) fn receive_commands(&mut self) {
        for _ in 0..BATCH {
            match self.daemon.receive(self.host.now()) {
                None => break,
                Some(Ok(message)) => self.handle(message),
                Some(Err((number, refusal))) => self.answer(number, ShimReply::Refused(refusal)),
            }
        }
        self.timeline.set_daemon_absent(self.daemon.absent_since());
    }

    fn answer(&mut self, number: u64, reply: ShimReply) {
        self.daemon.answer(number, reply, self.host.now());
        self.timeline.set_daemon_absent(self.daemon.absent_since());
    }

    /// Answers the command with which the job began.
    pub(super) fn answer_begin(&mut self, number: u64) {
        let state = self.state();
        self.answer(number, ShimReply::Done(state));
    }

    fn handle(&mut self, CommandMessage { number, command, .. }: CommandMessage) {
        let now = self.host.now();
        mark_variant!(
            &command,
            ShimCommand {
                Status,
                Stop,
                Resume,
                BeginWindow,
                SetWindow,
                RevokeWindow,
                RunEarly,
                Withdraw,
                SetCpus,
                SetEnd,
                SetRunLimit,
                Signal,
                Kill,
                Checkpoint,
            }
        );
        let is_terminating = self.pending_end.is_some()
            || self.programs.has_begun(ProgramKind::Epilog)
            || (self.timeline.ending().is_some() && !matches!(command, ShimCommand::Kill { .. }));
        let result = match command {
            ShimCommand::Status => Ok(()),
            _ if is_terminating => {
                mark!("a command while it ends");
                Err(ShimRefusal::Ending)
            }
            ShimCommand::Stop => return self.begin_stop(number, now),
            command => self.execute(command, now),
        };
        let reply = result.map_or_else(ShimReply::Refused, |()| ShimReply::Done(self.state()));
        self.answer(number, reply);
    }

    /// Carries out a command that is answered at once.
    fn execute(&mut self, command: ShimCommand, now: BootTime) -> CommandResult {
        match command {
            ShimCommand::Resume if self.timeline.is_stopped() => return self.resume(),
            // A resumed job may have stopped processes of its own. An early one was asked to run before.
            ShimCommand::Status | ShimCommand::Stop | ShimCommand::Resume | ShimCommand::RunEarly { .. } => {}
            ShimCommand::BeginWindow { cpus, end } => return self.begin_window(cpus, end, now),
            ShimCommand::SetWindow(window) => return self.set_window(window),
            ShimCommand::RevokeWindow => return self.revoke_window(),
            ShimCommand::Withdraw => return Err(ShimRefusal::Begun),
            ShimCommand::SetCpus { cpus } => return self.move_to_cpus(cpus),
            ShimCommand::SetEnd { end, max_after_resume } => {
                self.timeline.set_end(end);
                self.timeline.set_max_after_resume(max_after_resume);
            }
            ShimCommand::SetRunLimit { limit } => self.timeline.set_run_limit(now, limit),
            ShimCommand::Signal { nth, signal, main_only } => {
                self.signals_to_send.add(nth, signal, main_only);
            }
            ShimCommand::Kill { grace } => self.timeline.terminate(now, grace),
            ShimCommand::Checkpoint { until } => self.begin_checkpoint(until, now),
        }
        Ok(())
    }

    /// Stops the process group with one signal. Later scans stop the other processes.
    ///
    /// With a control group the kernel freezes all of them at once.
    pub(super) fn stop_group(&mut self) {
        let stopped = if self.can(Capability::Freeze) {
            self.host.freeze(true)
        } else if self.main.exit.is_none() {
            self.host.signal(Signal::Stop, Recipients::Group)
        } else {
            Ok(())
        };
        if let Err(error) = stopped {
            self.host.log(&error);
        }
    }

    fn revoke_window(&mut self) -> CommandResult {
        let RunMode::Opportunistic { window, .. } = &mut self.mode else { return Err(ShimRefusal::Begun) };
        *window = None;
        self.timeline.set_start(None);
        Ok(())
    }

    fn begin_window(&mut self, cpus: Vec<u32>, end: BootTime, now: BootTime) -> CommandResult {
        // A job that is already on these processors may have placed its threads itself.
        let mode = RunMode::Reserved { cpus, end };
        let is_there =
            matches!(&self.mode, RunMode::Reserved { cpus: current, .. } if current == mode.cpus());
        if !is_there || self.place_at.is_some() {
            self.place_in_window(&mode, now)?;
        }
        self.set_mode(mode);
        self.timeline.set_start(None);
        self.timeline.set_end(end);
        if self.timeline.is_stopped() { self.resume() } else { Ok(()) }
    }

    /// Begins the window at its start without a command.
    pub(super) fn begin_due_window(&mut self, now: BootTime) {
        mark!("a window begins without a daemon");
        let Some(window) = self.mode.window().cloned() else { return };
        if window.waits(&self.attempt.files, now) {
            return self.timeline.set_start(Some(now.after(LOCK_PAUSE)));
        }
        if let Err(refusal) = self.begin_window(window.cpus.clone(), window.end, now) {
            self.host.log(&refusal);
            mark!("a window begins without its processors");
            // Until it has them the job runs where it did, in the idle class: others may have a right to those processors. It ends
            // with its window.
            self.mode = RunMode::Reserved { cpus: window.cpus, end: window.end };
            self.place_at = Some(now.after(PLACE_INTERVAL));
            self.timeline.set_end(window.end);
            if self.timeline.is_stopped()
                && let Err(refusal) = self.resume()
            {
                self.host.log(&refusal);
            }
        }
    }

    /// Gives the job the processors of its window if the window has begun without them, and the next attempt is due.
    pub(super) fn retry_place(&mut self, now: BootTime) {
        if self.place_at.is_none_or(|at| at > now) {
            return;
        }
        let mode = self.mode.clone();
        match self.place_in_window(&mode, now) {
            Ok(()) => self.set_mode(mode),
            Err(_) => self.place_at = Some(now.after(PLACE_INTERVAL)),
        }
    }

    fn set_window(&mut self, new: ReservedWindow) -> CommandResult {
        ShimRefusal::check_cpus(&new.cpus)?;
        match &mut self.mode {
            RunMode::Opportunistic { window, .. } => {
                self.timeline.set_start(Some(new.start));
                *window = Some(new);
            }
            RunMode::Reserved { end, .. } => {
                *end = new.end;
                self.timeline.set_end(new.end);
            }
            RunMode::Waiting { .. } => {}
        }
        Ok(())
    }

    fn move_to_cpus(&mut self, cpus: Vec<u32>) -> CommandResult {
        let mut mode = self.mode.clone();
        match &mut mode {
            RunMode::Reserved { cpus: current, .. } | RunMode::Opportunistic { cpus: current, .. } => {
                *current = cpus;
            }
            RunMode::Waiting { .. } => return Ok(()),
        }
        if self.place_at.is_some() {
            self.place_in_window(&mode, self.host.now())?;
        } else {
            self.place(&mode, None)?;
        }
        self.set_mode(mode);
        Ok(())
    }

    /// Sets the mode of a job that has its processors, and tells a resizable job of other ones.
    fn set_mode(&mut self, mode: RunMode) {
        let changed = self.place_at.take().is_some() || mode.cpus() != self.mode.cpus();
        self.mode = mode;
        if changed {
            self.tell_cpus(true);
        }
    }

    /// Gives the job what its window allows.
    fn place_in_window(&mut self, mode: &RunMode, now: BootTime) -> CommandResult {
        self.place(mode, Some(self.class()))?;
        self.set_nice(self.window_nice(), now);
        self.raise_group();
        Ok(())
    }

    /// Gives the job what a mode allows.
    fn place(&mut self, mode: &RunMode, class: Option<ThreadClass>) -> CommandResult {
        let cpus = mode.cpus();
        ShimRefusal::check_cpus(cpus)?;
        self.limit(mode).map_err(|error| ShimRefusal::from_cgroup(cpus, &error))?;
        self.host.place(cpus, class).map_err(|error| ShimRefusal::from_cpus(cpus, &error))
    }

    fn begin_stop(&mut self, number: u64, now: BootTime) {
        self.abandon_stop();
        self.in_one_group = false;
        self.resume_at = None;
        self.stop_group();
        self.timeline.set_stopped(self.host.now(), true);
        self.stop = Some(PendingStop::new(number, now));
    }

    /// Scans for running processes if a stop is pending.
    pub(super) fn prove_stop(&mut self, now: BootTime) {
        let Some(stop) = self.stop.as_mut().filter(|stop| stop.scan_at <= now) else { return };
        let (until, number) = (stop.until, stop.number);
        stop.schedule_scan(now);
        let scan = self.host.stop(&mut stop.sent).unwrap_or(StopScan { stopped: false, in_one_group: false });
        let stopped = scan.stopped;
        // Stopped processes create no others and join no other group.
        self.in_one_group = stopped && scan.in_one_group;
        if !stopped && now >= until {
            mark!("a stop is not obeyed");
            self.abandon_stop();
        } else if let (true, Some(number)) = (stopped, number) {
            self.stop = None;
            // The scan has just established the phase, unless the job is being terminated.
            let is_running = self.pending_end.is_none() && self.timeline.ending().is_none();
            let state = if is_running { self.state_in(AttemptPhase::Stopped) } else { self.state() };
            self.answer(number, ShimReply::Done(state));
        } else if stopped {
            self.stop = None;
        }
    }

    /// Answers a stop that was not proved.
    pub(super) fn abandon_stop(&mut self) {
        let Some(number) = self.stop.take().and_then(|stop| stop.number) else { return };
        let state = self.state();
        let running = self.host.running().unwrap_or_default();
        self.answer(number, ShimReply::NotStopped { state, running });
    }

    /// Overrides a pending or complete stop, since the due action cannot wait.
    pub(super) fn override_stop(&mut self, due: DueAction) {
        self.abandon_stop();
        if due == DueAction::Term {
            self.timeline.set_stopped(self.host.now(), false);
        }
    }

    fn state(&self) -> AttemptState {
        self.state_in(self.phase())
    }

    fn state_in(&self, phase: AttemptPhase) -> AttemptState {
        AttemptState {
            phase,
            idle: self.is_idle(),
            cpus: self.mode.cpus().to_owned(),
            affinity: self.host.affinity(),
            end: self.timeline.end(),
            window: self.mode.window().cloned(),
            activity: self.idle.as_ref().map(IdleWatch::activity),
        }
    }

    /// Returns whether the job runs only where nothing else wants to.
    fn is_idle(&self) -> bool {
        if self.can(Capability::Idle) {
            matches!(self.mode, RunMode::Opportunistic { .. }) || self.place_at.is_some()
        } else {
            self.host.is_idle()
        }
    }

    fn phase(&self) -> AttemptPhase {
        match (&self.pending_end, self.timeline.ending()) {
            (Some(pending_end), _) => AttemptPhase::Ended(Box::new(pending_end.end.clone())),
            (None, Some(ending)) => AttemptPhase::Ending(ending.cause),
            _ if self.programs.has_begun(ProgramKind::Epilog) => AttemptPhase::Ending(None),
            _ if self.timeline.is_stopped() => match self.host.running() {
                Ok(running) if running.is_empty() => AttemptPhase::Stopped,
                _ => AttemptPhase::Stopping,
            },
            _ if self.main.connection.is_some() => AttemptPhase::Starting,
            _ => AttemptPhase::Running,
        }
    }
}
