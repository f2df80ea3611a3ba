//! The prolog, the epilog and the checkpoint command of an attempt, as its shim sees them.
//!
//! The prolog begins after the start record is durable, and the others before the end is recorded. So no other attempt runs
//! one of them again, whichever process is killed.

use std::io;
use std::time::Duration;

use miserly_marks::mark;

use super::host::Host;
use super::main_process::{MainProcess, Permission, SetupFailure};
use super::pending_end::PendingEnd;
use super::supervisor::{RETRY_INTERVAL, Supervisor};
use crate::connection::Connection;
use crate::end::{EndCause, Exit, StartFailure};
use crate::queue_program::{ProgramFailure, ProgramKind, ProgramReport};
use crate::time::BootTime;

/// The time after the limit of a program at which its runner is killed, because it was stopped or does not answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The programs of an attempt.
pub(super) struct QueueProgramRuns<C> {
    running: Option<Running<C>>,
    prolog: Option<ProgramReport>,
    epilog: Option<ProgramReport>,
    checkpoint: Option<ProgramReport>,
    /// The instant at which no process of the job was left.
    pub(super) gone_at: Option<BootTime>,
    /// A program that has just ended.
    ended: Option<ProgramKind>,
}

/// A program that runs.
struct Running<C> {
    kind: ProgramKind,
    /// The process that runs it.
    runner: u32,
    connection: C,
    limit: Duration,
    /// The end of its time.
    until: BootTime,
    /// The instant at which its runner is killed with it.
    kill_at: BootTime,
}

impl<C> Default for QueueProgramRuns<C> {
    fn default() -> Self {
        let (prolog, epilog, checkpoint) = (None, None, None);
        QueueProgramRuns { running: None, prolog, epilog, checkpoint, gone_at: None, ended: None }
    }
}

impl<C: Connection> QueueProgramRuns<C> {
    /// Returns the report of a program that has ended.
    pub(super) fn report(&self, kind: ProgramKind) -> Option<&ProgramReport> {
        match kind {
            ProgramKind::Prolog => self.prolog.as_ref(),
            ProgramKind::Epilog => self.epilog.as_ref(),
            ProgramKind::Checkpoint => self.checkpoint.as_ref(),
        }
    }

    fn set_report(&mut self, kind: ProgramKind, report: ProgramReport) {
        match kind {
            ProgramKind::Prolog => self.prolog = Some(report),
            ProgramKind::Epilog => self.epilog = Some(report),
            ProgramKind::Checkpoint => self.checkpoint = Some(report),
        }
    }

    pub(super) fn runs(&self, kind: ProgramKind) -> bool {
        self.running.as_ref().is_some_and(|running| running.kind == kind)
    }

    pub(super) fn has_begun(&self, kind: ProgramKind) -> bool {
        self.runs(kind) || self.report(kind).is_some()
    }

    /// Returns the instant at which a program is to be killed with its runner.
    pub(super) fn next(&self) -> Option<BootTime> {
        self.running.as_ref().map(|running| running.kill_at)
    }

    /// Takes the report of a runner that was reaped; `false` if the process is another one.
    pub(super) fn take_exit(&mut self, pid: u32, now: BootTime) -> bool {
        let Some(mut running) = self.running.take_if(|running| running.runner == pid) else { return false };
        let report = running.connection.receive().ok().flatten();
        let limit = running.limit;
        let killed =
            if now < running.until { ProgramFailure::Killed } else { ProgramFailure::TimeLimit { limit } };
        let report = report.unwrap_or_else(|| ProgramReport::failed(killed));
        self.set_report(running.kind, report);
        self.ended = Some(running.kind);
        true
    }
}

impl<H: Host> Supervisor<H> {
    /// Starts a program with a time limit, at most its own, unless the queue has none. Returns whether it runs.
    fn start_program(&mut self, kind: ProgramKind, most: Duration) -> io::Result<bool> {
        let programs = self.attempt.spec.queue_programs.as_ref();
        let Some(program) = programs.and_then(|programs| programs.get(kind)) else { return Ok(false) };
        let limit = program.limit.min(most);
        let (runner, connection) = self.host.start_program(kind, &self.attempt.lock)?;
        let until = self.host.now().after(limit);
        let kill_at = until.after(PATIENCE);
        self.programs.running = Some(Running { kind, runner, connection, limit, until, kill_at });
        // Without a control group the program runs where the job does.
        if let Err(error) = self.host.place(self.mode.cpus(), None) {
            self.host.log(&format_args!("the {} is not on the processors of the job: {error}", kind.name()));
        }
        if let Some(running) = &mut self.programs.running {
            // A runner that is dead is reaped, and its program has failed.
            let _ = running.connection.send(&limit);
        }
        Ok(true)
    }

    /// Starts the prolog, or permits the command to run if there is none. The start record is durable.
    pub(super) fn begin_prolog(&mut self) -> Result<(), SetupFailure> {
        let started = self
            .start_program(ProgramKind::Prolog, Duration::MAX)
            .map_err(|error| self.failure(StartFailure::setup("its prolog", &error), &error))?;
        if started { Ok(()) } else { Ok(self.grant()?) }
    }

    /// Permits the command to run.
    fn grant(&mut self) -> Result<(), StartFailure> {
        let Some(connection) = &mut self.main.connection else { return Ok(()) };
        self.main.is_permitted = true;
        connection.send(&Permission).map_err(|error| StartFailure::setup("the permission to run", &error))
    }

    /// Continues after a program that has just ended.
    pub(super) fn follow_up_program(&mut self) {
        let Some(kind) = self.programs.ended.take() else { return };
        match kind {
            ProgramKind::Epilog => return,
            ProgramKind::Checkpoint => return self.timeline.kill_by(self.host.now()),
            ProgramKind::Prolog => {}
        }
        let failure = self.programs.report(kind).and_then(|report| report.failure.clone());
        let failure = match (self.timeline.ending(), failure) {
            (Some(_), _) => Some(StartFailure::Ended),
            (None, Some(failure)) => Some(StartFailure::Prolog(failure)),
            (None, None) => self.grant().err(),
        };
        if let Some(failure) = failure {
            self.main.refuse(failure.into());
            // A stopped program does not see that.
            if self.timeline.is_stopped()
                && let Err(error) = self.host.kill()
            {
                self.host.log(&error);
            }
        }
    }

    /// Starts the checkpoint command beside the job. The job ends with it, or at an instant.
    pub(super) fn begin_checkpoint(&mut self, until: BootTime, now: BootTime) {
        mark!("a job is written out");
        self.timeline.write_out(until);
        // A stopped process cannot help.
        if self.timeline.is_stopped()
            && let Err(refusal) = self.resume()
        {
            self.host.log(&refusal);
        }
        let not_run = |error: &dyn ToString| ProgramFailure::NotRun { error: error.to_string() };
        let failure = if self.main.is_permitted {
            match self.start_program(ProgramKind::Checkpoint, until.since(now)) {
                Ok(true) => return,
                Ok(false) => not_run(&"the queue had none when the attempt began"),
                Err(error) => not_run(&error),
            }
        } else {
            not_run(&"the command of the job had not begun")
        };
        self.programs.set_report(ProgramKind::Checkpoint, ProgramReport::failed(failure));
        self.timeline.kill_by(now);
    }

    /// Starts the epilog when no process of the job is left. Without one, or after it, the attempt has ended.
    pub(super) fn end_or_clean_up(&mut self, now: BootTime) {
        self.programs.gone_at.get_or_insert(now);
        let has_begun = self.main.is_permitted || self.programs.has_begun(ProgramKind::Prolog);
        if has_begun && !self.programs.has_begun(ProgramKind::Epilog) {
            match self.start_program(ProgramKind::Epilog, Duration::MAX) {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    let failure = ProgramFailure::NotRun { error: error.to_string() };
                    self.programs.set_report(ProgramKind::Epilog, ProgramReport::failed(failure));
                }
            }
        }
        self.pending_end = Some(PendingEnd::new(self.end(now), now));
    }

    /// Kills a program whose runner should have killed it.
    pub(super) fn kill_slow_program(&mut self, now: BootTime) -> io::Result<()> {
        match &mut self.programs.running {
            Some(running) if running.kill_at <= now => {
                running.kill_at = now.after(RETRY_INTERVAL);
                self.host.kill_program()
            }
            _ => Ok(()),
        }
    }

    /// Returns the exit of the main process. A window that ends in the prolog is a failure of the prolog, and one that ends in the
    /// user's part of the start is a failure of the job.
    pub(super) fn exit(&self, cause: Option<EndCause>) -> Exit {
        let exit = self.main.exit.clone().unwrap_or(Exit::Failed(StartFailure::Ended));
        let in_prolog = !self.main.is_permitted && self.programs.has_begun(ProgramKind::Prolog);
        match (exit, cause) {
            (Exit::Failed(StartFailure::Ended), Some(EndCause::Time)) if in_prolog => {
                Exit::Failed(StartFailure::Prolog(ProgramFailure::Window))
            }
            (Exit::Failed(StartFailure::Ended), Some(EndCause::Time)) => {
                let end = self.timeline.end();
                let blocked = end.and_then(|end| self.main.blocked_by_user(end, self.host.awake()));
                Exit::Failed(blocked.unwrap_or(StartFailure::Ended))
            }
            (Exit::Failed(StartFailure::Ended), Some(EndCause::Memory)) => {
                Exit::Failed(StartFailure::setup("its memory limit", &"it is too low to start a command"))
            }
            (exit, _) => exit,
        }
    }
}

impl<C> MainProcess<C> {
    /// Refuses the permission to run. The program then exits.
    pub(super) fn refuse(&mut self, failure: SetupFailure) {
        if self.exit.is_none() {
            self.failure = Some(failure);
            self.connection = None;
        }
    }
}
